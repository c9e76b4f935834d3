"""Released numbers as values of their SQL type: saturating, never failing."""

from __future__ import annotations

import sys
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from dpquery.values.types import Kind, Type, Value

LARGEST_BIGINT = 2**63 - 1
DIGITS = 38  # of a DECIMAL


def released(value: Fraction, type: Type) -> Value:
    """The value in its SQL type, rounded to nearest (halves up), saturating at the type's ends."""
    match type.kind:
        case Kind.INTEGER:
            return _integer(floor(value + Fraction(1, 2)))
        case Kind.DECIMAL:
            return _decimal(floor(value * 10**type.scale + Fraction(1, 2)), type.scale)
        case _:
            return double(value)


def bar(low: Fraction, high: Fraction, type: Type) -> tuple[Value, Value]:
    """Two ends of an error bar in the SQL type, rounded outwards."""
    match type.kind:
        case Kind.INTEGER:
            return floor(low), ceil(high)
        case Kind.DECIMAL:
            return _decimal(floor(low * 10**type.scale), type.scale), _decimal(ceil(high * 10**type.scale), type.scale)
        case _:
            return double(low), double(high)


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
