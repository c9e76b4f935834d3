"""reference.csv, family by family: reproduced by dpquery, by the closed form next to which dpquery's numbers stand, or named as a later issue's.

No row is left out: a family that is in neither list fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from reference import Row, rows

from dpquery.accounting.convert import epsilon_up, rho_down
from dpquery.accounting.zcdp import gaussian_rho, laplace_rho_up
from dpquery.mechanisms import Noise, deviation, selection_delta_up, tail_up, threshold
from dpquery.plan.release import Mechanism

Inputs = Mapping[str, Any]

LATER: Mapping[str, str] = {
    "lap-comp": "composition by privacy loss distributions, for batches fixed up front",
    "kov": "optimal composition, for batches fixed up front",
    "gauss-comp-rdp": "Renyi accounting at a grid of orders",
    "mixed-pld": "composition by privacy loss distributions, for batches fixed up front",
    "mixed-rdp": "Renyi accounting at a grid of orders",
    "sgm-rdp": "sampled queries",
    "sgm-eps-rdp": "sampled queries",
    "sgm-eps-pld": "sampled queries",
    "amplify": "sampled queries",
    "br-zcdp": "exponential mechanism",
    "em": "exponential mechanism",
    "em-mono": "exponential mechanism",
    "rr": "local answers",
    "krr": "local answers",
    "tgeom-hard": "truncated geometric selection",
    "tgeom-half": "truncated geometric selection",
    "tgeom-prob": "truncated geometric selection",
    "group": "privacy of groups of units",
    "group-loose": "privacy of groups of units",
    "group-zcdp": "privacy of groups of units",
    "staircase-mae": "staircase noise",
}


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


def gaussian_delta(i: Inputs) -> float:
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


COMPUTED: Mapping[str, Callable[[Inputs], float]] = {
    "zcdp-eps": lambda i: converted(exact(i["rho"]), i["delta"]),
    "zcdp-rho-for": lambda i: float(rho_down(exact(i["eps"]), exact(i["delta"]))),
    "pure-to-zcdp-tight": lambda i: float(laplace_rho_up(exact(i["eps"]))),
    "zcdp-filter-generic": lambda i: converted(i["k"] * laplace_rho_up(exact(i["eps0"])), i["delta"]),
    "zcdp-filter-laplace": lambda i: converted(Fraction(i["k"] * continuous_laplace_rho(i["eps0"])), i["delta"]),
    "basic": lambda i: float(i["k"] * exact(i["eps0"])),
    "dlap-thr": discrete_threshold,
    "dlap-thr-delta": lambda i: float(selection_delta_up(laplace(exact(i["scale"])), i["T"], i["L0"])),
    "dlap-var": lambda i: deviation(laplace(1 / exact(i["eps"]))) ** 2,
    "dlap": lambda i: float(1 - 2 * tail_up(laplace(1 / exact(i["eps"])), 1)),  # P(0)
    "dgauss-delta": gaussian_delta,
    "dgauss-var": lambda i: deviation(Noise(Mechanism.GAUSSIAN, exact(i["sigma"]) ** 2)) ** 2,
}


# ---- closed forms of continuous noise and of other theorems, to compare with ---------------------------------------------------------


def continuous_laplace_rho(e: float) -> float:
    """e + exp(-e) - 1: true of the continuous law only, never charged."""
    return float(mp.mpf(e) + mp.expm1(-mp.mpf(e)))


def normal_delta(mu: mp.mpf, e: float) -> mp.mpf:
    return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)


def root(falling: Callable[[mp.mpf], mp.mpf], low: float, high: float) -> float:
    a, b = mp.mpf(low), mp.mpf(high)
    for _ in range(110):
        middle = (a + b) / 2
        a, b = (middle, b) if falling(middle) > 0 else (a, middle)
    return float(b)


def normal_epsilon(mu: mp.mpf, delta: float) -> float:
    return root(lambda e: normal_delta(mu, e) - delta, 0, 200)


def normal_sigma(i: Inputs) -> float:
    return root(lambda s: normal_delta(1 / s, i["eps"]) - i["delta"], 1e-3, 1e5)


def shared(i: Inputs, part: float = 1.0) -> mp.mpf:
    """The delta of one of L0 groups."""
    return -mp.expm1(mp.log1p(-part * mp.mpf(i["delta"])) / i["L0"])


def laplace_renyi(i: Inputs) -> float:
    a, e = mp.mpf(i["alpha"]), mp.mpf(i["eps"])
    return float(mp.log(a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)) / (a - 1))


def whitehouse(i: Inputs) -> float:
    squares = i["k"] * mp.mpf(i["eps0"]) ** 2
    return float(mp.sqrt(2 * mp.log(1 / mp.mpf(i["delta_prime"])) * squares) + squares / 2)


def dwork_rothblum_vadhan(i: Inputs) -> float:
    e, k = mp.mpf(i["eps0"]), i["k"]
    return float(e * mp.sqrt(2 * k * mp.log(1 / mp.mpf(i["delta"]))) + k * e * mp.expm1(e))


CLOSED: Mapping[str, Callable[[Inputs], float]] = {
    "gauss-classical": lambda i: float(mp.sqrt(2 * mp.log(1.25 / mp.mpf(i["delta"]))) / i["eps"]),
    "gauss-analytic": normal_sigma,
    "gauss-eps": lambda i: normal_epsilon(1 / mp.mpf(i["sigma"]), i["delta"]),
    "gauss-delta": lambda i: float(normal_delta(1 / mp.mpf(i["sigma"]), i["eps"])),
    "gauss-comp": lambda i: normal_epsilon(mp.sqrt(i["k"]) / mp.mpf(i["sigma"]), i["delta"]),
    "laplace-delta": lambda i: float(-mp.expm1((mp.mpf(i["eps"]) - i["eps0"]) / 2)),
    "zcdp-eps-simple": lambda i: float(mp.mpf(i["rho"]) + 2 * mp.sqrt(mp.mpf(i["rho"]) * mp.log(1 / mp.mpf(i["delta"])))),
    "pure-to-zcdp": lambda i: i["eps"] ** 2 / 2,
    "laplace-zcdp-tight": lambda i: continuous_laplace_rho(i["eps"]),
    "laplace-rdp": laplace_renyi,
    "laplace-thr": lambda i: float(1 - i["L0"] / mp.mpf(i["eps"]) * mp.log(2 * shared(i))),
    "gauss-thr": lambda i: float(1 + mp.mpf(i["sigma"]) * mp.sqrt(2) * mp.erfinv(1 - 2 * shared(i, 0.5))),
    "drv": dwork_rothblum_vadhan,
    "wrrw-filter": whitehouse,
}


@pytest.mark.parametrize("row", [row for row in rows() if row.family not in LATER], ids=lambda row: row.id)
def test_row(row: Row) -> None:
    with mp.workdps(30):
        value = (COMPUTED.get(row.family) or CLOSED[row.family])(row.inputs)
    assert row.is_met_by(value), f"{value!r} is not {row.expected!r} ({row.what})"


def test_every_row_is_in_one_list() -> None:
    families = {row.family for row in rows()}
    assert families == {*LATER, *COMPUTED, *CLOSED}
    assert len(families) == len(LATER) + len(COMPUTED) + len(CLOSED)


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
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    scale = (1 / (2 * row.inputs["rho"])) ** 0.5
    gaussian = dp.m.make_gaussian(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=scale)
    theirs = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0).epsilon(row.inputs["delta"])
    assert converted(exact(row.inputs["rho"]), row.inputs["delta"]) == pytest.approx(theirs, rel=1e-4)
