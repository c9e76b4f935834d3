"""V1 to V4: conversion between rho and (epsilon, delta): valid, tight, monotone, at every size."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpquery.accounting import convert
from dpquery.accounting.convert import delta_line_up, delta_up, epsilon_up, rho_down
from dpquery.numbers import context

RHOS = st.fractions(Fraction(1, 10**9), 1000, max_denominator=10**9)
DELTAS = st.sampled_from([Fraction(x) for x in ("0.5", "1e-3", "1e-6", "1e-9", "1e-30", "1e-300")])
EPSILONS = st.fractions(Fraction(1, 10**6), 100, max_denominator=10**6)


def log_delta(rho: mp.mpf, epsilon: mp.mpf, s: mp.mpf) -> mp.mpf:
    """ln of Canonne, Kamath and Steinke 2020, Proposition 12: exp((a-1)(a rho - epsilon)) (1 - 1/a)^a / (a-1).

    With s = a - 1 and no 1 - 1/a, so that a small s loses no digits.
    """
    return s * ((1 + s) * rho - epsilon) + s * mp.log(s) - (1 + s) * mp.log1p(s)


def best(rho: mp.mpf, epsilon: mp.mpf) -> mp.mpf:
    """ln delta at the s where its derivative (2s+1) rho - epsilon - ln(1 + 1/s) vanishes, by bisection."""
    low, high = mp.mpf(-800), mp.mpf(800)  # ln s
    for _ in range(200):
        middle = (low + high) / 2
        s = mp.exp(middle)
        low, high = (low, middle) if (2 * s + 1) * rho - epsilon - mp.log1p(1 / s) > 0 else (middle, high)
    return log_delta(rho, epsilon, mp.exp(low))


def real(x: Fraction) -> mp.mpf:
    return mp.mpf(x.numerator) / x.denominator


@pytest.mark.lemma("V1")
@settings(deadline=None, max_examples=60)
@given(RHOS, DELTAS)
def test_epsilon_is_the_least_that_the_proposition_gives(rho: Fraction, delta: Fraction) -> None:
    epsilon = epsilon_up(rho, delta)
    assert epsilon is not None
    with mp.workdps(60):
        assert best(real(rho), real(epsilon)) <= mp.log(real(delta)) * (1 - mp.mpf(10) ** -40) + mp.mpf(10) ** -40
        if epsilon:
            assert best(real(rho), real(epsilon) * (1 - mp.mpf(10) ** -12)) > mp.log(real(delta))


@pytest.mark.lemma("V3")
@settings(deadline=None, max_examples=60)
@given(RHOS, EPSILONS)
@example(Fraction(33197517267, 500000000), Fraction(1, 10**6))
@example(Fraction(999), Fraction(1, 10**6))
def test_delta_is_the_least_that_the_proposition_gives(rho: Fraction, epsilon: Fraction) -> None:
    delta = delta_up(rho, epsilon)
    with mp.workdps(60):
        exact = mp.exp(best(real(rho), real(epsilon)))
        assert exact <= real(delta) * (1 + mp.mpf(10) ** -40)
        assert real(delta) <= exact * (1 + mp.mpf(10) ** -9) or delta == Fraction(1, 2**4096)


@pytest.mark.lemma("V4")
@settings(deadline=None, max_examples=30)
@given(RHOS, EPSILONS, st.fractions(0, 1, max_denominator=10**6))
def test_the_line_of_delta_is_above_it_and_touches_it(rho: Fraction, epsilon: Fraction, part: Fraction) -> None:
    most, fall = delta_line_up(rho, epsilon)
    assert most == delta_up(rho, epsilon)
    near = rho * (1 - Fraction(1, 10**9))
    with mp.workdps(60):
        for less in (rho * part, near):
            line = mp.log(real(most)) - real(fall) * real(rho - less)
            assert less == 0 or best(real(less), real(epsilon)) <= line + mp.mpf(10) ** -25
        if fall:
            slope = (best(real(rho), real(epsilon)) - best(real(near), real(epsilon))) / real(rho - near)
            assert float(slope / real(fall)) == pytest.approx(1, rel=1e-4)


@pytest.mark.lemma("V4")
def test_the_line_says_nothing_where_no_delta_helps() -> None:
    assert delta_line_up(Fraction(0), Fraction(1)) == (0, 0)
    assert delta_line_up(Fraction(10**9), Fraction(0)) == (1, 0)


@pytest.mark.lemma("V2")
@settings(deadline=None, max_examples=60)
@given(EPSILONS, DELTAS)
def test_rho_is_the_largest_that_the_proposition_gives(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_down(epsilon, delta)
    assert (epsilon_up(rho, delta) or 0) <= epsilon
    with mp.workdps(60):
        assert best(real(rho), real(epsilon)) <= mp.log(real(delta)) + mp.mpf(10) ** -25
        assert best(real(rho) * (1 + mp.mpf(10) ** -10), real(epsilon)) > mp.log(real(delta))


@settings(deadline=None, max_examples=40)
@given(RHOS, RHOS, DELTAS, DELTAS)
def test_more_rho_costs_more_and_more_delta_costs_less(a: Fraction, b: Fraction, c: Fraction, d: Fraction) -> None:
    def cost(rho: Fraction, delta: Fraction) -> Fraction:
        epsilon = epsilon_up(rho, delta)
        assert epsilon is not None
        return epsilon

    tiny = 1 + Fraction(1, 10**25)
    assert cost(min(a, b), c) <= cost(max(a, b), c) * tiny
    assert cost(a, max(c, d)) <= cost(a, min(c, d)) * tiny
    assert cost(a, c) <= a + 2 * Fraction(math.sqrt(a * Fraction(-math.log(c)))) * (1 + Fraction(1, 10**9))  # Bun and Steinke's


@pytest.mark.parametrize("epsilon", ["1e-9", "0.01", "1", "50", "1e20", "1e25"])
@pytest.mark.parametrize("delta", ["1", "0.5", "1e-9", "1e-300"])
def test_extremes_round_trip(epsilon: str, delta: str) -> None:
    rho = rho_down(Fraction(epsilon), Fraction(delta))
    assert rho > 0
    assert (epsilon_up(rho, Fraction(delta)) or 0) <= Fraction(epsilon)
    if Fraction(delta) < 1:
        assert delta_up(rho, Fraction(epsilon)) <= Fraction(delta) * (1 + Fraction(1, 10**6))


@pytest.mark.lemma("V1", "V2", "V3")
@pytest.mark.parametrize("text", ["1e-300", "1e-20", "1.7", "1e20", "1e300"])
def test_at_any_s_the_result_is_on_its_side_and_exact_to_its_digits(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Whatever the search finds: (*) at that s, to 39 digits."""
    s = Decimal(text)
    monkeypatch.setattr(convert, "_root", lambda _: s)
    billionth, light, far = Fraction(1, 10**9), 1 / (7 * Fraction(s) * (1 + Fraction(s))), 3 / (7 * Fraction(s))
    with mp.workdps(1400):
        x = mp.mpf(text)
        rest = mp.log1p(x) / x + mp.log1p(1 / x) - mp.log(10**9) / x
        rho = max(mp.mpf(0), (30 + rest) / (1 + x))
        found = epsilon_up(Fraction(1, 7), billionth)
        assert found is not None
        assert 0 <= real(found) / ((1 + x) / 7 - rest) - 1 < mp.mpf("1e-39")
        assert 0 <= rho - real(rho_down(Fraction(30), billionth)) <= rho * mp.mpf("1e-39")
        delta = mp.exp(log_delta(real(light), real(far), x))
        assert 0 <= real(delta_up(light, far)) / delta - 1 < mp.mpf("1e-48")


