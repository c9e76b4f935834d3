"""Aggregates within a unit as SQL: total, canonical, and the same in whatever order rows come and on however many threads.

What is added up are integers or clamped decimals, whose sums are exact; spreads come from integer sums; what picks a row picks by its values alone.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from dpquery.backends.contributed import Names, argument, distinct, value, where
from dpquery.backends.scalar import literal, sql, units
from dpquery.backends.spreads import pair, shape, spread
from dpquery.backends.values import INFINITY, quoted
from dpquery.plan.coerce import LONGEST
from dpquery.plan.inside import PAIRS, SHAPES, SPREADS, WINDOWS, Frame, Place, Placing, Reduce, Reduction
from dpquery.plan.scalar import Literal
from dpquery.values.types import FLOAT, Kind, Type

TINY = f"{float(2**40)!r}::DOUBLE"  # units of a logarithm in one


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
        case _ if reduction.function in PAIRS:
            return pair(reduction, names, over)
        case _ if reduction.function in SPREADS:
            return spread(reduction, names, over)
        case _ if reduction.function in SHAPES:
            return shape(reduction, names)
        case Reduce.ARG_MIN | Reduce.ARG_MAX:
            return _extreme(reduction, names)
        case Reduce.FIRST | Reduce.TEXTS:
            return _in_order(reduction, names)
        case _:
            return _of_bag(reduction, value(reduction, names), over)


def _of_bag(reduction: Reduction, text: str, over: str) -> str:
    """What is the same for a bag of values in any order: one of them, or something between."""
    each = distinct(reduction)
    match reduction.function:
        case Reduce.MIN | Reduce.MAX | Reduce.ALL | Reduce.ANY | Reduce.BIT_AND | Reduce.BIT_OR | Reduce.BIT_XOR:
            return f"{reduction.function}({each}{text}){over}"
        case Reduce.QUANTILE_CONT:
            return _finite(f"quantile_cont(CAST({text} AS DOUBLE), {_fraction(reduction)}){over}")
        case Reduce.QUANTILE_DISC:
            return f"quantile_disc({text}, {_fraction(reduction)}){over}"
        case Reduce.MAD:
            return _finite(f"mad({each}CAST({text} AS DOUBLE)){over}")
        case Reduce.PRODUCT:
            values = f"list({each}CAST({text} AS DOUBLE)) FILTER (WHERE {text} IS NOT NULL)"
            found = f"list_product(list_sort({values}))"  # one after the other, from the least on
            return f"CASE WHEN isfinite({found}) THEN {found} + 0.0 END"
        case Reduce.GEOMEAN:
            return _geometric(f"CAST({text} AS DOUBLE)", each, over)
        case Reduce.ENTROPY:
            return _entropy(text, each)
        case _:
            raise ValueError(f"no aggregate of a bag: {reduction.function}")


def _finite(text: str) -> str:
    """The number, NULL where it is none."""
    return f"CASE WHEN {text} <= {INFINITY} THEN {text} + 0.0 END"


def _count(reduction: Reduction, names: Names) -> str:
    if reduction.value is not None:
        return f"count({distinct(reduction)}{value(reduction, names)})"
    return "count(*)" if reduction.where is None else f"count({where('1', reduction.where, names)})"


# ---- sums ----------------------------------------------------------------------------------------------------------------------------


def _addend(reduction: Reduction, names: Names) -> str:
    """What a row adds: an integer of 64 bits, or a decimal that is clamped; NULL where it does not count."""
    of, whole = argument(reduction.value), reduction.whole
    if whole is None:
        if of.type.kind is not Kind.INTEGER:
            raise ValueError("only integers are added up without bounds")
        return where(sql(of, names), reduction.where, names)
    if _is_decimal(reduction):
        text = sql(of, names)
        low, high = (literal(Decimal(end).scaleb(-of.type.scale), of.type) for end in (whole.low, whole.high))
        return where(f"CASE WHEN {text} IS NOT NULL THEN least(greatest({text}, {low}), {high}) END", reduction.where, names)
    return where(units(of, whole.step, whole.low, whole.high, names), reduction.where, names)


def _is_decimal(reduction: Reduction) -> bool:
    """Whether decimals are added up as decimals, digit by digit; spreads take them as integers."""
    return argument(reduction.value).type.kind is Kind.DECIMAL and reduction.function in (Reduce.SUM, Reduce.AVG)


def _added(reduction: Reduction, names: Names, over: str = "") -> tuple[str, str]:
    """The exact sum of the rows' integers or decimals, NULL of none, and their number."""
    text = distinct(reduction) + _addend(reduction, names)
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


# ---- logarithms ----------------------------------------------------------------------------------------------------------------------


