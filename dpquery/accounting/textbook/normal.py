"""Tails of the normal law."""

from __future__ import annotations

import math

_FAR = 35.0  # from here on the series is below by 105 z^-8 < 10^-10 at most; math.erfc is above the least double until 38


def tail(z: float) -> float:
    """P(Z >= z) for a standard normal Z.

    Formula  erfc(z / sqrt 2) / 2
    Units    z in standard deviations; a probability.
    Errors   none; 0 beyond z = 38.
    Source   the definition.
    Ledger   no: arithmetic of continuous noise.
    """
    return math.erfc(z / math.sqrt(2)) / 2


def log_tail(z: float) -> float:
    """ln P(Z >= z) for a standard normal Z, however far out.

    Formula  ln tail(z); beyond 35 Mills' series -z^2/2 - ln(z sqrt(2 pi)) + ln(1 - z^-2 + 3 z^-4 - 15 z^-6)
    Units    z in standard deviations; a natural logarithm.
    Errors   none.
    Source   Abramowitz and Stegun 7.1.23.
    Ledger   no: arithmetic of continuous noise.
    """
    if z < _FAR:
        return math.log(tail(z))
    inverse = 1 / (z * z)
    return -z * z / 2 - math.log(z * math.sqrt(2 * math.pi)) + math.log1p(-inverse * (1 - inverse * (3 - inverse * 15)))
