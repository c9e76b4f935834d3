"""The smallest and the largest laws: right, and at no cost that grows with the scale."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from draw_statistics import LEAST_P, coarse, fine, kolmogorov
from exact_laws import GAUSSIAN, LAPLACE, Seeded, name, noise, real, weight
from numpy.typing import NDArray

from dpquery.mechanisms import Noise, SystemBits, sample, sampler
from dpquery.values.types import LEAST_AMOUNT

TINY = [noise(m, s) for m in (LAPLACE, GAUSSIAN) for s in (Fraction(1, 10**100), Fraction(1, 10**25), Fraction(1, 10**20), Fraction(1, 10**9))]
SMALL = [noise(LAPLACE, Fraction(1, 10)), noise(LAPLACE, Fraction(1, 11)), noise(GAUSSIAN, Fraction(21, 100)), noise(GAUSSIAN, Fraction(2, 9))]
LARGE = [noise(m, s) for m in (LAPLACE, GAUSSIAN) for s in (2**52, 2**62, 2**64, 10**20, 10**25)]
HUGE = [noise(m, s) for m in (LAPLACE, GAUSSIAN) for s in (10**60, 10**100, 1 / LEAST_AMOUNT * 10**18)]
ODD = [noise(LAPLACE, Fraction(10**25 + 1, 3)), noise(GAUSSIAN, Fraction(2**200 + 1, 2**130 + 3)), noise(LAPLACE, Fraction(7, 10**9 + 7))]


class Counted:
    """A source that counts the words it gives."""

    def __init__(self) -> None:
        self.given = 0

    def uint64(self, count: int) -> NDArray[np.uint64]:
        self.given += count
        return SystemBits().uint64(count)


@pytest.mark.parametrize("law", TINY, ids=name)
def test_tiny_laws_draw_zero(law: Noise) -> None:
    """As noise that is turned off: P(Z <> 0) is below e^-10^9."""
    assert not sample(law, 200_000, SystemBits()).any()


@pytest.mark.parametrize("law", SMALL, ids=name)
def test_small_laws_draw_something_else_now_and_then(law: Noise) -> None:
    """P(Z <> 0) is about 2 exp(-f(1)), some in 10,000."""
    values = sample(law, 2_000_000, SystemBits())
    away = 2 * float(weight(law, 1)) * len(values)
    assert 40 < away < 1000
    assert abs(int((values != 0).sum()) - away) < 7 * away**0.5  # P below 1e-9 for a Poisson variable of this size
    assert fine(law, values) > LEAST_P


@pytest.mark.parametrize("law", LARGE, ids=name)
def test_large_laws(law: Noise) -> None:
    values = sample(law, 300_000, SystemBits())
    assert min(statistic(law, values) for statistic in (fine, coarse, kolmogorov)) > LEAST_P


@pytest.mark.parametrize("law", [*LARGE, *HUGE, *ODD], ids=name)
def test_draws_of_large_laws_are_whole_numbers_of_any_size(law: Noise) -> None:
    values = [int(z) for z in sample(law, 400, SystemBits())]
    size = int(real(law.parameter) if law.mechanism is LAPLACE else real(law.parameter) ** 0.5)
    assert max(map(abs, values)) < 60 * size + 60  # e^-60
    if size > 10**6:
        assert max(map(abs, values)) > size // 2
        assert len(set(values)) == 400  # two alike with probability below 400^2 / 10^15
        assert any(z % 2 for z in values)


@pytest.mark.parametrize("law", [*TINY, *SMALL, *LARGE, *HUGE, *ODD], ids=name)
def test_the_cost_does_not_grow_with_the_scale(law: Noise) -> None:
    """Entries of the table, words of a draw, bytes of memory: bounded, whatever the law."""
    sampler._table.cache_clear()
    source = Counted()
    tracemalloc.start()
    try:
        values = sample(law, 10_000, source)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(values) == 10_000
    assert len(sampler._table(law).start) < 2_500
    assert source.given < (5 + sampler._table(law).low_bits // 64) * 10_000
    assert peak < 10 * 2**20


def test_many_laws_share_one_memory() -> None:
    """A statement may ask for any scale: tables are kept for some laws only."""
    sampler._table.cache_clear()
    for i in range(200):
        sample(noise(LAPLACE, 1000 + i), 1, Seeded(i))
    assert sampler._table.cache_info().currsize <= 64


@pytest.mark.lemma("M5")
@pytest.mark.parametrize("low_bits", [1, 63, 64, 65, 128])
def test_low_bits_come_below_and_fill_whole_words_too(low_bits: int) -> None:
    values = np.array([0, 5, -3], dtype=np.int64)
    wide = sampler._widened(values, low_bits, SystemBits())
    assert [int(value) >> low_bits for value in wide] == [0, 5, -3]
    assert len({int(value) for value in wide}) == 3
