"""Released values on the private side of a later release: a subquery in WHERE that is a value, as a literal that is known when its time comes.

In the plan it is the only row of a public relation, which is filled between the two releases: bounds, caps and price see a column, never the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from dpquery.plan.draft import Feed
from dpquery.plan.rel import Join, Lookup, Public
from dpquery.plan.scalar import Column
from dpquery.sql.names import Field, Frame, Source, Statement
from dpquery.sql.public import cast_to
from dpquery.sql.select import Env
from dpquery.sql.sides import Bound, Released
from dpquery.sql.titles import label
from dpquery.values.types import FLOAT, Kind, Type


class Readers(Protocol):
    """Who reads what stands above the noise."""

    def scalar(self, node: exp.Expr, env: Env) -> Released:
        """A subquery that is a value."""

    def releases(self, node: exp.Expr, env: Env) -> bool:
        """Whether a subquery's rows are released ones."""


def fed(statement: Statement, side: Bound, where: exp.Expr | None, env: Env, readers: Readers) -> tuple[Bound, exp.Expr | None, tuple[Feed, ...]]:
    """The relation with a column for each released value in WHERE, WHERE with these columns in their places, and how the values come about."""
    if where is None or not any(readers.releases(one, env) for one in _values(where)):
        return side, where, ()
    holder = exp.paren(where)  # a copy
    pairs = [(old, new) for old, new in zip(_values(where), _values(holder.this), strict=True) if readers.releases(old, env)]
    feeds = []
    for i, (old, new) in enumerate(pairs):
        kind, released = _typed(statement, readers.scalar(old, env), old)
        name, spelled = f"public_{next(statement.publics)}", f"\0{i}"  # which no statement can spell
        column = Column(next(statement.ids), spelled, kind)
        rel = Lookup(side.rel, Public(name, f"SELECT {cast_to('NULL', kind)} AS c0", (column,)), Join.INNER, None)
        side = replace(side, rel=rel, frame=Frame((*side.frame.sources, Source("", (Field(spelled, column),), -1 - i)), side.frame.merged))
        feeds.append(Feed(name, f"SELECT {cast_to('c0', kind)} AS c0 FROM ({released.sql}) LIMIT 1", kind, label(old)))
        made = exp.column(spelled, quoted=True)
        made.meta.update(old.meta)
        new.replace(made)
    return side, holder.this, tuple(feeds)


def _values(node: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost subqueries that stand for values."""
    for below in list(node.walk(prune=lambda one: isinstance(one, exp.Query | exp.Subquery))):
        if isinstance(below, exp.Subquery) and not isinstance(below.parent, exp.In | exp.Exists | exp.Any | exp.All):
            yield below


def _typed(statement: Statement, released: Released, node: exp.Expr) -> tuple[Type, Released]:
    """The value's type: its aggregate's or key's, a double where it is computed from these."""
    (cell,) = released.cells
    kind = cell.type or (FLOAT if cell.noisy else None)
    if kind is None or kind.kind in (Kind.INTERVAL, Kind.NULL):
        raise statement.refuse("SCALAR_SUBQUERY", "the type of this released value is not known", node, "an aggregate, or a key of GROUP BY")
    return kind, released
