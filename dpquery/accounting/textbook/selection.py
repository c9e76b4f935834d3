"""Private choices: one of several by score, and which groups may appear."""

from __future__ import annotations

import math
from collections.abc import Sequence


def exponential_probabilities(scores: Sequence[float], epsilon: float, *, monotone: bool = False) -> tuple[float, ...]:
    """With which probability the exponential mechanism picks each score.

    Formula  proportional to e^(epsilon score / 2); monotone (one unit moves all scores the same way): e^(epsilon score)
    Units    scores in units of their sensitivity.
    Errors   ValueError unless epsilon >= 0, all is finite and there is a score.
    Source   McSherry and Talwar 2007, Theorem 6; Durfee and Rogers 2019 (monotone).
    Ledger   yes, as epsilon-DP or as epsilon^2 / 8 of rho; dpquery draws modes from it where they are priced in rho.
    """
    if not (scores and 0 <= epsilon < math.inf and all(map(math.isfinite, scores))):
        raise ValueError("finite scores and an epsilon that is not negative are needed")
    best, rate = max(scores), epsilon if monotone else epsilon / 2
    weights = [math.exp(rate * (score - best)) for score in scores]
    total = math.fsum(weights)
    return tuple(weight / total for weight in weights)


def truncated_geometric(epsilon: float, delta: float, units: int) -> float:
    """The largest probability with which a group of so many units may appear.

    Formula  p(0) = 0, p(n) = min(1, e^epsilon p(n-1) + delta, 1 - e^-epsilon (1 - p(n-1) - delta))
    Units    epsilon and delta of one group; units counted, each in it once.
    Errors   ValueError unless epsilon >= 0, 0 < delta <= 1, units >= 0.
    Source   Desfontaines, Voss, Gipson and Mandayam 2022, Theorem 1.
    Ledger   yes, as (epsilon, delta); dpquery selects by a threshold on a noisy count instead.
    """
    if not (0 <= epsilon < math.inf and 0 < delta <= 1 and units >= 0):
        raise ValueError("epsilon and units are not negative, and 0 < delta <= 1")
    p = 0.0
    for _ in range(units):
        if p >= 1:
            break
        p = min(1.0, math.exp(min(epsilon, 700.0)) * p + delta, 1 - math.exp(-epsilon) * (1 - p - delta))
    return p


def least_units(epsilon: float, delta: float, probability: float) -> int:
    """The least number of units whose group appears with at least that probability.

    Formula  truncated_geometric(epsilon, delta, n) >= probability
    Units    as truncated_geometric.
    Errors   ValueError as truncated_geometric, and unless 0 < probability <= 1.
    Source   Desfontaines, Voss, Gipson and Mandayam 2022.
    Ledger   yes, as truncated_geometric.
    """
    if not 0 < probability <= 1:
        raise ValueError("0 < probability <= 1")
    low, high = 0, 1
    while truncated_geometric(epsilon, delta, high) < probability:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if truncated_geometric(epsilon, delta, middle) >= probability else (middle, high)
    return high
