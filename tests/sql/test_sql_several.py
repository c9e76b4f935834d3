"""Several releases in one statement, through the engine: noise off, each answer is the plain engine's; what is charged is their sum."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpquery
from dpquery.backends import public
from dpquery.engine import feeding
from dpquery.errors import Fault, Refused
from dpquery.privacy import resolve
from dpquery.release import post
from dpquery.sql import joins, pairs
from dpquery.values.types import INTEGER

TABLES = """
CREATE TABLE users AS SELECT i AS user_id, (20 + i % 50) AS age, ['US', 'DE', 'FR'][1 + (i % 7) % 3] AS country FROM range(1, 61) t(i);
CREATE TABLE orders AS SELECT i AS order_id, 1 + i % 60 AS user_id, (i * 37 % 500)::DECIMAL(10, 2) AS amount,
    CASE WHEN i % 5 > 0 THEN DATE '2024-01-01' + (i % 5)::INT END AS day,
    ['a', 'b', 'c', 'd'][1 + (i % 11) % 4] AS item FROM range(1, 241) t(i);
CREATE TABLE kinds AS SELECT * FROM (VALUES ('a', 'first', 1, 'no'), ('b', 'second', 2, 'no'), ('z', 'last', 3, 'no')) t(item, title, place, secret)
"""
SCHEMA = """
dataset: several
source: {engine: duckdb, path: several.duckdb}
privacy_unit: users.user_id
budget: {epsilon: 1e30, delta: 1}
per_query: {epsilon: 1e20, delta: 1}
unsafe_testing: true
contribution: {max_groups_contributed: 10, max_rows_per_group: 50}
tables:
  users:
    unit: user_id
    max_rows_per_unit: 1
    columns:
      user_id: {type: integer}
      age: {type: integer, lower: 0, upper: 120}
      country: {type: string, values: [US, DE, FR]}
  orders:
    unit: user_id
    columns:
      order_id: {type: integer, unique: true}
      user_id: {type: integer}
      amount: {type: decimal, lower: 0, upper: 500, step: 0.01}
      item: {type: string}
      day: {type: date}
  kinds:
    public: true
    columns: {item: {type: string}, title: {type: string}, place: {type: integer}}
