"""What variances, covariances and correlations have in common: values in half units around the middle of their bounds, and second moments.

With S, T, P the noisy sums of x', y' and x'y' over N rows, a second central moment is P/N - (S/N)(T/N). Raw values, whose squares are far larger than
their spread, are never multiplied. Error bars begin with interval arithmetic: while each sum lies within the reach of its own noise, all at once
(Bonferroni), the moment is q t - p t^2 with q and p in intervals and t = 1/N, which is largest and least at an end or a vertex. Linear forms of the
sums (forms.py) make them as narrow as the noise allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from dpquery.aggregates.bounds import BY_WEIGHT, missing, row_bounds, row_cap, rows_per_cell, told
from dpquery.aggregates.card import Floors
from dpquery.aggregates.count import counted
from dpquery.aggregates.grid import SQUARED, grid, row_units
from dpquery.aggregates.selected import low_end
from dpquery.errors import Refused
from dpquery.mechanisms import Noise, half_width
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import WEIGHT_BITS, Additive, Aggregate, Cell, HeavyMean, One, Part, Product, Units
from dpquery.plan.scalar import Scalar

SIZES = (100, 1_000, 10_000)  # for which the expected error is given


class Span(NamedTuple):
    """All numbers between two ends."""

    low: Fraction
    high: Fraction

    def __mul__(self, other: object) -> Span:
        """The products of numbers of two spans, or of one with a number that is not negative."""
        if isinstance(other, Span):
            ends = [a * b for a in self for b in other]
            return Span(min(ends), max(ends))
        if isinstance(other, int | Fraction):
            return Span(self.low * other, self.high * other)
        return NotImplemented

    def plus(self, other: Span) -> Span:
        """The sums of numbers of two spans."""
        return Span(self.low + other.low, self.high + other.high)

    def minus(self, other: Span) -> Span:
        """The differences of numbers of two spans."""
        return Span(self.low - other.high, self.high - other.low)

    def cut(self, low: Fraction, high: Fraction) -> Span:
        """The span inside two ends."""
        return Span(min(max(self.low, low), high), max(min(self.high, high), low))


def exactly(value: int | Fraction) -> Span:
    """One number."""
    return Span(Fraction(value), Fraction(value))


# ---- parts ---------------------------------------------------------------------------------------------------------------------------


def halved(ask: AggregateAsk, argument: Scalar) -> tuple[Units, tuple[str, ...]]:
    """The argument in half units around the middle of its bounds, at most 2^31 of them to either side, and notes on its grid."""
    bounds = row_bounds(ask, argument)
    if bounds is None:
        raise missing(ask)
    if bounds.low < bounds.high:
        width = bounds.high - bounds.low
        fine = grid(argument, bounds.magnitude, min(bounds.magnitude, width), SQUARED, width)
        low, high = row_units(bounds, fine.step)
        if low < high:
            return Units(argument, fine.step, low, high, centred=True), fine.notes
    raise Refused(
        "BAD_BOUNDS",
        f"the bounds of {ask.label} leave one value on its grid, so that its spread is known beforehand",
        position=ask.position,
        instead="give bounds that are further apart",
    )


class Cells(NamedTuple):
    """How cells are bounded: by the heavy-unit rule, or by row weights."""

    rows: int
    weighted: bool

    def of(self, width: int) -> Cell:
        """The cell of rows in [-width, width]."""
        return Additive(width) if self.weighted else HeavyMean(self.rows, width)

    def number(self, value: Scalar | None, where: Scalar | None) -> Part:
        """The part that counts the rows."""
        return Part(One(value), Additive(1) if self.weighted else counted(0, self.rows), where)

    def values(self, values: Units, where: Scalar | None) -> Part:
        """The part that adds up half units."""
        return Part(values, self.of(values.high - values.low), where)

    def squares(self, values: Units, where: Scalar | None) -> Part:
        """The part that adds up squares, less half of the largest."""
        most = (values.high - values.low) ** 2
        return Part(Product(values, values, most // 2), self.of(most - most // 2), where)

    def products(self, left: Units, right: Units, where: Scalar | None) -> Part:
        """The part that adds up products of two values."""
        return Part(Product(left, right), self.of((left.high - left.low) * (right.high - right.low)), where)


def cells(contributions: Contributions, rows_per_unit: int | None) -> Cells:
    """How the limits bound a cell."""
    return Cells(rows_per_cell(contributions, rows_per_unit), contributions.weights is not None)


def how(contributions: Contributions, rows_per_unit: int | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(notes, cuts) about rows that are left out."""
    return told(row_cap(contributions, rows_per_unit), contributions) if contributions.weights is None else ((BY_WEIGHT,), ())


