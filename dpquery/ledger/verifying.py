"""Whether a ledger holds: everything in it derived again from its log, and held against what was kept elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator

from dpquery.errors import Fault
from dpquery.ledger import audit, binding, evidence, replay, shown, stores, versions
from dpquery.ledger.checkpoint import Key
from dpquery.ledger.mark import NONE, Mark
from dpquery.ledger.model import Finding
from dpquery.ledger.store import Store, Transaction
from dpquery.schema.address import Place, place
from dpquery.schema.model import Schema


def verify(
    path: str | Place, *, schema: Schema | None = None, checkpoint: str | None = None, key: Key | None = None, wait: float = 10.0
) -> tuple[Finding, ...]:
    """What is wrong with a ledger, also with one that `open` would not open; nothing where all is well. Fault where it cannot be read at all.

    With `schema` it is held against the mark beside the data, which shows an older ledger in its place. Held against a signed checkpoint that was
    kept elsewhere, a log that was cut off at its end is found too, and one that was written anew from its beginning. `key` is what the checkpoint
    is signed under; without it the ledger's own.
    """
    store = stores.at(place(path), wait)
    try:
        return verified(store, schema, checkpoint, key)
    finally:
        store.close()


def verified(store: Store, schema: Schema | None, checkpoint: str | None, key: Key | None) -> tuple[Finding, ...]:
    """The same for an open store."""
    try:
        damage = tuple(Finding(None, said) for said in store.damage())
        marked = () if schema is None else _marked(store, schema)
        compared = () if checkpoint is None else store.read(lambda tx: _compared(tx, checkpoint, key))
        return (*damage, *store.read(_findings), *marked, *compared)
    except Fault as fault:
        if fault.code != "LEDGER_CORRUPT":
            raise
        return (Finding(None, fault.message),)


def _marked(store: Store, schema: Schema) -> tuple[Finding, ...]:
    """How the log differs from what the mark beside the data says; others may write meanwhile, so marks are read before the log."""
    places = binding.places(schema)
    head = Mark(places).head()

    def work(tx: Transaction) -> Iterator[Finding]:
        terms = replay.terms(json.loads(tx.rows(1, 1)[0].body))
        try:
            binding.belongs(schema, terms.ledger)
        except Fault as foreign:
            yield Finding(None, foreign.message)
        if head != NONE and not evidence.holds(tx, head):
            yield Finding(None, f"the ledger forgot: the mark beside the data saw entry {head[0]:,}, which it does not have")

    return store.read(lambda tx: tuple(work(tx)))


def _compared(tx: Transaction, checkpoint: str, key: Key | None) -> tuple[Finding, ...]:
    by = evidence.owner_key(tx, replay.terms(json.loads(tx.rows(1, 1)[0].body))) if key is None else key
    return tuple(evidence.findings(tx, checkpoint, by))


def _findings(tx: Transaction) -> tuple[Finding, ...]:
    """All that the tables hold, derived again from the log."""
    reader = audit.Reader()
    found = [*audit.findings(tx.rows(1), tx.accounts(), reader), *shown.findings(tx)]
    looked = tx.looked()
    if not reader.lost and looked != reader.looked:
        count = len(looked.items() ^ reader.looked.items())
        found.append(Finding(None, f"which data version is behind which files differs from what the log says, in {count:,} places"))
    try:
        if reader.key not in (None, versions.owner(tx)):
            found.append(Finding(None, "the owner's key is another one than that which the ledger was made with"))
    except ValueError as gone:
        found.append(Finding(None, str(gone)))
    return tuple(found)
