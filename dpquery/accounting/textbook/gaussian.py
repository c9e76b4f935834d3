"""Continuous Gaussian noise: its exact (epsilon, delta), the classical bound, and Gaussian differential privacy (mu = distance / sigma)."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpquery.accounting.textbook.normal import log_tail, tail


def classical_sigma(epsilon: float, delta: float) -> float:
    """The noise of the classical Gaussian mechanism.

    Formula  sigma = sqrt(2 ln(1.25 / delta)) / epsilon
    Units    sigma in units of the L2 sensitivity.
    Errors   ValueError unless 0 < epsilon <= 1 and 0 < delta < 1: beyond epsilon 1 the formula does not hold.
    Source   Dwork and Roth 2014, Theorem A.1 (whose proof asks for epsilon < 1; at 1 the exact sigma is lower too).
    Ledger   no: the noise here is discrete, and is calibrated by rho.
    """
    if not (0 < epsilon <= 1 and 0 < delta < 1):
        raise ValueError("the classical Gaussian mechanism needs 0 < epsilon <= 1 and 0 < delta < 1")
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The least delta of mu-GDP, so of Gaussian noise of sigma = sensitivity / mu.

    Formula  P(Z >= epsilon/mu - mu/2) - e^epsilon P(Z >= epsilon/mu + mu/2)
    Units    mu = L2 sensitivity / sigma.
    Errors   ValueError unless mu > 0 and epsilon >= 0.
    Source   Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13.
    Ledger   no: the noise here is discrete, whose delta is larger (by a tenth at sigma 1).
    """
    if not (0 < mu < math.inf and 0 <= epsilon < math.inf):
        raise ValueError("a positive mu and an epsilon that is not negative are needed")
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    return max(0.0, tail(near) - math.exp(epsilon + log_tail(far)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon of mu-GDP at delta. Gaussians compose exactly: mu^2 adds up.

    Formula  gaussian_delta(mu, epsilon) = delta, solved for epsilon
    Units    mu = L2 sensitivity / sigma; k of them: mu sqrt(k).
    Errors   ValueError unless mu > 0 and 0 < delta < 1.
    Source   Balle and Wang 2018; Dong, Roth and Su 2022, Corollary 3.3.
    Ledger   no: the noise here is discrete, and discrete Gaussian noise is not mu-GDP.
    """
    _check_delta(delta)
    if gaussian_delta(mu, 0) <= delta:
        return 0.0
    return _root(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)))


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """The noise of the analytic Gaussian mechanism: the least sigma that is (epsilon, delta)-DP.

    Formula  gaussian_delta(1 / sigma, epsilon) = delta, solved for sigma
    Units    sigma in units of the L2 sensitivity.
    Errors   ValueError unless epsilon >= 0 and 0 < delta < 1.
    Source   Balle and Wang 2018, Theorem 8.
    Ledger   no: discrete Gaussian noise of this sigma has a larger delta; the noise is calibrated by rho.
    """
    _check_delta(delta)
    if not 0 <= epsilon < math.inf:
        raise ValueError("epsilon is not negative")
    low, high = -40.0, 40.0  # ln sigma
    return math.exp(_root(lambda t: gaussian_delta(math.exp(-t), epsilon) - delta, low, high))


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError("Gaussian noise needs 0 < delta < 1")


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function passes 0: the upper end of the last bracket."""
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return high
