"""VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP, weighted by rows: from noisy sums of half units, of their squares and of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import sqrt
from typing import NamedTuple

from dpquery.aggregates import forms
from dpquery.aggregates.bounds import numeric
from dpquery.aggregates.card import Bar, Card, Floors, Planned
from dpquery.aggregates.grid import clamped, fits
from dpquery.aggregates.mean import OF_ROWS
from dpquery.aggregates.moments import (
    SIZES,
    Span,
    around,
    cells,
    exactly,
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
from dpquery.aggregates.selected import Selected
from dpquery.aggregates.values import double
from dpquery.mechanisms import Noise
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import Aggregate
from dpquery.plan.scalar import Interval
from dpquery.values.types import FLOAT, Value

SAMPLES = ("var_samp", "stddev_samp")
NOTHING = exactly(0)
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
    return Planned(fits(ask, parts, contributions.weights), FLOAT, values.step, bounds, (OF_ROWS, clamped(values), *said, *notes), cuts, less)


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


def interval(aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction, floors: Floors = ()) -> list[Bar]:
    """Per group the variances that the noise may have made of; all of them where the noisy count is not clear of the least that has one."""
    spans = _spans(aggregate, list(zip(*sums, strict=True)), noises, confidence, floors)
    return [(_own(aggregate, span.low), _own(aggregate, span.high)) for span in spans]


def _spans(aggregate: Aggregate, groups: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction, floors: Floors = ()) -> list[Span]:
    """Per group the variances in half units."""
    boxed, formed = forms.apart(confidence)
    seen = Selected.of(floors, noises, formed)
    reaches = reach(noises, boxed)
    boxes = [_box(aggregate, own, reaches, seen) for own in groups]
    known = [(box.way, box.variances) for box in boxes if box is not None and box.way is not None]
    found = iter(forms.narrowed([way for way, _ in known], [span for _, span in known], noises, seen.confidence))
    spans = [None if box is None else box.variances if box.way is None else next(found) for box in boxes]
    everything = Span(Fraction(0), _largest(aggregate))
    return [everything if box is None or span is None else _released(aggregate, span, box.rows) for box, span in zip(boxes, spans, strict=True)]


class _Box(NamedTuple):
    """What is known of a group while each sum lies within the reach of its noise: what the variance of a population may be, the way to narrow that,
    None where there is none, and how many rows there may be."""

    variances: Span
    way: forms.Way | None
    rows: Span


def _box(aggregate: Aggregate, own: Sequence[int], reaches: Sequence[int], seen: Selected) -> _Box | None:
    """None where the noisy count is not clear of the least that has a variance."""
    total, squares, number = around(own, reaches, seen.floors)
    one = one_row(aggregate)
    inverse = over(number, one if aggregate.card in SAMPLES else 0)
    if inverse is None:
        return None
    less, mean = exactly(aggregate.less[1]), Fraction(own[0], own[2])
    variances, means = moment(squares, square(total), inverse).plus(less), total * inverse
    variance = less.low + Fraction(own[1], own[2]) - mean**2
    terms = (forms.Term(means * 2, NOTHING), forms.Term(exactly(1), NOTHING), forms.Term(square(means).plus(less), exactly(1)))
    rows = Span(number.low / one, number.high / one)
    if seen.near(own):
        return _Box(variances, None, rows)
    way = forms.Way(Span(variance, variance + forms.off(means, mean) ** 2), Fraction(own[2]), terms)
    return _Box(variances, way, rows)


def _released(aggregate: Aggregate, variances: Span, number: Span) -> Span:
    cut = variances.cut(Fraction(0), _most(aggregate))
    return stretched(cut, number) if aggregate.card in SAMPLES else cut


def expected_error(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> Mapping[str, float]:
    """Half the width of the error bar of n values spread evenly over their bounds, by n."""
    third = int(_most(aggregate) / 3) - aggregate.less[1]
    numbers = [n * one_row(aggregate) for n in SIZES]
    spans = _spans(aggregate, [(0, third * number, number) for number in numbers], noises, confidence)
    return {f"n={n}": (_own(aggregate, span.high) - _own(aggregate, span.low)) / 2 for n, span in zip(SIZES, spans, strict=True)}


def _card(name: str) -> Card:
    return Card(name, plan, finish, interval, expected_error)


SPREADS: tuple[Card, ...] = tuple(map(_card, ("var_pop", "var_samp", "stddev_pop", "stddev_samp")))
