"""A statement's released integers as bytes, and back: what is stored, so that the same question is answered from it again.

Releases, keys and parts stand in the order that all spellings of the question share (plan/sameness.py). Numbers are whole or exact fractions.
"""

from __future__ import annotations

import datetime
import json
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeVar, assert_never

from dpquery.accounting.event import Price
from dpquery.mechanisms import Noise, Randomness
from dpquery.plan.release import Choosing, Mechanism, Release
from dpquery.plan.sameness import Form, Same
from dpquery.privacy import Bill, Priced
from dpquery.release.noise import in_order
from dpquery.values.noisy import Noisy
from dpquery.values.types import Kind, Type, Value

JSON = Any
T = TypeVar("T")
FORMAT: Final = 1
LARGEST: Final = 2**24  # bytes: a larger answer is not stored


@dataclass(frozen=True, slots=True)
class Released:
    """What a statement released: the noisy table of each release, by its place in the statement, what it cost, and what was said on the way."""

    noisy: tuple[Noisy, ...]
    bill: Bill
    said: tuple[str, ...] = ()


def packed(released: Released, same: Same) -> bytes | None:
    """The bytes; None where there are too many."""
    tables = [_table(released.noisy[i], released.bill.releases[i], form) for i, form in zip(same.order, same.forms, strict=True)]
    content = {"format": FORMAT, "tables": tables, "bill": _total(released.bill), "said": [*released.said]}
    found = zlib.compress(json.dumps(content, separators=(",", ":"), sort_keys=True).encode())
    return found if len(found) <= LARGEST else None


def unpacked(content: bytes, same: Same, releases: Sequence[Release]) -> Released:
    """What was stored, with releases, keys and parts in the order of this statement. ValueError and the like where that is of another shape."""
    found = json.loads(zlib.decompress(content))
    if found["format"] != FORMAT:
        raise ValueError("stored answers are of another format")
    noisy, priced = dict[int, Noisy](), dict[int, Priced]()
    for i, form, table in zip(same.order, same.forms, found["tables"], strict=True):
        noisy[i], priced[i] = _read(table, form, releases[i])
    total, places = found["bill"], range(len(releases))
    spent = _price(total["price"]), _fraction(total["epsilon"]), Fraction(total["delta"]), Fraction(total["conversion"])
    return Released(tuple(noisy[i] for i in places), Bill(tuple(priced[i] for i in places), *spent), tuple(found["said"]))


def _table(noisy: Noisy, priced: Priced, form: Form) -> JSON:
    """One release: groups, integers, noises."""
    return {
        "keys": [[_written(row[i]) for i in form.keys] for row in noisy.keys],
        "sums": [noisy.sums[i] for i in form.parts],
        "noises": [[str(priced.noises[i].mechanism), str(priced.noises[i].parameter)] for i in form.parts],
        "shares": [str(priced.shares[i]) for i in form.parts],
        "threshold": priced.threshold,
        **_total(priced),
    }


def _total(paid: Priced | Bill) -> dict[str, JSON]:
    epsilon = None if paid.epsilon is None else str(paid.epsilon)
    price = [None if one is None else str(one) for one in (paid.price.epsilon, paid.price.rho, paid.price.delta)]
    return {"price": price, "epsilon": epsilon, "delta": str(paid.delta), "conversion": str(paid.conversion)}


def _read(table: Mapping[str, JSON], form: Form, release: Release) -> tuple[Noisy, Priced]:
    types, parts = [key.type for key in release.table.keys], release.table.parts
    keys = [_back(tuple(_value(one, types[i]) for one, i in zip(row, form.keys, strict=True)), form.keys) for row in table["keys"]]
    sums = _back([tuple(map(int, column)) for column in table["sums"]], form.parts)
    numbers = [part.numbers for part in parts]
    if [len(column) for column in sums] != [each * len(keys) for each in numbers]:
        raise ValueError("a stored table has another shape")
    noises = _back([Noise(_mechanism(name), Fraction(parameter)) for name, parameter in table["noises"]], form.parts)
    shares = _back([Fraction(one) for one in table["shares"]], form.parts)
    spent = _price(table["price"]), shares, _fraction(table["epsilon"]), Fraction(table["delta"]), Fraction(table["conversion"])
    return in_order(keys, sums, numbers), Priced(noises, table["threshold"], *spent)


def _back(values: Sequence[T], order: Sequence[int]) -> tuple[T, ...]:
    """Values that stand in the common order, in that of the statement: the i-th of them has the place order[i]."""
    places = dict(zip(order, values, strict=True))
    return tuple(places[i] for i in range(len(values)))


def _price(found: Sequence[str | None]) -> Price:
    epsilon, rho, delta = found
    return Price(_fraction(epsilon), Fraction(rho or 0), Fraction(delta or 0))


def _fraction(written: str | None) -> Fraction | None:
    return None if written is None else Fraction(written)


def _mechanism(name: str) -> Randomness:
    return Mechanism(name) if name in {*Mechanism} else Choosing(name)


def _written(value: Value) -> JSON:
    """A key as JSON holds it, exactly."""
    if value is None or isinstance(value, bool | str):
        return value
    return value.hex() if isinstance(value, float) else value if isinstance(value, int) else str(value)


def _value(written: JSON, kind: Type) -> Value:
    if written is None:
        return None
    match kind.kind:
        case Kind.FLOAT:
            return float.fromhex(written)
        case Kind.DECIMAL:
            return Decimal(written)
        case Kind.DATE:
            return datetime.date.fromisoformat(written)
        case Kind.TIMESTAMP:
            return datetime.datetime.fromisoformat(written)
        case Kind.UUID:
            return uuid.UUID(written)
        case Kind.BOOLEAN | Kind.INTEGER | Kind.STRING:
            return written  # type: ignore[no-any-return]
        case Kind.INTERVAL | Kind.NULL | Kind.LIST:
            raise ValueError("no key is of such a type")
        case _:
            assert_never(kind.kind)
