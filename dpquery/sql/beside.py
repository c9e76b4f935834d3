"""Public tables beside released values, above the noise: their declared columns, handed over before the charge."""

from __future__ import annotations

from sqlglot import exp

from dpquery.plan.draft import Opened
from dpquery.plan.scalar import Column
from dpquery.sql.fields import peek
from dpquery.sql.names import Statement
from dpquery.sql.over import Flat, flat
from dpquery.sql.refuse import place as placed
from dpquery.sql.semi import plain
from dpquery.sql.sides import Cell, Open, Released, Side, closed
from dpquery.sql.unanswered import is_aggregate


def projects(node: exp.Expr) -> bool:
    """Whether a query only filters and projects, so that the engine of the data can make its rows."""
    if isinstance(node, exp.SetOperation):
        return projects(node.left) and projects(node.right) and all(peek(node, name) is None for name in ("order", "limit", "offset"))
    if isinstance(node, exp.Values):
        return True
    items = peek(node, "expressions") or ()
    return plain(node) and not any(is_aggregate(below) or isinstance(below, exp.Window) for item in items for below in item.walk())


def beside(statement: Statement, side: Side, node: exp.Expr) -> Flat:
    """A public relation of FROM, under its alias."""
    (source,) = side.frame.sources
    return flat(statement, opened(statement, side, node), source.alias, (), source.place)


def opened(statement: Statement, side: Side, node: exp.Expr, single: bool = False) -> Released:
    """A public relation as one of released values: there is no noise in it, and nothing of it has an error bar."""
    if not isinstance(side, Open):
        raise AssertionError("a query over public tables is public")
    made, _ = closed(statement, side)
    statement.opened.append(Opened(made, side.tables, single, placed(node)))
    fields = side.frame.fields()
    places = [side.columns.index(f.value) for f in fields if isinstance(f.value, Column)]
    items = ", ".join(f"c{place} AS c{i}" for i, place in enumerate(places))
    cells = tuple(Cell(f.name, f.value.type) for f in fields)
    return Released(f"SELECT {items} FROM {made.name}", cells, (), single, most=side.most)
