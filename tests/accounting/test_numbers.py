"""Directed rounding against mpmath: on the right side, and close."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpquery import numbers

FRACTIONS = st.fractions(Fraction(1, 10**12), 10**12, max_denominator=10**12)


def real(x: Fraction) -> mp.mpf:
    return mp.mpf(x.numerator) / x.denominator


def encloses(low: Fraction, exact: mp.mpf, high: Fraction, width: str = "1e-35") -> bool:
    return real(low) <= exact <= real(high) and real(high) - real(low) <= mp.mpf(width) * max(1, abs(exact))


@given(st.fractions(-700, 700, max_denominator=10**9))
@example(Fraction(0))
@example(Fraction(-1, 10**40))
def test_exp(x: Fraction) -> None:
    with mp.workdps(90):
        exact = mp.exp(real(x))
        assert real(numbers.exp_down(x)) <= exact <= real(numbers.exp_up(x))
        assert real(numbers.exp_up(x)) - real(numbers.exp_down(x)) <= exact * mp.mpf("1e-48")


def test_exp_far_out() -> None:
    assert numbers.exp_down(Fraction(-(10**25))) == 0
    assert numbers.exp_up(Fraction(-(10**25))) == Fraction(1, 2**4096)
    assert numbers.exp_up(Fraction(-(10**25)), 9000) == Fraction(1, 2**9000)
    assert numbers.exp_down(Fraction(50_000)) > 10**21_000
    with pytest.raises(OverflowError):
        numbers.exp_up(Fraction(10**6))


@given(FRACTIONS)
@example(Fraction(1))
@example(1 + Fraction(1, 10**70))
@example(1 - Fraction(1, 10**70))
def test_log(x: Fraction) -> None:
    with mp.workdps(90):
        assert encloses(numbers.log_down(x), mp.log(real(x)), numbers.log_up(x), "1e-48")


def test_log_needs_a_positive_number() -> None:
    for wrong in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match="positive"):
            numbers.log_up(wrong)
        with pytest.raises(ValueError, match="positive"):
            numbers.floor_log2(wrong)


@given(st.one_of(FRACTIONS, FRACTIONS.map(lambda x: x * x), st.just(Fraction(0)), st.just(Fraction(1, 10**300)), st.just(Fraction(10**300))))
def test_sqrt(x: Fraction) -> None:
    low, high = numbers.sqrt_down(x), numbers.sqrt_up(x)
    assert low * low <= x <= high * high
    assert (high - low) * 2**125 <= high


def test_sqrt_is_exact_where_it_can_be() -> None:
    for x in (Fraction(9, 4), Fraction(2**400), Fraction(1, 2**600), Fraction(10**20)):
        assert numbers.sqrt_down(x) ** 2 == x == numbers.sqrt_up(x) ** 2


@given(FRACTIONS, st.integers(-5, 40))
def test_decimals(x: Fraction, places: int) -> None:
    for sign in (1, -1):
        low, high = numbers.decimal_down(sign * x, places), numbers.decimal_up(sign * x, places)
        assert Fraction(low) <= sign * x <= Fraction(high)
        assert Fraction(high) - Fraction(low) in (0, Fraction(10) ** -places)
        assert high.as_tuple().exponent == -places


def test_decimals_print_plainly() -> None:
    assert str(numbers.decimal_up(Fraction(1, 3), 4)) == "0.3334"
    assert str(numbers.decimal_down(Fraction(1, 3), 4)) == "0.3333"
    assert str(numbers.decimal_up(Fraction(-1, 3), 0)) == "0"
    assert numbers.decimal_up(Fraction(10**60, 3), 3) == Decimal("333333333333333333333333333333333333333333333333333333333333.334")


@given(FRACTIONS, st.integers(2, 200))
def test_significant(x: Fraction, bits: int) -> None:
    low, high = numbers.significant_down(x, bits), numbers.significant_up(x, bits)
    assert low <= x <= high
    assert (high - low) * 2 ** (bits - 1) <= x
    assert low.denominator & (low.denominator - 1) == 0
    assert numbers.significant_up(high, bits) == high
    assert numbers.significant_down(Fraction(0)) == numbers.significant_up(Fraction(0)) == 0


@given(FRACTIONS)
@example(Fraction(1))
@example(Fraction(1, 2**90))
def test_floor_log2(x: Fraction) -> None:
    k = numbers.floor_log2(x)
    assert Fraction(2) ** k <= x < Fraction(2) ** (k + 1)


@settings(deadline=None)
@given(
    st.one_of(st.fractions(0, 400, max_denominator=10**9), st.just(Fraction(10**25)), st.just(Fraction(1, 10**30))),
    st.sampled_from([16, 64, 112, 256, 1000]),
)
def test_exp_fixed(x: Fraction, bits: int) -> None:
    low, high = numbers.exp_fixed(x, bits)
    assert 0 <= low <= high <= 1 << bits
    assert high - low <= 3
    if x < 10**20:
        with mp.workdps(400):
            assert low <= mp.exp(-real(x)) * mp.mpf(2) ** bits <= high


def test_float_near_stays_finite() -> None:
    assert numbers.float_near(Fraction(10**400)) == 1e300
    assert numbers.float_near(Fraction(-(10**400))) == -1e300
    assert numbers.float_near(Fraction(1, 3)) == 1 / 3
