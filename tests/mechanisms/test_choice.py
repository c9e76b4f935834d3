"""Choices by scores: the law against brute force, decisions against exact arithmetic, independence.

What is left to chance compares fewer than 100 p values with LEAST_P, 1e-9: all is right and one of them red less than once in ten million runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from random import Random

import mpmath as mp
import numpy as np
import pytest
from choice_laws import coins, law
from draw_statistics import LEAST_P, chi_square, dependence
from exact_laws import LAPLACE, Script, Seeded

from dpquery.mechanisms import BitSource, Noise, SystemBits, choice, choose, shortfall
from dpquery.mechanisms.laws import law_of
from dpquery.plan.release import Choosing, Mechanism

FLIP, EXPONENTIAL = Choosing.PERMUTE_AND_FLIP, Choosing.EXPONENTIAL
ONES = 2**64 - 1
LAPLACE_NOISE = Noise(Mechanism.LAPLACE, Fraction(1))
CASES: tuple[tuple[tuple[int, ...], Fraction], ...] = (
    ((0, 0), Fraction(1)),
    ((5, 4), Fraction(1)),
    ((10, 3, 9, 10, 0), Fraction(7, 2)),
    ((-7, -7, -9, -30), Fraction(15, 2)),
    ((1, 0, 0), Fraction(1, 10**20)),
    ((3 * 2**20, 2**20, 0, 2 * 2**20, 3 * 2**20 - 1), Fraction(2**21)),
    ((2**60, 0, 2**59), Fraction(2**60)),
    ((2**90, 2**89, -(2**90)), Fraction(2**90, 3)),
    ((10**40, 0), Fraction(10**40)),
    ((0, 10**6), Fraction(10**30)),
)


def chosen(mechanism: Choosing, scores: Sequence[int], scale: Fraction, times: int, bits: BitSource) -> np.ndarray:
    """The places that are chosen, of as many groups alike."""
    out = np.array(choose(Noise(mechanism, scale), list(scores) * times, len(scores), bits)).reshape(times, -1)
    assert set(out.ravel().tolist()) <= {0, 1}
    assert (out.sum(axis=1) == 1).all()
    return out.argmax(axis=1)


@pytest.mark.lemma("M7")
@pytest.mark.parametrize("mechanism", Choosing)
@pytest.mark.parametrize(("scores", "scale"), [case if max(case[0]) <= ONES else pytest.param(*case, marks=pytest.mark.audit) for case in CASES])
def test_choices_have_the_law_of_brute_force(mechanism: Choosing, scores: Sequence[int], scale: Fraction) -> None:
    times = 200_000
    places = chosen(mechanism, scores, scale, times, SystemBits())
    expected = np.array([float(p) for p in law(mechanism, scores, scale)]) * times
    assert chi_square(np.bincount(places, minlength=len(scores)), expected) > LEAST_P


@pytest.mark.parametrize("mechanism", Choosing)
def test_another_scale_or_law_is_seen(mechanism: Choosing) -> None:
    """The scale off by 5 percent, the other mechanism's law, and the factor 2 of scores that move both ways."""
    scores, scale, times = CASES[2][0], Fraction(7, 2), 200_000
    expected = np.array([float(p) for p in law(mechanism, scores, scale)]) * times
    other = EXPONENTIAL if mechanism is FLIP else FLIP
    for drawn, by in ((mechanism, scale * Fraction(95, 100)), (other, scale), (mechanism, scale / 2)):
        places = chosen(drawn, scores, by, times, Seeded(3))
        assert chi_square(np.bincount(places, minlength=len(scores)), expected) < LEAST_P


@pytest.mark.lemma("M8")
@pytest.mark.parametrize("mechanism", Choosing)
@pytest.mark.parametrize("doubt", [Fraction(1, 20), Fraction(1, 3), Fraction(9, 10)])
def test_m8_a_shortfall_is_reached(mechanism: Choosing, doubt: Fraction) -> None:
    """By the laws: scores that lie so far below the largest one, of one and of four, alone and beside others that do not."""
    scale = Fraction(2**40)
    for others, near in ((1, ()), (4, ()), (3, (0, -(2**38)))):
        short = shortfall(Noise(mechanism, scale), others, doubt)
        assert short >= 0
        chance = float(mp.fsum(law(mechanism, (*([-ceil(short)] * others), 0, *near), scale)[:others]))
        assert chance <= doubt * (1 + Fraction(1, 10**9))
        if mechanism is EXPONENTIAL and not near and short:
            assert chance == pytest.approx(float(doubt), rel=1e-9)
        if mechanism is FLIP and others == 1 and short:
            assert chance == pytest.approx(float(doubt), rel=1e-9)
    with pytest.raises(ValueError, match="nothing is chosen"):
        shortfall(LAPLACE_NOISE, 1, doubt)


