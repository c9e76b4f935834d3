"""The two kinds of relation that FROM can hold, and what is known of a private one by lineage: ids, never names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from sqlglot import TokenType, exp
from sqlglot.tokens import Tokenizer

from dpquery.plan.draft import Affine, Combined, Constant, Either, Feed, Ratio
from dpquery.plan.intervals import interval
from dpquery.plan.rel import CapRows, Compute, Filling, Group, Join, Keep, Lookup, Match, Private, Public, Scan, Semi, Stack, Windowed, output
from dpquery.plan.scalar import Call, Column, Literal, Scalar, columns, conjuncts
from dpquery.privacy.locality import fixed
from dpquery.privacy.rows import rows_per_unit
from dpquery.sql.names import Field, Frame, Merged, Origin, Source, Statement
from dpquery.values.types import Kind, Type


@dataclass(frozen=True, slots=True)
class Open:
    """A public relation not yet joined to a private one: SQL over public tables whose columns c0, c1, .. are `columns`, in order.

    Of released values `sql` only stands for them, and `released` is where they come from, cast to the columns' types. `most`: how many rows lists
    of literals alone multiply to, those of a table counted as one.
    """

    sql: str
    columns: tuple[Column, ...]
    frame: Frame
    tables: tuple[str, ...]
    released: Released | None = None
    most: int = 1


@dataclass(frozen=True, slots=True)
class Bound:
    """A private relation. `kept` names public relations all of whose rows the text keeps (RIGHT JOIN): only a list of keys can honour that."""

    rel: Private
    frame: Frame
    kept: frozenset[str] = frozenset()


Side = Open | Bound
Bar = Affine | Ratio | Combined | Constant | Either | None


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of released values: its type where it is known, whether there is noise in it, and how its error bar follows from aggregates.

    `missing`: why it may be NULL, as of `Output`.
    """

    name: str
    type: Type | None = None
    noisy: bool = False
    bar: Bar = None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Released:
    """A relation of released values: SQL over noisy tables, its columns c0, c1, .. as `cells`, then the row numbers of those in `rows`.

    A row number's column is called as its table appears; `rows` says of which table it is. `single`: it surely has one row at most. `unique`: places
    of columns that surely tell its rows apart; None where none are known. `unsure`: which rows it has hangs on noisy values.
    """

    sql: str
    cells: tuple[Cell, ...]
    rows: tuple[tuple[str, str], ...] = ()
    single: bool = False
    unique: frozenset[int] | None = None
    most: int = 1  # as of `Open`
    unsure: bool = False


def substituted(frame: Frame, new: Mapping[Scalar, Scalar]) -> Frame:
    """The frame with values replaced."""
    sources = tuple(Source(s.alias, tuple(Field(f.name, new.get(f.value, f.value)) for f in s.fields), s.place) for s in frame.sources)
    return Frame(sources, tuple(Merged(m.name, new.get(m.value, m.value), m.places) for m in frame.merged))


def closed(statement: Statement, side: Open) -> tuple[Public, Frame]:
    """The public relation under a name of its own, and the frame whose columns say that they come from it. Released values are noted to be fed."""
    name = f"public_{next(statement.publics)}"
    renamed: dict[Scalar, Scalar] = {column: replace(column, public=name) for column in side.columns}
    columns = tuple(column for column in renamed.values() if isinstance(column, Column))
    filled = None if side.released is None else Filling.ROW if side.released.single else Filling.KEYS
    if side.released is not None and filled is not None:
        statement.feeds.append(feed(statement, name, side.released.sql, tuple(c.type for c in columns), filled))
    return Public(name, side.sql, columns, filled), substituted(side.frame, renamed)


def feed(statement: Statement, name: str, sql: str, types: tuple[Type, ...], filling: Filling) -> Feed:
    """What fills the public relation of this name, with the noisy tables that it comes from."""
    known = {block.name for block in statement.blocks}
    read = (token.text for token in Tokenizer().tokenize(sql) if token.token_type is TokenType.VAR)
    return Feed(name, sql, types, filling, tuple(sorted(known.intersection(read))))


