"""Subqueries in WHERE of public rows, over public tables: each is a column of the rows, as text over physical tables, and the conditions read that.

What reads private or released rows stays as it is, and is refused where it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.scalar import Column, Scalar
from dpquery.sql import public, publicvalues
from dpquery.sql.correlated import Below, around
from dpquery.sql.env import Env
from dpquery.sql.joins import note_product
from dpquery.sql.names import Scope, Statement
from dpquery.sql.rowwise import condition, conjunct_nodes
from dpquery.sql.seats import is_query, seated, subqueries
from dpquery.sql.semi import Inner, Test, conditions_across, equal_to, test_of
from dpquery.sql.sides import Open, check_product, substituted
from dpquery.values.types import BOOLEAN

JOINED = "a join: JOIN (SELECT key, MAX(x) AS m FROM .. GROUP BY key) AS s ON s.key = outer.key, and s.m in its place"


def seated_where(statement: Statement, side: Open, test: exp.Expr, env: Env, below: Below) -> tuple[Open, exp.Expr]:
    """The public rows with a column for each subquery of the condition, and the condition over these; names mean what they did.

    What reads rows further out as well stays as it is.
    """
    rows, scope, nodes = PublicSeats(statement, side, env, below), Scope(side.frame, statement), list[exp.Expr]()
    if next(subqueries(test), None) is None:
        return side, test
    for node in conjunct_nodes(test):
        own = test_of(node) is not None or all(scope.inside(one) for one in node.walk(prune=is_query) if isinstance(one, exp.Column))
        nodes.append(seated(node, rows.stands) if own else node)
    return rows.side, exp.and_(*nodes)


def narrowed(statement: Statement, side: Open, nodes: Sequence[exp.Expr], scope: Scope) -> Open:
    """The rows of a public relation for which the conditions hold, under the same names."""
    if side.released is not None:
        message = "conditions on released rows alone do not stand beside those on the rows outside"
        raise statement.refuse("RELEASED_JOIN", message, nodes[0], "these in a subquery of FROM, (SELECT .. FROM .. WHERE ..) AS r")
    for node in nodes:
        condition(node, scope, "WHERE")
    items = [(c.name, c, c) for c in side.columns]
    made = public.selected(statement, side, items, exp.and_(*nodes), False, 0)
    return replace(made, frame=substituted(side.frame, dict(zip(side.columns, made.columns, strict=True))))


@dataclass(slots=True)
class PublicSeats:
    """Public rows, with a column for each subquery that was read so far; equal ones share it."""

    statement: Statement
    side: Open
    env: Env
    below: Below
    made: dict[exp.Expr, Scalar | None] = field(default_factory=dict)

    def stands(self, node: exp.Expr) -> Scalar | None:
        """The column of a subquery; None where it stays."""
        if node not in self.made:
            self.made[node] = self._value(node)
        return self.made[node]

    def _value(self, node: exp.Expr) -> Scalar | None:
        test = test_of(node)
        query = node if test is None else test.query
        if not isinstance(query, exp.Query | exp.Subquery) or self.env.lists is None:
            return None
        if not self.env.lists.open(query, self.env):
            raise self._not_public(node, test)
        scope = Scope(self.side.frame, self.statement)
        if test is not None:
            return self._test(test, scope)
        if not isinstance(node, exp.Subquery):
            return None
        try:
            found, column = publicvalues.value(self.statement, node, self.below.tables, self.below.query)
        except Refused as wrong:
            told = around(self.statement, node, scope, wrong)
            told.instead = JOINED if told.code == "CORRELATED_VALUE" else told.instead
            raise told from None
        return self._column(f"(SELECT c0 FROM ({found.sql}) AS v)", replace(column, public=None), ())

    def _not_public(self, node: exp.Expr, test: Test | None) -> Refused:
        code = "SCALAR_SUBQUERY" if test is None else "EXISTS" if test.value is None else "IN_SUBQUERY"
        message = "a subquery over private tables in a condition on public rows alone is not supported"
        return self.statement.refuse(code, message, node, "the same condition in WHERE of the SELECT that reads the private rows")

    def _test(self, test: Test, scope: Scope) -> Scalar | None:
        """Whether rows of the subquery exist, or one of them equals the value."""
        inner = self.below.inner(test.query, scope)
        if not isinstance(inner.side, Open) or inner.side.released is not None:
            return None
        if inner.values and not inner.across and not isinstance(inner.values[0], Column):  # what SELECT computes is a column of the query alone
            side = self.below.query(test.query)
            if not isinstance(side, Open):
                return None
            inner = Inner(side, tuple(one.value for one in side.frame.fields()), (), Scope(side.frame, self.statement))
        equal, right = equal_to(self.statement, test, inner, scope), inner.side
        across = conditions_across(inner)
        if not isinstance(right, Open) or (equal is not None and equal[2] not in right.columns):
            return None
        if across:
            check_product(self.statement, self.side.most, right.most, test.node)
            note_product(self.statement, self.side, right, (*across, *(() if equal is None else equal[:1])), test.node)
        own = {c.id: f"q.c{i}" for i, c in enumerate(self.side.columns)}
        both = own | {c.id: f"r.c{i}" for i, c in enumerate(right.columns)}
        where = "".join(f" WHERE {public.text_of(exp.and_(*inner.across), inner.scope, both)}" for _ in inner.across[:1])
        if equal is None or test.value is None:
            text = f"EXISTS (SELECT 1 FROM ({right.sql}) AS r{where})"
        else:
            place = right.columns.index(equal[2])
            text = f"({public.text_of(test.value, scope, own)}) IN (SELECT r.c{place} FROM ({right.sql}) AS r{where})"
        made = Column(next(self.statement.ids), "x", BOOLEAN)
        return self._column(f"NOT ({text})" if test.negated else text, made, right.tables)

    def _column(self, text: str, column: Column, tables: tuple[str, ...]) -> Column:
        sql = f"SELECT q.*, {text} AS c{len(self.side.columns)} FROM ({self.side.sql}) AS q"
        self.side = replace(self.side, sql=sql, columns=(*self.side.columns, column), tables=(*self.side.tables, *tables))
        return column
