"""Draws from the operating system's randomness against the exact laws.

Each p value below is compared with 2e-8; there are fewer than 50 of them, so a right sampler fails this file less than once in 1e6 runs.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from exact_laws import GAUSSIAN, LAPLACE, NOISES, Seeded, chi_square_p, name, noise, upper_float
from numpy.typing import NDArray

from dpquery.mechanisms import Noise, SystemBits, sample, sampler

DRAWS = 2_000_000
LEAST_P = 2e-8


def draw(law: Noise, count: int = DRAWS) -> NDArray[np.int64]:
    values = sample(law, count, SystemBits())
    assert values.dtype == np.int64
    return values


def bins(law: Noise) -> NDArray[np.int64]:
    """Edges t_0 < t_1 < ...: single integers near zero for narrow laws, a 64th of a scale for wide ones, out to where few draws fall."""
    scale = float(law.parameter) if law.mechanism is LAPLACE else float(law.parameter) ** 0.5
    step = max(1, int(scale / 64))
    reach = int(scale * (13 if law.mechanism is LAPLACE else 5) / step) + 2
    return np.arange(-reach, reach + 1, dtype=np.int64) * step


def p_value(law: Noise, values: NDArray[np.int64]) -> float:
    """Of the hypothesis that the values come from the law."""
    edges = bins(law)
    above = upper_float(law, edges)
    expected = np.concatenate([[1 - above[0]], above[:-1] - above[1:], [above[-1]]]) * len(values)
    return chi_square_p(np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1), expected)


@pytest.mark.lemma("M5")
@pytest.mark.parametrize("law", NOISES, ids=name)
def test_values(law: Noise) -> None:
    assert p_value(law, draw(law)) > LEAST_P


@pytest.mark.parametrize("law", NOISES, ids=name)
def test_the_test_sees_a_scale_that_is_off_by_two_percent(law: Noise) -> None:
    near = Noise(law.mechanism, law.parameter * (Fraction(102, 100) if law.mechanism is LAPLACE else Fraction(104, 100)))
    assert p_value(law, sample(near, DRAWS, Seeded(5))) < LEAST_P


def far_halves(law: Noise, values: NDArray[np.int64]) -> float:
    """How many standard deviations the number of draws in the halves of blocks away from zero is from what the law makes it."""
    half = 1 << sampler._table(law).block_bits - 1
    edges = np.arange(1, 2000, dtype=np.int64) * half
    share = 0.0
    for sign in (0, 1):  # z = m, and z = -1 - m, with m in [h/2, h), [3h/2, 2h), ...
        above = upper_float(law, edges + sign)
        share += float((above[0:-1:2] - above[1::2]).sum())
    seen = int((np.where(values >= 0, values, -1 - values) // half % 2).sum())
    return abs(seen - share * len(values)) / (len(values) * share * (1 - share)) ** 0.5


@pytest.mark.parametrize("law", [law for law in NOISES if law.parameter > 500], ids=name)
def test_blocks_slope_as_the_law_does(law: Noise) -> None:
    assert far_halves(law, draw(law)) < 6  # P below 2e-9


@pytest.mark.parametrize("law", [law for law in NOISES if law.parameter > 500], ids=name)
def test_the_test_sees_a_sampler_that_accepts_all(law: Noise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "_sure", lambda table, index, offset, chance: (np.ones(len(index), dtype=bool), []))
    assert far_halves(law, sample(law, DRAWS, Seeded(6))) > 7


@pytest.mark.parametrize("law", [law for law in NOISES if law.parameter > 500], ids=name)
def test_low_digits(law: Noise) -> None:
    """Within a wide law the value modulo 64 is uniform but for less than what this many draws can see."""
    observed = np.bincount(draw(law) % 64, minlength=64)
    assert chi_square_p(observed, np.full(64, DRAWS / 64)) > LEAST_P


@pytest.mark.lemma("M5")
@pytest.mark.parametrize("law", NOISES, ids=name)
def test_successive_draws_are_independent(law: Noise) -> None:
    """Pairs of neighbours, within one call and across two, fall into the cells of a product."""
    values = draw(law, 200_000)
    other = draw(law, 200_000)
    edges = np.unique(np.quantile(values, [0.1, 0.25, 0.5, 0.75, 0.9]).astype(np.int64))
    for first, second in ((values[0::2], values[1::2]), (values, other)):
        a, b = np.searchsorted(edges, first, side="right"), np.searchsorted(edges, second, side="right")
        k = len(edges) + 1
        cells = np.bincount(a * k + b, minlength=k * k).reshape(k, k)
        cells = cells[cells.sum(axis=1) > 0][:, cells.sum(axis=0) > 0]
        if min(cells.shape) < 2:
            continue
        expected = cells.sum(axis=1, keepdims=True) * cells.sum(axis=0, keepdims=True) / cells.sum()
        statistic = ((cells - expected) ** 2 / expected).sum()
        freedom = (cells.shape[0] - 1) * (cells.shape[1] - 1)
        assert statistic < freedom + 6 * (2 * freedom) ** 0.5 + 36  # P below 2e-8 for chi-square (Laurent and Massart, x = 17.8)


def test_two_calls_differ() -> None:
    law = noise(GAUSSIAN, 10**6)
    bits = SystemBits()
    assert sample(law, 20, bits).tolist() != sample(law, 20, bits).tolist()


@pytest.mark.lemma("M5")
@pytest.mark.parametrize("law", [noise(LAPLACE, Fraction(15, 2)), noise(GAUSSIAN, Fraction(15, 2))], ids=name)
def test_the_same_law_as_opendp(law: Noise) -> None:
    """OpenDP's samplers, exact too, as a second witness of what the law is."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    make = dp.m.make_laplace if law.mechanism is LAPLACE else dp.m.make_gaussian
    domain = dp.vector_domain(dp.atom_domain(T=int))
    metric = dp.l1_distance(T=int) if law.mechanism is LAPLACE else dp.l2_distance(T=int)
    theirs = np.array(make(domain, metric, scale=7.5)([0] * 20_000))
    assert p_value(law, theirs) > LEAST_P
