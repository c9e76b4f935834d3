"""MODE(x) within a unit, of equals the least value: ARG_MAX(x, n), where n counts the rows of the group with this x."""

from __future__ import annotations

from sqlglot import exp

from dpquery.plan.inside import Reduce, Reduction
from dpquery.plan.rel import Compute, Group, Private, Windowed
from dpquery.plan.scalar import Column, Scalar, columns
from dpquery.sql import modes
from dpquery.sql.names import Scope, Statement
from dpquery.sql.reductions import argument, checked, unwrapped
from dpquery.sql.sides import as_column
from dpquery.values.types import INTEGER


def mode(statement: Statement, node: exp.Expr, scope: Scope, group: Group) -> tuple[Group, Reduction]:
    """The group over rows that have their number beside them, and the aggregate that reads it. FILTER holds for both."""
    inner, where = unwrapped(node, scope)
    value, distinct = argument(statement, modes.of(statement, inner), inner, scope)
    if distinct:
        raise statement.refuse("DISTINCT_AGGREGATE", "DISTINCT inside MODE leaves every value once", node, "MODE(x), or MIN(x)")
    checked(statement, inner, Reduction(Reduce.ARG_MAX, value, value.type))
    below, value = _kept(statement, group.input, value)
    count, partition = Reduction(Reduce.COUNT, value, INTEGER, where), tuple(dict.fromkeys((*group.keys, *columns(value))))
    made = _known(below, count, partition)
    if made is None:
        made = Column(next(statement.ids), "n", INTEGER)
        below = Windowed(below, made, count, partition, ())
        statement.windows.append(made.id)
    return Group(below, group.keys, group.items), Reduction(Reduce.ARG_MAX, value, value.type, where, by=made)


def _kept(statement: Statement, below: Private, value: Scalar) -> tuple[Private, Scalar]:
    """The value as a column of the rows; one that is the same in all of them stays as it is."""
    if isinstance(value, Column) or not columns(value):
        return below, value
    if found := next((column for column, one in _items(below) if one == value), None):
        return below, found
    made = as_column(statement, "value", value)
    return Compute(below, ((made, value),)), made


def _items(below: Private) -> tuple[tuple[Column, Scalar], ...]:
    """The expressions that were made columns on top of the rows."""
    if isinstance(below, Windowed):
        return _items(below.input)
    return (*below.items, *_items(below.input)) if isinstance(below, Compute) else ()


def _known(below: Private, count: Reduction, partition: tuple[Column, ...]) -> Column | None:
    """The number, where another MODE of this group has counted it already."""
    while isinstance(below, Windowed | Compute):
        if isinstance(below, Windowed) and (below.item, below.partition, below.order) == (count, partition, ()):
            return below.column
        below = below.input
    return None
