"""Leaks that other systems are known for, each refused by name or answered soundly: the answer is the plain one, with a person and without.

| what leaks elsewhere | here |
|---|---|
| CROSS JOIN of two private relations that keeps one unit | refused; on the unit it is counted whole |
| FILTER, OVER and TABLESAMPLE dropped in silence | read, or refused |
| a grouping column overwritten after the group cap | the cap is on what is grouped |
| SUM without bounds left without noise | refused; every aggregate has noise |
| a clamp on the base column instead of the expression that is summed | the clamp is on what is summed |
| LIMIT below the noise | refused; above it is read |
| COUNT and COUNT(DISTINCT) merged | two aggregates, each with its own sensitivity |
| thresholds on rows instead of units | on units |
| VARIANCE as E[x^2] - E[x] | E[x^2] - E[x]^2, from centred sums |
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from typing import Any

import attack_lab
import duckdb
import pytest
from attack_lab import code, explained, made, opened, rows

from dpquery.engine.session import Session

PERSON = 7
WITHOUT = f"DELETE FROM items WHERE oid IN (SELECT oid FROM orders WHERE pid = {PERSON}); DELETE FROM orders WHERE pid = {PERSON};"
WITHOUT += f"DELETE FROM people WHERE pid = {PERSON};"
Pair = tuple[Session, Session]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Noise off: everybody, and everybody but one person."""
    folder = tmp_path_factory.mktemp("leaks")
    with opened(made(folder / "all")) as whole, opened(made(folder / "without", attack_lab.DATA + WITHOUT)) as without:
        yield whole, without


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute(attack_lab.DATA)
        yield con


def one(session: Session, sql: str, **how: Any) -> Any:
    ((value,),) = rows(session, sql, **how)
    return value


def numbers(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows with floats for decimals."""
    return [tuple(float(v) if hasattr(v, "as_tuple") else v for v in row) for row in found]


# ---- CROSS JOIN that keeps one unit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "joined",
    [
        "people CROSS JOIN orders",
        "people, orders",
        "people p JOIN orders o ON TRUE",
        "people p JOIN orders o ON 1 = 1",
        "people p JOIN orders o ON p.pid <> o.pid",
        "people p JOIN orders o ON p.pid >= o.pid",
        "people p JOIN orders o ON p.pid = o.pid OR p.vip",
        "people p LEFT JOIN orders o ON p.age = o.qty",
        "(SELECT pid FROM people) p CROSS JOIN (SELECT pid AS other, qty FROM orders) o",
        "people p JOIN orders o ON p.pid = o.pid CROSS JOIN items",
        "people a, people b",
    ],
)
def test_two_private_relations_are_not_crossed(joined: str, pair: Pair) -> None:
    """One person's row would meet everybody's: no bound on rows of a kept unit holds for the other one."""
    for select in ("count(*)", "count(DISTINCT p.pid)" if " p " in joined else "count(*) AS n"):
        assert code(pair[0], f"SELECT {select} FROM {joined}") == "JOIN_ON_UNIT"


@pytest.mark.parametrize(
    "joined", ["people p JOIN orders o USING (pid)", "people p, orders o WHERE p.pid = o.pid", "orders a JOIN orders b USING (pid)"]
)
def test_a_join_on_the_unit_moves_by_one_persons_rows(joined: str, pair: Pair, plain: duckdb.DuckDBPyConnection) -> None:
    sql = f"SELECT count(*) FROM {joined}"
    whole, without = (one(session, sql) for session in pair)
    condition = f"{'AND' if 'WHERE' in joined else 'WHERE'} {'a' if ' a ' in joined else 'o'}.pid = {PERSON}"
    assert whole == plain.sql(sql).fetchall()[0][0]
    assert whole - without == plain.sql(f"{sql} {condition}").fetchall()[0][0] > 0


# ---- FILTER, OVER and TABLESAMPLE ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FILTER (WHERE qty > 5) AS a, count(*) AS b FROM orders",
        "SELECT sum(qty) FILTER (WHERE note = 'a') AS a, sum(qty) FILTER (WHERE note = 'b') AS b, sum(qty) AS c FROM orders",
        "SELECT count(DISTINCT pid) FILTER (WHERE price > 0) AS a, count(DISTINCT pid) AS b FROM orders",
        "SELECT avg(qty) FILTER (WHERE qty > 0) AS a, avg(qty) AS b FROM orders",
        "SELECT qty > 0 AS k, count(*) AS n, sum(count(*)) OVER () AS t, count(*) / sum(count(*)) OVER () AS p FROM orders GROUP BY k ORDER BY k",
        "SELECT qty > 0 AS k, rank() OVER (ORDER BY count(*) DESC) AS r FROM orders GROUP BY k ORDER BY k",
        "SELECT qty > 0 AS k, count(*) AS n FROM orders GROUP BY k QUALIFY row_number() OVER (ORDER BY count(*) DESC) = 1",
    ],
)
def test_filter_and_over_are_read(sql: str, pair: Pair, plain: duckdb.DuckDBPyConnection) -> None:
    got, wanted = numbers(rows(pair[0], sql)), numbers(plain.sql(sql).fetchall())
    assert len(got) == len(wanted)
    for have, want in zip(got, wanted, strict=True):
        assert have == pytest.approx(want)


def test_a_filter_below_the_noise_is_not_a_filter_above_it(pair: Pair) -> None:
    """What the filter leaves out moves nothing: the person's orders at another quantity are not counted."""
    sql = f"SELECT count(*) FILTER (WHERE pid = {PERSON}) AS a, count(*) FILTER (WHERE pid <> {PERSON}) AS b FROM orders"
    assert code(pair[0], sql) == "answered"
    (whole,), (without,) = (rows(session, sql) for session in pair)
    assert whole[1] == without[1]
    assert whole[0] > without[0] == 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM orders TABLESAMPLE 10%",
        "SELECT count(*) FROM orders TABLESAMPLE reservoir(5)",
        "SELECT count(*) FROM orders USING SAMPLE 10 ROWS",
        "SELECT count(*) FROM (SELECT * FROM orders USING SAMPLE 50%)",
        "WITH o AS (SELECT * FROM orders TABLESAMPLE bernoulli(1%)) SELECT count(*) FROM o",
        "SELECT count(*) FROM people JOIN orders TABLESAMPLE 10% USING (pid)",
        "SELECT count(*) FROM people WHERE pid IN (SELECT pid FROM orders TABLESAMPLE 10%)",
    ],
)
def test_samples_are_refused(sql: str, pair: Pair) -> None:
    assert code(pair[0], sql) == "TABLESAMPLE"


