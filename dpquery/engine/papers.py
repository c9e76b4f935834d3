"""Receipts held against what they claim: the price derived again, the entry of the ledger, the proof that it is there. No data is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpquery.engine.basis import MALFORMED, derived
from dpquery.engine.books import open_ledger, text_of
from dpquery.engine.receipt import charged
from dpquery.errors import Refused
from dpquery.ledger import Amounts, Finding, Key, Ledger, Logged, proved

JSON = Any
KEPT = ("dataset", "data_version", "adjacency", "software")
SHARED = ("dataset", "data_version", "plan", "adjacency", "releases", "basis", "keys", "tables", "public_tables", "parameters", "lemmas", "software")


def verify_receipt(
    receipt: str | Path,
    *,
    schema: str | Path | None = None,
    ledger: str | Path | None = None,
    proof: str | Path | None = None,
    key: Key | None = None,
) -> tuple[Finding, ...]:
    """What is wrong with a receipt (its JSON, or an answer's that holds it); nothing where all is well.

    Its price is derived again from the bounds and noises on it. With `schema` it is held against its entry in the ledger, with `proof` and `key`
    against the signed root of the log. SchemaError for a file that cannot be read, Refused for one that is no receipt.
    """
    paper = _receipt(receipt)
    found = [*_price(paper)]
    if schema is not None:
        with open_ledger(schema, ledger) as opened:
            found += _entry(paper, opened)
            key = opened.key() if key is None else key
    if proof is not None:
        if key is None:
            raise Refused("USAGE", "a proof is held against a key", instead="--key, as `dpquery ledger key` prints it")
        found += proved(_object(proof), str(paper["commitment"]), key)
    return tuple(found)


def _receipt(file: str | Path) -> Mapping[str, JSON]:
    found = _object(file)
    paper = found.get("receipt", found)
    if not isinstance(paper, dict) or not all(name in paper for name in ("entry", "commitment", "price", "basis", "adjacency")):
        raise Refused("NO_RECEIPT", f"{file} holds no receipt", instead="the receipt, or the whole answer, of `dpquery query --format json`")
    return paper


def _object(file: str | Path) -> Mapping[str, JSON]:
    try:
        found = json.loads(text_of(file))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refused("NO_RECEIPT", f"{file} is no JSON object", instead="a file as dpquery wrote it")
    return found


def _price(paper: Mapping[str, JSON]) -> Iterator[Finding]:
    """How the price on the receipt differs from that of its noises under its bounds."""
    try:
        again, said = charged(derived(paper["basis"], paper["adjacency"])), paper["price"]
        differing = [name for name, amount in again.items() if said[name] != amount]
    except MALFORMED:
        yield Finding(None, "the receipt's bounds and noises are of no format that dpquery writes")
        return
    for name in differing:
        yield Finding(None, f"the receipt says {name} {said[name]}, but its noises under its bounds cost {again[name]}")


def _entry(paper: Mapping[str, JSON], ledger: Ledger) -> Iterator[Finding]:
    """How the receipt differs from its entry in the ledger."""
    line = next((one for one in ledger.entries() if one.id == paper["entry"] and one.event in ("charged", "shown")), None)
    if line is None:
        yield Finding(None, "the ledger has no charge of the receipt's entry: it was cut off, or the receipt is of another ledger")
        return
    if line.commitment != paper["commitment"]:
        yield Finding(line.seq, "its commitment is not the receipt's")
    record = line.body["record"]
    stored = paper.get("stored")
    again = isinstance(stored, dict) and stored.get("charged") is False  # the answer was shown before, to a statement in other words perhaps
    for name in KEPT if again else SHARED:
        if record.get(name) != paper.get(name):
            yield Finding(line.seq, f"it says something else of `{name}` than the receipt")
    yield from _charged(line, record, "its")
    if again:
        yield from _charged(line, paper, "the receipt's")


def _charged(line: Logged, of: Mapping[str, JSON], whose: str) -> Iterator[Finding]:
    """How what an entry charged differs from the price of these bounds and noises."""
    try:
        found = Amounts.of(derived(of["basis"], of["adjacency"])).as_dict()
    except MALFORMED:
        yield Finding(line.seq, f"{whose} bounds and noises are none from which its price could be derived again")
        return
    for name, amount in found.items():
        if line.body[name] != amount:
            yield Finding(line.seq, f"it charged {name} {line.body[name]}, but {whose} noises under {whose} bounds cost {amount}")
