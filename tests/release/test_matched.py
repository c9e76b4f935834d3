"""Sums that match their parts: exactly, with least squares behind them, and only where they can."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from dpquery.mechanisms import Noise
from dpquery.plan import draft
from dpquery.plan.release import Additive, Aggregate, Clamp, Elements, GroupCap, Idle, ListedKeys, Mechanism, NoKeys, Present, PrivateKeys, RowWeights
from dpquery.release.bars import Released
from dpquery.release.matched import FAR, Level, _tree, matched, variance
from dpquery.values.noisy import Noisy
from dpquery.values.types import INTEGER

KEYS = {0: ("a", "b", "c"), 1: (1, 2), 2: (None, "x", "y", "z")}
CLAMP = Clamp(0, 9)
UNIT_KEY = GroupCap(1, Idle.UNIT_KEY)
ONE = Aggregate("n", "x", "count", (0,), INTEGER, Fraction(1))


def released(places: tuple[int, ...], values: Any, scale: float, *, cell: Any = CLAMP, bounding: Any = UNIT_KEY, keys: Any = None) -> Released:
    listed = list(product(*(KEYS[place] for place in places)))
    kind = NoKeys() if not places else ListedKeys(tuple(listed), "")
    table = SimpleNamespace(parts=(SimpleNamespace(cell=cell),), bounding=bounding, keys=places)
    noise = Noise(Mechanism.GAUSSIAN, Fraction(scale))
    found = [values(key) for key in listed]
    release = SimpleNamespace(table=table, keys=keys or kind)
    return Released(cast(Any, release), Noisy(listed, [found]), cast(Any, SimpleNamespace(noises=(noise,))), (), draft.Level(0, 3, places))


def added(found: dict[Any, int], fine: tuple[int, ...], coarse: tuple[int, ...]) -> dict[Any, int]:
    sums: dict[Any, int] = {}
    for key, value in found.items():
        upper = tuple(key[fine.index(place)] for place in coarse)
        sums[upper] = sums.get(upper, 0) + value
    return sums


@pytest.mark.parametrize("floor", [False, True])
@pytest.mark.parametrize("size", [3, 10**4, 10**20])
@pytest.mark.parametrize("sets", [[(0, 1, 2), (0, 1), (0,), ()], [(0, 1), (1,)], [(), (1,), (2,), (1, 2)], [(2,), ()]])
def test_every_sum_is_that_of_its_parts(sets: list[tuple[int, ...]], size: int, floor: bool) -> None:
    random = Random(str((sets, size, floor)))
    finest = max(sets, key=len)
    for _ in range(20):
        true = {key: random.choice([0, 0, 1, size]) for key in product(*(KEYS[place] for place in finest))}
        leaves = []
        for places in sets:
            truth, scale = added(true, finest, places), random.choice([0.5, 30.0, 1e6])
            noisy = {key: value + round(random.gauss(0, scale**0.5)) for key, value in truth.items()}
            leaves.append((released(places, noisy.__getitem__, scale), ONE))
        found = dict(zip(sets, matched(leaves, floor), strict=True))
        whole = found[finest]
        assert whole is not None
        for places, values in found.items():
            assert values == added(whole, finest, places)
            assert not floor or min(values.values()) >= 0


def test_they_are_of_least_squares() -> None:
    """Each level weighed by its noise: as numpy solves it, but for the half unit that rounding may move each by."""
    random, sets = Random(1), [(0, 1, 2), (0, 1), ()]
    scales = {(0, 1, 2): 1e9, (0, 1): 4e8, (): 7e9}
    leaves = [(released(places, lambda key: random.randint(-(10**5), 10**5), scales[places]), ONE) for places in sets]
    found = matched(leaves, False)
    fine = list(product(*(KEYS[place] for place in sets[0])))
    rows, values = [], []
    for places, (leaf, _) in zip(sets, leaves, strict=True):
        for key, value in zip(leaf.noisy.keys, leaf.noisy.sums[0], strict=True):
            rows.append([float(tuple(one[sets[0].index(place)] for place in places) == key) / scales[places] ** 0.5 for one in fine])
            values.append(value / scales[places] ** 0.5)
    best = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0]
    assert found[0] is not None
    assert np.abs(best - [found[0][key] for key in fine]).max() < 2


def test_what_noise_does_not_explain_stays_apart() -> None:
    fine = released((0,), lambda key: 10, 4)
    far = FAR * (4 * 4) ** 0.5
    for beyond, apart in ((int(far) - 1, False), (int(far) + 1, True)):
        total = released((), {(): 30 + beyond}.__getitem__, 4)
        parts, whole = matched([(fine, ONE), (total, ONE)], True)
        assert parts is not None
        assert whole is not None
        assert (whole == {(): 30 + beyond} and set(parts.values()) == {10}) is apart
        assert (sum(parts.values()) == whole[()]) is not apart


@pytest.mark.parametrize(
    ("more", "adds_up"),
    [
        ({"cell": Present()}, True),
        ({"cell": Present(), "bounding": GroupCap(3, Idle.ALL_KEYS)}, False),
        ({"bounding": GroupCap(3, Idle.ALL_KEYS)}, True),
        ({"bounding": GroupCap(2)}, False),
        ({"bounding": RowWeights(4)}, False),
        ({"cell": Additive(4), "bounding": RowWeights(4)}, True),
        ({"cell": Elements(4)}, False),
        ({"keys": PrivateKeys(0)}, False),
    ],
)
def test_only_what_adds_up_is_matched(more: dict[str, Any], adds_up: bool) -> None:
    found = matched([(released((0,), lambda key: 1, 9, **more), ONE), (released((), lambda key: 5, 9), ONE)], True)
    assert [one is not None for one in found] == [adds_up, adds_up]


def test_variances_are_those_of_the_laws() -> None:
    b, far = 2.5, 400
    weights = np.exp(-np.abs(np.arange(-far, far + 1)) / b)
    assert variance(Noise(Mechanism.LAPLACE, Fraction(b))) == pytest.approx(float((weights * np.arange(-far, far + 1) ** 2).sum() / weights.sum()))
    assert variance(Noise(Mechanism.LAPLACE, Fraction(10**12))) == pytest.approx(2e24)
    assert variance(Noise(Mechanism.GAUSSIAN, Fraction(7))) == 7
    assert variance(Noise(Mechanism.LAPLACE, Fraction(1, 400))) > 0


def test_many_levels_of_many_groups_are_no_more_work_than_there_are_groups() -> None:
    levels = [Level(tuple(range(n)), {tuple(range(k, k + n)): k for k in range(2000)}, 100.0) for n in range(31, -1, -1) if n]
    with np.errstate(all="raise"):
        found = _tree(levels, True)
    assert all(max(abs(value).bit_length() for value in one.values()) < 40 for one in found.values())
