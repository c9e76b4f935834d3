"""L25, C15, C16 and P8: relations that are filled between releases, whatever they will hold."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

import pytest
import random_plans as rp
from interpreter import Data, rows, run

from dpquery.errors import Fault
from dpquery.plan.draft import AggregateAsk, Contributions, Draft
from dpquery.plan.functions import call
from dpquery.plan.rel import Filling, Join, Lookup, Private, Scan, output
from dpquery.plan.release import Clamp, Enforced, GroupCap, HeavyMean, Idle, Key, KeySource, Release, ReleasedKeys
from dpquery.plan.scalar import Column
from dpquery.privacy import Facts, bound, enforced, lemmas, sensitivities
from dpquery.privacy.later import any_cap, met_once
from dpquery.privacy.locality import fixed, local
from dpquery.privacy.rows import rows_per_unit
from dpquery.values.types import FLOAT, INTEGER, STRING, Adjacency

WORLD = rp.World(Random(25))
USERS, ORDERS = WORLD.scan("users"), WORLD.scan("orders")
EACH: list[dict[str, Any]] = [{"uid": 1, "country": "A", "age": 3}]
CAP = 2


def of(rel: Private, name: str) -> Column:
    return next(c for c in output(rel) if c.name == name)


def by_country(join: Join = Join.INNER) -> Lookup:
    made = WORLD.released(Filling.KEYS, STRING)
    return Lookup(USERS, made, join, call("eq", made.columns[0], of(USERS, "country")), 1)


def met(rel: Lookup, held: list[tuple[Any, ...]]) -> int:
    return len(rows(rel, Data({"users": EACH}, {rel.public.name: held})))


@pytest.mark.lemma("L25")
@pytest.mark.parametrize("join", Join)
def test_l25_a_row_meets_one_row_whatever_the_list(join: Join) -> None:
    rel = by_country(join)
    assert {"L5", "L25"} <= set(local(rel))
    assert rows_per_unit(rel) == 1
    assert rel.public.columns[0].id in fixed(rel)
    for held in ([], [("A",)], [("A",), ("B",), (None,)], [(None,)]):
        assert met(rel, held) <= 1


@pytest.mark.lemma("L25")
def test_l25_a_list_with_a_row_twice_is_caught() -> None:
    """What L9 says of the join then is wrong: rows of a list have to differ."""
    assert met(by_country(), [("A",), ("A",)]) > (rows_per_unit(by_country()) or 0)


@pytest.mark.lemma("L25")
def test_l25_a_list_is_joined_by_all_of_its_columns() -> None:
    """By fewer of them a private row meets several rows; a comparison with the list's own columns is none."""
    made = WORLD.released(Filling.KEYS, STRING, STRING)
    country, other = of(USERS, "country"), made.columns[1]
    first = call("eq", made.columns[0], country)
    for on in (first, call("and", first, call("eq", other, other)), call("or", first, call("eq", other, country)), call("ne", other, country), None):
        wrong = Lookup(USERS, made, Join.INNER, on, 1)
        with pytest.raises(Fault) as caught:
            local(wrong)
        assert (caught.value.code, caught.value.message) == ("PLAN_BROKEN", "a released list is joined by less than all of its columns (L25)")
    assert met(Lookup(USERS, made, Join.INNER, first, 1), [("A", "x"), ("A", "y")]) == 2
    assert met_once(Lookup(USERS, made, Join.INNER, call("and", first, call("eq", country, other)), 1)) == "L25"


@pytest.mark.lemma("L25")
def test_l25_a_row_needs_no_condition() -> None:
    row = WORLD.released(Filling.ROW, STRING, INTEGER)
    assert met_once(Lookup(USERS, row, Join.LEFT, None, 1)) == "L25"
    assert met(Lookup(USERS, row, Join.LEFT, None, 1), [("A", 1)]) == met(Lookup(USERS, row, Join.LEFT, None, 1), []) == 1


# ---- key lists -----------------------------------------------------------------------------------------------------------------------


def listed(groups: int = CAP) -> Release:
    """A count of orders by item, whose groups are a list that is not known yet."""
    key = Key("item", of(ORDERS, "item"), STRING)
    public = WORLD.released(Filling.KEYS, INTEGER, STRING)
    source = KeySource((0,), "a list", literals=((),))
    plan = Draft(ORDERS, (key,), (source,), (AggregateAsk("a0", "count(*)", "count", None, None),), Contributions(groups, 1, 9), listed=public)
    return bound(plan, Facts({}, None, "a list"))


def data(release: Release, keys: list[str], unit: bool) -> Data:
    assert isinstance(release.keys, ReleasedKeys)
    ids = count()
    orders = [{"oid": next(ids), "uid": u, "item": key, "amount": 1, "score": None} for u in range(2 + unit) for key in keys]
    return Data({"orders": orders}, {release.keys.public.name: list(enumerate(keys))})


def moved(release: Release, keys: list[str]) -> list[int]:
    one, other = (run(release, data(release, keys, unit)) for unit in (False, True))
    assert one.keys() == other.keys() == {(key,) for key in keys}
    return [abs(one[key][0] - other[key][0]) for key in one]


@pytest.mark.lemma("C15")
@pytest.mark.parametrize("many", range(6))
def test_c15_a_unit_reaches_the_cap_on_a_released_list(many: int) -> None:
    """l0 is the cap, for lists shorter and longer than it; no list changes what is claimed."""
    release = listed()
    assert "C15" in lemmas(release)
    assert enforced(release) == Enforced(GroupCap(CAP), enforced(release).cells, None, keyed=True, listed=None)
    (claim,) = sensitivities(enforced(release), Adjacency.ADD_REMOVE)
    shifts = moved(release, list("vwxyz")[:many])
    assert claim.l0 == CAP
    assert sum(map(bool, shifts)) == min(many, CAP)


