"""A quantile whose bin is chosen, by how near its rank is: one choice, where a tree of noisy counts pays for each of its levels.

The score of a bin is how far the wanted rank q n lies outside the ranks of its rows: the chosen bin holds the quantile or is near it in ranks. Of n
values that are spread evenly the rank is off by more than t with probability at most exp(-t / s) by the exponential mechanism, which picks a distance
in ranks with a density that falls as exp(-t / s), cut off at the ends; permute and flip errs less.

No count is released that would tell how far off the choice is. So the ends of the error bar are chosen, too, each with the same share of the price,
from bins that lie beyond the quantile in ranks by as much as a choice may fall short of the best score (M8):

The quantile x lies between the values at the places q (N - 1) and q (N - 1) + 1 of the group's weight N in rows. The lower end is chosen by how near
a bin is to the place q (N - 1) - m. The first bin passes for one that begins below all ranks: so some bin has the score 0, be the group ever so
small. A bin that begins beyond x has at least the place q (N - 1) below it, and a score of at most -m. The upper end likewise, for the place
q (N - 1) + 1 + m, where the last bin ends beyond all ranks. A bin is beyond x for one of the two ends, that of x for none: of B bins n lie m below
the largest score in one choice, and at most B - 1 - n in the other. With m for B - 1 others and d = doubt / (1 + doubt) in M8, whose bounds n p and
n p / 2 add up over the two, x lies between the ends but with probability (B - 1) p = d / (1 - d) = doubt, or d. That is so for every data set; what
is shown is cut to the ends, which moves it nowhere but nearer to x while they hold it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from dpquery.aggregates.card import Bar, Bars, Card, Floors, Planned
from dpquery.aggregates.quantile import QUANTILE, SIZES, Reach, ended
from dpquery.aggregates.values import double, released, worth
from dpquery.errors import Refused
from dpquery.mechanisms import Noise, shortfall
from dpquery.numbers import float_near
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import WEIGHT_BITS, Aggregate, Bins, Quantile
from dpquery.values.types import Kind, Shown, Value

FINEST = 10**6  # the largest denominator of a fraction: scores are multiples of it, and stay within 64 bits for millions of rows
BY_RANK = "quantile_by_rank"  # the card
SIDES = (0, -1, 1)  # what is chosen of each quantile: the value that is shown, and the ends of its error bar


def plan(ask: AggregateAsk, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """For each quantile three times the narrowest bins of the tree, one of which is chosen each time."""
    tree = QUANTILE.plan(ask, contributions, rows_per_unit)
    which, narrow = tree.quantile, tree.parts[-1]
    if which is None or not isinstance(narrow.cell, Bins):
        raise AssertionError("a quantile is counted in bins")
    finest = max(fraction.denominator for fraction in which.fractions)
    if finest > FINEST:
        message = f"a bin is chosen by ranks in {finest} parts of all rows; at most {FINEST} are allowed"
        raise Refused("QUANTILE", message, instead="a fraction of at most six decimal places, such as 0.95; or leave noise = exponential out")
    cells = [replace(narrow.cell, rank=fraction, side=side, doubt=ask.doubt if side else None) for fraction in which.fractions for side in SIDES]
    found = replace(which, widths=(narrow.cell.width,), doubt=ask.doubt)
    return replace(tree, parts=tuple(replace(narrow, cell=cell) for cell in cells), quantile=found)


def margin(bins: Bins, noise: Noise) -> int:
    """By how much the choice of an end may fall short of the best score, in parts of a row."""
    if bins.doubt is None:
        raise AssertionError("an end is off with some probability")
    return ceil(_short(noise, bins.count, bins.doubt))


def _short(noise: Noise, count: int, doubt: Fraction) -> Fraction:
    return shortfall(noise, count - 1, doubt / (1 + doubt))


# ---- what is chosen ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Places:
    """Of one quantile the bin that is shown, and those at the ends of its error bar."""

    shown: int
    first: int
    last: int


def _which(aggregate: Aggregate) -> tuple[Quantile, int]:
    """Which quantile it is, and in how many bins."""
    if aggregate.quantile is None:
        raise AssertionError("a quantile says which one it is")
    which = aggregate.quantile
    return which, -(-(which.high - which.low + 1) // which.widths[0])


def _places(aggregate: Aggregate, sums: Sequence[Sequence[int]]) -> list[list[_Places]]:
    """Per group the bins of each quantile, none shown below one of a smaller fraction, and none outside its bar."""
    which, count = _which(aggregate)
    order = sorted(range(len(which.fractions)), key=which.fractions.__getitem__)
    found = []
    for start in range(0, len(sums[0]), count):
        chosen = [max(range(start, start + count), key=ones.__getitem__) - start for ones in sums]
        ends = [sorted(chosen[i + 1 : i + 3]) for i in range(0, len(chosen), len(SIDES))]
        cut = [min(max(chosen[i * len(SIDES)], first), last) for i, (first, last) in enumerate(ends)]
        shown = dict(zip(order, sorted(cut), strict=True))
        found.append([_Places(shown[i], min(first, shown[i]), max(last, shown[i])) for i, (first, last) in enumerate(ends)])
    return found


def finish(aggregate: Aggregate, sums: Sequence[Sequence[int]]) -> Sequence[Shown]:
    """Per group the middle of the bin that was chosen; a whole unit, if it is to be one of the values. Or a list of such values."""
    which, _ = _which(aggregate)
    found: list[list[Value]] = [
        [released(_middle(which, one.shown) * aggregate.step, aggregate.type.element) for one in own] for own in _places(aggregate, sums)
    ]
    return found if aggregate.type.kind is Kind.LIST else [one for (one,) in found]


def _edges(which: Quantile, first: int, last: int) -> tuple[int, int]:
    """The least unit of a bin, and the greatest of another one."""
    return which.low + first * which.widths[0], min(which.low + (last + 1) * which.widths[0] - 1, which.high)


def _middle(which: Quantile, place: int) -> Fraction:
    middle = Fraction(sum(_edges(which, place, place)), 2)
    return Fraction(middle.__floor__()) if which.discrete else middle


def interval(
    aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction, floors: Floors = ()
) -> Sequence[Bars]:
    """Per group the bins between the ends that were chosen, of a list those of each; at a higher confidence than theirs all that bounds allow."""
    which, count = _which(aggregate)
    whole = which.doubt is None or 1 - confidence < which.doubt
    found: list[list[Bar]] = [
        [ended(aggregate, which, _edges(which, *((0, count - 1) if whole else (one.first, one.last))), _middle(which, one.shown)) for one in own]
        for own in _places(aggregate, sums)
    ]
    return found if aggregate.type.kind is Kind.LIST else [one for (one,) in found]


# ---- how far off it is ---------------------------------------------------------------------------------------------------------------


def reach(aggregate: Aggregate, noises: Sequence[Noise]) -> Reach:
    """Of each quantile how far off it is expected to be, and half its error bar, in rows: s + 1/2 and m + s.

    s is the scale of a choice, about its mean distance, m that by which an end may fall short; half a row lies between the places of two values.
    """
    which, count = _which(aggregate)
    if which.doubt is None:
        raise AssertionError("an end is off with some probability")
    found = []
    for i, fraction in enumerate(which.fractions):
        row = fraction.denominator << WEIGHT_BITS
        scale, short = (float_near(one / row) for one in (noises[3 * i].parameter, _short(noises[3 * i + 1], count, which.doubt)))
        found.append((scale + 0.5, short + scale))
    return found


def expected_error(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> Mapping[str, float]:
    """Half the width of the error bar of n values spread evenly over their bounds, by n; of a list the widest. Of moments in days."""
    which, _ = _which(aggregate)
    span, bin = which.high - which.low + 1, which.widths[0]
    halves = [half for _, half in reach(aggregate, noises)]
    found = {}
    for n in SIZES:
        ends = ((max(0.0, q * n - half), min(n, q * n + half)) for q, half in zip(map(float, which.fractions), halves, strict=True))
        rows = max(high - low for low, high in ends)
        found[f"n={n}"] = double(((Fraction(rows / n) * span + bin) * aggregate.step / 2 + which.slack) / worth(aggregate.type))
    return found


QUANTILE_BY_RANK = Card(BY_RANK, plan, finish, interval, expected_error)
