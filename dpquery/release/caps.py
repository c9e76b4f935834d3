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
DOUBT = 0.05  # of the curves' weight that is disregarded at either end
SURELY = 2.0  # deviations of a noise that are reckoned with
VAGUE = 0.1  # of the total: a loss that is known less exactly is not known
NOTICEABLE = 0.02  # of the total: a loss that is worth a warning
TINY = 1e-300  # what is divided by as nothing
LEAST = 1e-6  # noise that is reckoned with, though there be none
SLOPES = np.concatenate([[0.0], np.geomspace(0.2, 60, 36)])
BENDS = np.concatenate([[0.0], np.geomspace(0.03, 30, 16)])


@dataclass(frozen=True, slots=True)
class Chosen:
    """The bin whose upper end is the cap, and which share of the total units above it are expected to have beyond it; None: not known at this noise.
    `likely` is whether so much is likely to be cut off that an error bar of the noise alone misleads."""

    bin: int
    lost: float | None
    likely: bool


def chosen(counts: Sequence[int], noise: float, worth: float) -> Chosen:
    """The cap for a histogram of units with noise of this scale, where a step of the cap costs as much as losing it for `worth` units."""
    seen, last, noise = np.asarray(counts, float), len(counts) - 1, max(noise, LEAST)
    sure = noise * log(len(counts) / MISTAKEN / 2)
    octaves = np.convolve(seen, np.ones(OCTAVE))[OCTAVE - 1 :]
    held = np.flatnonzero(octaves >= sure + noise * (2 * OCTAVE) ** 0.5)
    if not held.size:
        return Chosen(min(last, int(np.argmax(octaves)) + OCTAVE - 1), None, True)
    top = min(last, int(held[-1]) + OCTAVE - 1)
    clear = np.flatnonzero(seen >= sure)
    least = int(clear[-1]) if clear.size else int(held[-1])
    start, measured = _start(seen[: top + 1], noise, int(held[-1]))
    above, weight = _above(seen[start + 1 :], top - start, noise)
    # their geometric mean, which few curves that hardly fall do not carry away
    few = np.flatnonzero(np.exp((weight[:, None] * np.log(above + 1e-9)).sum(axis=0)) <= max(worth, FEW))
    cap = min(last, max(least, start + int(few[0]) if few.size else last))
    return Chosen(cap, *(_lost(seen, above, (start, cap), noise, weight) if measured else (None, True)))


def _lost(seen: Floats, above: Floats, place: tuple[int, int], noise: float, weight: Floats) -> tuple[float | None, bool]:
    """The share that is lost, where curves and noise leave it within a few parts of a hundred, and whether a noticeable one is likely. What is lost,
    and what is kept, are each curve's above the start, and below it what is seen there, of which `off` may be noise."""
    start, cap = place
    past = max(0, cap - start)
    areas = (above[:, :-1] + above[:, 1:]) / 2 * np.diff(2.0 ** (np.arange(start, len(seen)) / OCTAVE))
    middles = 2.0 ** ((np.arange(min(start, cap) + 1) - 0.5) / OCTAVE)
    off = SURELY * noise * 2**0.5 * float((middles @ middles) ** 0.5)
    kept = float(seen[: len(middles)] @ middles) + above[:, 0] * middles[-1] + areas[:, :past].sum(axis=1)
    lost = areas[:, past:].sum(axis=1)
    least, likely, most = (lost / np.maximum(lost + np.maximum(kept + by, 0), TINY) for by in (off, 0, -off))
    low, middle, high = _reached(least, weight, DOUBT), _reached(likely, weight, 0.5), _reached(most, weight, 1 - DOUBT)
    return None if high - low > VAGUE else min(float(weight @ likely), high), middle > NOTICEABLE


def _reached(values: Floats, weight: Floats, part: float) -> float:
    """The least of the values that so great a part of the weight does not exceed."""
    order = np.argsort(values)
    place = int(np.searchsorted(np.cumsum(weight[order]), part))
    return float(values[order[min(place, len(order) - 1)]])


def _start(seen: Floats, noise: float, held: int) -> tuple[int, bool]:
    """The bin above which the tail begins: the last one from whose end on the tail is well measured; and whether any is."""
    tails = np.cumsum(seen[::-1])[::-1]
    well = np.flatnonzero(tails >= MEASURED * noise * np.sqrt(2 * np.arange(len(seen), 0, -1)))
    return max(0, (int(well[-1]) if well.size else held) - 1), bool(well.size)


def _above(seen: Floats, measured: int, noise: float) -> tuple[Floats, Floats]:
    """How many units are above the start and above each bin after it, curve by curve, and how well each explains what is seen, 1 in all; `measured`
    bins hold what is known of their number."""
    place = np.arange(len(seen) + 1) * (log(2) / OCTAVE)
    slope, bend = (one.ravel()[:, None] for one in np.meshgrid(SLOPES, BENDS))
    left = np.exp(-slope * place - bend * place * place)
    whole = max(1.0, float(seen[:measured].sum())) / np.maximum(1 - left[:, measured : measured + 1], 0.25)
    expected = whole * (left[:, :-1] - left[:, 1:])
    spread = np.sqrt(noise * noise + expected / 2)  # of the noise, and of units that fall into bins by chance
    fit = -(np.abs(seen - expected) / spread + np.log(spread)).sum(axis=1)
    weight = np.exp(fit - fit.max())
    weight /= weight.sum()
    return whole * left, weight
