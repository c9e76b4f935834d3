"""A reference interpreter of releases in plain Python: slow, exact, and sharing no code with the lowering. One function per node.

A relation is a list of (unit, {column id: value}); all rows of all units lie in one list, so that nothing is local by construction.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar, assert_never

from evaluated import value
from within import missing, reduced, whole, windowed

from dpquery.plan.inside import Whole, total
from dpquery.plan.rel import CapRows, Compute, Group, Join, Keep, Lookup, Match, Merge, Private, Public, Scan, Semi, Stack, Windowed, output
from dpquery.plan.release import (
    WEIGHT_BITS,
    Additive,
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

K = TypeVar("K")
V = TypeVar("V")
Row = dict[int, Any]
Owned = list[tuple[Any, Row]]
Set = frozenset[Any]
InBins = dict[int, int]  # those that are not 0
Cell = int | Set | InBins
Groups = dict[tuple[Any, ...], tuple[int | InBins, ...]]


@dataclass
class Data:
    """Private tables by physical name, as rows of {physical column: value}; public relations by name, as tuples."""

    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    publics: Mapping[str, Sequence[tuple[Any, ...]]] = field(default_factory=dict)
    salt: str = "salt"


def run(release: Release, data: Data) -> Groups:
    """Per group the exact integers of each part; every listed key, every group of private keys that a kept unit is in, exactly one without keys."""
    cells = cells_and_sets(release.table, data, listed(release, data))
    parts = release.table.parts
    gathered: dict[tuple[Any, ...], list[list[Cell]]] = {}
    for (_, key), values in cells.items():
        for column, cell in zip(gathered.setdefault(key, [[] for _ in parts]), values, strict=True):
            column.append(cell)
    sums = {key: [_together(column) for column in columns] for key, columns in gathered.items()}
    match release.keys:
        case NoKeys():
            shown: Iterable[tuple[Any, ...]] = [()]
        case ListedKeys() | ReleasedKeys():
            shown = listed(release, data) or ()
        case PrivateKeys():
            shown = sums
        case _:
            assert_never(release.keys)
    nothing = tuple(InBins() if isinstance(part.cell, Bins) else 0 for part in release.table.parts)
    return {key: tuple(sums.get(key, nothing)) for key in shown}


def listed(release: Release, data: Data) -> set[tuple[Any, ...]] | None:
    if isinstance(release.keys, ReleasedKeys):
        return {row[1:] for row in data.publics[release.keys.public.name]}
    return set(release.keys.rows) if isinstance(release.keys, ListedKeys) else None


def _together(column: Sequence[Cell]) -> int | InBins:
    """The sums of a group's cells, or the size of the union of its sets."""
    bins = [Counter(cell) for cell in column if isinstance(cell, dict)]
    if bins:
        return dict(sum(bins, Counter[int]()))
    sets = [cell for cell in column if isinstance(cell, frozenset)]
    return len(frozenset().union(*sets)) if sets else sum(cell for cell in column if isinstance(cell, int))


def unit_cells(table: UnitTable, data: Data, keys: set[tuple[Any, ...]] | None) -> dict[tuple[Any, tuple[Any, ...]], tuple[Any, ...]]:
    """Per (unit, key) the clamped integer of each part, after the cap on groups; of a set its size."""
    cells = cells_and_sets(table, data, keys)
    return {at: tuple(len(cell) if isinstance(cell, frozenset) else cell for cell in values) for at, values in cells.items()}


