"""A reference interpreter of releases in plain Python: slow, exact, and sharing no function with the lowering. One function or line per node.

A relation is a list of (unit, {column id: value}); all rows of all units lie in one list, so that nothing is local by construction. Of dpquery it
knows the classes that a plan is made of, and nothing that computes (test_interpreter.py); expressions are in evaluated.py, what is aggregated within
a unit in within.py.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

from evaluated import value
from within import missing, reduced, whole, windowed

from dpquery.plan.inside import Whole
from dpquery.plan.rel import CapRows, Compute, Group, Join, Keep, Lookup, Match, Merge, Private, Public, Scan, Semi, Stack, Windowed
from dpquery.plan.release import (
    WEIGHT_BITS,
    Bins,
    Clamp,
    Element,
    Elements,
    GroupCap,
    HeavyMean,
    ListedKeys,
    NoKeys,
    One,
    Part,
    Present,
    PrivateKeys,
    Product,
    Release,
    ReleasedKeys,
    RowWeights,
    UnitMean,
    Units,
    UnitTable,
)
from dpquery.plan.scalar import Scalar

K = TypeVar("K")
V = TypeVar("V")
Row = dict[int, Any]
Owned = list[tuple[Any, Row]]
InBins = dict[int, int]  # those that are not 0
Cell = int | frozenset[Any] | InBins
Groups = dict[tuple[Any, ...], tuple[int | InBins, ...]]


@dataclass
class Data:
    """Private tables by physical name, as rows of {physical column: value}; public relations by name, as tuples."""

    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    publics: Mapping[str, Sequence[tuple[Any, ...]]] = field(default_factory=dict)
    salt: str = "salt"


def run(release: Release, data: Data) -> Groups:
    """Per group the exact integers of each part; every listed key, every group of private keys that a kept unit is in, exactly one without keys."""
    keys, parts = listed(release, data), release.table.parts
    gathered = _by((key, own) for (_, key), own in cells(release.table, data, keys).items())
    sums = {key: tuple(_together(column) for column in zip(*own, strict=True)) for key, own in gathered.items()}
    nothing = tuple(InBins() if isinstance(part.cell, Bins) else 0 for part in parts)
    return {key: sums.get(key, nothing) for key in (sums if keys is None else keys)}


def listed(release: Release, data: Data) -> set[tuple[Any, ...]] | None:
    """The keys of all groups there are; None where that is for private rows to say."""
    keys = release.keys
    if isinstance(keys, ReleasedKeys):
        return {row[1:] for row in data.publics[keys.public.name]}
    return set(keys.rows) if isinstance(keys, ListedKeys) else {NoKeys: {()}, PrivateKeys: None}[type(keys)]


def _together(column: Sequence[Cell]) -> int | InBins:
    """The sums of a group's cells, or the size of the union of its sets."""
    bins = [Counter(cell) for cell in column if isinstance(cell, dict)]
    if bins:
        return dict(sum(bins, Counter[int]()))
    sets = [cell for cell in column if isinstance(cell, frozenset)]
    return len(frozenset().union(*sets)) if sets else sum(cell for cell in column if isinstance(cell, int))


