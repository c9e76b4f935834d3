"""Spreads, shapes and pairs within a unit as SQL: from integer sums, which are exact and the same in any order; the last step alone is in doubles.

Sums are of x - low >= 0 in 30 bits, so that n Sxy - Sx Sy and its kin have 128 bits at most. Clamps keep them there whatever the data; no unit has
so many rows that they bite.
"""

from __future__ import annotations

from fractions import Fraction

from dpquery.backends.contributed import Names, above_low, argument, distinct
from dpquery.backends.scalar import literal, sql
from dpquery.backends.values import INFINITY
from dpquery.errors import Refused
from dpquery.plan.inside import Reduce, Reduction, Whole
from dpquery.values.types import FLOAT

MOST_ROWS, MOST_SUM, MOST_SQUARES = 2**33, 2**63, 2**93  # of one unit, as far as spreads tell them apart
FOURTH_BITS = 23  # of values whose fourth powers are added up: 2^33 of these have 125 bits
BELOW: dict[Reduce, str] = {
    Reduce.VAR_POP: "{n} * {n}",
    Reduce.VAR_SAMP: "{n} * ({n} - 1)",
    Reduce.STDDEV_POP: "{n} * {n}",
    Reduce.STDDEV_SAMP: "{n} * ({n} - 1)",
    Reduce.SEM: "{n} * {n} * {n}",
    Reduce.SQUARES: "{n}",
    Reduce.COVAR_POP: "{n} * {n}",
    Reduce.COVAR_SAMP: "{n} * ({n} - 1)",
    Reduce.REGR_SXY: "{n}",
}
"""What n Sxy - Sx Sy is divided by."""
ROOTS = (Reduce.STDDEV_POP, Reduce.STDDEV_SAMP, Reduce.SEM)


def spread(reduction: Reduction, names: Names, over: str = "") -> str:
    """The variance and its kin: (n S2 - S1^2) by what each divides by."""
    whole = _given(reduction.whole)
    x = above_low(reduction, argument(reduction.value), whole, names)
    above = f"CAST({_less(x, x, x, distinct(reduction), over)} AS DOUBLE)"
    found = _divided(reduction, above, f"count({distinct(reduction)}{x}){over}", whole.step**2)
    return f"sqrt({found})" if reduction.function in ROOTS else found


def pair(reduction: Reduction, names: Names, over: str = "") -> str:
    """Covariance, correlation and regression of y on x over the rows that have both."""
    first, second = _given(reduction.whole), _given(reduction.beside)
    value, by = argument(reduction.value), argument(reduction.by)
    y, x = (
        f"(CASE WHEN {sql(other, names)} IS NOT NULL THEN {above_low(reduction, one, whole, names)} END)"
        for one, whole, other in ((value, first, by), (by, second, value))
    )
    across, wide, high = (f"CAST({_less(one, other, y, '', over)} AS DOUBLE)" for one, other in ((y, x), (x, x), (y, y)))
    n = f"count({y}){over}"
    steepness = _scaled(f"{across} / {wide}", first.step / second.step)
    match reduction.function:
        case Reduce.CORR:
            return f"CASE WHEN {wide} > 0 AND {high} > 0 THEN greatest(-1e0, least(1e0, {across} / sqrt({wide} * {high}))) + 0.0 END"
        case Reduce.REGR_R2:
            square = f"CASE WHEN {high} > 0 THEN least(1e0, {across} * {across} / ({wide} * {high})) ELSE 1e0 END"
            return f"CASE WHEN {wide} > 0 THEN {square} END"
        case Reduce.REGR_SLOPE:
            return f"CASE WHEN {wide} > 0 THEN {steepness} + 0.0 END"
        case Reduce.REGR_INTERCEPT:
            ends = (_mean(text, n, whole, over) for text, whole in ((y, first), (x, second)))
            found = f"{next(ends)} - {steepness} * {next(ends)}"
            return f"CASE WHEN {wide} > 0 AND {found} <= {INFINITY} THEN {found} + 0.0 END"
        case _:
            return _divided(reduction, across, n, first.step * second.step)