# ---- nothing left to chance ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scores", "scale"), CASES)
def test_the_law_of_places_is_exact(scores: Sequence[int], scale: Fraction) -> None:
    """The exponential mechanism: the first 64 bits of U at which each place begins are those of the exact law, to the last bit."""
    with mp.workdps(60):
        ends = [mp.fsum(law(EXPONENTIAL, scores, scale)[: j + 1]) for j in range(len(scores))]
        for j, end in enumerate(ends[:-1]):
            if end >= 1 - mp.mpf(2) ** -60:
                continue
            low, high = 0, ONES
            while low < high:
                middle = (low + high) // 2
                (place,) = chosen(EXPONENTIAL, scores, scale, 1, Script([middle, 0, 0]))
                low, high = (low, middle) if place > j else (middle + 1, high)
            assert abs(low - end * 2**64) <= 1


@pytest.mark.parametrize("x", ["0", "1/3", "1", "7/2", "20", "43", "63", "64", "70", "1e-19"])
def test_the_law_of_coins_is_exact(x: str) -> None:
    """Permute and flip of two scores, the first of which lies x scales lower: its coin lands for as many 64-bit words as the exact law has."""
    scale = 1 / Fraction(x) if Fraction(x) else Fraction(1)
    scores = (0, 1 if Fraction(x) else 0)
    low, high = 0, 2**64
    while low < high:
        middle = (low + high) // 2
        if middle > ONES:
            break
        words = [middle, 0, 0, *([0] * 4)]  # the coins, the one of the two that is taken (the first that landed), further bits
        (place,) = chosen(FLIP, scores, scale, 1, Script(words))
        low, high = (middle + 1, high) if place == 0 else (low, middle)
    with mp.workdps(60):
        assert abs(low - coins(scores, scale)[0] * 2**64) <= 1


