"""Which groups appear: lists that are public, and thresholds on noisy counts of distinct units."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import people
import pytest
from people import code, noise_of, one, rows, shown

from dpquery.engine.session import Session
from dpquery.mechanisms import Noise, tail_up
from dpquery.plan.release import Mechanism

Pair = tuple[Session, Session]

LISTED = [
    ("SELECT s, count(*) FROM visits WHERE s IN ('s1', 's2', 's1', 'zz') GROUP BY s", ["s1", "s2", "zz"]),
    ("SELECT s, count(*) FROM visits WHERE s IN ('s1', 's2') OR s IS NULL GROUP BY s", ["s1", "s2", None]),
    ("SELECT k, count(*) FROM visits WHERE k IN (1, 1.0, 2, '1', 99, NULL) GROUP BY k", [1, 2, 99]),
    ("SELECT x, count(*) FROM visits WHERE x IN (0.0, -0.0, 1, 1.0) GROUP BY x", [0.0, 1.0]),
    ("SELECT lower(s) AS l, count(*) FROM visits WHERE lower(s) IN ('s1', 's2') GROUP BY l", ["s1", "s2"]),
    ("SELECT menu, count(*) FROM people GROUP BY menu", ["DE", "FR", "JP", "US"]),
    ("SELECT menu, count(*) FROM people WHERE menu <> 'US' GROUP BY menu", ["DE", "FR", "JP"]),
    ("SELECT menu, count(*) FROM people WHERE menu <> 'US' OR age > 30 GROUP BY menu", ["DE", "FR", "JP", "US"]),
    ("SELECT CASE WHEN x > 0 THEN 'p' WHEN x < 0 THEN 'p' ELSE 'z' END AS c, count(*) FROM visits GROUP BY c", ["p", "z"]),
    ("SELECT CASE WHEN c.y > 50 THEN 'u' ELSE 'o' END AS c, count(*) FROM visits LEFT JOIN calls c USING (pid) GROUP BY c", ["o", "u"]),
    ("SELECT menu, age > 30 AS old, count(*) FROM people GROUP BY menu, old", [m for m in ("DE", "FR", "JP", "US") for _ in (False, True)]),
    ("SELECT floor(age / 50) AS half, count(*) FROM people GROUP BY half", [0.0, 1.0, 2.0]),
    ("SELECT 1 // (age // 60) AS i, count(*) FROM people GROUP BY i", [0, 1, None]),
    ("SELECT r.region, count(*) FROM people JOIN regions r USING (country) GROUP BY r.region", ["AM", "AM2", "EU"]),
    ("SELECT r.region, count(*) FROM people JOIN regions r USING (country) WHERE r.region <> 'AM' GROUP BY r.region", ["AM2", "EU"]),
    ("SELECT c.name, count(*) FROM visits JOIN codes c USING (k) GROUP BY c.name", ["a", "b", "c"]),
    ("SELECT codes.k, count(*) FROM codes LEFT JOIN visits ON codes.k = visits.k GROUP BY codes.k", [0, 1, 2, 3, 9]),
]
PRIVATE = [
    "SELECT s, count(*) FROM visits GROUP BY s",
    "SELECT s, count(*) FROM visits WHERE s IN ('s1', 's2') OR k = 1 GROUP BY s",
    "SELECT s, count(*) FROM visits WHERE NOT s IN ('s1', 's2') GROUP BY s",
    "SELECT s, count(*) FROM visits WHERE lower(s) IN ('s1', 's2') GROUP BY s",
    "SELECT p.menu, count(*) FROM visits v LEFT JOIN people p USING (pid) GROUP BY p.menu",
    "SELECT p.menu, count(*) FROM visits v LEFT JOIN people p ON v.pid = p.pid AND p.menu IN ('US', 'DE') GROUP BY p.menu",
    "SELECT CASE WHEN x > 0 THEN 'p' END AS c, count(*) FROM visits GROUP BY c",
    "SELECT CASE WHEN x > 0 THEN 'p' ELSE s END AS c, count(*) FROM visits GROUP BY c",
    "SELECT r.region, count(*) FROM people LEFT JOIN regions r USING (country) GROUP BY r.region",
    "SELECT menu, age + 1 AS next, count(*) FROM people GROUP BY menu, next",
    "SELECT TRY_CAST(age * 2 AS TINYINT) AS twice, count(*) FROM people GROUP BY twice",
    "SELECT floor(k / 2) AS pair, count(*) FROM visits GROUP BY pair",
    "SELECT menu, s, count(*) FROM people JOIN visits USING (pid) GROUP BY menu, s",
    "SELECT pid % 1000 AS rest, count(*) FROM visits GROUP BY rest",
]


@pytest.mark.parametrize(("sql", "keys"), LISTED)
def test_c5_a_public_list_is_a_set_and_all_of_it_appears(sql: str, keys: list[object], whole: Session) -> None:
    said = shown(whole, sql)["keys"]
    assert (said["rule"], said["count"]) == ("listed", len(keys))
    assert [key for key, *_ in rows(whole, sql)] == keys


@pytest.mark.parametrize("sql", PRIVATE)
def test_c5_everything_else_is_private(sql: str, whole: Session) -> None:
    """A condition under OR or NOT, one on another expression, the null side of an outer join, CASE without ELSE: none of them lists the keys.

    Nor do bounds list a key that makes no bins, or one without bounds.
    """
    assert shown(whole, sql)["keys"]["rule"] == "threshold"


def test_c5_bins_are_the_same_whatever_the_rows_and_lost_rows_are_told_of(tmp_path: Path) -> None:
    """Bounds are a wish: rows beyond them, and rows without a value, are in no bin, which the warning says before anybody looks."""
    data = people.DATA + "INSERT INTO people VALUES (100, 5000, 'XX', 'US'), (101, NULL, 'XX', 'US'), (102, -1, 'XX', 'US');"
    sql = "SELECT {} AS bin, count(*) FROM people GROUP BY bin"
    schemas = [people.made(tmp_path / name, made) for name, made in (("few", people.DATA), ("more", data), ("none", people.DATA + people.EMPTY))]
    with people.opened(*schemas) as sessions:
        for key, beyond in (("floor(age / 50)", 3), ("age > 30", 1), ("CASE WHEN age < 30 THEN 1 WHEN age < 90 THEN 2 END", 0)):
            few, more, none = (rows(each, sql.format(key)) for each in sessions)
            assert [k for k, _ in few] == [k for k, _ in more] == [k for k, _ in none]
            assert sum(n for _, n in few) == 40
            assert sum(n for _, n in more) == 43 - beyond, "where a value within bounds has no bin, NULL is one"
            assert any("not in the key list" in word for word in shown(sessions[0], sql.format(key))["warnings"])


def test_c5_declared_values_are_enforced_not_believed(tmp_path: Path) -> None:
    data = people.DATA + "INSERT INTO people VALUES (100, 50, 'XX', 'SECRET-VALUE'), (101, 50, 'XX', NULL);"
    with people.opened(people.made(tmp_path, data)) as (session,):
        assert [key for key, _ in rows(session, "SELECT menu, count(*) FROM people GROUP BY menu")] == ["DE", "FR", "JP", "US"]
        assert one(session, "SELECT count(*) FROM people WHERE menu = 'SECRET-VALUE'") == 1, "a filter reads what is there"


def test_c5_more_keys_than_can_be_listed_are_refused(tmp_path: Path) -> None:
    data = people.DATA + "INSERT INTO codes SELECT i, 'z' || i FROM range(20, 130) t(i);"
    with people.opened(people.made(tmp_path, data)) as (session,):
        sql = "SELECT a.name, b.name AS other, count(*) FROM visits JOIN codes a USING (k) JOIN codes b ON b.k = {} GROUP BY a.name, b.name"
        assert code(session, sql.format("visits.vid")) == "TOO_MANY_KEYS"
        found = rows(session, sql.format("a.k"))  # tied by equal public columns: no pairs beyond these are keys
        assert len(found) == 113
        assert all(name == other for name, other, _ in found)


def test_a7_keys_whose_equality_is_coarser_than_identity_are_refused(whole: Session) -> None:
    assert code(whole, "SELECT s COLLATE NOCASE AS c, count(*) FROM visits GROUP BY c") == "COLLATION"
    assert code(whole, "SELECT INTERVAL 30 DAY AS i, count(*) FROM visits GROUP BY i") == "TYPE_MISMATCH"


def test_a13_a_minimum_of_units_is_tested_on_the_shifted_noisy_count(whole: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of n units shows if n + noise - (m - 1) reaches the threshold. An exact test of n >= m would tell of one unit for nothing."""
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({}) country, count(DISTINCT pid) FROM people GROUP BY country"
    threshold = shown(whole, sql.format("epsilon = 1, delta = 0.001"))["keys"]["threshold"]
    units = dict(rows(whole, "SELECT country, count(DISTINCT pid) FROM people GROUP BY country"))
    assert set(units.values()) == {13, 14}
    for minimum in (1, 5, 14):
        monkeypatch.setattr("dpquery.release.noise.sample", noise_of(threshold + minimum - 1 - 14))
        found = rows(whole, sql.format(f"epsilon = 1, delta = 0.001, min_privacy_units_per_group = {minimum}"))
        assert {key for key, _ in found} == {key for key, n in units.items() if n == 14}


