"""The textbook's functions against mpmath, dp-accounting and each other: exact where they say so, above the truth where the name ends in _up."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import dp_accounting as da
import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from dpquery.accounting.convert import epsilon_up
from dpquery.accounting.textbook.composition import adaptive_epsilon, advanced_epsilon, basic, optimal_epsilon
from dpquery.accounting.textbook.concentrated import bounded_range_rho, continuous_laplace_rho, loose_epsilon, loose_rho
from dpquery.accounting.textbook.gaussian import classical_sigma, gaussian_delta, gaussian_epsilon, gaussian_sigma
from dpquery.accounting.textbook.groups import group_delta_up, group_rho, loose_group_delta_up
from dpquery.accounting.textbook.hockeystick import loss_delta, loss_epsilon
from dpquery.accounting.textbook.loss import Pair, _step, batch_epsilon_up, gaussian_pair, laplace_pair, pure_pair, sampled_pairs
from dpquery.accounting.textbook.normal import log_tail, tail
from dpquery.accounting.textbook.pure import laplace_delta, randomised_response_epsilon, staircase_error
from dpquery.accounting.textbook.renyi import ORDERS, gaussian_renyi, laplace_renyi, pure_renyi, renyi_epsilon
from dpquery.accounting.textbook.sampling import amplified, sampled_gaussian_renyi
from dpquery.accounting.textbook.selection import exponential_probabilities, least_units, truncated_geometric
from dpquery.accounting.zcdp import laplace_rho_up

INF, NAN = math.inf, math.nan
EXCESS = 1.001  # of a loss distribution over the exact epsilon


# ---- continuous Gaussian noise -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("z", [-5.0, 0.0, 1.0, 20.0, 34.9, 35.0, 35.1, 60.0, 1e5])
def test_log_tail(z: float) -> None:
    with mp.workdps(60):
        exact = mp.log(mp.erfc(mp.mpf(z) / mp.sqrt(2)) / 2)
        assert log_tail(z) == pytest.approx(float(exact), rel=1e-12, abs=1e-15)
        assert tail(z) == pytest.approx(float(mp.exp(exact)), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("z", [35.0, 36.5, 40.0, 100.0, 1e3])
def test_log_tail_far_out_is_below_by_the_next_term_of_the_series_at_most(z: float) -> None:
    """Which is towards a larger delta: it stands for what is subtracted."""
    with mp.workdps(60):
        exact = mp.log(mp.erfc(mp.mpf(z) / mp.sqrt(2)) / 2)
        rounding = -exact * mp.mpf(2) ** -52
        assert -(105 / mp.mpf(z) ** 8) - rounding <= log_tail(z) - exact <= rounding


@pytest.mark.parametrize(("mu", "epsilon"), [(0.01, 0.0), (0.01, 0.05), (1.0, 3.0), (1.0, 30.0), (30.0, 500.0), (100.0, 6000.0), (1e-6, 1e-6)])
def test_gaussian_delta(mu: float, epsilon: float) -> None:
    with mp.workdps(60):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        exact = float(mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m))
    assert gaussian_delta(mu, epsilon) == pytest.approx(exact, rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_the_classical_mechanism_is_noisier_than_need_be(epsilon: float, delta: float) -> None:
    sigma = gaussian_sigma(epsilon, delta)
    assert sigma < classical_sigma(epsilon, delta)
    assert gaussian_epsilon(1 / sigma, delta) == pytest.approx(epsilon, rel=1e-6)
    assert gaussian_delta(1 / classical_sigma(epsilon, delta), epsilon) < delta


def test_the_classical_formula_fails_beyond_its_range() -> None:
    """At epsilon 20 its sigma has a delta a hundred times too large: why it raises."""
    sigma = math.sqrt(2 * math.log(1.25 / 1e-6)) / 20
    assert gaussian_delta(1 / sigma, 20) > 1e-4
    with pytest.raises(ValueError, match="epsilon <= 1"):
        classical_sigma(20, 1e-6)


def test_no_loss_below_the_total_variation() -> None:
    assert gaussian_epsilon(0.1, 0.5) == gaussian_epsilon(1.0, gaussian_delta(1.0, 0.0)) == 0
    assert optimal_epsilon(0.1, 1, 0.5) == 0
    assert renyi_epsilon([gaussian_renyi(0.1, a) for a in ORDERS], 0.5) == 0
    assert batch_epsilon_up([(gaussian_pair(0.1, 1e-9), 1)], 0.5) == 0
    assert batch_epsilon_up([(pure_pair(1e-9), 3)], 0.9) == 0


# ---- composition -------------------------------------------------------------------------------------------------------------------------


def optimal_delta(epsilon: float, queries: int, total: float, each: float) -> mp.mpf:
    with mp.workdps(40):
        e, t = mp.mpf(epsilon), mp.mpf(total)
        lost = mp.fsum(mp.binomial(queries, i) * max(0, mp.exp(i * e) - mp.exp(t + (queries - i) * e)) for i in range(queries + 1))
        return 1 - (1 - mp.mpf(each)) ** queries * (1 - lost / (1 + mp.exp(e)) ** queries)


@pytest.mark.parametrize(("epsilon", "queries", "each"), [(0.3, 7, 0.0), (0.3, 8, 1e-8), (1.5, 5, 0.0), (0.01, 200, 1e-9), (40.0, 3, 0.0)])
def test_optimal_composition(epsilon: float, queries: int, each: float) -> None:
    for delta in (1e-3, 1e-6):
        total = optimal_epsilon(epsilon, queries, delta, each)
        assert 0 < total <= queries * epsilon
        assert float(optimal_delta(epsilon, queries, total, each)) == pytest.approx(delta, rel=1e-6)


def test_optimal_composition_uses_what_the_deltas_leave() -> None:
    total = optimal_epsilon(0.5, 5, 1e-2, 1e-3)
    assert float(optimal_delta(0.5, 5, total, 1e-3)) == pytest.approx(1e-2, rel=1e-9)


def test_what_deltas_alone_exceed_has_no_epsilon() -> None:
    assert optimal_epsilon(0.1, 100, 1e-6, each=1e-7) == optimal_epsilon(0.1, 1, 0.5, each=1.0) == optimal_epsilon(0.1, 1, 0.5, each=1.5) == INF
    assert optimal_epsilon(2.0, 1, 0.5, each=0.5) == 2
    assert optimal_epsilon(0.0, 100, 1e-6) == 0
    assert advanced_epsilon(701, 1, 1e-6) == INF
    assert batch_epsilon_up([(gaussian_pair(1.0, 1e-3), 100)], 1e-3) == INF


@pytest.mark.parametrize(("epsilon", "queries"), [(0.01, 10_000), (0.1, 100), (0.1, 1000), (1.0, 50)])
def test_methods_in_order(epsilon: float, queries: int) -> None:
    """Each theorem is at least the exact value; the zCDP filter is below the adaptive one, which has a larger rho and a looser conversion."""
    delta, exact = 1e-6, optimal_epsilon(epsilon, queries, 1e-6)
    zcdp = epsilon_up(queries * laplace_rho_up(Fraction(str(epsilon))), Fraction(1, 10**6))
    assert zcdp is not None
    filtered = adaptive_epsilon(queries * epsilon * epsilon, delta)
    assert exact <= renyi_epsilon([queries * pure_renyi(epsilon, a) for a in ORDERS], delta) * (1 + 1e-12)
    assert exact <= float(zcdp) < filtered
    assert filtered == pytest.approx(loose_epsilon(float(queries * loose_rho(Fraction(str(epsilon)))), delta))
    assert exact < advanced_epsilon(epsilon, queries, delta)
    assert exact <= float(basic(Fraction(str(epsilon)), Fraction(0), queries)[0])


def test_a_hundred_times_a_tenth() -> None:
    """The figures that the pages quote."""
    tenth, delta = Fraction(1, 10), Fraction(1, 10**6)
    rhos = (100 * laplace_rho_up(tenth), Fraction(100 * continuous_laplace_rho(0.1)))
    found = [
        float(basic(tenth, delta, 100)[0]),
        optimal_epsilon(0.1, 100, 1e-6),
        batch_epsilon_up([(laplace_pair(0.1), 100)], 1e-6),
        *(float(epsilon_up(rho, delta) or 0) for rho in rhos),
        adaptive_epsilon(100 * 0.1**2, 1e-6),
        advanced_epsilon(0.1, 100, 1e-6),
    ]
    assert [round(x, 4) for x in found] == [10, 4.7746, 4.6927, 5.2191, 5.1249, 5.7565, 6.3082]


def test_discrete_laplace_noise_loses_more_than_continuous() -> None:
    assert batch_epsilon_up([(pure_pair(0.5), 4)], 1e-3) > batch_epsilon_up([(laplace_pair(0.5), 4)], 1e-3) * 1.001
    assert float(laplace_rho_up(Fraction(1))) > continuous_laplace_rho(1.0) * 1.25


# ---- Renyi divergences -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-8, 0.1, 3.0, 60.0])
@pytest.mark.parametrize("order", [1.0, 1.0001, 1.5, 2.0, 63.0, 1024.0])
def test_divergences(epsilon: float, order: float) -> None:
    with mp.workdps(60):
        e, a = mp.mpf(epsilon), mp.mpf(order) + (mp.mpf(10) ** -25 if order == 1 else 0)
        p, q = 1 / (1 + mp.exp(-e)), 1 / (1 + mp.exp(e))
        response = mp.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)
        laplace = mp.log(a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)) / (a - 1)
    assert pure_renyi(epsilon, order) == pytest.approx(float(response), rel=1e-7)
    assert laplace_renyi(epsilon, order) == pytest.approx(float(laplace), rel=1e-6, abs=1e-16)
    assert pure_renyi(epsilon, order) <= order * float(laplace_rho_up(Fraction(epsilon))) * (1 + 1e-7)
    assert laplace_renyi(epsilon, order) <= order * continuous_laplace_rho(epsilon) * (1 + 1e-6) + 1e-16


def sampled_moment(rate: float, sigma: float, order: float) -> float:
    """ln E (1 - q + q e^loss)^a, by quadrature."""
    with mp.workdps(30):
        q, s, a = mp.mpf(rate), mp.mpf(sigma), mp.mpf(order)
        integrand = lambda x: mp.npdf(x, 0, s) * (1 - q + q * mp.exp((2 * x - 1) / (2 * s * s))) ** a  # noqa: E731
        points = [-12 * s, 0, *mp.linspace(a / 8, a, 8), a + 12 * s]
        return float(mp.log(mp.quad(integrand, points)) / (a - 1))


@pytest.mark.parametrize(
    ("rate", "sigma", "order"),
    [(0.01, 1.0, 1.7), (0.01, 1.0, 5.5), (0.3, 4.0, 2.4), (0.5, 0.8, 3.0), (0.9, 2.0, 10.3), (0.3, 0.15, 2.5), (0.01, 0.1, 1.1)],
)
def test_sampled_gaussian_divergence(rate: float, sigma: float, order: float) -> None:
    assert sampled_gaussian_renyi(rate, sigma, order) == pytest.approx(sampled_moment(rate, sigma, order), rel=1e-8)


def test_for_little_noise_the_chord_is_the_bound() -> None:
    exact = sampled_moment(0.1, 0.09, 1.2)
    assert exact < sampled_gaussian_renyi(0.1, 0.09, 1.2) < 2 * exact
    assert sampled_gaussian_renyi(1.0, 0.25, 1.2) == gaussian_renyi(4.0, 1.2)
    below, between, above = (sampled_gaussian_renyi(0.1, 0.09, a) * (a - 1) for a in (2.0, 2.4, 3.0))
    assert between == pytest.approx(0.6 * below + 0.4 * above, rel=1e-12)


def test_a_delta_that_a_divergence_meets_at_0_has_epsilon_0() -> None:
    """Bretagnolle and Huber's bound, where the conversion at that order is far from 0."""
    assert 1 - math.exp(-1.2e-4) < 0.011**2 < 1 - math.exp(-1.3e-4)
    assert renyi_epsilon([1.2e-4], 0.011, [1.5]) == 0
    assert renyi_epsilon([1.3e-4], 0.011, [1.5]) > 7