views: {early: "SELECT item, title FROM kinds WHERE place < 3"}
"""
BY = "SELECT country, COUNT(*) AS n FROM users GROUP BY country"
ANSWERED: tuple[str, ...] = (
    "SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM orders) AS share FROM orders WHERE amount > 100",
    f"WITH r AS ({BY}) SELECT a.country, a.n * 1.0 / b.n AS q, SUM(a.n) OVER () AS s FROM r AS a JOIN r AS b USING (country) ORDER BY 1",
    "SELECT 'u' AS what, COUNT(*) AS n FROM users UNION ALL SELECT 'o', COUNT(*) FROM orders ORDER BY n",
    f"SELECT SUM(n) AS s, MAX(n), MEDIAN(n), COUNT(*) FILTER (WHERE n > 19), MIN(country) FROM ({BY}) AS t",
    f"SELECT u.country, u.n, o.s FROM ({BY}) AS u LEFT JOIN (SELECT country, SUM(amount) AS s FROM orders JOIN users USING (user_id) "
    "WHERE country IN ('US', 'DE') GROUP BY country) AS o ON u.country = o.country ORDER BY 1",
    f"SELECT country FROM ({BY}) EXCEPT SELECT country FROM users WHERE country IN ('US', 'XX') GROUP BY country ORDER BY 1",
    "SELECT item, COUNT(*) AS n FROM orders GROUP BY item HAVING COUNT(*) > (SELECT COUNT(*) FROM users) * 0.5 ORDER BY n DESC, item",
    "SELECT n > 60 AS big, COUNT(*) AS k FROM (SELECT item, COUNT(*) AS n FROM orders GROUP BY item) GROUP BY big HAVING SUM(n) > 0 ORDER BY 1",
    f"SELECT (SELECT n FROM ({BY}) ORDER BY n DESC LIMIT 1) AS top, COUNT(*) AS n FROM users",
    "SELECT COUNT(*) AS n FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)",
    "SELECT item, COUNT(*) AS n FROM orders WHERE amount > 2 * (SELECT AVG(age) FROM users) AND amount < (SELECT SUM(amount) FROM orders) / 100 "
    "GROUP BY item ORDER BY 1",
    "WITH m AS (SELECT AVG(amount) AS a FROM orders) SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM orders) AS share, (SELECT a FROM m) AS a "
    "FROM orders WHERE amount > (SELECT a FROM m)",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT * FROM orders)",
    "SELECT COUNT(*) AS n, SUM(amount) AS s FROM (SELECT DISTINCT o.* FROM orders AS o JOIN users USING (user_id) WHERE age > 30)",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT u.*, item FROM orders JOIN users AS u USING (user_id))",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT country FROM users) AS c",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT * FROM (SELECT country FROM users)) AS c",
)
BY_ITEM = "SELECT item, COUNT(*) AS n FROM orders GROUP BY item"
LISTS = (
    f"SELECT COUNT(*) AS n FROM orders WHERE item IN (SELECT item FROM ({BY_ITEM} HAVING n > 60 ORDER BY n DESC LIMIT 10))",
    f"SELECT COUNT(*) AS n FROM orders WHERE item NOT IN (SELECT item FROM ({BY_ITEM}) WHERE n > 60)",
    f"SELECT MIN(item) AS low, COUNT(*) AS n FROM ({BY_ITEM}) AS r WHERE item > (SELECT MIN(item) FROM ({BY_ITEM}))",
    f"SELECT COUNT(*) AS n FROM orders WHERE item = (SELECT MAX(item) FILTER (WHERE n > 60) FROM ({BY_ITEM}))",
    f"WITH r AS ({BY_ITEM}) SELECT item, SUM(amount) AS s FROM orders WHERE item IN (SELECT item FROM r WHERE n > 60) GROUP BY item ORDER BY 1",
    f"WITH r AS ({BY_ITEM}) SELECT r.item, SUM(amount) AS s FROM orders JOIN r ON orders.item = r.item GROUP BY r.item ORDER BY 1",
    f"WITH r AS ({BY_ITEM}) SELECT item, COUNT(amount) AS n FROM orders RIGHT JOIN r USING (item) WHERE item <> 'b' GROUP BY item ORDER BY 1",
    f"WITH r AS ({BY_ITEM} HAVING n > 60) SELECT COALESCE(r.item, '') AS k, COUNT(*) n FROM orders LEFT JOIN r USING (item) GROUP BY 1 ORDER BY 1",
    f"WITH r AS ({BY_ITEM} HAVING n > 6000) SELECT item, COUNT(amount) AS n FROM r LEFT JOIN orders USING (item) GROUP BY item",
    f"WITH r AS ({BY_ITEM} HAVING n > 6000) SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM r) AS k FROM orders WHERE item IN (SELECT item FROM r)",
    f"WITH r AS ({BY_ITEM} HAVING n > 6000) SELECT COUNT(*) AS n FROM orders WHERE item NOT IN (SELECT item FROM r)",
    f"SELECT COUNT(*) AS n FROM orders, ({BY_ITEM}) AS x WHERE orders.item = x.item",
    f"SELECT COUNT(*) AS n FROM orders SEMI JOIN ({BY_ITEM} HAVING n > 60) AS x ON orders.item = x.item AND orders.amount > x.n",
    f"SELECT COUNT(*) AS n FROM orders ANTI JOIN ({BY_ITEM} HAVING n > 60) AS x USING (item)",
    f"SELECT COUNT(*) AS n FROM orders WHERE EXISTS (SELECT 1 FROM ({BY_ITEM}) WHERE n > 60)",
    f"SELECT COUNT(*) AS n FROM orders WHERE NOT EXISTS (SELECT 1 FROM ({BY_ITEM} HAVING n > 60) AS r WHERE r.item = orders.item)",
    "SELECT COUNT(*) AS n FROM orders, (SELECT AVG(amount) AS a, AVG(amount) / 2 AS b FROM orders) AS x WHERE amount BETWEEN x.b AND x.a",
    f"SELECT COUNT(*) AS n FROM users WHERE user_id IN (SELECT user_id FROM orders WHERE item IN (SELECT item FROM ({BY_ITEM} HAVING n < 60)))",
    "SELECT country, item, COUNT(*) AS n FROM users JOIN orders USING (user_id) JOIN (SELECT country, item FROM users JOIN orders USING (user_id) "
    "GROUP BY country, item HAVING COUNT(*) > 20) AS r USING (country, item) GROUP BY ALL ORDER BY 1, 2",
    f"SELECT country, item, COUNT(*) AS n FROM users JOIN orders USING (user_id) WHERE item IN (SELECT item FROM ({BY_ITEM} HAVING n > 60)) "
    "GROUP BY ALL ORDER BY 1, 2",
    f"SELECT COUNT(*) AS n FROM orders JOIN (SELECT DISTINCT item FROM ({BY_ITEM} UNION ALL {BY_ITEM})) AS x USING (item)",
    f"SELECT COUNT(*) AS n FROM orders WHERE item IN (SELECT item FROM ({BY_ITEM} UNION ALL {BY_ITEM}))",
    "SELECT item, COUNT(*) AS n FROM orders WHERE day IN (SELECT day FROM orders GROUP BY day HAVING COUNT(*) > 30) GROUP BY item ORDER BY 1",
    "SELECT day, COUNT(*) AS n FROM orders WHERE day IN (SELECT day FROM orders GROUP BY day) GROUP BY day ORDER BY 1",
    "SELECT COUNT(*) AS n FROM orders WHERE day NOT IN (SELECT day FROM orders GROUP BY day HAVING COUNT(*) > 90)",
    "SELECT item, COUNT(*) AS n FROM (SELECT user_id, item FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)) GROUP BY item ORDER BY 1",
    "WITH o AS (SELECT user_id, amount FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)) SELECT COUNT(*) AS n FROM o AS a JOIN o AS b "
    "USING (user_id)",
    "SELECT COUNT(*) AS n FROM (SELECT user_id, COUNT(*) AS k FROM orders WHERE amount > (SELECT AVG(amount) FROM orders) GROUP BY user_id)",
    "SELECT COUNT(*) AS n FROM users WHERE user_id IN (SELECT user_id FROM orders WHERE amount > (SELECT AVG(amount) * 1.5 FROM orders))",
    "SELECT COUNT(*) AS n FROM users AS u WHERE NOT EXISTS (SELECT * FROM orders AS o WHERE o.user_id = u.user_id AND amount > "
    "(SELECT AVG(amount) FROM orders) AND o.amount > u.age)",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM orders WHERE amount > (SELECT AVG(amount) FROM orders) AND amount > (SELECT AVG(age) FROM users)) AS o "
    "WHERE amount < (SELECT AVG(amount) * 1.5 FROM orders)",
    "SELECT COUNT(*) AS n FROM users WHERE age > (SELECT AVG(age) FROM (SELECT user_id, age FROM users WHERE age > (SELECT AVG(age) FROM users)))",
)
BESIDE = (
    f"SELECT k.title, r.n FROM ({BY_ITEM}) AS r JOIN kinds AS k ON k.item = r.item ORDER BY 1",
    f"SELECT k.title, r.n FROM kinds AS k LEFT JOIN ({BY_ITEM}) AS r USING (item) ORDER BY 1",
    f"WITH r AS ({BY_ITEM}) SELECT k.place, SUM(r.n) AS s, COUNT(*) AS c FROM r, kinds AS k WHERE r.item <> k.item GROUP BY k.place ORDER BY 1",
    f"SELECT r.item, k.c FROM ({BY_ITEM}) AS r JOIN (SELECT item, COUNT(*) AS c FROM kinds GROUP BY item) AS k USING (item) ORDER BY 1",
    f"SELECT r.item, k.t FROM ({BY_ITEM}) AS r JOIN (SELECT item, UPPER(title) AS t FROM kinds WHERE place < 3) AS k USING (item) ORDER BY 1",
    f"WITH k AS (SELECT item FROM kinds UNION SELECT 'c' FROM kinds) SELECT * FROM ({BY_ITEM}) AS r JOIN k USING (item) ORDER BY 1",
    f"SELECT a.title, b.n FROM (SELECT k.title, r.n FROM ({BY_ITEM}) AS r, kinds AS k) AS b JOIN kinds AS a USING (title) ORDER BY 1, 2 LIMIT 3",
    f"SELECT item, n FROM ({BY_ITEM}) UNION ALL SELECT item, place FROM kinds ORDER BY 2, 1",
    f"SELECT v.title, r.n FROM ({BY_ITEM}) AS r JOIN (VALUES ('a', 'one'), ('d', 'four')) AS v(item, title) USING (item) ORDER BY 1",
    f"SELECT r.n, x.i FROM ({BY_ITEM} HAVING n > 65) AS r, range(3) AS x(i) ORDER BY 2",
    f"SELECT item FROM kinds EXCEPT SELECT item FROM ({BY_ITEM}) ORDER BY 1",
    "SELECT COUNT(*) * 1.0 / (SELECT MAX(place) FROM kinds) AS q FROM orders",
    "SELECT COUNT(*) * 1.0 / (SELECT place FROM kinds WHERE item = 'b') AS q FROM orders",
    "SELECT COUNT(*) + (SELECT place FROM kinds WHERE item = 'x') AS q FROM orders",
    "SELECT COUNT(*) * 1.0 / (SELECT place FROM kinds ORDER BY place DESC LIMIT 1) AS q FROM orders",
    "SELECT item, COUNT(*) AS n FROM orders GROUP BY item HAVING COUNT(*) > 20 * (SELECT COUNT(*) FROM kinds) ORDER BY 1",
    f"SELECT COUNT(*) AS n FROM orders WHERE item IN (SELECT r.item FROM ({BY_ITEM}) AS r JOIN kinds AS k USING (item) WHERE k.place * 30 < r.n)",
)
REFUSED = {
    "SELECT x.n, users.age FROM users, (SELECT COUNT(*) AS n FROM users) AS x": "RAW_ROWS",
    "SELECT user_id FROM users UNION ALL SELECT COUNT(*) FROM users": "SET_OPERATION",
    f"SELECT COUNT(*) - (SELECT n FROM ({BY})) FROM users": "SCALAR_SUBQUERY",
    f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) COUNT(*) FROM ({BY})": "NESTED_RELEASE",
    "SELECT COUNT(*) FROM users WHERE age > (SELECT age FROM users)": "SCALAR_SUBQUERY",
    "SELECT COUNT(*) FROM (SELECT user_id FROM users WHERE age > (SELECT age FROM users)) AS u": "SCALAR_SUBQUERY",
    "SELECT COUNT(*) FROM (SELECT o.user_id FROM orders AS o WHERE amount > (SELECT AVG(amount) FROM orders AS i WHERE i.item = o.item)) AS u": (
        "CORRELATED_VALUE"
    ),
    f"SELECT n FROM ({BY}) AS t WHERE n > (SELECT MAX(n) FROM t)": "UNKNOWN_TABLE",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 2) COUNT(*), (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) COUNT(*) FROM users), "
    "(SELECT COUNT(*) FROM orders) FROM users": "PRICE_SHARES",
    f"SELECT COUNT(*) FROM orders JOIN ({BY_ITEM} UNION ALL {BY_ITEM}) AS x USING (item)": "RELEASED_JOIN",
    f"SELECT COUNT(*) FROM orders JOIN ({BY_ITEM}) AS x ON orders.amount > x.n": "RELEASED_JOIN",
    f"SELECT COUNT(*) FROM orders JOIN ({BY_ITEM}) AS x ON orders.item = x.item AND x.n > 60": "RELEASED_JOIN",
    f"SELECT SUM(amount * x.n) FROM orders JOIN ({BY_ITEM}) AS x USING (item)": "RELEASED_JOIN",
    f"SELECT COUNT(*) FROM ({BY_ITEM}) AS x JOIN ({BY_ITEM}) AS y USING (item) JOIN orders USING (item)": "RELEASED_JOIN",
    f"SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT 1 FROM ({BY_ITEM}) AS r WHERE r.item = orders.item AND r.n > 60)": "RELEASED_JOIN",
    f"SELECT COUNT(*) FROM orders, ({BY_ITEM}) AS x": "RELEASED_JOIN",
    f"SELECT COUNT(*) FROM orders RIGHT JOIN ({BY_ITEM}) AS x USING (item)": "KEPT_PUBLIC",
    f"SELECT user_id FROM orders JOIN ({BY_ITEM}) AS x USING (item)": "RAW_ROWS",
    f"SELECT k.secret, r.n FROM ({BY_ITEM}) AS r JOIN kinds AS k USING (item)": "UNKNOWN_COLUMN",
    f"SELECT r.n FROM ({BY_ITEM}) AS r JOIN kindz AS k USING (item)": "UNKNOWN_TABLE",
    f"SELECT r.n FROM ({BY_ITEM}) AS r JOIN information_schema.tables AS k ON TRUE": "QUALIFIED_NAME",
    "SELECT COUNT(*) / (SELECT place FROM kinds WHERE item <> 'b') FROM orders": "SCALAR_SUBQUERY",
    "SELECT COUNT(*) / (SELECT place, item FROM kinds WHERE item = 'b') FROM orders": "SCALAR_SUBQUERY",
    "SELECT COUNT(*) / (SELECT age FROM users WHERE user_id = 3) FROM orders": "SUBQUERY_ABOVE_NOISE",
    f"SELECT n FROM ({BY_ITEM}) UNION ALL SELECT age FROM users": "SET_OPERATION",
}


def made(folder: Path, tables: str = TABLES, schema: str = SCHEMA) -> Path:
    """The folder, in which the data set and its ledger are now."""
    with duckdb.connect(str(folder / "several.duckdb")) as con:
        con.execute(tables)
    (folder / "several.yaml").write_text(schema)
    dpquery.create_ledger(folder / "several.yaml")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("several"))


@pytest.fixture(scope="module")
def con(folder: Path) -> Iterator[dpquery.Connection]:
    with dpquery.connect(folder / "several.yaml") as found:
        yield found


def plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(round(float(v), 9) if isinstance(v, int | float | Decimal) else v for v in row) for row in rows]


def agrees(con: dpquery.Connection, folder: Path, sql: str) -> None:
    """The answer is DuckDB's own; the view that a schema may declare is made there too."""
    answer = con.query(sql)
    with duckdb.connect(str(folder / "several.duckdb"), read_only=True) as other:
        if "early" in sql:
            other.execute("CREATE TEMP VIEW early AS SELECT item, title FROM kinds WHERE place < 3")
        assert plain(answer.fetchall()) == plain(other.execute(sql).fetchall())


