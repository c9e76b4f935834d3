"""Plans that no reader of SQL makes: each lemma refuses the node whose precondition fails, and says which; and what it lets pass at the edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
import random_plans as rp

from dpquery.errors import Fault
from dpquery.plan.draft import AggregateAsk, Contributions, Draft
from dpquery.plan.functions import call
from dpquery.plan.inside import Frame, Place, Placing, Reduce, Reduction, Term
from dpquery.plan.rel import CapRows, Compute, Filling, Group, Join, Keep, Lookup, Match, Merge, Private, Public, Semi, Stack, Windowed, output
from dpquery.plan.release import Ask, Key, ReleasedKeys
from dpquery.plan.scalar import Column, Literal, Scalar
from dpquery.privacy import Facts, bound, lemmas, resolve, together
from dpquery.privacy.locality import fixed, local, owning
from dpquery.privacy.resolve import capped, filled
from dpquery.values.types import BOOLEAN, INTEGER

WORLD = rp.World(Random(4))
USERS, ORDERS, REGIONS = WORLD.scan("users"), WORLD.scan("orders"), WORLD.public("regions")
UID, COUNTRY, AGE = output(USERS)
_, ORDERED_BY, ITEM, AMOUNT, _ = output(ORDERS)  # foreign to USERS
NEW = Column(970, "new", INTEGER)
READS = "an expression reads what its relation does not hold"


def said(rel: Private) -> str:
    with pytest.raises(Fault) as caught:
        local(rel)
    assert caught.value.code == "PLAN_BROKEN"
    return caught.value.message


def added(value: Scalar | None, where: Scalar | None = None, by: Scalar | None = None) -> Reduction:
    return Reduction(Reduce.SUM, value, INTEGER, where, by=by)


def null(column: Column) -> Scalar:
    return call("is_null", column)


def windowed(item: Placing | Reduction, partition: tuple[Column, ...] = (), *order: Column, frame: Frame | None = None) -> Windowed:
    return Windowed(USERS, NEW, item, partition, tuple(Term(column, descending=False, nulls_first=False) for column in order), frame)


@pytest.mark.lemma("L13")
def test_partners_are_compared_by_what_both_sides_hold() -> None:
    for right in (ORDERS, REGIONS):
        assert said(Semi(USERS, right, null(WORLD.scan("items").columns[0].column))) == f"{READS} (L13)"
        assert "L13" in local(Semi(USERS, right, None))
    assert "L13" in local(Semi(USERS, ORDERS, call("and", null(AGE), null(AMOUNT))))
    assert "L13" in local(Semi(USERS, REGIONS, call("and", null(AGE), null(REGIONS.columns[1]))))


@pytest.mark.lemma("L21")
def test_groups_read_their_relation() -> None:
    assert said(Group(USERS, (AMOUNT,), ())) == "a key is no column of the relation that is grouped"
    assert said(Group(USERS, (AGE, AMOUNT), ())) == "a key is no column of the relation that is grouped"
    for item in (added(AMOUNT), added(AGE, null(AMOUNT)), added(AGE, None, AMOUNT)):
        assert said(Group(USERS, (AGE,), ((NEW, added(AGE)), (NEW, item)))) == f"{READS} (L21)"
    assert "L21" in local(Group(USERS, (UID, COUNTRY, AGE), ((NEW, added(AGE, null(COUNTRY), AGE)),)))


@pytest.mark.lemma("L22")
def test_windows_read_their_relation() -> None:
    number, lag = Placing(Place.ROW_NUMBER, None, INTEGER), Placing(Place.LAG, AGE, INTEGER)
    for item in (number, lag, added(AGE)):
        assert "L22" in local(windowed(item, (UID, COUNTRY), AGE))
        assert said(windowed(item, (UID, AMOUNT), AGE)) == f"{READS} (L22)"
        assert said(windowed(item, (UID,), AGE, AMOUNT)) == f"{READS} (L22)"
    for item in (Placing(Place.LAG, AMOUNT, INTEGER), added(AMOUNT), added(AGE, null(AMOUNT))):
        assert said(windowed(item, (UID,), AGE)) == f"{READS} (L22)"


@pytest.mark.lemma("L22")
def test_frames_of_range_begin_at_the_first_row() -> None:
    assert said(windowed(added(AGE), (), AGE, frame=Frame(rows=False, preceding=2))) == "a frame of RANGE counts rows"
    assert said(windowed(added(AGE), (), AGE, frame=Frame(rows=False, preceding=0))) == "a frame of RANGE counts rows"
    assert said(windowed(added(AGE), (), AGE, frame=Frame(rows=False, following=1))) == "a frame of RANGE counts rows"
    for frame in (Frame(rows=False), Frame(rows=True, preceding=2), Frame(rows=True), Frame(rows=True, preceding=-1, following=3)):
        assert "L22" in local(windowed(added(AGE), (), AGE, frame=frame))


@pytest.mark.lemma("L14")
def test_branches_of_a_stack_have_columns_alike_and_their_own() -> None:
    def stack(columns: int, ours: tuple[Scalar, ...], theirs: tuple[Scalar, ...]) -> Stack:
        return Stack(USERS, ORDERS, tuple(Column(970 + i, "n", INTEGER) for i in range(columns)), ours, theirs, Merge.UNION)

    for columns, ours, theirs in (
        (1, (AGE,), (AMOUNT, AMOUNT)),
        (1, (AGE, AGE), (AMOUNT,)),
        (2, (AGE,), (AMOUNT,)),
        (1, (AGE, AGE), (AMOUNT, AMOUNT)),
    ):
        assert said(stack(columns, ours, theirs)) == "the branches of a stack differ in their numbers of columns"
    assert said(stack(1, (AMOUNT,), (AMOUNT,))) == f"{READS} (L14)"
    assert said(stack(1, (AGE,), (AGE,))) == f"{READS} (L14)"
    assert said(stack(2, (AGE, AMOUNT), (AMOUNT, AMOUNT))) == f"{READS} (L14)"
    assert "L14" in local(stack(2, (AGE, UID), (AMOUNT, ORDERED_BY)))


def merged(how: Merge) -> Stack:
    """Columns: the unit on both sides, on the left, on the right; what depends on the left unit; an expression of the unit; a row's own."""
    ours = (UID, UID, AGE, AGE, call("add", UID, UID), call("add", UID, UID))
    theirs = (ORDERED_BY, AMOUNT, ORDERED_BY, AMOUNT, call("add", ORDERED_BY, ORDERED_BY), AMOUNT)
    return Stack(USERS, ORDERS, tuple(Column(980 + i, f"c{i}", INTEGER) for i in range(6)), ours, theirs, how)


