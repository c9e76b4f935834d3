from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpquery.ledger.amounts import minus, parsed, plus, rounded_up, shown_down, shown_up, text

FRACTIONS = st.builds(Fraction, st.integers(0, 10**40), st.integers(1, 10**40))


@settings(max_examples=200)
@given(FRACTIONS)
def test_amounts_are_rounded_up_and_by_little(value: Fraction) -> None:
    up = Fraction(rounded_up(value))
    assert value <= up <= value + value / 10**33
    assert Fraction(shown_down(value)) <= value <= Fraction(shown_up(value))


@pytest.mark.parametrize("written", ["0.1", "1", "0", "1E-320", "1E+308", "0.25", "123456789.000000001", "1E-9"])
def test_decimals_stay_as_they_are(written: str) -> None:
    exact = Fraction(Decimal(written))
    assert Fraction(rounded_up(exact)) == exact
    assert parsed(text(rounded_up(exact))) == Decimal(written)


def test_ten_tenths_are_one() -> None:
    total = Decimal(0)
    for _ in range(10):
        total = plus(total, rounded_up(Fraction(1, 10)))
    assert total == 1


def test_sums_of_far_apart_amounts_are_exact() -> None:
    large, small = rounded_up(Fraction(10**25)), rounded_up(Fraction(1, 10**320))
    assert Fraction(plus(large, small)) == 10**25 + Fraction(1, 10**320)
    assert minus(plus(large, small), large) == small
    assert parsed(text(plus(large, small))) == plus(large, small)


@settings(max_examples=100)
@given(FRACTIONS)
def test_one_text_per_amount(value: Fraction) -> None:
    amount = rounded_up(value)
    assert parsed(text(amount)) == amount
    assert text(parsed(text(amount))) == text(amount)


@pytest.mark.parametrize("written", ["nan", "inf", "-1", "0.1 ", "1e-1", "0.10", "", "x", "1_000", None, 0.1, 1])
def test_only_amounts_are_read(written: object) -> None:
    with pytest.raises(ValueError, match=r"amount|decimal"):
        parsed(written)
