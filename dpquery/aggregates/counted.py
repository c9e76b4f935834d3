"""Noisy counts of values in bins, wide ones and narrower ones within them: how many values lie below an edge, and where a quantile lies.

Below an edge lie the bins before it at the widest level, then those at the next level within the bin that the edge cuts, and so on. Of a bin that is
cut, with b narrower ones whose counts c add up to S while it counts p itself, j of which are before the edge, one takes

    c_1 + .. + c_j + (p - S) j / (b + 1),

which has the least variance where all noises have the same: j (1 - j / (b + 1)) times it, at most about b / 4.

Error bars invert two tests. Let D(e) be the number of values below edge e less q (n - 1), as the counts have it. The value of rank floor(q (n - 1)),
counted from 0, lies in a bin [e, e') with D(e') > 0, that of the next rank in one with D(e) <= 1. While the noise of D at these two edges, which are
the data's and not the noise's, stays below its quantiles w(e), the first edge with D + w >= 0 is no later than e', and the last one with D - w <= 1
no earlier than e. That holds for ranks between the two as well, so for the quantiles that are one of the values.

The noise of D is linear in q. For symmetric log-concave noises its quantiles are then convex in q (Meyer and Reisner 1991, Bobkov 2010: the quantile
of a linear form is a norm of its coefficients), so that w, interpolated between a few q, is never too small.
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
KNOTS = 9  # fractions for which the quantiles of noise are worked out, where more are asked for


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

    def quantiles(self, which: Quantile) -> list[list[Fraction]]:
        """Per group the quantiles in grid units, none below one of a smaller fraction: whole numbers, if they are to be some of the values."""
        groups = (Tree(which, [level[i].tolist() for level in self.counts]) for i in range(len(self.counts[0])))
        return [[one.quantile(float(fraction)) for fraction in which.fractions] for one in groups]

    # ---- error bars ------------------------------------------------------------------------------------------------------------------

    def reach(self, which: Quantile, noises: Sequence[Noise], confidence: Fraction) -> list[list[tuple[int, int]]]:
        """Per group, for each quantile, the least and the greatest unit that it may be for all that the noise says."""
        below, number = self._below()
        fractions, bins = [float(one) for one in which.fractions], tuple(level.shape[1] for level in self.counts)
        widths = _noises(fractions, bins, self.widths, tuple(noises), (1 - confidence) / 2)
        columns = [_ends(which, below, q * (number - 1), width) for q, width in zip(fractions, widths, strict=True)]
        return [[*own] for own in zip(*columns, strict=True)]

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


def _ends(which: Quantile, below: Floats, rank: Floats, width: Floats) -> list[tuple[int, int]]:
    """Per group the least and the greatest unit, from the bins of the two tests."""
    import numpy as np

    excess, edges, last = below - rank[:, None], below.shape[1] - 1, which.widths[-1]
    early, late = excess[:, 1:] + width[None, 1:] >= 0, excess[:, :-1] - width[None, :-1] <= 1
    first = np.where(early.any(axis=1), early.argmax(axis=1), edges - 1)
    final = np.where(late.any(axis=1), edges - 1 - late[:, ::-1].argmax(axis=1), 0)
    ends = zip(np.minimum(first, final).tolist(), np.maximum(first, final).tolist(), strict=True)
    return [(which.low + low * last, min(which.low + (high + 1) * last - 1, which.high)) for low, high in ends]


def _pairs(values: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(pairwise(values))


def _noises(fractions: Sequence[float], bins: tuple[int, ...], widths: tuple[int, ...], noises: tuple[Noise, ...], outside: Fraction) -> list[Floats]:
    """What the noise of D at each edge passes with probability at most `outside`, on one side, for each fraction."""
    if len(set(fractions)) <= KNOTS:
        return [_noise(q, bins, widths, noises, outside) for q in fractions]
    steps = KNOTS - 1
    table = [_noise(i / steps, bins, widths, noises, outside) for i in range(KNOTS)]
    places = [(min(int(q * steps), steps - 1), q) for q in fractions]
    return [table[i] + (q * steps - i) * (table[i + 1] - table[i]) for i, q in places]


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


class Tree:
    """The counts of one group. Everything here rises with the fraction, in floats too."""

    def __init__(self, which: Quantile, counts: Sequence[Sequence[float]]) -> None:
        self.which, self.counts, self.number = which, counts, sum(counts[0])
        self._rising: dict[tuple[int, int], list[float]] = {}

    def quantile(self, q: float) -> Fraction:
        """The value at the quantile's place: of one row, or between those of two rows."""
        found = self._quantile(q)
        return Fraction(floor(found + Fraction(1, 2))) if self.which.discrete else found

    def _quantile(self, q: float) -> Fraction:
        which, number = self.which, self.number
        if number <= 0:
            return which.low + Fraction(q) * (which.high - which.low)
        if number < 1:
            return self._at(q)
        if which.discrete:
            rank = floor(q * number + NEAR) if which.upper else ceil(q * number - NEAR) - 1
            return self._at((max(0.0, min(rank, number - 1)) + 0.5) / number)
        rank = floor(q * (number - 1))
        between, low = q * (number - 1) - rank, self._at((rank + 0.5) / number)
        return low if between < NEAR else low + (self._at(min(1.0, (rank + 1.5) / number)) - low) * Fraction(between)

    def _at(self, place: float) -> Fraction:
        """The value below which a share of the rows lies; within a bin as if they were spread evenly."""
        which, bin = self.which, 0
        for level in range(len(which.widths)):
            inner, place = _found(self._sums(level, bin), min(1.0, max(0.0, place)))
            bin = bin * self._each(level) + inner
        low = which.low + bin * which.widths[-1]
        return low + Fraction(place) * (min(low + which.widths[-1] - 1, which.high) - low)

    def _each(self, level: int) -> int:
        """How many bins of this level a wider one has."""
        return len(self.counts[0]) if level == 0 else self.which.widths[level - 1] // self.which.widths[level]

    def _sums(self, level: int, bin: int) -> list[float]:
        """Sums of the bins of this level that lie within a wider one, made to rise."""
        if (level, bin) not in self._rising:
            each = self._each(level)
            own = self.counts[level][bin * each : (bin + 1) * each]
            less = 0.0 if level == 0 else (self.counts[level - 1][bin] - sum(own)) / (len(own) + 1)
            self._rising[level, bin] = _risen([count + less for count in own])
        return self._rising[level, bin]


def _risen(counts: Sequence[float]) -> list[float]:
    """Noisy sums made to rise: midway between the largest so far and the smallest to come. Evenly, where there is nothing to be summed."""
    sums = [0.0, *accumulate(counts)]
    total = sums[-1]
    if total <= 0:
        return [float(i) for i in range(len(sums))]
    largest, smallest = list(accumulate(sums, max)), list(accumulate(reversed(sums), min))[::-1]
    return [min(total, max(0.0, (a + b) / 2)) for a, b in zip(largest, smallest, strict=True)]


def _found(rising: Sequence[float], place: float) -> tuple[int, float]:
    """The bin in which a share of the sums is reached, and how far into it."""
    wanted = place * rising[-1]
    bin = min(max(bisect_right(rising, wanted) - 1, 0), len(rising) - 2)
    width = rising[bin + 1] - rising[bin]
    return bin, min(1.0, max(0.0, (wanted - rising[bin]) / width)) if width > 0 else 0.5
