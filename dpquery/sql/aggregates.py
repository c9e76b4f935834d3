"""Aggregates of the statement as asks: COUNT(*), COUNT(x), COUNT(DISTINCT x), SUM, AVG, moments, quantiles and MODE, each with FILTER
and contribution bounds."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from sqlglot import exp

from dpquery.aggregates.values import DAY, EPOCH
from dpquery.plan import functions
from dpquery.plan.draft import AggregateAsk
from dpquery.plan.rel import Private, Scan, Stack, walk
from dpquery.plan.scalar import Column, Interval, Literal, Scalar, conjuncts
from dpquery.privacy.locality import owning
from dpquery.sql import automatic, edges, modes, quantiles, race
from dpquery.sql.bins import moments
from dpquery.sql.clause import Option
from dpquery.sql.fields import take
from dpquery.sql.names import Scope, Statement
from dpquery.sql.refuse import near, place
from dpquery.sql.rowwise import condition, expression
from dpquery.sql.sides import facts
from dpquery.sql.titles import label
from dpquery.sql.unanswered import called, unanswered
from dpquery.values.types import BOOLEAN, DATE, LEAST_AMOUNT, STRING, TIMESTAMP, Type, Value

MOMENTS: Mapping[type[exp.Expr], str] = {
    exp.VariancePop: "var_pop",
    exp.Variance: "var_samp",
    exp.StddevPop: "stddev_pop",
    exp.StddevSamp: "stddev_samp",
    exp.Stddev: "stddev_samp",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.Corr: "corr",
}
GREATEST_BOUND = Fraction(10) ** 300  # as in the schema: what a double holds, with room to spare
DAYS = "the number of a day, date_diff('day', DATE '2000-01-01', x), and DATE '2000-01-01' + CAST(v AS INTEGER) of the result v"
MOMENTS_BOUNDED = "contribution_bounds_per_row => (DATE '2024-01-01', DATE '2024-12-31')"
MICROSECOND = datetime.timedelta(microseconds=1)
ARGUMENTS = ("contribution_bounds_per_group", "contribution_bounds_per_row", "epsilon", "report_format", "bounds")


def unit_columns(rel: Private) -> frozenset[int]:
    """Ids of all columns that hold a unit, or NULL on the null side of an outer join."""
    found = {identity for below in walk(rel) if isinstance(below, Scan) for identity in below.unit_columns}
    for below in reversed([below for below in walk(rel) if isinstance(below, Stack)]):  # from within outwards
        pairs = zip(below.columns, below.ours, below.theirs, strict=True)
        found |= {column.id for column, *values in pairs if all(_unit_or_null(v, found) for v in values)}
    return frozenset(found)


def _unit_or_null(value: Scalar, units: set[int]) -> bool:
    return value.id in units if isinstance(value, Column) else isinstance(value, Literal) and value.value is None


def ask(statement: Statement, node: exp.Expr, scope: Scope, rel: Private) -> AggregateAsk:
    """What the aggregate asks for; its name is still empty. Refuses aggregates that no card answers, each by its own code."""
    inner, where = _filtered(node, scope)
    card, argument = _quantile(statement, inner, scope) if modes.node(inner) is None else _mode(statement, inner, scope, rel)
    while isinstance(inner, exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        inner = take(inner, "this", "expression")[0]  # of quantiles, and of aggregates that are refused
    if not card:
        card, argument = _card(statement, inner, scope, rel)
    named = _named(statement, inner)
    card = race.raced(statement, card, named)
    bounded = argument.moment is None
    found = AggregateAsk(
        name="",
        label=label(node),
        card=card,
        argument=argument.value,
        where=_and(where, argument.where),
        per_group=_bounds(statement, inner, named, "contribution_bounds_per_group"),
        per_row=_bounds(statement, inner, named, "contribution_bounds_per_row") if bounded else None,
        epsilon=_epsilon(statement, inner, named),
        position=place(node),
        other=argument.other,
        fractions=argument.fractions,
        listed=argument.listed,
        discrete=argument.discrete,
        upper=argument.upper,
        values=argument.values,
        moment=argument.moment,
        auto=_auto(statement, card, named),
    )
    return found if bounded else _of_moments(statement, found, inner, named, rel)


def _filtered(node: exp.Expr, scope: Scope) -> tuple[exp.Expr, Scalar | None]:
    """The aggregate inside FILTER, and the filter's condition."""
    if not isinstance(node, exp.Filter):
        return node, None
    inner, where = take(node, "this", "expression")
    (test,) = take(where, "this")
    return inner, condition(test, scope, "FILTER")


