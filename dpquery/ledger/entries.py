"""What entries of the log say, and how a line of it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from dpquery.accounting.event import Price
from dpquery.errors import Refused
from dpquery.ledger.chain import canonical, commitment
from dpquery.ledger.model import JSON, Amounts, Logged, Row

KEPT: Final = 200  # characters of a refused statement: it costs nothing, so a log must not grow by much of what anybody writes


def amounts_of(price: Price) -> Amounts:
    """The price as decimals; Refused for a negative one."""
    try:
        return Amounts.of(price)
    except ValueError:
        raise Refused("BAD_PRICE", "a price cannot be negative") from None


def plain(record: Mapping[str, JSON]) -> JSON:
    """The record as JSON holds it. TypeError or ValueError, before anything is written, for what is not JSON."""
    return json.loads(canonical(dict(record)))


def refused(analyst: str, own: tuple[str, ...], record: JSON, code: str, asked: Amounts) -> dict[str, JSON]:
    """The content of a refused question's entry: it costs nothing; `asked` is the price that did not fit.

    Of the record it keeps the beginning of the statement, its length and its hash.
    """
    statement, nothing = str(record.get("statement", "")), Amounts().as_dict()
    digest = sha256(statement.encode(errors="surrogatepass")).hexdigest()
    kept = {"statement": statement[:KEPT], "characters": len(statement), "sha256": digest}
    return {"event": "refused", "analyst": analyst, "accounts": list(own), "code": code, "asked": asked.as_dict(), **nothing, "record": kept}


def line(row: Row) -> Logged:
    """A line of the log, as it is read."""
    body = json.loads(row.body)
    return Logged(row.seq, row.id, body["time"], row.event, commitment(row.body), body)
