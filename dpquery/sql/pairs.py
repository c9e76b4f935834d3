"""Joins above the noise: whether the engine can hash them, or may have to make each pair of rows, of which there are then to be few enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from dpquery.plan.draft import Product
from dpquery.plan.scalar import Column
from dpquery.sql.fields import take
from dpquery.sql.names import Scope, Statement
from dpquery.sql.refuse import place
from dpquery.sql.sides import MOST_PAIRS
from dpquery.values.types import Type

if TYPE_CHECKING:
    from dpquery.sql.lift import Lifter

ALL, FEW = MOST_PAIRS, 10 * MOST_PAIRS  # pairs that are all kept, and of which a condition keeps some


def note(statement: Statement, sides: tuple[str, str], most: int, node: exp.Expr, unsure: tuple[bool, bool]) -> None:
    """Notes a join of items of FROM that no equality of columns makes: how many pairs of rows it has is looked up before the charge.

    Released values alone are no concern: there are never very many. `unsure`: noise decides how many rows a side has.
    """
    if statement.opened:
        tables = tuple(dict.fromkeys(name for one in statement.opened for name in one.tables))
        statement.paired.append(Product(sides, tables, most, place(node), unsure))


def equal(lifter: Lifter, lifted: exp.Expr) -> bool:
    """Whether a condition is an equality of columns of one type, which cannot fail: bare, the engine can hash it."""
    sides = take(lifted, "this", "expression") if isinstance(lifted, exp.EQ) else ()
    kinds = {_kind_of(lifter, one) for one in sides}
    return len(kinds) == 1 and None not in kinds


def ties(lifter: Lifter, lifted: exp.Expr) -> bool:
    """Whether it is one of a column here with one of a row around this one."""
    return equal(lifter, lifted) and {one.table == "t" for one in lifted.find_all(exp.Column)} == {True, False}


def _kind_of(lifter: Lifter, node: exp.Expr) -> Type | None:
    """The type of a column, here or of a row around this one."""
    around: Lifter | None = lifter
    if not isinstance(node, exp.Column):
        return None
    while around is not None and node.table not in ("t", f"o{around.depth}"):
        around = around.outer
    if around is None or node.table == "t":
        return lifter.kind(node.name)
    return around.kind(around.given[int(node.name[1:])].removeprefix("t."))


def crosses(left: Scope, right: Scope, nodes: Sequence[exp.Expr]) -> bool:
    """Whether one of the conditions is an equality of a column of each side, of one type."""
    for node in nodes:
        if isinstance(node, exp.EQ) and isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                a, b = (side.find(column) if side.inside(column) else None for side, column in ((left, one), (right, other)))
                if a is not None and b is not None and isinstance(a.value, Column) and a.value.type == b.value.type:
                    return True
    return False
