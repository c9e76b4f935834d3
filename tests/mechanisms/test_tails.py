"""M1, M4: tails, half widths and deviations against sums of 60 digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import pytest
from exact_laws import GAUSSIAN, LAPLACE, name, noise, real, upper

from dpquery.mechanisms import Noise, deviation, half_width, tail_up
from dpquery.mechanisms.gaussian import Gaussian
from dpquery.mechanisms.laws import law_of

SIGMAS = [Fraction(1, 3), Fraction(1, 2), 1, Fraction(15, 2), Fraction(319, 10), 32, Fraction(321, 10), 150]
TAILED = [noise(GAUSSIAN, s) for s in SIGMAS] + [noise(LAPLACE, b) for b in (Fraction(1, 3), 1, Fraction(15, 2), 1000, 10**6)]
EXTREME = [noise(m, s) for m in (LAPLACE, GAUSSIAN) for s in (Fraction(1, 10**20), Fraction(1, 10**9), 10**6, 2**45, 2**70, 2**80)]


def places(law: Noise) -> list[int]:
    """Where to look: near zero, at a few deviations, around each change of method, far out."""
    sigma = max(1, int(deviation(law)))
    return sorted({1, 2, 3, *(max(1, k * sigma // 10) for k in (5, 10, 29, 30, 39, 40, 41, 60, 100, 200, 250))})


@pytest.mark.lemma("M1")
@pytest.mark.parametrize("law", TAILED, ids=name)
def test_tails_enclose_and_are_tight(law: Noise) -> None:
    with mp.workdps(60):
        for t in places(law):
            low, high = (real(x) for x in law_of(law).tail(t, 4096))
            exact = upper(law, t)
            assert low <= exact <= high
            assert high - low <= exact * mp.mpf(10) ** (-15 if exact > mp.mpf(10) ** -100 else -8)
            assert 0 <= real(tail_up(law, t)) - exact <= exact * mp.mpf(10) ** (-15 if exact > mp.mpf(10) ** -100 else -8)


@pytest.mark.parametrize("law", TAILED, ids=name)
def test_tails_at_and_below_zero_are_complements(law: Noise) -> None:
    with mp.workdps(60):
        for t in (0, -1, -5, -1000):
            exact = 1 - upper(law, 1 - t)
            assert 0 <= real(tail_up(law, t)) - exact <= mp.mpf(10) ** -15


@pytest.mark.lemma("M1")
@pytest.mark.parametrize("law", [noise(GAUSSIAN, s) for s in (10**6, 2**45, 2**70)], ids=name)
def test_wide_gaussian_tails_against_the_normal_law(law: Noise) -> None:
    """Midpoint rule: P(Z >= t) is the normal tail at t - 1/2 but for a part below y^2 / 24 sigma^2."""
    with mp.workdps(60):
        sigma = mp.sqrt(real(law.parameter))
        for y in (Fraction(1, 10), 1, Fraction(39, 10), Fraction(41, 10), 10, 30):
            t = int(y * Fraction(int(sigma)))
            normal = mp.erfc((mp.mpf(t) - mp.mpf(1) / 2) / sigma / mp.sqrt(2)) / 2
            assert abs(real(tail_up(law, t)) / normal - 1) < (real(y) ** 2 + 1) / 24 / sigma**2 + mp.mpf(10) ** -17


def test_tails_beyond_the_floor_stay_small_and_positive() -> None:
    for law in (noise(LAPLACE, Fraction(1, 10**20)), noise(GAUSSIAN, Fraction(1, 10**9)), noise(GAUSSIAN, 100)):
        assert 0 < tail_up(law, 10**30) < Fraction(1, 10**1200)
        assert tail_up(law, -(10**30)) == 1


@pytest.mark.parametrize("v", [Fraction(1023), Fraction(1024), Fraction(1025)])
def test_both_methods_agree_where_they_meet(v: Fraction) -> None:
    law = Gaussian(v)
    for t in (1, 20, 95, 128, 200, 400):
        low, high = law._following(t)
        other_low, other_high = law._corrected(t)
        assert max(low, other_low) <= min(high, other_high)


@pytest.mark.parametrize("law", TAILED, ids=name)
@pytest.mark.parametrize("confidence", ["0", "0.5", "0.95", "0.999999"])
def test_half_width_is_the_least(law: Noise, confidence: str) -> None:
    w = half_width(law, Fraction(confidence))
    outside = real(1 - Fraction(confidence))
    with mp.workdps(60):
        assert 2 * upper(law, w + 1) <= outside
        assert w == 0 or 2 * upper(law, w) > outside


@pytest.mark.lemma("M4")
@pytest.mark.parametrize("law", EXTREME, ids=name)
def test_half_width_everywhere(law: Noise) -> None:
    for confidence in (Fraction(1, 2), Fraction(95, 100), 1 - Fraction(1, 10**12)):
        w = half_width(law, confidence)
        assert 2 * tail_up(law, w + 1) <= 1 - confidence
        slack = 1 + (w >> 50)
        assert w < slack or 2 * tail_up(law, w + 1 - slack) > 1 - confidence


@pytest.mark.parametrize("confidence", [Fraction(1), Fraction(2), Fraction(-1)])
def test_half_width_needs_a_confidence(confidence: Fraction) -> None:
    with pytest.raises(ValueError, match="confidence"):
        half_width(noise(LAPLACE, 1), confidence)


@pytest.mark.parametrize("law", TAILED, ids=name)
def test_deviation(law: Noise) -> None:
    """E Z^2 is twice the sum of (2t - 1) P(Z >= t) over t >= 1; closed forms where that is long."""
    with mp.workdps(30):
        if law.mechanism is LAPLACE:
            a = mp.exp(-1 / real(law.parameter))
            variance = 2 * a / (1 - a) ** 2
        else:
            variance = 2 * mp.fsum((2 * t - 1) * upper(law, t) for t in range(1, 60)) if law.parameter < 16 else real(law.parameter)
        assert abs(deviation(law) / mp.sqrt(variance) - 1) < 1e-9


@pytest.mark.parametrize("law", EXTREME, ids=name)
def test_deviation_everywhere(law: Noise) -> None:
    assert 0 <= deviation(law) < 1e26