def _geometric(x: str, each: str, over: str) -> str:
    """The mean of logarithms, each of which is a whole number of tiny units: all those of doubles lie between -745 and 710."""
    logarithm = f"CASE WHEN {x} > 0 AND {x} < {INFINITY} THEN {x} END"
    units = f"CAST(floor(ln({logarithm}) * {TINY} + 0.5) AS BIGINT)"
    mean = f"exp(CAST(sum({each}{units}){over} AS DOUBLE) / count({each}{units}){over} / {TINY})"
    low, high = f"min({x}){over}", f"max({x}){over}"
    return f"CASE WHEN {low} < 0 OR {high} = {INFINITY} THEN NULL WHEN {low} = 0 THEN 0e0 WHEN {mean} < {INFINITY} THEN {mean} END"


def _entropy(text: str, each: str) -> str:
    """log2 n less the mean of log2 over the rows of each value's number; of no values 0, as in DuckDB."""
    each_one = f"lambda c: CAST(floor(c * log2(c) * {TINY} + 0.5) AS HUGEINT)"
    n = f"count({each}{text})"
    less = f"CAST(list_sum(list_transform(map_values(histogram({each}{text})), {each_one})) AS DOUBLE) / {TINY}"
    return f"CASE WHEN {n} > 1 THEN greatest(0e0, log2({n}) - {less} / {n}) ELSE 0e0 END"


# ---- values of one row ---------------------------------------------------------------------------------------------------------------


def _fraction(reduction: Reduction) -> str:
    """The quantile as a decimal: whole numbers, where the engine counts rows."""
    if reduction.fraction is None:
        raise ValueError("a quantile has a fraction")
    scale = next(k for k in range(38) if (reduction.fraction * 10**k).denominator == 1)
    return literal(Decimal(int(reduction.fraction * 10**scale)).scaleb(-scale), Type(Kind.DECIMAL, scale))


def _extreme(reduction: Reduction, names: Names) -> str:
    """The value where `by` is least or greatest; of several the least value. Rows without either do not count."""
    text, by = sql(argument(reduction.value), names), sql(argument(reduction.by), names)
    way = "DESC" if reduction.function is Reduce.ARG_MAX else "ASC"
    test = "" if reduction.where is None else f" AND {sql(reduction.where, names)}"
    kept = f"FILTER (WHERE {text} IS NOT NULL AND {by} IS NOT NULL{test})"
    terms = ((reduction.by, f"{by} {way} NULLS LAST"), (reduction.value, f"{text} ASC NULLS LAST"))
    ordered = ", ".join(found for term, found in terms if not isinstance(term, Literal))  # by which DuckDB orders nothing
    return f"first({text}{f' ORDER BY {ordered}' if ordered else ''}) {kept}"


def _in_order(reduction: Reduction, names: Names) -> str:
    """The first of the values, or all of them as one text, in an order that says all of each: equal rows have equal values.

    A text is cut at its greatest length, which so many values and separators have reached; the others are left out beforehand.
    """
    text, sort = sql(argument(reduction.value), names), reduction.sort
    if sort is None:
        raise ValueError("what comes in order has one")
    way = f"{'DESC' if sort.descending else 'ASC'} NULLS {'FIRST' if sort.nulls_first else 'LAST'}"
    by = [] if reduction.by is None or isinstance(reduction.by, Literal) else [f"{sql(reduction.by, names)} {way}"]
    ties = [] if isinstance(reduction.value, Literal) else [f"{text} {'ASC NULLS LAST' if reduction.by is not None else way}"]
    order = f" ORDER BY {', '.join([*by, *ties])}" if by or ties else ""
    test = "TRUE" if reduction.where is None else sql(reduction.where, names)
    if reduction.function is Reduce.FIRST:
        return f"first({text}{order}) FILTER (WHERE {test})"
    separator = sort.separator or ""
    values = f"(list({distinct(reduction)}{text}{order}) FILTER (WHERE {text} IS NOT NULL AND {test})){f'[1:{LONGEST + 1}]' if separator else ''}"
    return f"left(list_aggr({values}, 'string_agg', {quoted(separator)}), {LONGEST})"


# ---- windows -------------------------------------------------------------------------------------------------------------------------


def placed(item: Placing, names: Names, over: str) -> str:
    """What a row's place in the window gives."""
    match item.function:
        case Place.ROW_NUMBER | Place.RANK | Place.DENSE_RANK:
            return f"{item.function}(){over}"
        case Place.LAG | Place.LEAD:
            return f"{item.function}({sql(argument(item.value), names)}, {item.offset:d}){over}"
        case Place.FIRST_VALUE:
            return f"first_value({sql(argument(item.value), names)}){over}"
        case _:
            assert_never(item.function)


def framed(frame: Frame) -> str:
    """The rows that an aggregate goes over."""
    before = "UNBOUNDED PRECEDING" if frame.preceding is None else _edge(-frame.preceding)
    return f"{'ROWS' if frame.rows else 'RANGE'} BETWEEN {before} AND {_edge(frame.following)}"


def _edge(rows: int) -> str:
    """So many rows after the current one."""
    return "CURRENT ROW" if rows == 0 else f"{abs(rows):d} {'PRECEDING' if rows < 0 else 'FOLLOWING'}"
