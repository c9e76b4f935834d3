"""Draft -> Release: which caps are put in, which are proven idle, which questions are refused."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest
import random_plans as rp
from interpreter import Data, rows, run

from dpquery.errors import Position, Refused
from dpquery.plan.draft import AggregateAsk, Contributions, Draft
from dpquery.plan.functions import call
from dpquery.plan.rel import CapRows, Compute, Join, Keep, Lookup, Match, Private, inputs, output, walk
from dpquery.plan.release import GroupCap, Idle, Key, ListedKeys, NoKeys, One, Part, Present, PrivateKeys, Release, RowWeights
from dpquery.plan.scalar import Case, Column, Interval, Literal, Scalar
from dpquery.privacy import Facts, bound, lemmas, warnings
from dpquery.values.types import FLOAT, INTEGER, STRING, Value

WORLD = rp.World(Random(0))
USERS, ORDERS, ITEMS = WORLD.scan("users"), WORLD.scan("orders"), WORLD.scan("items")
HERE = Position(3, 7)


def column(rel: Private, name: str) -> Column:
    return next(c for c in output(rel) if c.name == name)


COUNT = AggregateAsk("a0", "COUNT(*)", "count", None, None, position=HERE)
COUNTRY, ITEM, AMOUNT = column(USERS, "country"), column(ORDERS, "item"), column(ORDERS, "amount")


def release(
    rel: Private,
    keys: Sequence[Scalar] = (),
    asks: Sequence[AggregateAsk] = (COUNT,),
    listed: Sequence[tuple[Value, ...]] | None = None,
    fanouts: dict[str, int] | None = None,
    minimum: int = 1,
    partial: str = "",
    **limits: Any,
) -> Release:
    given = Contributions(**{"groups": 2, "rows": 5, "join_rows": 10, **limits})
    named = tuple(Key(f"k{i}", key, key.type) for i, key in enumerate(keys))
    found = None if listed is None else tuple(listed)
    return bound(Draft(rel, named, (), tuple(asks), given, minimum), Facts(fanouts or {}, found, "a list", partial))


def refused(code: str, *args: Any, **more: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        release(*args, **more)
    assert caught.value.code == code
    assert caught.value.instead
    return caught.value


# ---- the group cap -------------------------------------------------------------------------------------------------------------------


def test_no_group_by_is_one_group() -> None:
    made = release(ORDERS)
    assert (made.keys, made.table.bounding) == (NoKeys(), GroupCap(1, Idle.NO_KEYS))


def test_a_key_of_the_unit_makes_the_cap_idle() -> None:
    joined = Match(ORDERS, USERS, Join.INNER, None)
    for key in (COUNTRY, call("upper", COUNTRY), Literal("x", STRING)):
        assert release(joined, [key]).table.bounding == GroupCap(1, Idle.UNIT_KEY)
    assert release(joined, [COUNTRY, column(USERS, "age")]).table.bounding == GroupCap(1, Idle.UNIT_KEY)


@pytest.mark.parametrize(
    ("rel", "keys"),
    [
        (ORDERS, [ITEM]),
        (Match(ORDERS, USERS, Join.LEFT, None), [COUNTRY]),
        (Match(ORDERS, USERS, Join.INNER, None), [COUNTRY, ITEM]),
        (Match(ORDERS, USERS, Join.INNER, None), [Case(((call("gt", AMOUNT, Literal(10, INTEGER)), COUNTRY),), Literal("x", STRING), STRING)]),
    ],
)
def test_a3_h_other_keys_are_capped(rel: Private, keys: list[Scalar]) -> None:
    assert release(rel, keys).table.bounding == GroupCap(2)


def test_few_listed_keys_make_the_cap_idle() -> None:
    assert release(ORDERS, [ITEM], listed=[("x",), ("y",)]).table.bounding == GroupCap(2, Idle.ALL_KEYS)
    assert release(ORDERS, [ITEM], listed=[("x",)]).table.bounding == GroupCap(1, Idle.ALL_KEYS)
    assert release(ORDERS, [ITEM], listed=[("x",), ("y",), (None,)]).table.bounding == GroupCap(2)
    assert release(ORDERS, [ITEM], listed=[]).table.bounding == GroupCap(1, Idle.ALL_KEYS)


def test_n11_a_key_list_is_a_set() -> None:
    """100 copies of a key are one key, one cell, one coordinate; NaN is none; NULLs come last."""
    made = release(ORDERS, [ITEM], listed=[("y",)] * 100 + [(None,), ("x",), ("x",)])
    assert made.keys == ListedKeys((("x",), ("y",), (None,)), "a list")
    ratio = Column(99, "ratio", FLOAT)
    floats = release(Compute(ORDERS, ((ratio, call("div", AMOUNT, AMOUNT)),)), [ratio], listed=[(float("nan"),), (-0.0,), (0.0,)])
    assert floats.keys == ListedKeys(((-0.0,),), "a list")
    numbers = release(ORDERS, [AMOUNT], listed=[(1,), (1,), (2,)])
    assert numbers.table.bounding == GroupCap(2, Idle.ALL_KEYS)


def test_too_many_keys_are_refused() -> None:
    found = refused("TOO_MANY_KEYS", ORDERS, [AMOUNT], listed=[(i,) for i in range(10_001)])
    assert (found.message, found.instead) == ("the key list has 10,001 keys, more than 10,000", "group by fewer or coarser keys")
    keys = release(ORDERS, [AMOUNT], listed=[(i,) for i in [*range(10_000), 0]]).keys
    assert isinstance(keys, ListedKeys)
    assert len(keys.rows) == 10_000


@pytest.mark.parametrize(("asked", "held"), [(0, 1), (1, 1), (2, 2)])
def test_caps_and_minima_are_at_least_one(asked: int, held: int) -> None:
    made = release(ORDERS, [ITEM], groups=asked, minimum=asked)
    assert made.table.bounding == GroupCap(held)
    assert made.keys == PrivateKeys(0, held)
    assert release(ORDERS, weights=asked).table.bounding == RowWeights(asked)
    capped = release(lookup(USERS, "p", "country"), weights=asked, fanouts={"p": asked}).table.bounding
    assert capped == RowWeights(held)


# ---- private keys --------------------------------------------------------------------------------------------------------------------


def test_private_keys_bring_a_hidden_count_of_units() -> None:
    made = release(ORDERS, [ITEM], minimum=3)
    assert isinstance(made.keys, PrivateKeys)
    assert made.table.parts[made.keys.count] == Part(One(), Present())
    assert made.keys.minimum == 3
    assert made.keys.count not in made.aggregates[0].parts


def units(where: Scalar | None = None, argument: Scalar | None = None) -> AggregateAsk:
    return AggregateAsk("a0", "COUNT(DISTINCT uid)", "units", argument, where, position=HERE)


def shown(made: Release) -> bool:
    """Whether the selecting count is one of the released aggregates."""
    assert isinstance(made.keys, PrivateKeys)
    return any(made.keys.count in aggregate.parts for aggregate in made.aggregates)


def test_the_selecting_count_is_the_released_one_if_asked() -> None:
    once = AggregateAsk("a0", "COUNT(*, ..)", "count", None, None, Interval(Fraction(0), Fraction(1)), position=HERE)
    for ask in (units(), units(argument=column(ORDERS, "uid")), once):
        made = release(ORDERS, [ITEM], [ask])
        assert len(made.table.parts) == 1
        assert shown(made)


def test_a15_nothing_but_the_plain_count_of_units_selects() -> None:
    """COUNT(*), a filtered COUNT(DISTINCT unit), COUNT(x): each leaves the selection to a part of its own."""
    condition = call("is_null", AMOUNT)
    for ask in (COUNT, units(condition), units(argument=AMOUNT), AggregateAsk("a0", "COUNT(x)", "count", AMOUNT, None, position=HERE)):
        made = release(ORDERS, [ITEM], [ask])
        assert len(made.table.parts) == 2
        assert not shown(made)


def test_count_distinct_of_the_null_side_counts_units_with_rows() -> None:
    """users LEFT JOIN orders: COUNT(DISTINCT orders.uid) is the units with orders, COUNT(DISTINCT users.uid) all of them."""
    left = Match(USERS, ORDERS, Join.LEFT, None)
    made = release(left, asks=[units(argument=column(ORDERS, "uid")), units(argument=column(USERS, "uid"))])
    users = [{"uid": u, "country": "A", "age": 1} for u in (1, 2, 3)]
    orders = [{"oid": 1, "uid": 1, "item": "x", "amount": 1, "score": None}]
    sums = run(made, Data({"users": users, "orders": orders}))[()]
    assert [sums[a.parts[0]] for a in made.aggregates] == [1, 3]


def test_keys_alone() -> None:
    made = release(ORDERS, [ITEM], [])
    assert made.table.parts == (Part(One(), Present()),)


# ---- row weights ---------------------------------------------------------------------------------------------------------------------


def test_row_weights_go_with_listed_keys_or_none() -> None:
    assert release(ORDERS, weights=4).table.bounding == RowWeights(4)
    assert release(USERS, weights=4).table.bounding == RowWeights(1)
    assert release(ORDERS, [ITEM], listed=[("x",)], weights=4).table.bounding == RowWeights(4)
    found = refused("ROW_WEIGHTS", ORDERS, [ITEM], weights=4)
    assert found.message == "max_rows_contributed bounds rows, not groups, so that it does not go with private keys"
    assert found.instead == "use max_groups_contributed and max_rows_per_group, or list the keys"


def test_a2_row_weights_serve_sums_over_rows_only() -> None:
    """COUNT(DISTINCT unit) and per-group bounds are refused by name."""
    bounds = Interval(Fraction(5), Fraction(10))
    assert refused("ROW_WEIGHTS", ORDERS, asks=[units()], weights=10).position == HERE
    assert (
        refused(
            "PER_GROUP_BOUNDS", ORDERS, asks=[AggregateAsk("a0", "SUM(amount)", "total", AMOUNT, None, bounds, position=HERE)], weights=10
        ).position
        == HERE
    )
    assert (
        refused("PER_GROUP_BOUNDS", ORDERS, asks=[AggregateAsk("a0", "COUNT(*)", "count", None, None, bounds, position=HERE)], weights=10).position
        == HERE
    )


# ---- joins that could run away -------------------------------------------------------------------------------------------------------


def caps(rel: Private) -> list[tuple[str, int]]:
    """What stands right below each cap."""
    return [(type(below.input).__name__, below.rows) for below in walk(rel) if isinstance(below, CapRows)]


def lookup(below: Private, name: str, key: str, join: Join = Join.INNER) -> Lookup:
    public = WORLD.public("regions")
    public = type(public)(name, public.sql, public.columns)
    return Lookup(below, public, join, call("eq", column(below, key), public.columns[0]))


def test_a5_joins_of_several_rows_are_capped() -> None:
    """Both inputs, above their own filters; not a one-row side, not a path's unique side."""
    again = WORLD.scan("orders")
    kept = Keep(ORDERS, call("is_null", ITEM))
    assert caps(release(Match(kept, again, Join.INNER, None)).table.input) == [("Keep", 10), ("Scan", 10)]
    assert caps(release(Match(ORDERS, USERS, Join.INNER, None)).table.input) == []
    assert caps(release(Match(USERS, ORDERS, Join.LEFT, None)).table.input) == []
    assert caps(release(Match(ITEMS, ORDERS, Join.INNER, None, single=True)).table.input) == []


