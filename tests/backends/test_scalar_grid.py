"""Grid units: the nearest unit, clamped, exact, and nothing that can fail."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest
from extremes import EXTREMES, values
from scalars import column, scalar, table

from dpquery.backends.grid import MOST_UNITS, MOST_WHOLE
from dpquery.backends.scalar import units
from dpquery.backends.values import literal
from dpquery.errors import Refused
from dpquery.plan.scalar import Column, Scalar
from dpquery.values.types import FLOAT, INTEGER, STRING, Kind, Type, Value

CENT = Fraction(1, 100)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        yield con


def nearest(value: Value, step: Fraction, low: int, high: int) -> int | None:
    """What a unit is, in exact arithmetic."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and math.isinf(value):
        return high if value > 0 else low
    assert isinstance(value, bool | int | float | Decimal)
    return max(low, min(high, math.floor(Fraction(value) / step + Fraction(1, 2))))


def measured(con: duckdb.DuckDBPyConnection, kind: Type, given: list[Value], step: Fraction, low: int, high: int) -> list[int | None]:
    """The units that the engine finds for these values, as a column and as a longer expression, which must agree."""
    made = units(Column(0, "v", kind), step, low, high, {0: "v"})
    longer = units(Column(0, "v", kind), step, low, high, {0: "coalesce(v, NULL)"})
    rows = ", ".join(f"({place}, {literal(value, kind)})" for place, value in enumerate(given))
    found = con.execute(f"SELECT {made}, {longer}, typeof({made}) FROM (VALUES {rows}) t(place, v) ORDER BY place").fetchall()
    assert [row[0] for row in found] == [row[1] for row in found]
    assert {row[2] for row in found} == {"BIGINT"}
    if -MOST_WHOLE <= low <= high <= MOST_WHOLE:
        doubles = ", ".join(units(Column(0, "v", kind), step, low, high, {0: name}, double=True) for name in ("v", "coalesce(v, NULL)"))
        same = con.execute(f"SELECT {doubles} FROM (VALUES {rows}) t(place, v) ORDER BY place").fetchall()
        assert [(type(a), type(b)) for a, b in same] == [(type(None), type(None)) if row[0] is None else (float, float) for row in found]
        assert all(a == b == row[0] for (a, b), row in zip(same, found, strict=True))
    return [row[0] for row in found]


@pytest.mark.parametrize(
    "step", [CENT, Fraction(1, 10), Fraction(1, 20), Fraction(1, 3), Fraction(3, 7), Fraction(1), Fraction(10), Fraction(1, 2**35)], ids=str
)
def test_money_in_floats_falls_on_the_unit_it_shows(con: duckdb.DuckDBPyConnection, step: Fraction) -> None:
    """Every multiple of the step up to a thousand, written as the nearest double, is that multiple."""
    high = 1000 if step >= 1 else int(1000 / step)
    some = [*range(-2000, 2001), *range(high - 500, high + 1)]
    assert measured(con, FLOAT, [float(n * step) for n in some], step, -high, high) == [max(-high, min(high, n)) for n in some]


def test_floats_between_units(con: duckdb.DuckDBPyConnection) -> None:
    some = [0.07, 1.15, 0.285, 1.005, 2.675, 0.004, 0.006, -0.004, -0.006, 19.99, 1e9, -1e9, 499.999]
    wanted = [7, 115, 28, 100, 268, 0, 1, 0, -1, 1999, 50_000, -50_000, 50_000]
    assert measured(con, FLOAT, list(some), CENT, -50_000, 50_000) == wanted


@pytest.mark.parametrize(
    ("low", "high"), [(0, 120), (-5, 5), (-(2**52), 2**52), (-MOST_UNITS, MOST_UNITS), (-MOST_UNITS + 1, MOST_UNITS - 1), (7, 7)]
)
@pytest.mark.parametrize("kind", [FLOAT, INTEGER, Type(Kind.DECIMAL, 0), Type(Kind.DECIMAL, 2), Type(Kind.BOOLEAN)], ids=str)
def test_step_one_and_every_clamp(con: duckdb.DuckDBPyConnection, kind: Type, low: int, high: int) -> None:
    step = Fraction(1, 10**kind.scale)
    given = _some(kind)
    assert measured(con, kind, given, step, low, high) == [nearest(value, step, low, high) for value in given]


def _some(kind: Type) -> list[Value]:
    """Values up to the ends of the type."""
    match kind.kind:
        case Kind.BOOLEAN:
            return [None, True, False]
        case Kind.INTEGER:
            return [None, 0, 1, -1, 119, 120, 121, 2**52, 2**62, 2**62 + 1, 2**63 - 1, -(2**62) - 1, -(2**63)]
        case Kind.DECIMAL:
            return [
                None,
                *(Decimal(n).scaleb(-kind.scale) for n in (0, 1, -1, 120, 121, 2**62 - 1, 2**62, 2**62 + 1, -(2**62) - 5, 10**37, -(10**37))),
            ]
        case _:
            return [None, 0.0, 0.49, 0.5, -0.5, -0.51, 119.5, 120.5, 1e15, 2.0**62, 9.3e18, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan]


