"""Statistics of draws, each as a p value: how likely draws of the law are to look at least that odd.

The tests of this folder that leave something to chance compare fewer than 1,000 p values with LEAST_P: all is right, and one of them is red, less
than once in a million runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath as mp
import numpy as np
from exact_laws import LAPLACE
from numpy.typing import NDArray

from dpquery.mechanisms import Noise
from dpquery.numbers import floor_log2

LEAST_P = 1e-9
LEAST_EXPECTED = 20.0  # draws in a cell
Draws = NDArray[Any]  # int64, or Python integers
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


# ---- the law in floats ---------------------------------------------------------------------------------------------------------------


def log2_scale(law: Noise) -> int:
    """The exponent of Laplace's scale or the Gaussian's sigma."""
    return floor_log2(law.parameter) if law.mechanism is LAPLACE else floor_log2(law.parameter) // 2


def upper_float(law: Noise, t: int) -> float:
    """P(Z >= t), good to 6 digits where it is above 1e-12."""
    if t < 1:
        return 1 - upper_float(law, 1 - t)
    if law.mechanism is LAPLACE:
        return math.exp(-float(t / law.parameter)) / (1 + math.exp(-float(1 / law.parameter)))
    if law.parameter < 10**5:
        sums = _gaussian_sums(law.parameter)
        return float(sums[t]) if t < len(sums) else 0.0
    return math.erfc(float(Fraction(2 * t - 1, 2**81)) * 2.0**80 / math.sqrt(2 * float(law.parameter))) / 2


@lru_cache
def _gaussian_sums(variance: Fraction) -> Floats:
    """P(Z >= t) for t = 0, 1, ..."""
    z = np.arange(int(40 * math.sqrt(variance)) + 40, dtype=float)
    g = np.exp(-(z**2) / (2 * float(variance)))
    return np.cumsum(g[::-1])[::-1] / (2 * g.sum() - 1)


def between(law: Noise, low: int, high: int) -> float:
    """P(low <= Z < high)."""
    if high <= 0:
        low, high = 1 - high, 1 - low
    return upper_float(law, low) - upper_float(law, high)


# ---- one sample against its law ------------------------------------------------------------------------------------------------------


def cells(law: Noise, values: Draws, fineness: int) -> tuple[Counts, Floats]:
    """How many draws fall into cells of about 2^-fineness of the scale (single integers at least), and how many should."""
    shift = max(0, log2_scale(law) - fineness)
    cell = (values >> shift).astype(np.int64)
    reach = max(2, int(16 * 2.0 ** (log2_scale(law) - shift))) + 2
    seen = np.bincount(np.clip(cell, -reach, reach) + reach, minlength=2 * reach + 1)
    expected = [between(law, m << shift, (m + 1) << shift) for m in range(1 - reach, reach)]
    outside = [upper_float(law, ((reach - 1) << shift) + 1), upper_float(law, reach << shift)]  # below the least cell, above the greatest
    return seen, np.array([outside[0], *expected, outside[1]]) * len(values)


def chi_square(observed: Counts, expected: Floats, lost: int = 1) -> float:
    """Pearson's test, the cells where few draws are expected gathered in one; `lost` degrees of freedom are not there."""
    many = expected >= LEAST_EXPECTED
    observed, expected = np.append(observed[many], observed[~many].sum()), np.append(expected[many], expected[~many].sum())
    if expected[-1] < LEAST_EXPECTED and len(expected) > 1:
        most = int(np.argmax(expected))
        observed[most], expected[most] = observed[most] + observed[-1], expected[most] + expected[-1]
        observed, expected = observed[:-1], expected[:-1]
    if len(expected) - lost < 1:
        return 1.0
    return _beyond(float(((observed - expected) ** 2 / expected).sum()), len(expected) - lost)


def _beyond(statistic: float, freedom: int) -> float:
    return float(mp.gammainc(freedom / 2, statistic / 2, mp.inf, regularized=True))


def fine(law: Noise, values: Draws) -> float:
    """Chi-square over cells of a 64th of the scale."""
    return chi_square(*cells(law, values, 6))


def coarse(law: Noise, values: Draws) -> float:
    """Chi-square over cells of half the scale: fewer of them see smaller errors of the scale."""
    return chi_square(*cells(law, values, 1))


def kolmogorov(law: Noise, values: Draws) -> float:
    """The greatest distance of cumulated cells to the law, with the bound of Dvoretzky, Kiefer, Wolfowitz and Massart, which holds for any law."""
    observed, expected = cells(law, values, 6)
    distance = float(np.abs(np.cumsum(observed - expected)).max()) / len(values)
    return min(1.0, 2 * math.exp(-2 * len(values) * distance**2))


STATISTICS: Mapping[str, Callable[[Noise, Draws], float]] = {"fine": fine, "coarse": coarse, "kolmogorov": kolmogorov}


# ---- two samples ---------------------------------------------------------------------------------------------------------------------


def dependence(first: Draws, second: Draws) -> float:
    """Chi-square of independence of pairs, over cells between quantiles: a small p says that one sample tells of the other."""
    a, b = _graded(first), _graded(second)
    table = np.zeros((a.max() + 1, b.max() + 1), dtype=np.int64)
    np.add.at(table, (a, b), 1)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    if min(table.shape) < 2 or expected.min() < 5:
        return 1.0
    return _beyond(float(((table - expected) ** 2 / expected).sum()), (table.shape[0] - 1) * (table.shape[1] - 1))


def _graded(values: Draws) -> Counts:
    """Which of six steps each value is on."""
    ordered = np.sort(values)
    edges = np.unique(ordered[[len(ordered) * share // 100 for share in (10, 25, 50, 75, 90)]])
    return np.searchsorted(edges, values, side="right")


def difference(first: Draws, second: Draws) -> float:
    """Chi-square of whether two samples of one size come from one law, over cells between quantiles of both together."""
    ordered = np.sort(np.concatenate([first, second]))
    edges = np.unique(ordered[[len(ordered) * share // 40 for share in range(1, 40)]])
    a, b = (np.bincount(np.searchsorted(edges, sample, side="right"), minlength=len(edges) + 1) for sample in (first, second))
    both = (a + b) / 2
    return chi_square(np.concatenate([a, b]), np.concatenate([both, both]), lost=int((both > 0).sum()))


def repeated(words: NDArray[np.uint64]) -> int:
    """How many words were there before: of n fresh ones, any with probability below n^2 / 2^65."""
    return len(words) - len(np.unique(words))