@pytest.mark.parametrize("sql", ANSWERED + LISTS + BESIDE)
def test_without_noise_it_is_the_plain_engines_answer(con: dpquery.Connection, folder: Path, sql: str) -> None:
    agrees(con, folder, sql)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_sound_is_refused(con: dpquery.Connection, sql: str) -> None:
    with pytest.raises(Refused) as refused:
        con.query(sql)
    assert refused.value.code == REFUSED[sql]
    assert refused.value.instead


def test_one_charge_holds_all_releases(con: dpquery.Connection) -> None:
    """Equal parts; a WITH query used twice is one release; the sum of OPTIONS is the price."""
    before = con.budget().entries
    receipt = con.query(
        f"WITH r AS ({BY}) SELECT COUNT(*) AS n FROM r AS a, r AS b, (SELECT COUNT(*) AS m FROM users) AS c", epsilon=2, delta=0
    ).receipt
    assert con.budget().entries == before + 1
    assert [(row["table"], row["charged_epsilon"]) for row in receipt["tables"]] == [("noisy", "1"), ("noisy_1", "1")]
    assert {"P8", "P9", "P10"} <= set(receipt["lemmas"])
    ours = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = {}, delta = 0) COUNT(*) AS n FROM users"
    added = con.explain(f"{ours.format(3)} UNION ALL {ours.format('0.5')}").as_dict()
    assert (added["price"]["epsilon"], added["price"]["delta"]) == ("3.5", "0")
    assert [row["charged_epsilon"] for row in added["tables"]] == ["3", "0.5"]


