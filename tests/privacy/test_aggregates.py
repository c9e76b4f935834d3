"""Cards: which parts an ask becomes, on which grid, and how the noisy integers read."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from dpquery.aggregates import CARDS, Planned
from dpquery.aggregates.mean import WEIGHED
from dpquery.errors import Position, Refused
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.functions import call
from dpquery.plan.release import SATURATION, Additive, Aggregate, Clamp, HeavyMean, One, Part, Present, UnitMean, Units
from dpquery.plan.scalar import Column, Interval, Literal, Scalar
from dpquery.values.types import FLOAT, INTEGER, STRING, Kind, Type

HERE = Position(2, 5)
CENTS = Type(Kind.DECIMAL, 2)


def within(low: int | str | float | Fraction, high: int | str | float | Fraction) -> Interval:
    return Interval(Fraction(low), Fraction(high))


def column(type: Type, declared: Interval | None = None, step: Fraction | None = None) -> Column:
    return Column(1, "x", type, declared, step=step)


def plan(
    card: str, argument: Scalar | None = None, rows_per_unit: int | None = None, rows: int = 4, weights: int | None = None, **more: Any
) -> Planned:
    name = {"count": "COUNT", "units": "COUNT", "total": "SUM", "mean": "AVG"}.get(card, card.upper())
    ask = AggregateAsk("a0", f"{name}(x)", card, argument, position=HERE, **{"where": None, **more})
    return CARDS[card].plan(ask, Contributions(2, rows, 1000, weights), rows_per_unit)


def refused(code: str, *args: Any, **more: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        plan(*args, **more)
    assert caught.value.code == code
    assert caught.value.position == HERE
    assert caught.value.instead
    return caught.value


# ---- COUNT ---------------------------------------------------------------------------------------------------------------------------


def test_count_is_clamped_to_the_row_cap() -> None:
    made = plan("count")
    assert made == Planned((Part(One(), Clamp(0, 4)),), INTEGER, Fraction(1), within(0, 4), cuts=made.cuts)
    assert "at most 4 rows" in made.cuts[0]
    assert plan("count", rows_per_unit=4).cuts == ()
    x = column(STRING)
    where = call("is_null", x)
    assert plan("count", x, where=where).parts == (Part(One(x), Clamp(0, 4), where),)


def test_count_takes_the_proven_rows_where_they_are_fewer() -> None:
    assert plan("count", rows_per_unit=3).parts[0].cell == Clamp(0, 3)
    assert plan("count", rows_per_unit=9).parts[0].cell == Clamp(0, 4)
    assert plan("count", rows_per_unit=0).parts[0].cell == Present()


def test_count_of_at_most_one_is_the_count_of_units() -> None:
    """One spelling: COUNT(*, bounds (0, 1)), COUNT(*) of one-row units and COUNT(DISTINCT unit) are one part."""
    distinct = plan("units").parts
    assert distinct == (Part(One(), Present()),)
    assert plan("count", per_group=within(0, 1)).parts == distinct
    assert plan("count", per_group=within(1, 1)).parts == distinct
    assert plan("count", rows_per_unit=1).parts == distinct
    assert plan("count", rows_per_unit=1, per_group=within(0, 50)).parts == distinct


@pytest.mark.parametrize(
    ("bounds", "cell"),
    [((0, 2), Clamp(0, 2)), ((2, 9), Clamp(2, 9)), ((-3, 5), Clamp(0, 5)), (("0.5", "2.5"), Clamp(1, 2)), ((0, 100), Clamp(0, 100))],
)
def test_count_with_bounds_as_written(bounds: tuple[Any, Any], cell: Clamp) -> None:
    assert plan("count", per_group=within(*bounds)).parts[0].cell == cell


def test_count_refusals() -> None:
    refused("PER_ROW_BOUNDS", "count", per_row=within(0, 1))
    refused("PER_ROW_BOUNDS", "units", per_row=within(0, 1))
    refused("PER_GROUP_BOUNDS", "units", per_group=within(0, 1))
    refused("BAD_BOUNDS", "count", per_group=within(0, 0))
    refused("BAD_BOUNDS", "count", per_group=within(-5, -2))
    refused("BAD_BOUNDS", "count", per_group=within("1.2", "1.8"))


# ---- SUM -----------------------------------------------------------------------------------------------------------------------------


def test_c1_sum_clamps_cells_to_what_rows_can_reach() -> None:
    """C1: [min(l, lC), max(u, uC)], so that a unit with one row of 50 in [10, 50] does not become 40."""
    x = column(INTEGER, within(10, 50))
    made = plan("total", x)
    assert made.parts == (Part(Units(x, Fraction(1), 10, 50), Clamp(10, 200)),)
    assert (made.step, made.bounds, made.type) == (Fraction(1), within(10, 200), INTEGER)
    assert plan("total", column(INTEGER, within(-50, -10))).parts[0].cell == Clamp(-200, -10)
    assert plan("total", column(INTEGER, within(-5, 7))).parts[0].cell == Clamp(-20, 28)
    assert plan("total", x, rows_per_unit=1).parts[0].cell == Clamp(10, 50)


def test_sum_bounds_as_written_come_before_declared_ones() -> None:
    x = column(INTEGER, within(10, 50))
    assert plan("total", x, per_row=within(0, 900)).parts[0].row == Units(x, Fraction(1), 0, 900)
    both = plan("total", x, per_row=within(0, 9), per_group=within(-3, 40)).parts[0]
    assert (both.row, both.cell) == (Units(x, Fraction(1), 0, 9), Clamp(-3, 40))
    assert plan("total", x, per_group=within(2, 100)).parts[0].row == Units(x, Fraction(1), 10, 50)


def test_sum_without_row_bounds_saturates_under_per_group_bounds() -> None:
    x = column(FLOAT)
    part = plan("total", x, per_group=within(0, 10)).parts[0]
    assert part == Part(Units(x, Fraction(1, 2**40), -SATURATION, SATURATION), Clamp(0, 10 * 2**40))


def test_h_the_grid_follows_the_bounds_that_fix_the_sensitivity() -> None:
    """Per-group bounds of 10 over a column of 1e15: step 2^-40, not 2^6; the rows saturate."""
    x = column(FLOAT, within(0, 10**15))
    made = plan("total", x, per_group=within(0, 10))
    assert made.step == Fraction(1, 2**40)
    assert made.parts[0].row == Units(x, made.step, 0, SATURATION)
    assert made.parts[0].cell == Clamp(0, 10 * 2**40)


@pytest.mark.parametrize(
    ("argument", "step"),
    [
        (column(INTEGER, within(0, 120)), Fraction(1)),
        (column(INTEGER, within(0, 120), Fraction(10)), Fraction(10)),
        (column(CENTS, within(0, 500)), Fraction(1, 100)),
        (column(CENTS, within(0, 500), Fraction(1, 4)), Fraction(1, 4)),
        (column(FLOAT, within(0, 500)), Fraction(2) ** (9 - 44)),
        (column(FLOAT, within(0, 512)), Fraction(2) ** (9 - 44)),
        (column(FLOAT, within(-513, 5)), Fraction(2) ** (10 - 44)),
        (column(FLOAT, within(0, "0.1")), Fraction(2) ** (-3 - 44)),
        (column(FLOAT, within(0, 500), Fraction(1, 100)), Fraction(1, 100)),
        (call("add", column(FLOAT, within(0, 500), Fraction(1, 100)), Literal(1.0, FLOAT)), Fraction(2) ** (9 - 44)),
    ],
)
def test_the_step_comes_from_type_or_schema_else_from_the_bounds(argument: Scalar, step: Fraction) -> None:
    made = plan("total", argument)
    assert made.step == step
    assert not any("multiples of" in note for note in made.notes)


def test_n10_a_wide_column_takes_a_coarser_grid() -> None:
    """Nanoseconds of 1e18 need more than 2^52 steps: the step is coarsened by powers of two, and the plan says so."""
    made = plan("total", column(INTEGER, within(0, 10**18)))
    row = made.parts[0].row
    assert isinstance(row, Units)
    assert made.step == 2**8
    assert row.high == 10**18 // 2**8 <= 2**52
    assert "multiples of 256" in made.notes[-1]
    assert plan("mean", column(INTEGER, within(0, 10**18))).step == 2**8


def test_n10_sums_that_could_overflow_are_refused() -> None:
    refused("TOO_WIDE", "total", column(FLOAT, within(-1, 1), Fraction(1, 2**52)), rows=2**35)
    refused("TOO_WIDE", "mean", column(FLOAT, within(-1, 1)), rows=2**50)
    refused("TOO_WIDE", "count", rows=2**90)
    assert plan("total", column(FLOAT, within(-(10**300), 10**300)))
    assert plan("total", column(FLOAT, within(Fraction(1, 10**300), Fraction(2, 10**300))))


@pytest.mark.parametrize("card", ["total", "mean"])
def test_missing_bounds_say_what_to_write(card: str) -> None:
    for argument in (column(FLOAT), column(CENTS), call("div", Literal(100, INTEGER), column(INTEGER, within(0, 9)))):
        error = refused("MISSING_BOUNDS", card, argument)
        assert "contribution_bounds_per_row => (low, high)" in str(error.instead)


def test_bounds_that_leave_nothing_are_refused() -> None:
    refused("BAD_BOUNDS", "total", column(INTEGER, within(0, 0)))
    refused("BAD_BOUNDS", "total", column(INTEGER, within(0, "0.4")))
    refused("BAD_BOUNDS", "total", column(INTEGER), per_group=within(0, 0))
    refused("BAD_BOUNDS", "total", column(INTEGER), per_group=within(0, "0.9"))
    refused("BAD_BOUNDS", "total", column(INTEGER), per_group=within("0.2", "0.8"))
    refused("BAD_BOUNDS", "total", column(FLOAT, within(0, 9), Fraction(1, 100)), per_group=within(0, "0.001"))
    refused("BAD_BOUNDS", "mean", column(INTEGER, within(5, 5)))
    refused("BAD_BOUNDS", "mean", column(INTEGER, within("4.8", "5.4")))
    refused("NOT_A_NUMBER", "total", column(STRING))


def test_a_clamp_is_never_empty() -> None:
    """A declared interval without a grid step inside clamps to the nearest one."""
    row = plan("total", column(INTEGER, within("4.6", "4.8"))).parts[0].row
    assert isinstance(row, Units)
    assert (row.low, row.high) == (5, 5)


# ---- AVG -----------------------------------------------------------------------------------------------------------------------------


def test_n1_mean_is_centred_in_half_units_and_counts_the_same_rows() -> None:
    x = column(INTEGER, within(0, 1))
    where = call("is_null", column(STRING))
    total, number = plan("mean", x, where=where).parts
    assert total == Part(Units(x, Fraction(1), 0, 1, centred=True), HeavyMean(4, 1), where)
    assert number == Part(One(x), Clamp(0, 4), where)


def test_a16_sum_and_mean_share_no_part_but_count_and_mean_do() -> None:
    x = column(INTEGER, within(1000, 1010))
    total, mean, count = (set(plan(card, x, rows_per_unit=1).parts) for card in ("total", "mean", "count"))
    assert not total & mean
    assert count < mean
    assert not set(plan("count", None, rows_per_unit=1).parts) & mean


def test_mean_of_a_narrow_interval_far_from_zero_has_a_fine_grid() -> None:
    made = plan("mean", column(FLOAT, within(10**9, 10**9 + 1)))
    row = made.parts[0].row
    assert isinstance(row, Units)
    assert row.high - row.low >= 2**20
    assert row.high <= 2**52


def test_mean_with_per_group_bounds_is_of_units() -> None:
    """The grid is finer than integers are, as means of units are not whole; rows without bounds saturate."""
    x = column(INTEGER)
    made = plan("mean", x, per_group=within(0, 10))
    step = Fraction(1, 2**40)
    assert made.parts == (Part(Units(x, step, -SATURATION, SATURATION), UnitMean(0, 10 * 2**40)), Part(One(x), Present()))
    assert (made.bounds, made.cuts) == (within(0, 10), ())
    assert finished(made, "mean", [-10 * 2**40 * 3, 0], [3, 0]) == [0.0, 5.0]
    refused("PER_GROUP_BOUNDS", "mean", x, per_group=within(0, 10), weights=3)
    refused("BAD_BOUNDS", "mean", x, per_group=within(4, 4))


# ---- row weights ---------------------------------------------------------------------------------------------------------------------


def test_row_weights_make_additive_parts() -> None:
    x = column(INTEGER, within(-5, 20))
    assert plan("count", weights=7) == Planned((Part(One(), Additive(1)),), INTEGER, Fraction(1, 2**20), within(0, 7), (WEIGHED,))
    made = plan("total", x, weights=7)
    assert made.parts == (Part(Units(x, Fraction(1), -5, 20), Additive(20)),)
    assert (made.step, made.bounds) == (Fraction(1, 2**20), within(-35, 140))
    assert [p.cell for p in plan("mean", x, weights=7).parts] == [Additive(25), Additive(1)]
    assert WEIGHED in plan("mean", x, weights=7).notes
    assert WEIGHED in made.notes


# ---- released values -----------------------------------------------------------------------------------------------------------------


def finished(made: Planned, card: str, *sums: list[int]) -> list[Any]:
    aggregate = Aggregate("a0", "x", card, tuple(range(len(sums))), made.type, made.step, made.bounds, notes=made.notes)
    return CARDS[card].finish(aggregate, sums)


def test_counts_and_integer_sums_saturate_as_bigint_and_stay_negative() -> None:
    assert finished(plan("count"), "count", [-3, 0, 7, 2**70, -(2**70)]) == [-3, 0, 7, 2**63 - 1, -(2**63)]
    wide = plan("total", column(INTEGER, within(0, 10**18)))
    assert finished(wide, "total", [3, 2**60]) == [768, 2**63 - 1]


def test_decimal_sums_keep_their_scale_and_saturate() -> None:
    values = finished(plan("total", column(CENTS, within(0, 500))), "total", [12345, -5, 0, 10**60])
    assert values == [Decimal("123.45"), Decimal("-0.05"), Decimal("0.00"), Decimal("9" * 36 + ".99")]
    assert all(v.as_tuple().exponent == -2 for v in values)


def test_float_sums_are_correctly_rounded_and_finite() -> None:
    made = plan("total", column(FLOAT, within(0, 500), Fraction(1, 100)))
    assert finished(made, "total", [10, 29, -7]) == [0.1, 0.29, -0.07]
    huge = plan("total", column(FLOAT, within(0, 8 * 10**307)))
    assert finished(huge, "total", [2**60, -(2**60)]) == [sys.float_info.max, -sys.float_info.max]


def test_mean_is_cut_to_its_bounds_and_the_middle_where_nothing_counts() -> None:
    """27: N <= 0 gives the middle, never NULL; 0/0 likewise."""
    made = plan("mean", column(INTEGER, within(0, 10)))
    half_units = [0, 30, -30, 10**9, -(10**9), 5, 5, 0]
    numbers = [10, 10, 10, 10, 10, 0, -3, 0]
    assert finished(made, "mean", half_units, numbers) == [5.0, 6.5, 3.5, 10.0, 0.0, 5.0, 5.0, 5.0]


def test_weighed_values_are_divided_by_the_weight_unit() -> None:
    one = 2**20
    x = column(INTEGER, within(0, 10))
    assert finished(plan("count", weights=7), "count", [3 * one, one // 2, -one, one // 2 - 1]) == [3, 1, -1, 0]
    assert finished(plan("total", x, weights=7), "total", [33 * one]) == [33]
    cents = plan("total", column(CENTS, within(0, 500)), weights=7)
    assert finished(cents, "total", [5 * one + one // 2]) == [Decimal("0.06")]
    assert finished(plan("mean", x, weights=7), "mean", [30 * one], [10 * one]) == [6.5]


def test_released_floats_are_finite() -> None:
    made = plan("mean", column(FLOAT, within(-8 * 10**307, 8 * 10**307)))
    assert all(math.isfinite(v) for v in finished(made, "mean", [10**40, 0], [1, 0]))