# ---- a grouping column overwritten after the cap -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "group"),
    [
        ("note AS k", "note"),
        ("upper(note) AS note", "upper(note)"),
        ("substr(note, 1, 1) AS note", "1"),
        ("CASE WHEN oid % 3 = 0 THEN 'a' WHEN oid % 3 = 1 THEN 'b' ELSE 'c' END AS note", "1"),
        ("qty AS note", "qty"),
        ("note AS qty, qty AS note", "note, qty"),
    ],
)
@pytest.mark.parametrize("groups", [1, 2])
def test_a_person_is_in_as_many_groups_as_the_cap_says(item: str, group: str, groups: int, pair: Pair, plain: duckdb.DuckDBPyConnection) -> None:
    """Over all groups that come back there are, in all, as many people as the cap lets in: on what is grouped, whatever else has its name."""
    clause = f"WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed={groups})"
    found = [row[-1] for row in rows(pair[0], f"SELECT {clause} {item}, count(DISTINCT pid) AS n FROM orders GROUP BY {group}")]
    keys = (
        ", ".join(part.rpartition(" AS ")[0] for part in item.split(", "))
        if "CASE" not in item and "substr" not in item
        else item.rpartition(" AS ")[0]
    )
    per_person = plain.sql(f"SELECT count(DISTINCT ({keys},)) FROM orders GROUP BY pid").fetchall()
    assert max(n for (n,) in per_person) > groups, "the cap bites"
    assert sum(found) == sum(min(n, groups) for (n,) in per_person)


def test_a_subquery_that_overwrites_the_key_is_grouped_by_what_it_made(pair: Pair, plain: duckdb.DuckDBPyConnection) -> None:
    inner = "(SELECT pid, CAST(oid % 3 AS VARCHAR) AS note FROM orders) AS o"
    sql = f"SELECT note, count(*) AS n, count(DISTINCT pid) AS people FROM {inner} GROUP BY note ORDER BY note"
    assert [row for row in rows(pair[0], sql) if row[1]] == plain.sql(sql).fetchall()
    capped = sql.replace("SELECT note", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed=1) note", 1)
    everybody = one(pair[0], "SELECT count(DISTINCT pid) FROM orders")
    assert sum(row[2] for row in rows(pair[0], capped)) == everybody


