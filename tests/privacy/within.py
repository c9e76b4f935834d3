"""Aggregates within a unit in plain Python, on integers and fractions as far as they go: what the lowering has to agree with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor, isinf, isnan, sqrt
from typing import Any

from dpquery.plan.inside import ADDED, SPREADS, Frame, Place, Placing, Reduce, Reduction, Term, Whole
from dpquery.values.types import Kind

Value = Callable[[Any, Any], Any]  # of an expression in a row
GREATEST = 2**63 - 1


def reduced(item: Reduction, own: Sequence[Any], value: Value) -> Any:
    """The aggregate over the rows of one group."""
    counted = [row for row in own if item.where is None or value(item.where, row) is True]
    if item.value is None:
        return len(counted)
    if item.by is not None:
        return _extreme(item, [(value(item.by, row), value(item.value, row)) for row in counted])
    values = [x for row in counted if not missing(x := value(item.value, row))]
    if item.function in ADDED:
        units = [x if item.whole is None else whole(x, item.whole) for x in values]
        return _added(item, sorted(set(units)) if item.distinct else units)
    if item.function is Reduce.COUNT:
        return len(set(values)) if item.distinct else len(values)
    return _picked(item, sorted(values)) if values else None


def missing(x: Any) -> bool:
    return x is None or (isinstance(x, float) and isnan(x))


def whole(x: Any, grid: Whole) -> int:
    """The value in whole grid units, clamped."""
    if isinstance(x, float) and isinf(x):
        return grid.high if x > 0 else grid.low
    return max(grid.low, min(grid.high, floor(Fraction(x) / grid.step + Fraction(1, 2))))


def _added(item: Reduction, units: Sequence[int]) -> Any:
    step, n = Fraction(1) if item.whole is None else item.whole.step, len(units)
    if not n:
        return None
    if item.function is Reduce.SUM and item.type.kind is Kind.INTEGER:
        return sum(units) if abs(sum(units)) <= GREATEST else None
    if item.function is Reduce.SUM:
        return float(sum(units)) * float(step)
    if item.function is Reduce.AVG:
        return float(sum(units)) / n * float(step)
    assert item.function in SPREADS
    below = float(n) * (n - (0 if item.function in (Reduce.VAR_POP, Reduce.STDDEV_POP) else 1))
    if not below:
        return None
    variance = float(n * sum(x * x for x in units) - sum(units) ** 2) / below * (float(step) * float(step))
    return sqrt(variance) if item.function in (Reduce.STDDEV_POP, Reduce.STDDEV_SAMP) else variance


def _picked(item: Reduction, values: Sequence[Any]) -> Any:
    match item.function:
        case Reduce.MIN | Reduce.ALL:
            return values[0]
        case Reduce.MAX | Reduce.ANY:
            return values[-1]
        case Reduce.QUANTILE_DISC:
            return values[max(1, ceil(len(values) * _fraction(item))) - 1]
        case Reduce.QUANTILE_CONT:
            return _between([float(x) for x in values], float(_fraction(item)) * (len(values) - 1))
        case _:
            raise AssertionError(item.function)


def _fraction(item: Reduction) -> Fraction:
    assert item.fraction is not None
    return item.fraction


def _between(values: Sequence[float], place: float) -> float | None:
    low, high = values[floor(place)], values[ceil(place)]
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
    item: Placing | Reduction, order: Sequence[Term], frame: Frame | None, own: Sequence[Any], ties: Sequence[int], value: Value
) -> list[Any]:
    """The window's value for each row of one partition, in the order of `own`; `ties` are all columns' ids."""

    def before(row: Any) -> tuple[Any, ...]:
        return tuple(_placed(row[t.column.id], t.descending, t.nulls_first) for t in order)

    places = sorted(range(len(own)), key=lambda i: (before(own[i]), tuple(_placed(own[i][c], False, False) for c in ties)))
    found: dict[int, Any] = {}
    for at, i in enumerate(places):
        keys = [before(own[j]) for j in places]
        if isinstance(item, Placing):
            found[i] = _place(item, at, [own[j] for j in places], keys)
        else:
            first = 0 if frame is None or frame.preceding is None else max(0, at - frame.preceding)
            last = len(places) if frame is None else at + 1 if frame.rows else max(k for k, key in enumerate(keys) if key == keys[at]) + 1
            found[i] = reduced(item, [own[j] for j in places[first:last]], value)
    return [found[i] for i in range(len(own))]


def _placed(x: Any, descending: bool, nulls_first: bool) -> tuple[int, Any]:
    """What sorts as SQL does."""
    if x is None:
        return (0 if nulls_first else 2, 0)
    return (1, Reversed(x) if descending else x)


class Reversed:
    """A value in descending order."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Reversed) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and bool(other.value == self.value)

    def __hash__(self) -> int:
        return hash(self.value)


def _place(item: Placing, at: int, rows: Sequence[Any], keys: Sequence[Any]) -> Any:
    match item.function:
        case Place.ROW_NUMBER:
            return at + 1
        case Place.RANK:
            return keys.index(keys[at]) + 1
        case Place.DENSE_RANK:
            return len(set(keys[: at + 1]))
        case Place.FIRST_VALUE:
            return _of(item, rows[0])
        case Place.LAG | Place.LEAD:
            there = at - item.offset if item.function is Place.LAG else at + item.offset
            return _of(item, rows[there]) if 0 <= there < len(rows) else None
        case _:
            raise AssertionError(item.function)


def _of(item: Placing, row: Any) -> Any:
    assert item.value is not None
    return row[item.value.id]
