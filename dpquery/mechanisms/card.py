"""What a noise is, and what a mechanism's card tells the sampler and the thresholds about its law."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from dpquery.plan.release import Choosing, Mechanism

Randomness = Mechanism | Choosing


@dataclass(frozen=True, slots=True)
class Noise:
    """Integer noise, independent for each number it is added to; or a choice among the numbers of a group, to none of which anything is added.

    LAPLACE: P(Z = z) is proportional to exp(-|z| / parameter), the parameter being the scale b in grid units.
    GAUSSIAN: P(Z = z) is proportional to exp(-z^2 / (2 parameter)), the parameter being sigma^2 in squared grid units.
    PERMUTE_AND_FLIP, EXPONENTIAL: choices (choice.py), the parameter being the scale s of the scores in grid units.
    """

    mechanism: Randomness
    parameter: Fraction

    def __post_init__(self) -> None:
        if self.parameter <= 0:
            raise ValueError("noise needs a positive parameter")


class Law(Protocol):
    """A symmetric law on the integers: P(Z = z) is proportional to exp(-f(|z|)) with f(m) = linear * m + quadratic * m^2."""

    @property
    def linear(self) -> Fraction:
        """The coefficient of m, at least 0; not both are 0."""

    @property
    def quadratic(self) -> Fraction:
        """The coefficient of m^2, at least 0; not both are 0."""

    def block_bits(self) -> int:
        """The k for which the sampler draws blocks of 2^k neighbours: where k > 0, f moves by less than 0.75 inside a block of likely values."""

    def tail(self, t: int, floor_bits: int) -> tuple[Fraction, Fraction]:
        """(low, high) with low <= P(Z >= t) <= high for t >= 1; below about 2^-floor_bits they are 0 and about that."""

    def near(self, p: float) -> float:
        """About the t with P(Z >= t) = p, where a search may start."""

    def deviation(self) -> float:
        """The standard deviation, to display."""