def distinct(statement: Statement, made: Public, places: Sequence[int]) -> Public:
    """The different rows that the public relation has in these columns."""
    items = ", ".join(f"c{place}" for place in places)
    for i, one in enumerate(statement.feeds):
        if one.public == made.name:
            sql = f"SELECT DISTINCT {items} FROM ({one.sql}) AS q({', '.join(f'c{j}' for j in range(len(one.types)))})"
            statement.feeds[i] = replace(one, sql=sql, types=tuple(one.types[place] for place in places))
    return replace(made, sql=f"SELECT DISTINCT {items} FROM ({made.sql}) AS q", columns=tuple(made.columns[place] for place in places))


def computed(statement: Statement, side: Bound) -> Bound:
    """The same relation with every visible expression as a column of its own: what the null side of an outer join needs."""
    items: dict[Scalar, Scalar] = {}
    for value in [f.value for s in side.frame.sources for f in s.fields] + [m.value for m in side.frame.merged]:
        if not isinstance(value, Column) and value.type.kind is not Kind.NULL and value not in items:
            items[value] = as_column(statement, "x", value)
    if not items:
        return side
    made = tuple((column, value) for value, column in items.items() if isinstance(column, Column))
    return Bound(Compute(side.rel, made), substituted(side.frame, items), side.kept)


def as_column(statement: Statement, name: str, value: Scalar) -> Column:
    """A new column that will hold the expression, with the bounds of interval arithmetic as its default."""
    return Column(next(statement.ids), name, value.type, declared=interval(value) if value.type.numeric else None)


MOST_PAIRS = 10_000_000
MOST_WRITTEN = 500_000  # characters


def check_written(statement: Statement, text: str) -> None:
    """Refused where a relation above the noise is too long a text: one that reads another twice is twice as long."""
    if len(text) > MOST_WRITTEN:
        message = f"a query above the noise, with all that it reads written out in it, has more than {MOST_WRITTEN:,} characters"
        raise statement.refuse("TOO_COMPLEX", message, None, "fewer uses of WITH queries that read each other")


def check_product(statement: Statement, left: int, right: int, node: exp.Expr) -> None:
    """Refuses lists of literals that multiply beyond measure: whatever a condition keeps, the engine may look at each pair of rows."""
    if left * right > MOST_PAIRS:
        message = f"lists of literals joined with one another have more than {MOST_PAIRS:,} pairs of rows"
        raise statement.refuse("PUBLIC_TOO_LARGE", message, node, "one list of the rows that are needed, or a declared public table")


# ---- lineage -------------------------------------------------------------------------------------------------------------------------


def firm(rel: Private) -> frozenset[int]:
    """Ids of the columns that no outer join can have set to NULL."""
    match rel:
        case Scan(columns=cols):
            return frozenset(c.column.id for c in cols)
        case Keep(input=below) | CapRows(input=below) | Semi(left=below):
            return firm(below)
        case Windowed(input=below, column=column):
            return firm(below) | {column.id}
        case Compute(input=below, items=items):
            return firm(below) | {column.id for column, _ in items}
        case Lookup(input=below, public=public, join=join):
            return firm(below) | {c.id for c in public.columns} if join is Join.INNER else firm(below)
        case Match(left=left, right=right, join=join):
            return firm(left) | firm(right) if join is Join.INNER else firm(left)
        case Group(input=below, keys=keys, items=items):
            return (firm(below) & {c.id for c in keys}) | {column.id for column, _ in items}
        case Stack(left=left, right=right, columns=made, ours=ours, theirs=theirs):
            first, second = firm(left), firm(right)
            return frozenset(c.id for c, one, other in zip(made, ours, theirs, strict=True) if _steady(one, first) and _steady(other, second))
        case _:
            assert_never(rel)


def _steady(value: Scalar, known: frozenset[int]) -> bool:
    return value.id in known if isinstance(value, Column) else not (isinstance(value, Literal) and value.value is None)


