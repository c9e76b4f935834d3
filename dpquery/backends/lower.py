"""A bounded release as one SQL statement, and what that statement enforces.

rows -> integers -> key list -> cells per (unit, group) -> clamps -> cap on groups -> exact sums. The bounds come from the functions that
wrote them into the text, not from the plan's own account of itself: the price is derived from both, and they must agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from dpquery.backends import cells, names, relation, tree
from dpquery.backends.lists import numbered
from dpquery.backends.port import BoundedSQL
from dpquery.backends.relation import Script
from dpquery.backends.scalar import sql
from dpquery.backends.values import handed
from dpquery.plan.coerce import convert
from dpquery.plan.leading import led
from dpquery.plan.release import (
    WEIGHT_BITS,
    Bins,
    Bounding,
    CellBound,
    Elements,
    Enforced,
    GroupCap,
    Idle,
    Key,
    Keys,
    ListedKeys,
    NoKeys,
    Part,
    PrivateKeys,
    Release,
    ReleasedKeys,
    RowWeights,
    Units,
    UnitTable,
)
from dpquery.plan.scalar import Column
from dpquery.privacy.early import Early, early
from dpquery.privacy.rows import rows_per_unit
from dpquery.values.types import FLOAT

ONE_ROW = "each row is a cell: a unit has one at most"
EARLY = "rows are added up by unit before the join, which only says to which group a unit belongs"
IDLE = "rows are added up by unit and group; groups are not capped: {}"
CAPPED = "rows are added up by unit and group, then so many groups of each unit are kept"
WEIGHED = "rows are counted by unit, then added up by group, each with its unit's weight"


@dataclass(frozen=True, slots=True)
class _Table:
    """A subquery of the statement: its name, its group columns, and what its rows add."""

    name: str
    groups: tuple[str, ...]
    rows: tuple[cells.Addend, ...]
    places: tuple[cells.Places, ...]  # for each part the indices of its addends


def lower(release: Release, salt: int) -> BoundedSQL:
    """The statement that computes the release's exact, bounded sums; for a fixed salt it is a deterministic function of the data.

    Which plan it follows is decided by the release alone, so by what is public.
    """
    script, found = Script(salt), early(release.table)
    if _one_row(release.table):
        return _result(release, script, _by_rows(release, script), ONE_ROW)
    if found is not None:
        return _result(release, script, _by_units(release, found, script), EARLY)
    gathers = isinstance(release.table.bounding, GroupCap)
    table = _listed(_integers(release.table, script, gathers), release.keys, release.table.keys, script)
    match release.table.bounding:
        case GroupCap() as cap:
            way = IDLE.format(cap.idle) if cap.idle is not None else CAPPED
            return _result(release, script, _by_cells(release.table, table, cap, release.keys, script), way)
        case RowWeights(rows=most):
            return _result(release, script, _by_weights(release.table, table, most, script), WEIGHED)
        case _:
            assert_never(release.table.bounding)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Where the parts' cells stand, by which columns and how those of each part are added up (by its index), and what bounds them.

    `levels` select the parts of several integers. `late`: the groups are keys that are yet to be looked up in the list, where there is one.
    """

    source: str
    groups: tuple[str, ...]
    values: Mapping[int, str]
    bounding: Bounding
    cells: Mapping[int, CellBound]
    levels: tuple[str, ...] = ()
    late: bool = False