def cells_and_sets(table: UnitTable, data: Data, keys: set[tuple[Any, ...]] | None) -> dict[tuple[Any, tuple[Any, ...]], tuple[Cell, ...]]:
    """Per (unit, key) the clamped integer, the set or the bins of each part, after the cap on groups."""
    keyed = [(unit, tuple(value(k.value, row) for k in table.keys), row) for unit, row in rows(table.input, data)]
    grouped = _by(((unit, key), row) for unit, key, row in keyed if keys is None or key in keys)
    match table.bounding:
        case GroupCap(idle=idle, groups=groups):
            kept = grouped if idle is not None else _first_groups(grouped, groups, data.salt)
            return {at: tuple(_cell(part, grouped[at], (data.salt, at)) for part in table.parts) for at in kept}
        case RowWeights(rows=most):
            many = Counter(unit for unit, key in grouped for _ in grouped[unit, key])
            weight = {unit: (min(most, n) << WEIGHT_BITS) // n for unit, n in many.items()}
            return {at: tuple(weight[at[0]] * sum(_counted(part, own)) for part in table.parts) for at, own in grouped.items()}
        case _:
            assert_never(table.bounding)


def _first_groups(grouped: Mapping[tuple[Any, tuple[Any, ...]], list[Row]], groups: int, salt: str) -> list[tuple[Any, tuple[Any, ...]]]:
    return [(unit, key) for unit, own in _by(grouped).items() for key in sorted(own, key=lambda k: (_hash(salt, (unit, k)), repr(k)))[:groups]]


def _counted(part: Part, own: Sequence[Row]) -> list[Any]:
    """The integers of the rows that count."""
    found = [_row(part.row, row) for row in own if part.where is None or value(part.where, row) is True]
    return [x for x in found if x is not None]


def _row(kind: One | Units | Product | Element, row: Row) -> Any:
    match kind:
        case Element(value=of):
            return None if missing(value(of, row)) else value(of, row)
        case One(value=None):
            return 1
        case One(value=of):
            return None if missing(value(of, row)) else 1
        case Units(value=of, step=step, low=low, high=high, centred=centred):
            x = value(of, row)
            if missing(x):
                return None
            units = whole(x, Whole(step, low, high))
            return 2 * units - (low + high) if centred else units
        case Product(left=left, right=right, less=less):
            x, y = _row(left, row), _row(right, row)
            return None if x is None or y is None else x * y - less
        case _:
            assert_never(kind)


def _cell(part: Part, own: Sequence[Row], salt: Any) -> Cell:
    counted = _counted(part, own)
    if isinstance(part.cell, Bins) and isinstance(part.row, Units):
        bins, n = Counter((x - part.row.low) // part.cell.width for x in counted), len(counted)
        weight = (min(part.cell.rows, n) << WEIGHT_BITS) // max(1, n)
        return {bin: weight * number for bin, number in bins.items()}
    if isinstance(part.cell, Elements):
        return frozenset(sorted(set(counted), key=lambda x: (_hash(repr(salt), x), repr(x)))[: part.cell.most])
    if not counted:
        return 0
    total, n = sum(counted), len(counted)
    match part.cell:
        case Clamp(low=low, high=high):
            return max(low, min(high, total))
        case HeavyMean(rows=most):
            return total if n <= most else abs(total) * most // n * (1 if total > 0 else -1)
        case UnitMean(low=low, high=high):
            return max(2 * low, min(2 * high, int(Fraction(2 * total, n)))) - (low + high)
        case Present():
            return 1
        case Additive() | Bins():
            raise AssertionError("row weights only, or bins of no units")
        case _:
            assert_never(part.cell)


# ---- relations -----------------------------------------------------------------------------------------------------------------------


def rows(rel: Private, data: Data) -> Owned:
    match rel:
        case Scan():
            return _scan(rel, data)
        case Keep(input=below, predicate=predicate):
            return [(unit, row) for unit, row in rows(below, data) if value(predicate, row) is True]
        case Compute(input=below, items=items):
            return [(unit, {**row, **{c.id: value(v, row) for c, v in items}}) for unit, row in rows(below, data)]
        case Lookup():
            return _lookup(rel, data)
        case Match():
            return _match(rel, data)
        case Semi():
            return _semi(rel, data)
        case Stack():
            return _stack(rel, data)
        case CapRows(input=below, rows=most):
            return _cap(rows(below, data), most, data.salt)
        case Group():
            return _group(rel, data)
        case Windowed():
            return _windowed(rel, data)
        case _:
            assert_never(rel)


def _scan(rel: Scan, data: Data) -> Owned:
    found = []
    for row in data.tables[rel.physical]:
        at: Mapping[str, Any] | None = row
        for hop in rel.unit.hops:
            parents = [] if at is None else [p for p in data.tables[hop.table] if at[hop.column] is not None and p[hop.key] == at[hop.column]]
            at = parents[0] if parents else None
        unit = None if at is None else at[rel.unit.column]
        if unit is not None:
            found.append((unit, {c.column.id: None if missing(row[c.physical]) else row[c.physical] for c in rel.columns}))
    return found


def _lookup(rel: Lookup, data: Data) -> Owned:
    found = []
    for unit, row in rows(rel.input, data):
        meets = [{c.id: v for c, v in zip(rel.public.columns, public, strict=True)} for public in data.publics[rel.public.name]]
        joined = [{**row, **public} for public in meets if rel.on is None or value(rel.on, {**row, **public}) is True]
        if not joined and rel.join is Join.LEFT:
            joined = [{**row, **{c.id: None for c in rel.public.columns}}]
        found += [(unit, each) for each in joined]
    return found


def _match(rel: Match, data: Data) -> Owned:
    found, right = [], rows(rel.right, data)
    for unit, row in rows(rel.left, data):
        joined = [{**row, **other} for owner, other in right if owner == unit and (rel.on is None or value(rel.on, {**row, **other}) is True)]
        if not joined and rel.join is Join.LEFT:
            joined = [{**row, **{c.id: None for c in output(rel.right)}}]
        found += [(unit, each) for each in joined]
    return found


def _semi(rel: Semi, data: Data) -> Owned:
    if isinstance(rel.right, Public):
        columns, table = rel.right.columns, data.publics[rel.right.name]
        right: Owned = [(None, {c.id: v for c, v in zip(columns, row, strict=True)}) for row in table]
    else:
        right = rows(rel.right, data)
    found = []
    for unit, row in rows(rel.left, data):
        partners = [other for owner, other in right if owner in (unit, None)]
        if any(rel.on is None or value(rel.on, {**row, **other}) is True for other in partners) is not rel.negated:
            found.append((unit, row))
    return found


def _stack(rel: Stack, data: Data) -> Owned:
    ids = [c.id for c in rel.columns]
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
    return [(unit, dict(zip(ids, values, strict=True))) for unit, values in merged[rel.how]]


def _cap(owned: Owned, most: int, salt: str) -> Owned:
    return [(unit, row) for unit, own in _by(owned).items() for row in sorted(own, key=lambda r: (_hash(salt, r), repr(r)))[:most]]


def _group(rel: Group, data: Data) -> Owned:
    grouped = _by(((unit, *(row[key.id] for key in rel.keys)), row) for unit, row in rows(rel.input, data))
    made = {at: {c.id: reduced(item, own, value) for c, item in rel.items} for at, own in grouped.items()}
    return [(unit, {**{c.id: v for c, v in zip(rel.keys, key, strict=True)}, **made[unit, *key]}) for unit, *key in grouped]


def _windowed(rel: Windowed, data: Data) -> Owned:
    split = _by(((unit, *(row[c.id] for c in rel.partition)), row) for unit, row in rows(rel.input, data))
    ties = [c.id for c in output(rel.input)] if total(rel.item, rel.frame) else []
    made = {at: windowed(rel.item, rel.order, rel.frame, own, ties, value) for at, own in split.items()}
    return [(at[0], {**row, rel.column.id: x}) for at, own in split.items() for row, x in zip(own, made[at], strict=True)]


def _by(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """What goes with each key, in order."""
    found: dict[K, list[V]] = defaultdict(list)
    for key, one in pairs:
        found[key].append(one)
    return found


def _hash(salt: str, what: Any) -> bytes:
    return hashlib.blake2b(repr((salt, what)).encode()).digest()
