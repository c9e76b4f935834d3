"""Whose rows are whose, end to end: two neighbours with noise off, and what EXPLAIN claims about them."""

from __future__ import annotations

from pathlib import Path

import people
import pytest
from people import code, one, rows, shown

from dpquery.engine import check
from dpquery.engine.session import Session
from dpquery.errors import Refused, SchemaError

Pair = tuple[Session, Session]

# Each is answered; one person's absence may move it no further than EXPLAIN says.
ANSWERED = [
    "SELECT count(*) FROM visits",
    "SELECT k, count(*), sum(x) FROM visits GROUP BY k",
    "SELECT s, count(*), count(DISTINCT pid) FROM visits GROUP BY s",
    "SELECT country, count(*), sum(age) FROM people GROUP BY country",
    "SELECT menu, sum(age) FROM people GROUP BY menu",
    "SELECT p.country, count(*) FROM visits v LEFT JOIN people p ON v.pid = p.pid AND v.x > 3 GROUP BY p.country",
    "SELECT p.country, sum(v.x) FROM people p LEFT JOIN visits v USING (pid) GROUP BY p.country",
    "SELECT r.region, count(*), sum(age) FROM people JOIN regions r USING (country) GROUP BY r.region",
    "SELECT r.region, count(*) FROM people LEFT JOIN regions r USING (country) GROUP BY r.region",
    "SELECT c.name, count(*), sum(y) FROM calls JOIN codes c USING (k) GROUP BY c.name",
    "SELECT codes.k, count(*), sum(x) FROM codes LEFT JOIN visits ON codes.k = visits.k GROUP BY codes.k",
    "SELECT CASE WHEN v.x > 0 THEN p.country ELSE 'x' END AS c, count(*) FROM visits v JOIN people p USING (pid) GROUP BY c",
    "SELECT p, count(*), sum(price) FROM items GROUP BY p",
    "SELECT v.k, sum(i.price) FROM items i JOIN visits v USING (vid) GROUP BY v.k",
    "SELECT v.k, count(v.vid) FROM items i LEFT JOIN visits v ON i.vid = v.vid AND v.k = 1 GROUP BY v.k",
    "SELECT a.k, b.k AS other, count(*) FROM visits a JOIN calls b USING (pid) GROUP BY a.k, b.k",
    "SELECT count(*) FROM visits a JOIN visits b USING (pid) WHERE a.vid < b.vid",
    "SELECT s, sum(x) FILTER (WHERE k = 1) FROM visits GROUP BY s",
    "WITH late AS (SELECT pid, x * 2 AS z FROM visits WHERE day > DATE '2024-02-01') SELECT sum(z), count(*) FROM late",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 4) k, count(*), sum(x) FROM visits WHERE k IN (0, 1, 2) GROUP BY k",
    "SELECT c.k, count(*) FROM items i LEFT JOIN visits v ON i.vid = v.vid AND v.k = 1 JOIN calls c ON v.pid = c.pid GROUP BY c.k",
    "SELECT s, count(*) FROM (SELECT pid, s FROM visits UNION ALL SELECT 7, s FROM visits) GROUP BY s",
    "SELECT k, count(*) FROM (SELECT pid, k FROM visits UNION SELECT pid, k FROM calls) GROUP BY k",
    "SELECT s, count(*), sum(x) FROM (SELECT pid, s, x FROM visits EXCEPT SELECT pid, s, x FROM visits WHERE k = 1) GROUP BY s",
    "SELECT count(*) FROM (SELECT pid, k FROM visits INTERSECT SELECT pid, k FROM calls)",
    "SELECT count(*) FROM visits WHERE pid NOT IN (SELECT pid FROM calls WHERE y > 1000)",
    "SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.pid = p.pid AND v.x > 3)",
    "SELECT sum(v), avg(v), count(*) FROM (SELECT pid, sum(x) AS v FROM visits GROUP BY pid)",
    "SELECT n, count(*) FROM (SELECT pid, k, count(*) AS n FROM visits GROUP BY pid, k HAVING max(x) > 0) GROUP BY n",
    "SELECT count(*), sum(x) FROM (SELECT DISTINCT pid, s, x FROM visits)",
]