def facts(rel: Private, kept: frozenset[str] = frozenset(), through: bool = False) -> tuple[Scalar, ...]:
    """Conditions that are true in every row. What ON says about a kept public relation does not count: its other rows stay as keys.

    `through`: those as well that are true of the rows of each group, though they read what is no key.
    """
    match rel:
        case Scan() | Stack():
            return ()
        case Keep(input=below, predicate=predicate):
            return (*facts(below, kept, through), *conjuncts(predicate))
        case Compute(input=below) | CapRows(input=below) | Semi(left=below) | Windowed(input=below):
            return facts(below, kept, through)
        case Lookup(input=below, public=public, join=join, on=on):
            holds = join is Join.INNER and public.name not in kept
            return (*facts(below, kept, through), *(conjuncts(on) if holds else ()))
        case Match(left=left, right=right, join=join, on=on):
            inner = (*facts(right, kept, through), *conjuncts(on)) if join is Join.INNER else ()
            return (*facts(left, kept, through), *inner)
        case Group(input=below, keys=keys):
            return tuple(fact for fact in facts(below, kept, through) if through or columns(fact) <= set(keys))
        case _:
            assert_never(rel)


def unique(rel: Private) -> frozenset[int]:
    """Ids of columns whose values still differ in all rows of a unit that have one."""
    match rel:
        case Scan(unique=declared, unit_columns=own, max_rows_per_unit=most):
            return declared | own if most == 1 else declared
        case Keep(input=below) | CapRows(input=below) | Compute(input=below) | Semi(left=below) | Windowed(input=below):
            return unique(below)
        case Lookup() | Stack():
            return frozenset()
        case Match(left=left, right=right, on=on):
            once = unique(left) if one_each(right, conjuncts(on)) else frozenset()
            return once | unique(right) if one_each(left, conjuncts(on)) else once
        case Group(input=below, keys=keys):
            own = frozenset(c.id for c in keys)
            rest = own - fixed(below)
            return (unique(below) & own) | (rest if len(rest) == 1 else frozenset())
        case _:
            assert_never(rel)


def one_each(rel: Private, conditions: Iterable[Scalar]) -> bool:
    """Whether a row of the other side of a join within the unit meets at most one row of this one."""
    if rows_per_unit(rel) == 1:
        return True
    keys, own = unique(rel), {column.id for column in output(rel)}
    pairs = [pair for pair in map(equality, conditions) if pair is not None]
    return any((a.id in keys and b.id not in own) or (b.id in keys and a.id not in own) for a, b in pairs)


def equality(condition: Scalar) -> tuple[Column, Column] | None:
    """The two columns of a plain `a = b` of two unmodified columns of one type."""
    match condition:
        case Call(function="eq", args=(Column() as left, Column() as right)) if left.type == right.type:
            return left, right
        case _:
            return None


def fixes_unit(statement: Statement, condition: Scalar, left: frozenset[int], right: frozenset[int]) -> frozenset[tuple[str, ...]]:
    """Why an equality between columns of the two sides proves that both rows have the same unit: the unit itself, or a declared path. Or nothing."""
    pair = equality(condition)
    if pair is None:
        return frozenset()
    one, other = pair
    if not ((one.id in left and other.id in right) or (one.id in right and other.id in left)):
        return frozenset()
    none = Origin("", "", frozenset())
    return statement.origins.get(one.id, none).fixes & statement.origins.get(other.id, none).fixes


def moved(bar: Bar, names: Mapping[str, str]) -> Bar:
    """The error bar with tables under other names; "" is the name of a table that is not named."""

    def called(aggregate: str) -> str:
        alias, _, own = aggregate.rpartition(".")
        return f"{names[alias]}.{own}" if alias in names else aggregate

    match bar:
        case Affine():
            return replace(bar, aggregate=called(bar.aggregate))
        case Ratio():
            return replace(bar, top=called(bar.top), bottom=called(bar.bottom))
        case Combined():
            return replace(bar, parts=tuple(part for part in (moved(one, names) for one in bar.parts) if part is not None))
        case Either():
            return Either(tuple(moved(one, names) for one in bar.branches))
        case Constant() | None:
            return bar
        case _:
            assert_never(bar)
