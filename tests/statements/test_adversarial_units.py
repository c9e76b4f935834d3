"""Tightness at SQL level: for each kind of statement a unit, or a pair of units, whose rows move the exact sums as far as is claimed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

import pytest
from checked import norms, prepared, shifts, spreads
from inside import Inside
from worlds import World, engine

from dpquery.backends.lower import lower
from dpquery.backends.port import BoundedSQL
from dpquery.plan.rel import Join, Match, Private
from dpquery.plan.release import GroupCap, Idle, Release, RowWeights
from dpquery.privacy import locality, resolve, sensitivities
from dpquery.privacy.contribution import groups_of_a_unit
from dpquery.values.types import Adjacency

SCHEMA = """
dataset: tight
source: {engine: duckdb, path: tight.duckdb}
privacy_unit: users.uid
unsafe_testing: true
budget: {epsilon: 1e30, delta: 1000}
per_query: {epsilon: 1e20, delta: 1, max_epsilon: 1e25}
contribution: {max_groups_contributed: 3, max_rows_per_group: 2}
tables:
  users:
    unit: uid
    max_rows_per_unit: 1
    columns: {uid: {type: integer}, country: {type: string, values: [US, DE]}, age: {type: integer, lower: 0, upper: 90}}
  orders:
    unit: uid
    columns:
      oid: {type: integer, unique: true}
      uid: {type: integer}
      cat: {type: string}
      amount: {type: decimal, lower: -5, upper: 20, step: 0.01}
      rating: {type: integer, lower: 1, upper: 4}
      score: {type: float, lower: -8, upper: 3}
  items: {unit: {via: oid, references: orders.oid}, columns: {oid: {type: integer}, price: {type: integer, lower: 2, upper: 7}}}
  cats: {public: true, columns: {cat: {type: string}, kind: {type: string}}}
  tags: {public: true, columns: {cat: {type: string}, tag: {type: string}}}