def test_renyi_agrees_with_dp_accounting() -> None:
    """At orders that are no integers dp_accounting adds the sizes of a series' signed terms, so it is above: by a seventh at order 2.4."""
    accountant = da.rdp.RdpAccountant()
    accountant.compose(da.LaplaceDpEvent(4.0), 7)
    accountant.compose(da.PoissonSampledDpEvent(0.05, da.GaussianDpEvent(1.5)), 30)
    ours = [7 * laplace_renyi(0.25, a) + 30 * sampled_gaussian_renyi(0.05, 1.5, a) for a in ORDERS]
    for delta in (1e-3, 1e-9):
        assert 1 - 1e-5 < renyi_epsilon(ours, delta) / accountant.get_epsilon(delta) < 1 + 1e-9


# ---- loss distributions ------------------------------------------------------------------------------------------------------------------


PAIRS: dict[str, Callable[[], Pair]] = {
    "pure": lambda: pure_pair(0.7),
    "laplace": lambda: laplace_pair(0.7),
    "gaussian": lambda: gaussian_pair(1.3, 1e-12),
    "removed": lambda: sampled_pairs(laplace_pair(2.0), 0.3)[0],
    "added": lambda: sampled_pairs(laplace_pair(2.0), 0.3)[1],
    "rarely removed": lambda: sampled_pairs(gaussian_pair(1.3, 1e-12), 1e-3)[0],
    "rarely added": lambda: sampled_pairs(gaussian_pair(1.3, 1e-12), 1e-3)[1],
}


