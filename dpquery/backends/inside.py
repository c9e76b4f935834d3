"""Aggregates within a unit as SQL: total, canonical, and the same in whatever order rows come and on however many threads.

What is added up are integers or clamped decimals, whose sums are exact; spreads come from integer sums; what picks a row picks by its values alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from dpquery.backends.scalar import literal, sql, units
from dpquery.backends.values import INFINITY
from dpquery.plan.inside import WINDOWS, Frame, Place, Placing, Reduce, Reduction
from dpquery.plan.scalar import Literal, Scalar
from dpquery.values.types import FLOAT, Kind, Type

Names = Mapping[int, str]
MOST_ROWS, MOST_SUM, MOST_SQUARES = 2**33, 2**63, 2**93  # of one unit, as far as spreads tell them apart


def reduced(reduction: Reduction, names: Names, over: str = "") -> str:
    """The aggregate over the rows of a group, in canonical form; `over` makes it a window, which only some of them can be."""
    if over and (reduction.function not in WINDOWS or reduction.distinct):
        raise ValueError("the aggregate is no window")
    match reduction.function:
        case Reduce.COUNT:
            return _count(reduction, names) + over
        case Reduce.SUM:
            return _sum(reduction, names, over)
        case Reduce.AVG:
            added, count = _added(reduction, names, over)
            return f"(CAST({added} AS DOUBLE) / {count}{_scaled(reduction)} + 0.0)"
        case Reduce.VAR_POP | Reduce.VAR_SAMP:
            return _variance(reduction, names)
        case Reduce.STDDEV_POP | Reduce.STDDEV_SAMP:
            return f"sqrt({_variance(reduction, names)})"
        case Reduce.MIN | Reduce.MAX | Reduce.ALL | Reduce.ANY:
            return f"{reduction.function}({_value(reduction, names)}){over}"
        case Reduce.QUANTILE_CONT:
            at = f"quantile_cont(CAST({_value(reduction, names)} AS DOUBLE), {_fraction(reduction)})"
            return f"CASE WHEN {at} <= {INFINITY} THEN {at} + 0.0 END"
        case Reduce.QUANTILE_DISC:
            return f"quantile_disc({_value(reduction, names)}, {_fraction(reduction)})"
        case Reduce.ARG_MIN | Reduce.ARG_MAX:
            return _extreme(reduction, names)
        case _:
            assert_never(reduction.function)


def _where(text: str, where: Scalar | None, names: Names) -> str:
    return text if where is None else f"CASE WHEN {sql(where, names)} THEN {text} END"


def _argument(value: Scalar | None) -> Scalar:
    if value is None:
        raise ValueError("only COUNT has no value")
    return value


def _value(reduction: Reduction, names: Names) -> str:
    return _where(sql(_argument(reduction.value), names), reduction.where, names)


def _distinct(reduction: Reduction) -> str:
    return "DISTINCT " if reduction.distinct else ""


def _count(reduction: Reduction, names: Names) -> str:
    if reduction.value is not None:
        return f"count({_distinct(reduction)}{_value(reduction, names)})"
    return "count(*)" if reduction.where is None else f"count({_where('1', reduction.where, names)})"


# ---- sums ----------------------------------------------------------------------------------------------------------------------------


def _addend(reduction: Reduction, names: Names) -> str:
    """What a row adds: an integer of 64 bits, or a decimal that is clamped; NULL where it does not count."""
    value, whole = _argument(reduction.value), reduction.whole
    if whole is None:
        if value.type.kind is not Kind.INTEGER:
            raise ValueError("only integers are added up without bounds")
        return _where(sql(value, names), reduction.where, names)
    if _is_decimal(reduction):
        text = sql(value, names)
        low, high = (literal(Decimal(end).scaleb(-value.type.scale), value.type) for end in (whole.low, whole.high))
        return _where(f"CASE WHEN {text} IS NOT NULL THEN least(greatest({text}, {low}), {high}) END", reduction.where, names)
    return _where(units(value, whole.step, whole.low, whole.high, names), reduction.where, names)


def _is_decimal(reduction: Reduction) -> bool:
    """Whether decimals are added up as decimals, digit by digit; spreads take them as integers."""
    value = _argument(reduction.value)
    return value.type.kind is Kind.DECIMAL and reduction.function in (Reduce.SUM, Reduce.AVG)


def _added(reduction: Reduction, names: Names, over: str = "") -> tuple[str, str]:
    """The exact sum of the rows' integers or decimals, NULL of none, and their number."""
    text = _distinct(reduction) + _addend(reduction, names)
    return f"sum({text}){over}", f"count({text}){over}"


