"""Noisy counts of values in bins, wide ones and narrower ones within them: how many values lie below an edge, and where a quantile lies.

Below an edge lie the bins before it at the widest level, then those at the next level within the bin that the edge cuts, and so on. Of a bin that is
cut, with b narrower ones whose counts c add up to S while it counts p itself, j of which are before the edge, one takes

    c_1 + .. + c_j + (p - S) j / (b + 1),

which has the least variance where all noises have the same: j (1 - j / (b + 1)) times it, at most about b / 4.

Error bars invert two tests. Let D(e) be the number of values below edge e less q (n - 1), as the counts have it. The value of rank floor(q (n - 1)),
counted from 0, lies in a bin [e, e') with D(e') > 0, that of the next rank in one with D(e) <= 1. While the noise of D at these two edges, which are
the data's and not the noise's, stays below its quantiles w(e), the first edge with D + w >= 0 is no later than e', and the last one with D - w <= 1
no earlier than e.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from dpquery.aggregates.combined import quantile_up
from dpquery.mechanisms import Noise
from dpquery.plan.release import WEIGHT_BITS, Quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NEAR = 1e-9  # how far floats may put a whole number of rows off
ONE = float(2**WEIGHT_BITS)  # what a row weighs


@dataclass(frozen=True)
class Counted:
    """Counts of rows by level, group and bin, for a span of so many units."""

    span: int
    widths: tuple[int, ...]
    counts: tuple[Floats, ...]

    @staticmethod
    def of(span: int, widths: tuple[int, ...], sums: Sequence[Sequence[int]]) -> Counted:
        """The counts that noisy integers stand for, those of one group after the other."""
        import numpy as np

        made = (np.array([float(value) for value in own]).reshape(-1, -(-span // width)) / ONE for width, own in zip(widths, sums, strict=True))
        return Counted(span, widths, tuple(made))

    @staticmethod
    def even(span: int, widths: tuple[int, ...], sizes: Sequence[int]) -> Counted:
        """Groups of so many values, spread evenly."""
        import numpy as np

        found = []
        for width in widths:
            bins = np.arange(-(-span // width))
            shares = (np.minimum((bins + 1) * width, span) - bins * width) / span
            found.append(np.outer(np.array(sizes, dtype=float), shares))
        return Counted(span, widths, tuple(found))

    # ---- released values -------------------------------------------------------------------------------------------------------------

    def quantiles(self, which: Quantile) -> list[Fraction]:
        """Per group the quantile in grid units: a whole number of them, if it is to be one of the values."""
        found = (_quantile(which, [level[i].tolist() for level in self.counts]) for i in range(len(self.counts[0])))
        return [Fraction(floor(one + Fraction(1, 2))) if which.discrete else one for one in found]

    # ---- error bars ------------------------------------------------------------------------------------------------------------------

    def reach(self, which: Quantile, noises: Sequence[Noise], confidence: Fraction) -> list[tuple[int, int]]:
        """Per group the least and the greatest unit that the quantile may be for all that the noise says."""
        import numpy as np

        below, number = self._below()
        q, last = float(which.fraction), which.widths[-1]
        excess = below - q * (number - 1)[:, None]
        width = _noise(q, tuple(level.shape[1] for level in self.counts), self.widths, tuple(noises), (1 - confidence) / 2)
        edges = below.shape[1] - 1
        early, late = excess[:, 1:] + width[None, 1:] >= 0, excess[:, :-1] - width[None, :-1] <= 1
        first = np.where(early.any(axis=1), early.argmax(axis=1), edges - 1)
        final = np.where(late.any(axis=1), edges - 1 - late[:, ::-1].argmax(axis=1), 0)
        ends = zip(np.minimum(first, final).tolist(), np.maximum(first, final).tolist(), strict=True)
        return [(which.low + low * last, min(which.low + (high + 1) * last - 1, which.high)) for low, high in ends]

    def _below(self) -> tuple[Floats, Floats]:
        """Per group how many values lie below each edge of the narrowest bins, the last edge included; and how many there are."""
        import numpy as np

        top = self.counts[0]
        number = top.sum(axis=1)
        found = np.cumsum(top, axis=1) - top
        for (wide, narrow), (upper, lower) in zip(_pairs(self.widths), _pairs(self.counts), strict=True):
            each, bins = wide // narrow, lower.shape[1]
            parent, place = np.divmod(np.arange(bins), each)
            sizes = np.minimum(each, bins - each * np.arange(upper.shape[1]))
            padded = np.zeros((len(lower), upper.shape[1] * each))
            padded[:, :bins] = lower
            blocks = padded.reshape(len(lower), upper.shape[1], each)
            before = (np.cumsum(blocks, axis=2) - blocks).reshape(padded.shape)[:, :bins]
            share = (upper - blocks.sum(axis=2)) / (sizes + 1)
            found = found[:, parent] + before + share[:, parent] * place
        return np.concatenate([found, number[:, None]], axis=1), number


def _pairs(values: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(pairwise(values))


@lru_cache(maxsize=64)
def _noise(q: float, bins: tuple[int, ...], widths: tuple[int, ...], noises: tuple[Noise, ...], outside: Fraction) -> Floats:
    """What the noise of D at each edge passes with probability at most `outside`, on one side."""
    return quantile_up(*_coefficients(q, bins, widths), noises, outside)


def _coefficients(q: float, bins: Sequence[int], widths: Sequence[int]) -> tuple[Floats, Floats, tuple[int, ...]]:
    """What D at each edge is made of: coefficients, of how many counts each, and the level of these; a row for each kind, a column for each edge."""
    import numpy as np

    edges = np.arange(bins[-1] + 1)
    places = [np.minimum(edges * widths[-1] // width, count) for width, count in zip(widths, bins, strict=True)]
    coefficients, numbers, levels = [], [], []
    shares = [np.zeros(len(edges)) for _ in bins] + [np.zeros(len(edges))]
    befores, sizes = [places[0]], [np.full(len(edges), bins[0])]
    for level in range(1, len(bins)):
        each = widths[level - 1] // widths[level]
        parent = np.minimum(places[level - 1], bins[level - 1] - 1)
        sizes.append(np.minimum(each, bins[level] - parent * each))
        befores.append(np.where(places[level - 1] >= bins[level - 1], 0, places[level] - parent * each))
        shares[level] = befores[level] / (sizes[level] + 1)
    for level, (before, size) in enumerate(zip(befores, sizes, strict=True)):
        less = np.full(len(edges), q) if level == 0 else shares[level]
        cut = before < size
        coefficients += [1 - less, -less, shares[level + 1] - less]
        numbers += [before, np.maximum(size - before - 1, 0), cut.astype(int)]
        levels += [level] * 3
    return np.array(coefficients), np.array(numbers, dtype=float), tuple(levels)


# ---- one group -----------------------------------------------------------------------------------------------------------------------


def _quantile(which: Quantile, counts: Sequence[Sequence[float]]) -> Fraction:
    """The value at the quantile's place: of one row, or between those of two rows."""
    number, q = sum(counts[0]), float(which.fraction)
    if number <= 0:
        return which.low + Fraction(q) * (which.high - which.low)
    if number < 1:
        return _at(which, counts, q)
    if which.discrete:
        return _at(which, counts, (max(0.0, min(ceil(q * number - NEAR), number) - 1) + 0.5) / number)
    rank = q * (number - 1)
    between = rank - floor(rank)
    low = _at(which, counts, (floor(rank) + 0.5) / number)
    return low if between < NEAR else low + (_at(which, counts, min(1.0, (floor(rank) + 1.5) / number)) - low) * Fraction(between)


