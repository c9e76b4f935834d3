"""What the exact law of a noise gives: tails, partition selection, half widths of intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache

from dpquery.mechanisms.card import Noise
from dpquery.mechanisms.laws import law_of
from dpquery.numbers import FLOOR_BITS, floor_log2, significant_up

_SURE = 1 << 40  # a search that starts from a float guess below this is at most a few steps away


def tail_up(noise: Noise, t: int) -> Fraction:
    """M1. P(Z >= t), rounded up.

    Given   Z drawn from the law of `noise`.
    Claim   P(Z >= t) <= the result, which exceeds it by less than one part in 10^8 where it is above 10^-1000, and by less than 10^-1200 else.
    Proof   For t >= 1 the card encloses it: Laplace sums a geometric series; Gaussian sums terms in fixed point with counted errors, or an integral
            with Euler-Maclaurin corrections and a bound of their remainder. For t <= 0, P(Z >= t) = 1 - P(Z >= 1 - t), as the law is symmetric.
    Tight   Against sums of 60 digits: test_tails_enclose_and_are_tight, test_tails_at_and_below_zero_are_complements
    Source  Canonne, Kamath and Steinke 2020, sections 2 and 4 (the laws); DLMF 2.10.1 (Euler-Maclaurin), 7.9.1 (continued fraction).
    """
    return _tail_up(noise, t, FLOOR_BITS)


@lru_cache(maxsize=4096)  # a statement that is explained and then asked, and one text at many accounts, have the same tails
def _tail_up(noise: Noise, t: int, floor_bits: int) -> Fraction:
    law = law_of(noise)
    if t >= 1:
        return significant_up(min(Fraction(1), law.tail(t, floor_bits)[1]))
    return significant_up(1 - law.tail(1 - t, floor_bits)[0])


def selection_delta_up(noise: Noise, threshold: int, l0: int, linf: int = 1) -> Fraction:
    """M2. The probability that one unit opens a group of its own, rounded up.

    Given   a group is released only if its count plus independent noise is at least `threshold`; one unit reaches at most l0 groups, each with a
            count of at most linf where the unit stands alone.
    Claim   with probability at least 1 - the result, no group is released that holds this unit only.
    Proof   Of such a group the noisy count passes with probability at most p = P(Z >= threshold - linf) (M1). There are at most l0, with
            independent noise: none passes with probability at least (1 - p)^l0. 1 - (1-q)(1-r) = q + r - q r grows in q and r, so l0 factors may be
            gathered by doubling, rounded up each time.
    Tight   l0 groups of one unit reach it: test_selection_delta_is_the_probability_of_opening_a_group
    Source  Wilson et al. 2020, section 4; Korolova et al. 2009.
    """
    if l0 < 1 or linf < 0:
        raise ValueError("a unit reaches at least one group, with a count of 0 or more")
    return _any_up(_tail_up(noise, threshold - linf, FLOOR_BITS), l0)


def _any_up(p: Fraction, count: int) -> Fraction:
    """1 - (1-p)^count, rounded up."""
    gathered = Fraction(0)
    while True:
        if count & 1:
            gathered = significant_up(gathered + p - gathered * p)
        count >>= 1
        if not count:
            return min(Fraction(1), gathered)
        p = significant_up(2 * p - p * p)


def threshold(noise: Noise, delta: Fraction, l0: int, linf: int = 1) -> int:
    """M3. The least threshold T >= 1 at which one unit opens a group of its own with probability at most delta.

    Given   as for selection_delta_up; 0 < delta. (With delta = 0 no threshold is enough, and a ValueError says so; with delta >= 1 it is 1.)
    Claim   selection_delta_up(noise, T, l0, linf) <= delta, and no smaller T >= 1 has that.
    Proof   The condition is checked at T, and refuted at T - 1, by the bound that M2 proves; the bound falls in T.
    Tight   At T - 1 the exact probability exceeds delta: test_threshold_is_the_least
    Source  Wilson et al. 2020, section 4.
    """
    if delta <= 0:
        raise ValueError("a threshold needs a delta above 0")
    if l0 < 1 or linf < 0:
        raise ValueError("a unit reaches at least one group, with a count of 0 or more")
    floor_bits = max(FLOOR_BITS, 128 - floor_log2(delta / l0)) if delta < 1 else FLOOR_BITS
    guess = law_of(noise).near(max(5e-324, min(0.5, float(min(Fraction(1), delta) / l0))))
    return _least(lambda t: _any_up(_tail_up(noise, t - linf, floor_bits), l0), delta, linf + int(guess))


def half_width(noise: Noise, confidence: Fraction) -> int:
    """M4. The least w with P(|Z| <= w) >= confidence.

    Given   0 <= confidence < 1.
    Claim   an interval of w on either side of a noisy number covers the number below the noise with at least that probability. (w is the least
            where the scale is below 2^50; beyond, it may exceed the least by some units.)
    Proof   P(|Z| > w) = 2 P(Z >= w + 1), bounded by M1 and compared exactly.
    Tight   w - 1 covers less: test_half_width_is_the_least
    Source  M1.
    """
    if not 0 <= confidence < 1:
        raise ValueError("a confidence lies in [0, 1)")
    outside = (1 - confidence) / 2
    guess = law_of(noise).near(max(5e-324, min(0.5, float(outside))))
    return _least(lambda t: _tail_up(noise, t, FLOOR_BITS), outside, int(guess)) - 1


def beyond_up(draws: Iterable[tuple[Noise, int, int]]) -> Fraction:
    """M9. The probability that any of several draws goes beyond its width, rounded up.

    Given   noises, each with a width w >= 0 and the number of its draws; all draws are independent.
    Claim   every draw Z has |Z| <= w with probability at least 1 - the result.
    Proof   P(|Z| > w) = 2 P(Z >= w + 1), as the law is symmetric, bounded by M1. 1 - (1-q)(1-r) = q + r - q r grows in q and r, so draws may be
            gathered one noise after the other, those of one by doubling, rounded up each time.
    Tight   Against sums over all outcomes: test_beyond_is_the_probability_that_any_draw_goes_beyond_its_width
    Source  M1.
    """
    gathered = Fraction(0)
    for noise, width, count in draws:
        if width < 0 or count < 0:
            raise ValueError("widths and numbers of draws are not negative")
        p = _any_up(min(Fraction(1), 2 * _tail_up(noise, width + 1, FLOOR_BITS)), count)
        gathered = significant_up(gathered + p - gathered * p)
    return min(Fraction(1), gathered)


def deviation(noise: Noise) -> float:
    """The standard deviation of the noise in grid units, to display."""
    return law_of(noise).deviation()


def _least(falling: Callable[[int], Fraction], target: Fraction, guess: int) -> int:
    """The least t >= 1 with falling(t) <= target, looked for from a guess outwards."""
    guess = max(1, guess)
    for shift in (20, 40):
        if guess > _SURE:  # a float guess is off by many units: secants
            step = guess >> shift
            here, there = falling(guess), falling(guess + step)
            guess = max(1, guess + int(step * (here - target) / (here - there))) if here > there else guess
    step, low, high = 1, guess, guess
    if falling(guess) <= target:
        while low > 0 and falling(low) <= target:
            low, high, step = max(0, low - step), low, step * 4
    else:
        while falling(high) > target:
            low, high, step = high, high + step, step * 4
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if falling(middle) <= target else (middle, high)
    return high
