"""Aggregates inside a unit as they are written: which ones there are, and on what grid they add up."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from dpquery.aggregates.grid import FINENESS, grid, row_units
from dpquery.errors import Refused
from dpquery.plan.inside import ADDED, BITS, PAIRS, SHAPES, Reduce, Reduction, Whole
from dpquery.plan.intervals import interval
from dpquery.plan.scalar import Literal, Scalar
from dpquery.sql.fields import take
from dpquery.sql.inorder import in_order, ordered
from dpquery.sql.names import Scope, Statement
from dpquery.sql.regressions import PAIRED, filtered, paired
from dpquery.sql.rowwise import condition, expression
from dpquery.sql.unanswered import called
from dpquery.values.types import BOOLEAN, FLOAT, INTEGER, Kind

MOST_DIGITS = 10**26  # of a decimal that is added up: sums of 2^39 of them have 38 digits
NUMERIC = (*ADDED, Reduce.QUANTILE_CONT, Reduce.MAD, Reduce.PRODUCT, Reduce.GEOMEAN)  # that take numbers alone
LONGEST_FRACTION = 18  # digits of a quantile's fraction

BY_CLASS: dict[type[exp.Expr], Reduce] = {
    exp.Sum: Reduce.SUM,
    exp.Avg: Reduce.AVG,
    exp.Min: Reduce.MIN,
    exp.Max: Reduce.MAX,
    exp.AnyValue: Reduce.MIN,
    exp.Variance: Reduce.VAR_SAMP,
    exp.VariancePop: Reduce.VAR_POP,
    exp.Stddev: Reduce.STDDEV_SAMP,
    exp.StddevSamp: Reduce.STDDEV_SAMP,
    exp.StddevPop: Reduce.STDDEV_POP,
    exp.LogicalAnd: Reduce.ALL,
    exp.LogicalOr: Reduce.ANY,
    exp.ArgMin: Reduce.ARG_MIN,
    exp.ArgMax: Reduce.ARG_MAX,
    exp.Median: Reduce.QUANTILE_CONT,
    exp.PercentileCont: Reduce.QUANTILE_CONT,
    exp.PercentileDisc: Reduce.QUANTILE_DISC,
    exp.Quantile: Reduce.QUANTILE_DISC,
    exp.BitwiseAndAgg: Reduce.BIT_AND,
    exp.BitwiseOrAgg: Reduce.BIT_OR,
    exp.BitwiseXorAgg: Reduce.BIT_XOR,
    exp.Skewness: Reduce.SKEWNESS,
    exp.Kurtosis: Reduce.KURTOSIS,
}
BY_NAME: dict[str, Reduce] = {
    **dict.fromkeys(("mean", "favg"), Reduce.AVG),
    **dict.fromkeys(("fsum", "kahan_sum", "sumkahan"), Reduce.SUM),
    "sem": Reduce.SEM,
    "kurtosis_pop": Reduce.KURTOSIS_POP,
    "mad": Reduce.MAD,
    "product": Reduce.PRODUCT,
    **dict.fromkeys(("geomean", "geometric_mean"), Reduce.GEOMEAN),
    "entropy": Reduce.ENTROPY,
}
"""Of one argument, with names that the parser has no class for. The results are doubles."""
OFFERED = "COUNT, SUM, AVG, MIN, MAX, MEDIAN, MODE, QUANTILE_CONT, STDDEV_SAMP, CORR, REGR_SLOPE, BOOL_OR, ARG_MAX and their kin"
ORDERLESS: dict[type[exp.Expr], str] = {
    exp.First: "MIN(x), or FIRST(x ORDER BY y) for the x of the least y",
    exp.Last: "MAX(x), or LAST(x ORDER BY y) for the x of the greatest y",
    exp.ApproxDistinct: "COUNT(DISTINCT x)",
    exp.ApproxQuantile: "QUANTILE_CONT(x, 0.5)",
    exp.ApproxQuantiles: "QUANTILE_CONT(x, 0.5)",
}
"""Whose results depend on the order of rows, or on sketches: what to write instead."""
LISTS = (exp.ArrayAgg, exp.ArrayUniqueAgg, exp.ArrayConcatAgg)  # of as many values as a unit has rows


def reduction(statement: Statement, node: exp.Expr, scope: Scope) -> Reduction:
    """The aggregate that the node spells."""
    inner, where = unwrapped(node, scope)
    if isinstance(inner, exp.WithinGroup):
        return _ordered(statement, inner, where, scope)
    match inner:
        case exp.Count():
            found = _count(statement, inner, scope)
        case exp.CountIf():
            test, _ = take(inner, "this", "zero_on_all_null")
            found = Reduction(Reduce.COUNT, None, INTEGER, where=condition(test, scope, "COUNT_IF"))
        case exp.Anonymous() if called(inner) in ("count_star", *BY_NAME):
            found = _by_name(statement, inner, scope)
        case _ if in_order(inner):
            found = ordered(statement, inner, scope)
        case _ if type(inner) in PAIRED:
            found = paired(statement, inner, scope)
        case exp.PercentileCont() | exp.PercentileDisc():
            this, at = take(inner, "this", "expression")
            found = _quantile(statement, inner, this, at, scope)
        case exp.Quantile():
            this, at = take(inner, "this", "quantile")
            found = _quantile(statement, inner, this, at, scope)
        case exp.Median():
            found = _quantile(statement, inner, take(inner, "this")[0], None, scope)
        case exp.ArgMin() | exp.ArgMax():
            this, by = take(inner, "this", "expression")
            value = expression(this, scope, "an aggregate")
            found = Reduction(BY_CLASS[type(inner)], value, value.type, by=expression(by, scope, "an aggregate"))
        case _ if type(inner) in BY_CLASS:
            found = _of_one(statement, inner, scope)
        case _:
            raise _unknown(statement, inner)
    return checked(statement, inner, filtered(found, where))


def unwrapped(node: exp.Expr, scope: Scope) -> tuple[exp.Expr, Scalar | None]:
    """The aggregate without FILTER, and the filter's condition. ANY_VALUE comes wrapped in IGNORE NULLS."""
    where = None
    if isinstance(node, exp.Filter):
        node, test = take(node, "this", "expression")
        where = condition(take(test, "this")[0], scope, "FILTER")
    if isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue):
        (node,) = take(node, "this")
    return node, where


