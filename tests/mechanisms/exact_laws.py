"""The laws once more, independently of dpquery (mpmath and floats), and bit sources that tests command."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import mpmath as mp
import numpy as np
from numpy.typing import NDArray

from dpquery.mechanisms import Noise
from dpquery.plan.release import Mechanism

LAPLACE, GAUSSIAN = Mechanism.LAPLACE, Mechanism.GAUSSIAN
SCALES = (Fraction(1, 3), Fraction(1), Fraction(15, 2), Fraction(32), Fraction(1000), Fraction(10**6), Fraction(10**9), Fraction(2**60))


def noise(mechanism: Mechanism, scale: Fraction | int) -> Noise:
    """Laplace of scale b, or Gaussian of sigma."""
    scale = Fraction(scale)
    return Noise(mechanism, scale if mechanism is LAPLACE else scale * scale)


NOISES = tuple(noise(mechanism, scale) for mechanism in Mechanism for scale in SCALES)


def name(value: Noise) -> str:
    return f"{value.mechanism.value}-{float(value.parameter):.3g}"


class Seeded:
    """A reproducible source."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.Generator(np.random.PCG64(seed))

    def uint64(self, count: int) -> NDArray[np.uint64]:
        return self.generator.integers(0, 2**64, count, dtype=np.uint64)


class Script(Seeded):
    """Gives the scripted words first, reproducible ones afterwards."""

    def __init__(self, words: Iterable[int], seed: int = 1) -> None:
        super().__init__(seed)
        self.words = list(words)

    def uint64(self, count: int) -> NDArray[np.uint64]:
        given, self.words = self.words[:count], self.words[count:]
        return np.concatenate([np.array(given, dtype=np.uint64), super().uint64(count - len(given))])


def real(x: Fraction | int) -> mp.mpf:
    x = Fraction(x)
    return mp.mpf(x.numerator) / x.denominator


def weight(law: Noise, z: int) -> mp.mpf:
    """exp(-|z| / b) or exp(-z^2 / 2v)."""
    return mp.exp(-real(abs(z) / law.parameter if law.mechanism is LAPLACE else z * z / (2 * law.parameter)))


def total_weight(law: Noise) -> mp.mpf:
    """The sum of all weights: a geometric series, or the Gaussian sum (for large v by Poisson summation)."""
    v = real(law.parameter)
    if law.mechanism is LAPLACE:
        a = mp.exp(-1 / v)
        return (1 + a) / (1 - a)
    if v < 4:
        return 1 + 2 * mp.fsum(weight(law, z) for z in range(1, 80))
    return mp.sqrt(2 * mp.pi * v) * (1 + 2 * mp.fsum(mp.exp(-2 * mp.pi**2 * v * n * n) for n in range(1, 20)))


def upper(law: Noise, t: int) -> mp.mpf:
    """P(Z >= t) for t >= 1, by the closed form or by summing terms."""
    if law.mechanism is LAPLACE:
        return weight(law, t) / (1 + weight(law, 1))
    reach = t + 20 * int(mp.sqrt(real(law.parameter))) + 40
    return mp.fsum(weight(law, z) for z in range(t, reach)) / total_weight(law)
