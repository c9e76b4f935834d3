"""What is promised to k units together, of what is promised to each."""

from __future__ import annotations

from fractions import Fraction

from dpquery.numbers import exp_down, exp_up


def group_delta_up(epsilon: Fraction, delta: Fraction, units: int) -> Fraction:
    """The delta of k units, at k epsilon, of an (epsilon, delta)-DP mechanism; rounded up.

    Formula  delta (e^(k epsilon) - 1) / (e^epsilon - 1), which is delta (1 + e^epsilon + .. + e^((k-1) epsilon))
    Units    natural.
    Errors   ValueError unless epsilon, delta >= 0 and k >= 1; OverflowError where k epsilon > 100,000.
    Source   Vadhan 2017, Lemma 2.2, whose proof adds up this series.
    Ledger   yes: it follows from what an account promises to one unit; the ledger itself charges for one.
    """
    _check(units, epsilon, delta)
    if epsilon == 0 or units == 1:
        return units * delta
    return delta * (exp_up(units * epsilon) - 1) / (exp_down(epsilon) - 1)


def loose_group_delta_up(epsilon: Fraction, delta: Fraction, units: int) -> Fraction:
    """The same by the usual, larger bound; rounded up.

    Formula  k e^((k-1) epsilon) delta
    Units    natural.
    Errors   ValueError unless epsilon, delta >= 0 and k >= 1; OverflowError where (k - 1) epsilon > 100,000.
    Source   Vadhan 2017, Lemma 2.2, there with e^(k epsilon).
    Ledger   yes, but group_delta_up is lower.
    """
    _check(units, epsilon, delta)
    return units * exp_up((units - 1) * epsilon) * delta


def group_rho(rho: Fraction, units: int) -> Fraction:
    """The rho of k units of a rho-zCDP mechanism, exactly.

    Formula  k^2 rho
    Units    as zCDP.
    Errors   ValueError unless rho >= 0 and k >= 1.
    Source   Bun and Steinke 2016, Proposition 1.9.
    Ledger   yes: it follows from what an account promises to one unit; the ledger itself charges for one.
    """
    _check(units, rho)
    return units * units * rho


def _check(units: int, *numbers: Fraction) -> None:
    if units < 1 or any(x < 0 for x in numbers):
        raise ValueError("a group has at least one unit, and epsilon, delta and rho are not negative")
