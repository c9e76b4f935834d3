"""The parts of a loss distribution, each by itself: pairs, the grid, tilts, convolution, and the search."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from dpquery.accounting.convert import epsilon_up
from dpquery.accounting.textbook import loss
from dpquery.accounting.textbook.composition import optimal_epsilon
from dpquery.accounting.textbook.hockeystick import Floats
from dpquery.accounting.textbook.loss import Pair, batch_epsilon_up, gaussian_pair, laplace_pair, pure_pair, sampled_pairs

E, RATE = 0.7, 0.3
MADE: dict[str, Callable[[], Pair]] = {
    "pure": lambda: pure_pair(E),
    "laplace": lambda: laplace_pair(E),
    "gaussian": lambda: gaussian_pair(1.3, 1e-12),
    "removed": lambda: sampled_pairs(gaussian_pair(1.3, 1e-12), RATE)[0],
    "added": lambda: sampled_pairs(gaussian_pair(1.3, 1e-12), RATE)[1],
}


def edges(*inner: float) -> Floats:
    return np.array([-np.inf, *inner, np.inf])


# ---- pairs -------------------------------------------------------------------------------------------------------------------------------


def test_pure_masses() -> None:
    more, less = 1 / (1 + math.exp(-E)), 1 / (1 + math.exp(E))
    p, q = pure_pair(E).masses(edges(-1.0, -E, 0.0, E))
    assert p == pytest.approx([0, less, 0, more, 0])
    assert q == pytest.approx([0, more, 0, less, 0])


def test_laplace_masses() -> None:
    """Atoms at both ends; between them P has e^(-(E - x)/2) / 4 and Q e^-x times that."""
    p, q = laplace_pair(E).masses(edges(-1.0, -E, -0.2, 0.5, E, 1.0))
    antiderivative = [(math.exp((x - E) / 2) / 2, -math.exp(-(x + E) / 2) / 2) for x in (-E, -0.2, 0.5, E)]
    inner = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(antiderivative)]
    rare = math.exp(-E) / 2
    assert p == pytest.approx([0, rare, inner[0][0], inner[1][0], inner[2][0] + 0.5, 0, 0])
    assert q == pytest.approx([0, 0.5, inner[0][1], inner[1][1], inner[2][1] + rare, 0, 0])


def test_gaussian_masses() -> None:
    points = (-30.0, -2.0, -0.1, 0.0, 0.4, 3.0, 30.0)
    p, q = gaussian_pair(1.3, 1e-12).masses(edges(*points))
    with mp.workdps(40):
        for law, mean in ((p, 0.845), (q, -0.845)):
            below = [mp.mpf(0), *(mp.ncdf((mp.mpf(x) - mean) / 1.3) for x in points), mp.mpf(1)]
            assert law == pytest.approx([float(b - a) for a, b in itertools.pairwise(below)], rel=1e-9)


@pytest.mark.parametrize("rate", [RATE, 1.0])
def test_sampled_masses_are_those_of_the_query_behind(rate: float) -> None:
    inner = [-1.0, -0.3, 0.2, 0.9]
    sampled = [math.log1p(rate * math.expm1(x)) for x in inner]
    removed, added = sampled_pairs(laplace_pair(0.95), rate)
    p, q = laplace_pair(0.95).masses(edges(*inner))
    mixed = (1 - rate) * q + rate * p
    for found, exact in zip(removed.masses(edges(*sampled)), (mixed, q), strict=True):
        assert found == pytest.approx(exact)
    for found, exact in zip(added.masses(edges(*(-x for x in reversed(sampled)))), (q, mixed), strict=True):
        assert found == pytest.approx(exact[::-1])


def test_sampled_losses_far_out() -> None:
    """Below ln(1 - q) there is none, above 500 they lie -ln q further out; without a warning."""
    removed, added = sampled_pairs(gaussian_pair(40.0, 1e-12), RATE)
    whole = gaussian_pair(40.0, 1e-12)
    with warnings.catch_warnings(action="error"):
        p, q = removed.masses(edges(math.log(1 - RATE) - 1e-9, 600.0, 800.0))
        behind = whole.masses(edges(600.0 - math.log(RATE), 800.0 - math.log(RATE)))
        assert (p[0], q[0]) == (0, 0)
        assert p[2:] == pytest.approx(RATE * behind[0][1:] + (1 - RATE) * behind[1][1:])
        assert added.masses(edges(-800.0, -600.0))[1] == pytest.approx(removed.masses(edges(600.0, 800.0))[0][::-1])


def test_where_losses_lie() -> None:
    def told(pair: Pair) -> tuple[float, float, float]:
        return pair.low, pair.high, pair.deviation

    reach = 1.3 * math.sqrt(2 * math.log(1e9))
    assert told(pure_pair(E)) == (-E, E, E)
    assert told(laplace_pair(E)) == (-E, E, E)
    assert told(laplace_pair(5.0)) == (-5, 5, 2)
    assert told(gaussian_pair(1.3, 1e-9)) == pytest.approx((-0.845 - reach, 0.845 + reach, 1.3))
    for whole in (gaussian_pair(1.3, 1e-9), laplace_pair(2.5)):
        low, high = (math.log1p(RATE * math.expm1(x)) for x in (whole.low, whole.high))
        points = np.linspace(whole.low, whole.high, 9000)
        p, q = whole.masses(points)
        squares = np.log1p(RATE * np.expm1(points[1:])) ** 2
        deviation = math.sqrt(float(np.sum((RATE * p + (1 - RATE) * q) * squares)))
        removed, added = sampled_pairs(whole, RATE)
        assert told(removed) == pytest.approx((low, high, deviation), rel=4e-3)
        assert told(added) == pytest.approx((-high, -low, deviation), rel=4e-3)


@pytest.mark.parametrize("x", [-800.0, -3.0, -1e-9, 0.0, 0.4, 1.0, 1.5, 40.0, 900.0])
@pytest.mark.parametrize("rate", [1.0, RATE, 1e-9])
def test_loss_of_a_sampled_query(x: float, rate: float) -> None:
    with mp.workdps(400):
        exact = float(mp.log1p(mp.mpf(rate) * mp.expm1(mp.mpf(x))))
    assert loss._forth(x, rate) == pytest.approx(exact, rel=1e-7 if x < -700 else 1e-12)


def test_normal_masses_keep_their_digits_in_both_tails() -> None:
    points = [-np.inf, -30.0, -20.0, -1.0, 0.0, 0.5, 20.0, 30.0, np.inf]
    with mp.workdps(300):
        below = [mp.ncdf(mp.mpf(x)) for x in points]
        exact = [float(b - a) for a, b in itertools.pairwise(below)]
    assert loss._normal(np.array(points)) == pytest.approx(exact, rel=1e-12, abs=0)
    assert loss._normal(np.array([-1.0, 2.0])) == pytest.approx([float(mp.ncdf(2) - mp.ncdf(-1))], rel=1e-12)


# ---- the grid ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize("step", [0.013, 0.7])
def test_the_grid_keeps_the_sums_of_both_laws(made: Callable[[], Pair], step: float) -> None:
    pair = made()
    grid = loss._on_grid(pair, step, 7)
    p, _ = pair.masses(edges(*grid.losses))
    assert grid.count == 7
    assert grid.losses == pytest.approx(step * (grid.first + np.arange(len(grid.losses))), rel=1e-12, abs=1e-12)
    assert (grid.masses[0] > 0, grid.masses[-1] > 0, bool(np.all(grid.masses >= 0))) == (True, True, True)
    assert grid.infinite <= 1e-9
    assert float(grid.masses.sum()) == pytest.approx(1 - grid.infinite, rel=1e-12)
    assert float(np.sum(grid.masses * np.exp(-grid.losses))) == pytest.approx(1.0, rel=1e-9)
    assert grid.losses[0] <= max(pair.low, math.log1p(-RATE)) + step
    assert grid.losses[-1] < pair.high + 2 * step
    above = [float(np.sum(p[i + 1 :])) for i in range(len(grid.losses))]
    kept = [float(np.sum(grid.masses[i:])) for i in range(len(grid.losses))]
    assert all(k >= a - 1e-12 for k, a in zip(kept, above, strict=True))


def test_masses_beyond_the_grid() -> None:
    """Above it they count as an infinite loss, below it as the least one; losses beyond a float's exponential do not warn."""
    pair = Pair(
        lambda e: (np.where(np.isinf(e[1:]), 0.25, np.where(np.isinf(e[:-1]), 0.25, 0.5 / (len(e) - 3))), np.zeros(len(e) - 1)), 0.0, 1.0, 1.0
    )
    grid = loss._on_grid(pair, 0.5, 1)
    assert (grid.first, list(grid.losses), grid.infinite) == (0, [0.0, 0.5, 1.0, 1.5], 0.25)
    assert grid.masses[0] == 0.25
    assert grid.masses[1:].sum() == pytest.approx(0.5)
    with warnings.catch_warnings(action="error"):
        far = loss._on_grid(pure_pair(1000.0), 10.0, 1)
    assert (far.losses[-1], far.masses[-1]) == (1000.0, 1.0)