@pytest.mark.lemma("L10", "L12")
@pytest.mark.parametrize("how", Merge)
def test_what_a_stack_holds_of_the_unit(how: Merge) -> None:
    """The unit where both branches give it unchanged; all that is fixed on the left where rows are left ones (EXCEPT)."""
    assert owning(merged(how)) == {980}
    assert fixed(merged(how)) == (set(range(980, 986)) if how is Merge.EXCEPT else {980})
    turned = Stack(ORDERS, USERS, (NEW,), (AMOUNT,), (AGE,), how)
    assert fixed(turned) == owning(turned) == set()


@pytest.mark.lemma("L10", "L12")
@pytest.mark.parametrize(
    "above",
    [
        lambda rel: Keep(rel, null(output(rel)[0])),
        lambda rel: CapRows(rel, 2),
        lambda rel: Compute(rel, ((NEW, AMOUNT),)),
        lambda rel: Semi(rel, USERS, None),
        lambda rel: Lookup(rel, REGIONS, Join.INNER, None, 2),
        lambda rel: Windowed(rel, NEW, Placing(Place.ROW_NUMBER, None, INTEGER), (), ()),
        lambda rel: Match(rel, WORLD.scan("items"), Join.LEFT, None),
    ],
)
def test_the_unit_stays_in_its_column(above: Callable[[Private], Private]) -> None:
    assert fixed(above(ORDERS)) == owning(above(ORDERS)) == {ORDERED_BY.id}


def test_releases_are_priced_in_the_unit_of_their_statement() -> None:
    one, other = Ask(Fraction(0), epsilon=Fraction(1)), Ask(Fraction(0), rho=Fraction(1))
    for ask, whole in ((one, other), (other, one)):
        with pytest.raises(AssertionError, match=r"^a release is priced as its statement is$"):
            together._share(ask, whole)
    assert together._share(Ask(Fraction(0), epsilon=Fraction(1, 3)), Ask(Fraction(0), epsilon=Fraction(2, 3))) == Fraction(1, 2)
    assert together._share(Ask(Fraction(0), rho=Fraction(1, 3)), Ask(Fraction(0), rho=Fraction(2, 3))) == Fraction(1, 2)


# ---- bounds are put in below every node ----------------------------------------------------------------------------------------------


def looked_up(below: Private, fanout: int | None) -> Lookup:
    return Lookup(below, REGIONS, Join.INNER, None, fanout)


