"""Exact and directed arithmetic: what is rounded goes towards more privacy loss, and the name says which way (_up, _down).

Exponentials and logarithms come from the standard library's `decimal`, which documents exp and ln as correctly rounded at every precision. Each
function here rounds the argument in the wanted direction (both are monotone), evaluates, and steps one unit in the last place further out.
All of it goes through methods of `Context`: an operator on a Decimal, be it a minus sign, would round to the caller's context.
"""

from __future__ import annotations

import math
from decimal import (
    MAX_EMAX,
    MAX_PREC,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from fractions import Fraction
from functools import lru_cache

FLOOR_BITS = 4096  # results of exp below 2^-4096 (about 1e-1233) become that, or 0
_DIGITS = 50  # significant digits of a rounded result
_LARGEST_EXPONENT = 100_000  # e^100000 has 43,430 digits


@lru_cache(maxsize=64)
def context(digits: int, rounding: str = ROUND_HALF_EVEN) -> Context:
    """A decimal context of `digits` significant digits whose exponent never limits what this package computes."""
    return Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[Overflow, DivisionByZero, InvalidOperation])


def floor_log2(x: Fraction) -> int:
    """The largest k with 2^k <= x, for x > 0."""
    if x <= 0:
        raise ValueError("a logarithm needs a positive number")
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if _at_least_power(x, guess) else guess - 1


def _at_least_power(x: Fraction, k: int) -> bool:
    return x.numerator >= x.denominator << k if k >= 0 else x.numerator << -k >= x.denominator


def float_near(x: Fraction) -> float:
    """x as a float, to display or to guess with; beyond the largest float it is 1e300, so that a guess stays finite."""
    try:
        return float(x)
    except OverflowError:
        return 1e300 if x > 0 else -1e300


# ---- fewer digits --------------------------------------------------------------------------------------------------------------------


def decimal_up(x: Fraction, places: int) -> Decimal:
    """The least multiple of 10^-places that is at least x, with `places` digits after the point."""
    return _scaled(math.ceil(x * _power_of_ten(places)), places)


def decimal_down(x: Fraction, places: int) -> Decimal:
    """The largest multiple of 10^-places that is at most x, with `places` digits after the point."""
    return _scaled(math.floor(x * _power_of_ten(places)), places)


def _power_of_ten(n: int) -> Fraction:
    return Fraction(10**n) if n >= 0 else Fraction(1, 10**-n)


def _scaled(n: int, places: int) -> Decimal:
    return Decimal(n).scaleb(-places, context(MAX_PREC))


def significant_up(x: Fraction, bits: int = 128) -> Fraction:
    """A dyadic fraction of at most `bits` significant bits, at least x >= 0 and within one part in 2^(bits-1) of it."""
    return -_significant(-x, bits, floor_log2(x)) if x else x


def significant_down(x: Fraction, bits: int = 128) -> Fraction:
    """A dyadic fraction of at most `bits` significant bits, at most x >= 0 and within one part in 2^(bits-1) of it."""
    return _significant(x, bits, floor_log2(x)) if x else x


def _significant(x: Fraction, bits: int, exponent: int) -> Fraction:
    unit = exponent - bits + 1
    return Fraction((x.numerator << -unit) // x.denominator, 1 << -unit) if unit <= 0 else Fraction(x.numerator // (x.denominator << unit) << unit)


# ---- roots, exponentials, logarithms -------------------------------------------------------------------------------------------------


def sqrt_down(x: Fraction) -> Fraction:
    """At most the root of x >= 0, within one part in 2^127 of it; exact where the root is a dyadic fraction of at most 128 bits."""
    return _sqrt(x)[0]


def sqrt_up(x: Fraction) -> Fraction:
    """At least the root of x >= 0, within one part in 2^127 of it; exact where the root is a dyadic fraction of at most 128 bits."""
    root, exact = _sqrt(x)
    return root if exact else significant_up(root * (1 + Fraction(1, 1 << 127)))


def _sqrt(x: Fraction) -> tuple[Fraction, bool]:
    """(r, whether r^2 = x) with r <= sqrt(x) < r + r / 2^127: the integer root of x * 4^shift, which has at least 255 bits."""
    if x == 0:
        return x, True
    shift = max(0, (257 - floor_log2(x)) // 2)
    root = Fraction(math.isqrt((x.numerator << 2 * shift) // x.denominator), 1 << shift)
    return root, root * root == x


def _digits_for(x: Fraction) -> int:
    """Enough digits that rounding the argument x moves e^x by less than one part in 10^_DIGITS."""
    return _DIGITS + 3 + len(str(abs(x.numerator) // x.denominator))


def _round(x: Fraction, digits: int, rounding: str) -> Decimal:
    return context(digits, rounding).divide(Decimal(x.numerator), Decimal(x.denominator))


def exp_up(x: Fraction, floor_bits: int = FLOOR_BITS) -> Fraction:
    """At least e^x, within one part in 10^49 of it; 2^-floor_bits where e^x is smaller than about that."""
    if x == 0:
        return Fraction(1)
    if x < -floor_bits:  # ln 2 < 1, so e^x < 2^-floor_bits
        return Fraction(1, 1 << floor_bits)
    return Fraction(_exp(x, ROUND_CEILING))


def exp_down(x: Fraction, floor_bits: int = FLOOR_BITS) -> Fraction:
    """At most e^x, within one part in 10^49 of it; 0 where e^x is smaller than about 2^-floor_bits."""
    if x == 0:
        return Fraction(1)
    if x < -floor_bits:
        return Fraction(0)
    return Fraction(_exp(x, ROUND_FLOOR))


def _exp(x: Fraction, rounding: str) -> Decimal:
    if x > _LARGEST_EXPONENT:
        raise OverflowError(f"e^x with x > {_LARGEST_EXPONENT}")
    digits = _digits_for(x)
    near = context(digits).exp(_round(x, digits, rounding))
    return near.next_plus(context(digits)) if rounding == ROUND_CEILING else near.next_minus(context(digits))


def log_up(x: Fraction) -> Fraction:
    """At least ln x for x > 0; the error is below 10^-49 times the larger of 1 and |ln x|."""
    return _log(x, ROUND_CEILING)


def log_down(x: Fraction) -> Fraction:
    """At most ln x for x > 0; the error is below 10^-49 times the larger of 1 and |ln x|."""
    return _log(x, ROUND_FLOOR)


def _log(x: Fraction, rounding: str) -> Fraction:
    if x <= 0:
        raise ValueError("a logarithm needs a positive number")
    digits = _DIGITS + 3
    near = context(digits).ln(_round(x, digits, rounding))
    if near == 0:  # the rounded argument is 1, and ln 1 is exact
        return Fraction(0)
    return Fraction(near.next_plus(context(digits)) if rounding == ROUND_CEILING else near.next_minus(context(digits)))


def exp_fixed(x: Fraction, bits: int) -> tuple[int, int]:
    """(low, high) with low <= e^-x * 2^bits <= high <= 2^bits and high - low <= 3, for x >= 0; both are 2^bits where x = 0.

    Beyond x = bits the value is below 1. Elsewhere the digits exceed those of 2^bits by 12, so rounding x (at most 10^-12 of a unit for each of
    its `bits`), e^-x and the product leaves an error far below 1.
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x > bits:
        return 0, 1
    digits = bits * 31 // 100 + 12 + len(str(bits))
    near = context(digits)
    scaled = int(near.multiply(near.exp(_round(-x, digits, ROUND_HALF_EVEN)), Decimal(1 << bits)))
    return max(0, scaled - 1), min(1 << bits, scaled + 2)