def test_steps() -> None:
    """A hundredth of the root mean square deviation, or 2^-15 of the widest span; then a part of the first pair's largest loss."""
    top, wide, masses = 0.3, 2.0**13, pure_pair(E).masses
    assert loss._step([(pure_pair(top), 3), (pure_pair(2 * top), 1)]) == pytest.approx(top / math.ceil(100 / math.sqrt(7 / 4)))
    assert loss._step([(Pair(masses, -3 * wide, wide, 1e-6), 2), (pure_pair(top), 1)]) == 1
    assert loss._step([(Pair(masses, -4.0, 0.001, 1.0), 2)]) == pytest.approx(0.01)


# ---- composition -------------------------------------------------------------------------------------------------------------------------


def grid(first: int, masses: list[float], count: int = 1, step: float = 0.5) -> loss._Grid:
    return loss._Grid(first, step * np.arange(first, first + len(masses), dtype=np.float64), np.array(masses), 0.0, count)


def test_moments_and_tilts() -> None:
    one = grid(-1, [0.2, 0.3, 0.5])
    exact = 0.2 * math.exp(-1.0) + 0.3 + 0.5 * math.exp(1.0)
    assert loss._log_moment(one, 2.0) == pytest.approx(math.log(exact))
    assert loss._tilted(one, 2.0) == pytest.approx([0.2 * math.exp(-1.0) / exact, 0.3 / exact, 0.5 * math.exp(1.0) / exact])
    assert loss._log_moment(one, 4000.0) == pytest.approx(2000 + math.log(0.5))
    assert loss._tilted(one, 4000.0) == pytest.approx([0, 0, 1])