def cells(table: UnitTable, data: Data, keys: set[tuple[Any, ...]] | None) -> dict[tuple[Any, tuple[Any, ...]], tuple[Cell, ...]]:
    """Per (unit, key) the clamped integer, the set or the bins of each part, after the cap on groups."""
    keyed = [(unit, tuple(value(k.value, row) for k in table.keys), row) for unit, row in rows(table.input, data)]
    grouped = _by(((unit, key), row) for unit, key, row in keyed if keys is None or key in keys)
    bounding = table.bounding
    if isinstance(bounding, GroupCap):
        kept = grouped if bounding.idle is not None else _first_groups(grouped, bounding.groups, data.salt)
        return {at: tuple(_cell(part, grouped[at], (data.salt, at)) for part in table.parts) for at in kept}
    assert isinstance(bounding, RowWeights)
    many = Counter(unit for unit, key in grouped for _ in grouped[unit, key])
    weight = {unit: (min(bounding.rows, n) << WEIGHT_BITS) // n for unit, n in many.items()}
    return {at: tuple(weight[at[0]] * sum(_counted(part, own)) for part in table.parts) for at, own in grouped.items()}


def _first_groups(grouped: Mapping[tuple[Any, tuple[Any, ...]], list[Row]], groups: int, salt: str) -> list[tuple[Any, tuple[Any, ...]]]:
    return [at for unit, keys in _by(grouped).items() for at in _first([(unit, key) for key in keys], groups, salt)]


def _counted(part: Part, own: Sequence[Row]) -> list[Any]:
    """The integers of the rows that count."""
    found = [_row(part.row, row) for row in own if part.where is None or value(part.where, row) is True]
    return [x for x in found if x is not None]


def _row(kind: One | Units | Product | Element, row: Row) -> Any:
    """What a row brings; None where it does not count."""
    if isinstance(kind, Product):
        x, y = _row(kind.left, row), _row(kind.right, row)
        return None if x is None or y is None else x * y - kind.less
    x = 1 if kind.value is None else value(kind.value, row)
    if missing(x):
        return None
    if isinstance(kind, Units):
        units = whole(x, Whole(kind.step, kind.low, kind.high))
        return 2 * units - (kind.low + kind.high) if kind.centred else units
    return {One: 1, Element: x}[type(kind)]


def _cell(part: Part, own: Sequence[Row], salt: Any) -> Cell:
    """What the rows of one unit and group come to; the choice among the values of a set is salted."""
    counted = _counted(part, own)
    n = len(counted)
    match part.cell:
        case Bins(rows=most, width=width):
            assert isinstance(part.row, Units)
            bins, weight = Counter((x - part.row.low) // width for x in counted), (min(most, n) << WEIGHT_BITS) // max(1, n)
            return {bin: weight * number for bin, number in bins.items()}
        case Elements(most=most):
            return frozenset(_first(set(counted), most, repr(salt)))
        case Present():
            return min(1, n)
        case Clamp(low=low, high=high):
            return max(low, min(high, sum(counted))) if n else 0
        case HeavyMean(rows=most):
            return sum(counted) if n <= most else int(Fraction(sum(counted) * most, n))
        case UnitMean(low=low, high=high):
            return max(2 * low, min(2 * high, int(Fraction(2 * sum(counted), n)))) - (low + high) if n else 0
        case _:
            raise AssertionError(f"{part.cell}: additive ones have row weights only")


# ---- relations -----------------------------------------------------------------------------------------------------------------------


def rows(rel: Private | Public, data: Data) -> Owned:
    """Of each private row its unit and the values of its columns; a public row is nobody's."""
    return ROWS[type(rel)](rel, data)


def ids(rel: Private | Public) -> list[int]:
    """The columns of its rows, in the order in which they break ties."""
    return IDS[type(rel)](rel)


def _scan(rel: Scan, data: Data) -> Owned:
    found = []
    for row in data.tables[rel.physical]:
        at: Mapping[str, Any] | None = row
        for hop in rel.unit.hops:
            foreign = None if at is None else at[hop.column]
            at = None if foreign is None else {parent[hop.key]: parent for parent in reversed(data.tables[hop.table])}.get(foreign)
        unit = None if at is None else at[rel.unit.column]
        if unit is not None:
            found.append((unit, {c.column.id: None if missing(row[c.physical]) else row[c.physical] for c in rel.columns}))
    return found


def _joined(left: Private, right: Private | Public, on: Scalar | None, how: Join, data: Data) -> Owned:
    nothing = [dict.fromkeys(ids(right))] if how is Join.LEFT else []
    return [(unit, {**row, **other}) for unit, row, partners in _partners(left, right, on, data) for other in partners or nothing]


def _partners(left: Private, right: Private | Public, on: Scalar | None, data: Data) -> list[tuple[Any, Row, list[Row]]]:
    """Each row on the left with those on the right that meet it: public ones, or the unit's own."""
    others = rows(right, data)
    return [
        (unit, row, [other for owner, other in others if owner in (unit, None) and (on is None or value(on, {**row, **other}) is True)])
        for unit, row in rows(left, data)
    ]


def _stack(rel: Stack, data: Data) -> Owned:
    ours, theirs = (
        [(unit, tuple(value(v, row) for v in values)) for unit, row in rows(below, data)]
        for below, values in ((rel.left, rel.ours), (rel.right, rel.theirs))
    )
    merged = {
        Merge.UNION_ALL: [*ours, *theirs],
        Merge.UNION: [*dict.fromkeys([*ours, *theirs])],
        Merge.INTERSECT: [one for one in dict.fromkeys(ours) if one in set(theirs)],
        Merge.EXCEPT: [one for one in dict.fromkeys(ours) if one not in set(theirs)],
    }
    return [(unit, dict(zip(ids(rel), values, strict=True))) for unit, values in merged[rel.how]]


def _group(rel: Group, data: Data) -> Owned:
    grouped = _by(((unit, *(row[key.id] for key in rel.keys)), row) for unit, row in rows(rel.input, data))
    made = {at: {c.id: reduced(item, own) for c, item in rel.items} for at, own in grouped.items()}
    return [(unit, {**{c.id: v for c, v in zip(rel.keys, key, strict=True)}, **made[unit, *key]}) for unit, *key in grouped]


def _windowed(rel: Windowed, data: Data) -> Owned:
    split = _by(((unit, *(row[c.id] for c in rel.partition)), row) for unit, row in rows(rel.input, data))
    return [(unit, {**row, rel.column.id: x}) for (unit, *_), own in split.items() for row, x in windowed(rel, own, ids(rel.input))]


def _by(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """What goes with each key, in order."""
    found: dict[K, list[V]] = defaultdict(list)
    for key, one in pairs:
        found[key].append(one)
    return found


def _first(of: Iterable[V], most: int, salt: str) -> list[V]:
    """So many of them, in an order that a salted hash makes."""
    return sorted(of, key=lambda one: (hashlib.blake2b(repr((salt, one)).encode()).digest(), repr(one)))[:most]


ROWS: dict[type, Callable[[Any, Data], Owned]] = {
    Public: lambda rel, data: [(None, dict(zip(ids(rel), row, strict=True))) for row in data.publics[rel.name]],
    Scan: _scan,
    Keep: lambda rel, data: [(unit, row) for unit, row in rows(rel.input, data) if value(rel.predicate, row) is True],
    Compute: lambda rel, data: [(unit, {**row, **{c.id: value(v, row) for c, v in rel.items}}) for unit, row in rows(rel.input, data)],
    Lookup: lambda rel, data: _joined(rel.input, rel.public, rel.on, rel.join, data),
    Match: lambda rel, data: _joined(rel.left, rel.right, rel.on, rel.join, data),
    Semi: lambda rel, data: [(unit, row) for unit, row, met in _partners(rel.left, rel.right, rel.on, data) if bool(met) is not rel.negated],
    Stack: _stack,
    CapRows: lambda rel, data: [(unit, row) for unit, own in _by(rows(rel.input, data)).items() for row in _first(own, rel.rows, data.salt)],
    Group: _group,
    Windowed: _windowed,
}
IDS: dict[type, Callable[[Any], list[int]]] = {
    Scan: lambda rel: [c.column.id for c in rel.columns],
    **dict.fromkeys((Public, Stack), lambda rel: [c.id for c in rel.columns]),
    Group: lambda rel: [c.id for c in (*rel.keys, *(column for column, _ in rel.items))],
    Compute: lambda rel: [*ids(rel.input), *(column.id for column, _ in rel.items)],
    Windowed: lambda rel: [*ids(rel.input), rel.column.id],
    Lookup: lambda rel: [*ids(rel.input), *ids(rel.public)],
    Match: lambda rel: [*ids(rel.left), *ids(rel.right)],
    Semi: lambda rel: ids(rel.left),
    **dict.fromkeys((Keep, CapRows), lambda rel: ids(rel.input)),
}
