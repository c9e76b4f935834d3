"""Aggregates and windows within a unit in plain Python, on integers and fractions as far as they go: what the lowering has to agree with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial, reduce
from math import ceil, exp, floor, inf, isfinite, isinf, isnan, log, log2, prod, sqrt
from operator import and_, or_, xor
from typing import Any

from evaluated import Row, value

from dpquery.plan.coerce import LONGEST
from dpquery.plan.inside import PAIRS, Frame, Place, Placing, Reduce, Reduction, Sort, Whole
from dpquery.plan.rel import Windowed
from dpquery.values.types import Kind

GREATEST = 2**63 - 1
TINY = 2.0**40  # units of a logarithm in one


def reduced(item: Reduction, own: Sequence[Row]) -> Any:
    """The aggregate over the rows of one group; what has no `by` is its own."""
    counted = [row for row in own if item.where is None or value(item.where, row) is True]
    if item.value is None:
        return len(counted)
    pairs = [(value(item.by or item.value, row), value(item.value, row)) for row in counted]
    if item.sort is not None:
        return _in_order(item.function, item.sort, dict.fromkeys(pairs) if item.distinct else pairs)
    known = [(by, x) for by, x in pairs if not missing(by) and not missing(x)]
    if item.by is not None:
        return (_of_pairs if item.function in PAIRS else _extreme)(item, known)
    values = [x if item.whole is None else whole(x, item.whole) for _, x in known]
    values = sorted(set(values) if item.distinct else values)
    return _of_values(item, values) if values else {Reduce.COUNT: 0, Reduce.ENTROPY: 0.0}.get(item.function)


def missing(x: Any) -> bool:
    return x is None or (isinstance(x, float) and isnan(x))


def whole(x: Any, grid: Whole) -> int:
    """The value in whole grid units, clamped."""
    ends = {inf: grid.high, -inf: grid.low}
    return ends[x] if x in ends else max(grid.low, min(grid.high, floor(Fraction(x) / grid.step + Fraction(1, 2))))


def _of_values(item: Reduction, values: Sequence[Any]) -> Any:
    """The aggregate of so many values, in order; those that add up are given in grid units."""
    n, step, function = len(values), float(item.whole.step if item.whole else 1), item.function
    if function in OF_VALUES:
        return OF_VALUES[function](values)
    if item.fraction is not None:
        disc = function is Reduce.QUANTILE_DISC
        return values[max(1, ceil(n * item.fraction)) - 1] if disc else _between(values, float(item.fraction) * (n - 1))
    if function is Reduce.SUM and item.type.kind is Kind.INTEGER:
        return sum(values) if abs(sum(values)) <= GREATEST else None
    if function in (Reduce.SUM, Reduce.AVG):
        return float(sum(values)) / (n if function is Reduce.AVG else 1) * step
    below, root = float(BELOW[function](n)), function in (Reduce.STDDEV_POP, Reduce.STDDEV_SAMP, Reduce.SEM)
    variance = float(_moments([(x, x) for x in values])[-1]) / below * (step * step) if below else None
    return sqrt(variance) if root and variance is not None else variance


def _between(values: Sequence[Any], place: float) -> float | None:
    low, high, part = float(values[floor(place)]), float(values[ceil(place)]), place - floor(place)
    found = low * (1 - part) + high * part
    return low if not part else None if isnan(found) else found + 0.0


def _mad(values: Sequence[Any]) -> float | None:
    half = (len(values) - 1) / 2
    middle = _between(values, half)
    return None if middle is None else _between(sorted(abs(x - middle) for x in map(float, values)), half)


def _logarithms(of: Sequence[float]) -> float:
    """Their sum, each in whole units."""
    return sum(floor(x * TINY + 0.5) for x in of) / TINY


def _geometric(values: Sequence[Any]) -> float | None:
    known = values[0] >= 0 and not isinf(values[-1])
    return None if not known else exp(_logarithms([log(float(x)) for x in values]) / len(values)) if values[0] else 0.0


def _shape(least: int, formula: Callable[..., Any], units: Sequence[int]) -> float | None:
    """By the book, in fractions, of the central moments: what the lowering has to come near."""
    n, mean = len(units), Fraction(sum(units), len(units))
    second, third, fourth = (sum((x - mean) ** k for x in units) / n for k in (2, 3, 4))
    return float(formula(n, second, third, fourth)) if n >= least and second else None


OF_VALUES: dict[Reduce, Callable[[Sequence[Any]], Any]] = {
    Reduce.COUNT: len,
    **dict.fromkeys((Reduce.MIN, Reduce.ALL), lambda values: values[0]),
    **dict.fromkeys((Reduce.MAX, Reduce.ANY), lambda values: values[-1]),
    **{bits: partial(reduce, by) for bits, by in ((Reduce.BIT_AND, and_), (Reduce.BIT_OR, or_), (Reduce.BIT_XOR, xor))},
    Reduce.MAD: _mad,
    Reduce.GEOMEAN: _geometric,
    Reduce.ENTROPY: lambda values: max(0.0, log2(len(values)) - _logarithms([c * log2(c) for c in Counter(values).values()]) / len(values)),
    Reduce.PRODUCT: lambda values: found + 0.0 if isfinite(found := prod(map(float, values))) else None,
    Reduce.SKEWNESS: partial(_shape, 3, lambda n, m2, m3, _: sqrt(n * (n - 1)) / (n - 2) * float(m3) / float(m2) ** 1.5),
    Reduce.KURTOSIS: partial(_shape, 4, lambda n, m2, _, m4: (n - 1) * ((n + 1) * m4 / m2**2 - 3 * (n - 1)) / ((n - 2) * (n - 3))),
    Reduce.KURTOSIS_POP: partial(_shape, 2, lambda n, m2, _, m4: m4 / m2**2 - 3),
}
BELOW: dict[Reduce, Callable[[int], int]] = {  # what n² times a variance or covariance is divided by
    **dict.fromkeys((Reduce.VAR_POP, Reduce.STDDEV_POP, Reduce.COVAR_POP), lambda n: n * n),
    **dict.fromkeys((Reduce.VAR_SAMP, Reduce.STDDEV_SAMP, Reduce.COVAR_SAMP), lambda n: n * (n - 1)),
    **dict.fromkeys((Reduce.SQUARES, Reduce.REGR_SXY), lambda n: n),
    Reduce.SEM: lambda n: n**3,
}
OF_PAIRS: dict[Reduce, Callable[..., Any]] = {  # of pairs whose x are not all the same, by what _moments gives
    Reduce.CORR: lambda n, x, y, xx, yy, xy: max(-1.0, min(1.0, xy / sqrt(xx * yy))) if yy else None,
    Reduce.REGR_R2: lambda n, x, y, xx, yy, xy: float(Fraction(xy**2, xx * yy)) if yy else 1.0,
    Reduce.REGR_SLOPE: lambda n, x, y, xx, yy, xy: Fraction(xy, xx),
    Reduce.REGR_INTERCEPT: lambda n, x, y, xx, yy, xy: Fraction(y, n) - Fraction(xy, xx) * Fraction(x, n),
}


def _moments(pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """How many pairs of x and y, the sums of both, and n² times their variances and covariance."""
    n, x, y = len(pairs), sum(x for x, _ in pairs), sum(y for _, y in pairs)
    return n, x, y, *(n * sum(p[i] * p[j] for p in pairs) - a * b for i, j, a, b in ((0, 0, x, x), (1, 1, y, y), (0, 1, x, y)))


def _of_pairs(item: Reduction, known: Sequence[tuple[Any, Any]]) -> float | None:
    """Of x and y, as they come; the moments are in grid units."""
    across, up = item.beside, item.whole
    n, *_, xx, _, xy = moments = _moments([(whole(x, across), whole(y, up)) for x, y in known])
    if item.function in BELOW:
        return float(Fraction(xy, below) * up.step * across.step) if (below := BELOW[item.function](n)) else None
    found = OF_PAIRS[item.function](*moments) if xx else None
    unit = {Reduce.REGR_SLOPE: up.step / across.step, Reduce.REGR_INTERCEPT: up.step}.get(item.function)
    return found if found is None or unit is None else float(found * unit)


def _extreme(item: Reduction, known: Sequence[tuple[Any, Any]]) -> Any:
    """The value of the least or greatest `by`; of several the least value."""
    best = (min if item.function is Reduce.ARG_MIN else max)((by for by, _ in known), default=None)
    return min((x for by, x in known if by == best), default=None)


def _in_order(function: Reduce, sort: Sort, pairs: Iterable[tuple[Any, Any]]) -> Any:
    """The first value, or all as one text, by the value and before that by what orders the rows."""
    found = _sorted(_sorted([{0: by, 1: x} for by, x in pairs], 1, False, False), 0, sort.descending, sort.nulls_first)
    texts = [row[1] for row in found if row[1] is not None or function is Reduce.FIRST]
    return None if not texts else texts[0] if function is Reduce.FIRST else str(sort.separator).join(texts)[:LONGEST]


# ---- windows -------------------------------------------------------------------------------------------------------------------------


def windowed(rel: Windowed, own: Sequence[Row], columns: Sequence[int]) -> list[tuple[Row, Any]]:
    """The rows of one partition, each with the window's value.

    Equals in ORDER BY are ordered by all columns, whatever the function. Those that by SQL's rule tell no equals apart (RANK, DENSE_RANK, frames of
    RANGE and whole partitions) look at the keys alone: all rows of equal keys count as one place, so how these stand among themselves is no matter.
    """
    rows, item = list(own), rel.item
    terms = [*((term.column.id, term.descending, term.nulls_first) for term in rel.order), *((column, False, False) for column in columns)]
    for term in reversed(terms):  # a sort keeps the order of equals, so the first term comes last
        rows = _sorted(rows, *term)
    keys = [tuple(row[term.column.id] for term in rel.order) for row in rows]
    if isinstance(item, Placing):
        return [(row, _place(item, at, rows, keys)) for at, row in enumerate(rows)]
    return [(row, reduced(item, rows[slice(*_frame(rel.frame, at, keys))])) for at, row in enumerate(rows)]


def _sorted(rows: Sequence[Row], column: int, descending: bool, nulls_first: bool) -> list[Row]:
    known = sorted((row for row in rows if row[column] is not None), key=lambda row: row[column], reverse=descending)
    return sorted([*known, *(row for row in rows if row[column] is None)], key=lambda row: nulls_first and row[column] is not None)


def _frame(frame: Frame | None, at: int, keys: Sequence[Any]) -> tuple[int, int]:
    """Where the frame of the row at this place begins, and where it has ended."""
    if frame is None:
        return 0, len(keys)
    end = max(-1, at + frame.following) if frame.rows else max(place for place, key in enumerate(keys) if key == keys[at])
    return 0 if frame.preceding is None else max(0, at - frame.preceding), end + 1


def _place(item: Placing, at: int, rows: Sequence[Row], keys: Sequence[Any]) -> Any:
    if item.value is None:
        return {Place.ROW_NUMBER: at + 1, Place.RANK: keys.index(keys[at]) + 1, Place.DENSE_RANK: len(set(keys[: at + 1]))}[item.function]
    there = {Place.FIRST_VALUE: 0, Place.LAG: at - item.offset, Place.LEAD: at + item.offset}[item.function]
    return rows[there][item.value.id] if 0 <= there < len(rows) else None