def _result(release: Release, script: Script, made: _Sums, way: str) -> BoundedSQL:
    """The last step: exact sums by group, and below them those of levels, a row for each bin."""
    sums = [f"{value}::HUGEINT AS p{i}" for i, value in made.values.items()]
    items = [*made.groups, *sums, *(f"NULL AS {name}" for name in tree.PLACE if made.levels)]
    selects = [f"SELECT {', '.join(items)} FROM {made.source}{_group_by(made.groups)}"]
    if made.levels and not made.values:
        selects = [f"SELECT DISTINCT {', '.join(items)} FROM {made.source}"] if made.groups else [f"SELECT {', '.join(items)}"]
    for number, level in enumerate(made.levels):
        name = script.add(level, f"level{number}")
        selects.append(f"SELECT {', '.join([*made.groups, *('NULL' for _ in sums), *tree.PLACE])} FROM {name}")
    if made.late and not isinstance(release.keys, NoKeys | PrivateKeys):
        selects = [_found(release, script.add(selects[0], "summed"), made)]
    chosen = led(release)
    bounds = tuple(replace(made.cells[i], led=i in chosen) for i in range(len(release.table.parts)))
    rows = release.keys.rows if isinstance(release.keys, ListedKeys) else None
    selecting, listed = _selecting(release, bounds), None if rows is None else len(rows)
    enforced = Enforced(made.bounding, bounds, selecting, keyed=bool(made.groups), listed=listed)
    numbers = tuple(part.numbers for part in release.table.parts)
    return BoundedSQL(script.statement(" UNION ALL ".join(selects)), enforced, rows, numbers, way, script.salt)


def _found(release: Release, summed: str, made: _Sums) -> str:
    """The sums of listed keys with the places of these; what belongs to other keys is dropped."""
    on, listed = _same(made.groups, release.keys, release.table.keys)
    sums = [f"r.p{i}" for i in made.values]
    return f"SELECT {', '.join(['l.k', *sums])} FROM {summed} AS r JOIN ({listed}) AS l ON {on}"


def _integers(table: UnitTable, script: Script, gathers: bool) -> _Table:
    """Each row with its unit, its keys in their canonical types, and what it adds to each part: `gathers` where rows are added up before a clamp."""
    given = relation.local(table.input)
    needed = relation.reads([*(k.value for k in table.keys), *(value for part in table.parts for value in part.reads)])
    script.bare = relation.bare(table.input, _any_double(table))
    source = relation.lower(table.input, needed, script)
    factors = [cells.factors(part) for part in table.parts]
    every = [one for several in factors for one in several]
    kinds = list(dict.fromkeys(cells.same_rows(one) for one in every))
    double = [gathers and cells.sums_as_doubles(kind, table.parts) for kind in kinds]
    firsts = [next(one for one in every if cells.same_rows(one) == kind) for kind in kinds]
    rows = tuple(cells.addend(first, given, as_double) for first, as_double in zip(firsts, double, strict=True))
    keys = tuple(f"k{i}" for i in range(len(table.keys)))
    items = ["u", *(f"{_key(k, given)} AS {name}" for k, name in zip(table.keys, keys, strict=True))]
    items += [f"{r.text} AS x{i}" for i, r in enumerate(rows) if r.text is not None]
    name = script.add(f"SELECT {', '.join(items)} FROM {source}", "row_values")
    return _Table(name, keys, rows, tuple(tuple(kinds.index(cells.same_rows(one)) for one in several) for several in factors))


def _any_double(table: UnitTable) -> frozenset[int]:
    """Columns that are read for nothing but their own grid units, which NaN has none of, and -0.0 those of 0."""
    units = [part.row.value for part in table.parts if isinstance(part.row, Units)]
    alone = {value.id for value in units if isinstance(value, Column) and value.type == FLOAT}
    wheres = [part.where for part in table.parts]
    values = [value for part in table.parts for value in part.reads if not (isinstance(part.row, Units) and value == part.row.value)]
    return frozenset(alone) - relation.reads([*(key.value for key in table.keys), *wheres, *values, *(u for u in units if not isinstance(u, Column))])


def _key(key: Key, given: Mapping[int, str]) -> str:
    """The key's canonical value, NULL where it cannot be handed over, so that no row can make the answer fail."""
    return handed(sql(convert(key.value, key.type), given), key.type)


