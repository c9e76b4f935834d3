"""Exact -> Noisy: the only function of that type in dpquery."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from dpquery.mechanisms import BitSource, sample
from dpquery.plan.release import ListedKeys, NoKeys, PrivateKeys, Release, ReleasedKeys
from dpquery.privacy.cost import Priced
from dpquery.values.exact import Exact
from dpquery.values.noisy import Noisy
from dpquery.values.types import Value

Row = tuple[Value, ...]


def add(exact: Exact, release: Release, priced: Priced, bits: BitSource) -> Noisy:
    """M6. The released groups with fresh noise on every part.

    Listed keys all appear, those without rows as noise around 0. Private keys appear where the noisy count of distinct units passes the threshold;
    that count is the one released. Groups come sorted by key, so that their order tells nothing of the engine's.

    Given   the exact sums, the noise and threshold that were charged, a source of independent bits.
    Claim   what is released is a function of the noisy vector: the exact integer of each part and group plus a draw of its own (M5). Over listed
            keys it is all of that vector, over private keys the groups whose noisy count of units, less (minimum - 1), reaches the threshold.
    Proof   Exact integers leave this module as arguments of one addition each. Groups out of the key list are never looked up. The other parts of
            groups that do not pass are not drawn: as draws are independent, that is as drawing and dropping them. Keys alone decide the order.
    Tight   Nothing to reach: a sum. Too little noise, or a threshold too low, is found out: test_a_third_of_the_noise_is_found_out,
            test_a_threshold_too_low_is_found_out
    Source  Dwork et al. 2006 (Laplace mechanism); Korolova et al. 2009 (thresholds).
    """
    match release.keys:
        case NoKeys():
            return _all(((),), exact.sums, priced, bits)
        case ListedKeys(rows=rows):
            return _all(rows, _aligned(exact, rows), priced, bits)
        case ReleasedKeys():
            raise AssertionError("a list of released keys is known by now")
        case PrivateKeys(count=count, minimum=minimum):
            return _selected(exact, priced, bits, count, minimum)
        case _:
            assert_never(release.keys)


def _all(keys: Sequence[Row], sums: Sequence[Sequence[int]], priced: Priced, bits: BitSource) -> Noisy:
    return _sorted(keys, [_noised(column, priced, part, bits) for part, column in enumerate(sums)])


def _aligned(exact: Exact, rows: Sequence[Row]) -> list[list[int]]:
    """The exact sums in the order of the key list, 0 where no row has the key."""
    place = {key: i for i, key in enumerate(exact.keys)}
    order = [place.get(row) for row in rows]
    return [[0 if i is None else column[i] for i in order] for column in exact.sums]


def _noised(column: Sequence[int], priced: Priced, part: int, bits: BitSource) -> list[int]:
    noise = sample(priced.noises[part], len(column), bits)
    return [int(value) + int(z) for value, z in zip(column, noise, strict=True)]


def _selected(exact: Exact, priced: Priced, bits: BitSource, count: int, minimum: int) -> Noisy:
    """The groups whose noisy count of distinct units, less (minimum - 1), reaches the threshold; other parts are drawn for these alone."""
    if priced.threshold is None:
        raise AssertionError("private keys without a threshold")
    least = priced.threshold + minimum - 1
    noisy_count = _noised(exact.sums[count], priced, count, bits)
    kept = [i for i, value in enumerate(noisy_count) if value >= least]
    columns = [
        [noisy_count[i] for i in kept] if part == count else _noised([column[i] for i in kept], priced, part, bits)
        for part, column in enumerate(exact.sums)
    ]
    return _sorted([exact.keys[i] for i in kept], columns)


def _sorted(keys: Sequence[Row], columns: Sequence[Sequence[int]]) -> Noisy:
    order = sorted(range(len(keys)), key=lambda i: tuple((value is None, value) for value in keys[i]))
    return Noisy(tuple(keys[i] for i in order), tuple(tuple(column[i] for i in order) for column in columns))