def test_a5_chains_are_capped_at_each_join() -> None:
    third = WORLD.scan("orders")
    rel = release(Match(Match(ORDERS, WORLD.scan("orders"), Join.INNER, None), third, Join.INNER, None)).table.input
    assert caps(rel) == [("Match", 10), ("Scan", 10), ("Scan", 10), ("Scan", 10)]
    assert all(isinstance(below, CapRows) for below in inputs(rel))


def test_an_input_of_few_rows_needs_no_cap() -> None:
    twice = lookup(USERS, "p", "country")
    rel = release(Match(twice, ORDERS, Join.INNER, None), fanouts={"p": 2}).table.input
    assert caps(rel) == [("Scan", 10)]


def test_an_input_of_as_many_rows_as_the_cap_needs_none() -> None:
    for most, more in ((10, []), (11, [("CapRows", 10)])):
        rel = release(Match(CapRows(ORDERS, most), WORLD.scan("orders"), Join.INNER, None)).table.input
        assert caps(rel) == [*more, ("Scan", most), ("Scan", 10)]


def test_n9_wide_lookups_are_capped() -> None:
    """Beyond a fan-out of 100, multiplied along the statement, the private input is capped; a lookup that multiplies nothing is not."""
    first = lookup(ORDERS, "p", "item")
    assert caps(release(first, fanouts={"p": 100}).table.input) == []
    assert caps(release(first, fanouts={"p": 101}).table.input) == [("Scan", 10)]
    second = lookup(first, "q", "item")
    assert caps(release(second, fanouts={"p": 20, "q": 20}).table.input) == [("Lookup", 10)]
    assert caps(release(second, fanouts={"p": 51, "q": 2}).table.input) == [("Lookup", 10)]
    assert caps(release(second, fanouts={"p": 101, "q": 1}).table.input) == [("Scan", 10)]
    assert caps(release(lookup(USERS, "p", "country"), fanouts={"p": 500}).table.input) == []  # one row each


