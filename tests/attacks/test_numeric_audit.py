"""End to end: exact sums of neighbouring data sets by the engine, noise by the product, and a lower bound on epsilon from what comes out.

The statistic is the log-likelihood ratio of the two data sets; a group that only one of them can show settles it. The threshold of the event is
chosen on one half of the releases; on the other half Clopper-Pearson bounds hold, all of them at once, with probability 1 - 10^-6. So the bound on
epsilon passes the claim by chance at most once in a million runs of this file. Power: the same audit must find half the noise out.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import exp, inf, lgamma, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numeric_lab import Rows, inserted, summed

from dpquery.engine.session import Prepared
from dpquery.mechanisms import Noise, SystemBits
from dpquery.plan.release import ListedKeys, Mechanism, PrivateKeys, Release
from dpquery.privacy.cost import Priced
from dpquery.release import noise
from dpquery.values.exact import Exact

CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
SHAPES = [
    "SELECT count(*), sum(signed), avg(plus) FROM orders",
    f"{CLAUSE}(noise = GAUSSIAN) count(*), sum(real) FROM orders",
    "SELECT k, count(*), sum(plus) FROM orders WHERE k IN ('a', 'c', 'd', 'e', 'f') GROUP BY k",
    f"{CLAUSE}(max_rows_contributed = 3) k, count(*), sum(signed) FROM orders WHERE k IN ('a', 'c', 'e') GROUP BY k",
    f"{CLAUSE}(delta = 0.0004) k, count(*), sum(plus) FROM orders GROUP BY k",
    f"{CLAUSE}(noise = GAUSSIAN, delta = 0.0004) k, count(DISTINCT pid) FROM orders GROUP BY k",
    "SELECT c, count(*), avg(age) FROM people GROUP BY c",
]
OTHERS: Rows = [(pid, key, pid % 4, 3, 0.25, 1) for pid in range(2, 40) for key in "ab"]
HEAVY: Rows = [(1, key, 9, 9, 9.0, 9) for key in "ef" for _ in range(3)]  # alone in e and f
ELSEWHERE: Rows = [(1, key, -9, 9, -9.0, -9) for key in "cd" for _ in range(3)]
PEOPLE: Rows = [(pid, "abc"[pid % 3], 3) for pid in range(2, 40)]
RELEASES = 60_000
FALSE_ALARM = 1e-6
Array = np.ndarray[Any, Any]


@cache
def neighbours(folder: Path, adjacency: str) -> tuple[list[tuple[Prepared, Exact]], list[tuple[Prepared, Exact]]]:
    first = inserted("people", [*PEOPLE, (1, "a", 5)]) + inserted("orders", [*OTHERS, *HEAVY])
    gone = inserted("people", PEOPLE) + inserted("orders", OTHERS)
    other = inserted("people", [*PEOPLE, (1, "b", 1)]) + inserted("orders", [*OTHERS, *ELSEWHERE])
    second = gone if adjacency == "add_remove" else other
    return summed(folder / adjacency / "one", first, adjacency, SHAPES, epsilon="1"), summed(
        folder / adjacency / "two", second, adjacency, SHAPES, epsilon="1"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


def laid_out(release: Release, one: Exact, two: Exact) -> tuple[list[Any], Array, Array]:
    """All groups of either data set, and each data set's sums in them (groups by parts); NaN where a group does not exist."""
    listed = isinstance(release.keys, ListedKeys)
    keys = list(release.keys.rows) if isinstance(release.keys, ListedKeys) else sorted({*one.keys, *two.keys}) if release.table.keys else [()]
    absent = 0.0 if listed else np.nan

    def sums(exact: Exact) -> Array:
        groups = list(exact.keys) if release.table.keys else [()]
        place = {key: i for i, key in enumerate(groups)}
        return np.array([[float(column[place[key]]) if key in place else absent for column in exact.sums] for key in keys])

    return keys, sums(one), sums(two)


def releases(release: Release, priced: Priced, sums: Array, count: int) -> Array:
    """So many releases of these sums by the product's own noise: releases by groups by parts; NaN where a group does not show."""
    there = [i for i in range(len(sums)) if not np.isnan(sums[i, 0])]
    keys = tuple((r, i) for r in range(count) for i in there)
    exact = Exact(keys, tuple(tuple(int(sums[i, part]) for _ in range(count) for i in there) for part in range(sums.shape[1])))
    rule = release.keys if isinstance(release.keys, PrivateKeys) else ListedKeys(keys, "")
    noisy = noise.add(exact, replace(release, keys=rule), priced, SystemBits())
    found = np.full((count, *sums.shape), np.nan)
    if noisy.keys:
        at = np.array(noisy.keys)
        found[at[:, 0], at[:, 1]] = np.array(noisy.sums, dtype=float).T
    return found


