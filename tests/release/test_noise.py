"""The noise line: what of the engine's result shows in what is released.

M6 is read off exactly: draws are stubbed by numbers that are all different, lie far apart and are no double of each other, so that of each released
integer it shows which draw was added to what.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, count
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from dpquery.mechanisms import BitSource, Noise, SystemBits
from dpquery.plan.leading import Leading
from dpquery.plan.release import Bins, Choosing, Clamp, Keys, ListedKeys, Mechanism, NoKeys, One, Part, Present, PrivateKeys
from dpquery.release import noise, ranks
from dpquery.values.exact import Exact
from dpquery.values.noisy import Noisy
from dpquery.values.types import Value

UNITS, SUM, BINS = Part(One(), Present()), Part(One(), Clamp(0, 9)), Part(One(), Bins(1, 1, 3))
MODE, RANK = Part(One(), Bins(2, 1, 4)), Part(One(), Bins(1, 1, 5, Fraction(1, 2)))
KEYS: tuple[tuple[Value, ...], ...] = (("d", 1), ("a", None), ("c", 2), ("a", 1), ("b", 7))
WIDE = 2**70  # no int64 holds it
PARTS = [(UNITS,), (UNITS, SUM), (SUM, UNITS, SUM, SUM), (SUM, BINS, UNITS, BINS), (BINS, UNITS, MODE, SUM, RANK, SUM)]


@dataclass
class Drawn:
    """What was asked for in place of noise: calls of `sample` and of `choose`, with what they gave."""

    bits: BitSource
    samples: list[tuple[Noise, list[int]]] = field(default_factory=list)
    choices: list[tuple[Noise, list[int], int, list[int]]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def sample(self, noise: Noise, count: int, bits: BitSource) -> Any:
        assert bits is self.bits
        assert not isinstance(noise.mechanism, Choosing)
        drawn = [(-1) ** k * (1000 * k + 1) for k in (next(self.numbers) for _ in range(count))]
        self.samples.append((noise, drawn))
        return np.array(drawn, dtype=np.int64)

    def choose(self, noise: Noise, scores: Sequence[int], each: int, bits: BitSource) -> list[int]:
        assert bits is self.bits
        assert isinstance(noise.mechanism, Choosing)
        found = [1000 * next(self.numbers) + 1 for _ in scores]
        self.choices.append((noise, list(scores), each, found))
        return found


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    stub = Drawn(SystemBits())
    monkeypatch.setattr(noise, "sample", stub.sample)
    monkeypatch.setattr(noise, "choose", stub.choose)
    return stub


def noises(parts: Sequence[Part]) -> tuple[Noise, ...]:
    """A noise of its own for each part, of both laws in turn; MODE and RANK are chosen from."""
    laws = (Mechanism.LAPLACE, Mechanism.GAUSSIAN)
    chosen = {MODE: Choosing.PERMUTE_AND_FLIP, RANK: Choosing.EXPONENTIAL}
    return tuple(Noise(chosen.get(part, laws[i % 2]), Fraction(10 + i, 3)) for i, part in enumerate(parts))


def exact_of(parts: Sequence[Part], keys: Sequence[tuple[Value, ...]]) -> Exact:
    """Integers that are all different and small beside the draws, a very wide one among them; a bin of each group is empty."""
    numbers = count(1)
    sums = tuple(() if part.numbers > 1 else tuple(next(numbers) for _ in keys) for part in parts)
    sums = tuple((*column[:-1], WIDE + column[-1]) if part == SUM else column for part, column in zip(parts, sums, strict=True))
    bins = {
        i: tuple({b: next(numbers) for b in range(part.numbers) if b != g % part.numbers} for g, _ in enumerate(keys))
        for i, part in enumerate(parts)
        if part.numbers > 1
    }
    return Exact(tuple(keys), sums, bins)


def integers(exact: Exact, part: int, numbers: int, key: tuple[Value, ...]) -> list[int]:
    """The exact integers of a part in a group: 0 where there are none."""
    if key not in exact.keys:
        return [0] * numbers
    group = exact.keys.index(key)
    return [exact.bins[part][group].get(b, 0) for b in range(numbers)] if part in exact.bins else [exact.sums[part][group]]


def add(exact: Exact, parts: Sequence[Part], keys: Keys, drawn: Drawn, threshold: int | None = None) -> Noisy:
    release = SimpleNamespace(keys=keys, table=SimpleNamespace(parts=parts), aggregates=())
    return noise.add(exact, cast(Any, release), cast(Any, SimpleNamespace(noises=noises(parts), threshold=threshold)), drawn.bits)


def holds(found: Noisy, exact: Exact, parts: Sequence[Part], drawn: Drawn, dropped: Sequence[int] = ()) -> None:
    """Each integer of each part and released group is the exact one and a whole draw of that part's noise, and no draw is used twice or for nothing:
    but for those `dropped`, which decided that a group does not appear."""
    used: Counter[tuple[Noise, int]] = Counter()
    assert len(found.sums) == len(parts)
    for i, (part, law) in enumerate(zip(parts, noises(parts), strict=True)):
        given = [integers(exact, i, part.numbers, key) for key in found.keys]
        if isinstance(law.mechanism, Choosing):
            chosen(found, exact, i, part, law, drawn)
        else:
            used.update((law, noisy - value) for noisy, value in zip(found.sums[i], chain.from_iterable(given), strict=True))
    used.update((noises(parts)[parts.index(UNITS)], draw) for draw in dropped)
    assert used == Counter((law, draw) for law, draws in drawn.samples for draw in draws)
    assert max(used.values(), default=1) == 1


def chosen(found: Noisy, exact: Exact, i: int, part: Part, law: Noise, drawn: Drawn) -> None:
    """What is released of the part is what `choose` made of each group's integers, or of their scores by rank: once, of all groups."""
    ((_, scores, each, marks),) = [call for call in drawn.choices if call[0] == law]
    assert each == part.numbers
    cell = cast(Bins, part.cell)
    aim = ranks.aim(cell, law)
    groups = {tuple(marks[at : at + each]): scores[at : at + each] for at in range(0, len(scores), each)}
    assert len(groups) == len(found.keys)
    for g, key in enumerate(found.keys):
        given = integers(exact, i, each, key)
        assert groups[found.sums[i][g * each : (g + 1) * each]] == (given if aim is None else ranks.scores(given, each, aim))


