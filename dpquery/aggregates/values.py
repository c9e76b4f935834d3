"""Released numbers as values of their SQL type: saturating, never failing."""

from __future__ import annotations

import datetime
import sys
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from dpquery.values.types import Kind, Type, Value

LARGEST_BIGINT = 2**63 - 1
DIGITS = 38  # of a DECIMAL
DAY = 86_400_000_000  # microseconds
EPOCH = datetime.datetime(1970, 1, 1)
FIRST, LAST = ((one - EPOCH) // datetime.timedelta(microseconds=1) for one in (datetime.datetime.min, datetime.datetime.max))


def released(value: Fraction, type: Type) -> Value:
    """The value in its SQL type, rounded to nearest (halves up), saturating at the type's ends; of a DATE the days since 1970, of a TIMESTAMP the
    microseconds."""
    match type.kind:
        case Kind.INTEGER:
            return _integer(floor(value + Fraction(1, 2)))
        case Kind.DECIMAL:
            return _decimal(floor(value * 10**type.scale + Fraction(1, 2)), type.scale)
        case Kind.DATE:
            return _moment(floor(value + Fraction(1, 2)) * DAY).date()
        case Kind.TIMESTAMP:
            return _moment(floor(value + Fraction(1, 2)))
        case _:
            return double(value)


def bar(low: Fraction, high: Fraction, type: Type) -> tuple[Value, Value]:
    """Two ends of an error bar in the SQL type, rounded outwards."""
    match type.kind:
        case Kind.INTEGER:
            return floor(low), ceil(high)
        case Kind.DECIMAL:
            return _decimal(floor(low * 10**type.scale), type.scale), _decimal(ceil(high * 10**type.scale), type.scale)
        case Kind.DATE | Kind.TIMESTAMP:
            return released(Fraction(floor(low)), type), released(Fraction(ceil(high)), type)
        case _:
            return double(low), double(high)


def worth(type: Type) -> int:
    """What a day is worth in the type of a moment; 1 for numbers."""
    return DAY if type.element.kind is Kind.TIMESTAMP else 1


def spelled(value: Fraction, type: Type) -> str:
    """A value for people: a moment in ISO format, a number whole or to six digits."""
    found = released(value, type.element) if type.element.kind in (Kind.DATE, Kind.TIMESTAMP) else None
    return plain(value) if found is None else str(found)


def plain(value: Fraction) -> str:
    """A number for people: whole, or to six digits."""
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator / value.denominator:.6g}"


def _moment(microseconds: int) -> datetime.datetime:
    return EPOCH + datetime.timedelta(microseconds=max(FIRST, min(LAST, microseconds)))


def double(value: Fraction) -> float:
    """The nearest double; the largest finite one where there is none."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max


def _integer(value: int) -> int:
    return max(-LARGEST_BIGINT - 1, min(LARGEST_BIGINT, value))


def _decimal(digits: int, scale: int) -> Decimal:
    largest = 10**DIGITS - 1
    digits = max(-largest, min(largest, digits))
    return Decimal((int(digits < 0), tuple(int(d) for d in str(abs(digits))), -scale))