def _unknown(statement: Statement, node: exp.Expr) -> Refused:
    if isinstance(node, LISTS):
        message = f"{statement.spelled(node)} gives a list, and no column of private rows is one: say what of it is read"
        read = "COUNT(x), COUNT(DISTINCT x), BOOL_OR(x = ..), FIRST(x ORDER BY y) or STRING_AGG(x, ',' ORDER BY x)"
        return statement.refuse("AGGREGATE_IN_SUBQUERY", message, node, read)
    instead = ORDERLESS.get(type(node))
    why = "depends on the order of rows, or is not exact" if instead else "is not available inside a unit"
    return statement.refuse("AGGREGATE_IN_SUBQUERY", f"{statement.spelled(node)} {why}", node, instead or OFFERED)


def argument(statement: Statement, this: exp.Expr, node: exp.Expr, scope: Scope) -> tuple[Scalar, bool]:
    """The argument, and whether each value counts once."""
    match this:
        case exp.Distinct():
            listed, on = take(this, "expressions", "on")
            if on is not None or len(listed) != 1 or isinstance(listed[0], exp.Tuple):
                raise statement.refuse("COUNT_DISTINCT", "DISTINCT takes one column here", node, "COUNT(DISTINCT x)")
            return expression(listed[0], scope, "an aggregate"), True
        case exp.Order():
            raise statement.refuse("AGGREGATE_ORDER_BY", "ORDER BY inside an aggregate is not supported", node, "ARG_MIN(x, y) or ARG_MAX(x, y)")
        case exp.Limit() | exp.HavingMax():
            raise statement.refuse("AGGREGATE_CLAUSE", "LIMIT and HAVING inside an aggregate are not supported", node, "the aggregate without it")
        case exp.Star():
            raise statement.refuse("STAR", "a star can be counted, not added up", node, "COUNT(*), or a column")
        case _:
            return expression(this, scope, "an aggregate"), False


