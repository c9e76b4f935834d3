"""MEDIAN and quantiles: noisy counts of rows in bins over the bounds of the values, wide bins and ever narrower ones within them (a tree).

All quantiles of the same values read the same counts, and so are paid for once. A quantile is no more exact than the width of the narrowest bins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise
from math import log, sqrt
from statistics import NormalDist

from dpquery.aggregates.bounds import missing, no_per_group, no_weights, numeric, row_bounds, row_cap, rows_per_cell, told
from dpquery.aggregates.card import Bar, Bars, Card, Floors, Planned
from dpquery.aggregates.counted import ONE, Counted
from dpquery.aggregates.grid import clamped, fits, grid, plain, row_units
from dpquery.aggregates.values import DAY, bar, double, released, worth
from dpquery.errors import Refused
from dpquery.mechanisms import Noise, deviation
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import Aggregate, Bins, Part, Quantile, Units
from dpquery.plan.scalar import Interval, Scalar
from dpquery.values.types import DATE, FLOAT, TIMESTAMP, Kind, Shown, Type, Value

WITHIN = 16  # bins that a wider one is made of
LEVELS = 3
MOST_NUMBERS = 2**21  # noisy integers over all groups, where these are listed: more groups have wider bins
COARSE = 1000  # bins below which their width is worth a warning
TINY = 1e-300  # what is compared as no distance at all
Reach = list[tuple[float, float]]  # of each quantile how far off it is expected to be, and half its error bar, in rows
SIZES = (100, 1_000, 10_000)  # for which the expected error is given


def plan(ask: AggregateAsk, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """A part for each level of bins. A row of a unit with more rows than the cap weighs less, so that its n rows count as so many."""
    argument = numeric(ask)
    no_per_group(ask, "a quantile", "write contribution_bounds_per_row: values are bounded, not what they add up to in a group")
    no_weights(ask, contributions, "max_groups_contributed and max_rows_per_group")
    values, notes, slack = _values(ask, argument)
    most, span = rows_per_cell(contributions, rows_per_unit), values.high - values.low + 1
    widths = _widths(span, contributions.listed)
    parts = tuple(Part(values, Bins(most, width, -(-span // width)), ask.where) for width in widths)
    capped, cuts = told(row_cap(contributions, rows_per_unit), contributions)
    wide = widths[-1] > 1
    kind, step = ask.moment or (argument.type if ask.discrete else FLOAT), values.step * ask.unit
    narrow = f"counted in bins of width {_width(widths[-1] * step, kind)}, by which it may be off" if wide else "each value is counted by itself"
    found = Quantile(ask.fractions or (Fraction(1, 2),), values.low, values.high, widths, ask.discrete, slack * ask.unit, ask.upper)
    bounds = Interval(values.low * step, values.high * step)
    coarse = (narrow,) if wide and span // widths[-1] < COARSE else ()
    told_all = (*(() if coarse else (narrow,)), clamped(values, kind, ask.unit), *capped, *notes, *(("errors are in days",) if ask.moment else ()))
    kind = kind.listed if ask.listed else kind
    return Planned(fits(ask, parts, None), kind, step, bounds, told_all, (*cuts, *coarse), quantile=found)


def _width(width: Fraction, kind: Type) -> str:
    """The width of a bin for people: of moments in days, hours and less."""
    return str(timedelta(microseconds=int(width * DAY / worth(kind)))) if kind in (DATE, TIMESTAMP) else plain(width)


def _values(ask: AggregateAsk, argument: Scalar) -> tuple[Units, tuple[str, ...], Fraction]:
    """The argument on its grid, notes on that, and how far a value may be from the middle of its unit."""
    bounds = row_bounds(ask, argument)
    if bounds is None:
        raise missing(ask)
    if bounds.low < bounds.high:
        fine = grid(argument, bounds.magnitude, min(bounds.magnitude, bounds.high - bounds.low))
        low, high = row_units(bounds, fine.step)
        if low < high:
            exact = argument.type.kind is not Kind.FLOAT and not fine.notes
            return Units(argument, fine.step, low, high), fine.notes, Fraction(0) if exact else fine.step
    raise Refused(
        "BAD_BOUNDS",
        f"the bounds of {ask.label} leave one value on its grid, which it then is whatever the data",
        position=ask.position,
        instead="give bounds that are further apart",
    )


def _widths(span: int, groups: int | None) -> tuple[int, ...]:
    """The widths of bins, each level's 16 times the next one's: as many levels as the number of groups allows, and no more than there are values."""
    levels = next((n for n in range(LEVELS, 1, -1) if groups is not None and groups * WITHIN**n <= MOST_NUMBERS), LEVELS - 1)
    widths = [max(1, -(-span // WITHIN**levels))]
    while -(-span // widths[0]) > WITHIN:
        widths.insert(0, widths[0] * WITHIN)
    return tuple(widths)


def counted(aggregate: Aggregate, sums: Sequence[Sequence[int]]) -> tuple[Quantile, Counted]:
    """Which quantile it is, and the noisy counts of all groups."""
    if aggregate.quantile is None:
        raise AssertionError("a quantile says which one it is")
    which = aggregate.quantile
    return which, Counted.of(which.high - which.low + 1, which.widths, sums)


def finish(aggregate: Aggregate, sums: Sequence[Sequence[int]]) -> Sequence[Shown]:
    """Per group the value at the quantile's place among the noisy counts: of two places, or that between two. Or a list of such values."""
    which, counts = counted(aggregate, sums)
    found: list[list[Value]] = [
        [released(units * aggregate.step, aggregate.type.element) for units in quantiles] for quantiles in counts.quantiles(which)
    ]
    return found if aggregate.type.kind is Kind.LIST else [one for (one,) in found]