def _listed(table: _Table, keys: Keys, columns: Sequence[Key], script: Script) -> _Table:
    """The rows whose key is in the list, with its place in the list as their only group; NULL is in the list where the list says so."""
    match keys:
        case NoKeys():
            return _Table(table.name, (), table.rows, table.places)
        case PrivateKeys():
            return table
        case ListedKeys() | ReleasedKeys():
            on, listed = _same(table.groups, keys, columns)
            xs = [f"r.x{i}" for i, r in enumerate(table.rows) if r.text is not None]
            name = script.add(f"SELECT {', '.join(['r.u', 'l.k', *xs])} FROM {table.name} AS r JOIN ({listed}) AS l ON {on}", "listed")
            return _Table(name, ("k",), table.rows, table.places)
        case _:
            assert_never(keys)


def _same(groups: Sequence[str], keys: Keys, columns: Sequence[Key]) -> tuple[str, str]:
    """Where the key of a row `r` is one of the list `l`, and that list, with places `k`. Where no value is NULL, plain equality is faster."""
    match keys:
        case ListedKeys(rows=rows):
            nullable = [any(row[i] is None for row in rows) for i in range(len(columns))]
            listed = numbered(rows, [key.type for key in columns])
        case ReleasedKeys(public=public):
            nullable = [True] * len(columns)
            values = ", ".join(f"c{i + 1} AS v{i}" for i in range(len(columns)))
            listed = f"SELECT c0 AS k, {values} FROM {names.public(public.name)}"
        case NoKeys() | PrivateKeys():
            raise ValueError("there is no list of keys")
        case _:
            assert_never(keys)
    same = ["IS NOT DISTINCT FROM" if null else "=" for null in nullable]
    return " AND ".join(f"r.{k} {sign} l.v{i}" for i, (k, sign) in enumerate(zip(groups, same, strict=True))), listed


def _one_row(table: UnitTable) -> bool:
    """Whether a unit has one row at most (L9), so that each row is a cell."""
    if not isinstance(table.bounding, GroupCap) or table.bounding.idle is None or any(isinstance(part.cell, Bins | Elements) for part in table.parts):
        return False
    return rows_per_unit(table.input) == 1


def _by_rows(release: Release, script: Script) -> _Sums:
    """Each row is a cell, clamped."""
    table = release.table
    rows = _integers(table, script, gathers=False)
    made = script.add(f"SELECT {', '.join([*rows.groups, *cells.alone(rows.rows, table.parts, rows.places)]) or '1'} FROM {rows.name}", "cells")
    bounded = {i: cells.cell(part, rows.rows, rows.places[i], single=True) for i, part in enumerate(table.parts)}
    values = ", ".join([*rows.groups, *(f"{b.text} AS v{i}" for i, b in bounded.items())])
    return _late(release, script.add(f"SELECT {values} FROM {made}", "clamped"), rows.groups, bounded)


def _by_units(release: Release, found: Early, script: Script) -> _Sums:
    """One cell per unit, clamped, before the join that says which group it belongs to."""
    table = release.table
    rows = _integers(replace(table, input=found.rows, keys=()), script, gathers=True)
    gathered = ", ".join(["u", *cells.gathered(rows.rows, table.parts, rows.places), *cells.products(table.parts, rows.rows, rows.places)])
    made = script.add(f"SELECT {gathered} FROM {rows.name} GROUP BY u", "cells")
    bounded = {i: cells.cell(part, rows.rows, rows.places[i]) for i, part in enumerate(table.parts)}
    name = script.add(f"SELECT {', '.join(['u', *(f'{b.text} AS v{i}' for i, b in bounded.items())])} FROM {made}", "clamped")
    beside = relation.lower(found.beside, relation.reads(key.value for key in table.keys), script)
    given = relation.local(found.beside)
    groups = tuple(f"k{i}" for i in range(len(table.keys)))
    keys = ", ".join(f"{_key(key, given)} AS {group}" for key, group in zip(table.keys, groups, strict=True))
    keyed = script.add(f"SELECT u, {keys} FROM {beside}", "keyed")
    values = ", ".join([*(f"r.{group}" for group in groups), *(f"c.v{i}" for i in bounded)])
    return _late(release, script.add(f"SELECT {values} FROM {name} AS c JOIN {keyed} AS r ON c.u = r.u", "joined"), groups, bounded)


