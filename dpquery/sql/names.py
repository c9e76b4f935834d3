"""What names mean: declared tables, the columns that FROM makes visible, lineage by id. Whatever is not declared does not exist."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count, takewhile

from sqlglot import exp

from dpquery.errors import Position, Refused
from dpquery.plan.draft import Block, Feed, Opened, Product
from dpquery.plan.scalar import Column, Interval, Scalar
from dpquery.schema.model import Column as Declared
from dpquery.schema.model import Schema, Table, ViaUnit
from dpquery.sql import scalar
from dpquery.sql.clause import Option
from dpquery.sql.fields import take
from dpquery.sql.quoting import near_name, written
from dpquery.sql.refuse import called_before, place, position_of, refuse

MADE = "made"  # in the meta of a column that stands in place of an aggregate, a window or a subquery: what holds its result
DOUBLED = "doubled"  # in the meta of an expression whose alias another one of the same SELECT has, too
MOST_WINDOWS = 64  # within a unit, with the expressions that they read: each is a step of its own, and the engine's planning is quadratic in them
MOST_RELATIONS = 64  # references to tables in one statement, those inside views and CTEs counted each time


def fold(name: str) -> str:
    """The name as the engine compares it: ASCII letters in lower case."""
    return name.translate(_LOWER)


_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a column of a private scan comes from, and the values that fix its row's unit when equal to those of a like column."""

    table: str
    column: str
    fixes: frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Statement:
    """What is known while one statement is read: its schema and text, its named arguments, and counters of what it has made so far."""

    schema: Schema
    source: str
    named: Mapping[int, tuple[Option, ...]]
    now: datetime.datetime | None = None
    clauses: Mapping[int, tuple[Option, ...]] = field(default_factory=dict)  # of OPTIONS, by the offset of their SELECT
    rows: int | None = None  # max_rows_per_group, where the statement sets it
    auto: bool = False  # whether bounds that it does not write are chosen from the data
    origins: dict[int, Origin] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)  # private tables it reads, by name
    ids: Iterator[int] = field(default_factory=count)
    publics: Iterator[int] = field(default_factory=lambda: count(1))
    relations: Iterator[int] = field(default_factory=lambda: count(1))
    windows: list[int] = field(default_factory=list)  # columns of windows below the noise, and of expressions that these read
    used: set[int] = field(default_factory=set)  # of `named`, those that an aggregate has read
    reports: set[int] = field(default_factory=set)  # of `used`, those with a report_format
    queries: set[int] = field(default_factory=set)  # WITH queries that were read, by id of their node
    blocks: list[Block] = field(default_factory=list)  # releases, those that others read first
    feeds: list[Feed] = field(default_factory=list)  # what the release that is being read takes from earlier ones
    opened: list[Opened] = field(default_factory=list)  # public relations that are read above the noise
    products: list[Product] = field(default_factory=list)  # of public relations, the inner ones first
    paired: list[Product] = field(default_factory=list)  # the same above the noise
    warnings: list[str] = field(default_factory=list)
    noisy: Iterator[int] = field(default_factory=count)  # numbers of noisy tables
    copies: Iterator[int] = field(default_factory=count)  # numbers of their appearances above the noise
    hidden: set[str] = field(default_factory=set)  # columns of released lists that nothing below the noise may read
    ends: dict[tuple[str, str], exp.Expr] = field(default_factory=dict)  # aggregates whose error bars are read, by table and name
    cards: dict[str, str] = field(default_factory=dict)  # of aggregates, by the appearance of their table and their name

    def refuse(self, code: str, message: str, node: exp.Expr | None = None, instead: str | None = None) -> Refused:
        """A refusal with its place in this statement."""
        called = None if node is None or isinstance(node.meta.get("start"), int) else called_before(node, self.source)
        position = None if called is None else position_of(called, self.source)
        return refuse(code, message, node=node, instead=instead, source=self.source, position=position)

    def spelled(self, node: exp.Expr) -> str:
        """How the text names a function, in capitals; the parser's name where the text is not at hand."""
        while isinstance(node, exp.WithinGroup):
            node = node.this
        start, end = node.meta.get("start"), node.meta.get("end")
        if isinstance(start, int) and isinstance(end, int):
            return self.source[start : end + 1].upper()[:40]
        called = called_before(node, self.source)
        return (called.group(1) if called else node.sql_name() if isinstance(node, exp.Func) else type(node).__name__).upper()

    def refuse_at(self, code: str, message: str, position: Position | None, instead: str | None = None) -> Refused:
        """A refusal at a given place in this statement."""
        return refuse(code, message, position=position, instead=instead, source=self.source)


@dataclass(frozen=True, slots=True)
class Field:
    """One visible column: its name as declared or given, and what it stands for."""

    name: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class Source:
    """One relation in FROM under its alias; `place` is its place in the text, from left to right."""

    alias: str
    fields: tuple[Field, ...]
    place: int = 0


