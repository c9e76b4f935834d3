"""Private relations as SQL: one named subquery per operator, each row with its unit in column `u` and plan columns by id.

Rows without a unit end at the scan: a NULL unit, and a path that finds no parent. Joins take the unit of a side that has one, so no operator
ever sees a row that belongs to nobody. Columns that nothing above reads are not carried, except to a cap on rows, whose choice reads them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from dpquery.backends import names
from dpquery.backends.inside import framed, placed, reduced
from dpquery.backends.scalar import scan, sql
from dpquery.backends.values import type_name
from dpquery.plan.inside import Placing, parts, total
from dpquery.plan.rel import (
    CapRows,
    Compute,
    Group,
    Join,
    Keep,
    Lookup,
    Match,
    Merge,
    Private,
    Public,
    Scan,
    Semi,
    Stack,
    UnitPath,
    Windowed,
    output,
    walk,
)
from dpquery.plan.scalar import Column, Scalar, columns

Ids = frozenset[int]


@dataclass(slots=True)
class Script:
    """The statement as far as it is written: named subqueries, each reading earlier ones, and the salt of its choices.

    `bare` are columns of scans that need no canonical form, as nothing reads them but what takes any double.
    """

    salt: int
    steps: list[str] = field(default_factory=list)
    count: int = 0
    bare: Ids = frozenset()

    def add(self, select: str, name: str | None = None) -> str:
        """The name under which later steps read the subquery."""
        if name is None:
            self.count += 1
            name = f"r{self.count}"
        self.steps.append(f"{name} AS ({select})")
        return name

    def chance(self, values: Iterable[str]) -> str:
        """A pseudo-random number that is a function of the values. The salt goes through a second hash: within one it would hardly matter.

        32 bits are enough, as callers break ties: with them unit, number and an integer are sorted as one key of fixed width, half again as fast.
        """
        return f"(hash(xor(hash({', '.join(values)}), {self.salt}::UBIGINT)) >> 32)::UINTEGER"

    def statement(self, select: str) -> str:
        """The whole of it."""
        return "WITH\n" + ",\n".join(self.steps) + "\n" + select if self.steps else select


def reads(scalars: Iterable[Scalar | None]) -> Ids:
    """Ids of the columns that the expressions read."""
    return frozenset(c.id for scalar in scalars if scalar is not None for c in columns(scalar))


def bare(rel: Private, alone: Ids) -> Ids:
    """Those of the columns that no operator of the relation reads, nor carries in whole rows that it compares."""
    read: Ids = frozenset()
    for below in walk(rel):
        match below:
            case Scan():
                pass
            case Keep(predicate=value):
                read |= reads([value])
            case Compute(items=items):
                read |= reads(value for _, value in items)
            case Lookup(on=on) | Match(on=on) | Semi(on=on):
                read |= reads([on])
            case Stack() | CapRows() | Group() | Windowed():
                return frozenset()
            case _:
                assert_never(below)
    return alone - read


def local(rel: Private) -> dict[int, str]:
    """The names of a relation's columns where it stands alone after FROM."""
    return {c.id: names.column(c.id) for c in output(rel)}


def lower(rel: Private, needed: Ids, script: Script) -> str:
    """The name of a subquery with columns `u` and `c<id>` for each needed id."""
    match rel:
        case Scan():
            return _scan(rel, needed, script)
        case Keep(input=below, predicate=predicate):
            source = lower(below, needed | reads([predicate]), script)
            return script.add(f"SELECT {_list(rel, needed)} FROM {source} WHERE {sql(predicate, local(below))}")
        case Compute(input=below, items=items):
            return _compute(rel, below, items, needed, script)
        case Lookup():
            return _lookup(rel, needed, script)
        case Match():
            return _match(rel, needed, script)
        case Semi():
            return _semi(rel, needed, script)
        case Stack():
            return _stack(rel, needed, script)
        case CapRows():
            return _cap_rows(rel, needed, script)
        case Group():
            return _group(rel, needed, script)
        case Windowed():
            return _windowed(rel, needed, script)
        case _:
            assert_never(rel)


def made(public: Public) -> str:
    """The statement that makes a public relation as a table, its columns canonical values of their declared types."""
    given = ", ".join(f"c{i}" for i in range(len(public.columns)))
    items = ", ".join(f"{scan(f's.c{i}', c.type)} AS c{i}" for i, c in enumerate(public.columns))
    return f"CREATE TABLE {names.public(public.name)} AS SELECT {items} FROM ({public.sql}) AS s({given})"


