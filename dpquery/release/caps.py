"""A cap chosen from a noisy histogram: as large as the expected error of the capped total is least. A function of released numbers alone.

A total whose cells are capped at t errs by the noise, which grows with t, and by what the cap cuts off, which shrinks by the number of units above t.
Their sum is least where that number falls to what a step of the cap costs in noise. Where it does so lies beyond what a noisy histogram shows
by itself: a few units drown in noise. So the tail is continued from where it is well measured, by curves that fall ever faster on logarithmic
scales, each weighed by how well it explains the noisy counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

OCTAVE = 4  # bins: each reaches up to the 2^(1/4)-fold
MISTAKEN = 1e-3  # how often noise alone may pass for units
MEASURED = 15.0  # noises that a tail is larger than where it counts as well measured
FEW = 1e-3  # units: no cap is made larger for the sake of less
LEAST = 1e-6  # noise that is reckoned with, though there be none
SLOPES = np.concatenate([[0.0], np.geomspace(0.2, 60, 36)])
BENDS = np.concatenate([[0.0], np.geomspace(0.03, 30, 16)])


@dataclass(frozen=True, slots=True)
class Chosen:
    """The bin whose upper end is the cap, and how much units above it are expected to have beyond it, in upper ends of bin 0; None: not known."""

    bin: int
    lost: float | None


def chosen(counts: Sequence[int], noise: float, worth: float) -> Chosen:
    """The cap for a histogram of units with noise of this scale, where a step of the cap costs as much as losing it for `worth` units."""
    seen, last, noise = np.asarray(counts, float), len(counts) - 1, max(noise, LEAST)
    sure = noise * log(len(counts) / MISTAKEN / 2)
    octaves = np.convolve(seen, np.ones(OCTAVE))[OCTAVE - 1 :]
    held = np.flatnonzero(octaves >= sure + noise * (2 * OCTAVE) ** 0.5)
    if not held.size:
        return Chosen(min(last, int(np.argmax(octaves)) + OCTAVE - 1), None)
    top = min(last, int(held[-1]) + OCTAVE - 1)
    clear = np.flatnonzero(seen >= sure)
    least = int(clear[-1]) if clear.size else int(held[-1])
    start = _start(seen[: top + 1], noise, int(held[-1]))
    above, likely = _above(seen[start + 1 :], top - start, noise)
    few = np.flatnonzero(likely <= max(worth, FEW))
    cap = min(last, max(least, start + int(few[0]) if few.size else last))
    ends = 2.0 ** (np.arange(start, last + 1) / OCTAVE)
    beyond = (above[:-1] + above[1:]) / 2 * np.diff(ends)
    return Chosen(cap, float(beyond[max(0, cap - start) :].sum()))


def _start(seen: Floats, noise: float, held: int) -> int:
    """The bin above which the tail begins: the last one from whose end on the tail is well measured."""
    tails = np.cumsum(seen[::-1])[::-1]
    well = np.flatnonzero(tails >= MEASURED * noise * np.sqrt(2 * np.arange(len(seen), 0, -1)))
    return max(0, (int(well[-1]) if well.size else held) - 1)


def _above(seen: Floats, measured: int, noise: float) -> tuple[Floats, Floats]:
    """How many units are above the start and above each bin after it, on average over the curves, and as their geometric mean, which few that hardly
    fall do not carry away; `measured` bins hold what is known of their number."""
    place = np.arange(len(seen) + 1) * (log(2) / OCTAVE)
    slope, bend = (one.ravel()[:, None] for one in np.meshgrid(SLOPES, BENDS))
    left = np.exp(-slope * place - bend * place * place)
    whole = max(1.0, float(seen[:measured].sum())) / np.maximum(1 - left[:, measured : measured + 1], 0.25)
    expected = whole * (left[:, :-1] - left[:, 1:])
    spread = np.sqrt(noise * noise + expected / 2)  # of the noise, and of units that fall into bins by chance
    fit = -(np.abs(seen - expected) / spread + np.log(spread)).sum(axis=1)
    weight = np.exp(fit - fit.max())
    weight /= weight.sum()
    likely: Floats = np.exp((weight[:, None] * np.log(whole * left + 1e-9)).sum(axis=0))
    average: Floats = (weight[:, None] * whole * left).sum(axis=0)
    return average, likely
