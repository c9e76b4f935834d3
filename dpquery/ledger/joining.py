"""One account, several data sets of the same people: what is spent on one is gone for the others."""

from __future__ import annotations

from collections.abc import Sequence

from dpquery.errors import Refused
from dpquery.ledger import binding, others
from dpquery.ledger.creation import empty
from dpquery.ledger.ledger import open, opened_terms
from dpquery.ledger.model import JSON
from dpquery.ledger.reserve import agreed
from dpquery.schema.address import Place
from dpquery.schema.model import Schema


def joins(schema: Schema, where: Place) -> bool:
    """Whether the data set would join a ledger that is there already: it names a shared account."""
    if schema.account is None:
        return False
    try:
        empty(where)
    except Refused as taken:
        return taken.code == "LEDGER_EXISTS"
    return False


def join(schema: Schema, where: Place, *, fingerprint: str, identity: JSON, contents: Sequence[str] = ()) -> Place:
    """The place of the shared ledger, to which the data set is bound from now on; its data with this fingerprint is version 1.

    Refused where the data has a ledger; SchemaError where privacy unit, adjacency or reserve mode are not the ledger's, or caps have no room; a
    Fault where the ledger is another account's.
    """
    binding.free(schema)
    others.unclaimed(schema, where, contents)
    terms = opened_terms(where)
    agreed(terms, schema)
    bound = binding.bind(schema, terms.ledger)
    try:
        with open(where, schema) as opened:
            opened.join(fingerprint, identity, contents)
    except BaseException:
        binding.unbind(bound)
        raise
    return where