@dataclass(frozen=True, slots=True)
class Merged:
    """A column that USING made one of several: its name, value, and the places of the sources whose columns it stands for."""

    name: str
    value: Scalar
    places: frozenset[int]


@dataclass(frozen=True, slots=True)
class Frame:
    """All that FROM makes visible."""

    sources: tuple[Source, ...]
    merged: tuple[Merged, ...] = ()

    def fields(self) -> tuple[Field, ...]:
        """What `*` means: every column once, in order; merged columns at the place of the first that they stand for."""
        found, seen = [], set()
        for source in self.sources:
            for item in source.fields:
                one = self._merged_at(item.name, source.place)
                if one is None:
                    found.append(item)
                elif fold(one.name) not in seen:
                    seen.add(fold(one.name))
                    found.append(Field(one.name, one.value))
        return tuple(found)

    def _merged_at(self, name: str, at: int) -> Merged | None:
        return next((m for m in self.merged if fold(m.name) == fold(name) and at in m.places), None)

    def find(self, name: str, table: str | None = None) -> tuple[Field, ...]:
        """The visible columns of this name: none, one, or several (ambiguous)."""
        if table is not None:
            return tuple(f for s in self.sources if fold(s.alias) == fold(table) for f in s.fields if fold(f.name) == fold(name))
        return tuple(f for f in self.fields() if fold(f.name) == fold(name))

    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields())


@dataclass(frozen=True, slots=True)
class Scope:
    """How names are read in one place: the frame first, then the aliases of SELECT where the engine looks there.

    In a subquery of a condition, `outer` is how the names of the rows outside are read: those that the subquery does not have itself.
    """

    frame: Frame
    statement: Statement
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    outer: Scope | None = None

    def over(self, frame: Frame) -> Scope:
        """The same names over other values."""
        return Scope(frame, self.statement, self.aliases, self.outer)

    def inside(self, node: exp.Column) -> bool:
        """Whether the frame itself has the name, or the rows what stands in its place."""
        if MADE in node.meta:
            return True
        name, table = column_name(node, self.source)
        if table is None:
            return bool(self.frame.find(name))
        return any(fold(s.alias) == fold(table) for s in self.frame.sources)

    @property
    def source(self) -> str:
        return self.statement.source

    @property
    def now(self) -> datetime.datetime:
        if self.statement.now is None:
            raise self.statement.refuse("CLOCK", "the time of asking is not known here", None, "a literal date or timestamp")
        return self.statement.now

    def position(self, node: exp.Expr) -> Position | None:
        return place(node)

    def column(self, node: exp.Column) -> Scalar:
        """What a column reference stands for. Refused: unknown (with near names), ambiguous, or qualified by more than a table."""
        if MADE in node.meta:
            made: Scalar = node.meta[MADE]
            return made
        found = self.find(node)
        if found is not None:
            return found.value
        name, table = column_name(node, self.source)
        if table is None and fold(name) in self.aliases:
            return scalar.read(meant(self.statement, node, self.aliases), self.before(fold(name)))
        raise self.unknown(node)

    def before(self, alias: str) -> Scope:
        """How the names in an alias's own expression are read: with the aliases before it."""
        return Scope(self.frame, self.statement, dict(takewhile(lambda one: one[0] != alias, self.aliases.items())))

    def find(self, node: exp.Column) -> Field | None:
        """The visible column that the reference names, if there is exactly one."""
        if MADE in node.meta:
            return Field("", node.meta[MADE])
        name, table = column_name(node, self.source)
        if self.outer is not None and not self.inside(node):
            return self.outer.find(node)
        if table is not None and not any(fold(s.alias) == fold(table) for s in self.frame.sources):
            known = [s.alias for s in self.frame.sources]
            raise self.statement.refuse(
                "UNKNOWN_TABLE", f"no table {table!r} in FROM{near_name(table, known)}", node, ", ".join(written(k) for k in known if k) or None
            )
        found = self.frame.find(name, table)
        if len(found) > 1:
            tables = [s.alias for s in self.frame.sources if any(fold(f.name) == fold(name) for f in s.fields)]
            if len(tables) < 2:  # one relation has the name twice
                raise self.statement.refuse(
                    "AMBIGUOUS_COLUMN", f"{len(found)} columns are called {name!r}", node, "a name of its own for each, x AS a"
                )
            named = " or ".join(f"{written(alias)}.{written(name)}" for alias in tables if alias)
            instead = named if all(tables) else f"an alias for each subquery, (SELECT ..) AS a, and a.{written(name)}"
            raise self.statement.refuse("AMBIGUOUS_COLUMN", f"column {name!r} is in several tables", node, instead)
        return found[0] if found else None

    def unknown(self, node: exp.Column) -> Refused:
        """The refusal of a name that nothing visible has."""
        name, table = column_name(node, self.source)
        names = [f.name for s in self.frame.sources if table is None or fold(s.alias) == fold(table) for f in s.fields]
        where = f" in {table!r}" if table is not None else ""
        known = ", ".join(written(one) for one in dict.fromkeys(names))[:200]
        if fold(name) in self.statement.hidden:
            message = f"of a released list private rows read its keys alone, and {name!r} is none that they are joined on"
            raise self.statement.refuse("RELEASED_JOIN", message, node, "conditions on it in a subquery of FROM, (SELECT key FROM .. WHERE ..)")
        message = f"no column {name!r}{where}{near_name(name, names)}"
        text = f"'{name}' in single quotes, if a text is meant; else " if table is None and quoted(node) and name.isprintable() else ""
        return self.statement.refuse("UNKNOWN_COLUMN", message, node, f"{text}one of {known}" if known else None)


