"""The time of asking, where the parser's tree is kept as it is: one literal for the whole statement."""

from __future__ import annotations

from sqlglot import exp

from dpquery.plan.scalar import Literal
from dpquery.sql import scalar
from dpquery.sql.names import Scope
from dpquery.sql.unanswered import called

NODES = (exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp, exp.CurrentDatetime)
NAMES = ("now", "get_current_timestamp", "transaction_timestamp")


def told(node: exp.Expr, scope: Scope) -> exp.Expr | None:
    """The literal in place of CURRENT_DATE, NOW() and the like; None for other nodes."""
    if not isinstance(node, NODES) and called(node) not in NAMES:
        return None
    value = scalar.read(node, scope)
    if not isinstance(value, Literal):
        raise AssertionError("the time of asking is a literal")
    return exp.cast(exp.Literal.string(str(value.value)), str(value.type).upper())
