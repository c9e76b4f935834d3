"""reference.csv, family by family: reproduced by dpquery, or by the closed form next to which dpquery's numbers stand.

No row is left out: a family that is in neither list fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import mpmath as mp
import opendp.prelude as dp
import pytest
from reference import Row, rows

from dpquery.accounting.convert import epsilon_up, rho_down
from dpquery.accounting.textbook.composition import adaptive_epsilon, advanced_epsilon, basic, optimal_epsilon
from dpquery.accounting.textbook.concentrated import bounded_range_rho, continuous_laplace_rho, loose_epsilon, loose_rho
from dpquery.accounting.textbook.gaussian import classical_sigma, gaussian_delta, gaussian_epsilon, gaussian_sigma
from dpquery.accounting.textbook.groups import group_delta_up, group_rho, loose_group_delta_up
from dpquery.accounting.textbook.loss import Pair, batch_epsilon_up, gaussian_pair, laplace_pair, sampled_pairs
from dpquery.accounting.textbook.pure import laplace_delta, randomised_response_epsilon, staircase_error
from dpquery.accounting.textbook.renyi import ORDERS, gaussian_renyi, laplace_renyi, renyi_epsilon
from dpquery.accounting.textbook.sampling import amplified, sampled_gaussian_renyi
from dpquery.accounting.textbook.selection import exponential_probabilities, least_units, truncated_geometric
from dpquery.accounting.zcdp import gaussian_rho, laplace_rho_up
from dpquery.mechanisms import Noise, deviation, selection_delta_up, tail_up, threshold
from dpquery.plan.release import Mechanism

Inputs = Mapping[str, Any]


def exact(x: float) -> Fraction:
    """The decimal that was written, not the float next to it."""
    return Fraction(str(x))


def laplace(scale: Fraction) -> Noise:
    return Noise(Mechanism.LAPLACE, scale)


# ---- what dpquery computes -----------------------------------------------------------------------------------------------------------


def converted(rho: Fraction, delta: float) -> float:
    epsilon = epsilon_up(rho, exact(delta))
    assert epsilon is not None
    return float(epsilon)


def discrete_gaussian_delta(i: Inputs) -> float:
    """P(Z >= x) - e^eps P(Z >= x + 1) at the least x where the loss (2x + 1) / 2 sigma^2 passes eps."""
    variance, epsilon = exact(i["sigma"]) ** 2, exact(i["eps"])
    law, x = Noise(Mechanism.GAUSSIAN, variance), -10
    while Fraction(2 * x + 1) / (2 * variance) <= epsilon:
        x += 1
    with mp.workdps(40):
        upper = [mp.mpf(p.numerator) / p.denominator for p in (tail_up(law, x), tail_up(law, x + 1))]
        return float(upper[0] - mp.exp(i["eps"]) * upper[1])


def discrete_threshold(i: Inputs) -> float:
    return threshold(laplace(i["L0"] / exact(i["eps"])), exact(i["delta"]), i["L0"])


def gaussians(i: Inputs, count: int) -> Pair:
    return gaussian_pair(1 / i["sigma"], i["delta"] * 1e-6 / count)


def mixed_renyi(i: Inputs) -> float:
    return renyi_epsilon([i["kl"] * laplace_renyi(i["eps0"], a) + i["kg"] * gaussian_renyi(1 / i["sigma"], a) for a in ORDERS], i["delta"])


def mixed_loss(i: Inputs) -> float:
    return batch_epsilon_up([(laplace_pair(i["eps0"]), i["kl"]), (gaussians(i, i["kg"]), i["kg"])], i["delta"])


def sampled_renyi(i: Inputs) -> float:
    return renyi_epsilon([i["k"] * sampled_gaussian_renyi(i["q"], i["sigma"], a) for a in ORDERS], i["delta"])


def sampled_loss(i: Inputs) -> float:
    return max(batch_epsilon_up([(pair, i["k"])], i["delta"]) for pair in sampled_pairs(gaussians(i, i["k"]), i["q"]))


def share(i: Inputs) -> tuple[float, float]:
    """One of L0 groups' (epsilon, delta): deltas of independent groups make 1 - (1 - d)^L0."""
    return i["eps"] / i["L0"], float(shared(i))