# ---- SUM without bounds --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(oid) FROM orders",
        "SELECT avg(oid) FROM orders",
        "SELECT var_pop(oid) FROM orders",
        "SELECT covar_pop(qty, oid) FROM orders",
        "SELECT count(*), sum(qty), sum(oid) FROM orders",
        "SELECT sum(qty * oid) FROM orders",
        "SELECT sum(CASE WHEN qty > 0 THEN oid END) FROM orders",
        "SELECT note, count(*) FROM orders GROUP BY note HAVING sum(oid) > 5",
        "SELECT note, count(*) FROM orders GROUP BY note ORDER BY sum(oid)",
        "SELECT count(*) / (SELECT sum(oid) FROM orders) FROM orders",
        "SELECT sum(s) FROM (SELECT pid, sum(oid) AS s FROM orders GROUP BY pid) AS o",
        "SELECT sum(CAST(note AS INTEGER)) FROM orders",
    ],
)
def test_a_sum_without_bounds_is_refused(sql: str, pair: Pair) -> None:
    assert code(pair[0], sql) == "MISSING_BOUNDS"


def test_every_aggregate_has_noise(ordinary: Session) -> None:
    """None is let through as it is, whatever stands beside it."""
    wide = "sum(oid, contribution_bounds_per_row => (0, 50))"
    sql = f"SELECT count(*) AS a, sum(qty) AS b, {wide} AS c, avg(price) AS d, count(DISTINCT note) AS e FROM orders"
    answers = [rows(ordinary, sql, fresh=True)[0] for _ in range(6)]
    assert all(len(set(column)) > 1 for column in zip(*answers, strict=True))
    releases = explained(ordinary, sql)["releases"]
    assert len({part["aggregate"] for part in releases}) == 5
    assert all(part["scale"] > 0 for part in releases)


# ---- the clamp is on what is summed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ("qty", -2, 5),
        ("qty * 3", -10, 20),
        ("qty + 1000", 995, 1005),
        ("qty * qty", 0, 30),
        ("-qty", 0, 4),
        ("CASE WHEN note = 'a' THEN 90 ELSE qty END", 0, 7),
    ],
)
def test_the_clamp_is_on_the_expression(value: str, low: int, high: int, pair: Pair, plain: duckdb.DuckDBPyConnection) -> None:
    """Base columns clamped before the arithmetic would give another sum, which one row could move by more than the bounds."""
    sql = f"SELECT sum({value}, contribution_bounds_per_row => ({low}, {high})) FROM orders"
    wanted = plain.sql(f"SELECT sum(least(greatest({value}, {low}), {high})) FROM orders").fetchall()[0][0]
    before = plain.sql(f"SELECT sum({value.replace('qty', f'least(greatest(qty, {low}), {high})')}) FROM orders").fetchall()[0][0]
    whole, without = (one(session, sql) for session in pair)
    assert whole == wanted
    assert value == "qty" or whole != before
    count = plain.sql(f"SELECT count(*) FROM orders WHERE pid = {PERSON}").fetchall()[0][0]
    assert abs(whole - without) <= count * max(abs(low), abs(high))


def test_declared_bounds_clamp_the_column_and_their_arithmetic_bounds_the_expression(tmp_path: Path) -> None:
    """A value far beyond its bounds, from data nobody checked: the column is clamped where it is read."""
    data = attack_lab.DATA + "INSERT INTO orders VALUES (900, 3, 1000000, 'a', DATE '2024-01-01', 5);"
    with opened(made(tmp_path, data)) as session:
        assert one(session, "SELECT sum(qty) FROM orders WHERE oid = 900") == 100
        assert one(session, "SELECT sum(qty * 2 + 1) FROM orders WHERE oid = 900") == 201


# ---- LIMIT below the noise -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM (SELECT * FROM orders LIMIT 10)",
        "SELECT count(*) FROM (SELECT * FROM orders ORDER BY price DESC LIMIT 1)",
        "SELECT sum(qty) FROM (SELECT qty FROM orders LIMIT 10 OFFSET 5)",
        "SELECT count(*) FROM (SELECT * FROM orders FETCH FIRST 3 ROWS ONLY)",
        "WITH o AS (SELECT * FROM orders LIMIT 5) SELECT count(*) FROM o",
        "SELECT count(*) FROM people WHERE pid IN (SELECT pid FROM orders ORDER BY price LIMIT 1)",
        "SELECT count(*) FROM people JOIN (SELECT pid FROM orders ORDER BY price LIMIT 1) AS o USING (pid)",
        "SELECT count(*) FROM ((SELECT pid FROM orders LIMIT 3) UNION ALL SELECT pid FROM people) AS o",
    ],
)
def test_a_limit_below_the_noise_is_refused(sql: str, pair: Pair) -> None:
    """Which rows are within it depends on everybody's: one person moves another one out."""
    assert code(pair[0], sql) == "LIMIT_IN_SUBQUERY"