def test_the_outermost_clause_speaks_for_the_statement(con: dpquery.Connection) -> None:
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 3, delta = 0) COUNT(*) / (SELECT COUNT(*) FROM orders) AS n FROM users"
    assert [row["charged_epsilon"] for row in con.explain(sql).as_dict()["tables"]] == ["1.5", "1.5"]
    part = "(SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) COUNT(*) FROM orders)"
    shares = con.explain(f"SELECT COUNT(*) / {part} AS n FROM users", epsilon=4, delta=0).as_dict()["tables"]
    assert [row["charged_epsilon"] for row in shares] == ["1", "3"]


def test_error_bars_reach_over_releases(con: dpquery.Connection) -> None:
    sure = {"epsilon": 20, "delta": 0, "confidence": "0.9999999999"}
    bars = con.query("SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM orders) AS r FROM users", **sure).intervals["r"]
    assert bars[0] is not None
    low, high = bars[0]
    assert low < 0.25 < high
    united = con.query("SELECT COUNT(*) AS n FROM users UNION ALL SELECT COUNT(*) FROM orders", epsilon=20, delta=0).intervals["n"]
    assert all(bar is not None for bar in united)


def test_price_and_bounds_do_not_depend_on_released_values(con: dpquery.Connection) -> None:
    """The statement that runs is the one that was priced: a released value is a row of a relation that it joins."""
    sql = "SELECT item, COUNT(*) AS n FROM orders WHERE amount > (SELECT AVG(amount) FROM orders) GROUP BY item"
    first, second = (con.explain(sql, epsilon=1, delta="1e-6").as_dict() for _ in range(2))
    assert first["price"] == second["price"]
    assert "public_" in first["sql"]
    noisy = con.query(sql, epsilon=1, delta="1e-6").receipt
    assert noisy["price"] == first["price"]


