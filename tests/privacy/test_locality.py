"""L-lemmas: each relation is a function of its unit's rows, and empty without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import evaluated
import interpreter
import pytest
import random_plans as rp
from interpreter import Data, Owned, Row, rows
from neighbours import sample, unit_cells

from dpquery.errors import Fault
from dpquery.plan.functions import call
from dpquery.plan.inside import Place, Placing, Reduce, Reduction
from dpquery.plan.rel import (
    CapRows,
    Compute,
    Group,
    Join,
    Keep,
    Lookup,
    Match,
    Merge,
    Private,
    Public,
    Scan,
    ScanColumn,
    Semi,
    Stack,
    UnitPath,
    Windowed,
    output,
    walk,
)
from dpquery.plan.release import Clamp, GroupCap, Key, One, Part, Units, UnitTable
from dpquery.plan.scalar import Call, Case, Column, Literal, Scalar
from dpquery.privacy import Facts
from dpquery.privacy.locality import cells, depends_on, fixed, local, owning
from dpquery.privacy.resolve import filled
from dpquery.privacy.rows import rows_per_unit
from dpquery.values.types import BOOLEAN, INTEGER, STRING, Value


def of_unit(rel: Private, data: Data, unit: int) -> list[str]:
    return sorted(repr(sorted(row.items())) for owner, row in interpreter.rows(rel, data) if owner == unit)


def stays_local(seed: int) -> bool:
    """In every node of a random plan the rows of v stay as they are when u is removed or replaced; u's own are gone when it is."""
    s = sample(seed)
    gone = s.random.choice(list(s.units))
    others = [v for v in s.units if v != gone]
    relations = list(walk(s.release.table.input))
    for neighbour in (rp.removed, rp.replaced):
        data = rp.together(neighbour(s.units, gone, s.random), s.public)
        if any(of_unit(rel, s.data, v) != of_unit(rel, data, v) for rel in relations for v in others):
            return False
        before, after = (unit_cells(s.release, d) for d in (s.data, data))
        if {at: c for at, c in before.items() if at[0] != gone} != {at: c for at, c in after.items() if at[0] != gone}:
            return False
    data = rp.together(rp.without(s.units, gone), s.public)
    return all(of_unit(rel, data, gone) == [] for rel in relations)


@pytest.mark.lemma("L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8", "L13", "L14", "L21", "L22")
@pytest.mark.parametrize("seed", range(150))
def test_l1_random_relations_are_local(seed: int) -> None:
    assert stays_local(seed)


# ---- operators that look at other units are seen -------------------------------------------------------------------------------------

Right = Callable[[Private, Data], Owned]


def one_of_a_kind(rel: Private, data: Data, right: Right) -> Owned:
    """A scan that keeps the first row of each kind, whosever it is."""
    owned = right(rel, data)
    return list({repr(list(row.values())[-1]): (unit, row) for unit, row in reversed(owned)}.values()) if isinstance(rel, Scan) else owned


def if_many(rel: Private, data: Data, right: Right) -> Owned:
    """A filter on the number of all rows."""
    owned = right(rel, data)
    return owned if not isinstance(rel, Keep) or len(owned) % 2 else owned[:0]


def shares(rel: Private, data: Data, right: Right) -> Owned:
    """A column of the number of all rows."""
    owned = right(rel, data)
    return [(unit, {**row, rel.items[0][0].id: len(owned)}) for unit, row in owned] if isinstance(rel, Compute) else owned


def kept_public_rows(rel: Private, data: Data, right: Right) -> Owned:
    """A lookup that keeps the public rows that nobody meets, for every unit that there could be."""
    if not isinstance(rel, Lookup):
        return right(rel, data)
    nothing = {c.id: None for c in output(rel)}
    return [*right(rel, data), *((unit, nothing) for unit in range(1, 5))]


