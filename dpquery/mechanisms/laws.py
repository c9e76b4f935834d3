"""The list of laws: one card for each mechanism that adds noise."""

from __future__ import annotations

from typing import assert_never

from dpquery.mechanisms.card import Law, Noise
from dpquery.mechanisms.gaussian import Gaussian
from dpquery.mechanisms.laplace import Laplace
from dpquery.plan.release import Choosing, Mechanism


def law_of(noise: Noise) -> Law:
    """The law that `noise` is drawn from."""
    match noise.mechanism:
        case Mechanism.LAPLACE:
            return Laplace(noise.parameter)
        case Mechanism.GAUSSIAN:
            return Gaussian(noise.parameter)
        case Choosing.PERMUTE_AND_FLIP | Choosing.EXPONENTIAL:
            raise ValueError("a choice adds no noise")
        case _:
            assert_never(noise.mechanism)
