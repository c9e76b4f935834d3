"""Error bars: exact quantiles for counts and sums, Fieller's interval for means and ratios, with coverage at least as promised.

Coverage is measured on 20,000 draws from fixed seeds. The bars promise 95%; a bar that keeps it falls below 94% by chance with probability below
1e-9 (6.5 standard deviations of 0.00154), and the seeds are fixed.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite

import numpy as np
import pytest

from dpquery.aggregates import CARDS
from dpquery.aggregates.fieller import _quantiles, ratio, ratios
from dpquery.aggregates.mean import WEIGHED
from dpquery.mechanisms import Noise, half_width
from dpquery.plan.release import Aggregate, Mechanism
from dpquery.plan.scalar import Interval
from dpquery.values.types import FLOAT, INTEGER, Kind, Type

DRAWS = 20_000
C95 = Fraction(95, 100)
LAPLACE, GAUSSIAN = Mechanism.LAPLACE, Mechanism.GAUSSIAN


def draw(noise: Noise, rng: np.random.Generator) -> np.ndarray:
    """Draws of the discrete law, by inversion over its mass (by rounding where that is out of reach; then the steps do not show)."""
    scale = float(noise.parameter) if noise.mechanism is LAPLACE else float(noise.parameter) ** 0.5
    if scale > 1e4:
        return np.rint(rng.laplace(0, scale, DRAWS) if noise.mechanism is LAPLACE else rng.normal(0, scale, DRAWS))
    z = np.arange(-int(40 * scale) - 5, int(40 * scale) + 6)
    mass = np.exp(-abs(z) / scale) if noise.mechanism is LAPLACE else np.exp(-(z**2) / (2 * scale**2))
    return rng.choice(z, DRAWS, p=mass / mass.sum()).astype(float)


def mean(low: int, high: int, step: Fraction = Fraction(1), notes: tuple[str, ...] = ()) -> Aggregate:
    return Aggregate("a0", "AVG(x)", "mean", (0, 1), FLOAT, step, Interval(Fraction(low), Fraction(high)), notes=notes)


def coverage(n: int, value: float, low: int, high: int, total: Noise, number: Noise, seed: int) -> tuple[float, float]:
    """The share of draws whose bar holds the exact mean, and the median width of the bars."""
    rng = np.random.default_rng(seed)
    exact = int((2 * value - low - high) * n)
    truth = (low + high) / 2 + exact / n / 2
    sums = [int(x) for x in exact + draw(total, rng)], [int(x) for x in n + draw(number, rng)]
    bars = np.array(CARDS["mean"].interval(mean(low, high), sums, (total, number), C95), dtype=float)
    return float(np.mean((bars[:, 0] <= truth + 1e-9) & (truth - 1e-9 <= bars[:, 1]))), float(np.median(bars[:, 1] - bars[:, 0]))


def noise(mechanism: Mechanism, scale: float) -> Noise:
    return Noise(mechanism, Fraction(scale) if mechanism is LAPLACE else Fraction(scale) ** 2)


@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize("value", [0.5, 50, 61.8, 99])
@pytest.mark.parametrize("scale", [4, 40, 400])
def test_mean_covers_as_promised(mechanism: Mechanism, value: float, scale: int) -> None:
    """Large n, noise of the count wider than its steps: 94% to 97%, at the middle, off it and near a bound."""
    found, _ = coverage(100_000, value, 0, 100, noise(mechanism, 100 * scale), noise(mechanism, scale), seed=int(10 * value) + scale)
    assert 0.94 <= found <= 0.97


@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize(("total", "number"), [(3e6, 1.0), (1.0, 30.0), (0.3, 0.3), (200.0, 0.5), (50.0, 1.5)])
def test_mean_covers_whatever_the_scales(mechanism: Mechanism, total: float, number: float) -> None:
    """Noise below the step of either grid, or of very different widths: never less than promised."""
    found, _ = coverage(50_000, 61.8, 0, 100, noise(mechanism, total), noise(mechanism, number), seed=7)
    assert found >= 0.94


@pytest.mark.parametrize("mechanism", Mechanism)
def test_mean_covers_at_small_n(mechanism: Mechanism) -> None:
    """Where the noisy count is often not clear of 0 the bar is all of the bounds: coverage rises, never falls."""
    for n in (3, 30, 100):
        found, _ = coverage(n, 20, 0, 100, noise(mechanism, 1000), noise(mechanism, 10), seed=n)
        assert found >= 0.94


def test_mixed_noises_cover() -> None:
    for one, other in ((LAPLACE, GAUSSIAN), (GAUSSIAN, LAPLACE)):
        found, _ = coverage(50_000, 70, 0, 100, noise(one, 4000), noise(other, 40), seed=3)
        assert found >= 0.94


def test_the_whole_interval_where_the_count_is_not_clear_of_zero() -> None:
    noises = noise(LAPLACE, 1000), noise(LAPLACE, 10)
    w = half_width(noises[1], C95)
    bars = CARDS["mean"].interval(mean(0, 100), ([50, 50, 50, 0], [-5, 0, w, 10**6]), noises, C95)
    assert bars[:3] == [(0.0, 100.0)] * 3
    assert bars[3] is not None
    assert 49 < float(str(bars[3][0])) < 50 < float(str(bars[3][1])) < 51


def test_bars_are_cut_to_the_bounds_and_hold_the_released_mean() -> None:
    rng = np.random.default_rng(1)
    noises = noise(GAUSSIAN, 3000), noise(GAUSSIAN, 30)
    sums = [int(x) for x in rng.normal(0, 40_000, 500)], [int(x) for x in rng.normal(300, 200, 500)]
    values = CARDS["mean"].finish(mean(0, 100), sums)
    for value, bar in zip(values, CARDS["mean"].interval(mean(0, 100), sums, noises, C95), strict=True):
        assert bar is not None
        assert 0 <= float(str(bar[0])) <= float(str(value)) <= float(str(bar[1])) <= 100


def test_noise_off_gives_a_point() -> None:
    off = Noise(LAPLACE, Fraction(1, 10**18))
    assert CARDS["mean"].interval(mean(0, 10), ([30], [10]), (off, off), C95) == [(6.5, 6.5)]
    assert ratio(7, 2, off, off, C95) == (3.5, 3.5)


# ---- counts and sums -----------------------------------------------------------------------------------------------------------------


def test_counts_and_sums_have_exact_quantiles() -> None:
    b = noise(LAPLACE, 8)
    w = half_width(b, C95)
    count = Aggregate("a0", "COUNT(*)", "count", (0,), INTEGER, Fraction(1))
    assert CARDS["count"].interval(count, [[100, -4]], (b,), C95) == [(100 - w, 100 + w), (-4 - w, -4 + w)]
    assert CARDS["count"].expected_error(count, (b,), C95) == w
    cents = Aggregate("a0", "SUM(x)", "total", (0,), Type(Kind.DECIMAL, 2), Fraction(1, 100))
    (bar,) = CARDS["total"].interval(cents, [[1000]], (b,), C95)
    assert bar is not None
    assert [str(end) for end in bar] == [f"{10 - w / 100:.2f}", f"{10 + w / 100:.2f}"]
    assert CARDS["total"].expected_error(cents, (b,), C95) == pytest.approx(w / 100)


# ---- ratios --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", Mechanism)
def test_ratios_cover_as_promised(mechanism: Mechanism) -> None:
    rng = np.random.default_rng(11)
    top, bottom = noise(mechanism, 500), noise(mechanism, 20)
    tops, bottoms = [int(x) for x in -70_000 + draw(top, rng)], [int(x) for x in -4_000 + draw(bottom, rng)]
    found = ratios(tops, bottoms, top, bottom, C95)
    assert 0.94 <= np.mean([ends is not None and ends[0] <= 17.5 <= ends[1] for ends in found]) <= 0.97


def test_a_ratio_has_no_bar_where_the_bottom_is_not_clear_of_zero() -> None:
    b = noise(LAPLACE, 10)
    w = half_width(b, C95)
    assert ratio(5, 0, b, b, C95) is None
    assert ratio(5, w, b, b, C95) is None
    assert ratio(5, -w, b, b, C95) is None
    assert ratio(5, 10 * w, b, b, C95) is not None
    assert ratios([], [], b, b, C95) == []


def test_the_law_of_two_laplace_noises() -> None:
    """The quantiles that the bars interpolate: right against draws, rising and convex in the ratio of scales."""
    k, g = _quantiles(C95)
    assert g[0] == pytest.approx(-np.log(0.05))
    steps = np.diff(g)
    assert (steps >= -1e-12).all()
    assert (np.diff(steps) >= -1e-9).all()
    rng = np.random.default_rng(5)
    x, y = rng.laplace(0, 1, (2, 200_000))
    for i in (0, 100, 300, len(k) - 1):
        assert np.mean(abs(x + k[i] * y) <= g[i]) == pytest.approx(0.95, abs=0.0025)  # 5 standard deviations


def test_expected_error_of_a_mean_is_a_function_of_n() -> None:
    noises = noise(LAPLACE, 4000), noise(LAPLACE, 40)
    found = CARDS["mean"].expected_error(mean(0, 100), noises, C95)
    assert not isinstance(found, float)
    assert list(found) == ["n=100", "n=1000", "n=10000"]
    assert found["n=100"] == 50  # nothing is known: half of [0, 100]
    assert found["n=1000"] > 9 * found["n=10000"] > 0
    _, width = coverage(10_000, 75, 0, 100, *noises, seed=2)
    assert found["n=10000"] == pytest.approx(width / 2, rel=0.02)
    one = 2**20
    weighed = noise(LAPLACE, 4000 * one), noise(LAPLACE, 40 * one)
    again = CARDS["mean"].expected_error(mean(0, 100, notes=(WEIGHED,)), weighed, C95)
    assert not isinstance(again, float)
    assert again["n=10000"] == pytest.approx(found["n=10000"], rel=0.02)


def test_other_confidences() -> None:
    b, c = noise(GAUSSIAN, 1000), noise(GAUSSIAN, 10)
    widths = []
    for confidence in (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100), Fraction(9999, 10000)):
        ends = ratio(50_000, 1000, b, c, confidence)
        assert ends is not None
        assert all(isfinite(end) for end in ends)
        widths.append(ends[1] - ends[0])
    assert widths == sorted(widths)
