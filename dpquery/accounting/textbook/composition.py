"""k releases of (epsilon, delta) each: what all of them promise together, by the theorems in the order of their discovery."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpquery.accounting.textbook.hockeystick import Floats, loss_epsilon

LARGEST = 700.0  # of an epsilon whose exponential is still a float


def basic(epsilon: Fraction, delta: Fraction, queries: int) -> tuple[Fraction, Fraction]:
    """(epsilon, delta) of all by basic composition, exactly.

    Formula  (k epsilon, k delta)
    Units    natural.
    Errors   ValueError unless epsilon, delta >= 0 and k >= 1.
    Source   Dwork, Kenthapadi, McSherry, Mironov and Naor 2006; as a filter: Rogers, Roth, Ullman and Vadhan 2016.
    Ledger   yes: it adds up epsilons and deltas.
    """
    _check(queries, epsilon=float(epsilon), delta=float(delta))
    return queries * epsilon, queries * delta


def advanced_epsilon(epsilon: float, queries: int, slack: float) -> float:
    """The epsilon of k releases by advanced composition, at a delta of `slack` beyond the sum of theirs.

    Formula  epsilon sqrt(2 k ln(1/slack)) + k epsilon (e^epsilon - 1)
    Units    natural.
    Errors   ValueError unless epsilon >= 0, k >= 1 and 0 < slack < 1; infinite where epsilon > 700.
    Source   Dwork, Rothblum and Vadhan 2010, Theorem III.3.
    Ledger   no: prices must be fixed in advance.
    """
    _check(queries, epsilon=epsilon)
    _check_slack(slack)
    if epsilon > LARGEST:
        return math.inf
    return epsilon * math.sqrt(2 * queries * math.log(1 / slack)) + queries * epsilon * math.expm1(epsilon)


def optimal_epsilon(epsilon: float, queries: int, delta: float, each: float = 0.0) -> float:
    """The least epsilon that k releases of (epsilon, each) have together at delta, whatever they are.

    Formula  1 - delta = (1 - each)^k (1 - sum over i of C(k,i) (e^(i e) - e^(t + (k-i) e))_+ / (1 + e^e)^k), solved for t
    Units    natural; e is the epsilon of one release.
    Errors   ValueError unless epsilon >= 0, k >= 1, 0 < delta < 1 and each >= 0; infinite where k releases alone have a larger delta.
    Source   Kairouz, Oh and Viswanath 2015, Theorem 3.3.
    Ledger   no: prices must be fixed in advance.
    """
    _check(queries, epsilon=epsilon, delta=each)
    _check_slack(delta)
    kept = queries * math.log1p(-each) if each < 1 else -math.inf
    rest = delta + math.expm1(kept)
    if rest < 0:
        return math.inf
    if epsilon == 0:
        return 0.0
    truths = np.arange(queries + 1, dtype=np.float64)
    truth, lie = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    logs = _log_binomials(queries) + truths * truth + truths[::-1] * lie
    return loss_epsilon((2 * truths - queries) * epsilon, logs, rest / math.exp(kept))


def adaptive_epsilon(squares: float, slack: float) -> float:
    """The epsilon of releases chosen adaptively, prices included, while the squares of their epsilons add up to at most `squares`.

    Formula  sqrt(2 ln(1/slack) squares) + squares / 2
    Units    natural; at a delta of `slack` beyond the sum of theirs.
    Errors   ValueError unless squares >= 0 and 0 < slack < 1.
    Source   Whitehouse, Ramdas, Rogers and Wu 2023 (arXiv 2203.05481).
    Ledger   yes, but the zCDP filter with accounting.convert.epsilon_up is lower.
    """
    _check(1, squares=squares)
    _check_slack(slack)
    return math.sqrt(2 * math.log(1 / slack) * squares) + squares / 2


@lru_cache(maxsize=1)
def _log_binomials(n: int) -> Floats:
    """ln C(n, i) for i = 0 .. n."""
    factorials: Floats = np.array([math.lgamma(i + 1) for i in range(n + 1)])
    return float(factorials[-1]) - factorials - factorials[::-1]


def _check(queries: int, **amounts: float) -> None:
    if queries < 1:
        raise ValueError("at least one query is needed")
    for name, amount in amounts.items():
        if not 0 <= amount < math.inf:
            raise ValueError(f"{name} is finite and not negative")


def _check_slack(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError("delta is above 0 and below 1")