@pytest.mark.parametrize("mechanism", Choosing)
def test_coins_and_places_agree_with_exact_ones(mechanism: Choosing, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same words, decided by floats where these are sure, and all of them exactly: the choices are the same."""
    random = Random(5)
    for seed in range(40):
        each = random.choice([2, 3, 17])
        scale = Fraction(random.randint(1, 40), random.randint(1, 9))
        scores = [random.randint(-60, 60) for _ in range(20 * each)]
        quick = choose(Noise(mechanism, scale), scores, each, Seeded(seed))
        with monkeypatch.context() as patch:
            patch.setattr(choice, "_COIN", 2.0)
            patch.setattr(choice, "_PLACE", 2.0)
            assert choose(Noise(mechanism, scale), scores, each, Seeded(seed)) == quick


@pytest.mark.parametrize("further", [0, ONES])
def test_unsure_choices_are_settled_exactly(further: int) -> None:
    """Words at the very ends of weights, then zeros or ones only: the choice is that of the exact law."""
    scores, scale = (0, 3, 1), Fraction(2)
    with mp.workdps(80):
        w = coins(scores, scale)
        for j in (0, 1):
            end = mp.fsum(w[: j + 1]) / mp.fsum(w)
            for word in (int(end * 2**64) - 1, int(end * 2**64), int(end * 2**64) + 1):
                u = (mp.mpf(word) + mp.mpf(further) / ONES * (1 - mp.mpf(2) ** -190)) / 2**64
                (place,) = chosen(EXPONENTIAL, scores, scale, 1, Script([word, further, further, further]))
                assert place == (j if u < end else j + 1)
        for word in (int(w[0] * 2**64) - 1, int(w[0] * 2**64), int(w[0] * 2**64) + 1):
            u = (mp.mpf(word) + mp.mpf(further) / ONES * (1 - mp.mpf(2) ** -190)) / 2**64
            bits = Script([word, 0, ONES, further, 0])  # the coin of the third never lands; what settles the first, and the one that is taken
            (place,) = chosen(FLIP, scores, scale, 1, bits)
            assert place == (0 if u < w[0] else 1)


def test_one_of_several_is_as_likely_as_another() -> None:
    """Each of n has as many of the 2^64 words, the refused ones apart, and the words at both ends of each are its own."""
    for n in [*range(1, 40), 255, 2**16 + 1, 3 * 2**40]:
        spare = 2**64 % n
        for h in {0, n // 3, n - 1}:
            first, last = ceil(Fraction((h << 64) + spare, n)), ceil(Fraction((h + 1) << 64, n)) - 1
            assert last - first + 1 == 2**64 // n
            assert choice._one_of(n, first, Script([])) == choice._one_of(n, last, Script([])) == h
        if spare:
            assert choice._one_of(n, 0, Script([ONES])) == n - 1, "a word that would come too often is drawn again"


def test_weights_are_as_near_as_they_say() -> None:
    falls = np.array([[0, 1, 2, 3, 5, 8, 100, 10**3, 10**4, 10**5, 10**6]], dtype=np.int64)
    for scale in (Fraction(1, 7), Fraction(1), Fraction(10, 3), Fraction(12345, 7), Fraction(10**5)):
        with mp.workdps(40):
            for fall, weight in zip(falls[0].tolist(), choice._weights(falls, scale)[0], strict=True):
                exact = mp.exp(-min(mp.mpf(64), mp.mpf(fall * scale.denominator) / scale.numerator))
                assert abs(weight / exact - 1) < mp.mpf(2) ** -43


# ---- independence, and what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", Choosing)
def test_scores_of_any_size_are_chosen_among(mechanism: Choosing) -> None:
    """Beyond what a float holds, too: whether a choice is made at all must not depend on the data."""
    far = 10**400
    for scale in (Fraction(1), Fraction(1, far), Fraction(far), Fraction(far**2)):
        for scores in ([0, -far, -far], [far, 0, -far], [-far, 0, 1]):
            chosen = choose(Noise(mechanism, scale), scores, 3, SystemBits())
            assert sorted(chosen) == [0, 0, 1]
            if scale == 1:
                assert chosen[scores.index(max(scores))] == 1 or scores == [-far, 0, 1]
    assert choose(Noise(mechanism, Fraction(far)), [0, -65 * far, -(10**6) * far], 3, SystemBits())[0] == 1


@pytest.mark.parametrize("mechanism", Choosing)
def test_groups_and_calls_are_independent(mechanism: Choosing) -> None:
    scores, scale = (4, 3, 3, 0), Fraction(2)
    first, second = (chosen(mechanism, scores, scale, 100_000, SystemBits()) for _ in range(2))
    assert dependence(first, second) > LEAST_P
    assert dependence(first[:-1], first[1:]) > LEAST_P
    repeated = first.copy()
    repeated[1::20] = repeated[:-1:20]
    assert dependence(repeated[:-1], repeated[1:]) < LEAST_P


@pytest.mark.parametrize("mechanism", Choosing)
def test_groups_of_different_scores_have_their_own_laws(mechanism: Choosing) -> None:
    """In one call: what the first group has does not sway the second."""
    out = np.array(choose(Noise(mechanism, Fraction(2)), [0, 9**9, 3, 3] * 50_000, 2, SystemBits())).reshape(-1, 4)
    assert out[:, 0].sum() == 0
    assert chi_square(np.array([out[:, 2].sum(), out[:, 3].sum()]), np.array([25_000.0, 25_000.0])) > LEAST_P


@pytest.mark.parametrize("mechanism", Choosing)
def test_no_groups_and_single_scores(mechanism: Choosing) -> None:
    assert choose(Noise(mechanism, Fraction(1)), [], 5, SystemBits()) == []
    assert choose(Noise(mechanism, Fraction(1)), [7, -3], 1, SystemBits()) == [1, 1]
    for each in (0, choice.MOST):
        with pytest.raises(ValueError, match="among some scores"):
            choose(Noise(mechanism, Fraction(1)), [1, 2], each, SystemBits())


def test_a_choice_is_no_noise_and_noise_no_choice() -> None:
    with pytest.raises(ValueError, match="nothing is chosen"):
        choose(Noise(LAPLACE, Fraction(1)), [1, 2], 2, SystemBits())
    for mechanism in Choosing:
        with pytest.raises(ValueError, match="adds no noise"):
            law_of(Noise(mechanism, Fraction(1)))


@pytest.mark.parametrize("mechanism", Choosing)
def test_bits_that_are_taken_do_not_depend_on_scores(mechanism: Choosing) -> None:
    """But for what floats do not decide, which is rarer than one group in a hundred thousand."""

    class Counted(Seeded):
        taken = 0

        def uint64(self, count: int) -> np.ndarray:
            self.taken += count
            return super().uint64(count)

    found = set()
    for scores in ([0] * 60, list(range(60)), [10**9, *([0] * 59)]):
        bits = Counted(11)
        choose(Noise(mechanism, Fraction(5)), scores, 6, bits)
        found.add(bits.taken)
    assert len(found) == 1