def anybodys(rel: Private, data: Data, right: Right) -> Owned:
    """A join in which rows of different units meet."""
    if not isinstance(rel, Match):
        return right(rel, data)
    return [(unit, {**row, **other}) for unit, row in interpreter.rows(rel.left, data) for _, other in interpreter.rows(rel.right, data)]


def partners_of_others(rel: Private, data: Data, right: Right) -> Owned:
    """A semi join that takes anybody's rows for partners."""
    if not isinstance(rel, Semi) or isinstance(rel.right, Public):
        return right(rel, data)
    partners = [row for _, row in interpreter.rows(rel.right, data)]
    left = interpreter.rows(rel.left, data)
    return [
        (unit, row)
        for unit, row in left
        if any(rel.on is None or evaluated.value(rel.on, {**row, **other}) is True for other in partners) is not rel.negated
    ]


def anybodys_row(rel: Private, data: Data, right: Right) -> Owned:
    """A set operation that takes equal rows of two units for one."""
    owned = right(rel, data)
    return list({repr(row): (unit, row) for unit, row in reversed(owned)}.values()) if isinstance(rel, Stack) else owned


def first_of_all(rel: Private, data: Data, right: Right) -> Owned:
    """A cap that is a LIMIT."""
    owned = right(rel, data)
    return sorted(owned, key=lambda o: repr(o[1]))[: rel.rows] if isinstance(rel, CapRows) else owned


def of_all_units(rel: Private, data: Data, right: Right) -> Owned:
    """A GROUP BY without the unit: each group is everybody's, and shown to be the first one's."""
    if not isinstance(rel, Group):
        return right(rel, data)
    below = interpreter.rows(rel.input, data)
    owner = {tuple(row[key.id] for key in rel.keys): unit for unit, row in reversed(below)}
    merged = Data({"all": [{"unit": 0, **{str(i): v for i, v in row.items()}} for _, row in below]})
    scan = Scan("all", "all", tuple(ScanColumn(c, str(c.id)) for c in output(rel.input)), UnitPath("unit", INTEGER))
    return [(owner[tuple(row[key.id] for key in rel.keys)], row) for _, row in right(replace(rel, input=scan), merged)]


def over_all_units(rel: Private, data: Data, right: Right) -> Owned:
    """A window whose partitions hold rows of all units."""
    if not isinstance(rel, Windowed):
        return right(rel, data)
    below = interpreter.rows(rel.input, data)
    numbered = [{"unit": 0, "at": at, **{str(i): v for i, v in row.items()}} for at, (_, row) in enumerate(below)]
    place = Column(10**6, "at", INTEGER)
    scan = Scan("all", "all", (*(ScanColumn(c, str(c.id)) for c in output(rel.input)), ScanColumn(place, "at")), UnitPath("unit", INTEGER))
    made = right(replace(rel, input=scan), Data({"all": numbered}))
    return [(below[row[place.id]][0], {i: v for i, v in row.items() if i != place.id}) for _, row in made]


@pytest.mark.parametrize(
    "wrong",
    [one_of_a_kind, if_many, shares, kept_public_rows, anybodys, first_of_all, partners_of_others, of_all_units, over_all_units, anybodys_row],
    ids=["L2", "L3", "L4", "L5", "L6", "L7", "L13", "L21", "L22", "L14"],
)
def test_l1_what_looks_at_other_units_is_caught(wrong: Callable[[Private, Data, Right], Owned], monkeypatch: pytest.MonkeyPatch) -> None:
    """On the same random relations on which the right operators pass."""
    right = interpreter.rows
    monkeypatch.setattr(interpreter, "rows", lambda rel, data: wrong(rel, data, right))
    assert any(not stays_local(seed) for seed in range(1500))


