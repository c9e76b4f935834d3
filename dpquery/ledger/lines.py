"""Lines of the log that a table points to: read, and tested against the line before them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dpquery.ledger.chain import START, commitment, link
from dpquery.ledger.model import JSON, Row
from dpquery.ledger.store import Transaction


def line(tx: Transaction, entry: str) -> Row:
    """The line with this id. ValueError where there is none, or it was changed."""
    row = tx.row(entry)
    if row is None:
        raise ValueError("a table knows of something that the log does not")
    return chained(tx, row)


def chained(tx: Transaction, row: Row) -> Row:
    """The line, if it hangs on the one before it: those before the last balance were not read when the ledger was opened."""
    previous = tx.rows(row.seq - 1, 1)[0].link if row.seq > 1 else START
    if link(previous, commitment(row.body)) != row.link:
        raise ValueError("a line of the log was changed")
    return row


def body(row: Row) -> Mapping[str, JSON]:
    """What a line says."""
    found: Mapping[str, JSON] = json.loads(row.body)
    return found
