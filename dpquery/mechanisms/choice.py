"""Exact choices of one among the integers of a group, its scores, by how far they lie below the largest: vectorised over groups.

Score q_i of a group lies x_i = (max q - q_i) / s below the largest, in scales.

**Permute and flip.** Each score has a coin of its own, which lands with probability exp(-x_i); of those that land one is taken, each as likely as the
others. (The largest one's always lands. In McKenna and Sheldon's wording scores are gone through in random order up to the first whose coin lands:
in a random order that is each of the landed ones alike. Here all coins are thrown, so that the time does not tell which landed.)

**Exponential.** Score i is taken with probability proportional to w_i = exp(-x_i): with U uniform in [0, 1), it is the least one with
U (w_1 + .. + w_n) < w_1 + .. + w_i.

**Floats.** x_i is computed with a relative error below 2^-51 and cut at 64, so that it is off by less than 2^-45. With x = k ln 2 + r, the product
and the difference off by less than 2^-45 as well and 0 <= r < 0.7, p = 2^-k times the Taylor sum of exp(-r) to degree 14,
which is off by 0.7^15 / 15! < 2^-47 and by less than 2^-49 of rounding, at p >= 2^-k / 2.02. So p is exp(-min(x, 64)) within a 2^-43rd of itself.
  A coin: V uniform in [0, 1), v its first 53 bits, v <= V < v + 2^-53, m = 2^-42. v < p - m: it lands for sure; v > p + m: it does not.
  A place: C_j is the sum of the first j of n < 2^17 weights over all of them. In floats it is off by less than two 2^-43rds of itself, by n 2^-52 for
  the additions, by n 2^-91 for what was cut at 64: below 2^-34 in all. v beyond C_{j-1} and below C_j by that much is in place j for sure.
What is not sure is settled by further bits of V or U and by exponentials to as many digits as that takes (numbers.exp_fixed).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import factorial, log

import numpy as np
from numpy.typing import NDArray

from dpquery.mechanisms.bits import BitSource, Words
from dpquery.mechanisms.card import Noise
from dpquery.mechanisms.sampler import below
from dpquery.numbers import exp_fixed, float_near, log_up
from dpquery.plan.release import Choosing

Floats = NDArray[np.float64]
Falls = NDArray[np.int64] | NDArray[np.object_]

MOST = 1 << 17  # scores of a group
_FAR = 64.0
_COIN, _PLACE = 2.0**-42, 2.0**-34
_TAYLOR = tuple((-1.0) ** j / factorial(j) for j in range(14, -1, -1))
_NARROW = 2**62  # differences of integers below it fit 64 bits
_GUARD = 24  # bits beyond those of U, for the errors of so many exponentials


def choose(noise: Noise, scores: Sequence[int], each: int, bits: BitSource) -> list[int]:
    """M7. Of each `each` scores, which are a group's, one is chosen: there stands 1, and 0 at all others.

    Given   a source of independent, uniform bits; a scale s > 0; scores of any size.
    Claim   choices of groups are independent. PERMUTE_AND_FLIP: score i is chosen as the largest of q_i + Z_i is, for independent Z_i of density
            exp(-z / s) / s. EXPONENTIAL: with probability exp(q_i / s) over the sum of exp(q_j / s). Nothing else of the scores is in the result.
    Proof   The head of this module: floats decide only where their error cannot matter. Permute and flip: q_i + Z_i passes the largest score with
            probability exp(-x_i), independently, and beyond it is again exponential of scale s, alike for all that pass; so the largest of
            them is each of those that pass alike, and some pass.
    Tight   Nothing to reach: the law is met, not bounded. test_coins_and_places_agree_with_exact_ones, test_unsure_choices_are_settled_exactly,
            test_choices_have_the_law_of_brute_force
    Source  McKenna and Sheldon 2020; Ding et al. 2021 (as exponential noise); McSherry and Talwar 2007; von Neumann 1951.
    """
    if not 1 <= each < MOST:
        raise ValueError("a choice is among some scores, and not too many")
    wide = any(not -_NARROW < score < _NARROW for score in scores)
    given = np.array(scores, dtype=object if wide else np.int64).reshape(-1, each)
    falls: Falls = given.max(axis=1, keepdims=True) - given if len(given) else given
    weights = _weights(falls, noise.parameter)
    match noise.mechanism:
        case Choosing.PERMUTE_AND_FLIP:
            places = _flipped(falls, weights, noise.parameter, bits)
        case Choosing.EXPONENTIAL:
            places = _placed(falls, weights, noise.parameter, bits)
        case _:
            raise ValueError("noise is added, nothing is chosen by it")
    chosen = np.zeros(given.shape, dtype=np.int64)
    chosen[np.arange(len(given)), places] = 1
    return [int(one) for one in chosen.ravel()]


def shortfall(noise: Noise, others: int, doubt: Fraction) -> Fraction:
    """M8. By how much a choice may fall short of the largest score.

    Given   a choice (M7) of scale s; 0 < doubt < 1. Of the scores of a group, n = `others` lie below the largest one by the result or more.
    Claim   none of these is chosen, but with probability at most `doubt`.
    Proof   Each of the n has a weight of at most p = exp(-m / s), the largest one has 1. Exponential: they are chosen with probability at most
            n p / (1 + n p), which is `doubt` at n p = doubt / (1 - doubt). Permute and flip: the largest one's coin lands; where K of theirs do,
            one of them is taken with probability at most K / (1 + K) <= K / 2, whose mean is at most n p / 2. m is s ln(n (1 - doubt) / doubt), or
            s ln(n / (2 doubt)), rounded up, and at least 0, where p is 1 and the same holds.
    Tight   Exponential: scores that all lie so far below. test_m8_a_shortfall_is_reached
    Source  McSherry and Talwar 2007, Lemma 7; McKenna and Sheldon 2020, Theorem 2.
    """
    match noise.mechanism:
        case Choosing.PERMUTE_AND_FLIP:
            ratio = others / (2 * doubt)
        case Choosing.EXPONENTIAL:
            ratio = others * (1 - doubt) / doubt
        case _:
            raise ValueError("noise is added, nothing is chosen by it")
    return noise.parameter * log_up(ratio) if ratio > 1 else Fraction(0)


def _weights(falls: Falls, scale: Fraction) -> Floats:
    """exp(-min(x, 64)), nearly."""
    x = _near(falls, scale)
    k = np.floor(x / log(2))
    r = x - k * log(2)
    p = np.full_like(r, _TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        p = p * r + coefficient
    found: Floats = np.ldexp(p, -k.astype(np.int64))
    return found


def _near(falls: Falls, scale: Fraction) -> Floats:
    """x of each fall, cut at 64, nearly: integers that no float holds are divided and cut exactly."""
    if falls.dtype != np.object_:
        return np.minimum(falls.astype(np.float64) * float_near(1 / scale), _FAR)
    exact = [float(min(_x(int(fall), scale), Fraction(64))) for fall in falls.ravel()]
    return np.array(exact, dtype=np.float64).reshape(falls.shape)


def _first(words: Words) -> Floats:
    """The first 53 bits as numbers in [0, 1)."""
    found: Floats = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return found


def _x(fall: int, scale: Fraction) -> Fraction:
    return Fraction(int(fall)) / scale


# ---- permute and flip ----------------------------------------------------------------------------------------------------------------


def _flipped(falls: Falls, weights: Floats, scale: Fraction, bits: BitSource) -> list[int]:
    words = bits.uint64(weights.size).reshape(weights.shape)
    v = _first(words)
    landed = v < weights - _COIN
    for at in zip(*np.nonzero(np.abs(v - weights) <= _COIN), strict=True):
        landed[at] = below(int(words[at]), _x(falls[at], scale), bits)
    ways = landed.sum(axis=1)
    takes = [_one_of(int(n), word, bits) for n, word in zip(ways, bits.uint64(len(ways)), strict=True)]
    order = np.argsort(~landed, axis=1, kind="stable")  # those that landed come first
    return [int(row[take]) for row, take in zip(order, takes, strict=True)]


def _one_of(n: int, word: int, bits: BitSource) -> int:
    """Uniform in 0..n-1: the high half of 64 bits times n, where the low half is none of the 2^64 mod n that would come too often."""
    while True:
        high, low = divmod(int(word) * n, 1 << 64)
        if low >= (1 << 64) % n:
            return high
        word = int(bits.uint64(1)[0])


# ---- exponential ---------------------------------------------------------------------------------------------------------------------


def _placed(falls: Falls, weights: Floats, scale: Fraction, bits: BitSource) -> list[int]:
    ends = np.cumsum(weights, axis=1)
    ends /= ends[:, -1:]
    words = bits.uint64(len(ends))
    v = _first(words)
    found = (ends <= v[:, None]).sum(axis=1)
    unsure = (np.abs(ends - v[:, None]) <= _PLACE).any(axis=1)
    places = [int(place) for place in found]
    for group in np.flatnonzero(unsure):
        places[group] = _place([int(fall) for fall in falls[group]], scale, int(words[group]), bits)
    return places


def _place(falls: Sequence[int], scale: Fraction, prefix: int, bits: BitSource) -> int:
    """The least j with U (w_1 + .. + w_n) < w_1 + .. + w_j, given the first 64 bits of U."""
    size = 64
    while True:
        bounds = [exp_fixed(_x(fall, scale), size + _GUARD) for fall in falls]
        lows, highs = (list(accumulate(one)) for one in zip(*bounds, strict=True))
        passed = prefix * lows[-1]
        j = next(j for j, high in enumerate(highs) if high << size > passed)
        if (prefix + 1) * highs[-1] <= lows[j] << size:
            return j
        prefix, size = prefix << 64 | int(bits.uint64(1)[0]), size + 64