def _and(one: Scalar | None, other: Scalar | None) -> Scalar | None:
    if one is None or other is None:
        return one or other
    return functions.call("and", one, other)


class Argument(NamedTuple):
    """What is counted or summed, a further condition on the row, a second argument, which quantiles it is, and the values that a mode is one of."""

    value: Scalar | None = None
    where: Scalar | None = None
    other: Scalar | None = None
    fractions: tuple[Fraction, ...] = ()
    listed: bool = False
    discrete: bool = False
    upper: bool = False
    values: tuple[Value, ...] = ()
    moment: Type | None = None


def _quantile(statement: Statement, node: exp.Expr, scope: Scope) -> tuple[str, Argument]:
    """A quantile; no card's name for others. Of dates it is one of days, of timestamps of microseconds."""
    found = quantiles.asked(statement, node)
    if found is None:
        return "", Argument()
    inner = take(node, "this", "expression")[0] if isinstance(node, exp.WithinGroup) else node
    value = expression(_plain(statement, found.of, inner), scope, statement.spelled(inner))
    if value.type in (DATE, TIMESTAMP):
        discrete = found.discrete or found.approximate
        moment = value.type if discrete else TIMESTAMP
        return "quantile", Argument(value, None, None, found.fractions, found.listed, discrete, found.upper, moment=moment)
    value = _number(statement, found.of, inner, scope, statement.spelled(inner))
    return "quantile", Argument(value, fractions=found.fractions, listed=found.listed, discrete=found.discrete, upper=found.upper)


