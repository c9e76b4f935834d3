"""ROLLUP, CUBE and GROUPING SETS through the engine: noise off, answers are the plain engine's; how they are paid and named."""

from __future__ import annotations

import duckdb
import pytest
from plain_answers import answer

import dpquery

TABLES = """
CREATE TABLE users AS SELECT i AS user_id, ['US', 'DE', 'FR'][1 + i % 3] AS country, 'c' || (i % 2) AS city FROM range(1, 61) t(i);
CREATE TABLE orders AS SELECT i AS order_id, 1 + (i * i) % 59 AS user_id, i % 9 AS q, ['a', 'b', 'c', 'd'][1 + (i % 11) % 4] AS item,
    DATE '2024-01-01' + CAST(i % 90 AS INTEGER) AS day FROM range(1, 241) t(i)
"""
SCHEMA = """
dataset: levels
source: {engine: duckdb, path: data.duckdb}
privacy_unit: users.user_id
BUDGET
contribution: {max_groups_contributed: 10, max_rows_per_group: 50}
tables:
  users:
    unit: user_id
    max_rows_per_unit: 1
    columns: {user_id: {type: integer}, country: {type: string, values: [US, DE, FR]}, city: {type: string}}
  orders:
    unit: user_id
    columns:
      order_id: {type: integer, unique: true}
      user_id: {type: integer}
      q: {type: integer, lower: 0, upper: 100}
      item: {type: string, values: [a, b, c, d]}
      day: {type: date}
"""
FREE = """budget: {epsilon: 1e30, delta: 1}
per_query: {epsilon: 1e20, delta: 1}
unsafe_testing: true"""
ORDINARY = """budget: {epsilon: 40, delta: 1e-6}
per_query: {epsilon: 4, delta: 1e-9}"""
RELEASED = "(SELECT country, count(*) AS n FROM users GROUP BY ROLLUP (country))"
ANSWERED = (
    "SELECT country, count(*) AS n FROM users GROUP BY ROLLUP (country)",
    "SELECT country, city, count(*) AS n FROM users GROUP BY CUBE (country, city)",
    "SELECT item, sum(q) AS s, count(*) FROM orders GROUP BY GROUPING SETS ((item), ()) ORDER BY item NULLS LAST",
    "SELECT country, item, sum(q) AS s, grouping(item) AS g, grouping(country, item) AS gg FROM users JOIN orders USING (user_id) "
    "GROUP BY ROLLUP (country, item) ORDER BY grouping(country), country, g, item",
    "SELECT coalesce(u.country, 'all') AS c, count(*) AS n FROM users u GROUP BY ROLLUP (country) HAVING count(*) > 15 ORDER BY n DESC, c LIMIT 3",
    "SELECT upper(country) AS c, count(*) AS n FROM users u GROUP BY ROLLUP (c)",
    "SELECT country, item, avg(q) AS s FROM users JOIN orders USING (user_id) GROUP BY 1, ROLLUP (2)",
    f"WITH r AS {RELEASED} SELECT a.country, a.n * 1.0 / b.n AS share FROM r a, r b WHERE b.country IS NULL",
    "SELECT DISTINCT country, count(*) AS n FROM users GROUP BY ROLLUP (country) ORDER BY n, country",
    "SELECT date_trunc('month', day) AS m, item, count(*) AS n FROM orders WHERE item IN ('a', 'b') GROUP BY GROUPING SETS ((m, item), m, (item))",
    f"SELECT (SELECT max(n) FROM {RELEASED}) AS m",
    "SELECT country, sum(length(country)) AS n FROM users GROUP BY ROLLUP (country)",
    "WITH u AS (SELECT * FROM users WHERE city = 'c1') SELECT country, city, count(*) AS n FROM u "
    "GROUP BY GROUPING SETS (country, city, (country, city))",
    "SELECT country, count(*) FILTER (WHERE city = 'c0') AS n, count(DISTINCT user_id) AS d FROM users GROUP BY ROLLUP (country), CUBE (city)",
    "SELECT country, rank() OVER (ORDER BY n DESC) AS place FROM " + RELEASED,
    "SELECT city, country, count(*) AS n FROM users WHERE city IN ('c0', 'c1') GROUP BY ROLLUP (country), ROLLUP (city) ORDER BY ALL",
    "SELECT country, count(*) AS n FROM users GROUP BY GROUPING SETS (ROLLUP (country), CUBE (city), ())",
    "SELECT country, sum(length(country)) AS s, rank() OVER (ORDER BY sum(length(country)) DESC) FROM users GROUP BY ROLLUP (country)",
    "SELECT country, item, count(*) AS n, n * 100.0 / sum(n) OVER (PARTITION BY grouping(country), grouping(item)) AS share, share > 20 AS large "
    "FROM users JOIN orders USING (user_id) GROUP BY CUBE (country, item)",
    "SELECT country, city, count(*) AS n FROM users GROUP BY ROLLUP (country, city) "
    "QUALIFY row_number() OVER (PARTITION BY country ORDER BY count(*) DESC, city) <= 2 ORDER BY -n, country, city",
    "SELECT upper(country) AS country, rank() OVER (ORDER BY country) AS r FROM users u GROUP BY ROLLUP (u.country) QUALIFY r < 3 AND count(*) > 0",
    "SELECT DISTINCT max(count(*)) OVER (PARTITION BY country IS NULL) AS most, coalesce(country, 'all') IN ('all', 'US') AS c FROM users "
    "GROUP BY ROLLUP (country) HAVING count(*) > 5 ORDER BY 1, 2",
    "SELECT day, count(*) AS n, sum(count(*)) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAY PRECEDING AND CURRENT ROW) AS week FROM orders "
    "WHERE day BETWEEN '2024-01-01' AND '2024-01-20' GROUP BY ROLLUP (day)",
    "SELECT country, lag(count(*)) OVER w AS before FROM users GROUP BY ROLLUP (country) WINDOW w AS (ORDER BY country) "
    "ORDER BY row_number() OVER (ORDER BY country) DESC LIMIT 2",
    "SELECT count(*) AS n FROM orders WHERE item IN (SELECT item FROM orders GROUP BY ROLLUP (item) HAVING count(*) > 40)",
    "SELECT CASE WHEN grouping(country) = 1 THEN 'all' ELSE country END AS c, count(*) AS n FROM users GROUP BY ROLLUP (country) ORDER BY 1",
)


