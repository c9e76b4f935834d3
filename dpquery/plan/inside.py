"""Aggregates and windows over the rows of one unit: functions of the bag of its rows, whatever their order. They stay below the noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from dpquery.plan.scalar import Column, Scalar
from dpquery.values.types import Type


class Reduce(StrEnum):
    """What becomes of the values that count: those that are not NULL, which NaN is too. Of no values all but COUNT and ENTROPY are NULL."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    VAR_POP = "var_pop"
    VAR_SAMP = "var_samp"
    STDDEV_POP = "stddev_pop"
    STDDEV_SAMP = "stddev_samp"
    SEM = "sem"
    SQUARES = "squares"  # of what values differ from their mean, added up: REGR_SXX and REGR_SYY
    SKEWNESS = "skewness"
    KURTOSIS = "kurtosis"
    KURTOSIS_POP = "kurtosis_pop"
    COVAR_POP = "covar_pop"
    COVAR_SAMP = "covar_samp"
    CORR = "corr"
    REGR_SLOPE = "regr_slope"
    REGR_INTERCEPT = "regr_intercept"
    REGR_R2 = "regr_r2"
    REGR_SXY = "regr_sxy"
    MIN = "min"
    MAX = "max"
    ALL = "bool_and"
    ANY = "bool_or"
    QUANTILE_CONT = "quantile_cont"
    QUANTILE_DISC = "quantile_disc"
    ARG_MIN = "arg_min"
    ARG_MAX = "arg_max"
    FIRST = "first"
    TEXTS = "string_agg"
    MAD = "mad"
    PRODUCT = "product"
    GEOMEAN = "geomean"
    ENTROPY = "entropy"
    BIT_AND = "bit_and"
    BIT_OR = "bit_or"
    BIT_XOR = "bit_xor"


SPREADS = (Reduce.VAR_POP, Reduce.VAR_SAMP, Reduce.STDDEV_POP, Reduce.STDDEV_SAMP, Reduce.SEM, Reduce.SQUARES)
SHAPES = (Reduce.SKEWNESS, Reduce.KURTOSIS, Reduce.KURTOSIS_POP)
PAIRS = (
    *(Reduce.COVAR_POP, Reduce.COVAR_SAMP, Reduce.CORR),
    *(Reduce.REGR_SLOPE, Reduce.REGR_INTERCEPT, Reduce.REGR_R2, Reduce.REGR_SXY),
)
"""Of y and x, the `value` and `by`, over the rows that have both."""
ADDED = (Reduce.SUM, Reduce.AVG, *SPREADS, *SHAPES, *PAIRS)
BITS = (Reduce.BIT_AND, Reduce.BIT_OR, Reduce.BIT_XOR)
WINDOWS = (
    *(Reduce.COUNT, Reduce.SUM, Reduce.AVG, Reduce.MIN, Reduce.MAX, Reduce.ALL, Reduce.ANY),
    *(*SPREADS, *PAIRS, *BITS, Reduce.GEOMEAN, Reduce.MAD, Reduce.QUANTILE_CONT, Reduce.QUANTILE_DISC),
)
"""Those that may run over a window. The others keep all values at hand, once more for each row of it."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Values in whole grid units, as added up: clamp(floor(value / step + 1/2), low, high)."""

    step: Fraction
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Sort:
    """How FIRST and TEXTS take `by`; without it they take values from the least, or `descending` from the greatest. TEXTS have a separator."""

    descending: bool
    nulls_first: bool
    separator: str | None = None


@dataclass(frozen=True, slots=True)
class Reduction:
    """One aggregate over rows. COUNT without a value counts rows.

    `where` is the FILTER. `distinct` counts and adds up each value once. `by` is what ARG_MIN and ARG_MAX look for the extreme of, ties going to the
    least value; of pairs it is the second, and of FIRST and TEXTS it is what rows are ordered by, equals by the value. `fraction` is the quantile's.
    `whole` is the grid of what is added up, `beside` that of `by`; integers of which no spread is asked go without. FIRST, for which NULL counts as
    well, and TEXTS have a `sort`.
    """

    function: Reduce
    value: Scalar | None
    type: Type
    where: Scalar | None = None
    distinct: bool = False
    by: Scalar | None = None
    fraction: Fraction | None = None
    whole: Whole | None = None
    beside: Whole | None = None
    sort: Sort | None = None


def parts(reduction: Reduction) -> Iterator[Scalar]:
    """The expressions that it reads."""
    yield from (scalar for scalar in (reduction.value, reduction.where, reduction.by) if scalar is not None)


# ---- windows -------------------------------------------------------------------------------------------------------------------------


class Place(StrEnum):
    """What a row's place among the rows of its partition gives."""

    ROW_NUMBER = "row_number"
    RANK = "rank"
    DENSE_RANK = "dense_rank"
    LAG = "lag"
    LEAD = "lead"
    FIRST_VALUE = "first_value"


@dataclass(frozen=True, slots=True)
class Placing:
    """A window function of the order of rows. RANK and DENSE_RANK tell no equals apart; for the others all columns break ties.

    `value` and `offset` are those of LAG and LEAD; FIRST_VALUE has a value alone.
    """

    function: Place
    value: Column | None
    type: Type
    offset: int = 1


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows that a running aggregate goes over: up to the last equal of the current row, or `rows`: by count, all columns breaking ties.

    From `preceding` rows before the current one (None: from the first) to `following` rows after it; fewer than 0 lie on its other side.
    """

    rows: bool
    preceding: int | None = None
    following: int = 0


@dataclass(frozen=True, slots=True)
class Term:
    """A term of ORDER BY."""

    column: Column
    descending: bool
    nulls_first: bool


def total(item: Placing | Reduction, frame: Frame | None) -> bool:
    """Whether the function tells equal rows apart, so that all columns must break ties."""
    if isinstance(item, Placing):
        return item.function not in (Place.RANK, Place.DENSE_RANK)
    return frame is not None and frame.rows