@pytest.mark.parametrize("sql", ANSWERED)
def test_one_person_moves_no_answer_further_than_explain_says(sql: str, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a fixed salt the bounded statement is a deterministic function of the data: the noise alone protects."""
    monkeypatch.setattr("dpquery.engine.session.secrets.randbits", lambda bits: 1234567890123456789)
    whole, without = pair
    said = shown(whole, sql)
    assert said == shown(without, sql), "what EXPLAIN says does not depend on private rows"
    keys = len(said["keys"]["names"])
    here, there = ({row[:keys]: row[keys:] for row in rows(each, sql)} for each in pair)
    zeros = (0,) * (len(said["columns"]) - keys)
    for place, release in enumerate(said["releases"][: len(zeros)]):
        moves = [abs(float(here.get(key, zeros)[place]) - float(there.get(key, zeros)[place])) for key in here.keys() | there.keys()]
        moved = [move for move in moves if move > 1e-9]
        assert 0 < len(moved) <= release["l0"]
        assert max(moved, default=0) <= release["linf"] + 1e-9
        assert sum(moved) <= release["l1"] + 1e-9
        assert sum(move**2 for move in moved) <= release["l2_squared"] + 1e-9


def test_a1_rows_that_belong_to_nobody_count_nowhere(whole: Session) -> None:
    """Rows with a NULL unit and rows whose path finds no parent; a row that an outer join would make because of nobody."""
    assert one(whole, "SELECT count(*) FROM visits") == 400
    assert one(whole, "SELECT count(*) FROM items") == 800
    assert one(whole, "SELECT count(DISTINCT pid) FROM visits") == 40
    assert rows(whole, "SELECT codes.k, count(*) FROM visits RIGHT JOIN codes USING (k) GROUP BY codes.k ORDER BY 1") == [
        *((k, 80) for k in range(4)),
        (9, 0),
    ]
    assert one(whole, "SELECT count(*) FROM visits WHERE pid NOT IN (SELECT pid FROM calls)") == 100
    assert code(whole, "SELECT count(*) FROM visits WHERE pid NOT IN (SELECT c.pid FROM codes LEFT JOIN calls c USING (k))") == "KEPT_PUBLIC"
    assert code(whole, "SELECT count(*) FROM codes LEFT JOIN calls USING (k)") == "KEPT_PUBLIC"


def test_a3_a_key_that_a_join_can_change_is_capped(whole: Session) -> None:
    def cap(sql: str) -> int:
        return int(shown(whole, sql)["releases"][0]["l0"])

    assert cap("SELECT country, count(*) FROM people GROUP BY country") == 1
    assert cap("SELECT p.country, count(*) FROM visits v JOIN people p USING (pid) GROUP BY p.country") == 1
    assert cap("SELECT p.country, count(*) FROM visits v LEFT JOIN people p ON v.pid = p.pid AND v.x > 3 GROUP BY p.country") == 5
    assert cap("SELECT r.region || '' AS r, count(*) FROM people JOIN regions r USING (country) GROUP BY r") == 5
    assert cap("SELECT p.country || v.s AS c, count(*) FROM visits v JOIN people p USING (pid) GROUP BY c") == 5


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM (SELECT k AS pid, y FROM calls) c JOIN visits USING (pid)",
        "SELECT count(*) FROM items i JOIN (SELECT vid + 1 AS vid FROM visits) v USING (vid)",
        "SELECT count(*) FROM (SELECT pid + 0 AS pid FROM visits) v JOIN calls USING (pid)",
        "SELECT count(*) FROM items i LEFT JOIN visits v ON i.vid = v.vid AND v.k = 1 JOIN calls c ON v.k = c.pid",
        "SELECT count(*) FROM visits v JOIN calls c ON v.k = c.k",
        "SELECT count(*) FROM visits v JOIN calls c ON v.pid = c.pid OR v.k = c.k",
        "SELECT count(*) FROM visits v JOIN calls c ON (v.pid = c.pid) IS NOT FALSE",
        "SELECT count(*) FROM visits v LEFT JOIN calls c ON v.k = c.k WHERE v.pid = c.pid",
    ],
)
def test_a8_private_tables_join_by_lineage_never_by_name(sql: str, whole: Session) -> None:
    assert code(whole, sql) == "JOIN_ON_UNIT"


def test_a8_the_units_own_columns_join_under_any_name(whole: Session) -> None:
    plain = one(whole, "SELECT count(*) FROM visits JOIN calls USING (pid)")
    assert plain == 30 * 20, "thirty people with ten visits and five calls each, of which twenty rows count"
    assert one(whole, "SELECT count(*) FROM (SELECT pid AS k, k AS pid FROM visits) v JOIN calls c ON v.k = c.pid") == plain
    assert one(whole, "SELECT count(*) FROM visits v, calls c WHERE c.pid = v.pid") == plain


def test_a8_the_null_side_of_an_outer_join_joins_nobody_elses_rows(whole: Session) -> None:
    """Its unit is NULL or the row's own: the rows that join are those of the inner join."""
    clause, path = "WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_per_group = 1000)", "JOIN visits v ON i.vid = v.vid AND v.k = 1"
    found = [one(whole, f"SELECT {clause} count(*) FROM items i {how} {path} JOIN calls c ON v.pid = c.pid") for how in ("LEFT", "INNER")]
    assert found == [600, 600], "thirty people with four such items and five calls each"
    assert one(whole, f"SELECT {clause} count(*) FROM items i LEFT {path} LEFT JOIN calls c ON v.pid = c.pid") == 800 - 120 + 600


def test_a19_a_clamp_holds_after_the_join(whole: Session) -> None:
    """Ten rows a person, twice as many after a public table with two rows a key: three of them count."""
    clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_per_group = 3)"
    joined = "visits JOIN people USING (pid) JOIN regions USING (country)"
    assert one(whole, f"SELECT {clause} count(*) FROM {joined}") == 3 * 40


