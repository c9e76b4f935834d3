"""The error bar of every cell of an answer: its card's, Fieller's for a ratio, and interval arithmetic over these for what is computed further.

Where several bars come together, each is taken at so high a confidence that all hold at once with the one that was asked for (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any, assert_never

from dpquery.aggregates import card
from dpquery.aggregates.fieller import ratios
from dpquery.plan.draft import Affine, Combined, Constant, Either, Level, Operation, Output, Ratio
from dpquery.plan.release import Aggregate, PrivateKeys, Release
from dpquery.privacy.cost import Priced
from dpquery.values.noisy import Noisy
from dpquery.values.types import Kind

Bar = tuple[Any, Any] | None
Bars = Bar | list[Bar]  # of a list, one for each of its values
Span = tuple[Fraction, Fraction] | None  # exact ends; None where there is no end on some side
Part = Affine | Ratio | Combined | Constant | Either | None


@dataclass(frozen=True, slots=True)
class Released:
    """What error bars are computed from: noisy sums, their noises, and for each row of the answer its place among them (None: it has none);
    which `level` of groups it is of several."""

    release: Release
    noisy: Noisy
    priced: Priced
    rows: Sequence[int | None]
    level: Level | None = None

    def floors(self, parts: Sequence[int]) -> tuple[int | None, ...]:
        """Of each part the least noisy integer with which a group was shown; none where no group was left out."""
        return shown_from(self.release, self.priced, parts)

    def aggregate(self, name: str) -> Aggregate:
        return next(a for a in self.release.aggregates if a.name == name)


def shown_from(release: Release, priced: Priced, parts: Sequence[int]) -> tuple[int | None, ...]:
    """Of each part the least noisy integer with which a group is shown: of the count that decides about private keys."""
    if not isinstance(release.keys, PrivateKeys) or priced.threshold is None:
        return (None,) * len(parts)
    least = priced.threshold + release.keys.minimum - 1
    return tuple(least if part == release.keys.count else None for part in parts)


Tables = Mapping[str, Released]  # by the alias in `Post.rows`


def intervals(outputs: Sequence[Output], tables: Tables, confidence: Fraction) -> tuple[tuple[Bars, ...] | None, ...]:
    """The error bars of each output column. No tables: rows were merged, and have none."""
    if not tables:
        return tuple(None for _ in outputs)
    return tuple(None if o.interval is None else tuple(_bars(o.interval, tables, confidence)) for o in outputs)


def together(outputs: Sequence[Output]) -> int:
    """How many error bars have to hold at once for that of one output, at most."""
    return max((_together(one.interval) for one in outputs), default=1)


def _together(how: Part) -> int:
    return max(1, len(frozenset(_draws(how)))) if isinstance(how, Combined | Either) else 1


def named(name: str, tables: Tables) -> tuple[Released, Aggregate]:
    """The aggregate of that name, with its table: the only one, where it names none."""
    alias, dot, own = name.rpartition(".")
    released = tables[alias] if dot else next(iter(tables.values()))
    return released, released.aggregate(own)


def _bars(how: Affine | Ratio | Combined | Either, tables: Tables, confidence: Fraction) -> Sequence[Bars]:
    match how:
        case Affine() if _whole(how, tables):
            return _lists(how, tables, confidence)
        case Either() if _whole(how, tables):
            columns = [_bars(branch, tables, confidence) for branch in how.branches if isinstance(branch, Affine | Either)]
            return [next((one for one in row if one is not None), None) for row in zip(*columns, strict=True)]
        case _:
            return _single(how, tables, confidence)


def _whole(how: Part, tables: Tables) -> bool:
    """Whether it is a list or a moment that is shown as a whole, which nothing is computed from."""
    match how:
        case Affine(aggregate=name, place=None, factor=1, offset=0):
            return named(name, tables)[1].type.kind in (Kind.LIST, Kind.DATE, Kind.TIMESTAMP)
        case Either(branches=branches):
            return any(_whole(branch, tables) for branch in branches)
        case _:
            return False


def _lists(how: Affine, tables: Tables, confidence: Fraction) -> list[Bars]:
    """The bars of a list's values or of moments, row by row."""
    released, bars = _released(how, tables, confidence)
    return [None if row is None else bars[row] for row in released.rows]


