"""The sampler's decisions against exact arithmetic: tables, ties, tails, acceptance, wide laws. Nothing here is left to chance."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from exact_laws import GAUSSIAN, LAPLACE, NOISES, Script, Seeded, name, noise, real, total_weight, weight

from dpquery.mechanisms import Noise, sample, sampler
from dpquery.mechanisms.laws import law_of
from dpquery.numbers import exp_fixed

ONES = 2**64 - 1
MORE = (noise(LAPLACE, Fraction(1, 10**20)), noise(GAUSSIAN, Fraction(1, 10**9)), noise(LAPLACE, Fraction(100, 7)), noise(GAUSSIAN, Fraction(100, 7)))
WIDE = tuple(noise(mechanism, scale) for mechanism in (LAPLACE, GAUSSIAN) for scale in (2**40, 2**53 + 1, 2**70, 2**80, 10**60))


def cumulative_total(law: Noise) -> mp.mpf:
    h = 1 << sampler._table(law).block_bits
    if h == 1:
        return total_weight(law)
    return mp.fsum(weight(law, i * h) + weight(law, i * h + 1) for i in range(160 * 16 if law.mechanism is LAPLACE else 20 * 32))


def cumulative(law: Noise) -> list[mp.mpf]:
    """C[0], C[1], ... from the definition: blocks in the order +0, -0, +1, -1, ... by the weight of their member nearest to zero."""
    table = sampler._table(law)
    h = 1 << table.block_bits
    starts = [(j >> 1) * h + (j & 1) for j in range(len(table.start))]
    whole = cumulative_total(law)
    sums, total = [], mp.mpf(0)
    for start in starts:
        total += weight(law, start)
        sums.append(total / whole)
    return sums


@pytest.mark.parametrize("law", NOISES + MORE, ids=name)
def test_table_entries_bracket_the_cumulative_law(law: Noise) -> None:
    with mp.workdps(60):
        for t, c in zip(sampler._table(law).thresholds, cumulative(law), strict=True):
            assert int(t) <= c * 2**64 < int(t) + 2


def round_weight(law: Noise, z: int) -> mp.mpf:
    """The probability that a round gives z, relative to that of 0: its block's, times its acceptance; 2^-h for the place in a block drops out."""
    table = sampler._table(law)
    magnitude, negative = (z, 0) if z >= 0 else (-1 - z, 1)
    block, offset = divmod(magnitude, 1 << table.block_bits)
    index = 2 * block + negative
    assert sampler._value(index, offset, table.block_bits) == z
    lows, _ = sampler._cumulative(law_of(law), table.block_bits, 256)
    chance = lows[index] - (lows[index - 1] if index else 0) if index < len(lows) else 0
    return mp.mpf(chance) / lows[0] * mp.exp(-real(sampler._exponent(table, index, offset)))


