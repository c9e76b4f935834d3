"""Subqueries in expressions of private rows: what each stands for becomes a column of the rows, and the expression reads that.

Values of public tables and released values are public relations of one row. What is above the noise stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.rel import Join, Lookup, Private
from dpquery.plan.scalar import Scalar
from dpquery.sql import keys as grouping
from dpquery.sql import publicvalues
from dpquery.sql.correlated import Below, around, correlated
from dpquery.sql.env import Env
from dpquery.sql.markers import marked, ranked
from dpquery.sql.names import MADE, Scope, Statement
from dpquery.sql.peruser import is_reduction, outermost
from dpquery.sql.rowwise import conjunct_nodes
from dpquery.sql.semi import compared, condition_of, reads_outside, test_of
from dpquery.sql.sides import Bound, Side
from dpquery.sql.unitvalues import unit_value

Stands = Callable[[exp.Expr], Scalar | None]  # what a subquery stands for; None where it stays


class Clauses(NamedTuple):
    """The clauses of a SELECT that may read private rows: items with their names, and what stands above groups, if there are some."""

    items: tuple[tuple[str, exp.Expr], ...]
    group: exp.Group | None
    others: tuple[exp.Expr | None, ...]
    grouped: bool


def subqueries(node: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost subqueries that stand for values, and conditions on a subquery's rows."""
    for below in list(node.walk(prune=is_query)):
        if is_query(below) and not isinstance(below, exp.Select | exp.SetOperation):
            yield below


def is_query(node: exp.Expr) -> bool:
    """Whether the node is a subquery, or a condition on one's rows."""
    return isinstance(node, exp.Query | exp.Subquery) or condition_of(node) is not None


def seated(node: exp.Expr, stands: Stands) -> exp.Expr:
    """The expression with columns in place of its subqueries; a copy where there are some."""
    if next(subqueries(node), None) is None:
        return node
    holder = exp.paren(node)
    for old, new in list(zip(subqueries(node), subqueries(holder.this), strict=True)):
        value = stands(old)
        if value is not None:
            column = exp.Column(this=exp.to_identifier(old.sql(dialect="duckdb", comments=False), quoted=False))
            column.meta.update(old.meta)
            column.meta[MADE] = value
            new.replace(column)
    found: exp.Expr = holder.this
    return found


