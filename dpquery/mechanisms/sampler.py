"""Exact, vectorised draws from P(Z = z) proportional to exp(-f(|z|)), f(m) = linear * m + quadratic * m^2.

**Blocks.** Integers are cut into blocks of h = 2^k. Block (i, +) is ih, ih+1, ..., ih+h-1, block (i, -) is -1-ih, ..., -h-ih; together they cover
each integer once. Index 2i stands for (i, +), 2i+1 for (i, -); the one nearest to zero in a block has magnitude s = ih, or ih+1. One round is
  1. a block, with probability proportional to exp(-f(s)),
  2. an offset l, uniform in 0..h-1, which names the member of magnitude s + l,
  3. acceptance with probability exp(-x), x = f(s + l) - f(s) >= 0; otherwise nothing is drawn.
Each integer comes out with probability proportional to exp(-f(s)) * (1/h) * exp(-x), that is, exp(-f(|z|)). Rounds are independent, so the accepted
values in order are independent draws from the law, and so are the first n of them. With k = 0 step 3 always accepts. Whether a round
is accepted says nothing about the value that comes out.

**Step 1.** Let C[j] be the cumulative probability of indices 0..j and U uniform in [0, 1); the index is the least j with U < C[j]. A table holds
t[j] with t[j] <= 2^64 C[j] < t[j] + 2. The first 64 bits of U give u <= 2^64 U < u + 1. If u < t[j], then 2^64 U < u + 1 <= t[j] <= 2^64 C[j],
so U < C[j] for sure. If u >= t[j] + 2, U > C[j] for sure. Left are u = t[j] and u = t[j] + 1; then further bits of U are drawn and C is
computed to more bits, until one index is sure. C[j] is short of 1 for each j, so t[j] < 2^64 and the tail past the table is among these cases:
nothing is clipped.

**Step 3.** V is uniform in [0, 1), v its first 53 bits as a float: v <= V < v + 2^-53. x is evaluated in floats by a few correctly rounded
operations (IEEE 754) as x'; |x' - x| < 2^-44. Let m = 2^-40.
  v + x' <= 1 - m: V < 1 - x < exp(-x), accepted.
  v <  p - m:      accepted, and v > p + m: rejected, where p is the Taylor sum of exp(-x') to degree 14: for x' <= 1 it is off by at most
                   x'^15 / 15! < 2^-40.1 - and by less than 2^-47 for the x' <= 0.75 at hand - its rounding by 2^-49, x' itself by 2^-44.
  otherwise        further bits of V are drawn, and exp(-x) is computed from the exact x to more bits, until V is below or above for sure.

**Wide blocks.** For k > 50 an offset is a high part of 50 bits and k - 50 low bits. x' uses the high part only; what the low bits add to x is
below 2^-48. Low bits are drawn for the values that are kept, and sooner where the exact x is needed; they are uniform in both cases, as the sure
decisions hold for all values they could take.

|x' - x|: with all lengths in units of the lowest bit used, x = l (linear + quadratic (2s + l)); for Laplace x < 1/8, for the Gaussian x < 0.75
(their block_bits) in every block of the table. Conversions of l < 2^50 and 2s < 2^62 and the four operations lose at most 2^-50 of x, the low
bits at most a 2^-50th of h times f's slope, below 2^-49. Blocks past the table are settled with the exact x.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, chain
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpquery.mechanisms.bits import BitSource, Words
from dpquery.mechanisms.card import Law, Noise
from dpquery.mechanisms.laws import law_of
from dpquery.mechanisms.series import terms
from dpquery.numbers import exp_fixed, float_near

Draws = NDArray[np.int64] | NDArray[np.object_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_CHUNK = 1 << 15  # rounds at a time: the arrays of a chunk stay in the processor's cache
_GUARD = 48  # bits beyond those wanted of a cumulative probability; errors of `terms` grow with the cube of a few hundred
_VECTOR_BITS = 50  # of an offset, in floats and 64-bit integers
_GUIDE_BITS = 13
_GUIDE_FROM = 4096  # draws from which building the guide pays
_MARGIN = 2.0**-40
_TAYLOR = tuple((-1.0) ** j / factorial(j) for j in range(14, -1, -1))


def sample(noise: Noise, count: int, bits: BitSource) -> Draws:
    """M5. `count` independent draws of exactly the law of `noise`: int64, or Python integers (dtype object) where the law or a draw is that wide.

    Given   a source of independent, uniform bits.
    Claim   the draws are independent, and P(Z = z) is proportional to exp(-f(|z|)) for every integer z, the far tail included.
    Proof   Blocks, steps 1 to 3 and wide blocks at the head of this module: floats decide only where their error cannot matter, further bits
            of the source and exact numbers decide elsewhere. As many rounds are made as it takes; which are accepted says nothing of the values.
    Tight   Nothing to reach: the law is met, not bounded. test_table_entries_bracket_the_cumulative_law, test_ties_are_settled_by_further_bits,
            test_the_tail_is_drawn_not_clipped, test_float_decisions_agree_with_exact_ones, test_unsure_rounds_are_settled_exactly
    Source  von Neumann 1951 (rejection); Canonne, Kamath and Steinke 2020 (the laws).
    """
    table = _table(noise)
    pieces: list[NDArray[Any]] = [np.empty(0, dtype=np.int64)]
    left = count
    while left > 0:
        rounds = left + left // 16 + 4 if table.block_bits else left
        drawn = _rounds(table, min(_CHUNK, rounds), bits)[:left]
        pieces.append(drawn)
        left -= len(drawn)
    return np.concatenate(pieces)


# ---- the table -----------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Table:
    """All that is computed once per noise. `guide` alone is filled later, when many draws are asked for; it changes no draw."""

    law: Law
    block_bits: int  # k
    low_bits: int  # of k, those beyond _VECTOR_BITS
    thresholds: Words  # t
    start: Ints  # ih of each index, in units of 2^low_bits
    flip: Ints  # 0 or -1: n ^ -1 = -1 - n
    twice: Floats  # 2s of each index, in units of 2^low_bits
    linear: float  # per unit of 2^low_bits
    quadratic: float
    guide: Ints | None = None


def _cumulative(law: Law, block_bits: int, bits: int) -> tuple[list[int], int]:
    """(lows, slack): C[j] lies in [lows[j] / (lows[-1] + slack), (lows[j] + slack) / lows[-1]], which is narrower than 2^-bits / 16.

    What the indices that are not listed weigh, too, is below that.
    """
    h, working = 1 << block_bits, bits + _GUARD
    enough = 1 << (_GUARD - 8)
    second = 2 * law.quadratic * h * h
    step = law.linear * h + law.quadratic * h * h
    above, above_error, above_rest = terms(Fraction(0), step, second, working, enough)
    below, below_error, below_rest = terms(law.linear + law.quadratic, step + 2 * law.quadratic * h, second, working, enough)
    below += [0] * (len(above) - len(below))  # their weight is within the rest
    lows = list(accumulate(chain.from_iterable(zip(above, below, strict=True))))
    return lows, above_error + below_error + above_rest + below_rest


@lru_cache(maxsize=64)
def _table(noise: Noise) -> _Table:
    law = law_of(noise)
    block_bits = law.block_bits()
    low_bits = max(0, block_bits - _VECTOR_BITS)
    lows, slack = _cumulative(law, block_bits, 64)
    index = np.arange(len(lows), dtype=np.int64)
    start = (index >> 1) << (block_bits - low_bits)
    flip = -(index & 1)
    unit = 1 << low_bits
    return _Table(
        law=law,
        block_bits=block_bits,
        low_bits=low_bits,
        thresholds=np.array([(low << 64) // (lows[-1] + slack) for low in lows], dtype=np.uint64),
        start=start,
        flip=flip,
        twice=2.0 * start - 2.0 * flip / unit,
        linear=float_near(law.linear * unit),
        quadratic=float_near(law.quadratic * unit * unit),
    )


def _guide(table: _Table) -> Ints:
    """For each value of the first bits of u the index it decides for sure, or -1."""
    shift = np.uint64(64 - _GUIDE_BITS)
    first = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << shift
    last = first + ((np.uint64(1) << shift) - np.uint64(1))
    passed = np.searchsorted(table.thresholds, np.maximum(first, np.uint64(2)) - np.uint64(2), side="right")  # t[j] + 2 <= first
    passed[0] = 0
    possible = np.searchsorted(table.thresholds, last, side="right")  # t[j] <= last
    return np.where(passed == possible, passed, -1)


# ---- rounds --------------------------------------------------------------------------------------------------------------------------


def _rounds(table: _Table, count: int, bits: BitSource) -> Draws:
    """What `count` rounds accept, in order."""
    index, unsure = _indices(table, bits.uint64(count))
    beyond: dict[int, int] = {}
    for place, prefix in unsure:
        exact = _index(table, prefix, bits)
        index[place] = min(exact, len(table.start) - 1)
        if exact >= len(table.start):
            beyond[place] = exact
    if table.block_bits == 0:
        values: Draws = table.start[index] ^ table.flip[index]
        return _put(values, {place: _value(exact, 0) for place, exact in beyond.items()})
    return _accepted(table, index, beyond, bits)


def _indices(table: _Table, words: Words) -> tuple[Ints, list[tuple[int, int]]]:
    """The index of each word, and the (place, word) that 64 bits do not decide."""
    if len(words) < _GUIDE_FROM:
        index, unsure = _search(table, words)
        return index, [(int(place), int(words[place])) for place in unsure]
    if table.guide is None:
        table.guide = _guide(table)
    index = table.guide[words >> np.uint64(64 - _GUIDE_BITS)]
    open_places = np.flatnonzero(index < 0)
    index[open_places], unsure = _search(table, words[open_places])
    return index, [(int(place), int(words[place])) for place in open_places[unsure]]


def _search(table: _Table, words: Words) -> tuple[Ints, Ints]:
    index = np.searchsorted(table.thresholds, words, side="right")
    near = words - table.thresholds[index - 1] <= 1  # index 0 wraps to the last threshold, which no word that small is near to
    return index, np.flatnonzero(near & (index > 0))


def _accepted(table: _Table, index: Ints, beyond: dict[int, int], bits: BitSource) -> Draws:
    offset = (bits.uint64(len(index)) >> np.uint64(64 - table.block_bits + table.low_bits)).astype(np.int64)
    chance = bits.uint64(len(index))
    keep, unsure = _sure(table, index, offset, chance)
    exact: dict[int, int] = {}
    for place in sorted({*unsure, *beyond}):
        j = beyond.get(place, int(index[place]))
        full = int(offset[place]) << table.low_bits | _low(table.low_bits, bits)
        keep[place] = below(int(chance[place]), _exponent(table, j, full), bits)
        exact[place] = _value(j, full, table.block_bits)
    values: Draws = (table.start[index] + offset) ^ table.flip[index]
    if table.low_bits:
        values = _widened(values, table.low_bits, bits)
    return _put(values, exact)[keep]


def _sure(table: _Table, index: Ints, offset: Ints, chance: Words) -> tuple[NDArray[np.bool_], list[int]]:
    """Which rounds are accepted for sure, and the places where floats do not decide."""
    x = offset.astype(np.float64)
    if table.quadratic:
        x *= table.linear + table.quadratic * (table.twice[index] + x)
    else:
        x *= table.linear
    v = (chance >> np.uint64(11)).astype(np.float64) * 2.0**-53
    keep = v + x <= 1.0 - _MARGIN
    open_places = np.flatnonzero(~keep)
    x, v = x[open_places], v[open_places]
    p = np.full_like(x, _TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        p = p * x + coefficient
    keep[open_places] = v < p - _MARGIN
    return keep, [int(place) for place in open_places[np.abs(v - p) <= _MARGIN]]


def _widened(values: Draws, low_bits: int, bits: BitSource) -> Draws:
    """values with fresh low bits below them: those of -1 - n are the ones of n, flipped, and as uniform."""
    wide: Draws = values.astype(object)
    for size in (*(64 for _ in range(low_bits // 64)), low_bits % 64):
        if size:
            wide = wide * (1 << size) + (bits.uint64(len(wide)) >> np.uint64(64 - size)).astype(object)
    return wide


def _put(values: Draws, exact: dict[int, int]) -> Draws:
    if any(not -(2**63) <= value < 2**63 for value in exact.values()):
        values = values.astype(object)
    for place, value in exact.items():
        values[place] = value
    return values


# ---- one draw, to as many bits as it takes -------------------------------------------------------------------------------------------


def _value(index: int, offset: int, block_bits: int = 0) -> int:
    magnitude = ((index >> 1) << block_bits) + offset
    return -1 - magnitude if index & 1 else magnitude


def _exponent(table: _Table, index: int, offset: int) -> Fraction:
    """x = f(s + offset) - f(s), exactly."""
    start = ((index >> 1) << table.block_bits) + (index & 1)
    return offset * (table.law.linear + table.law.quadratic * (2 * start + offset))


def _low(count: int, bits: BitSource) -> int:
    """`count` uniform bits."""
    number = 0
    for word in bits.uint64(-(-count // 64)):
        number = number << 64 | int(word)
    return number >> (-count % 64)


def _index(table: _Table, prefix: int, bits: BitSource) -> int:
    """The least j with U < C[j], given the first 64 bits of U; stops with probability 1, each further word leaving one case in about 2^62."""
    size = 64
    while True:
        lows, slack = _cumulative(table.law, table.block_bits, size)
        j = bisect_right(lows, (prefix * lows[-1] >> size) - slack)  # C[i] <= prefix / 2^size for sure for all i < j
        if j < len(lows) and (prefix + 1) * (lows[-1] + slack) <= lows[j] << size:
            return j
        prefix, size = prefix << 64 | int(bits.uint64(1)[0]), size + 64


def below(prefix: int, x: Fraction, bits: BitSource) -> bool:
    """Whether V < exp(-x), given the first 64 bits of V."""
    size = 64
    while True:
        low, high = exp_fixed(x, size)
        if prefix + 1 <= low:
            return True
        if prefix >= high:
            return False
        prefix, size = prefix << 64 | int(bits.uint64(1)[0]), size + 64
