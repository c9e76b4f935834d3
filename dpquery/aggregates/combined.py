"""Quantiles of the noise of linear combinations of noisy counts.

For Gaussian noises the combination is Gaussian. For Laplace ones the characteristic function is a product of 1 / (1 + a^2 u^2), which gives the tail
by one integral (Gil-Pelaez); a width is taken only where that tail is small enough, and else from the moment generating function (Chernoff), which
is never too small. Half a unit of the grid for each count stands for the steps of the discrete laws, as in error bars of ratios.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import log, pi, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

from dpquery.mechanisms import Noise
from dpquery.numbers import float_near, sqrt_up
from dpquery.plan.release import WEIGHT_BITS, Mechanism

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ONE = 2**WEIGHT_BITS
STEPS, HIGHEST = 160, 32.0  # of the integral, over frequencies in standard deviations
TRIED = 40  # widths, between those of a normal and of a single Laplace noise and a little beyond
SMALL = 1e-9  # what the integral may be off by


def quantile_up(coefficients: Floats, numbers: Floats, levels: Sequence[int], noises: Sequence[Noise], outside: Fraction) -> Floats:
    """For each column of coefficients, each of so many counts of its row's level, what the combination's noise passes with probability `outside`.

    At most that probability, on one side; in rows.
    """
    import numpy as np

    scales = np.array([_scale(noises[level]) for level in levels])[:, None]
    gaussian = np.array([noises[level].mechanism is Mechanism.GAUSSIAN for level in levels])[:, None]
    each = np.abs(coefficients) * scales
    variance = np.sum(numbers * each**2 * np.where(gaussian, 1, 2), axis=0)
    steps = np.sum(numbers * np.abs(coefficients), axis=0) / 2 / ONE
    deviation = np.sqrt(variance)
    beta = float(outside)
    normal = -NormalDist().inv_cdf(beta)
    if gaussian.all() or not variance.any():
        of_bell: Floats = normal * deviation + steps
        return of_bell
    safe = np.where(deviation > 0, deviation, 1.0)
    laplace, bell = np.where(gaussian, 0, each) / safe, np.sum(np.where(gaussian, numbers * (each / safe) ** 2, 0), axis=0)
    ratio = _ratio(laplace, numbers, bell, beta, sorted((normal, -log(2 * beta) / sqrt(2))))
    found: Floats = ratio * deviation * (1 + SMALL) + steps
    return found


def _scale(noise: Noise) -> float:
    return float_near((sqrt_up(noise.parameter) if noise.mechanism is Mechanism.GAUSSIAN else noise.parameter) / ONE)


def _ratio(scales: Floats, numbers: Floats, bell: Floats, beta: float, ends: Sequence[float]) -> Floats:
    """The quantile of each column in its standard deviations."""
    import numpy as np

    found = _chernoff(scales, numbers, bell, beta)
    u = (np.arange(STEPS) + 0.5) * (HIGHEST / STEPS)
    logs = np.zeros((len(u), scales.shape[1]))
    for scale, number in zip(scales, numbers, strict=True):
        logs -= number * np.log1p(np.outer(u**2, scale**2))
    shape = np.exp(logs - np.outer(u**2 / 2, bell)) / u[:, None]
    rest = shape[-1] * HIGHEST  # the integral beyond falls at least as 1/u^2, if not much faster
    for width in reversed(np.geomspace(0.99 * ends[0], 1.1 * ends[1], TRIED)):
        tail = 0.5 - np.sin(u * width) @ shape * (HIGHEST / STEPS) / pi + rest
        found = np.where((tail + SMALL <= beta) & (width < found), width, found)
    return found


def _chernoff(scales: Floats, numbers: Floats, bell: Floats, beta: float) -> Floats:
    """exp(-t w) E exp(t S) <= beta for some t: the least such w over a list of t."""
    import numpy as np

    most = np.maximum(np.max(np.where(numbers > 0, scales, 0), axis=0), 1e-3)
    found = np.full(scales.shape[1], np.inf)
    for share in np.linspace(0.02, 0.98, 49):
        t = share / most
        moment = -np.sum(numbers * np.log1p(-np.where(numbers > 0, np.minimum((t * scales) ** 2, 0.9999), 0)), axis=0) + bell * t**2 / 2
        found = np.minimum(found, (moment - log(beta)) / t)
    return found
