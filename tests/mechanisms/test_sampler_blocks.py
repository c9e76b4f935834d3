"""Every block size that the sampler may choose, at both ends of the scales that choose it: what a round makes of its words has exactly the law.

A round gives z with a chance in proportion to that of its block, exp(-f(s)), to that of its place in it, 2^-k, and to that of being kept, exp(-x).
The table is held against the first, the words of a round against the second, and x, as a fraction, against f(|z|) - f(s).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate

import mpmath as mp
import pytest
from exact_laws import GAUSSIAN, LAPLACE, Script, noise, real

from dpquery.mechanisms import Noise, sample, sampler
from dpquery.mechanisms.laws import law_of
from dpquery.plan.release import Mechanism
from dpquery.values.types import LEAST_AMOUNT

SIZES = range(490)
GREATEST = 2**127 * 2**28 / LEAST_AMOUNT
"""Above the scale of any price: cells are integers of 128 bits, there are at most 10,000 groups, and as many parts at most share the least price."""
LEAST = {LAPLACE: 8, GAUSSIAN: 16}  # so many blocks in a scale at least, and less than twice as many
WORD = 0x9E3779B97F4A7C15
BITS = 192  # of the fixed numbers below


def ends(mechanism: Mechanism, k: int) -> list[Noise]:
    """The least and nearly the greatest scale of blocks of 2^k; of single integers some small one in place of the least."""
    least = LEAST[mechanism] << k
    return [noise(mechanism, least if k else Fraction(1, 3)), noise(mechanism, 2 * least - Fraction(1, 7))]


def f(law: Noise, m: int) -> Fraction:
    return m / law.parameter if law.mechanism is LAPLACE else m * m / (2 * law.parameter)


def weights(law: Noise, step: int, first: int) -> Iterator[int]:
    """exp(-f(s)) of s = first, first + step, ... as fixed numbers, as long as they are not 0, by products of two quotients of neighbours."""
    with mp.workprec(2 * BITS):
        fixed = [int(mp.exp(-real(x)) * 2**BITS) for x in (f(law, first), f(law, first + step) - f(law, first))]
        second = int(mp.exp(-real(f(law, first + 2 * step) - 2 * f(law, first + step) + f(law, first))) * 2**BITS)
    weight, quotient = fixed
    while weight:
        yield weight
        weight, quotient = weight * quotient >> BITS, quotient * second >> BITS


@pytest.mark.lemma("M5")
@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])
def test_every_price_draws_by_a_size_that_is_tried(mechanism: Mechanism) -> None:
    assert law_of(noise(mechanism, GREATEST)).block_bits() < len(SIZES)
    for k in SIZES:
        assert {law_of(law).block_bits() for law in ends(mechanism, k)} == {k}
        assert law_of(noise(mechanism, 2 * LEAST[mechanism] << k)).block_bits() == k + 1


def held(law: Noise, k: int) -> None:
    table = sampler._table(law)
    the_table(law, k, table)
    the_exponents(law, k, table)
    the_words(law, k, table)


def the_table(law: Noise, k: int, table: sampler._Table) -> None:
    """Each entry lies below 2^64 C[j], by less than 2."""
    above, below = list(weights(law, 1 << k, 0)), list(weights(law, 1 << k, 1))
    below += [0] * (len(above) - len(below))
    sums = list(accumulate(w for pair in zip(above, below, strict=True) for w in pair))
    error = len(sums) ** 3  # a product loses less than one unit, and hands on what its factors lost
    for t, c in zip(table.thresholds.tolist(), sums, strict=False):
        assert t * (sums[-1] + error) <= (c + error) << 64
        assert (c - error) << 64 < (t + 2) * sums[-1]
    assert len(table.thresholds) <= len(sums)


def the_exponents(law: Noise, k: int, table: sampler._Table) -> None:
    """x is f(|z|) - f(s), a fraction; that by floats is near, and below 0.75, for the first and last places of blocks."""
    h, low = 1 << k, table.low_bits
    for j in {0, 1, 2, 3, len(table.start) // 2, len(table.start) - 2, len(table.start) - 1}:
        nearest = (j >> 1) * h + (j & 1)
        for offset in {0, h // 3, h - 1}:
            z, x = sampler._value(j, offset, k), sampler._exponent(table, j, offset)
            assert (abs(z), z < 0) == (nearest + offset, bool(j & 1))
            assert x == f(law, abs(z)) - f(law, nearest)
            length = float(offset >> low)
            near = length * (table.linear + table.quadratic * (float(table.twice[j]) + length))
            assert k == 0 or (x < Fraction(3, 4) and abs(Fraction(near) - x) < Fraction(1, 2**44))


def the_words(law: Noise, k: int, table: sampler._Table) -> None:
    """The bits of a place are the first of a word of their own, and of as many words more as it takes, each bit once; in a negative number they stand
    below its own sign."""
    sizes = [size for size in (k - table.low_bits, *(64 for _ in range(table.low_bits // 64)), table.low_bits % 64) if size]
    words = [WORD ^ at for at in range(len(sizes))]
    bits = "".join(f"{word:064b}"[:size] for word, size in zip(words, sizes, strict=True)) or "0"
    high, low = divmod(int(bits, 2), 1 << table.low_bits)
    rounds = 5 if k else 1  # sample(1) makes so many
    for j in (4, 5):
        block = int(table.thresholds[j]) - 5
        places = [block, words[0], 0, *words[1:]] if k else [block]  # 0: the round is kept
        drawn = sample(law, 1, Script([word for place in places for word in (place, *[0] * (rounds - 1))]))
        assert int(drawn[0]) == (sampler._value(j, high, k - table.low_bits) << table.low_bits) + low


@pytest.mark.lemma("M5")
@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("first", range(0, len(SIZES), 49))
def test_a_round_has_the_law_at_every_block_size(mechanism: Mechanism, first: int) -> None:
    """At either end by turns."""
    for k in SIZES[first : first + 49]:
        held(ends(mechanism, k)[k % 2], k)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])
def test_a_round_has_the_law_at_the_other_ends_too(mechanism: Mechanism) -> None:
    for k in SIZES:
        held(ends(mechanism, k)[(k + 1) % 2], k)
