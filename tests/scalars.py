"""A scope, columns and values for tests of row-wise expressions."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from fractions import Fraction

import duckdb
import sqlglot
from sqlglot import exp

from dpquery.backends.scalar import sql
from dpquery.backends.values import type_name
from dpquery.errors import Position, Refused
from dpquery.plan.scalar import Column, Interval, Scalar
from dpquery.sql.scalar import read
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, STRING, TIMESTAMP, UUID, Kind, Type

NOW = datetime.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=datetime.UTC)
P, Q = Type(Kind.DECIMAL, 2), Type(Kind.DECIMAL, 4)

TYPES: dict[str, Type] = {
    "i": INTEGER,
    "j": INTEGER,
    "x": FLOAT,
    "y": FLOAT,
    "p": P,
    "q": Q,
    "z": Type(Kind.DECIMAL, 0),
    "s": STRING,
    "t": STRING,
    "d": DATE,
    "e": DATE,
    "ts": TIMESTAMP,
    "tu": TIMESTAMP,
    "f": BOOLEAN,
    "g": BOOLEAN,
    "u": UUID,
}
"""The columns of the tests by name; ids are places in this table."""

IDS = {name: place for place, name in enumerate(TYPES)}
DECLARED = Interval(Fraction(0), Fraction(100))


def column(name: str, declared: Interval | None = DECLARED) -> Column:
    kind = TYPES[name]
    return Column(IDS[name], name, kind, declared if kind.numeric else None)


class Scope:
    """Every column of TYPES, declared within `declared`."""

    def __init__(self, source: str = "", declared: Mapping[str, Interval | None] | None = None) -> None:
        self.source = source
        self.now = NOW
        self.declared = declared or {}

    def column(self, node: exp.Column) -> Scalar:
        if node.name not in TYPES:
            raise Refused("UNKNOWN_COLUMN", f"no column {node.name!r}")
        return column(node.name, self.declared.get(node.name, DECLARED))

    def position(self, node: exp.Expression) -> Position | None:
        return None


def parsed(text: str, dialect: str = "duckdb") -> exp.Expression:
    return sqlglot.parse_one(f"SELECT {text}", dialect=dialect).selects[0]


def scalar(text: str, dialect: str = "duckdb", **declared: Interval | None) -> Scalar:
    """The plan expression that a text spells."""
    return read(parsed(text, dialect), Scope(f"SELECT {text}", declared))


def lowered(text: str, prefix: str = "") -> str:
    """The SQL of the expression that a text spells, over columns of the same names."""
    return sql(scalar(text), {place: prefix + name for name, place in IDS.items()})


def table(con: duckdb.DuckDBPyConnection, name: str, columns: list[str], rows: list[str]) -> None:
    """A table with these columns, each row the text of a VALUES row."""
    con.execute(f"CREATE TABLE {name} ({', '.join(f'{one} {type_name(TYPES[one])}' for one in columns)})")
    con.execute(f"INSERT INTO {name} VALUES {', '.join(f'({row})' for row in rows)}")