NOTHING = (
    "SELECT COUNT(*) / 0 FROM users",
    "SELECT COUNT(*) * 1.0 / (COUNT(*) - COUNT(*)) FROM users",
    "SELECT 1e308 * 10 * COUNT(*) FROM users",
    "SELECT CAST('x' || COUNT(*) AS INTEGER) FROM users",
    "SELECT 9223372036854775807 * COUNT(*) FROM users",
    "SELECT SUM(amount) FROM orders HAVING COUNT(*) < 0",
    "SELECT n FROM (SELECT item, COUNT(*) AS n FROM orders GROUP BY item) AS t WHERE n < 0 LIMIT 1",
)


@pytest.mark.parametrize("value", NOTHING)
def test_a_released_value_that_is_none_is_told_of(con: dpquery.Connection, value: str) -> None:
    """What computes it has failed on noisy numbers: it is NULL, which no amount is above, and the answer says so."""
    answer = con.query(f"SELECT COUNT(*) AS n FROM orders WHERE amount > ({value})")
    assert answer.fetchall() == [(0,)]
    (said,) = [warning for warning in answer.warnings if "below the noise was NULL" in warning]
    assert said.startswith("(SELECT ")
    assert said in answer.receipt["warnings"]
    assert not any("was NULL" in warning for warning in con.query(ANSWERED[9]).warnings)


KEYS = "SELECT country FROM users GROUP BY country"


def test_public_keys_alone_take_nothing_of_the_price(con: dpquery.Connection) -> None:
    """Nothing of them is noisy. All of the price goes to the releases that are."""
    sql = f"SELECT a.country, (SELECT COUNT(*) FROM orders) AS n FROM ({KEYS}) AS a"
    found = con.explain(sql, epsilon=2, delta=0).as_dict()
    assert found["price"]["epsilon"] == "2"
    assert [row["charged_epsilon"] for row in found["tables"]] in (["0", "2"], ["2", "0"])
    assert 0.499 < float(con.explain(sql, rho="0.5", delta="1e-6").as_dict()["price"]["rho"]) <= 0.5
    alone = con.explain("SELECT COUNT(*) AS n FROM orders", epsilon=2, delta=0).as_dict()["releases"][0]["scale"]
    assert con.explain(sql, epsilon=2, delta=0).as_dict()["releases"][0]["scale"] == alone
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = {}, delta = 0)"
    own = f"SELECT a.country, n FROM ({clause.format(5)} country FROM users GROUP BY country) AS a, ({clause.format('0.5')} COUNT(*) AS n FROM users)"
    assert con.explain(own).as_dict()["price"]["epsilon"] == "0.5"
    for only in (KEYS, f"SELECT country FROM ({KEYS}) UNION ALL SELECT country FROM users WHERE country IN ('US') GROUP BY country"):
        assert con.explain(only, epsilon=2, delta=0).as_dict()["price"]["epsilon"] == "0"


LISTED = f"WITH r AS ({BY_ITEM}) SELECT item, COUNT(*) AS n FROM orders RIGHT JOIN r USING (item) GROUP BY item"


def test_released_groups_cost_no_delta_and_read_no_number_of_keys(con: dpquery.Connection) -> None:
    """The second release has the cap on groups for its l0, noise on all listed keys, and no threshold; all is charged at once."""
    found = con.explain(LISTED, epsilon=1, delta="1e-6").as_dict()
    first, second = found["tables"]
    assert second["reads"] == [first["table"]]
    assert "reads" not in first
    assert second["keys"] == {"rule": "released", "names": ["item"], "most": 10_000, "origin": "what was released before: item"}
    assert second["charged_delta"] == "0" != first["charged_delta"]
    (row,) = [one for one in found["releases"] if one["table"] == second["table"]]
    assert (row["l0"], row["max_groups_contributed"]) == (10, 10)
    assert {"C15", "L25", "P8"} <= set(found["lemmas"])
    before = con.budget().entries
    assert con.query(LISTED, epsilon=1, delta="1e-6").receipt["price"] == found["price"]
    assert con.budget().entries == before + 1


