"""Quantiles of the noise of linear combinations of noisy counts.

For Gaussian noises the combination is Gaussian. Of few Laplace ones the tail is known in closed form; of more, or of both kinds, the characteristic
function is a product of 1 / (1 + a^2 u^2), which gives the tail by one integral (Gil-Pelaez): a width is taken only where that tail is small enough,
and else from the moment generating function (Chernoff), which is never too small. Half a unit of the grid for each count stands for the steps of the
discrete laws, as in error bars of ratios.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import pi, sqrt
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
FEW, NEWTON = 6, 7  # Laplace noises that are added up in closed form, and steps that find its quantile
LEAST, APART, LOST = 1e-3, 1.005, 1e-6  # the least of these scales over the largest, how far they are put apart, what is lost in their differences


def quantile_up(coefficients: Floats, numbers: Floats, levels: Sequence[int], noises: Sequence[Noise], outside: Fraction | float | Floats) -> Floats:
    """For each column of coefficients, each of so many counts of its row's level, what the combination's noise passes with probability `outside`.

    At most that probability, on one side, which may be each column's own; in rows.
    """
    import numpy as np

    scales = np.array([_scale(noises[level]) for level in levels])[:, None]
    gaussian = np.array([noises[level].mechanism is Mechanism.GAUSSIAN for level in levels])[:, None]
    each = np.abs(coefficients) * scales
    variance = np.sum(numbers * each**2 * np.where(gaussian, 1, 2), axis=0)
    steps = np.sum(numbers * np.abs(coefficients), axis=0) / 2 / ONE
    deviation = np.sqrt(variance)
    beta = np.asarray(outside, dtype=float)
    normal = np.array([-NormalDist().inv_cdf(one) for one in beta.ravel().tolist()]).reshape(beta.shape)
    if gaussian.all() or not variance.any():
        of_bell: Floats = normal * deviation + steps
        return of_bell
    if len(each) <= FEW and not gaussian.any() and (numbers == 1).all():
        of_few: Floats = _few(each, beta) + steps
        return of_few
    safe = np.where(deviation > 0, deviation, 1.0)
    laplace, bell = np.where(gaussian, 0, each) / safe, np.sum(np.where(gaussian, numbers * (each / safe) ** 2, 0), axis=0)
    ends = [*normal.ravel().tolist(), *(-np.log(2 * beta) / sqrt(2)).ravel().tolist()]
    ratio = _ratio(laplace, numbers, bell, beta, (min(ends), max(ends)))
    found: Floats = ratio * deviation * (1 + SMALL) + steps
    return found


def _few(scales: Floats, beta: Floats) -> Floats:
    """The quantile of each column's sum of few Laplace noises, of which not all are 0. Scales that are nearly the same are put apart, upwards.

    The tail is a sum of exponentials, by partial fractions of the characteristic function. Its logarithm is concave, so that its tangents lie above
    it and Newton's steps, from the second one on, stay beyond the quantile.
    """
    import numpy as np

    apart = np.maximum(np.sort(scales, axis=0), scales.max(axis=0) * LEAST)
    for i in range(1, len(apart)):
        apart[i] = np.maximum(apart[i], apart[i - 1] * APART)
    squares = apart**2
    differences = squares[:, None] - squares
    differences[np.arange(len(apart)), np.arange(len(apart))] = squares
    weights = np.prod(squares[:, None] / differences, axis=1) / 2
    found: Floats = np.sqrt(2 * squares.sum(axis=0))
    for _ in range(NEWTON):
        terms = weights * np.exp(-found / apart)
        tail = terms.sum(axis=0) + LOST
        found = np.maximum(found + (np.log(tail) - np.log(beta)) * tail / (terms / apart).sum(axis=0), 0)
    return found


def _scale(noise: Noise) -> float:
    return float_near((sqrt_up(noise.parameter) if noise.mechanism is Mechanism.GAUSSIAN else noise.parameter) / ONE)


def _ratio(scales: Floats, numbers: Floats, bell: Floats, beta: Floats, ends: tuple[float, float]) -> Floats:
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


def _chernoff(scales: Floats, numbers: Floats, bell: Floats, beta: Floats) -> Floats:
    """exp(-t w) E exp(t S) <= beta for some t: the least such w over a list of t."""
    import numpy as np

    most = np.maximum(np.max(np.where(numbers > 0, scales, 0), axis=0), 1e-3)
    found = np.full(scales.shape[1], np.inf)
    for share in np.linspace(0.02, 0.98, 49):
        t = share / most
        moment = -np.sum(numbers * np.log1p(-np.where(numbers > 0, np.minimum((t * scales) ** 2, 0.9999), 0)), axis=0) + bell * t**2 / 2
        found = np.minimum(found, (moment - np.log(beta)) / t)
    return found
