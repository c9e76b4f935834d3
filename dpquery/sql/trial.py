"""A SELECT looked at before it is read: what its rows are and what its names mean, on a statement that nothing is kept of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.scalar import Column
from dpquery.privacy.locality import owning
from dpquery.sql import keys as grouping
from dpquery.sql.env import Env, named_item
from dpquery.sql.fields import take
from dpquery.sql.names import Field, Scope, Statement, aliased, scratch
from dpquery.sql.select import tables
from dpquery.sql.sides import Bound
from dpquery.sql.stars import star, unfolded
from dpquery.sql.statement import ALL
from dpquery.sql.titles import title


@dataclass(frozen=True, slots=True)
class Trial:
    """A SELECT of private rows: its items by the names of the outputs, what its columns mean."""

    statement: Statement
    side: Bound
    scope: Scope
    items: Sequence[tuple[str, exp.Expr]]
    aliases: Mapping[str, exp.Expr]

    def fields(self, node: exp.Expr) -> tuple[Field, ...]:
        """The columns that a key or an item is: of a star all of them, of an expression none."""
        stars = star(self.statement, node, self.scope.frame)
        if stars is not None:
            return stars
        found = self.scope.find(node) if isinstance(node, exp.Column) else None
        return () if found is None else (found,)

    def fixes(self, value: Column) -> bool:
        """Whether it is the unit, or a column that fixes it."""
        origins = self.statement.origins
        return value.id in owning(self.side.rel) or (value.id in origins and bool(origins[value.id].fixes))


def trial(statement: Statement, node: exp.Select, env: Env) -> Trial | None:
    """The SELECT, as far as FROM and the names in it go; None where its rows are not private. Raises what is wrong with it."""
    copy = scratch(statement)
    ctes, first, joins, items, _distinct, where = take(node, *ALL)[:6]
    side = tables(copy, first, joins or (), None if where is None else where.this, env.within(copy, ctes), node)
    if not isinstance(side, Bound):
        return None
    named = [named_item(copy, item) for item in unfolded(copy, items, side.frame)]
    return Trial(copy, side, Scope(side.frame, copy), [(name or title(one), one) for name, one in named], aliased(named))


def by_unit(statement: Statement, node: exp.Select, env: Env) -> bool:
    """Whether GROUP BY or DISTINCT has the unit, or a column that fixes it, among its keys: then each group is of one unit."""
    distinct, _where, group = take(node, *ALL)[4:7]
    try:
        found = trial(statement, node, env)
        if found is None:
            return False
        named = found.items if group is None else grouping.grouped(found.statement, group, found.items, found.scope)
        values = [] if group is None and distinct is None else [f for _, one in named for f in found.fields(one)]
    except Refused:
        return False
    return any(isinstance(f.value, Column) and found.fixes(f.value) for f in values)