def test_a_double_is_asked_for_no_more_than_it_holds() -> None:
    with pytest.raises(ValueError, match="2\\^53"):
        units(Column(0, "v", FLOAT), CENT, 0, MOST_WHOLE + 1, {0: "v"}, double=True)


@pytest.mark.parametrize("step", [Fraction(2), Fraction(10), Fraction(1000), Fraction(1, 4), Fraction(3), Fraction(2**40), Fraction(7, 3)], ids=str)
def test_integers_on_other_grids(con: duckdb.DuckDBPyConnection, step: Fraction) -> None:
    given: list[Value] = [None, *range(-40, 41), 999, 1000, 1001, 10**12, 2**53 + 1, 2**63 - 1, -(2**63)]
    for low, high in ((0, 12), (-100, 100), (-(2**50), 2**50)):
        assert measured(con, INTEGER, given, step, low, high) == [nearest(value, step, low, high) for value in given]


@pytest.mark.parametrize(
    "step", [Fraction(1, 2**35), Fraction(1, 100), Fraction(1, 1000), Fraction(1, 3), Fraction(5), Fraction(2**20), Fraction(1, 20)], ids=str
)
@pytest.mark.parametrize("scale", [0, 2, 9, 18])
def test_decimals_on_other_grids(con: duckdb.DuckDBPyConnection, scale: int, step: Fraction) -> None:
    kind = Type(Kind.DECIMAL, scale)
    numbers = (0, 1, -1, 5, 49, 50, 51, -50, 12345, 99999, 10**9 + 5, 10**18, -(10**18), 10**36, -(10**37))
    given: list[Value] = [None, *(Decimal(n).scaleb(-scale) for n in numbers)]
    for low, high in ((0, 12), (-100, 100), (-(2**44), 2**44)):
        assert measured(con, kind, given, step, low, high) == [nearest(value, step, low, high) for value in given]


def test_what_no_integer_can_hold_is_refused() -> None:
    wide = Type(Kind.DECIMAL, 30)
    with pytest.raises(Refused) as refused:
        units(Column(0, "v", wide), Fraction(1, 10**30), -(2**52), 2**52, {0: "v"})
    assert refused.value.code == "TOO_WIDE"
    with pytest.raises(Refused) as refused:
        units(Column(0, "v", STRING), Fraction(1), 0, 1, {0: "v"})
    assert refused.value.code == "TYPE_MISMATCH"


def test_units_of_an_expression(con: duckdb.DuckDBPyConnection) -> None:
    table(con, "rows", ["i", "x"], ["19, 1e0", "34, NULL", "NULL, 'nan'", "69, 'inf'"])
    names = {0: "i", 2: "x"}
    quotient = units(scalar("100 / (i - 19)"), CENT, 0, 1000, names)
    assert con.execute(f"SELECT {quotient} FROM rows").fetchall() == [(None,), (667,), (None,), (200,)]
    assert con.execute(f"SELECT {units(column('x'), CENT, 0, 1000, names)} FROM rows").fetchall() == [(100,), (None,), (None,), (1000,)]


def _columns(kind: Kind) -> list[Scalar]:
    return [
        column(name)
        for name, type_ in {"i": Kind.INTEGER, "x": Kind.FLOAT, "p": Kind.DECIMAL, "z": Kind.DECIMAL, "f": Kind.BOOLEAN}.items()
        if type_ is kind
    ]


@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.BOOLEAN], ids=str)
def test_extreme_values_do_not_raise(con: duckdb.DuckDBPyConnection, kind: Kind) -> None:
    assert EXTREMES[kind]
    for one in _columns(kind):
        assert isinstance(one, Column)
        rows = f"(VALUES {', '.join(f'({value})' for value in values(one.name))}) v({one.name})"
        for step in (Fraction(1), CENT, Fraction(1, 2**44), Fraction(2**30), Fraction(1, 3)):
            for low, high in ((0, 1), (-MOST_UNITS, MOST_UNITS), (-(2**40) - 1, 2**40 + 1)):
                try:
                    made = units(one, step, low, high, {one.id: one.name})
                except Refused as refused:
                    assert refused.code == "TOO_WIDE"  # noqa: PT017
                    continue
                low_, high_ = con.execute(f"SELECT min({made}), max({made}) FROM {rows}").fetchall()[0]
                assert low <= low_ <= high_ <= high
