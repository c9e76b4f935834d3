"""The laws of choices by brute force, independently of dpquery: permute and flip as it was published, the exponential mechanism by its weights."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations

import mpmath as mp

from dpquery.plan.release import Choosing


def coins(scores: Sequence[int], scale: Fraction) -> list[mp.mpf]:
    """exp(-x_i), x_i how many scales score i lies below the largest."""
    return [mp.exp(mp.mpf((score - max(scores)) * scale.denominator) / scale.numerator) for score in scores]


def law(mechanism: Choosing, scores: Sequence[int], scale: Fraction) -> list[mp.mpf]:
    """With which probability each score is chosen."""
    w = coins(scores, scale)
    if mechanism is Choosing.EXPONENTIAL:
        return [one / mp.fsum(w) for one in w]
    found = [mp.mpf(0)] * len(scores)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        passed = mp.mpf(1)
        for i in order:
            found[i] += passed * w[i] / len(orders)
            passed *= 1 - w[i]
    return found


def losses(mechanism: Choosing, one: Sequence[int], two: Sequence[int], scale: Fraction) -> list[mp.mpf]:
    """ln P(i) / Q(i) of each score, of two data sets' scores."""
    return [mp.log(p / q) for p, q in zip(law(mechanism, one, scale), law(mechanism, two, scale), strict=True)]


def renyi(mechanism: Choosing, one: Sequence[int], two: Sequence[int], scale: Fraction, order: mp.mpf) -> mp.mpf:
    """D_a of the two laws."""
    pairs = zip(law(mechanism, one, scale), law(mechanism, two, scale), strict=True)
    return mp.log(mp.fsum(p**order * q ** (1 - order) for p, q in pairs)) / (order - 1)