def test_l8_groups_ranked_by_all_units_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cap on groups that prefers those that others are in too."""

    def popular(grouped: Mapping[tuple[Any, Any], Any], groups: int, salt: str) -> list[tuple[Any, Any]]:
        many = Counter(key for _, key in grouped)
        ranked: dict[Any, list[Any]] = {}
        for unit, key in sorted(grouped, key=lambda at: (many[at[1]], repr(at[1]))):
            ranked.setdefault(unit, []).append((unit, key))
        return [at for own in ranked.values() for at in own[:groups]]

    monkeypatch.setattr(interpreter, "_first_groups", popular)
    assert any(not stays_local(seed) for seed in range(150))


@pytest.mark.lemma("L9", "L10", "L11", "L12")
@pytest.mark.parametrize("seed", range(150))
def test_l9_l10_l12_hold_on_random_relations(seed: int) -> None:
    """No unit has more rows than rows_per_unit says; fixed columns have one value per unit; owning columns hold the unit."""
    s = sample(seed)
    for rel in walk(s.release.table.input):
        by_unit: dict[int, list[Row]] = {}
        for unit, row in rows(rel, s.data):
            by_unit.setdefault(unit, []).append(row)
        most = rows_per_unit(rel)
        assert most is None or all(len(own) <= most for own in by_unit.values())
        assert all(len({own[c] for own in rows_of}) == 1 for rows_of in by_unit.values() for c in fixed(rel))
        assert all(own[c] == unit for unit, rows_of in by_unit.items() for own in rows_of for c in owning(rel))


# ---- a small world by hand -----------------------------------------------------------------------------------------------------------

WORLD = rp.World(Random(0))
USERS, ORDERS, ITEMS = WORLD.scan("users"), WORLD.scan("orders"), WORLD.scan("items")
REGIONS = WORLD.public("regions")


def column(rel: Private, name: str) -> Column:
    return next(c for c in output(rel) if c.name == name)


def text(value: Value) -> Literal:
    return Literal(value, STRING)


def names(rel: Private) -> set[str]:
    return {c.name for c in output(rel) if c.id in fixed(rel)}


def lookup(below: Private, fanout: int | None, join: Join = Join.INNER, public: Public = REGIONS) -> Lookup:
    return Lookup(below, public, join, call("eq", column(below, "country"), public.columns[0]), fanout)


def test_fixed_starts_at_registered_tables_and_at_the_unit_itself() -> None:
    assert names(USERS) == {"uid", "country", "age"}
    assert names(ORDERS) == {"uid"}
    assert names(ITEMS) == set()
    assert names(replace(USERS, max_rows_per_unit=2)) == {"uid"}


def test_fixed_survives_filters_caps_computed_columns_and_inner_matches() -> None:
    kept = CapRows(Keep(USERS, call("is_null", column(USERS, "age"))), 3)
    upper = Column(900, "upper", STRING)
    assert names(Compute(kept, ((upper, call("upper", column(USERS, "country"))),))) == {"uid", "country", "age", "upper"}
    assert names(Match(ORDERS, USERS, Join.INNER, None)) == {"uid", "country", "age"}
    assert names(Match(USERS, ORDERS, Join.LEFT, None)) == {"uid", "country", "age"}
    mixed = Compute(ORDERS, ((upper, column(ORDERS, "item")),))
    assert names(mixed) == {"uid"}


def test_a3_outer_join_is_not_fixed() -> None:
    """orders LEFT JOIN users ON .. AND amount > 10 GROUP BY country: one unit in US and in NULL."""
    on = call("gt", column(ORDERS, "amount"), Literal(10, INTEGER))
    joined = Match(ORDERS, USERS, Join.LEFT, on)
    assert names(joined) == {"uid"}
    orders = [{"oid": i, "uid": 1, "item": "x", "amount": 20 * i, "score": None} for i in range(2)]
    data = Data({"users": [{"uid": 1, "country": "A", "age": 1}], "orders": orders})
    country = column(USERS, "country").id
    assert {row[country] for _, row in rows(joined, data)} == {"A", None}


def test_a3_lookup_with_fan_out_is_not_fixed() -> None:
    assert names(lookup(USERS, 1)) == {"uid", "country", "age", "region"}
    assert names(lookup(USERS, 1, Join.LEFT)) == {"uid", "country", "age", "region"}
    assert names(lookup(USERS, 2)) == {"uid", "country", "age"}
    assert names(lookup(USERS, None)) == {"uid", "country", "age"}


def test_a3_lookup_by_a_row_column_is_not_fixed() -> None:
    by_item = Lookup(ORDERS, REGIONS, Join.INNER, call("eq", column(ORDERS, "item"), REGIONS.columns[0]), 1)
    assert names(by_item) == {"uid"}
    both = call("and", call("eq", column(USERS, "country"), REGIONS.columns[0]), call("eq", column(ORDERS, "amount"), Literal(1, INTEGER)))
    assert names(Lookup(Match(ORDERS, USERS, Join.INNER, None), REGIONS, Join.LEFT, both, 1)) == {"uid", "country", "age"}


def test_a_lookup_is_fixed_where_on_reads_all_that_is_fixed_or_nothing() -> None:
    uid, regions, marks = column(ORDERS, "uid"), {c.id for c in REGIONS.columns}, WORLD.public("marks")
    assert fixed(Lookup(ORDERS, REGIONS, Join.LEFT, None, 1)) == {uid.id} | regions
    assert fixed(Lookup(ORDERS, REGIONS, Join.LEFT, None, 2)) == {uid.id}
    by_unit = Lookup(ORDERS, marks, Join.LEFT, call("eq", uid, marks.columns[1]), 1)
    assert fixed(by_unit) == {uid.id} | {c.id for c in marks.columns}
    assert depends_on(uid, frozenset({uid.id}))


def test_h_case_over_a_row_column_is_not_a_unit_key() -> None:
    joined = Match(ORDERS, USERS, Join.INNER, None)
    country, amount = column(USERS, "country"), column(ORDERS, "amount")
    mixed = Case(((call("gt", amount, Literal(10, INTEGER)), country),), text("x"), STRING)
    assert not depends_on(mixed, fixed(joined))
    assert depends_on(call("upper", country), fixed(joined))
    assert depends_on(text("x"), fixed(joined))


def test_l9_rows_per_unit_is_reached() -> None:
    """A one-row unit meets three public rows, twice: nine rows, as claimed."""
    again = WORLD.public("regions")
    rel = lookup(lookup(USERS, 3), 3, public=again)
    assert rows_per_unit(rel) == 9
    public = [("A", f"r{i}") for i in range(3)]
    data = Data({"users": [{"uid": 1, "country": "A", "age": 1}]}, {REGIONS.name: public, again.name: public})
    assert len(rows(rel, data)) == 9


def test_l9_matches_are_reached() -> None:
    """Capped sides of a unit with more rows than that: the product of a match, and no more than a side along a unique key."""
    orders = [{"oid": i, "uid": 1, "item": "x", "amount": 1, "score": None} for i in range(9)]
    data = Data({"orders": orders})
    again = WORLD.scan("orders")
    both = Match(CapRows(ORDERS, 3), CapRows(again, 4), Join.INNER, None)
    assert len(rows(both, data)) == rows_per_unit(both) == 12
    same = call("eq", column(ORDERS, "oid"), column(again, "oid"))
    single = Match(CapRows(ORDERS, 9), CapRows(again, 9), Join.INNER, same, single=True)
    assert len(rows(single, data)) == rows_per_unit(single) == 9


def test_l9_groups_are_reached() -> None:
    """Five rows of one unit, each with an amount of its own: one group by the unit, five by the amount."""
    data = Data({"orders": [{"oid": i, "uid": 1, "item": "x", "amount": i, "score": None} for i in range(5)]})
    count = (Column(950, "n", INTEGER), Reduction(Reduce.COUNT, None, INTEGER))
    one, five = Group(ORDERS, (column(ORDERS, "uid"),), (count,)), Group(CapRows(ORDERS, 5), (column(ORDERS, "amount"),), (count,))
    assert len(rows(one, data)) == rows_per_unit(one) == 1
    assert len(rows(five, data)) == rows_per_unit(five) == 5
    assert fixed(one) == {column(ORDERS, "uid").id, 950}
    assert fixed(five) == set()
    assert owning(one) == {column(ORDERS, "uid").id}
    assert owning(five) == set()


def test_l9_first_rows_are_reached() -> None:
    """Of five rows of one unit a filter on their number keeps two; where each amount has a partition of its own it bounds nothing."""
    data = Data({"orders": [{"oid": i, "uid": 1, "item": "x", "amount": i, "score": None} for i in range(5)]})
    number, two = Column(951, "rn", INTEGER), Literal(2, INTEGER)

    def first(*partition: Column) -> Private:
        windowed = Windowed(ORDERS, number, Placing(Place.ROW_NUMBER, None, INTEGER), partition, ())
        return Keep(Compute(windowed, ((Column(952, "x", INTEGER), two),)), call("le", number, two))

    whole, split = first(column(ORDERS, "uid")), first(column(ORDERS, "uid"), column(ORDERS, "amount"))
    assert len(rows(whole, data)) == rows_per_unit(whole) == 2
    assert len(rows(split, data)) == 5
    assert rows_per_unit(split) is None
    assert rows_per_unit(Keep(whole, call("lt", number, two))) == rows_per_unit(Keep(whole, call("eq", number, two))) == 1


def test_l9_bounds() -> None:
    assert rows_per_unit(ORDERS) is None
    assert rows_per_unit(CapRows(ORDERS, 5)) == 5
    assert rows_per_unit(CapRows(USERS, 5)) == 1
    assert rows_per_unit(lookup(USERS, 0)) == 0
    assert rows_per_unit(lookup(USERS, 0, Join.LEFT)) == 1
    assert rows_per_unit(lookup(USERS, None)) is None
    five, seven = CapRows(ORDERS, 5), CapRows(ITEMS, 7)
    assert rows_per_unit(Match(five, seven, Join.INNER, None)) == 35
    assert rows_per_unit(Match(five, seven, Join.INNER, None, single=True)) == 7
    assert rows_per_unit(Match(five, seven, Join.LEFT, None, single=True)) == 12
    assert rows_per_unit(Match(ORDERS, USERS, Join.INNER, None, single=True)) is None
    assert rows_per_unit(Match(USERS, ORDERS, Join.LEFT, None)) is None
    assert rows_per_unit(lookup(Match(ORDERS, USERS, Join.INNER, None), 3)) is None


def test_l9_bounds_of_none_and_one() -> None:
    """A side that meets nothing leaves LEFT its own rows; a unique side of one row multiplies nothing."""
    none, one, five, seven = lookup(USERS, 0), USERS, CapRows(ORDERS, 5), CapRows(ITEMS, 7)
    assert [rows_per_unit(Match(five, none, join, None)) for join in (Join.INNER, Join.LEFT)] == [0, 5]
    assert [rows_per_unit(Match(none, five, join, None)) for join in (Join.INNER, Join.LEFT)] == [0, 0]
    assert [rows_per_unit(Match(five, none, join, None, single=True)) for join in (Join.INNER, Join.LEFT)] == [0, 5]
    assert [rows_per_unit(Match(one, seven, join, None, single=True)) for join in (Join.INNER, Join.LEFT)] == [7, 7]
    assert [rows_per_unit(Match(seven, one, join, None, single=True)) for join in (Join.INNER, Join.LEFT)] == [7, 7]
    assert rows_per_unit(lookup(CapRows(Match(five, USERS, Join.INNER, None), 4), 3, Join.LEFT)) == 12


def test_l9_bounds_of_stacks() -> None:
    """The sum for UNION, the smaller one for INTERSECT, the left one for EXCEPT; nothing is known of a sum where one is not."""

    def most(left: Private, right: Private) -> list[int | None]:
        return [rows_per_unit(Stack(left, right, (), (), (), how)) for how in (Merge.UNION_ALL, Merge.UNION, Merge.INTERSECT, Merge.EXCEPT)]

    five, seven = CapRows(ORDERS, 5), CapRows(ITEMS, 7)
    assert most(five, seven) == [12, 12, 5, 5]
    assert most(seven, five) == [12, 12, 5, 7]
    assert most(ORDERS, five) == [None, None, 5, None]
    assert most(five, ORDERS) == [None, None, 5, 5]
    assert most(ORDERS, ITEMS) == [None, None, None, None]


def test_l9_what_a_filter_on_row_numbers_leaves() -> None:
    """Only a number that counts rows, of whole units, held below a whole number from the one side that bounds it."""
    number, other = Column(951, "rn", INTEGER), Column(953, "x", INTEGER)

    def windowed(below: Private = ORDERS, place: Place = Place.ROW_NUMBER) -> Private:
        return Windowed(below, number, Placing(place, None, INTEGER), (), ())

    def left(condition: Scalar, below: Private) -> int | None:
        return rows_per_unit(Keep(below, condition))

    def by(function: str, value: int) -> int | None:
        return left(call(function, number, Literal(value, INTEGER)), windowed())

    assert [by("eq", value) for value in (-1, 0, 1, 9)] == [1, 1, 1, 1]
    assert [by("le", value) for value in (-1, 0, 1, 9)] == [0, 0, 1, 9]
    assert [by("lt", value) for value in (-1, 0, 1, 2, 9)] == [0, 0, 0, 1, 8]
    assert [by(function, 9) for function in ("gt", "ge", "ne")] == [None, None, None]
    nine = Literal(9, INTEGER)
    for unbounded in (call("le", nine, number), call("lt", nine, number), call("le", column(ORDERS, "amount"), nine), call("le", number, other)):
        assert left(unbounded, windowed()) is None
    for truth in (Call("le", (number, Literal(True, BOOLEAN)), BOOLEAN), Call("lt", (number, Literal(True, BOOLEAN)), BOOLEAN)):
        assert left(truth, windowed()) is None
    kept = call("le", number, nine)
    assert left(kept, windowed(place=Place.RANK)) is None
    assert left(kept, Windowed(ORDERS, number, Reduction(Reduce.COUNT, None, INTEGER), (), ())) is None
    assert left(kept, windowed(CapRows(ORDERS, 5))) == 5
    assert left(kept, windowed(CapRows(ORDERS, 12))) == 9
    assert left(call("and", call("is_null", column(ORDERS, "item")), kept), windowed()) == 9
    above = Windowed(windowed(), other, Placing(Place.RANK, None, INTEGER), (), ())
    assert left(kept, Keep(Compute(above, ()), call("is_null", column(ORDERS, "item")))) == 9
    assert left(kept, CapRows(windowed(), 12)) == 12  # of rows that were chosen by something else
    both = Windowed(windowed(), other, Placing(Place.ROW_NUMBER, None, INTEGER), (), ())
    for less, more in ((number, other), (other, number)):
        assert left(call("and", call("le", less, Literal(3, INTEGER)), call("le", more, nine)), both) == 3


def test_distinct_units_from_a_null_side() -> None:
    """COUNT(DISTINCT o.uid) over users LEFT JOIN orders counts units with orders; the left side's unit is never NULL."""
    left = Match(USERS, ORDERS, Join.LEFT, None)
    assert owning(left) == {column(USERS, "uid").id}
    assert owning(Match(USERS, ORDERS, Join.INNER, None)) == {column(USERS, "uid").id, column(ORDERS, "uid").id}
    assert owning(ITEMS) == set()