def _count(statement: Statement, node: exp.Count, scope: Scope) -> Reduction:
    this, more, _ = take(node, "this", "expressions", "big_int")
    if more:
        raise statement.refuse("WRONG_ARGUMENTS", "COUNT takes one argument", node, "COUNT(*) FILTER (WHERE a IS NOT NULL AND b IS NOT NULL)")
    if this is None or isinstance(this, exp.Star):
        return Reduction(Reduce.COUNT, None, INTEGER)
    value, distinct = argument(statement, this, node, scope)
    if isinstance(value, Literal) and value.value is not None and not distinct:
        return Reduction(Reduce.COUNT, None, INTEGER)
    return Reduction(Reduce.COUNT, value, INTEGER, distinct=distinct)


def _by_name(statement: Statement, node: exp.Anonymous, scope: Scope) -> Reduction:
    _, args = take(node, "this", "expressions")
    function = BY_NAME.get(called(node), Reduce.COUNT)
    wanted = 0 if function is Reduce.COUNT else 1
    if len(args or ()) != wanted:
        instead = f"{called(node).upper()}(x)" if wanted else "COUNT(*)"
        raise statement.refuse("WRONG_ARGUMENTS", f"{called(node)} takes {wanted} argument(s)", node, instead)
    if not wanted:
        return Reduction(Reduce.COUNT, None, INTEGER)
    value, distinct = argument(statement, args[0], node, scope)
    return Reduction(function, value, FLOAT, distinct=distinct)


def _of_one(statement: Statement, node: exp.Expr, scope: Scope) -> Reduction:
    """Sums, spreads and extremes: aggregates of one argument. Each value once changes nothing of an extreme."""
    function = BY_CLASS[type(node)]
    value, distinct = argument(statement, take(node, "this")[0], node, scope)
    same = function in (Reduce.SUM, Reduce.MIN, Reduce.MAX, *BITS)
    kind = value.type if same else BOOLEAN if function in (Reduce.ALL, Reduce.ANY) else FLOAT
    return Reduction(function, value, kind, distinct=distinct and function in (*ADDED, Reduce.BIT_XOR))


def _quantile(statement: Statement, node: exp.Expr, this: exp.Expr, fraction: exp.Expr | None, scope: Scope) -> Reduction:
    value, distinct = argument(statement, this, node, scope)
    if distinct:
        raise statement.refuse("DISTINCT_AGGREGATE", "DISTINCT inside a quantile is not supported", node, "the quantile without it")
    at = Fraction(1, 2) if isinstance(node, exp.Median) else _fraction(statement, node, fraction)
    function = BY_CLASS[type(node)]
    return Reduction(function, value, FLOAT if function is Reduce.QUANTILE_CONT else value.type, fraction=at)


def _fraction(statement: Statement, node: exp.Expr, fraction: exp.Expr | None) -> Fraction:
    text = fraction.name if isinstance(fraction, exp.Literal) and not fraction.is_string else ""
    digits = text.replace(".", "", 1)
    if not digits.isdigit() or not digits.isascii() or len(digits) > LONGEST_FRACTION or not 0 <= Fraction(text) <= 1:
        raise statement.refuse("QUANTILE", "a quantile takes a literal number from 0 to 1", node, "QUANTILE_CONT(x, 0.5)")
    return Fraction(text)


