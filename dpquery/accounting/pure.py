"""Prices in pure differential privacy."""

from __future__ import annotations

from fractions import Fraction


def laplace_epsilon(l1: int, scale: Fraction) -> Fraction:
    """Z0. The epsilon of discrete Laplace noise: l1 / scale, exactly.

    Given   a vector of integers that one unit moves by at most l1 in L1, and independent discrete Laplace noise of scale b on each.
    Claim   the noisy vector is (l1 / b)-DP.
    Proof   P(z) is proportional to exp(-|z| / b), so a shift d of one coordinate changes the probability of each outcome by a factor of at most
            exp(|d| / b); the coordinates are independent and the factors multiply.
    Tight   test_laplace_epsilon_is_reached_by_outcomes_beyond_both_vectors
    Source  Ghosh, Roughgarden and Sundararajan 2009; Dwork et al. 2006.
    """
    return Fraction(l1) / scale
