"""Exact -> Noisy: the only function of that type in dpquery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import assert_never

from dpquery.mechanisms import BitSource, Noise, choose, sample
from dpquery.plan.leading import Leading, led
from dpquery.plan.release import Bins, Choosing, ListedKeys, NoKeys, Part, PrivateKeys, Release, ReleasedKeys
from dpquery.privacy.cost import Priced
from dpquery.release.ranks import Aim, aim, scores
from dpquery.values.exact import Exact
from dpquery.values.noisy import Noisy
from dpquery.values.types import Value

Row = tuple[Value, ...]


def add(exact: Exact, release: Release, priced: Priced, bits: BitSource) -> Noisy:
    """M6. The released groups with fresh noise on every part.

    Listed keys all appear, those without rows as noise around 0. Private keys appear where the noisy count of distinct units passes the threshold;
    that count is the one released. Groups come sorted by key, so that their order tells nothing of the engine's.

    Given   the exact sums, the noise and threshold that were charged, a source of independent bits.
    Claim   what is released is a function of the noisy vector: each exact integer of each part and group, those of bins without rows among them,
            plus a draw of its own (M5), and of a part that is chosen from which of a group's integers, or of their scores by rank (C12), that is
            (M7), never how large; or, of a part that is compared (C17), which group's integer, or which negated one. Over listed keys
            it is all of that vector, over private keys the groups whose noisy count of units, less (minimum - 1), reaches the threshold.
    Proof   Exact integers leave this module as arguments of one addition each, or as scores of M7, whose result is all that is kept.
            Groups out of the key list are never looked up. The other parts of groups that do not pass are not drawn: as draws are independent,
            that is as drawing and dropping them. Keys alone decide the order.
    Tight   Nothing to reach: a sum. Too little noise, or a threshold too low, is found out: test_a_third_of_the_noise_is_found_out,
            test_a_threshold_too_low_is_found_out
    Source  Dwork et al. 2006 (Laplace mechanism); Korolova et al. 2009 (thresholds).
    """
    numbers = [part.numbers for part in release.table.parts]
    column = _Columns(exact, [_aim(part, noise) for part, noise in zip(release.table.parts, priced.noises, strict=True)])
    match release.keys:
        case NoKeys():
            return _all(((),), [0], column, numbers, priced, bits, {})
        case ListedKeys(rows=rows):
            place = {key: i for i, key in enumerate(exact.keys)}
            return _all(rows, [place.get(row) for row in rows], column, numbers, priced, bits, led(release))
        case ReleasedKeys():
            raise AssertionError("a list of released keys is known by now")
        case PrivateKeys(count=units, minimum=minimum):
            return _selected(column, numbers, priced, bits, units, minimum)
        case _:
            assert_never(release.keys)


def _aim(part: Part, noise: Noise) -> Aim | None:
    return aim(part.cell, noise) if isinstance(part.cell, Bins) else None


@dataclass(frozen=True, slots=True)
class _Columns:
    """The exact sums, and of each part from which a bin is chosen by rank what it is chosen for."""

    exact: Exact
    aims: Sequence[Aim | None]

    def __call__(self, part: int, places: Sequence[int | None], numbers: int) -> list[int]:
        """The exact integers of a part at these places among the groups, 0 where there is none: in a group without rows, in a bin without any.

        Of a part from which a bin is chosen by rank they are its scores.
        """
        exact, sought = self.exact, self.aims[part]
        if part not in exact.bins:
            column = exact.sums[part]
            return [0 if i is None else column[i] for i in places]
        found = [0] * (numbers * len(places))
        for start, i in zip(count(0, numbers), places, strict=False):
            for bin, value in () if i is None else exact.bins[part][i].items():
                found[start + bin] = value
        return found if sought is None else scores(found, numbers, sought)


def _all(
    keys: Sequence[Row],
    places: Sequence[int | None],
    column: _Columns,
    numbers: Sequence[int],
    priced: Priced,
    bits: BitSource,
    compared: Mapping[int, Leading],
) -> Noisy:
    columns = [
        _compared(column(part, places, each), compared[part], priced, part, bits)
        if part in compared
        else _noised(column(part, places, each), priced, part, bits, each)
        for part, each in enumerate(numbers)
    ]
    return in_order(keys, columns, numbers)


def _compared(column: Sequence[int], leading: Leading, priced: Priced, part: int, bits: BitSource) -> list[int]:
    """1 for the group that is chosen by its sum for having the most, -1 for the one with the least, 0 for all others."""
    sign = 1 if leading.most else -1
    return [sign * one for one in choose(priced.noises[part], [sign * value for value in column], len(column), bits)] if column else []


def _noised(column: Sequence[int], priced: Priced, part: int, bits: BitSource, each: int = 1) -> list[int]:
    if isinstance(priced.noises[part].mechanism, Choosing):
        return choose(priced.noises[part], column, each, bits)
    noise = sample(priced.noises[part], len(column), bits)
    return [int(value) + int(z) for value, z in zip(column, noise, strict=True)]


def _selected(column: _Columns, numbers: Sequence[int], priced: Priced, bits: BitSource, units: int, minimum: int) -> Noisy:
    """The groups whose noisy count of distinct units, less (minimum - 1), reaches the threshold; other parts are drawn for these alone."""
    if priced.threshold is None:
        raise AssertionError("private keys without a threshold")
    least = priced.threshold + minimum - 1
    noisy_count = _noised(column.exact.sums[units], priced, units, bits)
    kept = [i for i, value in enumerate(noisy_count) if value >= least]
    columns = [
        [noisy_count[i] for i in kept] if part == units else _noised(column(part, kept, each), priced, part, bits, each)
        for part, each in enumerate(numbers)
    ]
    return in_order([column.exact.keys[i] for i in kept], columns, numbers)


def in_order(keys: Sequence[Row], columns: Sequence[Sequence[int]], numbers: Sequence[int]) -> Noisy:
    """The groups sorted by key, NULL last, with their integers: `numbers` of each part to a group."""
    order = sorted(range(len(keys)), key=lambda i: tuple((value is None, value) for value in keys[i]))
    made = (tuple(z for i in order for z in column[i * each : (i + 1) * each]) for column, each in zip(columns, numbers, strict=True))
    return Noisy(tuple(keys[i] for i in order), tuple(made))