def test_c6_an_orphan_is_dropped_and_a_left_join_keeps_row_and_owner(whole: Session) -> None:
    joined = "items i LEFT JOIN visits v ON i.vid = v.vid AND v.k = 1"
    assert one(whole, f"SELECT count(*) FROM {joined}") == 800
    assert one(whole, f"SELECT count(v.vid) FROM {joined}") == 160


def test_c7_set_operations_merge_no_rows_of_two_people(whole: Session) -> None:
    """Equal rows are of one person where both branches select the unit in the same place: then the answer is that of the text."""
    both = "SELECT count(*) FROM (SELECT pid, s FROM visits {} SELECT pid, s FROM visits WHERE k = 1)"
    found = [one(whole, both.format(operation)) for operation in ("UNION", "UNION ALL", "INTERSECT", "EXCEPT")]
    assert found == [280, 480, 80, 200]
    assert one(whole, "SELECT count(*) FROM (SELECT s FROM visits UNION ALL SELECT s FROM visits)") == 800, "no rows are merged: the unit goes along"
    for branches in (
        "SELECT s FROM visits {} SELECT s FROM visits",
        "SELECT pid, k FROM visits {} SELECT k, pid FROM calls",
        "SELECT pid, k FROM visits {} SELECT pid + 0, k FROM calls",
        "SELECT k AS pid, k FROM visits {} SELECT pid, k FROM calls",
    ):
        for operation in ("UNION", "INTERSECT", "EXCEPT"):
            assert code(whole, f"SELECT count(*) FROM ({branches.format(operation)})") == "SET_UNIT"


def test_n7_a_branch_without_a_unit_of_its_own_is_refused(pair: Pair) -> None:
    """Rows of a public table belong to nobody, whatever number stands where the unit does; a literal gives no person another's rows."""
    whole, without = pair
    for operation in ("UNION ALL", "UNION", "EXCEPT"):
        public = f"SELECT pid, s FROM visits {operation} SELECT {people.UNIT}, name FROM codes"
        assert code(whole, f"SELECT s, count(*) FROM ({public}) GROUP BY s") == "SET_PUBLIC"
    literal = f"SELECT pid, s FROM calls JOIN visits USING (pid) UNION SELECT {people.UNIT}, s FROM visits"
    assert code(whole, f"SELECT s, count(*) FROM ({literal}) GROUP BY s") == "SET_UNIT"
    others = f"SELECT count(*) FROM (SELECT pid, s FROM visits UNION ALL SELECT {people.UNIT}, s FROM visits)"
    assert [one(each, others) for each in (whole, without)] == [800, 780], "twenty rows, of whoever they are in truth"