@dataclass(slots=True)
class Seats:
    """The rows, with a column for each subquery that was read so far; equal ones share it."""

    statement: Statement
    side: Bound
    env: Env
    below: Below
    outer: Scope | None = None
    made: dict[exp.Expr, Scalar | None] = field(default_factory=dict)

    def seated(self, node: exp.Expr) -> exp.Expr:
        """An expression of these rows."""
        return seated(node, self._stands)

    def where(self, node: exp.Expr | None) -> tuple[exp.Expr, ...]:
        """The conditions of WHERE. Those on a subquery's rows that are conditions of their own are no expressions of a row."""
        return tuple(one if self._alone(one) else self.seated(one) for one in conjunct_nodes(node))

    def _alone(self, node: exp.Expr) -> bool:
        """Whether partners are looked for among the rows themselves. Of public rows that are the same for all the least or greatest says as much."""
        test = condition_of(node)
        if test is None or test.sign == "eq" or self.env.lists is None:
            return test is not None
        return reads_outside(test.query) or not self.env.lists.open(test.query, self.env)

    def clauses(self, given: Clauses) -> Clauses:
        """The clauses, as far as they read rows below the groups: keys, and what is inside aggregates."""
        nodes = [*(node for _, node in given.items), *given.others, given.group]
        if not any(node is not None and next(subqueries(node), None) for node in nodes):
            return given
        if not given.grouped:
            items = tuple((name, self.seated(node)) for name, node in given.items)
            return given._replace(items=items, others=tuple(None if node is None else self.seated(node) for node in given.others))
        keys = self._keys(given)
        items = tuple((name, self._within(node, keys)) for name, node in given.items)
        others = tuple(None if node is None else self._within(node, keys) for node in given.others)
        group = None if given.group is None else self.seated(given.group)
        if group is not None and not isinstance(group, exp.Group):
            raise AssertionError("GROUP BY stays what it is")
        return Clauses(items, group, others, True)

    def over(self, rel: Private, node: exp.Expr) -> tuple[Private, exp.Expr]:
        """The same over rows of one unit's groups."""
        other = Seats(self.statement, replace(self.side, rel=rel), self.env, self.below)
        found = seated(node, lambda one: other._stands(one) if isinstance(one, exp.Subquery) else None)
        return other.side.rel, found

    def _keys(self, given: Clauses) -> frozenset[exp.Expr]:
        """The expressions that are keys."""
        if given.group is None:
            return frozenset()
        named = grouping.grouped(self.statement, given.group, given.items, Scope(self.side.frame, self.statement))
        return frozenset(grouping.bare(node) for _, node in named)

    def _within(self, node: exp.Expr, keys: frozenset[exp.Expr]) -> exp.Expr:
        """An expression over groups: its keys and the inside of its aggregates are seated."""
        if grouping.bare(node) in keys:
            return self.seated(node)

        def wanted(one: exp.Expr) -> bool:
            return is_reduction(one) or one in keys

        holder = exp.paren(node)
        for old, new in list(zip(outermost(node, wanted), outermost(holder.this, wanted), strict=True)):
            new.replace(self.seated(old).copy())
        found: exp.Expr = holder.this
        return found

    def _stands(self, node: exp.Expr) -> Scalar | None:
        if node not in self.made:
            self.made[node] = self._value(node)
        return self.made[node]

    def _value(self, node: exp.Expr) -> Scalar | None:
        """The column of a subquery that is a public or a released value, or a condition on its rows; others are refused where they stand."""
        test, ranks = test_of(node), compared(node)
        scope = Scope(self.side.frame, self.statement, outer=self.outer)
        if test is not None:
            value = None if test.value is None else self.seated(test.value)
            self.side, found = marked(self.statement, self.side, test._replace(value=value), scope, self.below.inner, self.below.query)
            return found
        if ranks is not None:
            self.side, found = ranked(self.statement, self.side, ranks, self.seated(ranks.node.this), scope, self.below)
            return found
        if self.env.lists is None or self.env.lists.open(node, self.env):
            looked = correlated(self.statement, self.side, node, scope, self.below.tables, self.below.query)
            if looked is not None:
                self.side, found = looked
                return found
            try:
                public, column = publicvalues.value(self.statement, node, self.below.tables, self.below.query)
            except Refused as wrong:
                raise around(self.statement, node, scope, wrong) from None
        elif (mine := unit_value(self.statement, self.side, node, scope, self.below)) is not None:
            self.side, found = mine
            return found
        elif self.env.lists.releases(node, self.env):
            public, column = self.env.lists.value(self.statement, self.side.frame, node, self.env)
        else:
            return None
        self.side = replace(self.side, rel=Lookup(self.side.rel, public, Join.INNER, None))
        return column


def on(seats: Callable[[Bound], Seats], left: Side, right: Side, node: exp.Expr) -> tuple[Side, Side, exp.Expr]:
    """Both sides of a join and its condition: what each subquery stands for is a column of a private side, of the one whose rows it reads."""
    made = [seats(side) if isinstance(side, Bound) else None for side in (left, right)]

    def stands(one: exp.Expr) -> Scalar | None:
        wrong: Refused | None = None
        for seat in (made[1], made[0]):
            try:
                found = None if seat is None else seat._stands(one)
            except Refused as refused:
                if refused.code not in ("UNKNOWN_COLUMN", "UNKNOWN_TABLE"):
                    raise
                wrong = wrong or refused
                continue
            if found is not None:
                return found
        if wrong is not None:
            raise wrong
        return None

    found = seated(node, stands)
    return left if made[0] is None else made[0].side, right if made[1] is None else made[1].side, found
