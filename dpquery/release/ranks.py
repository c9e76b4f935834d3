"""Scores by rank of the bins of a group, of which one is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise

from dpquery.aggregates import byrank
from dpquery.mechanisms import Noise
from dpquery.plan.release import WEIGHT_BITS, Bins, Choosing

ROW = 1 << WEIGHT_BITS  # what a row weighs


@dataclass(frozen=True, slots=True)
class Aim:
    """The place among a group's weight N that is looked for: a N + aside, where `rank` is a / b, in b-ths. From a `side` the bin at the bounds there
    reaches as far as need be."""

    rank: Fraction
    side: int
    aside: int


def aim(bins: Bins, noise: Noise) -> Aim | None:
    """What a bin is chosen for; None where none is chosen by rank. Off a side it is a row beyond the quantile's place, and by how much the choice may
    fall short of it."""
    if bins.rank is None:
        return None
    a, b = bins.rank.numerator, bins.rank.denominator
    row = {-1: -a, 0: 0, 1: b - a}[bins.side] * ROW
    far = byrank.margin(bins, noise) if bins.side and isinstance(noise.mechanism, Choosing) else 0  # nobody adds noise to scores, but to see them
    return Aim(bins.rank, bins.side, row + bins.side * far)


def scores(sums: Sequence[int], each: int, aim: Aim) -> list[int]:
    """-max(0, b L - place, place - b U) of each bin, for the place a N + aside: of a group's weight N, L lies below the bin, U below it and in it.

    From below the first bin has no L, from above the last one no U.
    """
    a, b = aim.rank.numerator, aim.rank.denominator
    found = list[int]()
    for start in range(0, len(sums), each):
        below = [b * sum for sum in accumulate(sums[start : start + each], initial=0)]
        place = a * (below[-1] // b) + aim.aside
        if aim.side < 0:
            below[0] = min(0, place)
        if aim.side > 0:
            below[-1] = max(below[-1], place)
        found += [-max(0, low - place, place - high) for low, high in pairwise(below)]
    return found