def test_an_empty_list_is_answered_with_an_empty_table_and_charged(con: dpquery.Connection) -> None:
    """Nobody passes a threshold at this price."""
    before = con.budget().entries
    answer = con.query(LISTED, epsilon="0.001", delta="1e-9")
    assert answer.fetchall() == []
    assert answer.receipt["price"]["epsilon"] == "0.001"
    assert con.budget().entries == before + 1


def test_every_key_of_the_list_appears_with_noise_of_its_own(con: dpquery.Connection) -> None:
    sql = f"WITH r AS ({BY_ITEM}) SELECT item, COUNT(*) AS n FROM (SELECT * FROM orders WHERE amount < 0) RIGHT JOIN r USING (item) GROUP BY item"
    parts = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = {}, delta = {}) item, COUNT(*) AS n FROM"
    priced = sql.replace("SELECT item, COUNT(*) AS n FROM orders", f"{parts.format(40, '1e-3')} orders", 1)
    priced = priced.replace("SELECT item, COUNT(*) AS n FROM (", f"{parts.format('0.01', 0)} (", 1)
    rows = con.query(priced).fetchall()
    assert [item for item, _ in rows] == ["a", "b", "c", "d"]
    assert len({n for _, n in rows}) > 1


def test_lists_beyond_their_limit_are_cut_and_said_to_be(con: dpquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post, "MOST_FED", 2)
    answer = con.query(LISTED)
    assert [item for item, _ in answer.fetchall()] == ["a", "b"]
    assert any("more than 2 rows" in warning for warning in answer.warnings)
    monkeypatch.undo()
    monkeypatch.setattr(public, "MAX_KEYS", 3)
    by_both = "SELECT country, item, COUNT(*) AS n FROM users JOIN orders USING (user_id)"
    answer = con.query(f"{by_both} WHERE item IN (SELECT item FROM ({BY_ITEM})) GROUP BY ALL")
    assert {item for _, item, _ in answer.fetchall()} == {"a"}
    assert any("The groups are more than" in warning for warning in answer.warnings)
    monkeypatch.undo()
    monkeypatch.setattr(feeding, "MOST_NUMBERS", 3)
    answer = con.query(LISTED, fresh=True)
    assert [item for item, _ in answer.fetchall()] == ["a", "b", "c"]
    assert any("The groups are more than 3:" in warning for warning in answer.warnings)


