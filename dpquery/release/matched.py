"""Sums that match their parts: counts and sums of several levels of groups, moved so that each is the sum of those that it is made of.

Least squares over a tree of sums and parts, each weighed by its noise (Hay, Rastogi, Miklau and Suciu 2010, section 4), then from the top down whole
grid units, not below 0 where the bounded values are not. A function of released values and of public noise alone (Dwork and Roth 2014, proposition
2.1). A sum further from its parts than noise explains has rows that are in none of them, of keys that are not listed: it is left apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dpquery.mechanisms import Noise
from dpquery.plan.release import Additive, Aggregate, Clamp, GroupCap, Idle, ListedKeys, Mechanism, NoKeys, Present, RowWeights
from dpquery.release.bars import Released
from dpquery.values.types import Value

FINE = 2**40  # estimates are whole numbers of this part of a grid unit, weights of this part of the greatest
NEAR = 2**20  # of these: what rounding may have moved an estimate by
LEAST = 2.0**-40  # a variance that can be divided by
FAR = 6  # standard deviations; noise alone lies beyond them less than once in 500 (Laplace, exp(-6 sqrt 2): 0.0002)
Key = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """The noisy integers of one level, by key; which keys these are; the variance of each."""

    places: tuple[int, ...]
    values: Mapping[Key, int]
    variance: float


def matched(leaves: Sequence[tuple[Released, Aggregate]], floor: bool) -> list[dict[Key, int] | None]:
    """Of each level the integers that add up, by key; None of a level that nothing is added up to. `floor`: none is below 0."""
    levels = [_level(released, one) for released, one in leaves]
    known = [level for level in levels if level is not None]
    chain = _chain(known)
    if len(chain) < 2 or len({one.step for _, one in leaves}) > 1:
        return [None] * len(leaves)
    found = _tree(chain, floor)
    finest = chain[0]
    for level in known:
        if level.places not in found and set(level.places) < set(finest.places):
            sums = dict.fromkeys(level.values, 0)
            for key, value in found[finest.places].items():
                upper = _projected(key, finest, level)
                if upper in sums:
                    sums[upper] += value
            found[level.places] = sums
    return [None if level is None else found.get(level.places) for level in levels]


def _level(released: Released, one: Aggregate) -> Level | None:
    """The level, where what it counts is of every group of it, and adds up over finer ones: no cap leaves a unit out of a group."""
    release, keys = released.release, released.release.keys
    if (
        released.level is None
        or len(one.parts) != 1
        or not isinstance(keys, NoKeys | ListedKeys)
        or len(release.table.keys) != len(released.level.places)
    ):
        return None
    match release.table.parts[one.parts[0]].cell, release.table.bounding:
        case Present(), GroupCap(idle=Idle.UNIT_KEY | Idle.NO_KEYS):
            pass
        case Clamp(), GroupCap(idle=idle) if idle is not None:
            pass
        case Additive(), RowWeights():
            pass
        case _:
            return None
    part = one.parts[0]
    values = dict(zip(released.noisy.keys, map(int, released.noisy.sums[part]), strict=True))
    return Level(released.level.places, values, variance(released.priced.noises[part]))


def variance(noise: Noise) -> float:
    """That of one draw: of the discrete Gaussian at most its parameter, of the discrete Laplace of scale b 2q / (1 - q)^2 with q = e^(-1 / b)."""
    if noise.mechanism is Mechanism.GAUSSIAN:
        return float(noise.parameter)
    q = math.exp(-1 / float(noise.parameter))
    return max(2 * q / math.expm1(-1 / float(noise.parameter)) ** 2, LEAST)


def _chain(levels: Sequence[Level]) -> list[Level]:
    """Levels, the finest first, of which each groups by some of the keys of the one before."""
    found: list[Level] = []
    for level in sorted(levels, key=lambda one: -len(one.places)):
        if not found or set(level.places) < set(found[-1].places):
            found.append(level)
    return found


def _projected(key: Key, fine: Level, coarse: Level) -> Key:
    return tuple(key[fine.places.index(place)] for place in coarse.places)


# ---- a chain -------------------------------------------------------------------------------------------------------------------------

Estimate = tuple[int, float]  # in units of 1 / FINE, so that sums are exact; and its variance


def _tree(chain: Sequence[Level], floor: bool) -> dict[tuple[int, ...], dict[Key, int]]:
    """The integers of each level of a chain: estimates from the parts up, then whole numbers from the sums down."""
    estimates: list[dict[Key, Estimate]] = [{key: (value * FINE, chain[0].variance) for key, value in chain[0].values.items()}]
    parts: list[dict[Key, list[Key]]] = [{}]
    for fine, coarse in pairwise(chain):
        under: dict[Key, list[Key]] = {}
        for key in fine.values:
            under.setdefault(_projected(key, fine, coarse), []).append(key)
        found = {key: _joined(value, coarse.variance, [estimates[-1][one] for one in under.get(key, ())]) for key, value in coarse.values.items()}
        estimates.append({key: estimate for key, (estimate, _) in found.items()})
        parts.append({key: under[key] for key, (_, adds_up) in found.items() if adds_up})
    fixed: dict[Key, int] = {}
    whole: dict[tuple[int, ...], dict[Key, int]] = {}
    for place in range(len(chain) - 1, -1, -1):
        mine = {key: fixed[key] if key in fixed else _whole(value, floor) for key, (value, _) in estimates[place].items()}
        whole[chain[place].places], fixed = mine, {}
        for key, below in parts[place].items():
            fixed |= dict(zip(below, _shared(mine[key], [estimates[place - 1][one] for one in below], floor), strict=True))
    return whole


def _joined(value: int, variance: float, below: Sequence[Estimate]) -> tuple[Estimate, bool]:
    """What a sum and its parts say of it together, and whether noise alone can be between them."""
    total, spread = sum(x for x, _ in below), math.fsum(v for _, v in below)
    away = value * FINE - total
    if not below or abs(away / FINE) > FAR * math.sqrt(variance + spread):
        return (value * FINE, variance), False
    weight = round(spread / (spread + variance) * FINE)
    return (total + away * weight // FINE, spread * variance / (spread + variance)), True


def _whole(value: int, floor: bool) -> int:
    nearest = (value + FINE // 2) // FINE
    return max(0, nearest) if floor else nearest


def _shared(total: int, below: Sequence[Estimate], floor: bool) -> list[int]:
    """Whole numbers that add up to the total, as near to the estimates as may be; none below 0 with `floor`, under which the total is none either."""
    most = max(v for _, v in below)
    weights = [max(1, round(v / most * FINE)) for _, v in below]
    left, moved = set(range(len(below))), [0] * len(below)
    while True:
        rest, weight = total * FINE - sum(below[i][0] for i in left), sum(weights[i] for i in left)
        for i in left:
            moved[i] = below[i][0] + rest * weights[i] // weight
        under = {i for i in left if floor and moved[i] < -NEAR}
        if not under:
            break
        left -= under
        for i in under:
            moved[i] = 0
    found = [max(0, value // FINE) if floor else value // FINE for value in moved]
    for i in sorted(range(len(below)), key=lambda i: found[i] * FINE - moved[i])[: total - sum(found)]:
        found[i] += 1
    return found