@pytest.mark.lemma("C15")
def test_c15_a_cap_left_out_for_a_list_is_refused_and_would_be_wrong() -> None:
    """The cap taken for idle because of a list of one key: of another list, a unit moves more groups than that."""
    release = listed()
    wrong = replace(release, table=replace(release.table, bounding=GroupCap(1, Idle.ALL_KEYS)))
    with pytest.raises(Fault) as caught:
        lemmas(wrong)
    said = "a cap on groups is left out for the sake of a list that is not known (C15)"
    assert (caught.value.code, caught.value.message) == ("PLAN_BROKEN", said)
    (claim,) = sensitivities(enforced(wrong), Adjacency.ADD_REMOVE)
    assert sum(map(bool, moved(wrong, ["x"]))) == claim.l0 == 1
    assert sum(map(bool, moved(wrong, ["x", "y", "z"]))) > claim.l0


@pytest.mark.lemma("C15", "P8")
def test_c15_the_number_of_keys_would_make_a_claim_too_small() -> None:
    """Replace-one, where a list of K keys bounds what moves: of a list that is not known, it would be another K for each."""
    release = listed(3)
    (claim,) = sensitivities(enforced(release), Adjacency.REPLACE_ONE)
    (smaller,) = sensitivities(replace(enforced(release), listed=1), Adjacency.REPLACE_ONE)
    assert smaller.l1 < claim.l1


# ---- caps ----------------------------------------------------------------------------------------------------------------------------


def in_units_of_a_cap(card: str = "total", of_rows: Scan = ORDERS, name: str = "amount", most: int = 1) -> Release:
    """A sum of orders in units of a cap that is not known yet."""
    made = WORLD.released(Filling.ROW, FLOAT)
    cap = replace(made.columns[0], public=made.name)
    rel = Lookup(of_rows, replace(made, columns=(cap,)), Join.INNER, None)
    value = of(of_rows, name)
    ask = AggregateAsk("a0", f"{card}({name})", card, value, None, cap=cap)
    return bound(Draft(rel, (), (), (ask,), Contributions(1, most, 9)), Facts({made.name: 1}, None, ""))


@pytest.mark.lemma("C16", "P8")
@pytest.mark.parametrize("cap", [1e-300, 1e-3, 1.0, 40.0, 1e6, 1e300, None])
def test_c16_a_unit_reaches_the_claim_under_any_cap(cap: float | None) -> None:
    """One unit moves the sum by at most what was claimed before the cap was known, and by all of it where the cap lies below its values."""
    release = in_units_of_a_cap()
    assert "C16" in lemmas(release)
    (claim,) = sensitivities(enforced(release), Adjacency.ADD_REMOVE)
    (name,) = {one.cap for one in release.aggregates}
    ours = [{"oid": i, "uid": 1, "item": "v", "amount": 50, "score": None} for i in range(3)]
    theirs = [{"oid": 9, "uid": 2, "item": "v", "amount": 2, "score": None}]
    one, other = (run(release, Data({"orders": orders}, {str(name): [(cap,)]})).get((), [0])[0] for orders in (theirs, theirs + ours))
    assert abs(other - one) <= claim.linf
    assert (abs(other - one) == claim.linf) is (cap is not None and cap <= 150)


@pytest.mark.lemma("C16")
def test_c16_without_the_clamp_a_small_cap_breaks_the_claim() -> None:
    release = in_units_of_a_cap()
    (claim,) = sensitivities(enforced(release), Adjacency.ADD_REMOVE)
    (part,) = release.table.parts
    wide = replace(release, table=replace(release.table, parts=(replace(part, cell=Clamp(-(2**62), 2**62)),)))
    orders = [{"oid": 1, "uid": 1, "item": "v", "amount": 50, "score": None}]
    (name,) = {one.cap for one in release.aggregates}
    assert run(wide, Data({"orders": orders}, {str(name): [(1.0,)]}))[()][0] > claim.linf


@pytest.mark.lemma("C16")
def test_c16_a_cap_that_is_no_released_row_is_refused() -> None:
    """No relation of that name, one of several rows, and one of several values."""
    release = in_units_of_a_cap()
    rel = release.table.input
    assert isinstance(rel, Lookup)
    several = replace(rel, public=replace(rel.public, filled=Filling.KEYS))
    pair = replace(rel, public=replace(rel.public, columns=rel.public.columns * 2))
    assert pair.public.filled is Filling.ROW
    for wrong in (ORDERS, several, pair):
        with pytest.raises(Fault) as caught:
            any_cap(replace(release, table=replace(release.table, input=wrong)))
        assert (caught.value.code, caught.value.message) == ("PLAN_BROKEN", "a cap is not one released value (C16)")


@pytest.mark.lemma("C16", "L9")
def test_c16_a_mean_of_units_with_one_row_each_is_planned_as_such() -> None:
    """In units of a cap as without one: the rows that a unit can have count, not the limit on them."""
    users, orders = (in_units_of_a_cap("mean", rel, name, 9).table.parts for rel, name in ((USERS, "age"), (ORDERS, "amount")))
    assert [part.cell.rows for part in users if isinstance(part.cell, HeavyMean)] == [1]
    assert [part.cell.rows for part in orders if isinstance(part.cell, HeavyMean)] == [9]
