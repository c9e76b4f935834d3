"""AVG(x): middle of the bounds + (sum of distances from it) / (count), both noisy; over rows, or over the clamped means of units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from dpquery.aggregates.bounds import BY_WEIGHT, missing, no_per_group, numeric, row_bounds, row_cap, rows_per_cell, told
from dpquery.aggregates.bounds import WEIGHED as WEIGHTED
from dpquery.aggregates.card import Bar, Card, Floors, Planned
from dpquery.aggregates.count import counted
from dpquery.aggregates.fieller import ratios
from dpquery.aggregates.grid import FINENESS, FINEST, ceil_log2, cell_units, clamped, fits, grid, row_units
from dpquery.aggregates.values import double
from dpquery.errors import Refused
from dpquery.mechanisms import Noise
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import WEIGHT_BITS, Additive, Aggregate, Cell, HeavyMean, One, Part, Present, UnitMean, Units
from dpquery.plan.scalar import Interval, Scalar
from dpquery.values.types import FLOAT, Value

ROW_WEIGHTED = "the mean over rows, not over units"
OF_ROWS = "rows count, not units: who has more of them weighs more"
UNIT_WEIGHTED = "the mean over units of the mean of each, which is clamped"
WEIGHED = BY_WEIGHT
SIZES = (100, 1_000, 10_000)  # for which the expected error is given


def plan(ask: AggregateAsk, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """Two parts: half units 2x - (l + u), in which a unit with more rows than the cap keeps its mean, and the count of the same rows."""
    argument = numeric(ask)
    if ask.per_group is not None:
        return _of_units(ask, argument, ask.per_group, contributions)
    bounds = row_bounds(ask, argument)
    if bounds is None:
        raise missing(ask)
    if bounds.low == bounds.high:
        raise _constant(ask)
    fine = grid(argument, bounds.magnitude, min(bounds.magnitude, bounds.high - bounds.low))
    low, high = row_units(bounds, fine.step)
    if low == high:
        raise _constant(ask)
    most, width = rows_per_cell(contributions, rows_per_unit), high - low
    distance: Cell = HeavyMean(most, width) if contributions.weights is None else Additive(width)
    number: Cell = counted(0, most) if contributions.weights is None else Additive(1)
    values = Units(argument, fine.step, low, high, centred=True)
    parts = fits(ask, (Part(values, distance, ask.where), Part(One(argument), number, ask.where)), contributions.weights)
    how, cuts = told(row_cap(contributions, rows_per_unit), contributions) if contributions.weights is None else ((WEIGHED,), ())
    notes = (ROW_WEIGHTED, clamped(values), *how, *fine.notes)
    return Planned(parts, FLOAT, fine.step, Interval(low * fine.step, high * fine.step), notes, cuts)


def _of_units(ask: AggregateAsk, argument: Scalar, group: Interval, contributions: Contributions) -> Planned:
    """Two parts: the mean of each unit's rows, clamped, and the number of units that have one. The grid is finer than the values, as means are."""
    if contributions.weights is not None:
        no_per_group(ask, WEIGHTED, "write contribution_bounds_per_row, or use max_groups_contributed")
    if group.low == group.high:
        raise _constant(ask)
    step = max(FINEST, Fraction(2) ** (ceil_log2(group.magnitude) - FINENESS))
    cell = UnitMean(*cell_units(ask, group, step))
    if cell.low == cell.high:
        raise _constant(ask)
    low, high = row_units(row_bounds(ask, argument), step)
    parts = fits(ask, (Part(Units(argument, step, low, high), cell, ask.where), Part(One(argument), Present(), ask.where)), None)
    return Planned(parts, FLOAT, step, Interval(cell.low * step, cell.high * step), (UNIT_WEIGHTED,))


def _constant(ask: AggregateAsk) -> Refused:
    return Refused(
        "BAD_BOUNDS",
        f"the bounds of {ask.label} leave one value on its grid, so that its mean is known beforehand",
        position=ask.position,
        instead="give bounds that are further apart",
    )


def finish(aggregate: Aggregate, sums: Sequence[Sequence[int]]) -> list[Value]:
    """Per group the noisy mean, cut to its bounds; their middle where the noisy count is not above 0."""
    return [double(_mean(aggregate, total, number)) for total, number in zip(*sums, strict=True)]


def _mean(aggregate: Aggregate, total: int, number: int) -> Fraction:
    bounds, middle = _bounds(aggregate), _middle(aggregate)
    if number <= 0:
        return middle
    return max(bounds.low, min(bounds.high, middle + aggregate.step / 2 * Fraction(total, number)))


def _bounds(aggregate: Aggregate) -> Interval:
    if aggregate.bounds is None:
        raise AssertionError("a mean has bounds")
    return aggregate.bounds


def _middle(aggregate: Aggregate) -> Fraction:
    bounds = _bounds(aggregate)
    return (bounds.low + bounds.high) / 2


def interval(aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction, floors: Floors = ()) -> list[Bar]:
    """Per group Fieller's interval from the two noises, cut to the bounds; the whole of these where the noisy count is not clear of 0."""
    bounds = _bounds(aggregate)
    whole = double(bounds.low), double(bounds.high)
    middle, half = double(_middle(aggregate)), double(aggregate.step / 2)
    found = ratios(sums[0], sums[1], noises[0], noises[1], confidence, floors)
    return [
        whole if number <= 0 or ends is None else _cut(middle + half * ends[0], middle + half * ends[1], whole)
        for ends, number in zip(found, sums[1], strict=True)
    ]


def _cut(low: float, high: float, whole: tuple[float, float]) -> tuple[float, float]:
    return min(max(low, whole[0]), whole[1]), max(min(high, whole[1]), whole[0])


def expected_error(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> Mapping[str, float]:
    """Half the width of the error bar of n values whose mean lies half-way between the middle and a bound, by n."""
    width = int((_bounds(aggregate).high - _bounds(aggregate).low) / aggregate.step)
    one = 2**WEIGHT_BITS if WEIGHED in aggregate.notes else 1
    numbers = [n * one for n in SIZES]
    bars = interval(aggregate, ([width * number // 2 for number in numbers], numbers), noises, confidence)
    return {f"n={n}": _half(ends) for n, ends in zip(SIZES, bars, strict=True)}


def _half(ends: Bar) -> float:
    if ends is None or not isinstance(ends[0], float) or not isinstance(ends[1], float):
        raise AssertionError("a mean's error bar has two floating ends")
    return (ends[1] - ends[0]) / 2


MEAN = Card("mean", plan, finish, interval, expected_error)