@pytest.mark.parametrize("made", PAIRS.values(), ids=PAIRS)
def test_masses_are_those_of_a_pair(made: Callable[[], Pair]) -> None:
    """Both laws sum to 1, and P's mass over Q's is between the exponentials of each interval's ends; nearly all lies between low and high."""
    pair = made()
    outside = pair.masses(np.array([-np.inf, np.nextafter(pair.low, -np.inf), np.nextafter(pair.high, np.inf), np.inf]))
    assert all(law[0] + law[-1] < 1e-9 for law in outside)
    edges = np.concatenate(([-np.inf], np.linspace(-8, 12, 401), [np.inf]))
    p, q = pair.masses(edges)
    assert p.sum() == pytest.approx(1)
    assert q.sum() == pytest.approx(1)
    assert np.all(p[:-1] <= q[:-1] * np.exp(edges[1:-1]) * (1 + 1e-9) + 1e-15)
    assert np.all(p >= q * np.exp(edges[:-1]) * (1 - 1e-9) - 1e-15)


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize(("epsilon", "queries"), [(0.01, 1000), (0.1, 30), (1.0, 1), (2.0, 10), (0.37, 77), (30.0, 3), (1e-7, 10**6), (0.1, 10**5)])
def test_a_pure_batch_is_just_above_the_optimal_composition(epsilon: float, queries: int, delta: float) -> None:
    exact = optimal_epsilon(epsilon, queries, delta)
    assert exact <= batch_epsilon_up([(pure_pair(epsilon), queries)], delta) * (1 + 1e-12) <= exact * EXCESS + 1e-12


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize(("mu", "queries"), [(0.001, 1), (0.05, 100), (1.0, 1), (1.0, 40), (20.0, 2), (100.0, 1), (0.01, 10**6)])
def test_a_gaussian_batch_is_just_above_the_exact_value(mu: float, queries: int, delta: float) -> None:
    exact = gaussian_epsilon(mu * math.sqrt(queries), delta)
    assert exact <= batch_epsilon_up([(gaussian_pair(mu, 1e-6 * delta / queries), queries)], delta) <= exact * EXCESS + 1e-6


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-3), (1.0, 1e-6), (5.0, 0.3)])
def test_one_laplace_release(epsilon: float, delta: float) -> None:
    found = batch_epsilon_up([(laplace_pair(epsilon), 1)], delta)
    assert laplace_delta(epsilon, found) <= delta * (1 + 1e-12)
    assert laplace_delta(epsilon, found - 1e-3 * epsilon) > delta