THEIRS = call("is_null", column(ORDERS, "item"))


@pytest.mark.lemma("R1")
@pytest.mark.parametrize(
    ("rel", "lemma"),
    [
        (Keep(USERS, THEIRS), "L3"),
        (Compute(USERS, ((Column(901, "n", INTEGER), column(ORDERS, "amount")),)), "L4"),
        (Lookup(USERS, REGIONS, Join.INNER, call("eq", column(ORDERS, "item"), REGIONS.columns[0]), 1), "L5"),
        (Match(USERS, ORDERS, Join.INNER, call("eq", column(ITEMS, "price"), column(USERS, "age"))), "L6"),
        (Match(Keep(USERS, THEIRS), ORDERS, Join.INNER, None), "L3"),
    ],
)
def test_a_plan_that_breaks_a_lemma_is_a_fault(rel: Private, lemma: str) -> None:
    with pytest.raises(Fault) as caught:
        local(rel)
    assert (caught.value.code, caught.value.message) == ("PLAN_BROKEN", f"an expression reads what its relation does not hold ({lemma})")


def test_a_cap_below_one_row_is_a_fault() -> None:
    with pytest.raises(Fault) as caught:
        local(CapRows(USERS, 0))
    assert (caught.value.code, caught.value.message) == ("PLAN_BROKEN", "a row cap lies below 1")
    assert local(CapRows(USERS, 1)) == ("L1", "L2", "L7")