def interval(
    aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction, floors: Floors = ()
) -> Sequence[Bars]:
    """Per group the bins that the quantile may lie in for all that the noise says; of a list those of each."""
    which, counts = counted(aggregate, sums)
    ends, points = counts.reach(which, noises, confidence), counts.quantiles(which)
    found: list[list[Bar]] = [[ended(aggregate, which, *one) for one in zip(*own, strict=True)] for own in zip(ends, points, strict=True)]
    return found if aggregate.type.kind is Kind.LIST else [one for (one,) in found]


def ended(aggregate: Aggregate, which: Quantile, ends: tuple[int, int], point: Fraction) -> Bar:
    """The bar in the value's own type, its ends between its bounds; the released value lies between them."""
    low, high = min(Fraction(ends[0]), point) * aggregate.step - which.slack, max(Fraction(ends[1]), point) * aggregate.step + which.slack
    return bar(max(low, which.low * aggregate.step), min(high, which.high * aggregate.step), aggregate.type.element)


def loss(reach: Sequence[Reach]) -> float:
    """By which two ways to find the same quantiles are compared: the product of all distances and half error bars, as a logarithm."""
    return sum(log(max(off, TINY)) + log(max(half, TINY)) for own in reach for off, half in own)


def reach(aggregate: Aggregate, noises: Sequence[Noise], doubt: Fraction) -> Reach:
    """Of each quantile how far off it is expected to be, and half its error bar, in rows, from the deviation d of the noise around it: d/2 and z d.

    z is a normal law's. d^2 is v b q (1 - q) for the widest bins, b of them, a count's noise having the variance v, and on each other level what is
    left of v j (1 - j / (b + 1)) on average over the edges j = 0 .. b - 1 within a wider bin. Sums that are made to rise, and of two values that in
    the middle, are off by about d/2 (benchmarks/quantiles.py), where noise alone would by 0.8 d.
    """
    which, _ = counted(aggregate, [()] * len(noises))
    span, z = which.high - which.low + 1, -NormalDist().inv_cdf(float(doubt / 2))
    variances = [deviation(noise) ** 2 / ONE**2 for noise in noises]
    bins = [-(-span // which.widths[0])] + [wide // narrow for wide, narrow in pairwise(which.widths)]
    inner = sum(v * sum(j * (1 - j / (b + 1)) for j in range(b)) / b for v, b in zip(variances[1:], bins[1:], strict=True))
    found = [sqrt(variances[0] * bins[0] * float(q * (1 - q)) + inner) for q in which.fractions]
    return [(d / 2, z * d) for d in found]


def expected_error(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> Mapping[str, float]:
    """Half the width of the error bar of n values spread evenly over their bounds, by n; of a list the widest. Of moments in days."""
    which, _ = counted(aggregate, [()] * len(noises))
    even = Counted.even(which.high - which.low + 1, which.widths, SIZES)
    ends = even.reach(which, noises, confidence)
    halves = (max(high - low for low, high in own) * aggregate.step / 2 + which.slack for own in ends)
    return {f"n={n}": double(half / worth(aggregate.type)) for n, half in zip(SIZES, halves, strict=True)}


QUANTILE = Card("quantile", plan, finish, interval, expected_error)