def test_a_mixed_batch_brackets_as_dp_accounting_does() -> None:
    def theirs(pessimistic: bool) -> float:
        options: dict[str, Any] = {"value_discretization_interval": 1e-3, "pessimistic_estimate": pessimistic}
        laplace = pld.from_laplace_mechanism(1 / 0.4, **options).self_compose(6)
        gaussian = pld.from_gaussian_mechanism(8.0, **options).self_compose(9)
        sampled = pld.from_gaussian_mechanism(2.0, sampling_prob=0.2, **options).self_compose(5)
        return float(laplace.compose(gaussian).compose(sampled).get_epsilon_for_delta(1e-7))

    both = [
        batch_epsilon_up([(laplace_pair(0.4), 6), (gaussian_pair(1 / 8, 1e-15), 9), (sampled, 5)], 1e-7)
        for sampled in sampled_pairs(gaussian_pair(0.5, 1e-15), 0.2)
    ]
    assert theirs(False) <= max(both) <= theirs(False) * 1.01
    assert max(both) == pytest.approx(theirs(True), rel=1e-3)


@pytest.mark.parametrize("rate", [1.0, 0.4, 1e-3, 1e-9])
def test_sampled_randomised_response_is_exact(rate: float) -> None:
    """Both directions of ((1-q) Q + q P, Q), which has two outcomes, composed by counting."""
    epsilon, queries, delta = 1.0, 12, 1e-5
    more, less = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    mixed = (1 - rate) * less + rate * more
    for pair, p, q in zip(sampled_pairs(pure_pair(epsilon), rate), (mixed, less), (less, mixed), strict=True):
        counts = np.arange(queries + 1)
        losses = counts * math.log(p / q) + (queries - counts) * math.log1p((q - p) / (1 - q))
        logs = np.array([math.log(math.comb(queries, i)) + i * math.log(p) + (queries - i) * math.log1p(-p) for i in counts])
        order = np.argsort(losses)
        exact = loss_epsilon(losses[order], logs[order], delta)
        assert exact <= batch_epsilon_up([(pair, queries)], delta) * (1 + 1e-9) + 1e-13
        assert batch_epsilon_up([(pair, queries)], delta) <= exact * EXCESS + 1e-9
        assert exact <= queries * amplified(epsilon, 0.0, rate)[0] * (1 + 1e-9)


