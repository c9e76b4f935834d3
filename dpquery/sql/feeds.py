"""Released values on the private side of a later release: a value, as a literal that is known when its time comes; rows, as a list of keys.

In the plan they are a public relation, which is filled between the two releases: bounds, caps and price see columns, never values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.rel import Filling, Public
from dpquery.plan.release import Key, KeySource
from dpquery.plan.scalar import Column
from dpquery.sql import indexed
from dpquery.sql.env import Env
from dpquery.sql.lift import Lifter
from dpquery.sql.names import Field, Frame, Source, Statement, column_name
from dpquery.sql.over import Flat
from dpquery.sql.public import cast_to
from dpquery.sql.refuse import place
from dpquery.sql.sides import Cell, Open, Released, feed
from dpquery.sql.titles import label
from dpquery.values.types import BOOLEAN, FLOAT, INTEGER, Kind, Type


class Readers(Protocol):
    """Who reads what stands above the noise."""

    def scalar(self, node: exp.Expr, env: Env) -> Released:
        """A subquery that is a value."""

    def inner(self, node: exp.Expr, outer: Lifter | None, rows: bool, env: Env) -> Released:
        """A subquery above the noise, which may read the row around it: a value, or (`rows`) any number of rows."""

    def releases(self, node: exp.Expr, env: Env) -> bool:
        """Whether a subquery's rows are released ones."""


# ---- a value -------------------------------------------------------------------------------------------------------------------------


def value(statement: Statement, frame: Frame, node: exp.Expr, env: Env, readers: Readers) -> tuple[Public, Column]:
    """The released value of a subquery: a public relation of one row that is filled later, and its column."""
    kind, released = _typed(statement, _read(statement, frame, node, env, readers), node)
    name = f"public_{next(statement.publics)}"
    column = Column(next(statement.ids), "value", kind)
    statement.feeds.append(replace(feed(statement, name, _one_row(released.sql, kind), (kind,), Filling.ROW), label=label(node)))
    return Public(name, f"SELECT {cast_to('NULL', kind)} AS c0", (column,), Filling.ROW), column


def _one_row(sql: str, kind: Type) -> str:
    """The value, NULL where there is none."""
    return f"SELECT {cast_to('c0', kind)} AS c0 FROM (SELECT 1 AS one) LEFT JOIN (SELECT c0 FROM ({sql}) LIMIT 1) ON TRUE"


def _read(statement: Statement, frame: Frame, node: exp.Expr, env: Env, readers: Readers) -> Released:
    """The subquery's value. One that reads a column of the SELECT around it is refused as such: the name is known, but not there."""
    try:
        return readers.scalar(node, env)
    except Refused as wrong:
        if wrong.code not in ("UNKNOWN_COLUMN", "UNKNOWN_TABLE"):
            raise
        for below in node.find_all(exp.Column):
            if place(below) == wrong.position and frame.find(*column_name(below, statement.source)):
                message = f"the subquery reads {below.name!r} of the SELECT around it: a value for each row, where one for all can be released"
                instead = "a subquery that reads nothing around it; of one person's rows a join with (SELECT unit, AVG(x) AS a FROM .. GROUP BY unit)"
                raise statement.refuse("CORRELATED_VALUE", message, below, instead) from None
        raise


def _typed(statement: Statement, released: Released, node: exp.Expr) -> tuple[Type, Released]:
    (cell,) = released.cells
    kind = _kind(cell)
    if cell.type is not None and cell.type.kind is Kind.LIST:
        raise indexed.misplaced(statement, node)
    if kind is None:
        raise statement.refuse("SCALAR_SUBQUERY", "the type of this released value is not known", node, "an aggregate, or a key of GROUP BY")
    return kind, released


def _kind(cell: Cell) -> Type | None:
    """The type of a released column: its aggregate's or key's, a double where it is computed from these; None where it is not known, and of lists."""
    kind = cell.type or (FLOAT if cell.noisy else None)
    return None if kind is None or kind.kind in (Kind.INTERVAL, Kind.NULL, Kind.LIST) else kind


# ---- rows ----------------------------------------------------------------------------------------------------------------------------


def listed(statement: Statement, rows: Flat) -> Open:
    """Released rows as a public relation that is not filled yet. Columns whose type is not known are left out."""
    (source,) = rows.frame.sources
    kinds = {i: kind for i, cell in enumerate(rows.cells) if (kind := _kind(cell)) is not None}
    if not kinds:  # all that can be told of them is that they exist
        frame = Frame((Source(source.alias, (), source.place),))
        one = Column(next(statement.ids), "", BOOLEAN)
        return Open("SELECT TRUE AS c0 WHERE FALSE", (one,), frame, (), Released(f"SELECT TRUE AS c0 FROM ({rows.sql}) AS f", (), (), rows.single))
    called = {i: f.name for i, f in enumerate(source.fields)}
    made = tuple(Column(next(statement.ids), called[i], kind) for i, kind in kinds.items())
    items = ", ".join(f"{cast_to(f'c{i}', kind)} AS c{j}" for j, (i, kind) in enumerate(kinds.items()))
    nothing = ", ".join(f"{cast_to('NULL', kind)} AS c{j}" for j, kind in enumerate(kinds.values()))
    places = {i: j for j, i in enumerate(kinds)}
    unique = None if rows.unique is None or not rows.unique <= places.keys() else frozenset(places[i] for i in rows.unique)
    released = Released(f"SELECT {items} FROM ({rows.sql}) AS f", (), (), rows.single, unique)
    frame = Frame((Source(source.alias, tuple(Field(c.name, c) for c in made), source.place),))
    return Open(f"SELECT {nothing} WHERE FALSE", made, frame, (), released)


def key_table(statement: Statement, keys: Sequence[Key], sources: Sequence[KeySource], node: exp.Expr) -> Public | None:
    """What will hold the key list, where one of its sources is filled between the releases; None where none is."""
    later = [source for source in sources if source.public is not None and source.public.filled is not None]
    if not later:
        return None
    if len(later) > 1:
        message = "the groups are listed by two released lists"
        raise statement.refuse("RELEASED_JOIN", message, node, "both lists joined in one subquery, (SELECT .. FROM a CROSS JOIN b)")
    columns = (Column(next(statement.ids), "k", INTEGER), *(Column(next(statement.ids), key.name, key.type) for key in keys))
    nothing = ", ".join(f"{cast_to('NULL', c.type)} AS c{i}" for i, c in enumerate(columns))
    return Public(f"public_{next(statement.publics)}", f"SELECT {nothing} WHERE FALSE", columns, Filling.KEYS)
