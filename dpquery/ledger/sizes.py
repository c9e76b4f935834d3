"""Sizes of prices as people write them: decimals of six significant digits, found by bisection."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Final

from dpquery.ledger.amounts import rounded_up

DIGITS: Final = 6  # significant digits
LEAST: Final = -12  # the power of ten below which no size is looked for


def edge(holds: Callable[[Fraction], bool], top: Fraction) -> tuple[Decimal | None, Decimal | None]:
    """(the largest size at which something holds, the next one, at which it does not), of what holds for small sizes and not for large ones.

    Sizes end at `top`, which is the last whatever its digits. None stands for no such size: it holds at all, or at none from 1e-12 on.
    """
    if holds(top):
        return rounded_up(top), None
    exponent = _exponent(top)
    while exponent >= LEAST and not holds(_power(exponent)):
        exponent -= 1
    if exponent < LEAST:
        return None, rounded_up(min(top, _power(LEAST)))
    unit = _power(exponent - DIGITS + 1)
    low, high = 10 ** (DIGITS - 1), 10**DIGITS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle * unit < top and holds(middle * unit) else (low, middle)
    return rounded_up(low * unit), rounded_up(min(top, high * unit))


def _power(exponent: int) -> Fraction:
    return Fraction(10) ** exponent


def _exponent(size: Fraction) -> int:
    """The power of ten at or below a size above 0."""
    exponent = len(str(size.numerator)) - len(str(size.denominator))
    return exponent if _power(exponent) <= size else exponent - 1
