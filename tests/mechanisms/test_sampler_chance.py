"""Draws from the operating system's randomness against the exact laws at eight scales; and errors that the same tests see. LEAST_P says how sure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from draw_statistics import LEAST_P, STATISTICS, between, cells, chi_square, dependence, log2_scale
from exact_laws import LAPLACE, NOISES, Seeded, name, noise
from numpy.typing import NDArray

from dpquery.mechanisms import BitSource, Noise, SystemBits, sample, sampler

LONG = 20  # times as many, in the audit
WIDE = [law for law in NOISES if sampler._table(law).block_bits]
Draws = NDArray[Any]


def drawn(law: Noise, bits: BitSource, times: int = 1) -> Draws:
    """Two million draws; half as many where they are Python integers."""
    return sample(law, times * (2_000_000 if log2_scale(law) < 53 else 1_000_000), bits)


def size(law: Noise) -> int:
    """The scale in whole units."""
    return int(law.parameter) if law.mechanism is LAPLACE else math.isqrt(int(law.parameter))


def checked(law: Noise, values: Draws) -> None:
    found = {name: statistic(law, values) for name, statistic in STATISTICS.items()}
    assert min(found.values()) > LEAST_P, found


@pytest.mark.parametrize("law", NOISES, ids=name)
def test_values(law: Noise) -> None:
    values = drawn(law, SystemBits())
    assert values.dtype == (np.int64 if log2_scale(law) < 53 else object)
    checked(law, values)


@pytest.mark.audit
@pytest.mark.parametrize("law", NOISES, ids=name)
def test_many_values(law: Noise) -> None:
    checked(law, drawn(law, SystemBits(), LONG))


# ---- errors that are seen ------------------------------------------------------------------------------------------------------------


def stretched(law: Noise, factor: Fraction) -> Noise:
    return Noise(law.mechanism, law.parameter * (factor if law.mechanism is LAPLACE else factor**2))


def wider(law: Noise, bits: BitSource) -> Draws:
    """A scale that is off by 2 percent."""
    return drawn(stretched(law, Fraction(102, 100)), bits)


def narrower(law: Noise, bits: BitSource) -> Draws:
    """A scale that is off by 2 percent, the dangerous way."""
    return drawn(stretched(law, Fraction(98, 100)), bits)


def two_zeros(law: Noise, bits: BitSource) -> Draws:
    """A magnitude and a sign drawn apart: +0 and -0 are both 0, which comes twice as often."""
    values = drawn(law, bits)
    return np.concatenate([values, values[values == 0]])


def lopsided(law: Noise, bits: BitSource) -> Draws:
    """A sign that is a little more often positive where the magnitude is large."""
    values = drawn(law, bits)
    turned = (values < -size(law)) & (bits.uint64(len(values)) < np.uint64(2**64 // 10))
    values[turned] = -values[turned]
    return values


def shifted(law: Noise, bits: BitSource) -> Draws:
    """Rounded towards minus infinity instead of zero: everything is a little further down."""
    return drawn(law, bits) - max(1, size(law) * 3 // 100)


def clipped(law: Noise, bits: BitSource) -> Draws:
    """No tail: what lies beyond five scales (three sigma) is drawn again."""
    values = drawn(law, bits)
    return values[np.abs(values) <= size(law) * (5 if law.mechanism is LAPLACE else 3)]


ERRORS: Mapping[Callable[[Noise, BitSource], Draws], tuple[float, tuple[str, ...]]] = {
    wider: (2.0**70, ("coarse", "kolmogorov")),
    narrower: (2.0**70, ("fine", "coarse", "kolmogorov")),
    two_zeros: (40, ("fine", "coarse", "kolmogorov")),
    lopsided: (2.0**70, ("fine", "coarse", "kolmogorov")),
    shifted: (2.0**70, ("fine", "coarse", "kolmogorov")),
    clipped: (2.0**70, ("coarse",)),
}
"""Each error with the scale up to which it is looked for, and the statistics that see it from half a grid unit on."""


SEEN_AT = [law for law in NOISES if log2_scale(law) >= 0]


@pytest.mark.parametrize("law", [law if i % 2 else pytest.param(law, marks=pytest.mark.slow) for i, law in enumerate(SEEN_AT)], ids=name)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_an_error_is_seen(error: Callable[[Noise, BitSource], Draws], law: Noise) -> None:
    most, by = ERRORS[error]
    if log2_scale(law) > np.log2(most):
        return
    values = error(law, Seeded(5))
    found = {one: STATISTICS[one](law, values) for one in by}
    assert max(found.values()) < LEAST_P, found


# ---- inside blocks -------------------------------------------------------------------------------------------------------------------


def slope(law: Noise, values: Draws) -> float:
    """Of how many draws lie in the halves of blocks away from zero."""
    half = sampler._table(law).block_bits - 1
    inside = sum(between(law, (m << half) + sign, ((m + 1) << half) + sign) for m in range(1, 1200, 2) for sign in (0, 1))  # z = m, z = -1 - m
    away = int(((np.where(values >= 0, values, -1 - values) >> half) % 2).sum())
    return chi_square(np.array([away, len(values) - away]), np.array([inside, 1 - inside]) * len(values))


@pytest.mark.parametrize("law", WIDE, ids=name)
def test_blocks_slope_as_the_law_does(law: Noise) -> None:
    assert slope(law, drawn(law, SystemBits())) > LEAST_P


@pytest.mark.parametrize("law", WIDE, ids=name)
def test_a_sampler_that_accepts_all_is_seen(law: Noise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "_sure", lambda table, index, offset, chance: (np.ones(len(index), dtype=bool), []))
    assert slope(law, drawn(law, Seeded(6), 2)) < LEAST_P


def low_digits(values: Draws) -> float:
    """Whether a wide law's values are uniform modulo 64."""
    return chi_square(np.bincount((values % 64).astype(np.int64), minlength=64), np.full(64, len(values) / 64))


@pytest.mark.parametrize("law", [law for law in WIDE if log2_scale(law) > 8], ids=name)
def test_low_digits(law: Noise) -> None:
    """Uniform but for less than what this many draws can see."""
    assert low_digits(drawn(law, SystemBits())) > LEAST_P


@pytest.mark.parametrize("law", [law for law in WIDE if log2_scale(law) > 8], ids=name)
def test_low_digits_that_are_rounded_are_seen(law: Noise) -> None:
    values = drawn(law, Seeded(8))
    values[: len(values) // 50] = values[: len(values) // 50] >> 1 << 1
    assert low_digits(values) < LEAST_P


# ---- what the statistics are worth ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", NOISES, ids=name)
def test_cells_hold_the_whole_law(law: Noise) -> None:
    for fineness in (1, 6):
        _, expected = cells(law, sample(law, 10, Seeded(1)), fineness)
        assert abs(expected.sum() / 10 - 1) < 1e-9
        assert (expected >= 0).all()


def test_p_values_of_right_draws_are_spread() -> None:
    """Not always near 1: then a test would see nothing. Means of 30 uniform numbers stay within 0.5 +- 0.32 but once in 10^9."""
    law = noise(LAPLACE, 1000)
    for statistic in ("fine", "coarse"):
        found = [STATISTICS[statistic](law, sample(law, 50_000, Seeded(seed))) for seed in range(30)]
        assert 0.18 < np.mean(found) < 0.82, found
        assert len(set(found)) == 30
    assert 0.18 < np.mean([dependence(sample(law, 5_000, Seeded(2 * i)), sample(law, 5_000, Seeded(2 * i + 1))) for i in range(30)]) < 0.82