@pytest.mark.parametrize("first", [-5, -3, 0])
def test_convolution_on_a_cycle(first: int) -> None:
    one, two = grid(-1, [0.2, 0.3, 0.5], 3), grid(0, [0.6, 0.4], 2)
    line = np.array([1.0])
    for each in (one, one, one, two, two):
        line = np.convolve(line, each.masses)
    found = loss._convolved([one, two], [one.masses, two.masses], 16, first)
    exact = np.zeros(16)
    for i, mass in enumerate(line):
        exact[(i - 3 - first) % 16] += mass
    assert found == pytest.approx(exact, abs=1e-15)
    assert np.all(found >= 0)


def test_where_the_grid_says_nothing_the_bound_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of zCDP, of Gaussian noise; and a tilt is never steeper than floats can follow."""
    tilts: list[float] = []
    monkeypatch.setattr(loss, "loss_epsilon", lambda *_: math.inf)
    exact = epsilon_up(Fraction(3, 2), Fraction(1, 10**6))
    assert exact is not None
    assert batch_epsilon_up([(gaussian_pair(1.0, 1e-14), 3)], 1e-6) == pytest.approx(float(exact), rel=1e-3)
    least = loss._least

    def spied(function: Callable[[float], float], most: float) -> float:
        tilts.append(most)
        return least(function, most)

    monkeypatch.setattr(loss, "_least", spied)
    assert batch_epsilon_up([(pure_pair(66.5), 100)], 1e-3) == pytest.approx(6650, rel=1e-6)
    assert tilts[0] == pytest.approx(1e8 / 6650)


def test_the_cycle_reaches_as_far_as_the_tilted_law_and_no_further_than_it_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both reaches are of the tilted law about its mean, so that their exponents are not negative; of very many releases the steps are coarser."""
    exponents: list[Callable[[float], float]] = []
    reaches: list[float] = []
    cycles: list[tuple[float, int]] = []
    reach, convolved = loss._reach, loss._convolved

    def spied(exponent: Callable[[float], float]) -> float:
        exponents.append(exponent)
        reaches.append(reach(exponent))
        return reaches[-1]

    def measured(grids: list[loss._Grid], tilted: list[Floats], size: int, first: int) -> Floats:
        cycles.append((float(grids[0].losses[1] - grids[0].losses[0]), size))
        return convolved(grids, tilted, size, first)

    monkeypatch.setattr(loss, "_reach", spied)
    monkeypatch.setattr(loss, "_convolved", measured)
    with warnings.catch_warnings(action="error"):
        batch_epsilon_up([(laplace_pair(0.5), 40)], 1e-6)
    above, below = exponents
    for t in (0.01, 0.3, 1.0):
        assert above(t) > 0 < below(t)
        assert above(-t) == pytest.approx(below(t), rel=1e-6)
        assert above(t) != pytest.approx(below(t), rel=4e-3)
    ((step, size),) = cycles
    assert 1 <= size / (sum(reaches) / step + 4) < 2
    batch_epsilon_up([(pure_pair(1e-3), 10**5)], 1e-6)
    assert cycles[1][1] <= 2 * loss._LONGEST