def group(i: Inputs) -> tuple[Fraction, Fraction, int]:
    return exact(i["eps"]), exact(i["delta"]), i["k"]


COMPUTED: Mapping[str, Callable[[Inputs], float]] = {
    "zcdp-eps": lambda i: converted(exact(i["rho"]), i["delta"]),
    "zcdp-eps-simple": lambda i: loose_epsilon(i["rho"], i["delta"]),
    "zcdp-rho-for": lambda i: float(rho_down(exact(i["eps"]), exact(i["delta"]))),
    "pure-to-zcdp": lambda i: float(loose_rho(exact(i["eps"]))),
    "pure-to-zcdp-tight": lambda i: float(laplace_rho_up(exact(i["eps"]))),
    "laplace-zcdp-tight": lambda i: continuous_laplace_rho(i["eps"]),
    "br-zcdp": lambda i: float(bounded_range_rho(exact(i["eps"]))),
    "zcdp-filter-generic": lambda i: converted(i["k"] * laplace_rho_up(exact(i["eps0"])), i["delta"]),
    "zcdp-filter-laplace": lambda i: converted(Fraction(i["k"] * continuous_laplace_rho(i["eps0"])), i["delta"]),
    "basic": lambda i: float(basic(exact(i["eps0"]), Fraction(0), i["k"])[0]),
    "drv": lambda i: advanced_epsilon(i["eps0"], i["k"], i["delta"]),
    "kov": lambda i: optimal_epsilon(i["eps0"], i["k"], i["delta"]),
    "wrrw-filter": lambda i: adaptive_epsilon(i["k"] * i["eps0"] ** 2, i["delta_prime"]),
    "gauss-classical": lambda i: classical_sigma(i["eps"], i["delta"]),
    "gauss-analytic": lambda i: gaussian_sigma(i["eps"], i["delta"]),
    "gauss-eps": lambda i: gaussian_epsilon(1 / i["sigma"], i["delta"]),
    "gauss-delta": lambda i: gaussian_delta(1 / i["sigma"], i["eps"]),
    "gauss-comp": lambda i: gaussian_epsilon(i["k"] ** 0.5 / i["sigma"], i["delta"]),
    "gauss-comp-rdp": lambda i: renyi_epsilon([i["k"] * gaussian_renyi(1 / i["sigma"], a) for a in ORDERS], i["delta"]),
    "laplace-rdp": lambda i: laplace_renyi(i["eps"], i["alpha"]),
    "laplace-delta": lambda i: laplace_delta(i["eps0"], i["eps"]),
    "lap-comp": lambda i: batch_epsilon_up([(laplace_pair(i["eps0"]), i["k"])], i["delta"]),
    "mixed-pld": mixed_loss,
    "mixed-rdp": mixed_renyi,
    "amplify": lambda i: amplified(i["eps"], i["delta"], i["q"])[0],
    "sgm-rdp": lambda i: sampled_gaussian_renyi(i["q"], i["sigma"], i["alpha"]),
    "sgm-eps-rdp": sampled_renyi,
    "sgm-eps-pld": sampled_loss,
    "em": lambda i: exponential_probabilities(i["u"], i["eps"])[i["i"]],
    "em-mono": lambda i: max(exponential_probabilities(i["u"], i["eps"], monotone=True)),
    "rr": lambda i: randomised_response_epsilon(i["p"]),
    "krr": lambda i: randomised_response_epsilon(i["p"], i["k"]),
    "staircase-mae": lambda i: staircase_error(i["eps"]),
    "tgeom-hard": lambda i: least_units(*share(i), 1.0),
    "tgeom-half": lambda i: least_units(*share(i), 0.5),
    "tgeom-prob": lambda i: truncated_geometric(*share(i), i["n"]),
    "group": lambda i: float(group_delta_up(*group(i))),
    "group-loose": lambda i: float(loose_group_delta_up(*group(i))),
    "group-zcdp": lambda i: float(group_rho(exact(i["rho"]), i["k"])),
    "dlap-thr": discrete_threshold,
    "dlap-thr-delta": lambda i: float(selection_delta_up(laplace(exact(i["scale"])), i["T"], i["L0"])),
    "dlap-var": lambda i: deviation(laplace(1 / exact(i["eps"]))) ** 2,
    "dlap": lambda i: float(1 - 2 * tail_up(laplace(1 / exact(i["eps"])), 1)),  # P(0)
    "dgauss-delta": discrete_gaussian_delta,
    "dgauss-var": lambda i: deviation(Noise(Mechanism.GAUSSIAN, exact(i["sigma"]) ** 2)) ** 2,
}