def _late(release: Release, source: str, groups: tuple[str, ...], bounded: Mapping[int, cells.Bounded]) -> _Sums:
    """Cells of which a unit has one at most: whether their key is listed is asked of the sums."""
    cap = release.table.bounding
    if not isinstance(cap, GroupCap) or cap.idle is None:
        raise ValueError("a cap that may bite needs the list before it")
    _check_idle(cap, cap.idle, release.keys)
    bounds = {i: b.bound for i, b in bounded.items()}
    return _Sums(source, groups, {i: _sum(cells.wide(f"v{i}", bounds[i])) for i in bounds}, cap, bounds, late=True)


def _by_cells(table: UnitTable, rows: _Table, cap: GroupCap, keys: Keys, script: Script) -> _Sums:
    """One cell per unit and group, clamped; then at most so many groups per unit."""
    by = ", ".join(["u", *rows.groups])
    gathered = ", ".join([by, *cells.gathered(rows.rows, table.parts, rows.places), *cells.products(table.parts, rows.rows, rows.places)])
    made = script.add(f"SELECT {gathered} FROM {rows.name} GROUP BY {by}", "cells")
    sets = {i: part.cell.most for i, part in enumerate(table.parts) if isinstance(part.cell, Elements)}
    levels = tree.levels(table.parts, rows.places)
    apart = {*sets, *(level.part for level in levels)}
    bounded = {i: cells.cell(part, rows.rows, rows.places[i]) for i, part in enumerate(table.parts) if i not in apart}
    if rows.groups and cap.idle is None:
        bounded = {i: cells.narrow(one) for i, one in bounded.items()}
    counts = [f"n{place}" for place in dict.fromkeys(level.place for level in levels)]
    name = script.add(f"SELECT {', '.join([by, *counts, *(f'{b.text} AS v{i}' for i, b in bounded.items())])} FROM {made}", "clamped")
    own = [*(["u"] if apart else []), *rows.groups, *counts, *(f"v{i}" for i in bounded)]
    source, bounding = _capped(name, cap, rows.groups, keys, own, script)
    if apart:
        source = script.add(f"SELECT {', '.join(own)} FROM {source}", "kept")
    bounds, selects = {i: b.bound for i, b in bounded.items()}, list[str]()
    if levels:
        selects, found = tree.weighed(levels, rows.groups, rows.name, source, script)
        bounds |= found
    if sets:
        source, counted = _with_sets(rows, sets, source, list(bounded), script)
        bounds |= counted
    values = {i: f"count(DISTINCT d{i})" if i in sets else _sum(cells.wide(f"v{i}", bounds[i])) for i in sorted([*sets, *bounded])}
    return _Sums(source, rows.groups, values, bounding, bounds, tuple(selects))


def _sum(value: str) -> str:
    return f"coalesce(sum({value}), 0)"


def _with_sets(rows: _Table, sets: Mapping[int, int], kept: str, sums: Sequence[int], script: Script) -> tuple[str, dict[int, CellBound]]:
    """The cells that are kept, and below them the values of the sets: of each unit, in these groups, so many at most, chosen by chance."""
    every = [*(f"v{i}" for i in sums), *(f"d{i}" for i in sets)]
    selects = [_beside(rows.groups, every, {f"v{i}": f"v{i}" for i in sums}, kept)]
    by, found = ", ".join(["u", *rows.groups]), {}
    for i, most in sets.items():
        x = f"x{rows.places[i][0]}"
        seen = script.add(f"SELECT DISTINCT {by}, {x} AS d FROM {rows.name} WHERE {x} IS NOT NULL", f"seen{i}")
        order = f"{script.chance(['u', *rows.groups, 'd'])}, d"
        ranked = script.add(f"SELECT {by}, d, row_number() OVER (PARTITION BY {by} ORDER BY {order}) AS place FROM {seen}", f"ranked{i}")
        on = " AND ".join(["r.u = c.u", *(f"r.{k} IS NOT DISTINCT FROM c.{k}" for k in rows.groups)])
        items = ", ".join([*(f"r.{k}" for k in rows.groups), "r.d"])
        own = script.add(f"SELECT {items} FROM {ranked} AS r JOIN {kept} AS c ON {on} WHERE r.place <= {most:d}", f"set{i}")
        selects.append(_beside(rows.groups, every, {f"d{i}": "d"}, own))
        found[i] = CellBound(0, most, united=True)
    return script.add(" UNION ALL ".join(selects), "beside"), found