def test_n9_public_fan_out_is_bounded_before_the_charge(tmp_path: Path) -> None:
    data = people.DATA + "INSERT INTO codes SELECT i, 'z' FROM range(20, 160) t(i);"
    with people.opened(people.made(tmp_path, data)) as (session,):
        pairs = "people p JOIN codes a ON p.pid = 7 JOIN codes b ON a.k <> b.k"
        assert code(session, f"SELECT count(*) FROM {pairs}") == "FANOUT"
        assert code(session, f"SELECT count(*) FROM {pairs.replace('= 7', '= 1000000')}") == "FANOUT", "whether or not the person is there"
        warned = shown(session, "SELECT count(*) FROM visits JOIN codes ON visits.k <> codes.k")
        assert any("join_rows_per_unit" in word for word in warned["warnings"])


def test_w2_subqueries_on_the_unit_are_refused_with_what_to_write(whole: Session) -> None:
    for sql in (
        "SELECT count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM calls c WHERE c.k = v.k)",
        "SELECT count(*) FROM visits v WHERE v.k NOT IN (SELECT k FROM calls)",
        "SELECT sum((SELECT y FROM calls c WHERE c.pid = v.pid)) FROM visits v",
    ):
        with pytest.raises(Refused) as refused:
            whole.query(sql)
        assert refused.value.instead


def test_w3_a_cap_on_a_joins_input_is_named(whole: Session) -> None:
    joined = whole.query("SELECT count(*) FROM visits a JOIN calls b USING (pid)")
    assert any("join_rows_per_unit" in word for word in joined.warnings)
    path = whole.query("SELECT count(*) FROM items JOIN visits USING (vid)")
    assert not any("join_rows_per_unit" in word for word in path.warnings), "a path's unique side cannot multiply"
    single = whole.query("SELECT count(*) FROM visits JOIN people USING (pid)")
    assert not any("join_rows_per_unit" in word for word in single.warnings), "one row a unit cannot multiply"


def test_w6_count_star_counts_rows_and_count_x_values(whole: Session) -> None:
    outer = "people p LEFT JOIN calls c USING (pid)"
    assert one(whole, f"SELECT count(*) FROM {outer}") == 150 + 10, "a row that a LEFT JOIN keeps has an owner"
    assert one(whole, f"SELECT count(c.k) FROM {outer}") == 150


@pytest.mark.parametrize(
    ("sql", "refusal"),
    [
        ("SELECT sum(v) FROM (SELECT pid, sum(x) AS v FROM visits GROUP BY ROLLUP (pid))", "ROLLUP"),
        ("SELECT sum(v) FROM (SELECT pid, s, sum(x) AS v FROM visits GROUP BY CUBE (pid, s))", "CUBE"),
        ("SELECT sum(v) FROM (SELECT pid, s, sum(x) AS v FROM visits GROUP BY GROUPING SETS ((pid, s), (s)))", "GROUPING_SETS"),
        ("SELECT pid, sum(x) FROM visits GROUP BY GROUPING SETS ((pid), ())", "GROUPING_SETS"),
    ],
)
def test_h_totals_over_everybody_are_refused_below_the_noise(sql: str, refusal: str | None, whole: Session) -> None:
    found = code(whole, sql)
    assert refusal in (None, found)


