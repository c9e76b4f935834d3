"""Sums of exp(-q(i)) over i = 0, 1, 2, ..., q a polynomial of degree at most 2, in fixed point with a counted error."""

from __future__ import annotations

from fractions import Fraction

from dpquery.numbers import exp_fixed


def terms(first: Fraction, step: Fraction, second: Fraction, bits: int, enough: int) -> tuple[list[int], int, int]:
    """(lows, error, rest) in units of 2^-bits, for q(0) = first, q(1) - q(0) = step > 0 and the constant second difference `second` >= 0.

    Each true term lies between its low and low + error, even the sum of all listed terms lies between the sum of lows and that + error; what
    follows the listed terms sums to at most rest < enough.

    A number is held as (low, its error): for A in [a, a + e], B in [b, b + g], both at most 2^bits, AB - ab <= e B + a g <= 2^bits (e + g), so
    (a * b >> bits, e + g + 1) holds their product. A term is its predecessor times a ratio, a ratio its predecessor times exp(-second), which is 1
    where q has degree 1. Ratios never grow, so the rest is below a geometric series.
    """
    (low, high), (ratio, ratio_high), (change, change_high) = (exp_fixed(x, bits) for x in (first, step, second))
    low_error, ratio_error, change_error = high - low, ratio_high - ratio, change_high - change
    one, error, lows = 1 << bits, 0, list[int]()
    while True:
        if low < enough:
            rest = ((low + low_error) << bits) // max(1, one - ratio - ratio_error) + 1
            if rest < enough:
                return lows, error, rest
        lows.append(low)
        error += low_error
        low = low * ratio >> bits
        low_error += ratio_error + 1
        if second:
            ratio = ratio * change >> bits
            ratio_error += change_error + 1