def test_a_limit_above_the_noise_is_read(pair: Pair, plain: duckdb.DuckDBPyConnection) -> None:
    sql = "SELECT note, count(*) AS n, sum(qty) AS s FROM orders GROUP BY note ORDER BY s DESC, note LIMIT 2 OFFSET 1"
    assert rows(pair[0], sql) == plain.sql(sql).fetchall()


# ---- COUNT and COUNT(DISTINCT) -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 0, 4, 1, 3)])
def test_counts_are_told_apart(order: tuple[int, ...], pair: Pair, plain: duckdb.DuckDBPyConnection) -> None:
    """In whatever order they stand, each is its own number, with its own sensitivity."""
    counts = ("count(*)", "count(note)", "count(DISTINCT note)", "count(DISTINCT pid)", "count(pid)")
    sql = f"SELECT {', '.join(f'{counts[i]} AS c{i}' for i in order)} FROM orders WHERE pid <= 24"
    (got,), (wanted,) = rows(pair[0], sql), plain.sql(sql).fetchall()
    assert got == wanted
    assert len({*plain.sql(f"SELECT {', '.join(counts[:4])} FROM orders WHERE pid <= 24").fetchall()[0]}) == 4, "they differ in this data"


def test_counts_move_as_their_sensitivities_say(pair: Pair) -> None:
    sql = "SELECT count(*) AS a, count(DISTINCT pid) AS b, count(DISTINCT note) AS c FROM orders"
    (whole,), (without,) = (rows(session, sql) for session in pair)
    assert whole[0] - without[0] > 1
    assert whole[1] - without[1] == 1
    releases = explained(pair[0], sql)["releases"]
    assert [(part["aggregate"], part["linf"], part["lemma"]) for part in releases] == [
        ("count(*)", 1000, "C4"),
        ("count(DISTINCT pid)", 1, "C4"),
        ("count(DISTINCT note)", 1000, "C9"),
    ]


# ---- thresholds ----------------------------------------------------------------------------------------------------------------------


def test_a_threshold_counts_people(tmp_path: Path) -> None:
    """One person with a thousand rows is no group, three hundred with a row each are."""
    data = attack_lab.DATA + "INSERT INTO orders SELECT 1000 + i, 5, 1, 'lone', DATE '2024-01-01', 1 FROM range(1000) AS t(i);"
    data += "INSERT INTO orders SELECT 5000 + i, 100 + i, 1, 'many', DATE '2024-01-01', 1 FROM range(300) AS t(i);"
    with opened(made(tmp_path, data, attack_lab.ORDINARY)) as session:
        for asked in (
            "note, count(*) AS n FROM orders GROUP BY note",
            "note, sum(qty) AS n FROM orders GROUP BY note",
            "note, count(DISTINCT pid) AS n FROM orders GROUP BY note HAVING count(DISTINCT pid) > 0",
        ):
            for _ in range(3):
                clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed=1)"
                shown = {row[0] for row in rows(session, f"SELECT {clause} {asked}")}
                assert "many" in shown
                assert "lone" not in shown


# ---- variance ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["qty + 500", "qty * 10 + 3", "price", "qty - 300"])
def test_a_variance_is_one(value: str, pair: Pair, plain: duckdb.DuckDBPyConnection) -> None:
    """Wherever the values lie: E[x^2] - E[x] would grow with the square of their distance from 0."""
    names = ("var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev")
    sql = f"SELECT {', '.join(f'{name}({value})' for name in names)} FROM orders"
    own = "WHERE pid IS NOT NULL"
    (got,), (wanted,) = rows(pair[0], sql), plain.sql(f"{sql} {own}").fetchall()
    assert got == pytest.approx([float(v) for v in wanted], rel=1e-9)
    assert got[3] == pytest.approx(sqrt(got[0]))
    wrong = plain.sql(f"SELECT avg(({value}) * ({value})) - avg({value}) FROM orders").fetchall()[0][0]
    assert abs(float(wrong) - got[0]) > 1


def test_a_variance_is_never_below_0(ordinary: Session) -> None:
    """Not with noise either, over rows that are all alike."""
    for _ in range(5):
        ((a, b),) = rows(ordinary, "SELECT var_pop(qty) AS a, stddev_samp(qty) AS b FROM orders WHERE qty = 3")
        assert 0 <= a <= 100**2
        assert 0 <= b <= 2 * 100