def _ordered(statement: Statement, node: exp.WithinGroup, where: Scalar | None, scope: Scope) -> Reduction:
    """PERCENTILE_CONT(f) WITHIN GROUP (ORDER BY x [DESC])."""
    inner, order = take(node, "this", "expression")
    terms: list[exp.Expr] = take(order, "expressions")[0] if isinstance(order, exp.Order) else []
    if not isinstance(inner, exp.PercentileCont | exp.PercentileDisc) or len(terms) != 1:
        raise _unknown(statement, inner)
    fraction, missing = take(inner, "this", "expression")
    this, desc, _ = take(terms[0], "this", "desc", "nulls_first")
    if missing is not None or (desc and isinstance(inner, exp.PercentileDisc)):
        raise statement.refuse("QUANTILE", "this form of a quantile is not supported", node, "QUANTILE_DISC(x, 0.5)")
    found = _quantile(statement, inner, this, fraction, scope)
    if desc and found.fraction is not None:
        found = replace(found, fraction=1 - found.fraction)
    return checked(statement, inner, replace(found, where=where))


# ---- types and grids -----------------------------------------------------------------------------------------------------------------


def checked(statement: Statement, node: exp.Expr, found: Reduction) -> Reduction:
    """The reduction with the grid of what it adds up; refused where its values have another type, or no bounds."""
    value = found.value
    for one in (value, found.by):
        if one is not None and one.type.kind in (Kind.NULL, Kind.INTERVAL):
            raise statement.refuse("TYPE_MISMATCH", f"an aggregate of type {one.type} is not supported", node, "a CAST to another type")
    if value is None:
        return found
    for one in (value, found.by if found.function in PAIRS else None):
        if one is not None:
            _check_kind(statement, node, found.function, one)
    if found.function not in ADDED:
        return found
    beside = None if found.by is None else _whole(statement, node, found, found.by)
    return replace(found, whole=_whole(statement, node, found, value), beside=beside)


def _check_kind(statement: Statement, node: exp.Expr, function: Reduce, value: Scalar) -> None:
    """Refuses values that the aggregate cannot take."""
    if function in (Reduce.ALL, Reduce.ANY):
        wanted, known, instead = "conditions", value.type == BOOLEAN, "a comparison"
    elif function in BITS:
        wanted, known, instead = "whole numbers", value.type.kind is Kind.INTEGER, "CAST(x AS BIGINT)"
    elif function in NUMERIC:
        wanted, known, instead = "numbers", value.type.numeric, "COUNT(*) FILTER (WHERE ..)"
    else:
        return
    if not known:
        message = f"{statement.spelled(node)} takes {wanted}, not a {value.type}"
        raise statement.refuse("TYPE_MISMATCH", message, node, instead)


def _whole(statement: Statement, node: exp.Expr, found: Reduction, value: Scalar) -> Whole | None:
    """Whole numbers that add up alike in any order: integers as they are, decimals digit by digit, floats on their grid, spreads in 30 bits.

    Shapes, of which fourth powers are added up, have 23.
    """
    spread = found.function not in (Reduce.SUM, Reduce.AVG)
    if value.type.kind is Kind.INTEGER and not spread:
        return None
    if value.type.kind is Kind.DECIMAL and not spread:
        return Whole(Fraction(1, 10**value.type.scale), -MOST_DIGITS, MOST_DIGITS)
    bounds = interval(value)
    if bounds is None:
        message = f"nothing bounds what one row adds to {statement.spelled(node)}"
        instead = "greatest(least(x, 100), 0), or ask the data owner to declare lower and upper for its columns"
        raise statement.refuse("MISSING_BOUNDS", message, node, instead)
    if spread:
        wide, bits = bounds.high - bounds.low or Fraction(1), 23 if found.function in SHAPES else 30
        step = grid(value, max(wide * Fraction(2) ** (52 - bits), bounds.magnitude), wide * Fraction(2) ** (FINENESS - bits)).step
    else:
        step = grid(value, bounds.magnitude or Fraction(1)).step
    return Whole(step, *row_units(bounds, step))
