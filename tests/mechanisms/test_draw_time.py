"""What making a draw costs says next to nothing of how large it is (Jin, McMurtry, Rubinstein and Ohrimenko 2022: samplers that count up to a draw).

Nothing here is constant-time: time is held to a bound that samplers of that kind exceed by far, the bits that are used to none at all.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp
from time import thread_time_ns

import numpy as np
import pytest
from exact_laws import GAUSSIAN, LAPLACE, name, noise
from numpy.typing import NDArray

from dpquery.mechanisms import BitSource, Noise, SystemBits, sample
from dpquery.mechanisms.bits import Words

DRAWS = 10_000
ASSOCIATED = 0.4  # measured: at most 0.1; a sampler that counts up: above 0.95. Independent ranks pass 0.06 with probability below 1e-8
SCALES = [noise(law, scale) for law in (LAPLACE, GAUSSIAN) for scale in (Fraction(1, 3), Fraction(15, 2), Fraction(10**6))]


class Counted(SystemBits):
    """Counts the words that are taken."""

    def __init__(self) -> None:
        self.words = 0

    def uint64(self, count: int) -> Words:
        self.words += count
        return super().uint64(count)


def counting_up(noise: Noise, count: int, bits: BitSource) -> list[int]:
    """Stands in for the samplers of the attack: one coin for each step away from zero."""
    drawn, go_on = [], int(2**64 * exp(-1 / noise.parameter))
    for _ in range(count):
        size = 0
        while int(bits.uint64(1)[0]) < go_on:
            size += 1
        drawn.append(size)
    return drawn


def association(draw: Callable[[Noise, int, BitSource], object], noise: Noise) -> float:
    """The rank correlation of a draw's size with the processor time that it took, over DRAWS draws of one number."""
    sizes, times, bits = np.empty(DRAWS), np.empty(DRAWS), SystemBits()
    draw(noise, 8, bits)  # what is computed once
    for place in range(DRAWS):
        begun = thread_time_ns()
        drawn = draw(noise, 1, bits)
        times[place] = thread_time_ns() - begun
        sizes[place] = abs(int(next(iter(drawn))))  # type: ignore[call-overload]
    return float(np.corrcoef(ranks(sizes), ranks(times))[0, 1])


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean rank of each value among all."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranked: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranked


@pytest.mark.parametrize("noise", SCALES, ids=name)
def test_time_hardly_depends_on_the_draw(noise: Noise) -> None:
    assert abs(association(sample, noise)) < ASSOCIATED


def test_a_sampler_that_counts_up_is_found_out() -> None:
    assert association(counting_up, noise(LAPLACE, 30)) > 0.9 > ASSOCIATED


@pytest.mark.parametrize("noise", SCALES, ids=name)
def test_bits_used_do_not_depend_on_the_draw(noise: Noise) -> None:
    """All draws but those that 64 bits do not decide, one in about 2^50, take as many words; one that needs another round, one in 10^5."""
    bits, used = Counted(), list[int]()
    for _ in range(DRAWS):
        before = bits.words
        sample(noise, 1, bits)
        used.append(bits.words - before)
    assert np.count_nonzero(np.array(used) != int(np.median(used))) <= 5
