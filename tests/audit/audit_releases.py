"""Many releases of the same exact sums by the product's own noise: what comes after aggregation, without the wait for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from audit_shapes import Pair, groups, laid_out
from audit_tester import Array, Found, by_components, by_histogram, by_likelihood, claims, judged

from dpquery.mechanisms import Noise, SystemBits
from dpquery.plan.release import ListedKeys, Mechanism, PrivateKeys, Release
from dpquery.privacy.cost import Priced
from dpquery.release import noise
from dpquery.values.exact import Exact

CHUNK = 20_000  # releases at a time


@dataclass(frozen=True)
class Audit:
    """What the testers found of each claim, from so many releases of either data set."""

    likelihood: list[Found]
    histogram: list[Found]
    components: list[Found]

    @property
    def broken(self) -> bool:
        """Whether a claim is refuted."""
        return any(one.broken for one in (*self.likelihood, *self.histogram, *self.components))


def audited(pair: Pair, count: int, drawn: Priced | None = None) -> Audit:
    """The releases put to the test. `drawn` is what the noise is really drawn by, where that differs from what is charged."""
    priced = pair.prepared.blocks[0].priced
    one, two = sums(pair, 0), sums(pair, 1)
    first, second = (released(pair.prepared.blocks[0].release, drawn or priced, side, count) for side in (one, two))
    scores = (by_likelihood(out, one, two, priced) for out in (first, second))
    flat = [out.reshape(count, -1) for out in (first, second)]
    promised = claims(priced)
    return Audit(judged(*scores, promised), judged(*by_histogram(*flat), promised), judged(*by_components(*flat), promised))


def sums(pair: Pair, side: int) -> Array:
    """One data set's exact sums, groups by parts: 0 in a listed group without rows, NaN in a private one."""
    found = groups(pair, side)
    absent = np.nan if isinstance(pair.prepared.blocks[0].release.keys, PrivateKeys) else 0.0
    return np.array([found.get(key, (absent,) * len(pair.prepared.blocks[0].priced.noises)) for key in laid_out(pair)], dtype=float)


def released(release: Release, drawn: Priced, given: Array, count: int) -> Array:
    """So many releases of these sums: releases by groups by parts; NaN where a group does not show."""
    return np.concatenate([_chunk(release, drawn, given, min(CHUNK, count - at)) for at in range(0, count, CHUNK)])


def _chunk(release: Release, drawn: Priced, given: Array, count: int) -> Array:
    there = [i for i in range(len(given)) if not np.isnan(given[i, 0])]
    keys = tuple((at,) for at in range(count * len(there)))
    exact = Exact(keys, tuple(tuple([int(given[i, part]) for i in there] * count) for part in range(given.shape[1])))
    rule = release.keys if isinstance(release.keys, PrivateKeys) else ListedKeys(keys, "")
    noisy = noise.add(exact, replace(release, keys=rule), drawn, SystemBits())
    found = np.full((count, *given.shape), np.nan)
    if noisy.keys:
        at, place = np.divmod(np.array(noisy.keys)[:, 0], len(there))
        found[at, np.array(there)[place]] = np.array(noisy.sums, dtype=float).T
    return found


# ---- weakened noise, for power -------------------------------------------------------------------------------------------------------


def weaker(priced: Priced, multiple: Fraction) -> Priced:
    """Noise of this multiple of the scale, charged as before."""
    return replace(priced, noises=tuple(_scaled(drawn, multiple) for drawn in priced.noises))


def _scaled(drawn: Noise, multiple: Fraction) -> Noise:
    return Noise(drawn.mechanism, drawn.parameter * (multiple if drawn.mechanism is Mechanism.LAPLACE else multiple**2))


def lowered(priced: Priced, by: int) -> Priced:
    """A threshold that is lower by so much, charged as before."""
    return replace(priced, threshold=max(1, (priced.threshold or 1) - by))