def test_h_an_outer_join_that_keeps_public_rows_is_no_inner_join(whole: Session) -> None:
    kept = "codes LEFT JOIN visits ON codes.k = visits.k"
    assert (9, 0) in rows(whole, f"SELECT codes.k, count(*) FROM {kept} GROUP BY codes.k")
    assert [k for k, _ in rows(whole, f"SELECT codes.k, count(*) FROM {kept} WHERE codes.k > 2 GROUP BY codes.k")] == [3, 9]
    for sql in (
        f"SELECT count(*) FROM {kept}",
        f"SELECT visits.s, count(*) FROM {kept} GROUP BY visits.s",
        f"SELECT codes.k, count(*) FROM {kept} WHERE visits.x > 0 GROUP BY codes.k",
    ):
        assert code(whole, sql) == "KEPT_PUBLIC"
    assert code(whole, "SELECT codes.k, count(*) FROM codes FULL JOIN visits ON codes.k = visits.k GROUP BY codes.k") == "FULL_JOIN"


def test_e_two_private_tables_are_never_crossed(whole: Session) -> None:
    for joined in ("visits CROSS JOIN calls", "visits, calls", "visits JOIN calls ON TRUE"):
        assert code(whole, f"SELECT count(*) FROM {joined}") == "JOIN_ON_UNIT"


@pytest.mark.parametrize(
    "name",
    [
        "schools",
        "SCHOOLS",
        '"Schools"',
        "main.visits",
        "people.main.visits",
        "data.main.visits",
        "information_schema.tables",
        "sqlite_master",
        "duckdb_tables",
    ],
)
def test_e_what_is_not_declared_does_not_exist(name: str, tmp_path: Path) -> None:
    """A view over a private table, its case variants, system tables: nothing is public because nobody named it."""
    with people.opened(people.made(tmp_path, people.DATA + "CREATE VIEW schools AS SELECT * FROM visits;")) as (session,):
        assert code(session, f"SELECT count(*) FROM {name}") in ("UNKNOWN_TABLE", "QUALIFIED_NAME")


def test_e_a_view_over_private_rows_is_never_public(tmp_path: Path) -> None:
    """The owner declares it public by mistake: it is refused at registration, as is the private table itself under another name."""
    told = "  told: {public: true, columns: {s: {type: string}}}\n"
    data = people.DATA + "CREATE VIEW told AS SELECT s FROM visits;"
    assert [finding.code for finding in check(people.write(tmp_path / "view", data, people.TABLES + told)).findings] == ["NOT_A_TABLE"]
    for name in ("visits", "VISITS", "main.visits"):
        with pytest.raises(SchemaError):
            check(people.write(tmp_path / name, people.DATA, people.TABLES + told.replace("public: true", f"public: true, table: {name}")))


def test_e_a_name_in_another_case_is_the_private_table(pair: Pair) -> None:
    for name in ("VISITS", '"Visits"', "vIsItS"):
        assert [one(each, f"SELECT count(DISTINCT pid) FROM {name}") for each in pair] == [40, 39]


def test_e_windows_below_the_noise_are_looked_at_everywhere(whole: Session) -> None:
    for sql in (
        "SELECT sum(t) FROM (SELECT sum(x) OVER () AS t FROM visits)",
        "WITH w AS (SELECT pid, sum(x) OVER () AS t FROM visits) SELECT sum(t, contribution_bounds_per_row => (0, 1)) FROM w",
        "SELECT sum(x) OVER () FROM visits",
    ):
        assert code(whole, sql) in ("WINDOW", "AGGREGATE_IN_SUBQUERY")


def test_e_clauses_are_never_dropped_in_silence(whole: Session) -> None:
    assert one(whole, "SELECT count(*) FILTER (WHERE k = 1) FROM visits") == 80
    for sql in ("SELECT count(*) FROM visits TABLESAMPLE 10%", "SELECT count(*) FROM visits USING SAMPLE 5"):
        assert code(whole, sql) == "TABLESAMPLE"


def test_e_a_key_is_grouped_as_it_is_bounded(whole: Session) -> None:
    """A column overwritten after the cap would be another key: an alias of SELECT never changes what GROUP BY means."""
    assert rows(whole, "SELECT k, k + 10 AS j FROM visits GROUP BY k ORDER BY k") == [(k, k + 10) for k in range(5)]
    assert rows(whole, "SELECT 1 AS k, count(*) FROM visits GROUP BY k") == [(1, 80)] * 5