def _single(how: Affine | Ratio | Combined | Either, tables: Tables, confidence: Fraction) -> tuple[Bar, ...]:
    match how:
        case Affine():
            return _own(how, tables, confidence)
        case Ratio():
            return _fieller(how, tables, confidence)
        case Combined() | Either():
            return tuple(map(_ends, _spans(how, tables, 1 - (1 - confidence) / _together(how))))
        case _:
            assert_never(how)


def _own(how: Affine, tables: Tables, confidence: Fraction) -> tuple[Bar, ...]:
    released, bars = _released(how, tables, confidence)
    return tuple(None if row is None else _affine(_at(bars[row], how.place), how.factor, how.offset) for row in released.rows)


def _released(how: Affine, tables: Tables, confidence: Fraction) -> tuple[Released, Sequence[Bars]]:
    """The aggregate's table, and its bars by that table's rows."""
    released, a = named(how.aggregate, tables)
    noises = tuple(released.priced.noises[i] for i in a.parts)
    return released, card(a).interval(a, tuple(released.noisy.sums[i] for i in a.parts), noises, confidence, released.floors(a.parts))


def _at(bars: Bars, place: int | None) -> Bar:
    """The bar of a list's value at its place; of what is no list, its own."""
    if isinstance(bars, list):
        return bars[place] if place is not None and place < len(bars) else None
    return bars


def _fieller(how: Ratio, tables: Tables, confidence: Fraction) -> tuple[Bar, ...]:
    (one, over), (other, under) = named(how.top, tables), named(how.bottom, tables)
    if len(over.parts) != 1 or len(under.parts) != 1:
        return tuple(None for _ in one.rows)
    x, y = one.noisy.sums[over.parts[0]], other.noisy.sums[under.parts[0]]
    noises = one.priced.noises[over.parts[0]], other.priced.noises[under.parts[0]]
    scale = how.factor * over.step / under.step
    places = [(i, j) for i, j in zip(one.rows, other.rows, strict=True) if i is not None and j is not None]
    floors = (*one.floors(over.parts), *other.floors(under.parts))
    found = iter(ratios([x[i] for i, _ in places], [y[j] for _, j in places], *noises, confidence, floors))
    full = (i is not None and j is not None for i, j in zip(one.rows, other.rows, strict=True))
    return tuple(_affine(next(found), scale, Fraction(0)) if known else None for known in full)


def _affine(bar: Bar, factor: Fraction, offset: Fraction) -> Bar:
    """The bar of factor * x + offset; None where an end of it is no double, and of moments, which are no numbers."""
    if bar is None or (factor == 1 and offset == 0):
        return bar
    if isinstance(bar[0], date):
        return None
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
        case Affine(aggregate=name, place=place):
            yield Affine(name, place=place)
        case Ratio(top=top, bottom=bottom):
            yield Ratio(top, bottom)
        case Combined(parts=parts):
            for part in parts:
                yield from _draws(part)
        case Either(branches=branches):
            for branch in branches:
                yield from _draws(branch)
        case Constant() | None:
            pass
        case _:
            assert_never(how)


def _spans(how: Part, tables: Tables, confidence: Fraction) -> list[Span]:
    """For each row the exact ends of a part."""
    match how:
        case Affine() | Ratio():
            return [_exact(bar) for bar in _single(how, tables, confidence)]
        case Constant(value=value):
            return [(value, value)] * len(next(iter(tables.values())).rows)
        case Either(branches=branches):
            columns = [_spans(branch, tables, confidence) for branch in branches]
            return [next((span for span in spans if span is not None), None) for spans in zip(*columns, strict=True)]
        case None:
            return [None] * len(next(iter(tables.values())).rows)
        case Combined(operation=operation, parts=parts, digits=digits):
            columns = [_spans(part, tables, confidence) for part in parts]
            return [_reach(operation, spans, digits) for spans in zip(*columns, strict=True)]
        case _:
            assert_never(how)


def _exact(bar: Bar) -> Span:
    if bar is None or isinstance(bar[0], date) or not all(math.isfinite(end) for end in bar):
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