@pytest.mark.parametrize("sql", ANSWERED)
def test_without_noise_the_answer_is_the_plain_one(free: dpquery.Connection, sql: str) -> None:
    with duckdb.connect() as plain:
        plain.execute(TABLES)
        found = free.query(sql, fresh=True)
        wanted = plain.sql(sql)
        assert found.columns == wanted.columns
        plain.register("found", found.arrow())
        assert answer(plain, "SELECT * FROM found") == answer(plain, sql)


@pytest.mark.parametrize("dialect", ["duckdb", "bigquery", "snowflake", "postgres", "spark", "trino"])
def test_all_dialects_have_them(free: dpquery.Connection, dialect: str) -> None:
    texts = ["ROLLUP (country, city)", "GROUPING SETS ((country, city), (country), ())"]
    texts += ["country, city WITH ROLLUP", "country, city GROUPING SETS ((country, city), (city), ())"] if dialect == "spark" else []
    found = [free.explain(f"SELECT country, city, count(*) AS n FROM users GROUP BY {text}", dialect=dialect).as_dict() for text in texts]
    assert {len(one["releases"]) for one in found} == {3}


def test_options_speak_for_all_levels(con: dpquery.Connection) -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 3{}) item, count(*{}) AS n, sum(q) AS s FROM orders GROUP BY CUBE (item)"
    for more, share in ((", delta = 1e-10", ""), ("", ""), ("", ", epsilon => 1")):
        price = con.explain(clause.format(more, share)).as_dict()["price"]
        assert (price["epsilon"], price["delta"]) in ((("3", "1e-10") if more else ("3", "1e-9")), ("3", "0"))
    with pytest.raises(dpquery.errors.Refused, match="EPSILON_SHARES"):
        con.explain(clause.format("", ", epsilon => 4"))
    named = con.explain(clause.format("", ", epsilon => 1"), delta="1e-10").as_dict()
    assert named["price"]["epsilon"] == "3", "a delta beside it is the call's"


def test_the_total_selects_no_groups(con: dpquery.Connection) -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 3, delta = 1e-9, {}) city, count(*) AS n FROM users GROUP BY {}"
    for option in ("group_selection_epsilon = 1", "min_privacy_units_per_group = 5", "group_selection_strategy = LAPLACE_THRESHOLD"):
        for sets in ("ROLLUP (city)", "GROUPING SETS ((), (country), (country, city))"):
            found = con.explain(clause.format(option, sets)).as_dict()
            assert found["price"]["epsilon"] == "3"
    with pytest.raises(dpquery.errors.Refused, match="the keys are public"):
        con.explain(clause.format("group_selection_epsilon = 1", "ROLLUP (country)").replace(" city,", ""))


@pytest.mark.parametrize("more", ["", ", rank() OVER (ORDER BY count(*)) AS r"])
def test_each_level_has_error_bars(con: dpquery.Connection, more: str) -> None:
    sql = f"SELECT item, count(*) AS n{more} FROM orders GROUP BY ROLLUP (item) ORDER BY item NULLS LAST"
    found = con.query(sql, epsilon=4)
    bars = found.intervals["n"]
    assert len(found) == len(bars) == 5
    assert all(low < value < high for (_, value, *_), (low, high) in zip(found.fetchall(), bars, strict=True))


def test_tidied_sums_match_their_parts(con: dpquery.Connection) -> None:
    sql = "SELECT country, count(*) AS n, count(DISTINCT user_id) AS d FROM users GROUP BY ROLLUP (country) ORDER BY country NULLS LAST"
    found = con.query(sql, epsilon=1, tidy=True)
    assert found.columns == ["country", "n", "n_tidy", "d", "d_tidy"]
    for name in ("n_tidy", "d_tidy"):
        values = found.arrow().column(name).to_pylist()
        assert sum(values[:-1]) == values[-1] >= 0
        assert all(low <= value <= high for value, (low, high) in zip(values, found.intervals[name], strict=True))
