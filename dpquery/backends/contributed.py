"""What a row contributes to an aggregate within its unit, as SQL: its value where the row counts, and its whole grid units."""

from __future__ import annotations

from collections.abc import Mapping

from dpquery.backends.scalar import sql, units
from dpquery.plan.inside import Reduction, Whole
from dpquery.plan.scalar import Scalar

Names = Mapping[int, str]


def where(text: str, test: Scalar | None, names: Names) -> str:
    """The text where the FILTER holds, else NULL."""
    return text if test is None else f"CASE WHEN {sql(test, names)} THEN {text} END"


def argument(value: Scalar | None) -> Scalar:
    """The value, which all but COUNT have."""
    if value is None:
        raise ValueError("only COUNT has no value")
    return value


def value(reduction: Reduction, names: Names) -> str:
    """The value of a row that counts."""
    return where(sql(argument(reduction.value), names), reduction.where, names)


def distinct(reduction: Reduction) -> str:
    """The word for each value once."""
    return "DISTINCT " if reduction.distinct else ""


def above_low(reduction: Reduction, of: Scalar, whole: Whole | None, names: Names) -> str:
    """Of a row that counts how many grid units `of` lies above its least: an integer of 30 bits, never negative."""
    if whole is None or whole.high - whole.low > 2**30:
        raise ValueError("a spread needs integers of 30 bits")
    return f"({where(units(of, whole.step, whole.low, whole.high, names), reduction.where, names)} - ({whole.low:d}))"