def _beside(groups: Sequence[str], every: Sequence[str], given: Mapping[str, str], source: str) -> str:
    """Rows of one kind, with NULL for what those of other kinds have."""
    items = [f"{given.get(name, 'NULL')} AS {name}" for name in every]
    return f"SELECT {', '.join([*groups, *items])} FROM {source}"


def _capped(name: str, cap: GroupCap, groups: tuple[str, ...], keys: Keys, own: Sequence[str], script: Script) -> tuple[str, GroupCap]:
    """The cells of at most so many groups per unit, chosen by chance; all of them where the cap is idle."""
    if cap.idle is not None:
        _check_idle(cap, cap.idle, keys)
        return name, cap
    if not groups:
        return name, cap
    order = ", ".join([script.chance(["u", *groups]), *groups])  # ties by key; a single sort key would be planned at twice the cost
    capped = script.add(f"SELECT {', '.join(own)}, row_number() OVER (PARTITION BY u ORDER BY {order}) AS place FROM {name}", "capped")
    return f"{capped} WHERE place <= {cap.groups:d}", GroupCap(groups=cap.groups)


def _check_idle(cap: GroupCap, why: Idle, keys: Keys) -> None:
    """Nothing, where the statement itself shows that the cap cannot bite; that a key depends on the unit is the plan's to prove."""
    match why:
        case Idle.NO_KEYS:
            shown = isinstance(keys, NoKeys)
        case Idle.ALL_KEYS:
            shown = isinstance(keys, ListedKeys) and len(keys.rows) <= cap.groups
        case Idle.UNIT_KEY:
            shown = cap.groups == 1
        case Idle.COMPARED:
            shown = isinstance(keys, ListedKeys) and len(keys.rows) <= cap.groups
        case _:
            assert_never(why)
    if not shown:
        raise ValueError("the cap on groups is not idle")


def _by_weights(table: UnitTable, rows: _Table, most: int, script: Script) -> _Sums:
    """Each row times its weight: those of a unit's n rows add up to at most `most` << 20."""
    scaled = f"(least(count(*), {most:d}) * {1 << WEIGHT_BITS:d}) // count(*)"
    weights = script.add(f"SELECT u, {scaled} AS w FROM {rows.name} GROUP BY u", "weights")
    bounded = [cells.weighted(part, rows.rows, places) for part, places in zip(table.parts, rows.places, strict=True)]
    values = ", ".join([*rows.groups, *(f"{b.text} AS v{i}" for i, b in enumerate(bounded))])
    name = script.add(f"SELECT {values} FROM {rows.name} JOIN {weights} USING (u)", "weighted")
    return _Sums(name, rows.groups, {i: _sum(f"v{i}") for i in range(len(bounded))}, RowWeights(most), {i: b.bound for i, b in enumerate(bounded)})


def _group_by(groups: Sequence[str]) -> str:
    return f" GROUP BY {', '.join(groups)}" if groups else ""


def _selecting(release: Release, bounds: tuple[CellBound, ...]) -> int | None:
    """The part whose count decides whether a private group appears: it must count each unit once at most."""
    if not isinstance(release.keys, PrivateKeys):
        return None
    chosen: Part = release.table.parts[release.keys.count]
    if bounds[release.keys.count] != CellBound(0, 1) or chosen.where is not None:
        raise ValueError("private groups are selected by a count of distinct units")
    return release.keys.count