def shape(reduction: Reduction, names: Names) -> str:
    """SKEWNESS and KURTOSIS, of how far integers lie from a whole number beside their mean: powers of that are added up exactly."""
    whole = _given(reduction.whole)
    if whole.high - whole.low > 2**FOURTH_BITS:
        raise ValueError("a shape needs integers of 23 bits")
    x, each = above_low(reduction, argument(reduction.value), whole, names), distinct(reduction)
    centre = f"CAST(sum({each}{x}) // count({each}{x}) AS BIGINT)"
    values = f"list({each}{x}) FILTER (WHERE {x} IS NOT NULL)"
    powers = ["CAST({e} AS HUGEINT)", "CAST({e} * {e} AS HUGEINT)", "CAST({e} * {e} AS HUGEINT) * ({e})", "CAST({e} * {e} AS HUGEINT) * ({e} * {e})"]
    sums = (f"list_sum(list_transform({values}, lambda v: {power.format(e=f'(v - {centre})')}))" for power in powers)
    n = f"CAST(count({each}{x}) AS DOUBLE)"
    a, b, c, d = (f"(CAST({text} AS DOUBLE) / {n})" for text in sums)
    second = f"({b} - {a} * {a})"
    third = f"({c} - 3 * {a} * {b} + 2 * {a} * {a} * {a})"
    fourth = f"({d} - 4 * {a} * {c} + 6 * {a} * {a} * {b} - 3 * {a} * {a} * {a} * {a})"
    peaked = f"{fourth} / ({second} * {second})"
    least, found = {
        Reduce.SKEWNESS: (3, f"sqrt({n} * ({n} - 1)) / ({n} - 2) * {third} / ({second} * sqrt({second}))"),
        Reduce.KURTOSIS: (4, f"({n} - 1) * (({n} + 1) * {peaked} - 3 * ({n} - 1)) / (({n} - 2) * ({n} - 3))"),
        Reduce.KURTOSIS_POP: (2, f"{peaked} - 3"),
    }[reduction.function]
    return f"CASE WHEN count({each}{x}) >= {least} AND min({x}) < max({x}) THEN {found} + 0.0 END"


def _given(whole: Whole | None) -> Whole:
    if whole is None:
        raise ValueError("a spread needs a grid")
    return whole


def _less(one: str, other: str, counted: str, each: str, over: str) -> str:
    """n Sxy - Sx Sy, exactly; for one and the same text n S2 - S1^2."""
    n = f"least(count({each}{counted}){over}, {MOST_ROWS}::HUGEINT)"
    a, b = (f"least(sum({each}{text}){over}, {MOST_SUM}::HUGEINT)" for text in (one, other))
    both = f"least(sum({each}{one} * {other}){over}, {MOST_SQUARES}::HUGEINT)"
    return f"{n} * {both} - {a} * {b}"


def _divided(reduction: Reduction, above: str, n: str, scale: Fraction) -> str:
    below = f"({BELOW[reduction.function].format(n=f'CAST({n} AS DOUBLE)')})"
    return f"CASE WHEN {below} > 0 THEN {_scaled(f'{above} / {below}', scale)} + 0.0 END"


def _scaled(text: str, scale: Fraction) -> str:
    """The number in the values' own units. Refused: TOO_WIDE where no double holds such a unit."""
    if scale == 1:
        return text
    if not 2.0**-1022 <= scale <= 2.0**1023:
        raise Refused("TOO_WIDE", "the values' steps are too far apart for doubles", instead="a coarser `step`, or narrower bounds")
    return f"{text} * {literal(float(scale), FLOAT)}"


def _mean(text: str, n: str, whole: Whole, over: str) -> str:
    """The mean of values from the sum of their units, of which each has `low` more."""
    added = f"CAST(sum({text}){over} + {n}::HUGEINT * ({whole.low:d})::HUGEINT AS DOUBLE)" if whole.low else f"CAST(sum({text}){over} AS DOUBLE)"
    return "(" + _scaled(f"{added} / {n}", whole.step) + ")"