@pytest.mark.parametrize("delta", [1e-3, 1e-18])
def test_where_nothing_but_the_largest_loss_is_likely(delta: float) -> None:
    """The tilt that is best there is too steep for floats: the result stays a bound, and near."""
    assert 6650 + math.log1p(-delta) <= batch_epsilon_up([(pure_pair(66.5), 100)], delta) <= 6650


def test_a_grid_is_no_finer_than_it_need_be() -> None:
    """Also where the largest loss of the first pair is far smaller than a step."""
    for pair in (pure_pair(0.3), gaussian_pair(1e-4, 1e-9), *sampled_pairs(gaussian_pair(2.5, 1e-12), 1e-9)):
        widest = max(pair.deviation / 100, (pair.high - pair.low) / 2**15)
        assert widest / 2 <= _step([(pair, 7)]) <= widest


def test_loss_epsilon_inverts_loss_delta() -> None:
    losses, logs = np.array([-1.0, 0.5, 2.0, 3.0]), np.log([0.4, 0.3, 0.2, 0.1])
    for epsilon in (0.0, 0.2, 0.5, 1.9, 2.0, 2.9):
        assert loss_epsilon(losses, logs, loss_delta(losses, logs, epsilon)) == pytest.approx(epsilon)
    assert loss_delta(losses, logs, 0.0) == pytest.approx(0.3 * -math.expm1(-0.5) + 0.2 * -math.expm1(-2) + 0.1 * -math.expm1(-3))
    assert loss_delta(losses, logs, 3.0) == 0
    assert loss_epsilon(losses + 2, logs, loss_delta(losses + 2, logs, 0.7)) == pytest.approx(0.7)


@pytest.mark.parametrize(("largest", "mass"), [(0.3, 0.7), (1.0, 0.2), (2.3, 0.1)])
def test_a_delta_that_is_met_at_0_has_epsilon_0(largest: float, mass: float) -> None:
    losses, logs = np.array([-1.0, largest]), np.log([1 - mass, mass])
    assert loss_epsilon(losses, logs, loss_delta(losses, logs, 0.0)) == 0


@pytest.mark.parametrize(("first", "second", "mass"), [(0.4, 2.1, 1e-3), (0.4, 2.1, 1e-12), (0.4, 0.5, 0.1), (0.1, 0.2, 0.1), (0.1, 0.2, 1e-9)])
def test_a_delta_that_is_hardly_missed_at_a_loss_has_no_epsilon_below_it(first: float, second: float, mass: float) -> None:
    losses, logs = np.array([first, second]), np.log([1 - mass, mass])
    assert loss_epsilon(losses, logs, math.nextafter(loss_delta(losses, logs, first), 0)) >= first


