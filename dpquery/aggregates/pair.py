"""COVAR_POP, COVAR_SAMP, CORR, weighted by rows: from noisy sums over the rows in which both values are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import sqrt
from typing import NamedTuple

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
    square,
    stretched,
)
from dpquery.aggregates.values import double
from dpquery.errors import Refused
from dpquery.mechanisms import Noise
from dpquery.plan import functions
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import Aggregate
from dpquery.plan.scalar import Interval, Scalar
from dpquery.values.types import FLOAT, Value

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
    notes = (ROW_WEIGHTED, BOTH_KNOWN, *dict.fromkeys((clamped(x), clamped(y))), *said, *fine, *coarse)
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
    return _sums([Span(Fraction(value), Fraction(value)) for value in own])


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
    return Fraction(0) if found is None else found.low


def interval(aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction) -> list[Bar]:
    """Per group what the noise may have made of; all that is possible where the noisy count, or a spread, is not clear of nothing."""
    widths = reach(noises, confidence)
    spans = [_bar(aggregate, _sums(around(own, widths))) for own in zip(*sums, strict=True)]
    return [(double(span.low), double(span.high)) for span in spans]


def _bar(aggregate: Aggregate, sums: Sums) -> Span:
    found = _found(aggregate, sums)
    return _widest(aggregate) if found is None else found


def _found(aggregate: Aggregate, sums: Sums) -> Span | None:
    """The covariance or correlation of sums within spans; None where nothing is known of it."""
    one = one_row(aggregate)
    inverse = over(sums.number, one if aggregate.card == "covar_samp" else 0)
    if inverse is None:
        return None
    covariance = moment(sums.products, sums.x * sums.y, inverse)
    match aggregate.card:
        case "corr":
            return _correlation(aggregate, sums, covariance, inverse)
        case "covar_samp":
            number = Span(sums.number.low / one, sums.number.high / one)
            return stretched(_cut(aggregate, covariance), number)
        case _:
            return _cut(aggregate, covariance)


def _cut(aggregate: Aggregate, covariance: Span) -> Span:
    """A population's covariance of half units in the values' own units, inside its bounds."""
    if aggregate.bounds is None:
        raise AssertionError("a covariance has bounds")
    return (covariance * aggregate.step).cut(aggregate.bounds.low, aggregate.bounds.high)


def _correlation(aggregate: Aggregate, sums: Sums, covariance: Span, inverse: Span) -> Span | None:
    """The covariance over the roots of the variances."""
    variances = []
    for total, squares, less in zip((sums.x, sums.y), sums.squares, aggregate.less, strict=True):
        found = moment(squares, square(total), inverse)
        variances.append(Span(found.low + less, found.high + less))
    if min(variance.low for variance in variances) <= 0:
        return None
    low, high = (Fraction(sqrt(variances[0][i] * variances[1][i])) for i in (0, 1))
    return (covariance * Span(1 / high, 1 / low)).cut(Fraction(-1), Fraction(1))


def expected_error(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> Mapping[str, float]:
    """Half the width of the error bar of n pairs spread evenly and independently over their bounds, by n."""
    found, widths = {}, reach(noises, confidence)
    for n in SIZES:
        number = n * one_row(aggregate)
        squares = [-less * number // 3 for less in aggregate.less]
        span = _bar(aggregate, _sums(around((0, 0, 0, *squares, number), widths)))
        found[f"n={n}"] = double((span.high - span.low) / 2)
    return found


PAIRS: tuple[Card, ...] = tuple(Card(name, plan, finish, interval, expected_error) for name in ("covar_pop", "covar_samp", "corr"))
