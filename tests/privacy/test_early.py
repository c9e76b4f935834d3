"""L26: which cells may be made before a join, and that they are the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from random import Random

import interpreter
import pytest
import random_plans as rp
from evaluated import value
from neighbours import sample

from dpquery.plan.functions import call
from dpquery.plan.rel import CapRows, Compute, Join, Keep, Lookup, Match, Private, output
from dpquery.plan.release import Clamp, GroupCap, Idle, Key, One, Part, RowWeights, Units, UnitTable
from dpquery.plan.scalar import Column, Scalar
from dpquery.privacy.early import early
from dpquery.values.types import BOOLEAN, INTEGER

WORLD = rp.World(Random(5))
USERS, ORDERS, REGIONS = WORLD.scan("users"), WORLD.scan("orders"), WORLD.public("regions")
UID, COUNTRY, AGE = output(USERS)
_, _, ITEM, AMOUNT, _ = output(ORDERS)
NEW = Column(990, "n", INTEGER)
UNIT = GroupCap(1, Idle.UNIT_KEY)


def table(rel: Private, key: Scalar = COUNTRY, read: Scalar = AMOUNT, by: GroupCap | RowWeights = UNIT, where: Scalar | None = None) -> UnitTable:
    parts = (Part(One(), Clamp(0, 9), where), Part(Units(read, Fraction(1), 0, 9), Clamp(0, 9)))
    return UnitTable(rel, (Key("k", key, key.type),), parts, by)


def joined(left: Private = ORDERS, right: Private = USERS, join: Join = Join.INNER, on: Scalar | None = None) -> Match:
    return Match(left, right, join, on)


def regions(below: Private, fanout: int, key: Column = COUNTRY) -> Lookup:
    return Lookup(below, REGIONS, Join.INNER, call("eq", key, REGIONS.columns[0]), fanout)


def old(column: Column) -> Scalar:
    return call("is_null", column)


def every(columns: Sequence[Column]) -> Scalar:
    """A condition that reads all of these columns."""
    return reduce(lambda one, other: call("and", one, other), map(old, columns))


@pytest.mark.lemma("L26")
def test_random_cells_made_before_the_join_are_those_made_after_it() -> None:
    seen = 0
    for seed in range(200):
        s = sample(f"early {seed}", attribute=True)
        whole, data = s.release.table, s.data
        found = early(whole)
        if found is None:
            continue
        own = interpreter.cells(replace(whole, input=found.rows, keys=(), bounding=GroupCap(1, Idle.NO_KEYS)), data, None)
        keys = {unit: tuple(value(key.value, row) for key in whole.keys) for unit, row in interpreter.rows(found.beside, data)}
        wanted = {(unit, keys[unit]): cell for (unit, _), cell in own.items() if unit in keys}
        assert interpreter.cells(whole, data, None) == wanted, seed
        seen += bool(wanted)
    assert seen > 20


def test_rows_of_the_sides_are_told_apart() -> None:
    computed = Compute(Keep(joined(), old(ITEM)), ((NEW, call("add", AMOUNT, AMOUNT)),))
    for rel in (joined(), joined(USERS, ORDERS), Keep(joined(), old(AMOUNT)), computed, regions(joined(), 1), joined(CapRows(ORDERS, 3))):
        assert early(table(rel)) is not None
    assert early(table(computed, read=NEW)) is not None
    assert early(table(regions(joined(), 1), key=REGIONS.columns[1])) is not None


def test_what_reads_all_of_one_side_stands_on_it() -> None:
    """A filter, a column, parts, keys and a condition of a lookup."""
    flag = Column(991, "all", BOOLEAN)
    ours, theirs = every(output(ORDERS)), every(output(USERS))
    kept = early(table(Keep(joined(), ours)))
    assert kept is not None
    assert (kept.rows, kept.beside) == (Keep(ORDERS, ours), USERS)
    made = early(table(Compute(joined(), ((flag, ours),)), where=flag))
    assert made is not None
    assert (made.rows, made.beside) == (Compute(ORDERS, ((flag, ours),)), USERS)
    assert early(table(joined(), where=ours)) is not None
    assert early(table(joined(), key=theirs)) is not None
    met = Lookup(joined(), REGIONS, Join.INNER, call("and", call("eq", COUNTRY, REGIONS.columns[0]), theirs), 1)
    found = early(table(met))
    assert found is not None
    assert (found.rows, found.beside) == (ORDERS, replace(met, input=USERS))


def test_l26_what_reads_both_sides_is_joined_first() -> None:
    """One condition less each: an outer join, a condition, several rows of a unit, a filter or a column of the other side, other bounding."""
    both = call("add", AMOUNT, AGE)
    for rel in (
        joined(join=Join.LEFT),
        joined(USERS, ORDERS, Join.LEFT),
        joined(on=old(ITEM)),
        joined(ORDERS, WORLD.scan("orders")),
        Keep(joined(), old(AGE)),
        Keep(joined(), call("eq", AMOUNT, AGE)),
        joined(right=Keep(USERS, old(AGE))),
        regions(joined(), 2),
        regions(joined(), 1, ITEM),
        CapRows(joined(), 3),
        ORDERS,
    ):
        assert early(table(rel)) is None
    other = WORLD.scan("orders")
    for pair in (joined(ORDERS, other), joined(other, ORDERS)):  # several rows of a unit on either side, so that its cell would count several times
        assert early(table(pair, key=output(other)[2])) is None
    assert early(table(joined(), key=ITEM)) is None
    assert early(table(joined(), read=AGE)) is None
    assert early(table(joined(), read=both)) is None
    assert early(table(joined(), where=old(COUNTRY))) is None
    assert early(table(Compute(joined(), ((NEW, both),)), read=NEW)) is None
    assert early(table(joined(), by=GroupCap(1))) is None
    assert early(table(joined(), by=RowWeights(3))) is None
