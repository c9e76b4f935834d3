"""Columns of tidied values beside the released ones: counts that are not negative, sums within their sign and as large as their parts together,
quantiles in their order.

Functions of what was released and of public bounds alone, which cost nothing and tell nothing more (Dwork and Roth 2014, proposition 2.1). What was
released stays as it is. The bar of a tidied value is that of the released one, cut to the range in which the bounded value lies in any case, and
reaching as far as the tidied value: it holds whenever that of the released value does. To tidy twice is to tidy once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING, Any

from dpquery.aggregates import card
from dpquery.plan.draft import Affine, Either, Output
from dpquery.plan.release import Aggregate
from dpquery.release import edges, matched
from dpquery.release.bars import Bar, Tables, named

if TYPE_CHECKING:
    import pyarrow as pa

Bars = edges.Bars
COUNTS = ("count", "units", "distinct")
QUANTILES = ("quantile", "quantile_by_rank")
SUFFIX = "_tidy"


@dataclass(frozen=True, slots=True)
class Tidied:
    """The values of a column, tidied, with their bars; `place` is that of the released ones."""

    place: int
    values: Sequence[Any]
    bars: Sequence[Bar]


def completed(outputs: Sequence[Output], table: pa.Table, bars: Bars, tables: Tables, confidence: Fraction, tidy: bool) -> tuple[pa.Table, Bars]:
    """The table with its columns of error bars filled in, and tidied values beside the released ones, if these are wanted."""
    added = tuple(tidied(outputs, table, bars, tables)) if tidy and tables else ()
    table, bars = edges.filled(outputs, table, bars, tables, confidence)
    return _beside(table, bars, added) if added else (table, bars)


def tidied(outputs: Sequence[Output], table: pa.Table, bars: Bars, tables: Tables) -> Iterator[Tidied]:
    """The columns of which more is known than their noise: each that is an aggregate as it was released."""
    alone = {place: output.interval for place, output in enumerate(outputs) if output.edge is None}
    signs = {place: sign for place, how in alone.items() if (sign := _sign(how, tables)) is not None}
    orders = _orders({place: how.aggregate for place, how in alone.items() if isinstance(how, Affine) and _as_released(how)}, tables)
    levels = {place: found for place, how in alone.items() if isinstance(how, Either) and (found := _levels(how, signs.get(place), tables))}
    for place in sorted({*signs, *levels, *(one for order in orders for one in order)}):
        values, sign = table.column(place).to_pylist(), signs.get(place)
        if place in levels:
            values = [old if new is None else new for old, new in zip(values, levels[place], strict=True)]
        order = next((one for one in orders if place in one), None)
        if order is not None:
            rows = zip(*(table.column(other).to_pylist() for other in order), strict=True)
            values = [_in_order(row, order.index(place)) for row in rows]
        values = [_within(value, sign) for value in values]
        given = bars[place] or (None,) * len(values)
        yield Tidied(place, values, [_bar(bar, value, sign) for bar, value in zip(given, values, strict=True)])


# ---- signs ---------------------------------------------------------------------------------------------------------------------------


class Sign(IntEnum):
    """On which side of 0 a bounded value lies whatever the data."""

    BELOW = -1
    ABOVE = 1


def _as_released(how: Affine) -> bool:
    return how.factor == 1 and how.offset == 0 and how.place is None


def _sign(how: object, tables: Tables) -> Sign | None:
    """That of an output; of a UNION ALL where all branches agree. None: it may be on both sides."""
    if isinstance(how, Either):
        found = {_sign(branch, tables) for branch in how.branches}
        return found.pop() if len(found) == 1 else None
    return _side(named(how.aggregate, tables)[1]) if isinstance(how, Affine) and _as_released(how) else None


def _side(aggregate: Aggregate) -> Sign | None:
    if aggregate.card in COUNTS:
        return Sign.ABOVE
    bounds = aggregate.bounds
    if aggregate.card != "total" or bounds is None or bounds.low < 0 < bounds.high:
        return None
    return Sign.ABOVE if bounds.low >= 0 else Sign.BELOW


def _within(value: Any, sign: Sign | None) -> Any:
    """The value, or 0 in its own type where it is on the other side of that."""
    return value if sign is None or value is None or value * sign.value >= 0 else type(value)(0)


# ---- levels --------------------------------------------------------------------------------------------------------------------------


def _levels(how: Either, sign: Sign | None, tables: Tables) -> list[Any] | None:
    """The values of a column of several levels of groups whose sums match their parts, where there are such; None of rows that have none."""
    names = [leaf.aggregate for leaf in _leaves(how) if isinstance(leaf, Affine) and _as_released(leaf)]
    leaves = [named(name, tables) for name in names]
    of = {released.level.number for released, _ in leaves if released.level is not None}
    if len(of) != 1 or any(one.card not in ("count", "units", "total") for _, one in leaves):
        return None
    found = matched.matched(leaves, sign is Sign.ABOVE)
    values: list[Any] = [None] * len(leaves[0][0].rows)
    for (released, one), integers in zip(leaves, found, strict=True):
        shown = [] if integers is None else card(one).finish(one, [[integers[key] for key in released.noisy.keys]])
        for place, row in enumerate(released.rows):
            if shown and row is not None:
                values[place] = shown[row]
    return values if any(found) else None


def _leaves(how: Either) -> Iterator[object]:
    for branch in how.branches:
        if isinstance(branch, Either):
            yield from _leaves(branch)
        else:
            yield branch


# ---- quantiles -----------------------------------------------------------------------------------------------------------------------


def _orders(columns: Mapping[int, str], tables: Tables) -> list[tuple[int, ...]]:
    """Columns that are quantiles of the same values, several of them, by fraction."""
    groups: dict[object, list[tuple[Fraction, int]]] = {}
    for place, name in columns.items():
        released, one = named(name, tables)
        if one.card in QUANTILES and one.quantile is not None and len(one.quantile.fractions) == 1:
            part = released.release.table.parts[one.parts[-1]]
            groups.setdefault((name.rpartition(".")[0], part.row, part.where, one.type), []).append((one.quantile.fractions[0], place))
    return [tuple(place for _, place in sorted(found)) for found in groups.values() if len(found) > 1]


def _in_order(row: Sequence[Any], rank: int) -> Any:
    """The value at its place among those of the row, sorted; where one of them is missing, its own."""
    return row[rank] if any(value is None for value in row) else sorted(row)[rank]


# ---- columns -------------------------------------------------------------------------------------------------------------------------


def _bar(bar: Any, value: Any, sign: Sign | None) -> Bar:
    """The bar on the value's side of 0, and reaching as far as the value."""
    if bar is None or value is None or isinstance(bar, list):
        return None
    low, high = (_within(end, sign) for end in bar)
    return min(low, type(low)(value)), max(high, type(high)(value))


def _beside(table: pa.Table, bars: Bars, added: Sequence[Tidied]) -> tuple[pa.Table, Bars]:
    """The table with each column of tidied values behind the released ones."""
    import pyarrow as pa

    left = list(bars)
    for one in reversed(added):
        field = table.schema.field(one.place)
        name = next(name for name in _names(field.name) if name not in table.column_names)
        table = table.add_column(one.place + 1, pa.field(name, field.type), pa.array(one.values, field.type))
        left.insert(one.place + 1, tuple(one.bars))
    return table, tuple(left)


def _names(name: str) -> Iterator[str]:
    yield name + SUFFIX
    yield from (f"{name}{SUFFIX}_{i}" for i in count(1))