def test_an_unknown_fan_out_is_a_fault() -> None:
    with pytest.raises(Fault) as caught:
        filled(lookup(USERS, None), Facts({}))
    assert (caught.value.code, caught.value.message) == ("PLAN_BROKEN", "the fan-out of a public table is not known")


@pytest.mark.lemma("L3", "L4", "L5", "L6")
def test_expressions_may_read_all_that_their_relation_holds() -> None:
    uid, country, age = output(USERS)
    every = call("and", call("is_null", uid), call("and", call("is_null", country), call("is_null", age)))
    assert local(Keep(USERS, every)) == ("L1", "L2", "L3")
    assert local(Compute(USERS, ((Column(902, "all", BOOLEAN), every),))) == ("L1", "L2", "L4")
    for on in (None, call("and", every, call("eq", *REGIONS.columns))):
        assert local(Lookup(USERS, REGIONS, Join.INNER, on, 1)) == ("L1", "L2", "L5")
    for more in (None, call("and", every, call("eq", column(ITEMS, "oid"), column(ITEMS, "price")))):
        assert local(Match(USERS, ITEMS, Join.LEFT, more)) == ("L1", "L2", "L6")
    assert local(Match(Keep(ITEMS, text("x")), CapRows(USERS, 1), Join.INNER, None)) == ("L1", "L2", "L3", "L6", "L7")


@pytest.mark.lemma("L8")
def test_l8_cells_read_their_own_relation_alone() -> None:
    """A key, a value and a filter, of a later part as of the first, each of another relation: each is a fault."""

    def table(key: Scalar, value: Scalar, where: Scalar | None) -> UnitTable:
        parts = (Part(One(), Clamp(0, 1)), Part(Units(value, Fraction(1), 0, 9), Clamp(0, 9), where), Part(One(value), Clamp(0, 1)))
        return UnitTable(USERS, (Key("k0", key, key.type),), parts, GroupCap(1))

    country, age, amount = column(USERS, "country"), column(USERS, "age"), column(ORDERS, "amount")
    assert cells(table(country, age, None)) == cells(table(country, age, call("is_null", age))) == "L8"
    counted = UnitTable(USERS, (), (Part(One(amount), Clamp(0, 1)),), GroupCap(1))
    for broken in (table(column(ORDERS, "item"), age, None), table(country, amount, None), table(country, age, THEIRS), counted):
        with pytest.raises(Fault) as caught:
            cells(broken)
        assert (caught.value.code, caught.value.message) == ("PLAN_BROKEN", "an expression reads what its relation does not hold (L8)")