@pytest.mark.lemma("R4", "R5")
def test_n9_what_stands_above_a_lookup_hides_it_from_no_limit() -> None:
    wide = lookup(ORDERS, "p", "item")
    above = (
        Keep(wide, call("is_null", ITEM)),
        Compute(wide, ((Column(991, "n", INTEGER), AMOUNT),)),
        CapRows(wide, 7),
        Match(USERS, wide, Join.LEFT, None),
    )
    for rel, more in zip(above, ([], [], [("Lookup", 7)], []), strict=True):
        assert caps(release(rel, fanouts={"p": 101}).table.input) == [*more, ("Scan", 10)]
        refused("FANOUT", rel, fanouts={"p": 10_001})


@pytest.mark.lemma("R4")
def test_n9_fan_out_is_refused_beyond_ten_thousand() -> None:
    rel = lookup(lookup(ORDERS, "p", "item"), "q", "item")
    assert release(rel, fanouts={"p": 100, "q": 100})
    assert "p, q" in refused("FANOUT", rel, fanouts={"p": 101, "q": 100}).message
    both = Match(lookup(USERS, "p", "country"), lookup(ORDERS, "q", "item"), Join.INNER, None)
    refused("FANOUT", both, fanouts={"p": 101, "q": 100})
    three = lookup(lookup(lookup(ORDERS, "r", "item"), "q", "item"), "p", "item")
    found = refused("FANOUT", three, fanouts={"p": 10_001, "q": 1, "r": 2})
    assert found.message == "one private row could meet more than 10,000 rows of the public tables it is joined with (p, r)"
    assert found.instead == "join on a unique column of the public table, or on fewer tables"
    assert release(three, fanouts={"p": 10_000, "q": 1, "r": 0})
    assert "(p)" in refused("FANOUT", three, fanouts={"p": 10_001, "q": 1, "r": 0}).message  # r: what LEFT keeps of a row that meets none


