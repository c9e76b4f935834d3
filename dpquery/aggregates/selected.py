"""Error bars of groups that were shown because their noisy count of units is large enough: how often they hold the value, among those shown.

Let a group of u >= 1 units be shown where N = u + Z >= T, and w be as large that |Z| <= w with the confidence 1 - a. The bar is [N - w, N + w], or
[1, N + w] where N - w <= T. Among the groups shown it fails with probability at most a, whatever u is:

    u <= T  It fails only where N > T + w. With d = T - u that has the probability P(Z > d + w) / P(Z >= d), which falls in d, as the law is
            log-concave, from at most (a / 2) / (1 / 2).
    u > T   It fails only where |Z| > w. With d = u - T the probability is (P(Z > w) + P(-d <= Z < -w)) / P(Z >= -d): at most (a / 2) / (1 / 2) for
            d <= w; beyond, with p = P(Z < -d), at most (a - p) / (1 - p) <= a.

Noise that did not decide about the group is as if nothing had been selected. Where the count is one of several noisy numbers of which a bar is made,
it is made for the case that nothing was selected, at a confidence 1 - a (1 - a / 2), where N > T + 2 w: groups of u <= T + w are shown with such an N
no more often than a, others are shown with probability 1 - a / 2 at least, so that the bar fails among them at most (1 - a / 2)^-1 times as often.
Where N is nearer, it is a box of bars for each number, for which doubt was set aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpquery.aggregates.card import Floors
from dpquery.mechanisms import Noise, half_width


def low_end(value: int, width: int, floor: int | None) -> int:
    """The lower end of the bar of a noisy count, `floor` being the least with which a group is shown."""
    return 1 if floor is not None and value - width <= floor else value - width


@dataclass(frozen=True, slots=True)
class Selected:
    """Which parts decided about groups, up to where they are too near to the threshold to forget that, and the confidence of bars beyond."""

    floors: Floors
    nearest: Floors
    confidence: Fraction

    @staticmethod
    def of(floors: Floors, noises: Sequence[Noise], confidence: Fraction) -> Selected:
        """For bars of this confidence."""
        if all(floor is None for floor in floors):
            return Selected((), (), confidence)
        doubt = 1 - confidence
        nearest = [None if floor is None else floor + 2 * half_width(noise, confidence) for floor, noise in zip(floors, noises, strict=True)]
        return Selected(tuple(floors), tuple(nearest), 1 - doubt * (1 - doubt / 2))

    def near(self, sums: Sequence[int]) -> bool:
        """Whether one of a group's noisy integers is."""
        return any(far is not None and value <= far for value, far in zip(sums, self.nearest, strict=False))
