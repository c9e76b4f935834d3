"""Z0 to Z5: prices of noise and of choices against the Renyi divergences of the exact laws."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import mpmath as mp
import pytest
from choice_laws import losses, renyi
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import iv
from mpmath.libmp import to_rational

from dpquery.accounting import zcdp
from dpquery.accounting.pure import choice_epsilon, laplace_epsilon
from dpquery.accounting.zcdp import exponential_rho, gaussian_rho, laplace_epsilon_down, laplace_rho_up
from dpquery.plan.release import Choosing

ORDERS = ("1.0001", "1.1", "1.5", "2", "3", "8", "30")


def laplace_loss(b: mp.mpf, shift: int, order: mp.mpf) -> mp.mpf:
    """D_a of discrete Laplace against itself shifted: three geometric series, summed as such."""
    reach = int(60 * b) + shift + 5
    norm = (1 + mp.exp(-1 / b)) / (1 - mp.exp(-1 / b))
    total = mp.fsum(mp.exp((-order * abs(z) - (1 - order) * abs(z - shift)) / b) for z in range(-reach, reach + shift + 1))
    return mp.log(total / norm) / (order - 1)


def gaussian_loss(v: mp.mpf, shift: int, order: mp.mpf) -> mp.mpf:
    reach = range(-int(shift * order + 40 * mp.sqrt(v)) - 10, int(shift * order + 40 * mp.sqrt(v)) + 10)
    norm = mp.fsum(mp.exp(-(mp.mpf(z) ** 2) / (2 * v)) for z in reach)
    total = mp.fsum(mp.exp(-(order * mp.mpf(z) ** 2 + (1 - order) * mp.mpf(z - shift) ** 2) / (2 * v)) for z in reach)
    return mp.log(total / norm) / (order - 1)


@pytest.mark.lemma("Z2", "P4")
@pytest.mark.parametrize(("b", "shift"), [("1/3", 1), ("1/3", 2), ("1", 1), ("1", 3), ("5/2", 4), ("10", 1), ("10", 10)])
def test_discrete_laplace_costs_at_most_its_rho(b: str, shift: int) -> None:
    scale = Fraction(b)
    rho = laplace_rho_up(laplace_epsilon(shift, scale))
    with mp.workdps(40):
        losses = [laplace_loss(mp.mpf(scale.numerator) / scale.denominator, shift, mp.mpf(a)) / mp.mpf(a) for a in ORDERS]
        assert max(losses) <= mp.mpf(rho.numerator) / rho.denominator * (1 + mp.mpf(10) ** -25)


def test_discrete_laplace_reaches_its_rho_at_shift_one() -> None:
    """Order near 1, shift 1: the loss is +-1/b only, as of randomised response; the lower rho of the continuous law would be wrong by 20%."""
    with mp.workdps(40):
        for b in (Fraction(1, 3), Fraction(1), Fraction(10)):
            rho = laplace_rho_up(1 / b)
            reached = laplace_loss(mp.mpf(b.numerator) / b.denominator, 1, mp.mpf("1.000001")) / mp.mpf("1.000001")
            assert 0 <= rho.numerator / mp.mpf(rho.denominator) / reached - 1 < 1e-5
        e = mp.mpf(1)
        assert float(laplace_rho_up(Fraction(1))) / float(e + mp.exp(-e) - 1) > 1.25


def test_laplace_epsilon_is_reached_by_outcomes_beyond_both_vectors() -> None:
    b = Fraction(5, 2)
    with mp.workdps(40):
        ratio = mp.exp(-mp.mpf(7) / (mp.mpf(5) / 2)) / mp.exp(-mp.mpf(10) / (mp.mpf(5) / 2))
        assert abs(mp.log(ratio) - mp.mpf(6) / 5) < 1e-30
    assert laplace_epsilon(3, b) == Fraction(6, 5)


@pytest.mark.lemma("Z1", "P4")
@pytest.mark.parametrize(("v", "shift"), [("1/4", 1), ("1", 1), ("1", 3), ("56", 5)])
def test_discrete_gaussian_costs_at_most_its_rho_and_reaches_it(v: str, shift: int) -> None:
    variance = Fraction(v)
    rho = gaussian_rho(shift * shift, variance)
    with mp.workdps(60):
        exact = mp.mpf(rho.numerator) / rho.denominator
        losses = [gaussian_loss(mp.mpf(variance.numerator) / variance.denominator, shift, mp.mpf(a)) / mp.mpf(a) for a in ORDERS]
        assert max(losses) <= exact * (1 + mp.mpf(10) ** -30)
        assert max(losses) >= exact * (1 - mp.mpf(10) ** -30)


@pytest.mark.lemma("Z2")
@settings(deadline=None)
@given(st.fractions(Fraction(1, 10**12), 300, max_denominator=10**12))
def test_laplace_rho_is_rounded_up_by_little(epsilon: Fraction) -> None:
    rho = laplace_rho_up(epsilon)
    with mp.workdps(80):
        e = mp.mpf(epsilon.numerator) / epsilon.denominator
        excess = mp.mpf(rho.numerator) / rho.denominator / (e * mp.tanh(e / 2)) - 1
        assert 0 <= excess < mp.mpf(10) ** -35
    assert rho <= epsilon * epsilon / 2 * (1 + Fraction(1, 10**30))


@pytest.mark.lemma("Z2")
@pytest.mark.parametrize("text", ["1/3", "1/7", "99/101", "1e-9", "7/3e10", "1e-40"])
def test_laplace_rho_below_small_is_rounded_up_by_little(text: str) -> None:
    """Of an epsilon below 1e-20 the price is at least e tanh(e/2), by interval arithmetic of 160 digits whose ends are read exactly."""
    one, _, other = text.partition("/")
    epsilon = Fraction(one) / Fraction(other or 1) / 10**20
    rho, digits = laplace_rho_up(epsilon), iv.dps
    iv.dps = 160
    try:
        e = iv.mpf(epsilon.numerator) / epsilon.denominator
        q = iv.exp(-e)
        low, high = (Fraction(*to_rational(end)) for end in (e * (1 - q) / (1 + q))._mpi_)
    finally:
        iv.dps = digits
    assert high <= rho <= low * (1 + Fraction(1, 10**37))


@pytest.mark.parametrize("text", ["1e-30", "1e-20", "1.1e-20", "1e-9", "0.5", "50", "299.9", "300", "300.1", "1e20", "1e25"])
def test_laplace_rho_at_all_sizes(text: str) -> None:
    epsilon = Fraction(text)
    rho = laplace_rho_up(epsilon)
    simple = min(epsilon * epsilon / 2, epsilon)
    assert simple * Fraction(46, 100) < rho <= simple * (1 + Fraction(1, 10**30))
    assert laplace_rho_up(epsilon * Fraction(101, 100)) > rho


@pytest.mark.lemma("Z3")
@settings(deadline=None)
@given(st.one_of(st.fractions(Fraction(1, 10**12), 10**6, max_denominator=10**12), st.sampled_from([Fraction(1, 10**60), Fraction(10**25)])))
def test_laplace_epsilon_down_is_the_inverse(rho: Fraction) -> None:
    epsilon = laplace_epsilon_down(rho)
    assert laplace_rho_up(epsilon) <= rho
    assert laplace_rho_up(epsilon * (1 + Fraction(1, 10**20))) > rho


@pytest.mark.lemma("Z3")
@pytest.mark.parametrize("text", ["0.9e-59", "0.7e-58", "1e-57", "3e-41", "0.9e-40", "1.1e-40", "1.5e-20", "1e-9", "0.3", "1", "7", "299", "301"])
def test_the_inverse_has_34_digits_at_all_sizes(text: str) -> None:
    rho = Fraction(text)
    assert laplace_rho_up(laplace_epsilon_down(rho)) <= rho
    assert laplace_rho_up(laplace_epsilon_down(rho) * (1 + Fraction(1, 10**34))) > rho


@pytest.mark.lemma("Z3")
def test_any_start_is_lowered_until_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """In few steps, and by not much more than it must."""
    rho, usual, calls = Fraction(1, 3), laplace_rho_up, []

    def counted(epsilon: Fraction) -> Fraction:
        calls.append(epsilon)
        assert len(calls) < 40
        return usual(epsilon)

    exact = laplace_epsilon_down(rho)
    monkeypatch.setattr(zcdp, "laplace_rho_up", counted)
    monkeypatch.setattr(zcdp, "_newton", lambda _: exact * (1 + Fraction(1, 10**6)))
    assert exact * (1 - Fraction(1, 10**5)) < laplace_epsilon_down(rho) <= exact


def test_zero_and_below() -> None:
    assert laplace_rho_up(Fraction(0)) == laplace_epsilon_down(Fraction(0)) == gaussian_rho(0, Fraction(1)) == 0
    with pytest.raises(ValueError, match=r"^epsilon is not negative$"):
        laplace_rho_up(Fraction(-1))
    with pytest.raises(ValueError, match=r"^rho is not negative$"):
        laplace_epsilon_down(Fraction(-1))


# ---- choices ---------------------------------------------------------------------------------------------------------------------------

SCORES = ((0, 0), (0, 0, 0), (5, 2, 0), (7, 7, 1, -4), (0, -9, -9, -9))
MONOTONE = tuple(product((0, 1, 2), repeat=4))  # shifts of each score that lie in [0, 2]
BOTH_WAYS = tuple(product((-1, 0, 1), repeat=4))


@pytest.mark.lemma("Z4")
@pytest.mark.parametrize("mechanism", Choosing)
@pytest.mark.parametrize("scores", SCORES)
def test_choices_lose_at_most_their_epsilon(mechanism: Choosing, scores: tuple[int, ...]) -> None:
    """Scores that move one way by 2 at most lose what ones that move both ways by 1 do."""
    scale = Fraction(3)
    for shifts in (*MONOTONE, *BOTH_WAYS):
        moved = [q + d for q, d in zip(scores, shifts, strict=False)]
        apart = max(shifts[: len(scores)]) - min(shifts[: len(scores)])
        assert max(map(abs, losses(mechanism, scores, moved, scale))) <= choice_epsilon(apart, scale) + mp.mpf(10) ** -12


@pytest.mark.parametrize("mechanism", Choosing)
def test_choice_epsilon_is_reached(mechanism: Choosing) -> None:
    """Permute and flip: one way from a tie, both ways where the last stays below. Exponential: a score that hardly weighs."""
    scale, far = Fraction(2), 80
    one_way = ((0, 0), (3, 0)) if mechanism is Choosing.PERMUTE_AND_FLIP else ((far, 0), (far, 3))
    both_ways = ((6, 0), (3, 3)) if mechanism is Choosing.PERMUTE_AND_FLIP else ((far, 0), (far - 3, 3))
    with mp.workdps(40):
        for (one, two), apart in ((one_way, 3), (both_ways, 6)):
            reached = max(map(abs, losses(mechanism, one, two, scale)))
            assert abs(reached - mp.mpf(apart) / 2) < 1e-12
            assert choice_epsilon(apart, scale) == Fraction(apart, 2)


@pytest.mark.lemma("Z5", "P4")
@pytest.mark.parametrize("scores", SCORES)
def test_the_exponential_mechanism_costs_at_most_its_rho(scores: tuple[int, ...]) -> None:
    scale = Fraction(2)
    with mp.workdps(30):
        for shifts in (*MONOTONE[::4], *BOTH_WAYS[::4]):
            moved = [q + d for q, d in zip(scores, shifts, strict=False)]
            apart = max(shifts[: len(scores)]) - min(shifts[: len(scores)])
            rho = exponential_rho(apart**2, scale)
            for order in map(mp.mpf, ORDERS):
                loss = renyi(Choosing.EXPONENTIAL, scores, moved, scale, order)
                assert loss <= order * mp.mpf(rho.numerator) / rho.denominator + mp.mpf(10) ** -20


def test_exponential_rho_is_nearly_reached() -> None:
    """Two equal scores, one of which moves by a hundredth of the scale: the loss is rho's but for a part in ten thousand."""
    scale, order = Fraction(100), mp.mpf("1.000001")
    with mp.workdps(40):
        rho = exponential_rho(1, scale)
        reached = renyi(Choosing.EXPONENTIAL, (0, 0), (1, 0), scale, order) / order
        assert 0 <= mp.mpf(rho.numerator) / rho.denominator / reached - 1 < 1e-4


@pytest.mark.lemma("Z5")
def test_permute_and_flip_has_no_bounded_range() -> None:
    """It costs more than the exponential mechanism of its scale, and at most what anything of its epsilon does (Z2)."""
    scale = Fraction(1)
    with mp.workdps(40):
        for order in map(mp.mpf, ORDERS):
            losing = [
                renyi(Choosing.PERMUTE_AND_FLIP, one, two, scale, order) / order
                for one, two in (((0, 0), (1, 0)), ((1, 0), (0, 0)), ((9, 0, 0), (9, 1, 0)), ((0, 0, 0), (1, 0, 0)), ((3, 0), (3, 1)))
            ]
            rho = laplace_rho_up(choice_epsilon(1, scale))
            assert max(losing) <= mp.mpf(rho.numerator) / rho.denominator
        assert renyi(Choosing.PERMUTE_AND_FLIP, (1, 0), (0, 0), scale, mp.mpf("1.01")) > mp.mpf(exponential_rho(1, scale).numerator) / 8