def test_masses_beyond_a_float() -> None:
    with warnings.catch_warnings(action="error"):
        assert loss_delta(np.array([1.0]), np.array([800.0]), 0.5) == INF
        assert loss_delta(np.array([1.0]), np.array([800.0]), 1.0) == 0


# ---- sampling, groups, choices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "rate"), [(1e-6, 1e-6), (0.5, 0.1), (1.0, 0.5), (1.0, 1.0), (30.0, 0.01), (1000.0, 0.5)])
def test_amplification(epsilon: float, rate: float) -> None:
    with mp.workdps(40):
        exact = mp.log(1 - mp.mpf(rate) + mp.mpf(rate) * mp.exp(epsilon))
    assert amplified(epsilon, 1e-6, rate) == pytest.approx((float(exact), rate * 1e-6), rel=1e-12, abs=0)


def test_a_sample_of_all_loses_all() -> None:
    """To the last bit."""
    for n in range(1, 400):
        assert amplified(n / 200, 1e-6, 1.0) == (n / 200, 1e-6)


@pytest.mark.parametrize(("epsilon", "units"), [("0", 5), ("1e-30", 3), ("0.5", 1), ("1", 2), ("2", 40)])
def test_group_delta_is_the_sum_rounded_up(epsilon: str, units: int) -> None:
    delta = Fraction(1, 10**9)
    found = group_delta_up(Fraction(epsilon), delta, units)
    with mp.workdps(90):
        exact = mp.fsum(mp.exp(i * mp.mpf(epsilon)) for i in range(units)) / 10**9
        real = mp.mpf(found.numerator) / found.denominator
        loose = loose_group_delta_up(Fraction(epsilon), delta, units)
        assert 0 <= real / exact - 1 < (mp.mpf("1e-15") if epsilon == "1e-30" else mp.mpf("1e-45"))
        top = units * mp.exp((units - 1) * mp.mpf(epsilon)) / 10**9
        assert 0 <= mp.mpf(loose.numerator) / loose.denominator / top - 1 < mp.mpf("1e-45")
    assert units > 1 or found >= delta


def test_group_rho() -> None:
    assert group_rho(Fraction(1, 10), 3) == Fraction(9, 10)
    assert bounded_range_rho(Fraction(2)) == Fraction(1, 2)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-3), (1.0, 1e-6), (5.0, 0.2), (0.0, 0.1)])
def test_truncated_geometric_selection_is_private_and_no_larger_would_be(epsilon: float, delta: float) -> None:
    p = [truncated_geometric(epsilon, delta, n) for n in range(60)]
    assert p[0] == 0
    assert p == sorted(p)
    for before, after in itertools.pairwise(p):
        assert after <= math.exp(epsilon) * before + delta + 1e-12
        assert 1 - before <= math.exp(epsilon) * (1 - after) + delta + 1e-12 or after == 1
        more = min(1.0, after * (1 + 1e-6) + 1e-9)
        assert after == 1 or more > math.exp(epsilon) * before + delta or 1 - before > math.exp(epsilon) * (1 - more) + delta
    n = least_units(epsilon, delta, 0.5)
    assert truncated_geometric(epsilon, delta, n) >= 0.5 > truncated_geometric(epsilon, delta, n - 1)
    assert truncated_geometric(epsilon, delta, 10**9) == 1


def test_exponential_mechanism_is_private() -> None:
    before, after = exponential_probabilities([0, 1, 2], 1.0), exponential_probabilities([1, 0, 2], 1.0)
    losses = [math.log(a / b) for a, b in zip(before, after, strict=True)]
    assert sum(before) == pytest.approx(1)
    assert max(map(abs, losses)) <= 1.0
    assert exponential_probabilities([1e308, 0], 1.0, monotone=True) == (1.0, 0.0)


def test_staircase_and_responses() -> None:
    assert 0.95 < staircase_error(1.0) < 1.0
    assert staircase_error(1e-6) == pytest.approx(1e6)
    assert staircase_error(1e4) == 0
    assert randomised_response_epsilon(0.25) == pytest.approx(randomised_response_epsilon(0.75))
    assert randomised_response_epsilon(0.25, 4) == pytest.approx(0)
