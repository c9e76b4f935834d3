"""Interval arithmetic: the ends that people expect, and no value outside them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest
from extremes import EXPRESSIONS
from scalars import IDS, TYPES, column, scalar

from dpquery.backends.scalar import sql
from dpquery.backends.values import type_name
from dpquery.plan.functions import FUNCTIONS
from dpquery.plan.intervals import SPANS, interval
from dpquery.plan.lengths import longest
from dpquery.plan.scalar import Call, Cast, Column, Interval, Literal, walk
from dpquery.values.types import FLOAT, INTEGER, Kind

BOXES = [(0, 100), (-50, 50), (1, 10), (-20, -3), (0, 0), (7, 7), (-1, 1)]
ROWS = 300
WORDS = ["", "a", " x ", "foo", "FOO", "🦆", "aaaaaaaaab", "1", "2024-01-01", "z" * 4096]


def test_every_function_has_a_span() -> None:
    assert set(SPANS) == set(FUNCTIONS)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("i + j", 0, 200),
        ("i - j", -100, 100),
        ("i * j", 0, 10_000),
        ("-i", -100, 0),
        ("p * 1.5", 0, 150),
        ("p / 4", 0, 25),
        ("x / (y + 1)", 0, 100),
        ("100 / (i + 1)", Fraction(100, 101), 100),
        ("i // 7", 0, 14),
        ("i // j", 0, 100),
        ("i % 7", 0, 7),
        ("abs(i - 50)", 0, 50),
        ("sign(i)", 0, 1),
        ("round(x / 3)", 0, 33),
        ("round(p, -2)", 0, 100),
        ("floor(x - 0.5)", -1, 99),
        ("sqrt(i)", 0, 10),
        ("power(i - 50, 2)", 0, 2500),
        ("power(i - 50, 3)", -125_000, 125_000),
        ("CASE WHEN i > 50 THEN 1 ELSE 0 END", 0, 1),
        ("CASE WHEN i > 50 THEN 1 END", 1, 1),
        ("CASE WHEN x > 10 THEN 10 ELSE x END", 0, 100),
        ("coalesce(x, -1)", -1, 100),
        ("least(x, 10)", 0, 10),
        ("greatest(x, 10)", 10, 100),
        ("CAST(f AS BIGINT)", 0, 1),
        ("f", 0, 1),
        ("i > 3", 0, 1),
        ("CAST(x / 8 AS BIGINT)", 0, 13),
        ("CAST(x / 8 AS DECIMAL(9, 1))", 0, Fraction(125, 10)),
        ("month(d)", 1, 12),
        ("extract(hour FROM ts)", 0, 23),
        ("year(d) - 2000", -1999, 7999),
        ("length(s)", 0, 4096),
        ("length(left(s, 10))", 0, 10),
        ("length('abc')", 0, 3),
        ("strpos(s, 'a')", 0, 4096),
        ("nullif(i, 0)", 0, 100),
        ("5", 5, 5),
        ("x + NULL", 0, 0),
    ],
)
def test_ends(text: str, low: int | Fraction, high: int | Fraction) -> None:
    found = interval(scalar(text))
    if text == "x + NULL":
        assert found is None
    else:
        assert found == Interval(Fraction(low), Fraction(high))


@pytest.mark.parametrize(
    "text", ["x / y", "x / (i - 5)", "ln(x)", "d - e", "date_diff('day', d, e)", "s", "d", "power(x, y)", "CAST(s AS DOUBLE)", "CAST(NULL AS BIGINT)"]
)
def test_unbounded(text: str) -> None:
    assert interval(scalar(text)) is None


def test_a_column_without_bounds_is_unbounded_until_it_is_clamped() -> None:
    assert interval(scalar("x", x=None)) is None
    assert interval(scalar("x * 2", x=None)) is None
    assert interval(scalar("least(greatest(x, 0), 5)", x=None)) == Interval(Fraction(0), Fraction(5))
    assert interval(scalar("greatest(least(x, 5), 0)", x=None)) == Interval(Fraction(0), Fraction(5))
    assert interval(scalar("sign(x)", x=None)) == Interval(Fraction(-1), Fraction(1))
    assert interval(scalar("x % 7", x=None)) == Interval(Fraction(-7), Fraction(7))


def test_declared_values_bound_a_column() -> None:
    assert interval(Column(0, "v", INTEGER, values=(3, None, 1, 7))) == Interval(Fraction(1), Fraction(7))
    assert interval(Column(0, "v", FLOAT, values=(None,))) is None


def test_longest_text() -> None:
    wanted = {
        "s": 4096,
        "'abc'": 3,
        "left(s, 5)": 5,
        "substring(s, 2, 3)": 3,
        "'ab' || 'c'": 3,
        "s || t": 4096,
        "upper('abc')": 3,
        "CASE WHEN f THEN 'a' ELSE 'bcd' END": 3,
    }
    assert {text: longest(scalar(text)) for text in wanted} == wanted


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        yield con


def _value(name: str, low: int, high: int, dice: random.Random) -> str:
    kind = TYPES[name]
    match kind.kind:
        case Kind.INTEGER:
            return str(dice.choice([low, high, dice.randint(low, high)]))
        case Kind.FLOAT:
            return f"{dice.choice([low, high, dice.uniform(low, high)])!r}::DOUBLE"
        case Kind.DECIMAL:
            return str(
                dice.choice([Decimal(low), Decimal(high), Decimal(dice.randint(low * 10**kind.scale, high * 10**kind.scale)).scaleb(-kind.scale)])
            )
        case Kind.STRING:
            return "'" + dice.choice(WORDS) + "'"
        case Kind.DATE:
            return f"DATE '1970-01-01' + {dice.randint(-800_000, 2_900_000)}"
        case Kind.TIMESTAMP:
            return f"TIMESTAMP '1970-01-01' + INTERVAL ({dice.randint(-800_000, 2_900_000)}) DAY + INTERVAL {dice.randint(0, 86_399)} SECOND"
        case Kind.BOOLEAN:
            return dice.choice(["TRUE", "FALSE"])
        case _:
            return "uuid()"


@pytest.mark.parametrize(("low", "high"), BOXES)
def test_no_value_lies_outside(con: duckdb.DuckDBPyConnection, low: int, high: int) -> None:
    """Every expression of the totality tests, on random values within the declared bounds, NULLs among them. Floats may miss by rounding."""
    dice = random.Random(low * 1000 + high)
    declared = {name: Interval(Fraction(low), Fraction(high)) for name, kind in TYPES.items() if kind.numeric}
    rows = ", ".join(f"({', '.join('NULL' if dice.random() < 0.1 else _value(name, low, high, dice) for name in TYPES)})" for _ in range(ROWS))
    columns = ", ".join(f"CAST({name} AS {type_name(kind)}) AS {name}" for name, kind in TYPES.items())
    con.execute(f"CREATE OR REPLACE TABLE boxed AS SELECT {columns} FROM (VALUES {rows}) v({', '.join(TYPES)})")
    names = {place: name for name, place in IDS.items()}
    bounded = {text: (found, bound) for text in EXPRESSIONS if (bound := interval(found := scalar(text, **declared))) is not None}
    assert len(bounded) > 150
    query = ", ".join(
        f"min({sql(found, names)}) FILTER (WHERE {sql(found, names)} IS NOT NULL), max({sql(found, names)})" for found, _ in bounded.values()
    )
    ends = con.execute(f"SELECT {query} FROM boxed").fetchall()[0]
    for (text, (found, bound)), least, most in zip(bounded.items(), ends[::2], ends[1::2], strict=True):
        rough = any(one.type == FLOAT for one in walk(found) if isinstance(one, Call | Cast | Column | Literal))
        slack = bound.magnitude * Fraction(1, 10**9) + Fraction(1, 10**9) if rough else 0
        if least is not None:
            assert bound.low - slack <= Fraction(least), text
            assert Fraction(most) <= bound.high + slack, text


def test_every_column_of_a_box_is_declared() -> None:
    assert interval(column("i")) == Interval(Fraction(0), Fraction(100))
