"""A quantile whose bin is chosen, by how near its rank is: one choice, where a tree of noisy counts pays for each of its levels.

The score of a bin is how far the wanted rank q n lies outside the ranks of its rows: the chosen bin holds the quantile or is near it in ranks.
Nothing tells how far off it is, for want of the counts: there is no error bar. Of n values that are spread evenly the rank is off by more than t with
probability at most exp(-t / s) by the exponential mechanism, which picks a distance in ranks with a density that falls as exp(-t / s), cut off at the
ends; permute and flip errs less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import log

from dpquery.aggregates.card import Bar, Card, Planned
from dpquery.aggregates.quantile import QUANTILE, SIZES
from dpquery.aggregates.values import double, released
from dpquery.errors import Refused
from dpquery.mechanisms import Noise
from dpquery.numbers import float_near
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import WEIGHT_BITS, Aggregate, Bins, Part, Quantile
from dpquery.values.types import Value

FINEST = 10**6  # the largest denominator of a fraction: scores are multiples of it, and stay within 64 bits for millions of rows
BY_RANK = "quantile_by_rank"  # the card
NO_BAR = "a bin is chosen by its rank and no count is released: there is no error bar"


def plan(ask: AggregateAsk, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """The narrowest bins of the tree, one of which is chosen."""
    tree = QUANTILE.plan(ask, contributions, rows_per_unit)
    which, narrow = tree.quantile, tree.parts[-1]
    if which is None or not isinstance(narrow.cell, Bins):
        raise AssertionError("a quantile is counted in bins")
    (fraction,) = which.fractions
    if fraction.denominator > FINEST:
        message = f"a bin is chosen by ranks in {fraction.denominator} parts of all rows; at most {FINEST} are allowed"
        raise Refused("QUANTILE", message, instead="a fraction of at most six decimal places, such as 0.95; or leave noise = exponential out")
    part = Part(narrow.row, replace(narrow.cell, rank=fraction), narrow.where)
    found = replace(which, widths=(narrow.cell.width,))
    return replace(tree, parts=(part,), quantile=found, notes=(*tree.notes, NO_BAR))


def _which(aggregate: Aggregate) -> tuple[Quantile, int]:
    """Which quantile it is, and in how many bins."""
    if aggregate.quantile is None:
        raise AssertionError("a quantile says which one it is")
    which = aggregate.quantile
    return which, -(-(which.high - which.low + 1) // which.widths[0])


def finish(aggregate: Aggregate, sums: Sequence[Sequence[int]]) -> list[Value]:
    """Per group the middle of the bin that was chosen; a whole unit, if it is to be one of the values."""
    which, count = _which(aggregate)
    (ones,) = sums
    places = (max(range(start, start + count), key=ones.__getitem__) - start for start in range(0, len(ones), count))
    return [released(_middle(which, place) * aggregate.step, aggregate.type) for place in places]


def _middle(which: Quantile, place: int) -> Fraction:
    low = which.low + place * which.widths[0]
    middle = Fraction(low + min(low + which.widths[0] - 1, which.high), 2)
    return Fraction(middle.__floor__()) if which.discrete else middle


def interval(aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction) -> list[Bar]:
    """No bars: see above."""
    return [None] * (len(sums[0]) // _which(aggregate)[1])


def expected_error(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> Mapping[str, float]:
    """How far off it may be with the confidence, of n values spread evenly over their bounds, by n."""
    which, _ = _which(aggregate)
    span = which.high - which.low + 1
    (fraction,) = which.fractions
    rows = float_near(noises[0].parameter / (fraction.denominator << WEIGHT_BITS)) * log(1 / (1 - confidence))
    half = Fraction(which.widths[0] - 1, 2) * aggregate.step + which.slack
    return {f"n={n}": double(Fraction(min(1.0, rows / n)) * span * aggregate.step + half) for n in SIZES}


QUANTILE_BY_RANK = Card(BY_RANK, plan, finish, interval, expected_error)
