"""Poisson sampling: each unit takes part in a query with probability q, independently and secretly. Neighbours add or remove one unit."""

from __future__ import annotations

import math

import numpy as np

_NARROW = 0.1  # sigma in units of the sensitivity


def amplified(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """The (epsilon, delta) of an (epsilon, delta)-DP query on a Poisson sample.

    Formula  (ln(1 + q (e^epsilon - 1)), q delta)
    Units    natural.
    Errors   ValueError unless epsilon, delta >= 0 and 0 < q <= 1.
    Source   Li, Qardaji and Su 2012; Balle, Barthe and Gaboardi 2018, Theorem 8.
    Ledger   no: no credit is given for sampling. A sample that serves two queries, or is chosen by a hash, earns none.
    """
    if not (0 <= epsilon < math.inf and 0 <= delta < math.inf):
        raise ValueError("epsilon and delta are finite and not negative")
    _check(rate)
    return _amplified(epsilon, rate), rate * delta


def sampled_gaussian_renyi(rate: float, sigma: float, order: float) -> float:
    """The Renyi divergence of Gaussian noise on a Poisson sample, the larger of both directions.

    Formula  ln A / (a - 1); at an integer a, A = sum over i of C(a,i) (1-q)^(a-i) q^i e^((i^2 - i) / (2 sigma^2)); else A = E (1 - q + q e^loss)^a
    Units    sigma in units of the sensitivity; a is the order.
    Errors   ValueError unless 0 < q <= 1, sigma > 0 and a > 1.
    Source   Mironov, Talwar and Zhang 2019, section 3.
    Ledger   no: no credit is given for sampling.
    """
    _check(rate)
    if not (0 < sigma < math.inf and 1 < order < math.inf):
        raise ValueError("a positive sigma and an order above 1 are needed")
    if rate == 1:
        return order / (2 * sigma * sigma)
    return (_at_integer if order == int(order) else _between)(rate, sigma, order) / (order - 1)


def _amplified(epsilon: float, rate: float) -> float:
    """For a large epsilon without e^epsilon."""
    if rate == 1:
        return epsilon
    return math.log1p(rate * math.expm1(epsilon)) if epsilon < 1 else epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))


def _at_integer(rate: float, sigma: float, order: float) -> float:
    n = int(order)
    return _log_sum(
        [_log_binomial(order, i) + i * math.log(rate) + (n - i) * math.log1p(-rate) + (i * i - i) / (2 * sigma * sigma) for i in range(n + 1)]
    )


def _between(rate: float, sigma: float, order: float) -> float:
    """ln A as an integral, by the trapezoid rule, which is exact to a float here: the integrand is analytic as far as pi sigma^2 off the line.

    ln A is convex in the order: for noise far below the sensitivity, which would need many points, the chord between two integer orders is the bound.
    """
    if sigma < _NARROW:
        below, part = math.floor(order), order - math.floor(order)
        return (1 - part) * _at_integer(rate, sigma, below) + part * _at_integer(rate, sigma, below + 1)
    step = sigma * min(1.0, sigma) / 8
    x = np.arange(-12 * sigma, order + 12 * sigma, step)
    mixture = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * x - 1) / (2 * sigma * sigma))
    return float(np.logaddexp.reduce(order * mixture - x * x / (2 * sigma * sigma))) + math.log(step / (sigma * math.sqrt(2 * math.pi)))


def _log_binomial(n: float, i: int) -> float:
    """ln C(n, i)."""
    return math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)


def _log_sum(logs: list[float]) -> float:
    most = max(logs)
    return most + math.log(math.fsum(math.exp(x - most) for x in logs))


def _check(rate: float) -> None:
    if not 0 < rate <= 1:
        raise ValueError("a sampling rate is above 0 and at most 1")