@pytest.mark.parametrize("law", [*NOISES, *MORE, *WIDE], ids=name)
def test_the_pmf_of_a_round_is_the_law(law: Noise) -> None:
    """At zero, at the edges of blocks, at some scales and far out: P(z) / P(0) = exp(-f(|z|)), to 60 digits of P(0)."""
    h, size = (
        1 << sampler._table(law).block_bits,
        1 + int(mp.floor(real(law.parameter) if law.mechanism is LAPLACE else mp.sqrt(real(law.parameter)))),
    )
    places = {0, 1, 2, 3, h - 1, h, h + 1, 2 * h - 1, 2 * h, 7 * h + h // 3, size // 3, size, 2 * size + 1, 5 * size, 9 * size + h // 2}
    with mp.workdps(90):
        for z in sorted(places | {-z for z in places}):
            assert abs(round_weight(law, z) - weight(law, z)) < mp.mpf(10) ** -60


@pytest.mark.parametrize("law", [law for law in NOISES if sampler._table(law).block_bits == 0], ids=name)
@pytest.mark.parametrize("further", [0, ONES])
def test_ties_are_settled_by_further_bits(law: Noise, further: int) -> None:
    """u equal to an entry, or one above it, followed by zeros only or ones only: the least j with U < C[j]."""
    table = sampler._table(law)
    with mp.workdps(120):
        exact = cumulative(law)
        for j in range(0, len(table.start), max(1, len(table.start) // 40)):
            for u in (int(table.thresholds[j]), min(ONES, int(table.thresholds[j]) + 1)):
                tail = [further] * 3
                value = int(sample(law, 1, Script([u, *tail, 5]))[0])
                uniform = mp.mpf(u) / 2**64 + mp.mpf(further) / ONES * (mp.mpf(2) ** -64 - mp.mpf(2) ** -256)
                index = next((i for i, c in enumerate(exact) if uniform < c), None)
                if index is not None:
                    assert value == sampler._value(index, 0)
                else:
                    assert abs(value) >= len(exact) // 2 - 1


@pytest.mark.parametrize("law", NOISES, ids=name)
@pytest.mark.parametrize("words", [1, 2, 3, 4])
def test_the_tail_is_drawn_not_clipped(law: Noise, words: int) -> None:
    """U starts with 64 to 256 ones, then zeros: the index is the least whose remaining tail is lighter than 1 - U, wherever the table ends."""
    table = sampler._table(law)
    j = sampler._index(table, ONES, Script([ONES] * (words - 1) + [0, 0, 0]))
    h, reach = 1 << table.block_bits, 30 + int(60 * len(table.start))
    with mp.workdps(120):
        left = mp.mpf(0)
        for i in range(j + 1, j + reach):
            heaviest = weight(law, (i >> 1) * h + (i & 1))
            left += heaviest
            if heaviest < mp.mpf(10) ** -110:
                break
        whole = cumulative_total(law)
        last = weight(law, (j >> 1) * h + (j & 1))
        assert left / whole < mp.mpf(2) ** (-64 * words)
        assert (left + last) / whole > mp.mpf(2) ** (-64 * words) * (1 - mp.mpf(2) ** -60)


@pytest.mark.lemma("M5")
@pytest.mark.parametrize("law", NOISES, ids=name)
def test_extreme_sources(law: Noise) -> None:
    """All zeros is the most likely value; ones for a while give some value in finite time."""
    zeros = sample(law, 3, Script([0] * 40))
    assert zeros.tolist() == [0, 0, 0]
    rare = sample(law, 2, Script([ONES] * 12))
    assert len(rare) == 2


def test_tiny_scales_are_all_zero_and_fast() -> None:
    for law in MORE[:2]:
        assert not sample(law, 100_000, Seeded(3)).any()
        assert int(sample(law, 1, Script([ONES, ONES, 0]))[0]) == 0


@pytest.mark.parametrize("law", [*NOISES, *MORE], ids=name)
def test_the_guide_changes_nothing(law: Noise) -> None:
    table = sampler._table(law)
    near = [int(t) + d for t in table.thresholds for d in (-2, -1, 0, 1, 2)]
    edges = [(i << (64 - sampler._GUIDE_BITS)) + d for i in range(1 << sampler._GUIDE_BITS) for d in (-2, -1, 0, 1, 2)]
    words = np.array([w for w in near + edges if 0 <= w <= ONES], dtype=np.uint64)
    plain, unsure = sampler._search(table, words)
    guided, guided_unsure = sampler._indices(table, words)
    assert guided.tolist() == plain.tolist()
    assert [place for place, _ in guided_unsure] == unsure.tolist()
    decided = np.setdiff1d(np.arange(len(words)), unsure)
    t = [int(x) for x in table.thresholds]
    for place in decided[:: max(1, len(decided) // 2000)]:
        j, u = int(plain[place]), int(words[place])
        assert j < len(t)
        assert u < t[j]
        assert j == 0 or u >= t[j - 1] + 2


@pytest.mark.lemma("M5")
def test_blocks_cover_each_integer_once() -> None:
    for k in (0, 1, 3):
        values = [sampler._value(j, offset, k) for j in range(40) for offset in range(1 << k)]
        assert sorted(values) == list(range(-20 << k, 20 << k))


@pytest.mark.parametrize("law", [law for law in (*NOISES, *WIDE) if sampler._table(law).block_bits], ids=name)
def test_float_decisions_agree_with_exact_ones(law: Noise) -> None:
    """Random rounds, and V at and beside exp(-x): what is sure is right, and what lies within 2^-41 is not sure."""
    table, bits = sampler._table(law), Seeded(7)
    vector_bits = table.block_bits - table.low_bits
    count = 1500
    index = np.arange(count) * len(table.start) // count
    offset = (bits.uint64(count) >> np.uint64(64 - vector_bits)).astype(np.int64)
    offset[::5], offset[1::5] = 0, (1 << vector_bits) - 1
    chance = bits.uint64(count)
    for place in range(0, count, 2):  # half of them at the edge
        low, _ = exp_fixed(sampler._exponent(table, int(index[place]), int(offset[place]) << table.low_bits), 64)
        chance[place] = min(ONES, max(0, low + (-(2**60), -(2**25), -(2**20), -1, 0, 1, 2**20, 2**25, 2**60)[place // 2 % 9]))
    keep, unsure = sampler._sure(table, index, offset, chance)
    least, most = 1.0, 0.0
    for place in range(count):
        j, v = int(index[place]), int(chance[place])
        near, far = (int(offset[place]) << table.low_bits, ((int(offset[place]) + 1) << table.low_bits) - 1)
        x, x_far = sampler._exponent(table, j, near), sampler._exponent(table, j, far)
        least, most = min(least, float(x)), max(most, float(x_far))
        if place in unsure:
            continue
        assert keep[place] == (v + 1 <= exp_fixed(x_far, 64)[0]) or abs(v - exp_fixed(x, 64)[0]) < 4
        assert keep[place] != (v >= exp_fixed(x, 64)[1])
        assert abs(v - exp_fixed(x, 64)[0]) > 2**23
    assert least == 0
    assert most < 0.75
    assert len(unsure) > count / 8


@pytest.mark.parametrize("law", [law for law in (*NOISES, *WIDE) if sampler._table(law).block_bits], ids=name)
def test_unsure_rounds_are_settled_exactly(law: Noise) -> None:
    """V's first 64 bits are the ones of exp(-x): further bits decide, zeros for acceptance, ones against it."""
    table = sampler._table(law)
    for j in (2, 3, 40, 41):
        offset = (1 << (table.block_bits - 1)) + 1
        x = sampler._exponent(table, j, offset)
        prefix = exp_fixed(x, 256)[0] >> 192
        assert sampler.below(prefix, x, Script([0, 0]))
        assert not sampler.below(prefix, x, Script([ONES, ONES]))
        with mp.workdps(80):
            start = ((j >> 1) << table.block_bits) + (j & 1)
            assert abs(real(x) + mp.log(weight(law, start + offset) / weight(law, start))) < mp.mpf(10) ** -60 * max(
                1, -mp.log(weight(law, start + offset))
            )


def test_a_whole_round_at_a_tie() -> None:
    """The words of a round in order: block, offset, chance, then what the tie needs."""
    law = noise(LAPLACE, 1000)
    table = sampler._table(law)
    x = sampler._exponent(table, 4, 5)
    block = int(table.thresholds[4]) - 5
    chance = exp_fixed(x, 256)[0] >> 192
    rounds = 1 + 0 + 4  # sample(1) tries this many
    filler = [0] * (rounds - 1)
    low = 5 << (64 - table.block_bits)
    first = sample(law, 1, Script([block, *filler, low, *filler, chance, *filler, 0]))
    assert first.tolist() == [(2 << table.block_bits) + 5]
    second = sample(law, 1, Script([block, *filler, low, *filler, chance, *filler, ONES]))
    assert second.tolist() == [0]


@pytest.mark.lemma("M5")
@pytest.mark.parametrize("law", WIDE, ids=name)
def test_wide_laws_use_every_bit(law: Noise) -> None:
    values = [int(z) for z in sample(law, 4000, Seeded(11))]
    scale = law.parameter if law.mechanism is LAPLACE else Fraction(int(mp.sqrt(real(law.parameter))))
    assert max(abs(z) for z in values) > 2 * scale
    for digit in range(12):
        ones = sum(z >> digit & 1 for z in values)
        assert abs(ones - 2000) < 260  # 8 standard deviations
    assert abs(sum(z > 0 for z in values) - 2000) < 260
    table = sampler._table(law)
    if table.low_bits:
        assert all(isinstance(z, int) for z in sample(law, 5, Seeded(1)).tolist())


def test_a_wide_round_past_the_table_is_settled_with_whole_numbers() -> None:
    law = noise(GAUSSIAN, 2**70)
    assert sampler._table(law).block_bits == 66
    high, low, none = 2**49 + 12345, 0xABCD, [0] * 4
    drawn = sample(law, 1, Script([ONES, *none, ONES, 0, high << 14, *none, 0, *none, low << 48]))
    magnitude = int(drawn[0]) if drawn[0] > 0 else -1 - int(drawn[0])
    assert magnitude > 12 * 2**70
    assert magnitude % 2**66 == high << 16 | low


def test_huge_values_become_python_integers() -> None:
    """A draw past 64 bits from a law that mostly fits: no overflow."""
    law = noise(LAPLACE, 2**53)
    values = sampler._put(np.array([1, 2], dtype=np.int64), {1: 2**70})
    assert values.tolist() == [1, 2**70]
    assert sample(law, 10, Seeded(1)).dtype == np.int64


def test_counts() -> None:
    for count in (0, 1, 2, 63, 4096, 40_000):
        assert len(sample(noise(LAPLACE, 1000), count, Seeded(count))) == count
        assert len(sample(noise(GAUSSIAN, 1), count, Seeded(count))) == count


def test_parameters_are_positive() -> None:
    for parameter in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match="positive"):
            Noise(LAPLACE, parameter)