def _of_moments(statement: Statement, found: AggregateAsk, node: exp.Expr, named: Mapping[str, Option], rel: Private) -> AggregateAsk:
    """The quantile of dates or timestamps as one of their numbers, between bounds of its own or those of conditions on them."""
    if found.argument is None or found.moment is None:
        raise AssertionError("a quantile of moments is of something")
    daily, option = found.argument.type == DATE, named.get("contribution_bounds_per_row")
    known = (*facts(rel), *(() if found.where is None else conjuncts(found.where)))
    match moments(found.argument, known) if option is None else option.value:
        case (datetime.datetime() as low, datetime.datetime() as high) if low <= high:
            unit = DAY if daily else 1
            bounds = Interval(*(Fraction((one - EPOCH) // MICROSECOND, unit) for one in (low, high)))
        case None:
            message = f"nothing bounds the {found.argument.type}s of {found.label}"
            raise statement.refuse(
                "MISSING_BOUNDS", message, node, f"{MOMENTS_BOUNDED}; or in WHERE: x BETWEEN DATE '2024-01-01' AND DATE '2024-12-31'"
            )
        case _:
            message = f"the bounds of {found.argument.type}s are two literal ones, the earlier first"
            raise statement.refuse("BOUNDS_NOT_LITERAL", message, node, MOMENTS_BOUNDED)
    number = functions.call("date_diff", Literal("day" if daily else "microsecond", STRING), Literal(EPOCH.date(), DATE), found.argument)
    return replace(found, argument=number, per_row=bounds, unit=DAY if daily and found.moment == TIMESTAMP else 1)


def _mode(statement: Statement, node: exp.Expr, scope: Scope, rel: Private) -> tuple[str, Argument]:
    """The most frequent value of those on a list."""
    inner = modes.node(node) or node
    value = expression(_plain(statement, modes.of(statement, node), inner), scope, "MODE")
    if isinstance(value, Column) and value.id in unit_columns(rel):  # as keys
        message = "MODE of the privacy unit would show one unit"
        raise statement.refuse("UNIT_AS_OUTPUT", message, node, "MODE(x) of another column")
    return modes.MODE, Argument(value, values=modes.values(statement, value, node, rel))


def _card(statement: Statement, node: exp.Expr, scope: Scope, rel: Private) -> tuple[str, Argument]:
    match node:
        case exp.Count():
            return _count(statement, node, scope, rel)
        case exp.ApproxDistinct():
            return _distinct(statement, [take(node, "this", "accuracy")[0]], node, scope, rel)
        case exp.CountIf():
            test, _ = take(node, "this", "zero_on_all_null")  # it never is NULL here, whatever the dialect
            return "count", Argument(where=condition(_plain(statement, test, node), scope, "COUNT_IF"))
        case exp.Sum():
            (this,) = take(node, "this")
            return "total", Argument(_number(statement, this, node, scope, "SUM"))
        case exp.Avg():
            (this,) = take(node, "this")
            return "mean", Argument(_number(statement, this, node, scope, "AVG"))
        case exp.VariancePop() | exp.Variance() | exp.StddevPop() | exp.StddevSamp() | exp.Stddev():
            (this,) = take(node, "this")
            return MOMENTS[type(node)], Argument(_number(statement, this, node, scope, statement.spelled(node)))
        case exp.CovarPop() | exp.CovarSamp() | exp.Corr():
            return MOMENTS[type(node)], _pair(statement, node, scope)
        case exp.Anonymous() if called(node) in ("mean", "count_star"):
            return _by_name(statement, node, scope)
        case exp.Min() | exp.Max():
            raise statement.refuse("MIN_MAX", f"{statement.spelled(node)} shows the value of one row", node, _extreme(statement, node, scope))
        case _:
            answer = unanswered(node)
            raise statement.refuse(answer.code, f"{statement.spelled(node)} {answer.why}", node, answer.instead)


def _extreme(statement: Statement, node: exp.Expr, scope: Scope) -> str:
    """What to write instead of MIN and MAX: what takes values of the argument's type."""
    this, _ = take(node, "this", "expressions")
    if isinstance(this, exp.Distinct):
        (inside,) = take(this, "expressions")
        if not inside:
            raise statement.refuse("SYNTAX", f"{statement.spelled(node)} has no argument", node, "MAX(x)")
        this = inside[0]
    kind = expression(_plain(statement, this, node), scope, statement.spelled(node)).type
    moment = kind in (DATE, TIMESTAMP)
    end, which = ("0.01", "first" if moment else "smallest") if isinstance(node, exp.Min) else ("0.99", "last" if moment else "largest")
    if kind.numeric:
        return f"QUANTILE_CONT(x, {end}) for about the {which} number; or COUNT(*) with GROUP BY"
    if moment:
        return f"QUANTILE_CONT(x, {end}) between bounds, for about the {which} one; or COUNT(*) with GROUP BY date_trunc('month', x)"
    return "COUNT_IF(x)" if kind == BOOLEAN else "COUNT(*) with GROUP BY x"


def _pair(statement: Statement, node: exp.Expr, scope: Scope) -> Argument:
    """Two numbers, of which either order gives the same."""
    this, other, *_ = take(node, "this", "expression", *(["null_on_zero_variance"] if isinstance(node, exp.Corr) else []))
    name = statement.spelled(node)
    return Argument(_number(statement, this, node, scope, name), other=_number(statement, other, node, scope, name))


def _by_name(statement: Statement, node: exp.Anonymous, scope: Scope) -> tuple[str, Argument]:
    _, args = take(node, "this", "expressions")
    wanted = 1 if called(node) == "mean" else 0
    if len(args or ()) != wanted:
        raise statement.refuse("WRONG_ARGUMENTS", f"{called(node)} takes {wanted} argument(s)", node, "AVG(x), or COUNT(*)")
    return ("mean", Argument(_number(statement, args[0], node, scope, "AVG"))) if wanted else ("count", Argument())


def _count(statement: Statement, node: exp.Count, scope: Scope, rel: Private) -> tuple[str, Argument]:
    this, more, _ = take(node, "this", "expressions", "big_int")
    if more:
        raise statement.refuse("WRONG_ARGUMENTS", "COUNT takes one argument", node, "COUNT(*) FILTER (WHERE a IS NOT NULL AND b IS NOT NULL)")
    if this is None:
        return "count", Argument()
    if isinstance(this, exp.Star):
        take(this)
        return "count", Argument()
    if isinstance(this, exp.Distinct):
        return _distinct(statement, take(this, "expressions")[0], node, scope, rel)
    value = expression(_plain(statement, this, node), scope, "COUNT")
    if isinstance(value, Literal) and value.value is not None:
        return "count", Argument()
    return "count", Argument(value)


def _distinct(statement: Statement, items: Sequence[exp.Expr], node: exp.Expr, scope: Scope, rel: Private) -> tuple[str, Argument]:
    """Distinct units where the column is the unit (from the null side of an outer join it counts where it is not NULL), else distinct values."""
    if len(items) != 1 or isinstance(items[0], exp.Tuple):
        message = "COUNT(DISTINCT ..) counts different values of one expression"
        raise statement.refuse("COUNT_DISTINCT", message, node, "COUNT(DISTINCT x), or GROUP BY x, y")
    value = expression(items[0], scope, "COUNT")
    if isinstance(value, Column) and value.id in unit_columns(rel) | owning(rel):
        return "units", Argument(None if value.id in owning(rel) else value)
    return "distinct", Argument(value)


def _number(statement: Statement, this: exp.Expr, node: exp.Expr, scope: Scope, name: str) -> Scalar:
    value = expression(_plain(statement, this, node), scope, name)
    if not value.type.numeric:
        share = "AVG(CAST(.. AS INT)), the share of rows for which it is true; or " if name == "AVG" else ""
        instead = f"{share}COUNT(*) FILTER (WHERE ..)" if value.type == BOOLEAN else DAYS if value.type in (DATE, TIMESTAMP) else "a number, or COUNT"
        raise statement.refuse("TYPE_MISMATCH", f"{name} takes numbers, not a {value.type}", node, instead)
    return value


def _plain(statement: Statement, this: exp.Expr, node: exp.Expr) -> exp.Expr:
    """The argument, without the clauses that an aggregate's argument can carry: each of them is refused."""
    match this:
        case exp.Order():
            raise statement.refuse("AGGREGATE_ORDER_BY", "ORDER BY inside an aggregate is not supported", node, "the aggregate without it")
        case exp.Distinct():
            message = f"DISTINCT inside {statement.spelled(node)} is not supported"
            raise statement.refuse("DISTINCT_AGGREGATE", message, node, "the aggregate without it, or COUNT(DISTINCT x)")
        case exp.Limit() | exp.HavingMax():
            raise statement.refuse("AGGREGATE_CLAUSE", "LIMIT and HAVING inside an aggregate are not supported", node, "the aggregate without it")
        case exp.Star():
            raise statement.refuse("STAR", "a star can be counted, not added up", node, "COUNT(*), or a column")
        case _:
            return this


# ---- named arguments -----------------------------------------------------------------------------------------------------------------


def _named(statement: Statement, node: exp.Expr) -> Mapping[str, Option]:
    """The `name => value` arguments of a call."""
    start = node.meta.get("start")
    found: dict[str, Option] = {}
    for option in statement.named.get(start, ()) if isinstance(start, int) else ():
        if option.name not in ARGUMENTS:
            message = f"no argument {option.name!r}{near(option.name, ARGUMENTS)}"
            raise statement.refuse_at("NAMED_ARGUMENT", message, option.position, "one of " + ", ".join(ARGUMENTS))
        if option.name in found:
            raise statement.refuse_at("DUPLICATE_OPTION", f"{option.name} is given twice", option.position, "it once")
        found[option.name] = option
    if isinstance(start, int):
        statement.used.add(start)
    if isinstance(start, int) and "report_format" in found:
        edges.check_format(statement, found["report_format"])
        statement.reports.add(start)
    return found


def _bounds(statement: Statement, node: exp.Expr, named: Mapping[str, Option], name: str) -> Interval | None:
    option = named.get(name)
    if option is None:
        return None
    match option.value:
        case (Fraction() as low, Fraction() as high):
            if low > high:
                raise statement.refuse_at("REVERSED_BOUNDS", f"{name}: the lower bound is above the upper one", option.position, "(low, high)")
            if max(abs(low), abs(high)) > GREATEST_BOUND:
                raise statement.refuse_at("BAD_BOUNDS", f"{name}: a bound lies beyond 1e300", option.position, "bounds that values can reach")
            return Interval(low, high)
        case _:
            raise statement.refuse_at("BOUNDS_NOT_LITERAL", f"{name} takes two literal numbers", option.position, f"{name} => (0, 100)")


def _auto(statement: Statement, card: str, named: Mapping[str, Option]) -> bool:
    """Whether the aggregate's bounds are to be chosen from the data."""
    option = named.get("bounds")
    if option is None or card in race.CARDS.values():
        return False
    automatic.check(statement, option)
    other = next((one for name, one in named.items() if name.startswith("contribution_bounds")), None)
    if card not in automatic.CARDS or other is not None:
        message = "bounds are chosen for COUNT, SUM and AVG" if other is None else f"bounds => 'auto' and {other.name} exclude each other"
        raise statement.refuse_at("BOUNDS_AUTO", message, option.position, "the aggregate without bounds => 'auto'")
    return True


def _epsilon(statement: Statement, node: exp.Expr, named: Mapping[str, Option]) -> Fraction | None:
    option = named.get("epsilon")
    if option is None:
        return None
    if not isinstance(option.value, Fraction) or option.value < LEAST_AMOUNT:
        raise statement.refuse_at("BAD_PRICE", "epsilon of an aggregate is a number above 0", option.position, "epsilon => 0.1")
    return option.value
