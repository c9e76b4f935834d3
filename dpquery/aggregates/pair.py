"""COVAR_POP, COVAR_SAMP, CORR, weighted by rows: from noisy sums over the rows in which both values are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import sqrt
from typing import NamedTuple

from dpquery.aggregates import correlation, forms
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
    square,
    stretched,
)
from dpquery.aggregates.selected import Selected
from dpquery.aggregates.values import double
from dpquery.errors import Refused
from dpquery.mechanisms import Noise
from dpquery.plan import functions
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import Aggregate
from dpquery.plan.scalar import Interval, Scalar
from dpquery.values.types import FLOAT, Value

NOTHING, ONE = exactly(0), exactly(1)
BOTH_KNOWN = "rows in which either value is NULL are left out"


def plan(ask: AggregateAsk, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """Parts over the rows in which both values are known: half units of each, their products, for a correlation their squares, the count."""
    one, other = numeric(ask), _other(ask)
    no_group_bounds(ask)
    (x, fine), (y, coarse) = halved(ask, one), halved(ask, other)
    made = cells(contributions, rows_per_unit)
    where = _known(ask.where, one, other)
    squares = [made.squares(values, where) for values in (x, y)] if ask.card == "corr" else []
    parts = (made.values(x, where), made.values(y, where), made.products(x, y, where), *squares, made.number(None, where))
    said, cuts = how(contributions, rows_per_unit)
    step = x.step * y.step / 4
    most = (x.high - x.low) * (y.high - y.low) * step
    bounds = Interval(Fraction(-1), Fraction(1)) if squares else Interval(-most, most)
    less = tuple((values.high - values.low) ** 2 // 2 for values in (x, y))
    notes = (OF_ROWS, BOTH_KNOWN, *dict.fromkeys((clamped(x), clamped(y))), *said, *fine, *coarse)
    return Planned(fits(ask, parts, contributions.weights), FLOAT, step, bounds, notes, cuts, less if squares else ())


def _other(ask: AggregateAsk) -> Scalar:
    """The second argument, which is a number."""
    if ask.other is None or not ask.other.type.numeric:
        raise Refused("NOT_A_NUMBER", f"{ask.label} needs two numbers", position=ask.position, instead="CAST them")
    return ask.other


def _known(where: Scalar | None, *values: Scalar) -> Scalar:
    """That the values are known, and the FILTER."""
    known = [functions.call("not", functions.call("is_null", value)) for value in dict.fromkeys(values)]
    every = [*([] if where is None else [where]), *known]
    return every[0] if len(every) == 1 else functions.call("and", *every)


class Sums(NamedTuple):
    """Sums of half units x' and y', of x'y', of x'^2 and y'^2 (of correlations alone), and of rows."""

    x: Span
    y: Span
    products: Span
    squares: tuple[Span, ...]
    number: Span


def _sums(own: Sequence[Span]) -> Sums:
    return Sums(own[0], own[1], own[2], tuple(own[3:-1]), own[-1])


def _exactly(own: Sequence[int]) -> Sums:
    return _sums([exactly(value) for value in own])


def _widest(aggregate: Aggregate) -> Span:
    """All that is ever released."""
    if aggregate.bounds is None:
        raise AssertionError("a covariance has bounds")
    return Span(aggregate.bounds.low, aggregate.bounds.high) * (2 if aggregate.card == "covar_samp" else 1)


def finish(aggregate: Aggregate, sums: Sequence[Sequence[int]]) -> list[Value]:
    """Per group the noisy covariance or correlation, cut to what bounds allow; 0 where too few rows count, or where a value has no spread."""
    return [double(_value(aggregate, _exactly(own))) for own in zip(*sums, strict=True)]


def _value(aggregate: Aggregate, sums: Sums) -> Fraction:
    found = _found(aggregate, sums)
    return Fraction(0) if found is None else _stretched(aggregate, found, sums).low


def interval(aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction, floors: Floors = ()) -> list[Bar]:
    """Per group what the noise may have made of; all that is possible where the noisy count, or a spread, is not clear of nothing."""
    spans = _spans(aggregate, list(zip(*sums, strict=True)), noises, confidence, floors)
    return [(double(span.low), double(span.high)) for span in spans]


def _spans(aggregate: Aggregate, groups: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction, floors: Floors = ()) -> list[Span]:
    """Per group what the noise may have made of."""
    return (_correlations if aggregate.card == "corr" else _covariances)(aggregate, groups, noises, confidence, floors)


def _correlations(aggregate: Aggregate, groups: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction, floors: Floors) -> list[Span]:
    """By the law of the noise (correlation.py); beside a threshold all that is possible while each sum lies within the reach of its noise."""
    boxed, formed = forms.apart(confidence)
    seen = Selected.of(floors, noises, formed)
    near = [seen.near(own) for own in groups]
    reaches = reach(noises, boxed) if any(near) else []
    far = [own for own, beside in zip(groups, near, strict=True) if not beside]
    tested = iter(correlation.ends(far, aggregate.less, noises, seen.confidence if seen.floors else confidence))
    return [_box(aggregate, own, reaches, seen) if beside else Span(*map(Fraction, next(tested))) for own, beside in zip(groups, near, strict=True)]


def _box(aggregate: Aggregate, own: Sequence[int], reaches: Sequence[int], seen: Selected) -> Span:
    """All that the sums of a group may make while each lies within the reach of its noise."""
    found = _found(aggregate, _sums(around(own, reaches, seen.floors)))
    return _widest(aggregate) if found is None else found


def _covariances(aggregate: Aggregate, groups: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction, floors: Floors) -> list[Span]:
    """While each sum lies within the reach of its noise, made as narrow as the form's noise allows."""
    boxed, formed = forms.apart(confidence)
    seen = Selected.of(floors, noises, formed)
    reaches = reach(noises, boxed)
    boxes = [_sums(around(own, reaches, seen.floors)) for own in groups]
    spans = [_found(aggregate, box) for box in boxes]
    known = {i: span for i, span in enumerate(spans) if span is not None and not seen.near(groups[i])}
    ways = [_way(aggregate, _exactly(groups[i]), boxes[i]) for i in known]
    known = dict(zip(known, forms.narrowed(ways, list(known.values()), noises, seen.confidence), strict=True))
    found = [known.get(i, span) for i, span in enumerate(spans)]
    return [_widest(aggregate) if span is None else _stretched(aggregate, span, box) for span, box in zip(found, boxes, strict=True)]