def _sum(reduction: Reduction, names: Names, over: str) -> str:
    added, _ = _added(reduction, names, over)
    match reduction.type.kind:
        case Kind.INTEGER:
            return f"TRY_CAST({added} AS BIGINT)"
        case Kind.DECIMAL:
            return f"TRY_CAST({added} AS DECIMAL(38,{reduction.type.scale}))"
        case _:
            return f"(CAST({added} AS DOUBLE){_scaled(reduction)} + 0.0)"


def _scaled(reduction: Reduction) -> str:
    """From units back to values; decimals and plain integers are values already."""
    step = Fraction(1) if reduction.whole is None or _is_decimal(reduction) else reduction.whole.step
    return "" if step == 1 else f" * {literal(float(step), FLOAT)}"


def _variance(reduction: Reduction, names: Names) -> str:
    """(n S2 - S1^2) / n^2, or / n (n - 1), from integers x - low >= 0 of 30 bits: exact but for the last division.

    The clamps on n, S1 and S2 keep the product in 128 bits whatever the data; no unit has so many rows that they bite.
    """
    whole = reduction.whole
    if whole is None or whole.high - whole.low > 2**30:
        raise ValueError("a spread needs integers of 30 bits")
    x = f"({_where(units(_argument(reduction.value), whole.step, whole.low, whole.high, names), reduction.where, names)} - ({whole.low:d}))"
    count, one, two = (f"least({function}, {most}::HUGEINT)" for function, most in _moments(_distinct(reduction), x))
    above = f"CAST({count} * {two} - {one} * {one} AS DOUBLE)"
    fewer = "" if reduction.function in (Reduce.VAR_POP, Reduce.STDDEV_POP) else " - 1"
    n = f"CAST(count({_distinct(reduction)}{x}) AS DOUBLE)"
    below = f"({n} * ({n}{fewer}))"
    scale = "" if whole.step == 1 else f" * {literal(float(whole.step) * float(whole.step), FLOAT)}"
    return f"CASE WHEN {below} > 0 THEN {above} / {below}{scale} END"


def _moments(distinct: str, x: str) -> tuple[tuple[str, int], ...]:
    return (f"count({distinct}{x})", MOST_ROWS), (f"sum({distinct}{x})", MOST_SUM), (f"sum({distinct}{x} * {x})", MOST_SQUARES)


# ---- values of one row ---------------------------------------------------------------------------------------------------------------


def _fraction(reduction: Reduction) -> str:
    """The quantile as a decimal: whole numbers, where the engine counts rows."""
    if reduction.fraction is None:
        raise ValueError("a quantile has a fraction")
    scale = next(k for k in range(38) if (reduction.fraction * 10**k).denominator == 1)
    return literal(Decimal(int(reduction.fraction * 10**scale)).scaleb(-scale), Type(Kind.DECIMAL, scale))


def _extreme(reduction: Reduction, names: Names) -> str:
    """The value where `by` is least or greatest; of several the least value. Rows without either do not count."""
    value, by = sql(_argument(reduction.value), names), sql(_argument(reduction.by), names)
    way = "DESC" if reduction.function is Reduce.ARG_MAX else "ASC"
    where = "" if reduction.where is None else f" AND {sql(reduction.where, names)}"
    kept = f"FILTER (WHERE {value} IS NOT NULL AND {by} IS NOT NULL{where})"
    terms = ((reduction.by, f"{by} {way} NULLS LAST"), (reduction.value, f"{value} ASC NULLS LAST"))
    ordered = ", ".join(text for term, text in terms if not isinstance(term, Literal))  # by which DuckDB orders nothing
    return f"first({value}{f' ORDER BY {ordered}' if ordered else ''}) {kept}"


# ---- windows -------------------------------------------------------------------------------------------------------------------------


def placed(item: Placing, names: Names, over: str) -> str:
    """What a row's place in the window gives."""
    match item.function:
        case Place.ROW_NUMBER | Place.RANK | Place.DENSE_RANK:
            return f"{item.function}(){over}"
        case Place.LAG | Place.LEAD:
            return f"{item.function}({sql(_argument(item.value), names)}, {item.offset:d}){over}"
        case Place.FIRST_VALUE:
            return f"first_value({sql(_argument(item.value), names)}){over}"
        case _:
            assert_never(item.function)


def framed(frame: Frame) -> str:
    """The rows that an aggregate goes over."""
    before = "UNBOUNDED PRECEDING" if frame.preceding is None else _edge(-frame.preceding)
    return f"{'ROWS' if frame.rows else 'RANGE'} BETWEEN {before} AND {_edge(frame.following)}"


def _edge(rows: int) -> str:
    """So many rows after the current one."""
    return "CURRENT ROW" if rows == 0 else f"{abs(rows):d} {'PRECEDING' if rows < 0 else 'FOLLOWING'}"
