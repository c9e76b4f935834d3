"""Private and public relations. Closed: a new operator is a new class here and one `case` in each pass.

Every private relation carries, unseen, a non-NULL privacy unit for each row. Lowering keeps it in a column of its own; no expression can
name it unless the schema declares the unit's column. Rows are bags.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from dpquery.plan.inside import Frame, Placing, Reduction, Term
from dpquery.plan.scalar import Column, Scalar
from dpquery.values.types import Type


class Join(StrEnum):
    INNER = "inner"
    LEFT = "left"


class Merge(StrEnum):
    UNION_ALL = "union all"
    UNION = "union"
    INTERSECT = "intersect"
    EXCEPT = "except"


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a foreign-key path: `column` of the table at hand equals the registered unique, not-NULL `key` of the physical `table`."""

    column: str
    table: str
    key: str


@dataclass(frozen=True, slots=True)
class UnitPath:
    """Where a table's unit is found: physical `column`, in the table itself (no hops) or in the last hop's.

    `type` is the same all along the path: no casts.
    """

    column: str
    type: Type
    hops: tuple[Hop, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanColumn:
    column: Column
    physical: str


@dataclass(frozen=True, slots=True)
class Scan:
    """A private base table: its declared columns, canonicalised and totally cast; rows with a NULL unit or an orphaned path dropped.

    `max_rows_per_unit` as declared: 1 is a registered invariant, anything larger is a wish.
    `unique` holds ids of registered unique, not-NULL columns.
    `unit_columns` holds ids of columns that carry the unit itself, unmodified.
    """

    table: str
    physical: str
    columns: tuple[ScanColumn, ...]
    unit: UnitPath
    max_rows_per_unit: int | None = None
    unique: frozenset[int] = frozenset()
    unit_columns: frozenset[int] = frozenset()


class Filling(StrEnum):
    """What fills a public relation between two releases of a statement: values that were released by then."""

    ROW = "row"  # one row at most
    KEYS = "keys"  # rows that all differ


@dataclass(frozen=True, slots=True)
class Public:
    """A public relation: `sql` reads declared public tables through allow-listed functions only; it becomes table `name` before the charge.

    Column i of the materialised table is called `c<i>` and belongs to `columns[i]`. With `filled`, `sql` only stands for what it will hold.
    """

    name: str
    sql: str
    columns: tuple[Column, ...]
    filled: Filling | None = None


@dataclass(frozen=True, slots=True)
class Keep:
    """The rows for which the predicate is true."""

    input: Private
    predicate: Scalar


@dataclass(frozen=True, slots=True)
class Compute:
    """Each row with further columns, all computed from the input's columns.

    Needed below the null side of an outer join, where inlining would change the answer.
    """

    input: Private
    items: tuple[tuple[Column, Scalar], ...]


@dataclass(frozen=True, slots=True)
class Lookup:
    """A private relation joined to a public one. LEFT keeps every private row.

    `fanout` is the most public rows that one private row can meet, computed from the public table before the charge (None: not yet).
    """

    input: Private
    public: Public
    join: Join
    on: Scalar | None
    fanout: int | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """Two private relations joined within each unit: the plan itself adds the equality of the two units to `on`. LEFT keeps every left row.

    `single` says that each right row meets at most one left row (or the reverse), so that the join cannot multiply rows: along a declared path, as
    one side has one row of each unit, or as it has groups and `on` compares each of their keys. No run looks at it again, and no price rests on it:
    it spares a cap on rows (R5) and lowers clamps (L9), and the statement enforces these as they are. Were it wrong, time and accuracy would suffer.
    """

    left: Private
    right: Private
    join: Join
    on: Scalar | None
    single: bool = False


@dataclass(frozen=True, slots=True)
class Semi:
    """The left rows that have a partner on the right (`negated`: that have none): a right row for which `on` is true.

    A private right row is a partner within the unit only: the plan itself adds the equality of the two units. The columns are the left ones.
    """

    left: Private
    right: Private | Public
    on: Scalar | None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Stack:
    """Two private relations merged, unit by unit: a row of either gives its values, `ours` or `theirs`, to `columns`.

    All but UNION ALL are of sets: rows that agree in their unit and in all columns are one.
    """

    left: Private
    right: Private
    columns: tuple[Column, ...]
    ours: tuple[Scalar, ...]
    theirs: tuple[Scalar, ...]
    how: Merge


@dataclass(frozen=True, slots=True)
class CapRows:
    """At most `rows` rows of each unit, chosen by a salted hash of the row, ties by all columns."""

    input: Private
    rows: int


@dataclass(frozen=True, slots=True)
class Group:
    """One row for each unit and each of its combinations of keys: the keys, and aggregates over the rows that have them.

    The plan itself adds the unit to the keys, so there is no row of nobody's and none without rows below. Without aggregates it is DISTINCT.
    """

    input: Private
    keys: tuple[Column, ...]
    items: tuple[tuple[Column, Reduction], ...]


@dataclass(frozen=True, slots=True)
class Windowed:
    """Each row with one more column: a window function over the rows of its unit that agree with it on `partition`.

    The plan itself adds the unit to the partition. Without a frame an aggregate goes over the whole of it.
    """

    input: Private
    column: Column
    item: Placing | Reduction
    partition: tuple[Column, ...]
    order: tuple[Term, ...]
    frame: Frame | None = None


Private = Scan | Keep | Compute | Lookup | Match | Semi | Stack | CapRows | Group | Windowed


def inputs(rel: Private) -> tuple[Private, ...]:
    """The private relations right below."""
    match rel:
        case Scan():
            return ()
        case Keep(input=below) | Compute(input=below) | Lookup(input=below) | CapRows(input=below) | Group(input=below) | Windowed(input=below):
            return (below,)
        case Match(left=left, right=right) | Stack(left=left, right=right):
            return (left, right)
        case Semi(left=left, right=right):
            return (left,) if isinstance(right, Public) else (left, right)
        case _:
            assert_never(rel)


def walk(rel: Private) -> Iterator[Private]:
    """The relation and all private relations below it, parents first."""
    yield rel
    for below in inputs(rel):
        yield from walk(below)


def output(rel: Private) -> tuple[Column, ...]:
    """The columns that an expression above the relation may read, in a fixed order."""
    match rel:
        case Scan(columns=cols):
            return tuple(c.column for c in cols)
        case Keep(input=below) | CapRows(input=below) | Semi(left=below):
            return output(below)
        case Compute(input=below, items=items):
            return (*output(below), *(column for column, _ in items))
        case Lookup(input=below, public=public):
            return (*output(below), *public.columns)
        case Match(left=left, right=right):
            return (*output(left), *output(right))
        case Windowed(input=below, column=column):
            return (*output(below), column)
        case Group(keys=keys, items=items):
            return (*keys, *(column for column, _ in items))
        case Stack(columns=columns):
            return columns
        case _:
            assert_never(rel)


def publics(rel: Private) -> Iterator[Public]:
    """The public relations that the relation and those below it read."""
    for below in walk(rel):
        match below:
            case Lookup(public=public) | Semi(right=Public() as public):
                yield public
            case _:
                pass
