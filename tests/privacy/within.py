"""Aggregates and windows within a unit in plain Python, on integers and fractions as far as they go: what the lowering has to agree with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from math import ceil, exp, floor, isfinite, isinf, isnan, log, log2, prod, sqrt
from operator import and_, or_, xor
from typing import Any

from evaluated import Row, value

from dpquery.plan.coerce import LONGEST
from dpquery.plan.inside import PAIRS, Frame, Place, Placing, Reduce, Reduction, Sort, Term, Whole
from dpquery.values.types import Kind

GREATEST = 2**63 - 1
TINY = 2.0**40  # units of a logarithm in one


def reduced(item: Reduction, own: Sequence[Row]) -> Any:
    """The aggregate over the rows of one group."""
    counted = [row for row in own if item.where is None or value(item.where, row) is True]
    if item.value is None:
        return len(counted)
    if item.sort is not None:
        return _in_order(item, item.sort, [(value(item.by, row) if item.by is not None else None, value(item.value, row)) for row in counted])
    if item.by is not None:
        pairs = [(value(item.by, row), value(item.value, row)) for row in counted]
        return _of_pairs(item, pairs) if item.function in PAIRS else _extreme(item, pairs)
    values = [x for row in counted if not missing(x := value(item.value, row))]
    if item.whole is not None:
        values = [whole(x, item.whole) for x in values]
    values = sorted(set(values) if item.distinct else values)
    if item.function is Reduce.ENTROPY and not values:
        return 0.0
    return len(values) if item.function is Reduce.COUNT else _of_values(item, values) if values else None


def missing(x: Any) -> bool:
    return x is None or (isinstance(x, float) and isnan(x))


def whole(x: Any, grid: Whole) -> int:
    """The value in whole grid units, clamped."""
    if isinstance(x, float) and isinf(x):
        return grid.high if x > 0 else grid.low
    return max(grid.low, min(grid.high, floor(Fraction(x) / grid.step + Fraction(1, 2))))


def _of_values(item: Reduction, values: Sequence[Any]) -> Any:
    """The aggregate of so many values, in order; those that add up are given in grid units."""
    n, step, fraction = len(values), float(item.whole.step if item.whole else 1), item.fraction or Fraction(0)
    match item.function:
        case Reduce.MIN | Reduce.ALL:
            return values[0]
        case Reduce.MAX | Reduce.ANY:
            return values[-1]
        case Reduce.QUANTILE_DISC:
            return values[max(1, ceil(n * fraction)) - 1]
        case Reduce.QUANTILE_CONT:
            return _between(values, float(fraction) * (n - 1))
        case Reduce.SUM if item.type.kind is Kind.INTEGER:
            return sum(values) if abs(sum(values)) <= GREATEST else None
        case Reduce.SUM:
            return float(sum(values)) * step
        case Reduce.AVG:
            return float(sum(values)) / n * step
        case Reduce.MAD:
            middle = _between(values, (n - 1) / 2)
            return None if middle is None else _between(sorted(abs(x - middle) for x in map(float, values)), (n - 1) / 2)
        case Reduce.PRODUCT:
            found = prod(map(float, values))
            return found + 0.0 if isfinite(found) else None
        case Reduce.GEOMEAN:
            return _geometric([float(x) for x in values])
        case Reduce.ENTROPY:
            less = sum(floor(c * log2(c) * TINY + 0.5) for c in Counter(values).values())
            return max(0.0, log2(n) - less / TINY / n) if n > 1 else 0.0
        case Reduce.BIT_AND | Reduce.BIT_OR | Reduce.BIT_XOR:
            return reduce({Reduce.BIT_AND: and_, Reduce.BIT_OR: or_, Reduce.BIT_XOR: xor}[item.function], values)
        case Reduce.SKEWNESS | Reduce.KURTOSIS | Reduce.KURTOSIS_POP:
            return _shape(item.function, values)
        case _:
            return _spread(item.function, values, step)


def _spread(function: Reduce, units: Sequence[int], step: float) -> float | None:
    n, root = len(units), function in (Reduce.STDDEV_POP, Reduce.STDDEV_SAMP, Reduce.SEM)
    below = float(_below(function, n))
    if not below:
        return None
    variance = float(n * sum(x * x for x in units) - sum(units) ** 2) / below * (step * step)
    return sqrt(variance) if root else variance


def _below(function: Reduce, n: int) -> int:
    match function:
        case Reduce.SQUARES | Reduce.REGR_SXY:
            return n
        case Reduce.SEM:
            return n**3
        case Reduce.VAR_SAMP | Reduce.STDDEV_SAMP | Reduce.COVAR_SAMP:
            return n * (n - 1)
        case _:
            return n * n


def _shape(function: Reduce, units: Sequence[int]) -> float | None:
    """By the book, in fractions: what the lowering has to come near."""
    n = len(units)
    if n < {Reduce.SKEWNESS: 3, Reduce.KURTOSIS: 4, Reduce.KURTOSIS_POP: 2}[function] or min(units) == max(units):
        return None
    mean = Fraction(sum(units), n)
    second, third, fourth = (sum((x - mean) ** k for x in units) / n for k in (2, 3, 4))
    if function is Reduce.SKEWNESS:
        return sqrt(n * (n - 1)) / (n - 2) * float(third) / float(second) ** 1.5
    peaked = fourth / second**2
    return float(peaked - 3 if function is Reduce.KURTOSIS_POP else (n - 1) * ((n + 1) * peaked - 3 * (n - 1)) / ((n - 2) * (n - 3)))


def _geometric(values: Sequence[float]) -> float | None:
    if values[0] < 0 or isinf(values[-1]):
        return None
    if values[0] == 0:
        return 0.0
    return exp(sum(floor(log(x) * TINY + 0.5) for x in values) / len(values) / TINY)


def _of_pairs(item: Reduction, pairs: Sequence[tuple[Any, Any]]) -> float | None:
    """Of x and y, as they come, where both are known."""
    assert item.whole is not None
    assert item.beside is not None
    known = [(whole(x, item.beside), whole(y, item.whole)) for x, y in pairs if not missing(x) and not missing(y)]
    n, wide, high = len(known), item.beside.step, item.whole.step
    sx, sy = (sum(row[i] for row in known) for i in (0, 1))
    xx, yy, xy = (n * sum(row[i] * row[j] for row in known) - a * b for i, j, a, b in ((0, 0, sx, sx), (1, 1, sy, sy), (0, 1, sx, sy)))
    match item.function:
        case Reduce.CORR:
            return max(-1.0, min(1.0, xy / sqrt(xx * yy))) if xx and yy else None
        case Reduce.REGR_R2:
            return None if not xx else float(Fraction(xy**2, xx * yy)) if yy else 1.0
        case Reduce.REGR_SLOPE:
            return float(Fraction(xy, xx) * high / wide) if xx else None
        case Reduce.REGR_INTERCEPT:
            return float(Fraction(sy, n) * high - Fraction(xy, xx) * high * Fraction(sx, n)) if xx else None
        case _:
            below = _below(item.function, n)
            return float(Fraction(xy, below) * high * wide) if below else None


def _between(values: Sequence[Any], place: float) -> float | None:
    low, high = float(values[floor(place)]), float(values[ceil(place)])
    if floor(place) == ceil(place):
        return low
    found = low * (1 - (place - floor(place))) + high * (place - floor(place))
    return None if isnan(found) else found + 0.0


def _extreme(item: Reduction, pairs: Sequence[tuple[Any, Any]]) -> Any:
    """The value of the least or greatest `by`; of several the least value."""
    known = [(by, x) for by, x in pairs if not missing(by) and not missing(x)]
    if not known:
        return None
    best = (min if item.function is Reduce.ARG_MIN else max)(by for by, _ in known)
    return min(x for by, x in known if by == best)


def _in_order(item: Reduction, sort: Sort, pairs: Sequence[tuple[Any, Any]]) -> Any:
    """The first value, or all as one text, by the value and before that by what orders the rows."""
    down, first = (False, False) if item.by is not None else (sort.descending, sort.nulls_first)
    found: list[Row] = [{0: by, 1: x} for by, x in (dict.fromkeys(pairs) if item.distinct else pairs)]
    found = _sorted(found, 1, down, first)
    found = _sorted(found, 0, sort.descending, sort.nulls_first) if item.by is not None else found
    if item.function is Reduce.FIRST:
        return found[0][1] if found else None
    texts = [row[1] for row in found if row[1] is not None]
    return str(sort.separator).join(texts)[:LONGEST] if texts else None


# ---- windows -------------------------------------------------------------------------------------------------------------------------


def windowed(
    item: Placing | Reduction, order: Sequence[Term], frame: Frame | None, own: Sequence[Row], columns: Sequence[int]
) -> list[tuple[Row, Any]]:
    """The rows of one partition, each with the window's value.

    Equals in ORDER BY are ordered by all columns, whatever the function. Those that by SQL's rule tell no equals apart (RANK, DENSE_RANK, frames of
    RANGE and whole partitions) look at the keys alone: all rows of equal keys count as one place, so how these stand among themselves is no matter.
    """
    rows = list(own)
    terms = [*((term.column.id, term.descending, term.nulls_first) for term in order), *((column, False, False) for column in columns)]
    for term in reversed(terms):  # a sort keeps the order of equals, so the first term comes last
        rows = _sorted(rows, *term)
    keys = [tuple(row[term.column.id] for term in order) for row in rows]
    if isinstance(item, Placing):
        return [(row, _place(item, at, rows, keys)) for at, row in enumerate(rows)]
    return [(row, reduced(item, rows[slice(*_frame(frame, at, keys))])) for at, row in enumerate(rows)]


def _sorted(rows: Sequence[Row], column: int, descending: bool, nulls_first: bool) -> list[Row]:
    nulls = [row for row in rows if row[column] is None]
    known = sorted((row for row in rows if row[column] is not None), key=lambda row: row[column], reverse=descending)
    return [*nulls, *known] if nulls_first else [*known, *nulls]


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