def aliased(named: Iterable[tuple[str, exp.Expr]]) -> dict[str, exp.Expr]:
    """The items of SELECT by their folded aliases, in order; those without one are left out, and an alias of two expressions is marked."""
    found: dict[str, exp.Expr] = {}
    for name, node in named:
        note(found, name, node)
    return found


def note(aliases: dict[str, exp.Expr], name: str, node: exp.Expr) -> None:
    """One more item of SELECT among the aliases."""
    known = aliases.setdefault(fold(name), node) if name else node
    if known is not node and known != node:
        known.meta[DOUBLED] = True


def meant(statement: Statement, node: exp.Column, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
    """The expression whose alias the name is. Refused where two have it: engines differ in which of them they take."""
    found = aliases[fold(node.name)]
    if found.meta.get(DOUBLED):
        message = f"two columns of SELECT are called {node.name!r}"
        raise statement.refuse("AMBIGUOUS_COLUMN", message, node, "a name of its own for each")
    return found


def scratch(statement: Statement) -> Statement:
    """A copy to read something twice: nothing that is read into it counts."""
    fresh = replace(
        statement, tables={}, blocks=[], feeds=[], opened=[], warnings=[], noisy=count(), copies=count(), relations=count(1), origins={}, cards={}
    )
    return replace(fresh, products=[], paired=[], queries=set(), used=set(), ids=count(), publics=count(1))


def column_name(node: exp.Column, source: str) -> tuple[str, str | None]:
    """The column's and the table's name of a reference. Refuses `catalogue.schema.table.column` and a star."""
    this, table = take(node, "this", "table")
    if not isinstance(this, exp.Identifier):
        raise refuse("STAR", "a star stands for several columns and cannot be used here", node=node, instead="the columns by name", source=source)
    return identifier(this), None if table is None else identifier(table)


def identifier(node: exp.Identifier) -> str:
    """The name that an identifier spells."""
    name, _quoted = take(node, "this", "quoted")
    return str(name)


def quoted(node: exp.Column) -> bool:
    """Whether a reference is written in double quotes, as texts are in other languages."""
    this = take(node, "this", "table")[0]
    return isinstance(this, exp.Identifier) and bool(take(this, "this", "quoted")[1])


def declared(statement: Statement, name: str) -> Table | None:
    """The declared table of this name, whatever its case."""
    return next((t for n, t in statement.schema.tables.items() if fold(n) == fold(name)), None)


def view(statement: Statement, name: str) -> str | None:
    """The text of the schema's view of this name."""
    return next((text for n, text in statement.schema.views.items() if fold(n) == fold(name)), None)


def column(statement: Statement, declared_column: Declared, public: str | None = None) -> Column:
    """A plan column for one reference to a declared column: a fresh id, the schema's bounds as defaults."""
    low, high, step = declared_column.lower, declared_column.upper, declared_column.step
    bounds = None if low is None or high is None else Interval(Fraction(low), Fraction(high))
    return Column(
        id=next(statement.ids),
        name=declared_column.name,
        type=declared_column.type,
        declared=bounds,
        values=declared_column.values,
        public=public,
        step=None if step is None else Fraction(step),
        total=_total(declared_column),
    )


def _total(declared: Declared) -> Interval | None:
    most, low = declared.most_per_unit, declared.lower
    return None if most is None else Interval(Fraction(0) if low is not None and low >= 0 else -Fraction(most), Fraction(most))


def note_origins(statement: Statement, table: Table, columns: tuple[Column, ...]) -> None:
    """Remembers whose the columns of a private scan are."""
    statement.tables[table.name] = table
    for made in columns:
        statement.origins[made.id] = Origin(table.name, made.name, _fixes(table, made.name))


def _fixes(table: Table, name: str) -> frozenset[tuple[str, ...]]:
    """What equal values of this column and of another one with a common token here prove: that both rows have the same unit."""
    found: set[tuple[str, ...]] = set()
    match table.unit:
        case ViaUnit(via=via, table=parent, key=key) if via == name:
            found.add((parent, key))
        case str(unit) if unit == name:
            found.add(("unit",))
        case _:
            pass
    if table.columns[name].unique:
        found.add((table.name, name))
    return frozenset(found)