def test_what_rounding_could_lose_is_added() -> None:
    """A sum that looks exact may be a little more, or less."""
    one, tiny = (Decimal(1),), Fraction(1, 10**39)
    near = context(60)
    assert (convert._rounded(one, near, up=True), convert._rounded(one, near, up=False)) == (1 + tiny, 1 - tiny / 10)
    assert convert._rounded((Decimal(-1),), near, up=True) == 0
    assert convert._sum((Decimal(-1), Decimal(3)), near) == (Decimal(2), Decimal("5e-52"))
    assert convert._sum(one, context(100)) == (Decimal(1), Decimal("2e-72"))


def test_the_search_finds_the_change_of_sign() -> None:
    for root in (1e-300, 0.3, 1.0, 1e300):
        assert float(convert._root(lambda s, root=root: s - root)) == pytest.approx(root, rel=1e-12)  # type: ignore[misc]
    assert convert._root(lambda s: 1.0) == Decimal(math.exp(-740))
    assert convert._root(lambda s: -1.0) == convert._root(lambda s: 0.0) == Decimal(math.exp(700))


def test_rho_is_lowered_until_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last word is epsilon_up's: where it says more than the search foresaw, rho falls, and not by much more than it must."""
    usual, calls = epsilon_up, []

    def dearer(rho: Fraction, delta: Fraction) -> Fraction:
        calls.append(rho)
        assert len(calls) < 30
        return (usual(rho, delta) or Fraction(0)) * (1 + Fraction(1, 10**20))

    rho = rho_down(Fraction(1), Fraction(1, 10**9))
    monkeypatch.setattr(convert, "epsilon_up", dearer)
    lowered = rho_down(Fraction(1), Fraction(1, 10**9))
    assert dearer(lowered, Fraction(1, 10**9)) <= 1
    assert rho * (1 - Fraction(1, 10**17)) < lowered < rho


def test_edges() -> None:
    one = Fraction(1)
    assert epsilon_up(one, Fraction(0)) is None
    assert epsilon_up(Fraction(0), Fraction(0)) == 0
    assert epsilon_up(Fraction(10**6), one) == epsilon_up(one, Fraction(2)) == 0
    assert rho_down(one, Fraction(0)) == 0
    assert rho_down(Fraction(0), Fraction(1, 10**9)) > 0
    assert delta_up(Fraction(0), Fraction(0)) == 0
    assert delta_up(Fraction(10**400), Fraction(0)) == 1
    assert delta_up(one, Fraction(10**25)) <= Fraction(1, 2**4096)
    assert 0 < delta_up(one, Fraction(0)) <= 1
    assert epsilon_up(Fraction(1, 10**60), Fraction(1, 10**9)) == 0
    for wrong in ((Fraction(-1), one), (one, Fraction(-1))):
        for function in (epsilon_up, rho_down, delta_up):
            with pytest.raises(ValueError, match=r"^rho, epsilon and delta are not negative$"):
                function(*wrong)


def test_results_are_short_decimals() -> None:
    for value in (epsilon_up(Fraction(1, 7), Fraction(1, 10**9)), rho_down(Fraction(1, 7), Fraction(1, 10**9))):
        assert value is not None
        denominator = value.denominator
        while denominator % 2 == 0:
            denominator //= 2
        while denominator % 5 == 0:
            denominator //= 5
        assert denominator == 1
        assert 10**38 < value.denominator < 10**50
