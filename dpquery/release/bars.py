"""The error bar of every cell of an answer: its card's, Fieller's for a ratio, and interval arithmetic over these for what is computed further.

Where several bars come together, each is taken at so high a confidence that all hold at once with the one that was asked for (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, assert_never

from dpquery.aggregates import CARDS
from dpquery.aggregates.fieller import ratios
from dpquery.plan.draft import Affine, Combined, Constant, Operation, Output, Ratio
from dpquery.plan.release import Aggregate, Release
from dpquery.privacy.cost import Priced
from dpquery.values.noisy import Noisy

Bar = tuple[Any, Any] | None
Span = tuple[Fraction, Fraction] | None  # exact ends; None where there is no end on some side
Part = Affine | Ratio | Combined | Constant


@dataclass(frozen=True, slots=True)
class Released:
    """What error bars are computed from: the noisy sums and their noises, and the places of the answer's rows among them."""

    aggregates: Mapping[str, Aggregate]
    noisy: Noisy
    priced: Priced
    rows: Sequence[int]


def intervals(
    outputs: Sequence[Output], rows: Sequence[int] | None, noisy: Noisy, release: Release, priced: Priced, confidence: Fraction
) -> tuple[tuple[Bar, ...] | None, ...]:
    """The error bars of each output column. `rows` are the places of the answer's rows in the noisy table; None where rows were merged."""
    if rows is None:
        return tuple(None for _ in outputs)
    released = Released({a.name: a for a in release.aggregates}, noisy, priced, rows)
    return tuple(None if o.interval is None else _bars(o.interval, released, confidence) for o in outputs)


def _bars(how: Affine | Ratio | Combined, released: Released, confidence: Fraction) -> tuple[Bar, ...]:
    match how:
        case Affine():
            return _own(how, released, confidence)
        case Ratio():
            return _fieller(how, released, confidence)
        case Combined():
            together = max(1, len(frozenset(_draws(how))))
            return tuple(map(_ends, _spans(how, released, 1 - (1 - confidence) / together)))
        case _:
            assert_never(how)


def _own(how: Affine, released: Released, confidence: Fraction) -> tuple[Bar, ...]:
    a = released.aggregates[how.aggregate]
    noises = tuple(released.priced.noises[i] for i in a.parts)
    bars = CARDS[a.card].interval(a, tuple(released.noisy.sums[i] for i in a.parts), noises, confidence)
    return tuple(_affine(bars[row], how.factor, how.offset) for row in released.rows)


def _fieller(how: Ratio, released: Released, confidence: Fraction) -> tuple[Bar, ...]:
    over, under = released.aggregates[how.top], released.aggregates[how.bottom]
    if len(over.parts) != 1 or len(under.parts) != 1:
        return tuple(None for _ in released.rows)
    x, y = released.noisy.sums[over.parts[0]], released.noisy.sums[under.parts[0]]
    noises = released.priced.noises[over.parts[0]], released.priced.noises[under.parts[0]]
    scale = how.factor * over.step / under.step
    found = ratios([x[row] for row in released.rows], [y[row] for row in released.rows], *noises, confidence)
    return tuple(_affine(bar, scale, Fraction(0)) for bar in found)


def _affine(bar: Bar, factor: Fraction, offset: Fraction) -> Bar:
    """The bar of factor * x + offset; None where an end of it is no double."""
    if bar is None or (factor == 1 and offset == 0):
        return bar
    low, high = sorted(factor * Fraction(end) + offset for end in bar)
    return _ends((low, high))


def _ends(span: Span) -> Bar:
    """The ends as doubles; None where one of them is beyond these."""
    try:
        return None if span is None else (float(span[0]), float(span[1]))
    except OverflowError:
        return None


# ---- interval arithmetic -------------------------------------------------------------------------------------------------------------


def _draws(how: Part) -> Iterator[Affine | Ratio]:
    """What must hold at once: each aggregate's bar and each ratio's, counted once however often it is used."""
    match how:
        case Affine(aggregate=name):
            yield Affine(name)
        case Ratio(top=top, bottom=bottom):
            yield Ratio(top, bottom)
        case Combined(parts=parts):
            for part in parts:
                yield from _draws(part)
        case Constant():
            pass
        case _:
            assert_never(how)


def _spans(how: Part, released: Released, confidence: Fraction) -> list[Span]:
    """For each row the exact ends of a part."""
    match how:
        case Affine() | Ratio():
            return [_exact(bar) for bar in _bars(how, released, confidence)]
        case Constant(value=value):
            return [(value, value)] * len(released.rows)
        case Combined(operation=operation, parts=parts, digits=digits):
            columns = [_spans(part, released, confidence) for part in parts]
            return [_reach(operation, spans, digits) for spans in zip(*columns, strict=True)]
        case _:
            assert_never(how)


def _exact(bar: Bar) -> Span:
    if bar is None or not all(math.isfinite(end) for end in bar):
        return None
    return Fraction(bar[0]), Fraction(bar[1])


def _reach(operation: Operation, spans: Sequence[Span], digits: int) -> Span:
    """Where the result lies while the operands lie in their spans."""
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return None
    lows, highs = [low for low, _ in known], [high for _, high in known]
    match operation:
        case Operation.ADD:
            return lows[0] + lows[1], highs[0] + highs[1]
        case Operation.SUBTRACT:
            return lows[0] - highs[1], highs[0] - lows[1]
        case Operation.MULTIPLY:
            return _hull([x * y for x in known[0] for y in known[1]])
        case Operation.DIVIDE:
            return None if lows[1] <= 0 <= highs[1] else _hull([x / y for x in known[0] for y in known[1]])
        case Operation.GREATEST:
            return max(lows), max(highs)
        case Operation.LEAST:
            return min(lows), min(highs)
        case Operation.ABS:
            return (Fraction(0) if lows[0] <= 0 <= highs[0] else min(map(abs, known[0]))), max(map(abs, known[0]))
        case Operation.SQRT:
            return None if highs[0] < 0 else (_root(max(lows[0], Fraction(0))), _root(highs[0]))
        case Operation.ROUND:
            return _rounded(lows[0], digits), _rounded(highs[0], digits)
        case Operation.FLOOR:
            return Fraction(math.floor(lows[0])), Fraction(math.floor(highs[0]))
        case Operation.CEIL:
            return Fraction(math.ceil(lows[0])), Fraction(math.ceil(highs[0]))
        case _:
            assert_never(operation)


def _hull(values: Sequence[Fraction]) -> Span:
    return min(values), max(values)


def _root(value: Fraction) -> Fraction:
    """The square root to a double's precision; enough for an end of an error bar."""
    try:
        return Fraction(math.sqrt(value))
    except OverflowError:
        return value


def _rounded(value: Fraction, digits: int) -> Fraction:
    """The value to so many digits after the point, halves away from zero: rounding keeps order, so that it takes ends to ends."""
    unit = Fraction(10) ** -digits
    return (1 if value >= 0 else -1) * Fraction(math.floor(abs(value) / unit + Fraction(1, 2))) * unit
