"""Neighbouring data sets and how far they move a release."""

from __future__ import annotations

from dataclasses import dataclass
from math import tanh
from random import Random

import random_plans as rp
from interpreter import Data, Groups, run

from dpquery.plan.draft import Draft
from dpquery.plan.release import Release
from dpquery.privacy import Sensitivity, bound
from dpquery.values.types import Adjacency


@dataclass(frozen=True)
class Moved:
    """What one part of the exact sums moved by, over all groups."""

    l0: int
    linf: int
    l1: int
    l2_squared: int
    shifts: tuple[int, ...]

    def within(self, claim: Sensitivity) -> bool:
        """Whether every norm, and every price of the kind that Laplace noise has, stays within the claim."""
        norms = self.l0 <= claim.l0 and self.linf <= claim.linf and self.l1 <= claim.l1 and self.l2_squared <= claim.l2_squared
        scales = [1, 7, 1 + claim.linf]
        return norms and all(sum(_rho(s / b) for s in self.shifts) <= max(n * _rho(s / b) for n, s in claim.moves) * (1 + 1e-9) for b in scales)


def _rho(e: float) -> float:
    return e * tanh(e / 2)


def moved(one: Groups, other: Groups, part: int) -> Moved:
    zero = (0,) * (part + 1)
    shifts = tuple(abs(one.get(key, zero)[part] - other.get(key, zero)[part]) for key in {*one, *other})
    changed = tuple(s for s in shifts if s)
    return Moved(len(changed), max(shifts, default=0), sum(shifts), sum(s * s for s in shifts), changed)


def sums(release: Release, units: dict[int, rp.Bag], public: dict[str, list[tuple[object, ...]]]) -> Groups:
    return run(release, rp.together(units, public))


@dataclass(frozen=True)
class Sample:
    """A random statement with random data."""

    plan: Draft
    release: Release
    units: dict[int, rp.Bag]
    public: dict[str, list[tuple[object, ...]]]
    random: Random

    @property
    def data(self) -> Data:
        return rp.together(self.units, self.public)


def sample(seed: int, adjacency: Adjacency = Adjacency.ADD_REMOVE, units: int = 4) -> Sample:
    random = Random(seed)
    plan = rp.draft(random)
    public = rp.publics(random, plan)
    data = {u: rp.unit_rows(random, u) for u in range(1, units + 1)}
    release = bound(plan, rp.facts(plan, rp.together(data, public)), adjacency)
    return Sample(plan, release, data, public, random)