def test_a13_the_owners_minimum_can_only_be_raised(tmp_path: Path) -> None:
    terms = people.NOISELESS + "min_units_per_group: 6\n"
    with people.opened(people.made(tmp_path, terms=terms)) as (session,):
        sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (min_privacy_units_per_group = {}) country, count(*) FROM people GROUP BY country"
        assert [shown(session, sql.format(m))["keys"]["min_units"] for m in (1, 6, 9)] == [6, 6, 9]


def test_a15_rows_never_decide_which_groups_appear(tmp_path: Path) -> None:
    """One person with a thousand rows is one unit; the count that decides is of units, released or hidden."""
    data = people.DATA + "INSERT INTO visits SELECT 10000 + i, 1, '2024-01-01', 0, 1, 'SECRET-VALUE' FROM range(1000) t(i);"
    schema = people.made(tmp_path, data, terms=people.ORDINARY)
    with people.opened(schema) as (session,):
        said = shown(session, "SELECT s, count(*) FROM visits GROUP BY s", epsilon=1)
        hidden = said["releases"][-1]
        assert (hidden["linf"], len(said["releases"])) == (1, 2)
        shared = shown(session, "SELECT s, count(DISTINCT pid) FROM visits GROUP BY s", epsilon=1)
        assert (shared["releases"][0]["linf"], len(shared["releases"])) == (1, 1), "the released count decides where it counts units"
        answer = session.query("SELECT s, count(*) FROM visits GROUP BY s", epsilon=1)
        assert "SECRET-VALUE" not in str(answer.table.to_pylist())