@pytest.mark.lemma("R5", "L7")
def test_a5_caps_hold_on_data() -> None:
    """A unit of 30 rows joined with itself twice: at most 10 * 10 * 10 rows come out, whatever it has."""
    rel = release(Match(Match(ORDERS, WORLD.scan("orders"), Join.INNER, None), WORLD.scan("orders"), Join.INNER, None)).table.input
    orders = [{"oid": i, "uid": 1, "item": "x", "amount": 1, "score": None} for i in range(30)]
    assert len(rows(rel, Data({"orders": orders}))) == 100  # the second join's left input is capped to 10


def test_a19_clamps_sit_above_the_joins() -> None:
    """A19, C05: the count after a fan-out of 3 is clamped to C, not to 3 C."""
    made = release(lookup(ORDERS, "p", "item"), fanouts={"p": 3})
    orders = [{"oid": i, "uid": 1, "item": "A", "amount": 1, "score": None} for i in range(4)]
    assert run(made, Data({"orders": orders}, {"p": [("A", f"r{i}") for i in range(3)]}))[()] == (5,)


# ---- rows per cell -------------------------------------------------------------------------------------------------------------------


def test_one_row_units_need_no_row_cap() -> None:
    """COUNT(*) over users is the count of units, and shares its part."""
    made = release(USERS, [column(USERS, "age")], [COUNT, AggregateAsk("a1", "COUNT(DISTINCT uid)", "units", None, None, position=HERE)])
    assert made.table.parts == (Part(One(), Present()),)
    twice = release(lookup(USERS, "p", "country"), fanouts={"p": 3})
    assert twice.aggregates[0].bounds == Interval(Fraction(0), Fraction(3))
    assert release(ORDERS).aggregates[0].bounds == Interval(Fraction(0), Fraction(5))


# ---- what is said --------------------------------------------------------------------------------------------------------------------


@pytest.mark.lemma("R1")
def test_an_aggregate_says_what_was_asked_and_what_is_enforced() -> None:
    mean = AggregateAsk("a1", "AVG(amount)", "mean", AMOUNT, None, epsilon=Fraction(1, 3), position=HERE)
    count, found = release(ORDERS, [ITEM], [COUNT, mean]).aggregates
    assert (count.name, count.label, count.card, count.parts, count.share) == ("a0", "COUNT(*)", "count", (1,), None)
    assert (count.type, count.step, count.bounds) == (INTEGER, 1, Interval(Fraction(0), Fraction(5)))
    assert (found.name, found.label, found.card, found.parts, found.share) == ("a1", "AVG(amount)", "mean", (2, 3), Fraction(1, 3))
    assert (found.type, found.step, found.bounds) == (FLOAT, 1, Interval(Fraction(-5), Fraction(20)))
    cut = "a unit counts as at most 5 rows in a group (max_rows_per_group), what it has beyond is left out"
    assert (count.notes, found.notes) == ((), ("the mean over rows, not over units", "rows are clamped to [-5, 20]"))
    assert (count.cuts, found.cuts) == ((cut,), (cut,))
    assert release(ORDERS, [ITEM], [COUNT, mean, COUNT]).warnings[1:] == (f"COUNT(*), AVG(amount): {cut}.",)


