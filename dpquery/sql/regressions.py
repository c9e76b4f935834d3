"""Aggregates of two arguments within a unit, of y and x: covariance, correlation and regression over the rows that have both."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpquery.plan.functions import call
from dpquery.plan.inside import Reduce, Reduction
from dpquery.plan.scalar import Scalar
from dpquery.sql.fields import take
from dpquery.sql.names import Scope, Statement
from dpquery.sql.rowwise import expression
from dpquery.values.types import FLOAT, INTEGER

OF_BOTH: dict[type[exp.Expr], Reduce] = {
    exp.CovarPop: Reduce.COVAR_POP,
    exp.CovarSamp: Reduce.COVAR_SAMP,
    exp.Corr: Reduce.CORR,
    exp.RegrSlope: Reduce.REGR_SLOPE,
    exp.RegrIntercept: Reduce.REGR_INTERCEPT,
    exp.RegrR2: Reduce.REGR_R2,
    exp.RegrSxy: Reduce.REGR_SXY,
}
OF_FIRST: dict[type[exp.Expr], Reduce] = {exp.RegrAvgy: Reduce.AVG, exp.RegrSyy: Reduce.SQUARES, exp.RegrCount: Reduce.COUNT}
OF_SECOND: dict[type[exp.Expr], Reduce] = {exp.RegrAvgx: Reduce.AVG, exp.RegrSxx: Reduce.SQUARES}
"""Of one argument alone, where the other is not NULL."""
PAIRED = (*OF_BOTH, *OF_FIRST, *OF_SECOND)


def paired(statement: Statement, node: exp.Expr, scope: Scope) -> Reduction:
    """The aggregate of y and x that the node spells."""
    y, x = (_number(statement, node, one, scope) for one in _arguments(node))
    if type(node) in OF_BOTH:
        return Reduction(OF_BOTH[type(node)], y, FLOAT, by=x)
    if type(node) in OF_SECOND:
        return Reduction(OF_SECOND[type(node)], x, FLOAT, where=_known(y))
    function = OF_FIRST[type(node)]
    return Reduction(function, y, INTEGER if function is Reduce.COUNT else FLOAT, where=_known(x))


def _arguments(node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    this, other, *_ = take(node, "this", "expression", *(["null_on_zero_variance"] if isinstance(node, exp.Corr) else []))
    return this, other


def _number(statement: Statement, node: exp.Expr, one: exp.Expr, scope: Scope) -> Scalar:
    if isinstance(one, exp.Distinct):
        instead = "the aggregate without it, over a subquery with SELECT DISTINCT"
        raise statement.refuse("DISTINCT_AGGREGATE", f"DISTINCT inside {statement.spelled(node)} is not supported", node, instead)
    value = expression(one, scope, "an aggregate")
    if not value.type.numeric:
        message = f"{statement.spelled(node)} takes numbers, not a {value.type}"
        raise statement.refuse("TYPE_MISMATCH", message, node, "CAST(x AS DOUBLE)")
    return value


def _known(value: Scalar) -> Scalar:
    return call("not", call("is_null", value))


def both(first: Scalar | None, second: Scalar | None) -> Scalar | None:
    """Two conditions of one aggregate as one."""
    return call("and", first, second) if first is not None and second is not None else first if second is None else second


def filtered(found: Reduction, where: Scalar | None) -> Reduction:
    """The aggregate over those of its rows that its FILTER keeps."""
    return replace(found, where=both(where, found.where))