"""
CATS = [f"c{i}" for i in range(8)]

# The rows of unit 1, by name: country, cats, rows of each, and the values of amount, rating, score and price.
Unit = tuple[str, tuple[int, ...], int, str, str, str, str]
UNITS: dict[str, Unit | None] = {
    "none": None,
    "high": ("US", (0, 1, 2), 4, "20", "4", "3", "7"),
    "low": ("US", (0, 1, 2), 4, "-5", "1", "-8", "2"),
    "elsewhere": ("DE", (3, 4, 5), 4, "20", "4", "-8", "7"),
    "everywhere": ("US", tuple(range(8)), 4, "1e9", "99", "-inf", "99"),
    "middle": ("US", (0, 1, 2), 4, "7.5", "2.5", "-2.5", "4.5"),
    "across": ("US", (0, 1, 2), 4, "20", "1", "3", "2"),
    "five": ("US", (0,), 5, "20", "4", "-8", "7"),
    "five_elsewhere": ("US", (4,), 5, "20", "4", "-8", "7"),
    "five_low": ("US", (0,), 5, "-5", "1", "3", "2"),
}


@pytest.fixture(scope="module")
def made() -> Iterator[World]:
    """One catalogue for each version of unit 1, beside the same two other units."""
    con = engine()
    for name in UNITS:
        at = f'"{name}".main'
        con.execute(f"ATTACH ':memory:' AS \"{name}\"")
        con.execute(f"CREATE TABLE {at}.users(uid BIGINT, country VARCHAR, age BIGINT)")
        con.execute(f"CREATE TABLE {at}.orders(oid BIGINT, uid BIGINT, cat VARCHAR, amount DOUBLE, rating BIGINT, score DOUBLE)")
        con.execute(f"CREATE TABLE {at}.items(oid BIGINT, price BIGINT)")
        con.execute(f"CREATE TABLE {at}.cats AS SELECT 'c' || i AS cat, 'kind ' || i AS kind FROM range(8) AS r(i)")
        con.execute(f"CREATE TABLE {at}.tags AS SELECT 'c' || i AS cat, 't' || j AS tag FROM range(8) AS r(i), range(3) AS s(j)")
        _unit(con, at, 2, ("US", (0, 3), 1, "7", "2", "0.5", "3"))
        _unit(con, at, 3, ("DE", (1, 4), 2, "-1", "3", "-1", "5"))
        _unit(con, at, 1, UNITS[name])
    made = World(Random(0), {}, obedient=False, text=SCHEMA)
    made.con = con
    yield made
    con.close()


def _unit(con: object, at: str, uid: int, rows: Unit | None) -> None:
    if rows is None:
        return
    country, cats, each, amount, rating, score, price = rows
    con.execute(f"INSERT INTO {at}.users VALUES ({uid}, '{country}', 90)")  # type: ignore[attr-defined]
    for cat in cats:
        for i in range(each):
            oid = 1000 * uid + 10 * cat + i
            con.execute(f"INSERT INTO {at}.orders VALUES ({oid}, {uid}, 'c{cat}', '{amount}', {rating}, '{score}')")  # type: ignore[attr-defined]
            con.execute(f"INSERT INTO {at}.items VALUES ({oid}, {price})")  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Case:
    """A statement; pairs of versions of unit 1 that reach the claims for add/remove, and for replace-one; norms that no pair is meant to reach."""

    sql: str
    removed: tuple[str, ...] = ("high", "low", "everywhere")
    replaced: tuple[tuple[str, str], ...] = (
        ("none", "high"),
        ("high", "low"),
        ("high", "elsewhere"),
        ("low", "elsewhere"),
        ("elsewhere", "everywhere"),
    )
    without: tuple[int, ...] = ()


HIGH_AND_LOW = (("none", "high"), ("high", "low"), ("high", "elsewhere"), ("low", "elsewhere"), ("elsewhere", "everywhere"))
IN = ", ".join(f"'{cat}'" for cat in CATS)
FIVES = (("five", "five_elsewhere"), ("five", "five_low"), ("five_low", "five_elsewhere"))
WEIGHED = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed = 5)"
CASES: dict[str, Case] = {
    "rows": Case("SELECT COUNT(*) FROM orders"),
    "values": Case("SELECT COUNT(amount) FILTER (WHERE rating > 0) FROM orders WHERE cat <> 'x'"),
    "units": Case("SELECT COUNT(DISTINCT uid) FROM orders"),
    "different values": Case("SELECT COUNT(DISTINCT cat) FROM orders", ("everywhere",), (("none", "everywhere"), ("everywhere", "none"))),
    "different values of groups": Case(
        "SELECT cat, COUNT(DISTINCT oid) FROM orders GROUP BY cat", replaced=(("none", "high"), ("high", "elsewhere"), ("high", "low"))
    ),
    "sum": Case("SELECT SUM(amount) FROM orders"),
    "sum of floats": Case("SELECT SUM(score) FROM orders"),
    "sum within bounds": Case("SELECT SUM(amount, contribution_bounds_per_row => (-4, 3)) FROM orders"),
    "sum within bounds of a group": Case("SELECT cat, SUM(amount, contribution_bounds_per_group => (-6, 25)) FROM orders GROUP BY cat"),
    "a race of caps": Case(
        "SELECT COUNT(*, contribution_bounds_per_group => (0, 12), bounds => 'race') AS n, SUM(rating, contribution_bounds_per_group => (0, 40), "
        "bounds => 'race') FILTER (WHERE amount > 0) AS s FROM orders"
    ),
    "a race of caps in groups": Case(
        "SELECT cat, SUM(rating, contribution_bounds_per_group => (0, 9), bounds => 'race') FROM orders GROUP BY cat",
        replaced=(("none", "high"), ("high", "elsewhere"), ("high", "low")),
    ),
    "bounds whose loss is paid for": Case(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(loss_epsilon = 1) COUNT(*, contribution_bounds_per_group => (0, 1)) AS n, "
        "SUM(amount, contribution_bounds_per_group => (-2, 3)) AS s FROM orders"
    ),
    "sum of an expression": Case(
        "WITH w AS (SELECT uid, amount * 2 - rating AS x FROM orders) SELECT SUM(x, contribution_bounds_per_row => (-20, 20)) FROM w"
    ),
    "mean": Case("SELECT AVG(rating) FROM orders"),
    "mean of means": Case("SELECT AVG(amount, contribution_bounds_per_group => (0, 10)) FROM orders", replaced=(("none", "high"), ("high", "low"))),
    "spread": Case("SELECT VAR_POP(amount), STDDEV(score) FROM orders", replaced=(*HIGH_AND_LOW, ("high", "middle"))),
    "pair": Case(
        "SELECT CORR(score, amount), COVAR_SAMP(rating, amount) FROM orders",
        replaced=(*HIGH_AND_LOW, ("high", "across"), ("high", "middle")),
    ),
    "quantiles": Case("SELECT cat, MEDIAN(rating), QUANTILE_CONT(amount, 0.9) FROM orders GROUP BY cat", without=(0,)),
    "quantiles of listed groups": Case(
        f"SELECT cat, QUANTILE_DISC(score, 0.1), MEDIAN(rating) FILTER (WHERE rating > 0) FROM orders WHERE cat IN ({IN}) GROUP BY cat", without=(0,)
    ),
    "modes": Case("SELECT cat, MODE(rating > 2), MODE(amount > 2) FROM orders GROUP BY cat", without=(0,)),
    "modes of listed groups": Case(f"SELECT cat, MODE(rating > 2) FROM orders WHERE cat IN ({IN}) GROUP BY cat", without=(0,)),
    "the group with the most": Case(
        "SELECT arg_max(cat, n) FROM (SELECT cat, SUM(CASE WHEN cat = 'c0' THEN amount ELSE -amount END, "
        f"contribution_bounds_per_row => (-5, 5)) AS n FROM orders WHERE cat IN ({IN}) GROUP BY cat)",
        without=(0, 1, 2, 3),  # only what moves sums apart is paid for
    ),
    "the group with the least": Case(
        f"SELECT arg_min(cat, n) FROM (SELECT cat, COUNT(*) AS n FROM orders WHERE cat IN ({IN}) GROUP BY cat)", without=(0, 1, 2, 3)
    ),
    "one row a unit": Case("SELECT COUNT(*), SUM(age) FROM users", replaced=(("none", "high"), ("high", "none"))),
    "private keys": Case("SELECT cat, COUNT(*), COUNT(DISTINCT uid), SUM(amount), AVG(rating) FROM orders GROUP BY cat"),
    "listed keys": Case(f"SELECT cat, COUNT(*), SUM(score) FROM orders WHERE cat IN ({IN}) GROUP BY cat"),
    "keys of a public table": Case("SELECT kind, COUNT(*), SUM(amount) FROM orders JOIN cats USING (cat) GROUP BY kind"),
    "fewer keys than the cap": Case(
        "SELECT cat, COUNT(*), SUM(amount) FROM orders WHERE cat IN ('c0', 'c1') GROUP BY cat", replaced=(("none", "high"), ("high", "low"))
    ),
    "keys that depend on the unit": Case("SELECT country, COUNT(*), SUM(rating) FROM orders JOIN users USING (uid) GROUP BY country"),
    "keys of the null side": Case(
        "SELECT u.country, COUNT(*) FROM orders o LEFT JOIN users u ON o.uid = u.uid AND o.cat = 'c1' GROUP BY u.country",
        removed=("high",),
        replaced=(("high", "low"),),
        without=(0, 1, 2, 3),
    ),
    "public rows met several times": Case("SELECT tag, COUNT(*), SUM(rating) FROM orders JOIN tags USING (cat) GROUP BY tag"),
    "two keys": Case("SELECT kind, tag, COUNT(*) FROM orders JOIN cats USING (cat) JOIN tags USING (cat) GROUP BY ALL"),
    "along the path": Case("SELECT cat, SUM(price) FROM items i JOIN orders o ON i.oid = o.oid GROUP BY cat"),
    "partners within an expression": Case(
        "SELECT COUNT(*) FILTER (WHERE rating > 9 OR uid IN (SELECT uid FROM users)), SUM(CASE WHEN EXISTS "
        "(SELECT 1 FROM items i WHERE i.oid = o.oid) THEN amount ELSE 0 END) FROM orders o"
    ),
    "keys that say whether there is a partner": Case(
        "SELECT cat IN (SELECT cat FROM cats WHERE kind <> 'kind 1') AS known, COUNT(*), SUM(amount) FROM orders GROUP BY 1",
        replaced=(("none", "high"), ("high", "low")),
        without=(0, 2, 3),  # no unit has a row without a cat
    ),
    "public values": Case("SELECT SUM(amount * (SELECT COUNT(*) - 6 FROM cats), contribution_bounds_per_row => (-10, 40)) FROM orders"),
    "outer join": Case("SELECT COUNT(*), COUNT(o.oid), COUNT(DISTINCT o.uid) FROM users u LEFT JOIN orders o ON u.uid = o.uid"),
    "joined on the unit": Case("SELECT a.cat, COUNT(*) FROM orders a JOIN orders b ON a.uid = b.uid GROUP BY 1"),
    "kept public rows": Case("SELECT c.kind, COUNT(o.oid) FROM orders o RIGHT JOIN cats c ON o.cat = c.cat GROUP BY c.kind"),
    "weighed rows": Case(f"{WEIGHED} COUNT(*), SUM(amount), SUM(score) FROM orders", ("five", "five_low"), FIVES, without=(0,)),
    "weighed rows in groups": Case(
        f"{WEIGHED} cat, COUNT(*), AVG(rating) FROM orders WHERE cat IN ({IN}) GROUP BY cat", ("five",), FIVES, without=(0,)
    ),
}
NORMS = ("l0", "linf", "l1", "l2_squared")
MISSED = {"weighed rows": Adjacency.REPLACE_ONE, "weighed rows in groups": Adjacency.REPLACE_ONE}
"""Row weights: replace-one is charged as removing and adding, which one group of both signs does not reach."""


@pytest.mark.lemma("C3")
@pytest.mark.parametrize("name", CASES)
def test_a_unit_reaches_the_claim(made: World, name: str) -> None:
    case = CASES[name]
    ready = prepared(made, Inside(made, "none"), case.sql, salt=7)
    types, parts = [key.type for key in ready.release.table.keys], len(ready.release.table.parts)
    exact = {unit: Inside(made, unit).run(ready.lowered, types, parts) for unit in UNITS}
    pairs = {Adjacency.ADD_REMOVE: [("none", unit) for unit in case.removed], Adjacency.REPLACE_ONE: list(case.replaced)}
    for adjacency, tried in pairs.items():
        for part, claim in enumerate(sensitivities(ready.lowered.enforced, adjacency)):
            found = [norms(shifts(exact[one], exact[other], part)) for one, other in tried]
            claimed = (claim.l0, claim.linf, claim.l1, claim.l2_squared)
            assert all(f <= c for each in found for f, c in zip(each, claimed, strict=True)), f"{adjacency}, part {part}: {found}, claimed {claimed}"
            if MISSED.get(name) is adjacency:
                continue
            apart = {(len(s), max(s)) for one, other in tried if claim.spreads[0] and (s := spreads(exact[one], exact[other], part))}
            assert not apart or claim.spreads in apart, f"{adjacency}, part {part}: integers move apart by {apart}, claimed {claim.spreads}"
            reached = tuple(max(each[i] for each in found) for i in range(4))
            short = [f"{NORMS[i]}: {reached[i]} of {claimed[i]}" for i in range(4) if reached[i] != claimed[i] and i not in case.without]
            assert not short, f"{adjacency}, part {part} ({ready.release.table.parts[part]}): {short}"


def test_a_null_side_that_is_taken_for_the_units_own_breaks_the_claim(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One unit is in the group of its value and in that of NULL: without a cap on groups, too many sums move."""
    real = locality.fixed

    def wrong(rel: Private) -> frozenset[int]:
        return real(replace(rel, join=Join.INNER) if isinstance(rel, Match) else rel)

    for room in (locality, resolve):
        monkeypatch.setattr(room, "fixed", wrong)
    with pytest.raises(AssertionError, match="claimed"):
        test_a_unit_reaches_the_claim(made, "keys of the null side")