def _at(which: Quantile, counts: Sequence[Sequence[float]], place: float) -> Fraction:
    """The value below which a share of the rows lies; within a bin as if they were spread evenly."""
    bin, whole = 0, None
    for level, width in enumerate(which.widths):
        each = len(counts[0]) if level == 0 else which.widths[level - 1] // width
        own = counts[level][bin * each : (bin + 1) * each]
        less = 0.0 if whole is None else (whole - sum(own)) / (len(own) + 1)
        inner, place = _found([count + less for count in own], min(1.0, max(0.0, place)))
        bin = bin * each + inner
        whole = counts[level][bin]
    low = which.low + bin * which.widths[-1]
    return low + Fraction(place) * (min(low + which.widths[-1] - 1, which.high) - low)


def _found(counts: Sequence[float], place: float) -> tuple[int, float]:
    """The bin in which a share of the counts is reached, and how far into it. Noisy sums are made to rise: midway between the largest so far and the
    smallest to come."""
    sums = [0.0, *accumulate(counts)]
    total = sums[-1]
    if total <= 0:
        at = place * len(counts)
        bin = min(int(at), len(counts) - 1)
        return bin, min(1.0, at - bin)
    largest, smallest = list(accumulate(sums, max)), list(accumulate(reversed(sums), min))[::-1]
    rising = [min(total, max(0.0, (a + b) / 2)) for a, b in zip(largest, smallest, strict=True)]
    bin = min(max(bisect_right(rising, place * total) - 1, 0), len(counts) - 1)
    width = rising[bin + 1] - rising[bin]
    return bin, min(1.0, max(0.0, (place * total - rising[bin]) / width)) if width > 0 else 0.5
