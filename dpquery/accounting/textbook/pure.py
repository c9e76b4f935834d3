"""Mechanisms of pure differential privacy that dpquery does not draw from."""

from __future__ import annotations

import math


def laplace_delta(epsilon0: float, epsilon: float) -> float:
    """The least delta at epsilon of continuous Laplace noise that is epsilon0-DP.

    Formula  1 - e^((epsilon - epsilon0) / 2), or 0 where epsilon >= epsilon0
    Units    epsilon0 = L1 sensitivity / scale.
    Errors   ValueError unless both are finite and not negative.
    Source   Balle, Barthe and Gaboardi 2018, Theorem 3.
    Ledger   no: the noise here is discrete.
    """
    if not (0 <= epsilon0 < math.inf and 0 <= epsilon < math.inf):
        raise ValueError("epsilons are finite and not negative")
    return max(0.0, -math.expm1((epsilon - epsilon0) / 2))


def randomised_response_epsilon(truth: float, answers: int = 2) -> float:
    """The epsilon of randomised response: the true answer with probability `truth`, else any other one.

    Formula  abs(ln(p (m - 1) / (1 - p)))
    Units    a probability and a number of possible answers m.
    Errors   ValueError unless 0 < truth < 1 and answers >= 2.
    Source   Warner 1965; Kairouz, Bonawitz and Ramage 2016 (several answers).
    Ledger   yes, as any epsilon-DP release; dpquery has no local answers.
    """
    if not (0 < truth < 1 and answers >= 2):
        raise ValueError("randomised response needs 0 < truth < 1 and two answers or more")
    return abs(math.log(truth * (answers - 1) / (1 - truth)))


def staircase_error(epsilon: float) -> float:
    """The mean absolute error of optimal staircase noise; Laplace noise has 1 / epsilon.

    Formula  e^(epsilon/2) / (e^epsilon - 1)
    Units    in units of the sensitivity.
    Errors   ValueError unless epsilon > 0.
    Source   Geng and Viswanath 2014.
    Ledger   yes, as any epsilon-DP release; dpquery does not draw from it.
    """
    if not epsilon > 0:
        raise ValueError("epsilon is positive")
    return math.exp(-epsilon / 2) / -math.expm1(-epsilon)
