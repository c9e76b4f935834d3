"""Receipts held against what they claim: the price derived again, the entry of the ledger, the proof that it is there. No data is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpquery.engine.basis import MALFORMED, derived, standing
from dpquery.engine.books import open_ledger, text_of
from dpquery.engine.receipt import charged, number
from dpquery.errors import Refused
from dpquery.ledger import Amounts, Finding, Key, Kind, Ledger, Logged, proved

JSON = Any
CHARGED = ("price.rho", "price.charged_epsilon", "price.charged_delta")
KEPT = ("dataset", "data_version", "adjacency", "software")
SHARED = ("dataset", "data_version", "plan", "adjacency", "releases", "basis", "keys", "tables", "public_tables", "parameters", "lemmas", "software")
STANDS = ("spent", "left", "period", "lifetime")


@dataclass(frozen=True, slots=True)
class Checked:
    """What is wrong with a receipt; and what stands on it, or beside it in its file, that was held against nothing."""

    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...]


class _Paper:
    """A receipt, with the names of its fields that were held against something."""

    def __init__(self, file: str | Path) -> None:
        whole = _object(file)
        found = whole.get("receipt", whole)
        if not isinstance(found, dict) or not all(name in found for name in ("entry", "commitment", "price", "basis", "adjacency")):
            raise Refused("NO_RECEIPT", f"{file} holds no receipt", instead="the receipt, or the whole answer, of `dpquery query --format json`")
        self.content: Mapping[str, JSON] = found
        self.beside = [name for name in whole if name != "receipt"] if "receipt" in whole else []
        self.held: set[str] = set()

    def names(self) -> Iterator[str]:
        """All fields, those of the price by themselves."""
        for name, value in self.content.items():
            yield from (f"price.{one}" for one in value) if name == "price" and isinstance(value, dict) else (name,)
        yield from self.beside

    def get(self, name: str) -> JSON:
        """A field, which is held against something now."""
        self.held.add(name)
        first, _, rest = name.partition(".")
        value = self.content.get(first)
        return value if not rest else value.get(rest) if isinstance(value, dict) else None


def verify_receipt(
    receipt: str | Path,
    *,
    schema: str | Path | None = None,
    ledger: str | Path | None = None,
    proof: str | Path | None = None,
    key: Key | None = None,
) -> Checked:
    """What is wrong with a receipt (its JSON, or an answer's that holds it), and what of it was not checked.

    Its price is derived again from the bounds and noises on it. With `schema` it is held against its entry in the ledger, with `proof` and `key`
    against the signed root of the log. SchemaError for a file that cannot be read, Refused for one that is no receipt.
    """
    paper = _Paper(receipt)
    found = [*_price(paper)]
    if schema is not None:
        with open_ledger(schema, ledger) as opened:
            found += _entry(paper, opened)
            key = opened.key() if key is None else key
    if proof is not None:
        if key is None:
            raise Refused("USAGE", "a proof is held against a key", instead="--key, as `dpquery ledger key` prints it")
        shown = _object(proof)
        if shown.get("entry") != paper.content["entry"]:  # said beside what is proved: both could be edited
            found.append(Finding(None, "the proof is of another entry than the receipt"))
        found += proved(shown, str(paper.get("commitment")), key)
    return Checked(tuple(found), tuple(dict.fromkeys(name for name in paper.names() if name not in paper.held)))


def _object(file: str | Path) -> Mapping[str, JSON]:
    try:
        found = json.loads(text_of(file))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refused("NO_RECEIPT", f"{file} is no JSON object", instead="a file as dpquery wrote it")
    return found


def _price(paper: _Paper) -> Iterator[Finding]:
    """How the price on the receipt differs from that of its noises under its bounds."""
    try:
        again = derived(paper.get("basis"), paper.get("adjacency"))
        differing = [(name, amount) for name, amount in charged(again).items() if paper.get(f"price.{name}") != amount]
        epsilon, delta = paper.get("price.epsilon"), paper.get("price.delta")
        holds = (epsilon, delta) == (number(again.epsilon), number(again.delta))
        if again.epsilon is None:
            holds = standing(paper.get("basis"), paper.get("adjacency"), again, Fraction(Decimal(epsilon))) <= Fraction(Decimal(delta))
            paper.held -= {"price.epsilon", "price.delta"}  # what was asked for, which need not be the least that holds
    except MALFORMED:
        yield Finding(None, "the receipt's bounds, noises and prices are of no format that dpquery writes")
        return
    for name, amount in differing:
        yield Finding(None, f"the receipt says {name} {paper.get(f'price.{name}')}, but its noises under its bounds cost {amount}")
    if not holds:
        yield Finding(None, f"the receipt says epsilon {epsilon} at delta {delta}, which is not what its noises under its bounds keep")


def _entry(paper: _Paper, ledger: Ledger) -> Iterator[Finding]:
    """How the receipt differs from its entry in the ledger."""
    line = next((one for one in ledger.entries() if one.id == paper.get("entry") and one.event in ("charged", "shown")), None)
    if line is None:
        yield Finding(None, "the ledger has no charge of the receipt's entry: it was cut off, or the receipt is of another ledger")
        return
    if line.commitment != paper.get("commitment"):
        yield Finding(line.seq, "its commitment is not the receipt's")
    yield from _said(paper, line, ledger)
    if not any(all(paper.content.get(name) == balance[name] for name in STANDS) for balance in _balances(line, ledger)):
        yield Finding(line.seq, "since then its account never stood at what the receipt says was spent and is left")
    paper.held.update(STANDS)
    record = line.body["record"]
    again = _again(paper)
    for name in KEPT if again else SHARED:
        if record.get(name) != paper.get(name):
            yield Finding(line.seq, f"it says something else of `{name}` than the receipt")
    for name, value in record.get("price", {}).items():
        if again and name.startswith("asked"):  # as the statement of now asked
            continue
        if paper.get(f"price.{name}") != value:
            yield Finding(line.seq, f"it says something else of `price.{name}` than the receipt")
    yield from _charged(line, record, "its")
    if again:
        yield from _charged(line, paper.content, "the receipt's")
        if _unordered(record.get("basis")) != _unordered(paper.get("basis")):
            yield Finding(line.seq, "it says something else of `basis` than the receipt")


def _unordered(basis: JSON) -> JSON:
    """Bounds and noises without the order of releases and of their parts, which another wording may change; as they are where they are malformed."""
    try:
        parts = [sorted(map(_text, zip(one["cells"], one["noises"], strict=True))) for one in basis]
        return sorted(_text([{**one, "cells": 0, "noises": 0}, *own]) for one, own in zip(basis, parts, strict=True))
    except MALFORMED:
        return basis


def _text(value: JSON) -> str:
    return json.dumps(value, sort_keys=True)


def _again(paper: _Paper) -> bool:
    """Whether the answer was shown before, to a statement in other words perhaps."""
    stored = paper.content.get("stored")
    return isinstance(stored, dict) and stored.get("charged") is False


def _said(paper: _Paper, line: Logged, ledger: Ledger) -> Iterator[Finding]:
    """How what the receipt says of the entry itself differs from it."""
    said = {"time": line.time, "unsafe_testing": ledger.terms.unsafe_testing}
    for name, value in said.items():
        if paper.get(name) != value:
            yield Finding(line.seq, f"it says something else of `{name}` than the receipt")
    if line.body["accounts"][0] != f"{Kind.ANALYST}:{paper.get('analyst')}":
        yield Finding(line.seq, "it was charged to another account than the receipt says")
    stored = paper.get("stored")
    if stored is None and line.event == "charged":
        return
    charge = line.body.get("of", line.id)
    released = next((one.time for one in ledger.entries() if one.event == "released" and one.body["entry"] == charge), None)
    if stored not in ({"time": released, "charged": False}, {"time": released, "charged": True} if line.event == "shown" else None):
        yield Finding(line.seq, "it says something else of `stored` than the receipt")


def _balances(line: Logged, ledger: Ledger) -> Iterator[Mapping[str, JSON]]:
    """How the account that paid for an entry stood from then on, as a receipt says it."""
    for one in ledger.stood(line.id, line.body["accounts"][0]):
        period: dict[str, JSON] = {"period": None, "lifetime": None}
        if one.period is not None:
            period = {"period": one.period.as_dict(), "lifetime": one.lifetime.as_dict()}
        yield {"spent": one.spent.as_dict(), "left": one.left.as_dict(), **period}


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