def test_a_unit_that_brings_all_its_values_breaks_the_claim(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(release: Release, salt: int) -> BoundedSQL:
        lowered = lower(release, salt)
        return replace(lowered, text=re.sub(r"WHERE r\.place <= \d+", "", lowered.text))

    right = prepared
    monkeypatch.setitem(globals(), "prepared", lambda *args, **more: right(*args, **more, down=down))
    for name in ("different values", "different values of groups"):
        with pytest.raises(AssertionError, match="claimed"):
            test_a_unit_reaches_the_claim(made, name)


def test_rows_that_all_weigh_one_break_the_claim(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(release: Release, salt: int) -> BoundedSQL:
        lowered = lower(release, salt)
        return replace(lowered, text=re.sub(r"least\(c\.n(\d+), \d+\)", r"c.n\1", lowered.text))

    right = prepared
    monkeypatch.setitem(globals(), "prepared", lambda *args, **more: right(*args, **more, down=down))
    for name in ("quantiles", "quantiles of listed groups", "modes", "modes of listed groups"):
        with pytest.raises(AssertionError, match="claimed"):
            test_a_unit_reaches_the_claim(made, name)


@pytest.mark.parametrize("name", ["private keys", "along the path", "joined on the unit"])
def test_a_unit_stands_alone_in_as_many_groups_as_claimed(made: World, name: str) -> None:
    ready = prepared(made, Inside(made, "none"), CASES[name].sql, salt=7)
    types, parts = [key.type for key in ready.release.table.keys], len(ready.release.table.parts)
    none, everywhere = (Inside(made, unit).run(ready.lowered, types, parts) for unit in ("none", "everywhere"))
    assert len(set(everywhere.keys) - set(none.keys)) <= groups_of_a_unit(ready.lowered.enforced) == 3
    alone = {key for key in everywhere.keys if key not in set(none.keys)}
    salted = [prepared(made, Inside(made, "none"), CASES[name].sql, salt) for salt in range(20)]
    most = max(len(set(Inside(made, "everywhere").run(one.lowered, types, parts).keys) - set(none.keys)) for one in salted)
    assert alone
    assert most == 3


def test_the_cases_cover_every_bounding(made: World) -> None:
    bounds = [prepared(made, Inside(made, "none"), case.sql, salt=7).lowered.enforced.bounding for case in CASES.values()]
    assert {b.idle for b in bounds if isinstance(b, GroupCap)} >= {None}
    assert {b.idle for b in bounds if isinstance(b, GroupCap)} == {None, *Idle}
    assert any(isinstance(b, RowWeights) for b in bounds)
