"""Error bars of correlations hold 94 to 97% of the time, whatever the sums: all that they depend on are moments and the noise.

Noise is drawn from fixed seeds, so that no run differs from another and none fails by chance.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpquery.aggregates import combined, correlation
from dpquery.mechanisms import Noise
from dpquery.plan.release import Mechanism

CONFIDENCE = Fraction(95, 100)
HALF = 1000  # units to either side of the middle
LESS = (HALF**2 // 2, HALF**2 // 2)
COUNT = 10  # deviation of the count's noise, in rows
RELEASES = 3000


def noises(mechanism: Mechanism) -> list[Noise]:
    """Of x, y, xy, x^2, y^2 and rows, as wide as one row moves each."""
    wide = [COUNT * HALF, COUNT * HALF, COUNT * HALF**2, COUNT * HALF**2 // 2, COUNT * HALF**2 // 2, COUNT]
    return [Noise(mechanism, Fraction(one**2) if mechanism is Mechanism.GAUSSIAN else Fraction(one * 10**6, 1414214)) for one in wide]


def drawn(noise: Noise, rng: np.random.Generator) -> list[int]:
    size = float(noise.parameter)
    found = rng.normal(0, size**0.5, RELEASES) if noise.mechanism is Mechanism.GAUSSIAN else rng.laplace(0, size, RELEASES)
    return [round(one) for one in found.tolist()]


def exact(means: tuple[float, float], spreads: tuple[float, float], r: float, n: int) -> tuple[int, ...]:
    (a, b), (s, t) = means, spreads
    parts = (a * HALF, b * HALF, (r * s * t + a * b) * HALF**2, (s * s + a * a) * HALF**2 - LESS[0], (t * t + b * b) * HALF**2 - LESS[1])
    return (*(round(n * part) for part in parts), n)


@pytest.mark.parametrize("mechanism", [Mechanism.LAPLACE, Mechanism.GAUSSIAN])
@pytest.mark.parametrize("r", [0, 0.5, 0.9, 1, -0.97])
@pytest.mark.parametrize(("means", "spreads", "n"), [((0.0, 0.0), (0.5, 0.5), 600), ((0.5, -0.6), (0.1, 0.4), 14_000)])
def test_they_hold_as_often_as_asked(means: tuple[float, float], spreads: tuple[float, float], n: int, r: float, mechanism: Mechanism) -> None:
    truth, laws, rng = exact(means, spreads, r, n), noises(mechanism), np.random.default_rng(11)
    groups = [tuple(map(sum, zip(truth, noise, strict=True))) for noise in zip(*(drawn(law, rng) for law in laws), strict=True)]
    low, high = np.array(correlation.ends(groups, LESS, laws, CONFIDENCE)).T
    held = np.mean((low <= r + 1e-6) & (r - 1e-6 <= high))
    assert 0.94 <= held <= 0.97
    assert np.mean(high - low >= 1.999) < 0.01, "they say something"


@pytest.mark.parametrize("mechanism", [Mechanism.LAPLACE, Mechanism.GAUSSIAN])
def test_small_groups_and_spreads_have_all_that_is_possible(mechanism: Mechanism) -> None:
    """Never below 94%, where neither the count nor the spreads are clear of 0 and where they hardly are."""
    laws, rng = noises(mechanism), np.random.default_rng(12)
    for n in (1, 20, 100):
        truth = exact((0.9, 0.1), (0.3, 0.3), 0.7, n)
        groups = [tuple(map(sum, zip(truth, noise, strict=True))) for noise in zip(*(drawn(law, rng) for law in laws), strict=True)]
        low, high = np.array(correlation.ends(groups, LESS, laws, CONFIDENCE)).T
        assert np.mean((low <= 0.7) & (high >= 0.7)) >= 0.94
    assert correlation.ends([(0, 0, 0, 0, 0, 0), (5, 5, 5, 5, 5, -3)], LESS, laws, CONFIDENCE) == [(-1, 1)] * 2
    assert correlation.ends([], LESS, laws, CONFIDENCE) == []


def test_the_released_value_is_within() -> None:
    laws = noises(Mechanism.LAPLACE)
    truth = exact((0.1, 0.1), (0.5, 0.5), 1, 3000)
    above = (*truth[:2], truth[2] + 30 * HALF**2, *truth[3:])
    ((low, high),) = correlation.ends([above], LESS, laws, CONFIDENCE)
    assert 0.5 < low < high == 1
    below = tuple(-one if i in (1, 2) else one for i, one in enumerate(above))
    assert correlation.ends([below], LESS, laws, CONFIDENCE) == [(-1, pytest.approx(-low))]


@pytest.mark.parametrize("outside", [0.025, 0.0005])
def test_few_laplace_noises_pass_their_quantile_as_seldom_as_they_may(outside: float) -> None:
    """Two of the same scale b: (1 + g / 2b) exp(-g / b) / 2 beyond g; one alone: exp(-g / b) / 2. Of six the integral agrees."""
    scales = np.array([[3.0, 3.0], [3.0, 0.0]])
    same, alone = combined._few(scales, np.asarray(outside)).tolist()
    assert 0.97 * outside <= (1 + same / 6) * np.exp(-same / 3) / 2 <= outside
    assert 0.97 * outside <= np.exp(-alone / 3) / 2 <= outside
    many = np.random.default_rng(13).gamma(0.7, 1, (6, 50))
    many /= np.sqrt(2 * (many**2).sum(axis=0))
    found = combined._few(many, np.asarray(outside))
    integral = combined._ratio(many, np.ones_like(many), np.zeros(50), np.asarray(outside), (1.9, 5.5))
    assert np.all(found <= integral * 1.005)
    assert np.all(found >= integral * 0.85)
