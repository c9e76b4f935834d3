"""VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP, weighted by rows: from noisy sums of half units, of their squares and of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import sqrt

from dpquery.aggregates.bounds import numeric
from dpquery.aggregates.card import Bar, Card, Planned
from dpquery.aggregates.grid import clamped, fits
from dpquery.aggregates.mean import ROW_WEIGHTED
from dpquery.aggregates.moments import (
    SIZES,
    Span,
    around,
    cells,
    halved,
    how,
    moment,
    no_group_bounds,
    one_row,
    over,
    reach,
    rows,
    sampled,
    square,
    stretched,
)
from dpquery.aggregates.values import double
from dpquery.mechanisms import Noise
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import Aggregate
from dpquery.plan.scalar import Interval
from dpquery.values.types import FLOAT, Value

SAMPLES = ("var_samp", "stddev_samp")
ROOTS = ("stddev_pop", "stddev_samp")


def plan(ask: AggregateAsk, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """Three parts over the same rows: half units, of which a unit with more rows than the cap keeps its mean; their squares likewise; their count."""
    argument = numeric(ask)
    no_group_bounds(ask)
    values, notes = halved(ask, argument)
    made = cells(contributions, rows_per_unit)
    parts = (made.values(values, ask.where), made.squares(values, ask.where), made.number(argument, ask.where))
    said, cuts = how(contributions, rows_per_unit)
    bounds = Interval(values.low * values.step, values.high * values.step)
    less = (0, (values.high - values.low) ** 2 // 2, 0)
    return Planned(fits(ask, parts, contributions.weights), FLOAT, values.step, bounds, (ROW_WEIGHTED, clamped(values), *said, *notes), cuts, less)


def _most(aggregate: Aggregate) -> Fraction:
    """The largest variance of a population of half units: that of values at both bounds."""
    bounds = aggregate.bounds
    if bounds is None:
        raise AssertionError("a variance has bounds")
    return ((bounds.high - bounds.low) / aggregate.step) ** 2


def _largest(aggregate: Aggregate) -> Fraction:
    """The largest variance that is released, in half units: a sample of two rows has twice that of a population."""
    return _most(aggregate) * (2 if aggregate.card in SAMPLES else 1)


def _own(aggregate: Aggregate, variance: Fraction) -> float:
    """A variance in half units as a value of the aggregate; the root of it first, which has no overflow."""
    half = aggregate.step / 2
    return double(Fraction(sqrt(variance)) * half) if aggregate.card in ROOTS else double(variance * half**2)


def finish(aggregate: Aggregate, sums: Sequence[Sequence[int]]) -> list[Value]:
    """Per group the noisy variance or its root, cut to what bounds allow; the middle of the variances where too few rows count for one."""
    return [_own(aggregate, _variance(aggregate, *own)) for own in zip(*sums, strict=True)]


def _variance(aggregate: Aggregate, total: int, squares: int, number: int) -> Fraction:
    sample, n = aggregate.card in SAMPLES, rows(aggregate, number)
    if n <= (1 if sample else 0):
        return _largest(aggregate) / 2
    found = aggregate.less[1] + Fraction(squares, number) - Fraction(total, number) ** 2
    cut = max(Fraction(0), min(_most(aggregate), found))
    return cut * sampled(n) if sample else cut


def interval(aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction) -> list[Bar]:
    """Per group the variances that the noise may have made of; all of them where the noisy count is not clear of the least that has one."""
    widths = reach(noises, confidence)
    spans = [_span(aggregate, around(own, widths)) for own in zip(*sums, strict=True)]
    return [(_own(aggregate, span.low), _own(aggregate, span.high)) for span in spans]


def _span(aggregate: Aggregate, sums: Sequence[Span]) -> Span:
    total, squares, number = sums
    sample, one = aggregate.card in SAMPLES, one_row(aggregate)
    inverse = over(number, one if sample else 0)
    if inverse is None:
        return Span(Fraction(0), _largest(aggregate))
    found = moment(squares, square(total), inverse)
    less = aggregate.less[1]
    cut = Span(found.low + less, found.high + less).cut(Fraction(0), _most(aggregate))
    return stretched(cut, Span(number.low / one, number.high / one)) if sample else cut


def expected_error(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> Mapping[str, float]:
    """Half the width of the error bar of n values spread evenly over their bounds, by n."""
    third = int(_most(aggregate) / 3) - aggregate.less[1]
    found, widths = {}, reach(noises, confidence)
    for n in SIZES:
        number = n * one_row(aggregate)
        span = _span(aggregate, around((0, third * number, number), widths))
        found[f"n={n}"] = (_own(aggregate, span.high) - _own(aggregate, span.low)) / 2
    return found


def _card(name: str) -> Card:
    return Card(name, plan, finish, interval, expected_error)


SPREADS: tuple[Card, ...] = tuple(map(_card, ("var_pop", "var_samp", "stddev_pop", "stddev_samp")))
