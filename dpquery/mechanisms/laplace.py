"""Discrete Laplace: P(Z = z) = (1 - a) / (1 + a) * a^|z| with a = exp(-1/b)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpquery.numbers import exp_down, exp_up, float_near, floor_log2


@dataclass(frozen=True, slots=True)
class Laplace:
    """The discrete Laplace law of scale b > 0, in grid units."""

    scale: Fraction

    @property
    def linear(self) -> Fraction:
        """f(m) = m / b."""
        return 1 / self.scale

    @property
    def quadratic(self) -> Fraction:
        """f has degree 1."""
        return Fraction(0)

    def block_bits(self) -> int:
        """Blocks of at most b/8 and more than b/16 integers: f moves by less than 1/8 inside each."""
        return max(0, floor_log2(self.scale) - 3)

    def tail(self, t: int, floor_bits: int) -> tuple[Fraction, Fraction]:
        """Around P(Z >= t) = a^t / (1 + a), t >= 1: the geometric series."""
        x = -1 / self.scale
        return exp_down(x * t, floor_bits) / (1 + exp_up(x, floor_bits)), exp_up(x * t, floor_bits) / (1 + exp_down(x, floor_bits))

    def near(self, p: float) -> float:
        """About the t with P(Z >= t) = p."""
        return float_near(self.scale) * -math.log(p * (1 + math.exp(-float_near(self.linear))))

    def deviation(self) -> float:
        """sqrt(2 a) / (1 - a) = 1 / (sqrt(2) sinh(1 / 2b))."""
        half = float_near(self.linear / 2)
        return 1 / (math.sqrt(2) * math.sinh(half)) if half < 700 else 0.0