@pytest.mark.lemma("R4")
def test_fan_outs_are_filled_in_on_both_sides() -> None:
    facts = Facts({REGIONS.name: 7})
    open_, full = (looked_up(USERS, fanout) for fanout in (None, 7))
    assert filled(Semi(open_, looked_up(ORDERS, None), None), facts) == Semi(full, looked_up(ORDERS, 7), None)
    assert filled(Semi(open_, REGIONS, None), facts) == Semi(full, REGIONS, None)
    for how in Merge:
        opened, closed = (Stack(looked_up(USERS, n), looked_up(ORDERS, n), (NEW,), (AGE,), (AMOUNT,), how) for n in (None, 7))
        assert filled(opened, facts) == closed


@pytest.mark.lemma("R5")
def test_joins_are_capped_on_both_sides() -> None:
    """Below a semi join and below a stack, as anywhere else."""
    several = Match(ORDERS, WORLD.scan("items"), Join.INNER, None)
    held = capped(several, 9)
    assert held == replace(several, left=CapRows(several.left, 9), right=CapRows(several.right, 9))
    assert capped(Semi(several, several, None), 9) == Semi(held, held, None)
    assert capped(Semi(several, REGIONS, None), 9) == Semi(held, REGIONS, None)
    for how in Merge:
        assert capped(Stack(several, several, (), (), (), how), 9) == Stack(held, held, (), (), (), how)


@pytest.mark.lemma("R1")
def test_how_many_groups_there_are() -> None:
    """One without keys, those of a list, of a list that is filled later as many as it can have; None where private rows say."""
    key, later = Key("item", COUNTRY, COUNTRY.type), WORLD.released(Filling.KEYS, INTEGER, COUNTRY.type)
    asks = (AggregateAsk("a0", "count(*)", "count", None, None),)

    def draft(*keys: Key, listed: Public | None = None) -> Draft:
        return Draft(USERS, keys, (), asks, Contributions(2, 1, 9), listed=listed)

    rows = tuple((f"i{i}",) for i in range(9))
    assert resolve._listed(draft(), Facts({})) == 1
    assert resolve._listed(draft(key), Facts({})) is None
    assert resolve._listed(draft(key), Facts({}, rows)) == 9
    assert resolve._listed(draft(key, listed=later), Facts({})) == resolve.MOST_KEYS
    made = bound(draft(key, listed=later), Facts({}, None, "a list"))
    assert made.keys == ReleasedKeys(later, "a list")


@pytest.mark.lemma("R2")
def test_lemmas_name_what_sets_and_choices_rest_on() -> None:
    key, limits = Key("country", COUNTRY, COUNTRY.type), Contributions(2, 1, 9)

    def named(card: str, **more: Any) -> set[str]:
        ask = AggregateAsk("a0", card, card, AMOUNT, None, **more)
        found = bound(Draft(ORDERS, (replace(key, value=ITEM),), (), (ask,), limits), Facts({}, tuple((f"i{i}",) for i in range(9))))
        return {lemma for lemma in lemmas(found) if lemma[0] == "C"}

    assert named("distinct") == {"C1", "C2", "C3", "C6", "C9"}
    assert named("mode", values=(1, 2, 3)) == {"C1", "C2", "C3", "C10", "C11"}


@pytest.mark.lemma("R3")
def test_what_is_told_of_a_product() -> None:
    """A capped join is one where no equality compares rows of both sides by more than what all rows of a unit agree on."""
    again, items = WORLD.scan("orders"), WORLD.scan("items")
    order, (ordered, price, *_), mine, theirs = output(ORDERS)[0], output(items), ORDERED_BY, output(again)[1]

    held, short = CapRows(ORDERS, 9), CapRows(items, 9)

    def alone(on: Scalar | None, left: Private = held, right: Private = short) -> bool:
        return resolve._on_the_unit_alone(Match(left, right, Join.INNER, on))

    by_row, less = call("eq", order, ordered), call("lt", order, ordered)
    assert not alone(by_row)
    assert not alone(call("eq", mine, ordered))
    assert not alone(call("and", less, by_row))
    for on in (None, less, call("eq", order, AMOUNT), call("eq", ordered, price), null(order), Literal(True, BOOLEAN)):
        assert alone(on)
    assert alone(call("eq", mine, theirs), held, CapRows(again, 9))
    assert not alone(call("eq", order, output(again)[0]), held, CapRows(again, 9))
    assert [alone(None, left, right) for left in (ORDERS, held) for right in (items, short)] == [False, True, True, True]
    both = Match(Keep(Match(ORDERS, USERS, Join.INNER, None), null(AGE)), Match(items, items, Join.INNER, None), Join.INNER, None)
    assert resolve._product(both, 7) == (
        "Each row of orders with users meets each row of items of the same unit, as their join has no other equality:"
        " a product, of at most 7 rows of each unit on either side."
    )
