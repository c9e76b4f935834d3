"""What is known of zCDP besides what the ledger charges by."""

from __future__ import annotations

import math
from fractions import Fraction


def loose_epsilon(rho: float, delta: float) -> float:
    """An epsilon of rho-zCDP at delta by the first conversion that was known.

    Formula  rho + 2 sqrt(rho ln(1/delta))
    Units    natural logarithms.
    Errors   ValueError unless rho >= 0 and 0 < delta <= 1.
    Source   Bun and Steinke 2016, Proposition 1.3.
    Ledger   yes, but accounting.convert.epsilon_up is lower.
    """
    if not (0 <= rho < math.inf and 0 < delta <= 1):
        raise ValueError("rho is finite and not negative, and 0 < delta <= 1")
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def loose_rho(epsilon: Fraction) -> Fraction:
    """A rho of any epsilon-DP mechanism, exactly.

    Formula  epsilon^2 / 2
    Units    as zCDP.
    Errors   ValueError unless epsilon >= 0.
    Source   Bun and Steinke 2016, Proposition 1.4.
    Ledger   yes, but accounting.zcdp.laplace_rho_up, epsilon tanh(epsilon/2), is lower.
    """
    _check(epsilon)
    return epsilon * epsilon / 2


def bounded_range_rho(epsilon: Fraction) -> Fraction:
    """The rho of a mechanism of bounded range epsilon, as the exponential mechanism is, exactly.

    Formula  epsilon^2 / 8
    Units    as zCDP; epsilon bounds how far two outcomes' losses lie apart.
    Errors   ValueError unless epsilon >= 0.
    Source   Cesar and Rogers 2021.
    Ledger   yes, for the exponential mechanism (accounting.zcdp.exponential_rho); noise has no bounded range.
    """
    _check(epsilon)
    return epsilon * epsilon / 8


def continuous_laplace_rho(epsilon: float) -> float:
    """The rho of continuous Laplace noise that is epsilon-DP. Discrete Laplace noise costs up to a quarter more: epsilon tanh(epsilon/2).

    Formula  epsilon + e^-epsilon - 1
    Units    as zCDP; epsilon = L1 sensitivity / scale.
    Errors   ValueError unless epsilon is finite and not negative.
    Source   Harrison and Manurangsi 2025 (arXiv 2510.25746): the largest D_a / a of Mironov 2017, Proposition 6, is at a = 1.
    Ledger   no: the noise here is discrete.
    """
    _check(epsilon)
    return epsilon + math.expm1(-epsilon)


def _check(epsilon: Fraction | float) -> None:
    if not 0 <= epsilon < math.inf:
        raise ValueError("epsilon is finite and not negative")
