"""Renyi differential privacy: a bound on the divergence at each order, which adds up, and is converted at the best one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

ORDERS: Final = (*(n / 10 for n in range(11, 110)), *map(float, range(11, 64)), 128.0, 256.0, 512.0, 1024.0)


def gaussian_renyi(mu: float, order: float) -> float:
    """The Renyi divergence of Gaussian noise.

    Formula  a mu^2 / 2
    Units    mu = L2 sensitivity / sigma; a is the order.
    Errors   ValueError unless a >= 1 and mu >= 0.
    Source   Mironov 2017, Proposition 7.
    Ledger   yes at all orders at once, which is zCDP.
    """
    _check(mu, order)
    return order * mu * mu / 2


def laplace_renyi(epsilon: float, order: float) -> float:
    """The Renyi divergence of continuous Laplace noise.

    Formula  ln(a/(2a-1) e^((a-1) e) + (a-1)/(2a-1) e^(-a e)) / (a-1); e + e^-e - 1 at order 1
    Units    e = L1 sensitivity / scale; a is the order.
    Errors   ValueError unless a >= 1 and e >= 0.
    Source   Mironov 2017, Proposition 6.
    Ledger   no: the noise here is discrete.
    """
    _check(epsilon, order)
    if order == 1:
        return epsilon + math.expm1(-epsilon)
    return epsilon + math.log1p((order - 1) * math.expm1(epsilon * (1 - 2 * order)) / (2 * order - 1)) / (order - 1)


def pure_renyi(epsilon: float, order: float) -> float:
    """The largest Renyi divergence of any epsilon-DP mechanism: that of randomised response.

    Formula  (c(a - 1/2) - c(1/2)) / (a - 1) with c(x) = ln cosh(x e); e tanh(e/2) at order 1
    Units    a is the order.
    Errors   ValueError unless a >= 1 and e >= 0.
    Source   Kairouz, Oh and Viswanath 2015, Theorem 2 (every epsilon-DP pair is a post-processing of randomised response's).
    Ledger   yes at all orders at once, which is zCDP.
    """
    _check(epsilon, order)
    if order == 1:
        return epsilon * math.tanh(epsilon / 2)
    return (_log_cosh((order - 0.5) * epsilon) - _log_cosh(epsilon / 2)) / (order - 1)


def renyi_epsilon(divergences: Sequence[float], delta: float, orders: Sequence[float] = ORDERS) -> float:
    """The least epsilon at delta that a curve of Renyi divergences implies.

    Formula  min over a of D_a + ln(1 - 1/a) - ln(a delta) / (a - 1); 0 where delta^2 >= 1 - e^-D_a at some order
    Units    divergences parallel to the orders, all above 1; of several releases they add up.
    Errors   ValueError unless 0 < delta < 1 and every order is above 1.
    Source   Canonne, Kamath and Steinke 2020, Proposition 12; Bretagnolle and Huber 1979 (the 0).
    Ledger   no: one order fixed in advance is a filter, and so are all together; the best one, chosen afterwards, is not.
    """
    if not (0 < delta < 1 and all(a > 1 for a in orders)):
        raise ValueError("delta is above 0 and below 1, and orders are above 1")
    pairs = list(zip(orders, divergences, strict=True))
    if any(delta * delta + math.expm1(-d) > 0 for _, d in pairs):
        return 0.0
    return max(0.0, min(d + math.log1p(-1 / a) - math.log(a * delta) / (a - 1) for a, d in pairs))


def _log_cosh(x: float) -> float:
    return math.log1p(2 * math.sinh(x / 2) ** 2) if x < 1 else x + math.log1p(math.exp(-2 * x)) - math.log(2)


def _check(size: float, order: float) -> None:
    if not (0 <= size < math.inf and 1 <= order < math.inf):
        raise ValueError("a finite size that is not negative and an order of at least 1 are needed")