def _way(aggregate: Aggregate, noisy: Sums, box: Sums) -> forms.Way:
    """The form of a group whose sums lie in the box: with a covariance of half units on top, and one of the values' own for its value."""
    number, inverse = noisy.number.low, Span(1 / box.number.high, 1 / box.number.low)
    means = box.x * inverse, box.y * inverse
    middles = noisy.x.low / number, noisy.y.low / number
    offs = [forms.off(span, middle) for span, middle in zip(means, middles, strict=True)]
    covariance, apart = noisy.products.low / number - middles[0] * middles[1], offs[0] * offs[1]
    top, product = Span(covariance - apart, covariance + apart), means[0] * means[1]
    step = aggregate.step
    terms = (forms.Term(means[1], NOTHING), forms.Term(means[0], NOTHING), forms.Term(ONE, NOTHING), forms.Term(product, exactly(1 / step)))
    return forms.Way(top * step, number / step, terms)


def _values(aggregate: Aggregate, sums: Sums) -> Iterator[tuple[Span, Span, int]]:
    """Of both values the sum, that of the squares, and what each of these is lessened by."""
    return zip((sums.x, sums.y), sums.squares, aggregate.less, strict=True)


def _variances(total: Span, squares: Span, less: int, inverse: Span) -> Span:
    found = moment(squares, square(total), inverse)
    return Span(found.low + less, found.high + less)


def _found(aggregate: Aggregate, sums: Sums) -> Span | None:
    """A population's covariance, or the correlation, of sums within spans; None where nothing is known of it."""
    one = one_row(aggregate)
    inverse = over(sums.number, one if aggregate.card == "covar_samp" else 0)
    if inverse is None:
        return None
    covariance = moment(sums.products, sums.x * sums.y, inverse)
    return _correlation(aggregate, sums, covariance, inverse) if aggregate.card == "corr" else _cut(aggregate, covariance)


def _stretched(aggregate: Aggregate, found: Span, sums: Sums) -> Span:
    """A sample's covariance, of which `found` is that of a population; else what was found."""
    one = one_row(aggregate)
    return stretched(found, Span(sums.number.low / one, sums.number.high / one)) if aggregate.card == "covar_samp" else found


def _cut(aggregate: Aggregate, covariance: Span) -> Span:
    """A population's covariance of half units in the values' own units, inside its bounds."""
    if aggregate.bounds is None:
        raise AssertionError("a covariance has bounds")
    return (covariance * aggregate.step).cut(aggregate.bounds.low, aggregate.bounds.high)


def _correlation(aggregate: Aggregate, sums: Sums, covariance: Span, inverse: Span) -> Span | None:
    """The covariance over the roots of the variances."""
    variances = [_variances(total, squares, less, inverse) for total, squares, less in _values(aggregate, sums)]
    if min(variance.low for variance in variances) <= 0:
        return None
    low, high = (Fraction(sqrt(variances[0][i] * variances[1][i])) for i in (0, 1))
    return (covariance * Span(1 / high, 1 / low)).cut(Fraction(-1), Fraction(1))


def expected_error(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> Mapping[str, float]:
    """Half the width of the error bar of n pairs spread evenly and independently over their bounds, by n."""
    numbers = [n * one_row(aggregate) for n in SIZES]
    groups = [(0, 0, 0, *(-less * number // 3 for less in aggregate.less), number) for number in numbers]
    spans = _spans(aggregate, groups, noises, confidence)
    return {f"n={n}": double((span.high - span.low) / 2) for n, span in zip(SIZES, spans, strict=True)}


PAIRS: tuple[Card, ...] = tuple(Card(name, plan, finish, interval, expected_error) for name in ("covar_pop", "covar_samp", "corr"))