def no_group_bounds(ask: AggregateAsk) -> None:
    """Nothing, or Refused where bounds on a unit's sum in a group were written: a spread is of rows."""
    if ask.per_group is not None:
        raise Refused(
            "PER_GROUP_BOUNDS",
            f"{ask.label}: rows are bounded, not what they add up to in a group",
            position=ask.position,
            instead="write contribution_bounds_per_row instead of contribution_bounds_per_group",
        )


# ---- values --------------------------------------------------------------------------------------------------------------------------


def rows(aggregate: Aggregate, number: int) -> Fraction:
    """The noisy number of rows, out of the units of row weights."""
    return Fraction(number, 2**WEIGHT_BITS) if BY_WEIGHT in aggregate.notes else Fraction(number)


def one_row(aggregate: Aggregate) -> int:
    """What one row adds to the noisy number of rows."""
    return 2**WEIGHT_BITS if BY_WEIGHT in aggregate.notes else 1


def sampled(number: Fraction) -> Fraction:
    """The factor from the moment of a population to that of a sample: n / (n - 1), for more than one row; for fewer that of two."""
    return number / (number - 1) if number >= 2 else Fraction(2)


# ---- error bars ----------------------------------------------------------------------------------------------------------------------


def reach(noises: Sequence[Noise], confidence: Fraction) -> list[int]:
    """How far from the noisy sums of any one group the exact ones lie, all at once with at least the confidence."""
    each = 1 - (1 - confidence) / len(noises)
    return [half_width(noise, each) for noise in noises]


def around(sums: Sequence[int], widths: Sequence[int], floors: Floors = ()) -> list[Span]:
    """Where the exact sums lie that are no further than that from the noisy ones."""
    own = floors or (None,) * len(sums)
    return [Span(Fraction(low_end(*one)), Fraction(one[0] + one[1])) for one in zip(sums, widths, own, strict=True)]


def over(number: Span, least: int) -> Span | None:
    """1/N for each N of the span; None where N is not clear of `least`."""
    return Span(1 / number.high, 1 / number.low) if number.low > least else None


def moment(top: Span, product: Span, inverse: Span) -> Span:
    """All q t - p t^2 for q in `top`, p in `product` and t > 0 in `inverse`."""
    low = min(_values(top.low, product.high, inverse))
    return Span(low, max(_values(top.high, product.low, inverse)))


def _values(q: Fraction, p: Fraction, t: Span) -> list[Fraction]:
    """q t - p t^2 at the ends, and at its vertex where that lies between them."""
    at = list(t)
    if p and t.low < q / (2 * p) < t.high:
        at.append(q / (2 * p))
    return [q * x - p * x * x for x in at]


def square(span: Span) -> Span:
    """The squares of its numbers."""
    ends = [span.low**2, span.high**2]
    return Span(Fraction(0) if span.low <= 0 <= span.high else min(ends), max(ends))


def stretched(span: Span, number: Span) -> Span:
    """The span times n / (n - 1) for each n > 1 of `number`, of which no whole one is below 2."""
    return span * Span(sampled(number.high), sampled(max(number.low, Fraction(2))))