@pytest.mark.lemma("R3")
def test_warnings_word_by_word() -> None:
    """In the order of caps: rows of a join, key list, groups, rows of a group."""
    joined = Match(ORDERS, WORLD.scan("orders"), Join.INNER, None)
    assert release(joined, [ITEM], [units()]).warnings == (
        "A join keeps at most 10 rows of each unit on either side (join_rows_per_unit); others are left out.",
        "Each row of orders meets each row of orders of the same unit, as their join has no other equality: a product, of at most 10 rows"
        " of each unit on either side.",
        "Each unit counts in at most 2 groups (max_groups_contributed); its other groups are left out.",
    )
    assert release(ORDERS, [ITEM], [units()], listed=[("x",)], partial="half a list").warnings == (
        "Rows whose key is not in the key list (half a list) are left out, NULL among them.",
    )
    assert release(ORDERS, [ITEM], [units()], listed=[("x",), (None,)], partial="half a list").warnings == (
        "Rows whose key is not in the key list (half a list) are left out.",
    )
    assert release(ORDERS, [ITEM], [units()], partial="no list").warnings == release(ORDERS, [ITEM], [units()]).warnings
    assert release(ORDERS, [ITEM], [], listed=[("x",)], weights=3).warnings == ()


@pytest.mark.lemma("R3")
def test_warnings_of_the_plan() -> None:
    joined = Match(ORDERS, WORLD.scan("orders"), Join.INNER, None)
    assert warnings(release(USERS)) == ()
    assert any("join_rows_per_unit" in w for w in warnings(release(joined)))
    assert any("half a list" in w for w in warnings(release(ORDERS, [ITEM], listed=[("x",)], partial="half a list")))
    assert not any("list" in w for w in warnings(release(ORDERS, [ITEM], listed=[("x",)])))
    assert any("max_groups_contributed" in w for w in warnings(release(ORDERS, [ITEM])))
    assert warnings(release(ORDERS, [ITEM], groups_given=True, rows_given=True)) == ()
    assert warnings(release(USERS, [COUNTRY])) == ()


def test_the_cap_on_rows_is_warned_of_where_the_statement_did_not_set_it() -> None:
    """One sentence for all aggregates that it cuts alike; a note where it was asked for, nothing where no unit has more rows."""
    mean, total = AggregateAsk("a1", "AVG(amount)", "mean", AMOUNT, None), AggregateAsk("a2", "SUM(amount)", "total", AMOUNT, None)
    said = warnings(release(ORDERS, asks=[COUNT, mean, total]))
    assert len(said) == 2
    assert said[0].startswith(f"{COUNT.label}, AVG(amount): a unit counts as at most 5 rows in a group (max_rows_per_group)")
    assert said[1].startswith("SUM(amount): a unit's sum in a group is clamped to [-25, 100] (max_rows_per_group is 5)")
    given = release(ORDERS, asks=[COUNT, mean, total], rows_given=True)
    assert given.warnings == ()
    assert all(any("max_rows_per_group" in note for note in aggregate.notes) for aggregate in given.aggregates)
    assert release(USERS).warnings == ()


@pytest.mark.lemma("R2")
def test_lemmas_name_what_is_used() -> None:
    joined = Match(Keep(ORDERS, call("is_null", ITEM)), USERS, Join.INNER, None)
    found = lemmas(release(joined, [COUNTRY]))
    assert found == ("C1", "C2", "C3", "C6", "C8", "L1", "L2", "L3", "L6", "L8", "L10", "L11", "L26", "P5")
    assert "C4" in lemmas(release(ORDERS))
    assert "C5" in lemmas(release(ORDERS, [ITEM], listed=[("x",)]))
    assert "C7" in lemmas(release(ORDERS, weights=3))
    assert {"L4", "L5", "L7"} <= set(lemmas(release(_everything(), fanouts={"p": 200})))


def _everything() -> Private:
    return lookup(Compute(ORDERS, ((Column(990, "n", INTEGER), AMOUNT),)), "p", "item")
