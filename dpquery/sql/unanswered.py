"""Aggregates: which functions are some, and why and how those are refused that no card answers."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp

from dpquery.plan.functions import FORBIDDEN, NAMES
from dpquery.sql.allowed import FUNCTIONS
from dpquery.sql.fields import take
from dpquery.sql.refuse import near


class Answer(NamedTuple):
    """How an aggregate is refused."""

    code: str
    why: str
    instead: str


_QUANTILE = Answer("QUANTILE", "is not available", "QUANTILE_CONT(x, 0.25) for each quantile: those of the same values are paid for once")
_VARIANCE = Answer("VARIANCE", "is not available", "VAR_POP(x), or STDDEV(x)")
_ENTROPY = Answer("VARIANCE", "is not available", "COUNT(*) with GROUP BY x: it follows from how many there are of each")
_PAIR = Answer("CORRELATION", "is not available", "COVAR_POP(y, x) / VAR_POP(x) for the slope, CORR(y, x)")
_LIST = Answer("ARRAY_AGG", "would return raw rows", "COUNT(*), SUM(x) or AVG(x) for each group")
_BINS = Answer(
    "ARRAY_AGG",
    "would return raw rows",
    "width_bucket(x, low, high, n) AS bucket, COUNT(*) with GROUP BY bucket; or CASE WHEN x <= 10 THEN 10 WHEN x <= 20 THEN 20 END AS bin",
)
_TEXT = Answer("STRING_AGG", "would return raw values", "GROUP BY x with COUNT(*)")
_PICK = Answer("ANY_VALUE", "shows the value of one row", "x in GROUP BY")
_ARG = Answer("ANY_VALUE", "shows the value of one row", "SELECT x FROM .. GROUP BY x ORDER BY SUM(y) DESC LIMIT 1, the x with the largest sum")
_LEAST = Answer("ANY_VALUE", "shows the value of one row", "SELECT x FROM .. GROUP BY x ORDER BY SUM(y) LIMIT 1, the x with the smallest sum")
_TRUTH = Answer("BOOLEAN_AGGREGATE", "depends on a single row", "COUNT(*) FILTER (WHERE ..)")
_BITS = Answer("BIT_AGGREGATE", "depends on a single row", "COUNT(*) FILTER (WHERE ..)")
_OTHER = Answer("AGGREGATE", "is not an aggregate that can be answered privately", "COUNT, COUNT(DISTINCT x), SUM or AVG")

BY_CLASS: dict[type[exp.Expr], Answer] = {
    **dict.fromkeys((exp.Skewness, exp.Kurtosis), _VARIANCE),
    **dict.fromkeys((exp.RegrSlope, exp.RegrIntercept, exp.RegrR2), _PAIR),
    **dict.fromkeys((exp.ArrayAgg, exp.ArrayUniqueAgg, exp.ArrayConcatAgg, exp.JSONArrayAgg, exp.JSONObjectAgg, exp.ApproxTopK), _LIST),
    exp.GroupConcat: _TEXT,
    **dict.fromkeys((exp.AnyValue, exp.First, exp.Last), _PICK),
    exp.ArgMax: _ARG,
    exp.ArgMin: _LEAST,
    **dict.fromkeys((exp.LogicalAnd, exp.LogicalOr), _TRUTH),
    **dict.fromkeys((exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg), _BITS),
}
BY_NAME: dict[str, Answer] = {
    **dict.fromkeys(("arg_max_null", "arg_min_null", "arg_max_nulls_last", "arg_min_nulls_last", "arbitrary"), _PICK),
    **dict.fromkeys(("mad", "reservoir_quantile"), _QUANTILE),
    **dict.fromkeys(("sem", "kurtosis_pop"), _VARIANCE),
    "entropy": _ENTROPY,
    **dict.fromkeys(("histogram", "histogram_exact", "numeric_histogram", "histogram_numeric"), _BINS),
    **dict.fromkeys(("approx_most_frequent", "lttb", "combine_aggr", "variant_group_object"), _LIST),
    **dict.fromkeys(("bitstring_agg",), _BITS),
    **dict.fromkeys(("geomean", "geometric_mean"), Answer("AGGREGATE", "is not available", "EXP(AVG(LN(GREATEST(x, 1))))")),
    **dict.fromkeys(("product", "decimal_average", "favg", "fsum", "kahan_sum", "sumkahan", "sum_no_overflow"), _OTHER),
}
ANSWERED = (
    "count",
    "count_if",
    "sum",
    "avg",
    "var_pop",
    "var_samp",
    "variance",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "covar_pop",
    "covar_samp",
    "corr",
    "median",
    "quantile_cont",
    "quantile_disc",
    "percentile_cont",
    "percentile_disc",
    "approx_quantile",
    "approx_quantiles",
    "mode",
)
ANSWERED_NAMES = ("mean", "count_star")  # of functions that the parser has no class for
WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


def called(node: exp.Expr) -> str:
    """The name of a function that the parser has no class for, in lower case; empty for others."""
    if not isinstance(node, exp.Anonymous):
        return ""
    return str(take(node, "this", "expressions")[0]).lower()


def unwrapped(node: exp.Expr) -> exp.Expr:
    """The call, without what stands around it: FILTER, WITHIN GROUP, IGNORE NULLS."""
    while isinstance(node, WRAPPERS):
        node = node.this
    return node


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node is a call of an aggregate function, answered or not."""
    if isinstance(node, exp.AggFunc):
        return True
    name = called(node)
    return bool(name) and (name in BY_NAME or name in ANSWERED_NAMES)


def unanswered(node: exp.Expr) -> Answer:
    """How the aggregate is refused."""
    return BY_CLASS.get(type(node)) or BY_NAME.get(called(node)) or _OTHER


def misspelled(node: exp.Expr) -> exp.Expr | None:
    """The first function in the expression that nobody knows; None where there is none."""
    known = (*NAMES, *FORBIDDEN, *FUNCTIONS)
    return next((below for below in node.walk() if called(below) and not is_aggregate(below) and called(below) not in known), None)


def like(node: exp.Expr) -> str:
    """A hint at the functions that look like an unknown one; nothing for those that the parser knows."""
    return near(called(node), (*ANSWERED, *NAMES, *FUNCTIONS)) if called(node) else ""
