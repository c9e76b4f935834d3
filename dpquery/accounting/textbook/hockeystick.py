"""delta(epsilon) of a loss that takes finitely many values, and its inverse."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def loss_delta(losses: Floats, logs: Floats, epsilon: float) -> float:
    """The delta at epsilon of a privacy loss with known values.

    Formula  sum of m (1 - e^(epsilon - x)) over the losses x > epsilon of mass m
    Units    losses rising; logs are the natural logarithms of their masses.
    Errors   none; infinite where masses are beyond a float.
    Source   Balle, Barthe and Gaboardi 2018.
    Ledger   no: prices must be fixed in advance.
    """
    start = int(np.searchsorted(losses, epsilon, side="right"))
    with np.errstate(over="ignore"):
        return float(np.sum(np.exp(logs[start:]) * -np.expm1(epsilon - losses[start:])))


def loss_epsilon(losses: Floats, logs: Floats, delta: float) -> float:
    """The least epsilon >= 0 with loss_delta(losses, logs, epsilon) <= delta.

    Formula  between two losses delta is a - b e^epsilon, so the logarithm of (a - delta) / b there
    Units    losses rising; logs are the natural logarithms of their masses.
    Errors   none.
    Source   loss_delta.
    Ledger   no: prices must be fixed in advance.
    """
    if loss_delta(losses, logs, 0.0) <= delta:
        return 0.0
    above, met = int(np.searchsorted(losses, 0.0, side="right")) - 1, len(losses) - 1
    while met - above > 1:
        middle = (above + met) // 2
        above, met = (above, middle) if loss_delta(losses, logs, losses[middle]) <= delta else (middle, met)
    end = float(losses[met])
    masses = np.exp(logs[met:])
    rest = float(masses.sum()) - delta
    least = max(0.0, float(losses[above])) if above >= 0 else 0.0
    return min(end, max(least, end + float(np.log(rest / float(np.sum(masses * np.exp(end - losses[met:])))))))
