"""The best of several caps: each is reached by a unit at the ceiling, and a plan in which they are not of the same rows is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
import random_plans as rp
from interpreter import Data, run
from neighbours import moved

from dpquery.errors import Fault
from dpquery.plan.draft import AggregateAsk, Contributions, Draft
from dpquery.plan.release import Additive, Bins, Cell, Clamp, Elements, One, Part, Release, Units
from dpquery.plan.scalar import Interval
from dpquery.privacy import Facts, bound, enforced, lemmas, sensitivities
from dpquery.privacy.raced import best_of
from dpquery.values.types import Adjacency

ORDERS = rp.World(Random(0)).scan("orders")
AMOUNT = next(c.column for c in ORDERS.columns if c.column.name == "amount")


def raced(card: str = "race_count", ceiling: int = 12) -> Release:
    """A race of caps over orders."""
    counts = card == "race_count"
    row = None if counts else Interval(Fraction(0), Fraction(5))
    group = Interval(Fraction(0), Fraction(ceiling))
    ask = AggregateAsk("a0", card, card, None if counts else AMOUNT, None, group, row)
    return bound(Draft(ORDERS, (), (), (ask,), Contributions(1, 1, 99)), Facts({}, None, ""))


def orders(unit: int, count: int, amount: int) -> list[dict[str, object]]:
    return [{"oid": 100 * unit + i, "uid": unit, "item": "v", "amount": amount, "score": None} for i in range(count)]


@pytest.mark.lemma("C18")
@pytest.mark.parametrize("card", ["race_count", "race_total"])
@pytest.mark.parametrize("adjacency", [*Adjacency])
def test_c18_a_unit_reaches_the_claim_of_every_cap(card: str, adjacency: Adjacency) -> None:
    """One with as much as the ceiling moves every cap's sum by all of it; one with less, all of the caps below."""
    release = raced(card)
    assert "C18" in lemmas(release)
    other = orders(2, 3, 1)
    before, ours = run(release, Data({"orders": other})), run(release, Data({"orders": other + orders(1, 13, 9)}))
    claims = sensitivities(enforced(release), adjacency)
    assert len(claims) == len(release.table.parts) > 2
    for part, claim in enumerate(claims):
        found = moved(before, ours, part)
        assert found.within(claim)
        assert (found.l0, found.linf, found.l1, found.l2_squared) == (claim.l0, claim.linf, claim.l1, claim.l2_squared)


@pytest.mark.lemma("C18")
@pytest.mark.parametrize("card", ["race_count", "race_total"])
def test_c18_no_cap_adds_up_to_more_than_a_higher_one(card: str) -> None:
    release, random = raced(card, 40), Random(7)
    for _ in range(30):
        rows = [row for unit in range(4) for row in orders(unit, random.randint(0, 20), random.randint(-9, 9))]
        (sums,) = run(release, Data({"orders": rows})).values()
        assert list(sums) == sorted(sums)


def _changed(release: Release, part: Part) -> Release:
    others = release.table.parts[1:]
    return replace(release, table=replace(release.table, parts=(part, *others)))


def _cells(release: Release, cells: Sequence[Cell]) -> Release:
    """The release with parts of its first part's rows, in these cells."""
    parts = tuple(replace(release.table.parts[0], cell=cell) for cell in cells)
    aggregates = tuple(replace(one, parts=tuple(range(len(parts)))) for one in release.aggregates)
    return replace(release, table=replace(release.table, parts=parts), aggregates=aggregates)


@pytest.mark.lemma("C18")
def test_c18_a_plan_whose_caps_are_of_different_rows_is_refused() -> None:
    counts, totals = raced(), raced("race_total")
    first, value = counts.table.parts[0], totals.table.parts[0]
    assert isinstance(value.row, Units)
    wrong = [
        _changed(counts, replace(first, row=One(AMOUNT))),
        _changed(counts, replace(first, cell=Clamp(-1, 1))),
        _changed(counts, replace(first, cell=Clamp(0, 99))),
        _changed(totals, replace(value, row=replace(value.row, low=-1))),
        replace(totals, table=replace(totals.table, parts=tuple(replace(p, row=replace(value.row, low=-1)) for p in totals.table.parts))),
        replace(totals, table=replace(totals.table, parts=tuple(replace(p, row=replace(value.row, centred=True)) for p in totals.table.parts))),
        _changed(counts, counts.table.parts[1]),
        *(_cells(counts, cells) for cells in ([Additive(9), Additive(10)], [Elements(9), Elements(10)], [Bins(1, 2, 3), Bins(2, 2, 3)])),
    ]
    for one in wrong:
        with pytest.raises(Fault) as caught:
            best_of(one)
        assert caught.value.code == "PLAN_BROKEN"
        assert caught.value.message == "caps of one aggregate are not of the same rows, none below 0, under rising ceilings (C18)"
    assert best_of(counts) == best_of(totals) == ("C18",)
