"""M2, M3: partition selection by exact tails."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import pytest
from exact_laws import GAUSSIAN, LAPLACE, name, noise, real, upper
from hypothesis import given, settings
from hypothesis import strategies as st

from dpquery.mechanisms import Noise, selection_delta_up, tail_up, threshold

LAWS = [
    noise(LAPLACE, Fraction(1, 3)),
    noise(LAPLACE, 2),
    noise(LAPLACE, 1000),
    noise(GAUSSIAN, Fraction(1, 2)),
    noise(GAUSSIAN, 5),
    noise(GAUSSIAN, 60),
]


def opens(law: Noise, least: int, l0: int, linf: int) -> mp.mpf:
    """The probability that at least one of l0 groups with a true count of linf passes, exactly."""
    t = least - linf
    p = upper(law, t) if t >= 1 else 1 - upper(law, 1 - t)
    return -mp.expm1(l0 * mp.log1p(-p))


@pytest.mark.lemma("M2")
@pytest.mark.parametrize("law", LAWS, ids=name)
@pytest.mark.parametrize("l0", [1, 3, 7, 1000])
@pytest.mark.parametrize("linf", [1, 20])
def test_selection_delta_is_the_probability_of_opening_a_group(law: Noise, l0: int, linf: int) -> None:
    with mp.workdps(60):
        for least in (1, 2, linf, linf + 1, linf + 30):
            exact = opens(law, least, l0, linf)
            above = real(selection_delta_up(law, least, l0, linf)) - exact
            assert 0 <= above <= exact * mp.mpf(10) ** -14


@pytest.mark.parametrize("law", LAWS, ids=name)
@pytest.mark.parametrize("l0", [1, 4, 100])
@pytest.mark.parametrize("delta", ["0.3", "1e-6", "1e-9", "1e-30", "1e-300"])
def test_threshold_is_the_least(law: Noise, l0: int, delta: str) -> None:
    for linf in (1, 5):
        least = threshold(law, Fraction(delta), l0, linf)
        with mp.workdps(60):
            assert opens(law, least, l0, linf) <= real(Fraction(delta)) * (1 + mp.mpf(10) ** -50)
            assert least == 1 or opens(law, least - 1, l0, linf) > real(Fraction(delta))


@pytest.mark.lemma("M3")
@pytest.mark.parametrize("scale", [Fraction(1, 10**20), Fraction(1, 10**9), 10**6, 2**45, 2**70])
@pytest.mark.parametrize("delta", [Fraction(1, 10**9), Fraction(1, 10**300), Fraction(1, 10**3000)])
def test_threshold_everywhere(scale: Fraction, delta: Fraction) -> None:
    for mechanism in (LAPLACE, GAUSSIAN):
        law = noise(mechanism, scale)
        least = threshold(law, delta, 4)
        assert least >= 1
        if delta > Fraction(1, 10**1000):
            assert selection_delta_up(law, least, 4) <= delta
            slack = 1 + (least >> 50)
            assert least == 1 or selection_delta_up(law, max(1, least - slack), 4) > delta


def test_delta_one_needs_no_threshold() -> None:
    for law in (*LAWS, noise(LAPLACE, Fraction(4, 10**20)), noise(LAPLACE, 10**30)):
        assert threshold(law, Fraction(1), 10_000) == 1
        assert threshold(law, Fraction(2), 1) == 1
    assert selection_delta_up(noise(LAPLACE, Fraction(4, 10**20)), 1, 4) == 1


def test_delta_zero_has_no_threshold() -> None:
    for delta in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match="delta"):
            threshold(LAWS[0], delta, 1)
    with pytest.raises(ValueError, match="at least one"):
        threshold(LAWS[0], Fraction(1, 2), 0)
    with pytest.raises(ValueError, match="at least one"):
        selection_delta_up(LAWS[0], 5, 0)


def test_the_count_that_is_not_of_units_needs_linf() -> None:
    """A cell of up to 20 rows against a threshold made for cells of 1: e^(19/4) times the delta."""
    law = noise(LAPLACE, 4)
    least = threshold(law, Fraction(1, 10**9), 4)
    ratio = selection_delta_up(law, least, 4, 20) / selection_delta_up(law, least, 4)
    assert abs(float(ratio) / 115.58 - 1) < 1e-3


@pytest.mark.lemma("M2", "M3")
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([LAPLACE, GAUSSIAN]),
    st.fractions(Fraction(1, 1000), 10**7, max_denominator=1000),
    st.integers(1, 50),
    st.integers(1, 40),
    st.integers(1, 10**4),
)
def test_bounds_fall_in_the_threshold_and_rise_in_l0(mechanism: object, scale: Fraction, l0: int, linf: int, least: int) -> None:
    law = noise(mechanism, scale)  # type: ignore[arg-type]
    delta = selection_delta_up(law, least, l0, linf)
    assert 0 < delta <= 1
    assert selection_delta_up(law, least + 1, l0, linf) <= delta
    assert selection_delta_up(law, least, l0 + 1, linf) >= delta
    assert selection_delta_up(law, least, l0, linf) >= tail_up(law, least - linf)
    assert threshold(law, delta, l0, linf) <= least
