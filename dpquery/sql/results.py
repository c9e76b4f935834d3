"""Where the results of aggregates within a unit lie: the interval to which a release clamps them by default, and their grid."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from dpquery.plan.inside import PAIRS, Reduce, Reduction
from dpquery.plan.intervals import interval
from dpquery.plan.scalar import Column, Interval, Scalar

KEPT = (Reduce.SUM, Reduce.MIN, Reduce.MAX, Reduce.QUANTILE_DISC, Reduce.ARG_MIN, Reduce.ARG_MAX)  # results on the grid of their values
FINEST = 100  # parts of a grid unit that a quantile between two values may lie on
ZERO = Fraction(0)


def result(found: Reduction, name: str, identity: int, rows: int | None) -> Column:
    """The column of the result, with the interval in which it lies if a unit has at most `rows` rows that keep their bounds: a clamp's default."""
    value = found.value
    return Column(
        id=identity,
        name=name,
        type=found.type,
        declared=_declared(found, _interval(value), _interval(found.by), rows),
        step=_step(found, value) if isinstance(value, Column) else None,
    )


def _step(found: Reduction, value: Column) -> Fraction | None:
    """The grid of the result of a column with one; a quantile between two values divides it as its fraction does."""
    if value.step is None or found.fraction is None or found.function is not Reduce.QUANTILE_CONT:
        return value.step if found.function in KEPT else None
    return value.step / found.fraction.denominator if found.fraction.denominator <= FINEST else None


def _interval(value: Scalar | None) -> Interval | None:
    return None if value is None or not value.type.numeric else interval(value)


def _declared(found: Reduction, of: Interval | None, by: Interval | None, rows: int | None) -> Interval | None:
    if found.function is Reduce.COUNT:
        return None if rows is None else Interval(ZERO, Fraction(rows))
    if found.function in (Reduce.CORR, Reduce.REGR_R2):
        return Interval(Fraction(-1 if found.function is Reduce.CORR else 0), Fraction(1))
    if found.function is Reduce.ENTROPY:
        return None if rows is None else Interval(ZERO, Fraction(rows.bit_length()))
    if of is None:
        return None
    if found.function in PAIRS:
        return None if by is None else _of_pair(found, (of.high - of.low) * (by.high - by.low), rows)
    return _of_one(found, of, rows)


def _of_pair(found: Reduction, area: Fraction, rows: int | None) -> Interval | None:
    """Of two values that lie in a rectangle of this area; nothing holds how steep a line through them is."""
    match found.function:
        case Reduce.COVAR_POP | Reduce.COVAR_SAMP:
            most = area / (4 if found.function is Reduce.COVAR_POP else 2)
        case Reduce.REGR_SXY if rows is not None:
            most = area * rows / 4
        case _:
            return None
    return Interval(-most, most)


def _of_one(found: Reduction, of: Interval, rows: int | None) -> Interval | None:
    wide = of.high - of.low
    match found.function:
        case Reduce.SUM:
            return None if rows is None else Interval(min(of.low, of.low * rows), max(of.high, of.high * rows))
        case Reduce.VAR_POP | Reduce.VAR_SAMP:
            return Interval(ZERO, wide**2 / (4 if found.function is Reduce.VAR_POP else 2))
        case Reduce.STDDEV_SAMP:
            return Interval(ZERO, wide * Fraction(5, 7))
        case Reduce.STDDEV_POP | Reduce.SEM | Reduce.MAD:
            return Interval(ZERO, wide / 2)
        case Reduce.SQUARES:
            return None if rows is None else Interval(ZERO, wide**2 * rows / 4)
        case Reduce.SKEWNESS | Reduce.KURTOSIS | Reduce.KURTOSIS_POP:
            return None if rows is None else _shape(found.function, rows)
        case Reduce.PRODUCT:
            return Interval(Fraction(0 if of.low >= 0 else -1), Fraction(1)) if of.magnitude <= 1 else None
        case Reduce.BIT_AND | Reduce.BIT_OR | Reduce.BIT_XOR:
            return Interval(ZERO, Fraction(2 ** int(of.high).bit_length() - 1)) if of.low >= 0 else None
        case Reduce.GEOMEAN:
            return Interval(max(ZERO, of.low), max(ZERO, of.high))
        case Reduce.ALL | Reduce.ANY:
            return None
        case _:
            return of


def _shape(function: Reduce, rows: int) -> Interval:
    """Of n values the skewness is at most sqrt(n), the kurtosis at most n; that of a sample is at least -6, which four values reach."""
    if function is Reduce.SKEWNESS:
        most = Fraction(isqrt(rows) + 1)
        return Interval(-most, most)
    return Interval(Fraction(-6 if function is Reduce.KURTOSIS else -2), Fraction(rows))
