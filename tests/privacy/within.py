"""Aggregates and windows within a unit in plain Python, on integers and fractions as far as they go: what the lowering has to agree with."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor, isinf, isnan, sqrt
from typing import Any

from evaluated import Row, value

from dpquery.plan.inside import Frame, Place, Placing, Reduce, Reduction, Term, Whole
from dpquery.values.types import Kind

GREATEST = 2**63 - 1


def reduced(item: Reduction, own: Sequence[Row]) -> Any:
    """The aggregate over the rows of one group."""
    counted = [row for row in own if item.where is None or value(item.where, row) is True]
    if item.value is None:
        return len(counted)
    if item.by is not None:
        return _extreme(item, [(value(item.by, row), value(item.value, row)) for row in counted])
    values = [x for row in counted if not missing(x := value(item.value, row))]
    if item.whole is not None:
        values = [whole(x, item.whole) for x in values]
    values = sorted(set(values) if item.distinct else values)
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
        case _:
            return _spread(item.function, values, step)


def _spread(function: Reduce, units: Sequence[int], step: float) -> float | None:
    n, root = len(units), function in (Reduce.STDDEV_POP, Reduce.STDDEV_SAMP)
    below = float(n) * (n if function in (Reduce.VAR_POP, Reduce.STDDEV_POP) else n - 1)
    if not below:
        return None
    variance = float(n * sum(x * x for x in units) - sum(units) ** 2) / below * (step * step)
    return sqrt(variance) if root else variance


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