def test_a15_the_threshold_is_that_of_the_exact_discrete_tail(whole: Session) -> None:
    clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS (noise = LAPLACE, epsilon = 1, delta = 1e-6, max_groups_contributed = 3)"
    said = shown(whole, f"SELECT {clause} s FROM visits GROUP BY s")
    scale, threshold, delta = said["releases"][-1]["scale"], said["keys"]["threshold"], Fraction(said["keys"]["delta"])
    noise = Noise(Mechanism.LAPLACE, Fraction(scale).limit_denominator(1000))
    assert noise.parameter == 3
    assert 1 - (1 - tail_up(noise, threshold - 1)) ** 3 <= delta <= Fraction("1e-6")
    assert 1 - (1 - tail_up(noise, threshold - 2)) ** 3 > Fraction("1e-6")


def test_b12_a_list_of_an_earlier_release_makes_no_cap_idle_and_no_price(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many keys were released is not known when the price is made: the cap on groups is lowered, even where there turn out to be fewer."""
    monkeypatch.setattr("dpquery.engine.session.secrets.randbits", lambda bits: 1234567890123456789)
    found = "WITH found AS (SELECT s, count(*) AS n FROM visits {} GROUP BY s) SELECT v.s, count(*) FROM visits v JOIN found USING (s) GROUP BY v.s"
    for where, keys in (("WHERE s IN ('s1', 's2', 's3')", 3), ("WHERE s > 's3'", 3), ("", 7), ("WHERE s = 'nobody has it' OR s = 'nor this'", 2)):
        said = [each.explain(found.format(where)).as_dict() for each in pair]
        assert said[0]["price"] == said[1]["price"]
        later = [release for release in said[0]["releases"] if release["table"] == "noisy"]
        assert [(release["l0"], release["linf"], release["l1"]) for release in later] == [(5, 20, 100)]
        here, there = (dict(rows(each, found.format(where))) for each in pair)
        assert list(here) == list(there)
        assert len(here) == keys
        moved = [abs(here[key] - there[key]) for key in here if here[key] != there[key]]
        assert len(moved) <= 5
        assert max(moved, default=0) <= 20


def test_b12_a_released_value_in_where_lists_no_keys(whole: Session) -> None:
    """A list is made before anything is released: what a key equals then is not known yet, and the key is private."""
    for where in ("k = (SELECT count(*) - 38 FROM people)", "(SELECT count(*) - 38 FROM people) = k"):
        sql = f"SELECT k, count(*) FROM visits WHERE {where} GROUP BY k"
        assert rows(whole, sql) == [(2, 80)]
        assert [table["keys"]["rule"] for table in whole.explain(sql).as_dict()["tables"]] == ["none", "threshold"]
    bins = "SELECT age // 10 AS d, count(*) FROM people WHERE age < (SELECT count(*) FROM people) GROUP BY d"
    assert [d for d, _ in rows(whole, bins)] == list(range(13)), "nor does it shorten one"


def test_e_cells_and_threshold_come_from_the_same_bounded_rows(whole: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """No group is judged on one choice of rows and counted on another: each person counts in one group, as one row and one unit there."""
    run = whole.backend.run
    found: list[Any] = []

    def kept(*given: object) -> object:
        found.append(run(*given))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(whole.backend, "run", kept)
    clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1, max_rows_per_group = 1)"
    for _ in range(3):
        whole.query(f"SELECT {clause} s, sum(11, contribution_bounds_per_row => (0, 11)) FROM visits GROUP BY s")
    assert len({str(sorted(zip(exact.keys, *exact.sums, strict=True))) for exact in found}) > 1, "the choice is drawn anew for each statement"
    for exact in found:
        units, sums = sorted(exact.sums, key=sum)
        assert sum(units) == 40
        assert sums == tuple(11 * n for n in units)


def test_c15_each_level_of_totals_is_paid_and_bounded_by_itself(whole: Session) -> None:
    clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = {}, max_groups_contributed = 2, noise = 'laplace')"
    for sets, levels in (("CUBE (menu, old)", 4), ("ROLLUP (menu, old)", 3), ("GROUPING SETS ((menu, old), (menu))", 2)):
        several = whole.explain(f"SELECT {clause.format(levels)} menu, age > 30 AS old, count(*) FROM people GROUP BY {sets}").as_dict()
        alone = whole.explain(f"SELECT {clause.format(1)} menu, age > 30 AS old, count(*) FROM people GROUP BY menu, old").as_dict()
        assert several["price"]["epsilon"] == str(levels)
        assert len(several["releases"]) == levels
        assert several["releases"][0] == {**alone["releases"][0], "share": several["releases"][0]["share"], "table": several["releases"][0]["table"]}


def test_h_keys_that_where_removes_are_not_shown_as_empty(whole: Session) -> None:
    joined = "codes LEFT JOIN visits ON codes.k = visits.k"
    assert [k for k, _ in rows(whole, f"SELECT codes.k, count(*) FROM {joined} WHERE codes.k IN (1, 9) GROUP BY codes.k")] == [1, 9]
    assert [k for k, _ in rows(whole, "SELECT codes.k, count(*) FROM visits JOIN codes USING (k) WHERE codes.k > 1 GROUP BY codes.k")] == [2, 3, 9]


@pytest.mark.parametrize(
    "option",
    ["group_selection_strategy = TRUNCATED_GEOMETRIC", "group_selection_strategy = PERMUTE_AND_FLIP", "max_l2_norm = 10", "l2_norm_bound = 10"],
)
def test_c9_h_other_selections_and_clips_of_a_vector_are_refused_as_yet(option: str, whole: Session) -> None:
    """Selection that spends delta at every count, or a norm that bounds no number of groups."""
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-6, {option}) s, count(*) FROM visits GROUP BY s"
    assert code(whole, sql) in ("UNKNOWN_OPTION", "OPTION_VALUE")
