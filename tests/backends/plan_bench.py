"""Hand-built plans run on a real engine, in this process: what the statement says is what is tested."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Any

import duckdb

from dpquery.backends import exact, relation
from dpquery.backends.lower import lower
from dpquery.backends.port import BoundedSQL
from dpquery.backends.seal import Allowance, connect
from dpquery.plan.rel import Public, Scan, ScanColumn, UnitPath
from dpquery.plan.release import (
    Bounding,
    Clamp,
    GroupCap,
    Idle,
    Key,
    Keys,
    ListedKeys,
    NoKeys,
    One,
    Part,
    Present,
    PrivateKeys,
    Release,
    Units,
    UnitTable,
)
from dpquery.plan.scalar import Column, Interval, Literal, Scalar
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, STRING, TIMESTAMP, UUID, Type, Value

SALT = 1_234_567_890_123_456_789
WORDS = {"integer": INTEGER, "float": FLOAT, "string": STRING, "date": DATE, "timestamp": TIMESTAMP, "uuid": UUID, "boolean": BOOLEAN}
ROWS = Part(One(), Clamp(0, 100))
UNITS = Part(One(), Present())

_ids = count(1)


def column(name: str, kind: str | Type = "integer", **more: Any) -> Column:
    return Column(next(_ids), name, WORDS[kind] if isinstance(kind, str) else kind, **more)


def scan(table: str, unit: str | UnitPath = "uid", **columns: str | Type) -> Scan:
    path = UnitPath(unit, INTEGER) if isinstance(unit, str) else unit
    return Scan(table, table, tuple(ScanColumn(column(name, kind), name) for name, kind in columns.items()), path)


def public(name: str, sql: str, **columns: str | Type) -> Public:
    return Public(name, sql, tuple(column(c, kind, public=name) for c, kind in columns.items()))


def of(rel: Scan | Public, name: str) -> Column:
    columns = rel.columns if isinstance(rel, Public) else [c.column for c in rel.columns]
    return next(c for c in columns if c.name == name)


def integer(value: int) -> Literal:
    return Literal(value, INTEGER)


def total(value: Scalar, low: int, high: int, step: Fraction = Fraction(1), rows: int = 100) -> Part:
    return Part(Units(value, step, low, high), Clamp(min(low, low * rows), max(high, high * rows)))


def interval(low: int, high: int) -> Interval:
    return Interval(Fraction(low), Fraction(high))


def release(
    rel: Any,
    keys: Sequence[Scalar] = (),
    listed: Iterable[tuple[Value, ...]] | None = None,
    parts: Sequence[Part] = (ROWS,),
    by: Bounding | None = None,
) -> Release:
    """A release with the keys given; listed ones, else private ones (then the first part counts units), else none."""
    named = tuple(Key(f"k{i}", key, key.type) for i, key in enumerate(keys))
    how: Keys = NoKeys()
    if listed is not None:
        how = ListedKeys(tuple(listed), "a test")
    elif named:
        how, parts = PrivateKeys(0), (UNITS, *parts)
    return Release(UnitTable(rel, named, tuple(parts), by or GroupCap(1_000_000 if named else 1, None if named else Idle.NO_KEYS)), how, ())


@dataclass
class Bench:
    """An engine with private and public tables in it."""

    setup: str = ""
    threads: int = 2
    con: duckdb.DuckDBPyConnection = field(init=False)

    def __post_init__(self) -> None:
        self.con = connect(Allowance(2**30, self.threads))
        self.con.execute("ATTACH ':memory:' AS data")
        self.con.execute("USE data")
        if self.setup:
            self.con.execute(self.setup)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.con.execute(sql).fetchall()

    def make(self, *publics: Public) -> None:
        for one in publics:
            self.con.execute(relation.made(one))

    def run(self, lowered: BoundedSQL, types: Sequence[Type], parts: int) -> dict[tuple[Value, ...], tuple[int, ...]]:
        found = exact.exact(self.con.sql(lowered.text).to_arrow_table(), lowered, types, parts)
        return dict(zip(found.keys, zip(*found.sums, strict=True), strict=True))

    def sums(self, asked: Release, salt: int = SALT) -> dict[tuple[Value, ...], tuple[int, ...]]:
        """The exact sums of a release by group; listed keys without rows are left out. A private group's count of units is its first sum."""
        return self.run(lower(asked, salt), [key.type for key in asked.table.keys], len(asked.table.parts))

    def one(self, asked: Release, salt: int = SALT) -> tuple[int, ...]:
        """The sums of a release without keys."""
        return self.sums(asked, salt)[()]


Neighbour = Callable[[int], Bench]