def _list(rel: Private, needed: Ids, given: Mapping[int, str] | None = None, unit: str = "u") -> str:
    """The select list of a relation's needed columns, in its own order; `given` says what each is called below."""
    items = [unit if unit == "u" else f"{unit} AS u"]
    for c in output(rel):
        if c.id in needed:
            name = names.column(c.id)
            below = name if given is None else given[c.id]
            items.append(name if below == name else f"{below} AS {name}")
    return ", ".join(items)


def _scan(rel: Scan, needed: Ids, script: Script) -> str:
    unit, joins = _path(rel.unit)
    items = {}
    for c in rel.columns:
        if c.column.id in needed:
            name = f"t.{names.quoted(c.physical)}"
            items[c.column.id] = f"TRY_CAST({name} AS {type_name(c.column.type)})" if c.column.id in script.bare else scan(name, c.column.type)
    return script.add(f"SELECT {_list(rel, needed, items, unit)} FROM {names.table(rel.physical)} AS t{joins} WHERE {unit} IS NOT NULL")


def _path(path: UnitPath) -> tuple[str, str]:
    """The unit's column and the joins that lead to it. Inner joins: a row whose path finds no parent has no unit."""
    joins, at = "", "t"
    for i, hop in enumerate(path.hops, 1):
        joins += f" JOIN {names.table(hop.table)} AS h{i} ON {at}.{names.quoted(hop.column)} = h{i}.{names.quoted(hop.key)}"
        at = f"h{i}"
    return f"{at}.{names.quoted(path.column)}", joins


def _compute(rel: Compute, below: Private, items: tuple[tuple[Column, Scalar], ...], needed: Ids, script: Script) -> str:
    used = [(column, scalar) for column, scalar in items if column.id in needed]
    source = lower(below, needed | reads(scalar for _, scalar in used), script)
    given = local(below) | {column.id: sql(scalar, local(below)) for column, scalar in used}
    return script.add(f"SELECT {_list(rel, needed, given)} FROM {source}")


def _lookup(rel: Lookup, needed: Ids, script: Script) -> str:
    source = lower(rel.input, needed | reads([rel.on]), script)
    given = {c.id: f"l.{names.column(c.id)}" for c in output(rel.input)}
    given |= {c.id: f"p.c{i}" for i, c in enumerate(rel.public.columns)}
    public = f"{names.public(rel.public.name)} AS p"
    return script.add(f"SELECT {_list(rel, needed, given, 'l.u')} FROM {source} AS l {_join(rel.join)} {public} ON {_on(rel.on, given)}")


def _match(rel: Match, needed: Ids, script: Script) -> str:
    below = needed | reads([rel.on])
    left, right = lower(rel.left, below, script), lower(rel.right, below, script)
    given = {c.id: f"l.{names.column(c.id)}" for c in output(rel.left)}
    given |= {c.id: f"p.{names.column(c.id)}" for c in output(rel.right)}
    on = "l.u = p.u" if rel.on is None else f"l.u = p.u AND {_on(rel.on, given)}"
    return script.add(f"SELECT {_list(rel, needed, given, 'l.u')} FROM {left} AS l {_join(rel.join)} {right} AS p ON {on}")


def _semi(rel: Semi, needed: Ids, script: Script) -> str:
    """A condition on one side alone is no join's: the engine would try every pair."""
    read = reads([rel.on])
    given = {c.id: f"l.{names.column(c.id)}" for c in output(rel.left)}
    left, within = lower(rel.left, needed | (read & given.keys()), script), "l.u = p.u"
    if isinstance(rel.right, Public):
        right, within = names.public(rel.right.name), ""
        theirs = {c.id: f"p.c{i}" for i, c in enumerate(rel.right.columns)}
    else:
        theirs = {c.id: f"p.{names.column(c.id)}" for c in output(rel.right)}
        right = lower(rel.right, read & theirs.keys(), script)
    own = read & given.keys()
    on = " AND ".join(part for part in (within, "" if rel.on is None else _on(rel.on, given | theirs)) if part) or "TRUE"
    items = _list(rel, needed, given, "l.u")
    if within or (own and read & theirs.keys()):
        return script.add(f"SELECT {items} FROM {left} AS l {'ANTI' if rel.negated else 'SEMI'} JOIN {right} AS p ON {on}")
    some = f"(coalesce({on}, FALSE) AND EXISTS (SELECT 1 FROM {right}))" if own else f"EXISTS (SELECT 1 FROM {right} AS p WHERE {on})"
    return script.add(f"SELECT {items} FROM {left} AS l WHERE {'NOT ' if rel.negated else ''}{some}")


