"""Neighbouring data sets and how far they move a release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import tanh
from random import Random

import random_plans as rp
from interpreter import Data, Groups, cells, listed, run

from dpquery.mechanisms import Noise
from dpquery.plan.draft import Draft
from dpquery.plan.rel import Private
from dpquery.plan.release import Choosing, Mechanism, Release
from dpquery.privacy import Facts, Priced, Sensitivity, bound
from dpquery.values.types import Adjacency


@dataclass(frozen=True)
class Moved:
    """What one part of the exact sums moved by, over all groups."""

    l0: int
    linf: int
    l1: int
    l2_squared: int
    shifts: tuple[int, ...]
    spreads: tuple[int, ...]  # of each group (of groups of one integer, all at once) the largest signed shift less the smallest, 0 among them

    def within(self, claim: Sensitivity) -> bool:
        """Whether every norm, and every price of the kind that Laplace noise has, stays within the claim."""
        norms = self.l0 <= claim.l0 and self.linf <= claim.linf and self.l1 <= claim.l1 and self.l2_squared <= claim.l2_squared
        scales = [1, 7, 1 + claim.linf]
        groups, apart = claim.spreads
        near = not groups or (
            sum(self.spreads) <= groups * apart
            and sum(s * s for s in self.spreads) <= groups * apart**2
            and all(sum(_rho(s / b) for s in self.spreads) <= groups * _rho(apart / b) * (1 + 1e-9) for b in (1, 1 + apart))
        )
        return (
            norms and near and all(sum(_rho(s / b) for s in self.shifts) <= max(n * _rho(s / b) for n, s in claim.moves) * (1 + 1e-9) for b in scales)
        )


def _rho(e: float | Fraction) -> float:
    return float(e) * tanh(e / 2)


def moved(one: Groups, other: Groups, part: int) -> Moved:
    found = [[groups[key][part] if key in groups else {} for groups in (one, other)] for key in {*one, *other}]
    pairs = [[flat(value) for value in values] for values in found]
    signed = [[a.get(i, 0) - b.get(i, 0) for i in {*a, *b}] for a, b in pairs]
    shifts = tuple(abs(s) for group in signed for s in group)
    changed = tuple(s for s in shifts if s)
    compared = [[s for group in signed for s in group]] if any(isinstance(value, int) for values in found for value in values) else signed
    spreads = tuple(max(0, *group) - min(0, *group) for group in compared if group)
    return Moved(len(changed), max(shifts, default=0), sum(shifts), sum(s * s for s in shifts), changed, tuple(s for s in spreads if s))


def flat(value: int | dict[int, int]) -> dict[int, int]:
    """The integers of a part in one group."""
    return value if isinstance(value, dict) else {0: value}


def paid(moves: Sequence[Moved], priced: Priced) -> bool:
    """Whether the price covers what the noise gives away of these moves, one for each part: in epsilon, where there is one, and in rho."""
    lost = [(noise, move) for noise, move in zip(priced.noises, moves, strict=True) if move.l0]
    epsilon = sum((sum(_moving(noise, move)) / noise.parameter for noise, move in lost if noise.mechanism in PURE), Fraction(0))
    rho = sum(_lost(noise, move) for noise, move in lost)
    return (priced.price.epsilon is None or epsilon <= priced.price.epsilon) and rho <= float(priced.price.rho) * (1 + 1e-9)


PURE = (Mechanism.LAPLACE, Choosing.PERMUTE_AND_FLIP)


def _moving(noise: Noise, move: Moved) -> tuple[int, ...]:
    return move.spreads if isinstance(noise.mechanism, Choosing) else move.shifts


def _lost(noise: Noise, move: Moved) -> float:
    """In rho."""
    if noise.mechanism in PURE:
        return sum(_rho(s / noise.parameter) for s in _moving(noise, move))
    if noise.mechanism is Choosing.EXPONENTIAL:
        return float(sum(s * s for s in move.spreads) / noise.parameter**2 / 8)
    return float(move.l2_squared / noise.parameter / 2)


def alone(one: Groups, other: Groups) -> int:
    """The most groups that only one of two neighbours has."""
    return max(len(one.keys() - other.keys()), len(other.keys() - one.keys()))


def unit_cells(release: Release, data: Data) -> dict[tuple[object, tuple[object, ...]], tuple[int | dict[int, int], ...]]:
    """Per (unit, key) the clamped integer of each part, after the cap on groups; of a set its size."""
    found = cells(release.table, data, listed(release, data))
    return {at: tuple(len(cell) if isinstance(cell, frozenset) else cell for cell in own) for at, own in found.items()}


def sums(release: Release, units: dict[int, rp.Bag], public: dict[str, list[tuple[object, ...]]]) -> Groups:
    return run(release, rp.together(units, public))


@dataclass(frozen=True)
class Sample:
    """A random statement with random data."""

    plan: Draft
    facts: Facts
    release: Release
    units: dict[int, rp.Bag]
    public: dict[str, list[tuple[object, ...]]]
    random: Random

    @property
    def data(self) -> Data:
        return rp.together(self.units, self.public)


def sample(
    seed: int | str,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    units: int = 4,
    shares: bool = False,
    made: Callable[[rp.World], Private] | None = None,
    attribute: bool = False,
) -> Sample:
    """A sample over any relation, or over what is made; by an attribute of units in a joined table."""
    random = Random(seed)
    plan = rp.by_attribute(rp.draft(random, rp.attributed)) if attribute else rp.draft(random, made)
    plan = rp.shared(random, plan) if shares else plan
    public = rp.publics(random, plan)
    data = {u: rp.unit_rows(random, u, random.choice([3, 5, 9])) for u in range(1, units + 1)}
    found = rp.facts(plan, rp.together(data, public), random)
    return Sample(plan, found, bound(plan, found), data, public, random)
