"""Row-wise places (WHERE, ON, FILTER, arguments, keys): what cannot stand there is refused by its own name before the expression is read."""

from __future__ import annotations

from sqlglot import exp

from dpquery.plan.scalar import Scalar
from dpquery.sql import scalar
from dpquery.sql.fields import take
from dpquery.sql.names import Scope
from dpquery.sql.unanswered import is_aggregate
from dpquery.values.types import Kind

ALONE = "as a condition of its own in WHERE, joined to others by AND; or a JOIN on the privacy unit"


def condition(node: exp.Expr, scope: Scope, clause: str) -> Scalar:
    """The condition that the node spells."""
    value = expression(node, scope, clause)
    if value.type.kind not in (Kind.BOOLEAN, Kind.NULL):
        raise scope.statement.refuse("NOT_A_CONDITION", f"{clause} wants a condition, not a value of type {value.type}", node, "a comparison")
    return value


def expression(node: exp.Expr, scope: Scope, clause: str) -> Scalar:
    """The row-wise expression that the node spells. Aggregates, windows and subqueries in it are refused, each by its own code."""
    for below in node.walk():
        check(below, scope, clause)
    return scalar.read(node, scope)


def check(node: exp.Expr, scope: Scope, clause: str) -> None:
    """Refuses a node that cannot stand in a row-wise expression."""
    wrong = _misplaced(node)
    if wrong is not None:
        code, what, instead = wrong
        raise scope.statement.refuse(code, f"{what} in {clause} is not supported", node, instead)


def _misplaced(node: exp.Expr) -> tuple[str, str, str] | None:
    """The code of a node that is no row-wise one, what it is, and what to write instead."""
    match node:
        case exp.Exists():
            return "EXISTS", "EXISTS within another condition or expression", f"EXISTS {ALONE}"
        case exp.In() if node.args.get("query") is not None:
            return "IN_SUBQUERY", "IN with a subquery within another condition or expression", f"x IN (SELECT ..) {ALONE}"
        case exp.Query() | exp.Subquery():
            return (
                "SCALAR_SUBQUERY",
                "a subquery other than one aggregate of all rows",
                "one aggregate of all rows, (SELECT AVG(x) FROM t); or a JOIN on the privacy unit",
            )
        case exp.Window():
            return "WINDOW", "a window function", "the window over aggregates, in SELECT, QUALIFY or ORDER BY"
        case _ if is_aggregate(node):
            return "MISPLACED_AGGREGATE", "an aggregate", "HAVING for conditions on aggregates; aggregates do not nest"
        case _:
            return None


def conjunct_nodes(node: exp.Expr | None) -> tuple[exp.Expr, ...]:
    """The top-level AND-ed conditions of a predicate, in order; after an OR the equality that stands in each of its branches, which it implies."""
    found: list[exp.Expr] = []
    waiting = [] if node is None else [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.And):
            waiting.extend(reversed(take(one, "this", "expression")))
        elif isinstance(one, exp.Paren):
            waiting.extend(take(one, "this"))
        else:
            found += [one, *(_everywhere(one) if isinstance(one, exp.Or) else ())]
    return tuple(found)


def _everywhere(node: exp.Or) -> list[exp.Expr]:
    """The equalities of two columns that all branches of OR have: (a AND x) OR (a AND y) is a AND that, NULLs or not."""
    branches, waiting = list[tuple[exp.Expr, ...]](), list[exp.Expr]([node])
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.Or):
            waiting.extend(side.unnest() for side in take(one, "this", "expression"))
        else:
            branches.append(conjunct_nodes(one))
    first = [one for one in branches[-1] if isinstance(one, exp.EQ) and isinstance(one.left, exp.Column) and isinstance(one.right, exp.Column)]
    return [one for one in first if all(any(_same(one, other) for other in others) for others in branches)]


def _same(one: exp.EQ, other: exp.Expr) -> bool:
    """Whether two conditions are the same equality, whichever side stands first."""
    return one == other or (isinstance(other, exp.EQ) and one.left == other.right and one.right == other.left)