def ratio(out: Array, one: Array, two: Array, noises: tuple[Noise, ...]) -> Array:
    """The log-likelihood ratio of each release, infinite where a shown group exists in one data set only."""
    total = np.zeros(len(out))
    shown = ~np.isnan(out[:, :, 0])
    for part, drawn in enumerate(noises):
        total += np.nansum(far(out[:, :, part] - two[:, part], drawn) - far(out[:, :, part] - one[:, part], drawn), axis=1)
    total[(shown & np.isnan(two[:, 0])).any(axis=1)] = inf
    total[(shown & np.isnan(one[:, 0])).any(axis=1)] = -inf
    return total


def far(distance: Array, drawn: Noise) -> Array:
    """Less the log-likelihood of the noise, but for a constant."""
    v = float(drawn.parameter)
    found: Array = abs(distance) / v if drawn.mechanism is Mechanism.LAPLACE else distance**2 / (2 * v)
    return found


def upper(hits: int, count: int, alpha: float) -> float:
    """Clopper-Pearson: the p at which so few hits have probability alpha."""
    if hits >= count:
        return 1.0
    k = np.arange(hits + 1)
    ways = np.array([lgamma(count + 1) - lgamma(i + 1) - lgamma(count - i + 1) for i in k])
    low, high = hits / count, 1.0
    for _ in range(60):
        p = (low + high) / 2
        terms = ways + k * log(p) + (count - k) * np.log1p(-p)
        likely = terms.max() + log(np.exp(terms - terms.max()).sum()) > log(alpha)
        low, high = (p, high) if likely else (low, p)
    return high


def epsilon_at_least(one: Array, two: Array, delta: float, alpha: float) -> float:
    """A lower bound on epsilon from the statistics of the releases of two data sets, wrong with probability at most 2 alpha."""
    half = len(one) // 2
    chosen, best = inf, -inf
    for t in np.unique(np.quantile(np.concatenate([one[:half], two[:half]]), np.linspace(0.005, 0.999, 60), method="higher")):
        p, q = np.mean(one[:half] >= t), np.mean(two[:half] >= t)
        gain = log((p - 4 * (p / half) ** 0.5 - delta) / (q + 4 * (q / half) ** 0.5 + 14 / half)) if p - 4 * (p / half) ** 0.5 > delta else -inf
        chosen, best = (t, gain) if gain > best else (chosen, best)
    n = len(one) - half
    p = 1 - upper(n - int((one[half:] >= chosen).sum()), n, alpha)
    q = upper(int((two[half:] >= chosen).sum()), n, alpha)
    return log((p - delta) / q) if p > delta else -inf


def audited(one: tuple[Prepared, Exact], two: tuple[Prepared, Exact], drawn: Priced, count: int) -> float:
    """The larger of the bounds from both sides, with noise as in `drawn`."""
    (prepared, first), (_, second) = one, two
    release, claimed = prepared.release, prepared.priced
    _, a, b = laid_out(release, first, second)
    alpha = FALSE_ALARM / (4 * len(SHAPES) * 2)
    left, right = (ratio(releases(release, drawn, sums, count), a, b, drawn.noises) for sums in (a, b))
    delta = float(claimed.delta)
    return max(epsilon_at_least(left, right, delta, alpha), epsilon_at_least(-right, -left, delta, alpha))


@pytest.mark.lemma("P1", "P6", "M6")
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_no_release_tells_more_than_it_costs(folder: Path, adjacency: str, shape: int) -> None:
    one, two = (side[shape] for side in neighbours(folder, adjacency))
    assert one[0].priced == two[0].priced
    assert audited(one, two, one[0].priced, RELEASES // 4) <= float(one[0].priced.epsilon or 0)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_nor_do_many_more_releases_find_it_out(folder: Path, adjacency: str, shape: int) -> None:
    one, two = (side[shape] for side in neighbours(folder, adjacency))
    assert audited(one, two, one[0].priced, 4 * RELEASES) <= float(one[0].priced.epsilon or 0)


@pytest.mark.parametrize(("shape", "adjacency"), [(0, "add_remove"), (2, "replace_one"), (3, "add_remove"), (6, "add_remove")])
def test_a_third_of_the_noise_is_found_out(folder: Path, adjacency: str, shape: int) -> None:
    """Power: Laplace noise of a third of the scale, charged as before."""
    one, two = (side[shape] for side in neighbours(folder, adjacency))
    priced = one[0].priced
    weak = replace(priced, noises=tuple(Noise(n.mechanism, n.parameter / 3) for n in priced.noises))
    assert audited(one, two, weak, RELEASES // 4) > float(priced.epsilon or 0)


def test_a_threshold_too_low_is_found_out(folder: Path) -> None:
    """Power on delta: a lone unit's groups are shown far too often."""
    one, two = (side[4] for side in neighbours(folder, "add_remove"))
    priced = one[0].priced
    low = replace(priced, threshold=max(1, (priced.threshold or 1) - 30))
    assert audited(one, two, low, RELEASES // 4) > float(priced.epsilon or 0)


def test_clopper_pearson() -> None:
    assert upper(0, 1000, 1e-6) == pytest.approx(1 - exp(log(1e-6) / 1000), rel=1e-6)
    assert upper(5, 5, 1e-6) == 1
    assert Fraction(1, 2) < Fraction(upper(500, 1000, 0.01)) < Fraction(54, 100)