def _stack(rel: Stack, needed: Ids, script: Script) -> str:
    """Sets compare whole rows, and so carry all columns; the unit is one of them."""
    used = needed if rel.how is Merge.UNION_ALL else frozenset(c.id for c in rel.columns)
    branches = []
    for below, values in ((rel.left, rel.ours), (rel.right, rel.theirs)):
        taken = {c.id: value for c, value in zip(rel.columns, values, strict=True) if c.id in used}
        source = lower(below, reads(taken.values()), script)
        branches.append(f"SELECT {_list(rel, used, {i: sql(value, local(below)) for i, value in taken.items()})} FROM {source}")
    merged = script.add(f" {rel.how.upper()} ".join(branches))
    return merged if used == needed else script.add(f"SELECT {_list(rel, needed)} FROM {merged}")


def _join(join: Join) -> str:
    match join:
        case Join.INNER:
            return "JOIN"
        case Join.LEFT:
            return "LEFT JOIN"
        case _:
            assert_never(join)


def _on(on: Scalar | None, given: Mapping[int, str]) -> str:
    return "TRUE" if on is None else f"({sql(on, given)})"


def _cap_rows(rel: CapRows, needed: Ids, script: Script) -> str:
    """Rows that agree in all columns are alike to everything above, so which of them stays does not matter."""
    source = lower(rel.input, frozenset(c.id for c in output(rel)), script)
    row = [names.column(c.id) for c in output(rel)]
    order = [script.chance(["u", *row]), *(row or ["u"])]  # two sort keys at least: a single one is planned at twice the cost
    numbered = script.add(f"SELECT {', '.join(['u', *row])}, row_number() OVER (PARTITION BY u ORDER BY {', '.join(order)}) AS place FROM {source}")
    return script.add(f"SELECT {_list(rel, needed)} FROM {numbered} WHERE place <= {rel.rows:d}")


def _group(rel: Group, needed: Ids, script: Script) -> str:
    """Grouped by the unit before anything else: no group holds rows of two units."""
    used = [(column, item) for column, item in rel.items if column.id in needed]
    keys = [names.column(c.id) for c in rel.keys]
    source = lower(rel.input, frozenset(c.id for c in rel.keys) | reads(part for _, item in used for part in parts(item)), script)
    below = local(rel.input)
    items = [*keys, *(f"{reduced(item, below)} AS {names.column(column.id)}" for column, item in used)]
    return script.add(f"SELECT {', '.join(['u', *items])} FROM {source} GROUP BY {', '.join(['u', *keys])}")


def _windowed(rel: Windowed, needed: Ids, script: Script) -> str:
    """Partitioned by the unit before anything else. What tells equal rows apart is ordered by all columns, so that such rows are equal in all."""
    if rel.column.id not in needed:
        return lower(rel.input, needed, script)
    below = output(rel.input)
    item = rel.item
    own = reads([item.value] if isinstance(item, Placing) else parts(item)) | {c.id for c in (*rel.partition, *(t.column for t in rel.order))}
    ties = [names.column(c.id) for c in below] if total(item, rel.frame) else []
    source = lower(rel.input, frozenset(c.id for c in below) if ties else (needed | own) - {rel.column.id}, script)
    order = [f"{names.column(t.column.id)}{' DESC' if t.descending else ''} NULLS {'FIRST' if t.nulls_first else 'LAST'}" for t in rel.order]
    whole = rel.frame is None and not isinstance(item, Placing)
    terms = [] if whole else [*order, *(f"{name} NULLS LAST" for name in ties)]
    by = ", ".join(["u", *(names.column(c.id) for c in rel.partition)])
    frame = "" if rel.frame is None else f" {framed(rel.frame)}"
    over = f" OVER (PARTITION BY {by}{' ORDER BY ' + ', '.join(terms) if terms else ''}{frame})"
    given = local(rel.input)
    text = placed(item, given, over) if isinstance(item, Placing) else reduced(item, given, over)
    return script.add(f"SELECT {_list(rel, needed, given | {rel.column.id: text})} FROM {source}")