@pytest.mark.parametrize("outside", [0.5, 2.0, 6.0, 40.0])
def test_what_lies_outside_the_cycle_is_taken_from_delta(outside: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """However short the cycle is: what is asked of the grid leaves room for the mass beyond it, and epsilon is not below the exact one."""
    asked: list[tuple[float, float]] = []
    loss_epsilon = loss.loss_epsilon

    def spied(losses: Floats, logs: Floats, delta: float) -> float:
        asked.append((float(losses[-1]), delta))
        return loss_epsilon(losses, logs, delta)

    monkeypatch.setattr(loss, "_OUTSIDE", outside)
    monkeypatch.setattr(loss, "loss_epsilon", spied)
    found = batch_epsilon_up([(pure_pair(0.1), 100)], 1e-6)
    ((end, delta),) = asked
    with mp.workdps(40):
        truth = 1 / (1 + mp.exp(mp.mpf("-0.1")))
        beyond = sum(mp.binomial(100, i) * truth**i * (1 - truth) ** (100 - i) for i in range(101) if (2 * i - 100) * 0.1 > end)
    assert 0 < delta <= 1e-6 / (1 + 1e-6) - beyond
    exact = optimal_epsilon(0.1, 100, 1e-6)
    assert exact <= found < 1.2 * exact


def test_where_all_of_delta_may_lie_outside_the_bound_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> float:
        raise AssertionError("there is no delta to ask for")

    exact = epsilon_up(Fraction(3, 2), Fraction(1, 10**6))
    assert exact is not None
    monkeypatch.setattr(loss, "_OUTSIDE", -60.0)
    monkeypatch.setattr(loss, "_reach", lambda _: 1.0)
    monkeypatch.setattr(loss, "loss_epsilon", refused)
    assert batch_epsilon_up([(gaussian_pair(1.0, 1e-14), 3)], 1e-6) == pytest.approx(float(exact), rel=1e-3)


def test_infinite_losses_alone_may_be_all_of_delta() -> None:
    """To the last bit: what is left for finite ones is then 0."""
    half = Pair(lambda e: (np.where(e[1:] == np.inf, 0.5, np.where(e[:-1] == -np.inf, 0.5, 0.0)), np.zeros(len(e) - 1)), 0.0, 1.0, 1.0)
    assert 0.5 * (1 + 1e-6) / (1 + 1e-6) + math.expm1(math.log1p(-0.5)) == 0
    assert batch_epsilon_up([(half, 1)], 0.5 * (1 + 1e-6)) == math.inf


def test_the_search_finds_the_least() -> None:
    assert loss._least(lambda x: (x - 3) ** 2, 100.0) == pytest.approx(3, rel=1e-6)
    assert loss._least(lambda x: abs(math.log(x) + 30), 100.0) == pytest.approx(math.exp(-30), rel=1e-6, abs=0)
    assert loss._least(lambda x: -x, 100.0) == pytest.approx(100, rel=1e-5)
    assert loss._least(lambda x: x, 100.0) == pytest.approx(math.exp(-50), rel=1e-5, abs=0)


def test_reach() -> None:
    """Of a normal law of variance v: e^(-r^2 / 2v) = e^-40."""
    assert loss._reach(lambda t: 9 * t * t / 2) == pytest.approx(3 * math.sqrt(80), rel=1e-6)
    assert loss._reach(lambda t: 0.0) == pytest.approx(40 * math.exp(-50), rel=1e-4, abs=0)