def test_noisy_numbers_of_a_list_are_counted_with_the_keys_beside_it(con: dpquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """One released key alone is more than there may be: known before the charge. How many keys there are is not."""
    before, by_both = con.budget().entries, "SELECT country, item, COUNT(*) AS n FROM users JOIN orders USING (user_id)"
    monkeypatch.setattr(resolve, "MOST_NUMBERS", 1)
    with pytest.raises(Refused) as refused:
        con.query(f"{by_both} WHERE item IN (SELECT item FROM ({BY_ITEM})) GROUP BY ALL")
    assert (refused.value.code, con.budget().entries) == ("TOO_MANY_NUMBERS", before)


def test_a_list_with_a_row_twice_stops_the_release(con: dpquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """What L25 takes for granted is looked at before private rows are read with it."""
    rows = post.rows
    monkeypatch.setattr(post, "rows", lambda *given: (2 * rows(*given)[0], True))
    with pytest.raises(Fault) as broken:
        con.query(LISTED)
    assert broken.value.code == "PLAN_BROKEN"


def test_keys_of_a_released_list_are_no_text_of_the_statement(tmp_path: Path) -> None:
    """Values that look like SQL are values."""
    with duckdb.connect(str(tmp_path / "several.duckdb")) as con:
        con.execute(TABLES)
        con.execute("UPDATE orders SET item = ? WHERE item = 'a'", ["'); DROP TABLE x; -- public_1"])
    (tmp_path / "several.yaml").write_text(SCHEMA)
    dpquery.create_ledger(tmp_path / "several.yaml")
    with dpquery.connect(tmp_path / "several.yaml") as one, duckdb.connect(str(tmp_path / "several.duckdb"), read_only=True) as other:
        assert plain(one.query(LISTS[3]).fetchall()) == plain(other.execute(LISTS[3]).fetchall())


def test_a_value_in_a_query_used_twice_is_released_once(con: dpquery.Connection) -> None:
    """Both uses compare with the same noisy number, at one price."""
    sql = (
        "WITH o AS (SELECT user_id, amount FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)) "
        "SELECT COUNT(*) AS n FROM o AS a JOIN o AS b USING (user_id)"
    )
    assert len(con.explain(sql).as_dict()["releases"]) == 2


def test_public_tables_beside_released_ones_are_written_down_and_keep_error_bars(con: dpquery.Connection) -> None:
    """They cost nothing; which ones were read stands in the receipt, beside the version of the data that they are of."""
    answer = con.query(BESIDE[0], epsilon=20, delta="1e-3")
    assert answer.receipt["public_tables"] == ["kinds"]
    assert answer.receipt["data_version"] == 1
    assert all(bar is not None for bar in answer.intervals["n"])
    assert "title" not in answer.intervals
    alone = con.explain(BY_ITEM, epsilon=20, delta="1e-3").as_dict()
    assert con.explain(BESIDE[0], epsilon=20, delta="1e-3").as_dict()["price"] == alone["price"]
    assert "public_tables" not in con.query(BY_ITEM).receipt


def test_values_of_unlike_types_are_unlike(con: dpquery.Connection) -> None:
    """What the plain engine fails on has no partner: nothing fails after the charge."""
    for on in ("k.place = r.item", "CAST(k.title AS BIGINT) = r.n"):
        answer = con.query(f"SELECT k.title, r.n FROM ({BY_ITEM}) AS r JOIN kinds AS k ON {on}")
        assert answer.fetchall() == []
        assert not any("failed" in warning for warning in answer.warnings)


def test_a_view_of_public_tables_stands_beside_released_ones(con: dpquery.Connection) -> None:
    assert con.query(f"SELECT title, n FROM ({BY_ITEM}) AS r JOIN early USING (item) ORDER BY 1").fetchall() == [("first", 65), ("second", 66)]


def test_a_public_table_that_is_too_large_is_refused_before_the_charge(con: dpquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public, "MAX_OPENED", 2)
    before = con.budget().entries
    with pytest.raises(Refused) as refused:
        con.query(BESIDE[0])
    assert (refused.value.code, con.budget().entries) == ("PUBLIC_TOO_LARGE", before)
    assert "kinds" in refused.value.message
    assert refused.value.position is not None
    assert con.query(f"SELECT title, n FROM ({BY_ITEM}) AS r JOIN (SELECT * FROM kinds WHERE place < 3) AS k USING (item)").fetchall()


CROSSED = {
    "CROSS JOIN kinds AS b": "PUBLIC_TOO_LARGE",
    ", kinds AS b": "PUBLIC_TOO_LARGE",
    "JOIN kinds AS b ON a.place < b.place": "",  # few are kept
    "JOIN kinds AS b USING (item)": "",
    ", kinds AS b WHERE a.item = b.item": "",
}


@pytest.mark.parametrize("join", CROSSED)
def test_public_tables_that_multiply_are_refused_before_they_do(join: str, con: dpquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = con._open.backend.public_rows("SELECT count(*) FROM kinds", [INTEGER])[0][0]
    monkeypatch.setattr(joins, "MOST_PAIRS", int(str(rows)) ** 2 - 1)
    sql = f"SELECT COUNT(*) FROM orders JOIN (SELECT DISTINCT a.item FROM kinds AS a {join}) AS q USING (item)"
    if CROSSED[join]:
        with pytest.raises(Refused) as refused:
            con.explain(sql)
        assert refused.value.code == CROSSED[join]
        assert refused.value.position
    else:
        con.explain(sql)


ABOVE = {
    "r, kinds AS a, kinds AS b": "PUBLIC_TOO_LARGE",
    "r JOIN kinds AS a USING (item), kinds AS b": "PUBLIC_TOO_LARGE",
    "kinds AS a LEFT JOIN kinds AS b ON a.place < b.place, r": "PUBLIC_TOO_LARGE",
    "kinds AS a, kinds AS b, r WHERE a.place = b.place AND r.item = a.item": "",
    "r JOIN kinds AS a USING (item) JOIN kinds AS b ON a.place = b.place": "",
    "r JOIN kinds AS a USING (item) WHERE EXISTS (SELECT 1 FROM kinds AS b WHERE b.place < a.place)": "PUBLIC_TOO_LARGE",
    "r JOIN kinds AS a USING (item) WHERE (SELECT max(b.place) FROM kinds AS b WHERE b.place < a.place) > 0": "PUBLIC_TOO_LARGE",
    "r JOIN kinds AS a USING (item) WHERE a.place * 1.5 IN (SELECT place FROM kinds)": "PUBLIC_TOO_LARGE",
    "r JOIN kinds AS a USING (item) WHERE EXISTS (SELECT 1 FROM kinds AS b WHERE b.item = a.item AND b.place < a.place)": "",
    "r JOIN kinds AS a USING (item) WHERE a.place IN (SELECT place FROM kinds)": "",
    "(SELECT * FROM kinds WHERE place < 2) AS a, (SELECT * FROM kinds WHERE place < 2) AS b, r": "",
}


def refused_or_plain(con: dpquery.Connection, folder: Path, sql: str, code: str) -> None:
    """Refused with this code, at a place, before the charge; where there is none the answer is plain SQL's."""
    if code:
        with pytest.raises(Refused) as refused:
            con.explain(sql)
        assert (refused.value.code, refused.value.position is None) == (code, False)
    else:
        agrees(con, folder, sql)


@pytest.mark.parametrize("join", ABOVE)
def test_public_tables_that_multiply_above_the_noise_are_refused_before_the_charge(
    join: str, con: dpquery.Connection, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = int(str(con._open.backend.public_rows("SELECT count(*) FROM kinds", [INTEGER])[0][0]))
    for name in ("ALL", "FEW"):
        monkeypatch.setattr(pairs, name, rows)
    sql = f"WITH r AS ({BY_ITEM} HAVING item IN ('a', 'b', 'z')) SELECT COUNT(*) AS n FROM {join}"
    refused_or_plain(con, folder, sql, ABOVE[join])


OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) AVG(m) FROM "
BELOW = {
    "(SELECT user_id, AVG(amount) AS m FROM orders WHERE «nope» > 1 GROUP BY user_id)": "UNKNOWN_COLUMN",
    "(SELECT user_id, AVG(amount) AS m FROM «ordrs» GROUP BY user_id)": "UNKNOWN_TABLE",
    "(SELECT AVG(amount) AS m FROM orders GROUP BY item, «usr_id»)": "UNKNOWN_COLUMN",
    "(SELECT user_id, AVG(amount) AS m FROM orders JOIN users USING («item») GROUP BY user_id)": "UNKNOWN_COLUMN",
    "(SELECT user_id, AVG(amount) AS m FROM orders GROUP BY «ROLLUP» (user_id))": "ROLLUP",
    "(SELECT o.user_id, AVG(amount) AS m FROM orders AS o CROSS JOIN «users» AS u GROUP BY o.user_id)": "JOIN_ON_UNIT",
    "(SELECT user_id, AVG(amount) AS m FROM orders GROUP BY user_id HAVING «nope» > 1)": "UNKNOWN_COLUMN",
    "(SELECT item, «COUNT»(*) AS m FROM orders GROUP BY item)": "NESTED_RELEASE",
}


@pytest.mark.parametrize("marked", BELOW)
def test_what_is_wrong_below_the_clause_is_shown_at_its_place(marked: str, con: dpquery.Connection) -> None:
    """Not that its rows seem to be released, which they do for being wrong."""
    sql = OPTIONS + marked.replace("«", "").replace("»", "")
    with pytest.raises(Refused) as refused:
        con.explain(sql)
    assert refused.value.code == BELOW[marked]
    place = refused.value.position
    assert place is not None
    assert BELOW[marked] == "NESTED_RELEASE" or place.column == (OPTIONS + marked).index("«") + 1


UNSURE = {
    "r JOIN kinds AS a ON a.place < r.n JOIN kinds AS b ON b.place <> a.place": "PUBLIC_TOO_LARGE",
    "r LEFT JOIN kinds AS a ON a.place < 2 OR r.n > 5 JOIN kinds AS b ON b.place <> a.place": "PUBLIC_TOO_LARGE",
    "(SELECT a.place FROM kinds AS a, r WHERE a.place < r.n) AS q JOIN kinds AS b ON b.place <> q.place": "PUBLIC_TOO_LARGE",
    "(SELECT a.place FROM kinds AS a JOIN r ON TRUE QUALIFY rank() OVER (ORDER BY r.n) < 3) AS q JOIN kinds AS b ON b.place < 9": "PUBLIC_TOO_LARGE",
    "(SELECT DISTINCT r.n, a.place FROM kinds AS a JOIN r ON TRUE) AS q JOIN kinds AS b ON b.place <> q.place": "PUBLIC_TOO_LARGE",
    "r JOIN kinds AS a USING (item) JOIN kinds AS b ON b.place <> a.place": "",
    "r JOIN kinds AS a ON a.item = r.item AND a.place < r.n": "",
}


@pytest.mark.parametrize("join", UNSURE)
def test_rows_that_noise_decides_on_count_all_before_the_charge(
    join: str, con: dpquery.Connection, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noisy values are not known yet: a condition that reads them might keep every pair."""
    rows = int(str(con._open.backend.public_rows("SELECT count(*) FROM kinds", [INTEGER])[0][0]))
    for name in ("ALL", "FEW"):
        monkeypatch.setattr(pairs, name, rows * rows)
    sql = f"WITH r AS ({BY_ITEM}) SELECT COUNT(*) AS n FROM {join}"
    refused_or_plain(con, folder, sql, UNSURE[join])


MANY = 70  # more than the relations that a statement may name
REPEATED = (
    " AND ".join(["item IN (SELECT item FROM kinds)", "item NOT IN (SELECT title FROM kinds)"] * MANY),
    " AND ".join(["EXISTS (SELECT 1 FROM kinds AS k WHERE k.item = orders.item)"] * MANY),
    " AND ".join(["(SELECT MAX(place) FROM kinds AS k WHERE k.item = orders.item) < 9"] * MANY),
    "TRUE GROUP BY country HAVING " + " AND ".join(["COUNT(*) > (SELECT MAX(place) FROM kinds)"] * MANY),
)


@pytest.mark.parametrize("where", REPEATED)
def test_equal_subqueries_over_public_tables_are_read_once(where: str, con: dpquery.Connection, folder: Path) -> None:
    agrees(con, folder, f"SELECT COUNT(*) AS n FROM orders JOIN users USING (user_id) WHERE {where} ORDER BY n")


def test_equal_subqueries_above_the_noise_are_read_once(con: dpquery.Connection, folder: Path) -> None:
    agrees(con, folder, f"SELECT n{' + (SELECT MAX(place) FROM kinds AS k WHERE k.item = r.item)' * MANY} AS s FROM ({BY_ITEM}) AS r ORDER BY 1")
    twice = "(SELECT COUNT(*) FROM orders)"  # released, and so paid for, as often as it is written
    assert len(con.query(f"SELECT {twice} AS a, {twice} AS b", fresh=True).receipt["tables"]) == 2