@pytest.mark.lemma("M6")
@pytest.mark.parametrize("parts", PARTS)
def test_m6_without_keys_each_integer_gets_a_draw_of_its_own(parts: tuple[Part, ...], drawn: Drawn) -> None:
    exact = exact_of(parts, [()])
    found = add(exact, parts, NoKeys(), drawn)
    assert found.keys == ((),)
    holds(found, exact, parts, drawn)


@pytest.mark.lemma("M6")
@pytest.mark.parametrize("parts", PARTS)
def test_m6_listed_keys_each_get_a_draw_of_their_own_with_rows_or_without(parts: tuple[Part, ...], drawn: Drawn) -> None:
    exact = exact_of(parts, KEYS)
    rows = (("zz", 0), *KEYS[:3], ("aa", 5))
    found = add(exact, parts, ListedKeys(rows, ""), drawn)
    assert found.keys == (("a", None), ("aa", 5), ("c", 2), ("d", 1), ("zz", 0))
    holds(found, exact, parts, drawn)


@pytest.mark.lemma("M6")
@pytest.mark.parametrize("minimum", [1, 4])
@pytest.mark.parametrize("parts", PARTS)
def test_m6_private_keys_pass_by_a_whole_draw_and_get_one_for_each_other_integer(parts: tuple[Part, ...], minimum: int) -> None:
    """At every noisy count as threshold, and at one more: which of the groups pass, and what is released of them."""
    units, exact, bits = parts.index(UNITS), exact_of(parts, KEYS), SystemBits()
    draws = [(-1) ** k * (1000 * k + 1) for k in range(1, len(KEYS) + 1)]  # the counts are drawn first, once for each group
    counts = [value + draw for value, draw in zip(exact.sums[units], draws, strict=True)]
    for least in (value + more for value in counts for more in (0, 1)):
        with pytest.MonkeyPatch.context() as patch:
            drawn = Drawn(bits)
            patch.setattr(noise, "sample", drawn.sample)
            patch.setattr(noise, "choose", drawn.choose)
            found = add(exact, parts, PrivateKeys(units, minimum), drawn, least - (minimum - 1))
        passed = {key for key, value in zip(KEYS, counts, strict=True) if value >= least}
        assert set(found.keys) == passed
        assert len(found.keys) == len(passed)
        holds(found, exact, parts, drawn, [draw for draw, value in zip(draws, counts, strict=True) if value < least])


@pytest.mark.lemma("M6")
@pytest.mark.parametrize("mechanism", Choosing)
@pytest.mark.parametrize("most", [True, False])
def test_m6_of_groups_that_are_compared_one_is_chosen_by_what_is_charged(mechanism: Choosing, most: bool, drawn: Drawn) -> None:
    """By its own sum, 0 where it has no rows, among all that are listed: one call of `choose`, with the noise as it stands, and no draw beside it."""
    exact, rows, law, sign = exact_of((SUM,), KEYS), (("zz", 0), *KEYS), Noise(mechanism, Fraction(17, 3)), 1 if most else -1
    one = SimpleNamespace(leading=Leading(most, len(rows)), parts=(0,))
    release = SimpleNamespace(keys=ListedKeys(rows, ""), table=SimpleNamespace(parts=(SUM,)), aggregates=(one,))
    found = noise.add(exact, cast(Any, release), cast(Any, SimpleNamespace(noises=(law,), threshold=None)), drawn.bits)
    assert not drawn.samples
    ((by, scores, each, marks),) = drawn.choices
    assert (by, scores, each) == (law, [sign * integers(exact, 0, 1, row)[0] for row in rows], len(rows))
    assert dict(zip(found.keys, found.sums[0], strict=True)) == {row: sign * mark for row, mark in zip(rows, marks, strict=True)}


def test_groups_come_by_key_however_the_engine_found_them() -> None:
    keys, columns = [("b", 2), (None, 1), ("b", None), ("a", 9), ("b", 1)], [[1, 2, 3, 4, 5], [10, 20, 30, 40, 50]]
    found = noise.in_order(keys, [*columns, [1, -1, 2, -2, 3, -3, 4, -4, 5, -5]], [1, 1, 2])
    assert found.keys == (("a", 9), ("b", 1), ("b", 2), ("b", None), (None, 1))
    assert found.sums == ((4, 5, 1, 3, 2), (40, 50, 10, 30, 20), (4, -4, 5, -5, 1, -1, 3, -3, 2, -2))
