"""Subqueries above the noise: values, lists that a value is IN, rows that EXIST. They may read the row around them.

What does is a column m0, m1, .. of a layer `o0` around the table, which holds what it reads of the row as e0, e1, ..; layers further in are o1, ..
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from dpquery.sql import pairs
from dpquery.sql.indexed import misplaced
from dpquery.sql.names import column_name, fold
from dpquery.sql.public import written
from dpquery.sql.semi import Test
from dpquery.sql.sides import Released
from dpquery.values.types import Kind

if TYPE_CHECKING:
    from dpquery.sql.lift import Lifter

Lifted = Callable[[exp.Expr], exp.Expr]
Guarded = Callable[[exp.Expr], str]
OWN = frozenset("kacy")  # first letters of the table's own columns, and of values that are joined to it


def value(lifter: Lifter, node: exp.Expr) -> exp.Expr:
    """The column of a subquery that is a value: of at most one row, joined to each row of the table, or looked up for each."""
    return _shared(lifter, node, lambda: _value(lifter, node))


def _shared(lifter: Lifter, node: exp.Expr, made: Callable[[], str]) -> exp.Column:
    """The column of a subquery; equal ones share it, unless they release: each that is written is one to be paid for."""
    name = lifter.subqueries.get(id(node)) or lifter.alike.get(node)
    if name is None:
        blocks = len(lifter.statement.blocks)
        name = made()
        if len(lifter.statement.blocks) == blocks:
            lifter.alike[node] = name
    lifter.subqueries[id(node)] = name
    return exp.column(name, table="t")


def _value(lifter: Lifter, node: exp.Expr) -> str:
    lent = lifter.lendings
    found = lifter.scalar(node, lifter, False)
    if lifter.lendings == lent:
        lifter.scalars.append(found)
        return f"y{len(lifter.scalars) - 1}"
    if _holds_list(found):
        raise misplaced(lifter.statement, node)
    return _marked(lifter, f"(SELECT q.c0 FROM ({found.sql}) AS q)")


def _holds_list(found: Released) -> bool:
    kind = found.cells[0].type
    return kind is not None and kind.kind is Kind.LIST


def condition(lifter: Lifter, test: Test, lifted: Lifted, guarded: Guarded) -> exp.Expr:
    """The column of [NOT] EXISTS or [NOT] IN with a subquery."""
    return _shared(lifter, test.node, lambda: _marked(lifter, _condition(lifter, test, lifted, guarded)))


def _condition(lifter: Lifter, test: Test, lifted: Lifted, guarded: Guarded) -> str:
    lent = lifter.lendings
    found = lifter.scalar(test.query, lifter, True)
    closed = lifter.lendings == lent
    rows = f"EXISTS (SELECT 1 FROM ({found.sql}) AS q)"
    text = rows if test.value is None else _member(lifter, found, test.node, lifted(test.value), guarded, closed)
    return f"NOT ({text})" if test.negated else text


def _member(lifter: Lifter, found: Released, node: exp.Expr, value: exp.Expr, guarded: Guarded, closed: bool) -> str:
    """Whether the value is one of the list; undecided where only a NULL or a comparison that fails could make it so."""
    if len(found.cells) != 1:
        message = f"IN compares one value with a subquery of {len(found.cells)} columns"
        raise lifter.statement.refuse("IN_SUBQUERY", message, node, "a subquery of one column")
    if _holds_list(found):
        raise misplaced(lifter.statement, node)
    own = f"o{lifter.depth}.{_given(lifter, value, node, guarded)}"
    kind = lifter.kind(value.name) if isinstance(value, exp.Column) else None
    if kind is not None and kind == found.cells[0].type:
        return f"{own} IN (SELECT q.c0 FROM ({found.sql}) AS q)"
    if closed:
        pairs.note(lifter.statement, (lifter.closed, f"({found.sql})"), pairs.FEW, node, (lifter.unsure, found.unsure))
    equal = f"FROM ({found.sql}) AS q WHERE TRY(q.c0 = {own})"
    return f"CASE WHEN EXISTS (SELECT 1 {equal}) THEN TRUE WHEN EXISTS (SELECT 1 {equal} IS NULL) THEN NULL ELSE FALSE END"


def lent(lifter: Lifter, node: exp.Column, lifted: Lifted, guarded: Guarded) -> exp.Column | None:
    """A column of the row around a subquery, as the subquery reads it; None where the row has no such column."""
    name, table = column_name(node, lifter.statement.source)
    if not (lifter.scope.inside(node) or (table is None and fold(name) in lifter.aliases)):
        found = None if lifter.outer is None else lifter.outer.lent_to(node)
    else:
        found = exp.column(_given(lifter, lifted(node), node, guarded), table=f"o{lifter.depth}")
    lifter.lendings += found is not None
    return found


def _given(lifter: Lifter, value: exp.Expr, node: exp.Expr, guarded: Guarded) -> str:
    """The name of the layer's column that holds a value of the row."""
    if any(column.table == "t" and column.name[0] not in OWN for column in value.find_all(exp.Column)):
        message = "a subquery here reads what a window or another subquery computes"
        raise lifter.statement.refuse("SUBQUERY_ABOVE_NOISE", message, node, "that in a subquery of FROM, and this around it")
    text = written(value) if isinstance(value, exp.Column) else guarded(value)
    if text not in lifter.given:
        lifter.given.append(text)
    return f"e{lifter.given.index(text)}"


def _marked(lifter: Lifter, text: str) -> str:
    lifter.marks.append(text)
    return f"m{len(lifter.marks) - 1}"


def with_marks(lifter: Lifter, table: str) -> str:
    """The table in the layer that holds these columns, where there are some."""
    if not lifter.marks:
        return table
    given = "".join(f", {text} AS e{i}" for i, text in enumerate(lifter.given))
    marks = "".join(f", {text} AS m{i}" for i, text in enumerate(lifter.marks))
    name = f"o{lifter.depth}"
    return f"(SELECT {name}.*{marks} FROM (SELECT t.*{given} FROM {table} AS t) AS {name})"