# ---- closed forms of continuous noise, to compare with -------------------------------------------------------------------------------


def shared(i: Inputs, part: float = 1.0) -> mp.mpf:
    """The delta of one of L0 groups."""
    return -mp.expm1(mp.log1p(-part * mp.mpf(i["delta"])) / i["L0"])


CLOSED: Mapping[str, Callable[[Inputs], float]] = {
    "laplace-thr": lambda i: float(1 - i["L0"] / mp.mpf(i["eps"]) * mp.log(2 * shared(i))),
    "gauss-thr": lambda i: float(1 + mp.mpf(i["sigma"]) * mp.sqrt(2) * mp.erfinv(1 - 2 * shared(i, 0.5))),
}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_row(row: Row) -> None:
    with mp.workdps(30):
        value = (COMPUTED.get(row.family) or CLOSED[row.family])(row.inputs)
    assert row.is_met_by(value), f"{value!r} is not {row.expected!r} ({row.what})"


def test_every_row_is_in_one_list() -> None:
    families = {row.family for row in rows()}
    assert families == {*COMPUTED, *CLOSED}
    assert len(families) == len(COMPUTED) + len(CLOSED)


# ---- what the closed forms are there for ---------------------------------------------------------------------------------------------


def test_discrete_thresholds_lie_just_above_the_continuous_ones() -> None:
    """An integer threshold for discrete Laplace is the continuous one, rounded up, or one more."""
    by_l0 = {row.inputs["L0"]: row for row in rows() if row.family == "laplace-thr"}
    for l0, row in by_l0.items():
        assert 0 <= discrete_threshold(row.inputs) - row.expected < 2, l0


@pytest.mark.parametrize("row", [row for row in rows() if row.family == "gauss-thr"], ids=lambda row: row.id)
def test_gaussian_threshold_of_the_discrete_law(row: Row) -> None:
    """With the row's sigma and half of delta, the discrete threshold is within one unit of the continuous one and a half."""
    law = Noise(Mechanism.GAUSSIAN, exact(row.inputs["sigma"]) ** 2)
    assert -0.5 <= threshold(law, exact(row.inputs["delta"]) / 2, row.inputs["L0"]) - row.expected < 1.6


@pytest.mark.parametrize("row", [row for row in rows() if row.family in ("gauss-eps", "gauss-comp")], ids=lambda row: row.id)
def test_the_price_of_gaussian_noise_is_close_to_the_exact_one(row: Row) -> None:
    """rho and its conversion against the exact epsilon of continuous noise: never below, at most a tenth above."""
    rho = row.inputs.get("k", 1) * gaussian_rho(1, exact(row.inputs["sigma"]) ** 2)
    assert 1 <= converted(rho, row.inputs["delta"]) / row.expected < 1.12


@pytest.mark.parametrize("row", [row for row in rows() if row.family == "zcdp-eps"], ids=lambda row: row.id)
def test_conversion_agrees_with_opendp(row: Row) -> None:
    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    scale = (1 / (2 * row.inputs["rho"])) ** 0.5
    gaussian = dp.m.make_gaussian(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=scale)
    theirs = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0).epsilon(row.inputs["delta"])
    assert converted(exact(row.inputs["rho"]), row.inputs["delta"]) == pytest.approx(theirs, rel=1e-4)
