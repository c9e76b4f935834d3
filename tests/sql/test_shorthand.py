"""Lists after ANY and ALL, named windows, changed stars and fractions of quantiles: read as what they are short for, and DuckDB says the same."""

from __future__ import annotations

import duckdb
import pytest
from sql_shop import NOW, ask, schema, summary
from sqlglot import exp

from dpquery.errors import Refused
from dpquery.sql import read
from dpquery.sql.dialect import parse

BY_COUNTRY = "(SELECT country, COUNT(*) AS n, SUM(age) AS s FROM users GROUP BY country)"
SHORT = [
    (
        "postgres",
        "SELECT COUNT(*) AS n FROM orders WHERE channel = ANY(ARRAY['a', 'b'])",
        "SELECT COUNT(*) AS n FROM orders WHERE channel IN ('a', 'b')",
    ),
    ("duckdb", "SELECT COUNT(*) AS n FROM orders WHERE channel = ANY(['a', 'b'])", "SELECT COUNT(*) AS n FROM orders WHERE channel IN ('a', 'b')"),
    ("postgres", "SELECT COUNT(*) AS n FROM orders WHERE channel = SOME(ARRAY['a'])", "SELECT COUNT(*) AS n FROM orders WHERE channel IN ('a')"),
    ("postgres", "SELECT COUNT(*) AS n FROM orders WHERE channel <> ALL(ARRAY['a'])", "SELECT COUNT(*) AS n FROM orders WHERE NOT channel IN ('a')"),
    (
        "postgres",
        "SELECT COUNT(*) AS n FROM orders WHERE amount > ALL(ARRAY[1, 2])",
        "SELECT COUNT(*) AS n FROM orders WHERE amount > 1 AND amount > 2",
    ),
    (
        "bigquery",
        "SELECT COUNT(*) AS n FROM orders WHERE channel IN UNNEST(['a', 'b'])",
        "SELECT COUNT(*) AS n FROM orders WHERE channel IN ('a', 'b')",
    ),
    (
        "snowflake",
        "SELECT COUNT(*) AS n FROM orders WHERE channel LIKE ANY ('a%', 'b%')",
        "SELECT COUNT(*) AS n FROM orders WHERE (channel LIKE 'a%' OR channel LIKE 'b%')",
    ),
    (
        "postgres",
        "SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel HAVING channel = ANY(ARRAY['a', 'b'])",
        "SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel HAVING channel IN ('a', 'b')",
    ),
    (
        "duckdb",
        "SELECT country, SUM(COUNT(*)) OVER w AS s, RANK() OVER (v ORDER BY COUNT(*)) AS r FROM users GROUP BY country "
        "WINDOW w AS (ORDER BY country), v AS (PARTITION BY country)",
        "SELECT country, SUM(COUNT(*)) OVER (ORDER BY country) AS s, RANK() OVER (PARTITION BY country ORDER BY COUNT(*)) AS r "
        "FROM users GROUP BY country",
    ),
    (
        "duckdb",
        "SELECT SUM(amount) AS s FROM (SELECT amount FROM orders WINDOW w AS (PARTITION BY user_id ORDER BY day) "
        "QUALIFY ROW_NUMBER() OVER w = 1) AS o",
        "SELECT SUM(amount) AS s FROM (SELECT amount FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) = 1) AS o",
    ),
    (
        "duckdb",
        "WITH a AS MATERIALIZED (SELECT age FROM users) SELECT SUM(age) AS s FROM a",
        "WITH a AS (SELECT age FROM users) SELECT SUM(age) AS s FROM a",
    ),
    (
        "duckdb",
        "SELECT SUM(age) AS s FROM (SELECT * EXCLUDE (city) REPLACE (age + 1 AS age) FROM users) AS u WHERE country = 'US'",
        "SELECT SUM(age) AS s FROM (SELECT user_id, age + 1 AS age, country FROM users) AS u WHERE country = 'US'",
    ),
    (
        "snowflake",
        "SELECT SUM(y) AS s FROM (SELECT * RENAME (age AS y) FROM users) AS u",
        "SELECT SUM(y) AS s FROM (SELECT age AS y FROM users) AS u",
    ),
    ("duckdb", "SELECT DISTINCT * EXCLUDE (user_id, age, city) FROM users", "SELECT DISTINCT country FROM users"),
    ("bigquery", f"SELECT * EXCEPT (n) FROM {BY_COUNTRY} AS g", f"SELECT country, s FROM {BY_COUNTRY} AS g"),
    (
        "duckdb",
        f"SELECT g.* EXCLUDE (n) REPLACE (s + 1 AS s) RENAME (country AS c) FROM {BY_COUNTRY} AS g",
        f"SELECT country AS c, s + 1 AS s FROM {BY_COUNTRY} AS g",
    ),
    ("duckdb", "SELECT QUANTILE_CONT(amount, 9e-1) AS q FROM orders", "SELECT QUANTILE_CONT(amount, 0.9) AS q FROM orders"),
    ("duckdb", "SELECT QUANTILE_CONT(amount, 0.5::DOUBLE) AS q FROM orders", "SELECT QUANTILE_CONT(amount, 0.5) AS q FROM orders"),
    ("duckdb", "SELECT QUANTILE_CONT(amount, 1 / 4) AS q FROM orders", "SELECT QUANTILE_CONT(amount, 0.25) AS q FROM orders"),
    (
        "postgres",
        "SELECT COUNT(*) AS n FROM users WHERE (age, country) < (30, 'US')",
        "SELECT COUNT(*) AS n FROM users WHERE age < 30 OR (age = 30 AND country < 'US')",
    ),
    (
        "trino",
        "SELECT COUNT(*) AS n FROM users WHERE ROW(age, country) >= ROW(30, 'US')",
        "SELECT COUNT(*) AS n FROM users WHERE age > 30 OR (age = 30 AND (country > 'US' OR country = 'US'))",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) AS n FROM users WHERE (age, country) < (30, 'US')",
        "SELECT COUNT(*) AS n FROM users WHERE COALESCE(age < 30, age IS NOT NULL AND 30 IS NULL) "
        "OR (age IS NOT DISTINCT FROM 30 AND COALESCE(country < 'US', country IS NOT NULL AND 'US' IS NULL))",
    ),
    (
        "bigquery",
        "SELECT COUNT(*) AS n FROM users WHERE (age, country) IS NOT DISTINCT FROM (30, 'US')",
        "SELECT COUNT(*) AS n FROM users WHERE age IS NOT DISTINCT FROM 30 AND country IS NOT DISTINCT FROM 'US'",
    ),
    (
        "duckdb",
        "SELECT country, COUNT(*) AS n FROM users GROUP BY country HAVING (COUNT(*), country) >= (3, 'DE')",
        "SELECT country, COUNT(*) AS n FROM users GROUP BY country HAVING (COALESCE((COUNT(*)) > 3, 3 IS NOT NULL AND (COUNT(*)) IS NULL) "
        "OR (COUNT(*)) IS NOT DISTINCT FROM 3 AND "
        "(COALESCE(country > 'DE', 'DE' IS NOT NULL AND country IS NULL) OR country IS NOT DISTINCT FROM 'DE'))",
    ),
]
ROWS = ["(a, b) {} (c, d)", "ROW(a, b) {} ROW(c, d)", "(a, b, c) {} (d, 1, a)", "((a, b)) {} (NULL, d)"]
SIGNS = ["<", "<=", ">", ">=", "=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
RANGES = ["(a, b) BETWEEN (c, 1) AND (d, 2)", "NOT (a, b) NOT BETWEEN (c, 1) AND (d, 2)", "(a, b) IN ((c, d), (1, NULL))"]


@pytest.mark.parametrize(("dialect", "short", "long"), SHORT, ids=[short[:90] for _, short, _ in SHORT])
def test_the_short_form_is_the_long_one(dialect: str, short: str, long: str) -> None:
    assert _plain(summary(ask(short, dialect=dialect))) == _plain(summary(ask(long)))


def _plain(found: dict[str, object]) -> dict[str, object]:
    """Without the labels of asks, which are the text."""
    return {name: value for name, value in found.items() if name != "limits"}


@pytest.mark.parametrize(
    ("dialect", "short", "long"), [one for one in SHORT if one[0] == "duckdb"], ids=[s[:90] for d, s, _ in SHORT if d == "duckdb"]
)
def test_duckdb_gives_both_the_same_rows(dialect: str, short: str, long: str) -> None:
    with duckdb.connect() as engine:
        engine.execute(
            "CREATE TABLE users AS SELECT i AS user_id, i % 7 AS age, ['US', 'DE', NULL][i % 3 + 1] AS country, 'x' AS city FROM range(50) r(i)"
        )
        engine.execute(
            "CREATE TABLE orders AS SELECT i % 9 AS user_id, (i * 37 % 101)::DECIMAL(9, 2) AS amount, DATE '2024-01-01' + i::INT AS day, "
            "['a', 'b', 'c', NULL][i % 4 + 1] AS channel FROM range(200) r(i)"
        )
        rows = [sorted(map(repr, engine.execute(sql).fetchall())) for sql in (short, long, parse(short).tree.sql(dialect="duckdb"))]
    assert rows[0] == rows[1] == rows[2]
    assert rows[0]


def test_rows_of_values_written_out_are_what_duckdb_says_of_rows() -> None:
    tests = [one.format(sign) for one in ROWS for sign in SIGNS] + RANGES
    out = [parse(f"SELECT {one}").tree.args["expressions"][0] for one in tests]
    assert not any(one.find(exp.Tuple) for one in out)
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE v AS SELECT unnest([1, 2, NULL]) AS x")
        every = "(SELECT p.x AS a, q.x AS b, r.x AS c, s.x AS d FROM v AS p, v AS q, v AS r, v AS s)"
        for one, other in zip(tests, out, strict=True):
            found = engine.execute(f"SELECT count(*), count(*) FILTER (({one}) IS NOT DISTINCT FROM ({other.sql('duckdb')})) FROM {every}").fetchall()
            assert found == [(81, 81)], one


def test_copies_of_rows_within_rows_are_bounded() -> None:
    nested = "age"
    for _ in range(12):
        nested = f"CASE WHEN ({nested}, 1) < (2, 3) THEN 1 END"
    with pytest.raises(Refused) as caught:
        ask(f"SELECT COUNT(*) AS n FROM users WHERE {nested} = 1")
    assert caught.value.code == "TOO_COMPLEX"


@pytest.mark.parametrize(
    ("dialect", "sql", "code"),
    [
        ("bigquery", "SELECT COUNT(*) AS n FROM users WHERE (age, country) < (30, 'US')", "UNSUPPORTED_EXPRESSION"),
        ("duckdb", "SELECT COUNT(*) AS n FROM users WHERE (age, country) < (30, 'US', 1)", "UNSUPPORTED_EXPRESSION"),
        ("duckdb", "SELECT COUNT(*) AS n FROM users WHERE (age, (country, 1)) < (30, ('US', 2))", "UNSUPPORTED_EXPRESSION"),
        ("postgres", "SELECT COUNT(*) AS n FROM orders WHERE channel = ANY('{a,b}')", "UNSUPPORTED_EXPRESSION"),
        ("spark", "SELECT COUNT(*) AS n FROM orders WHERE channel NOT LIKE ANY ('a', 'b')", "UNSUPPORTED_EXPRESSION"),
        (
            "duckdb",
            "SELECT country, SUM(COUNT(*)) OVER (w ORDER BY country) AS s FROM users GROUP BY country WINDOW w AS (ORDER BY country)",
            "WINDOW_NAME",
        ),
        ("duckdb", "SELECT country, SUM(COUNT(*)) OVER w AS s FROM users GROUP BY country", "WINDOW_NAME"),
        ("duckdb", "SELECT COUNT(*) AS n FROM users WINDOW w AS (ORDER BY nope)", "WINDOW_NAME"),
        ("duckdb", "SELECT * EXCLUDE (age) FROM users", "RAW_ROWS"),
        ("duckdb", "SELECT COUNT(*) AS n FROM (SELECT * EXCLUDE (nope) FROM users) AS u", "UNKNOWN_COLUMN"),
        ("duckdb", "SELECT COUNT(*) AS n FROM (SELECT * EXCLUDE (age) RENAME (age AS y) FROM users) AS u", "STAR_EXCLUDE"),
        ("duckdb", "SELECT COUNT(*) AS n FROM (SELECT * EXCLUDE (user_id, age, country, city) FROM users) AS u", "STAR_EXCLUDE"),
        ("postgres", "SELECT PERCENTILE_CONT(1 / 2) WITHIN GROUP (ORDER BY amount) AS q FROM orders", "QUANTILE"),
        ("duckdb", "SELECT QUANTILE_CONT(amount, 3 / 2) AS q FROM orders", "QUANTILE"),
        ("spark", "SELECT /*+ BROADCAST(users) */ COUNT(*) AS n FROM users", "HINT"),
    ],
)
def test_what_is_short_for_nothing(dialect: str, sql: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        ask(sql, dialect=dialect)
    assert caught.value.code == code


def test_a_python_float_is_a_fraction() -> None:
    found = read("SELECT QUANTILE_CONT(amount, ?) AS q FROM orders", schema(), now=NOW, parameters=[0.9])
    assert summary(found)["asks"] == summary(ask("SELECT QUANTILE_CONT(amount, 0.9) AS q FROM orders"))["asks"]


@pytest.mark.parametrize(
    ("dialect", "sql", "name"),
    [
        ("duckdb", "SELECT VAR_SAMP(amount) FROM orders", "var_samp(amount)"),
        ("duckdb", "SELECT VARIANCE(amount) FROM orders", "variance(amount)"),
        ("snowflake", "SELECT CORR(amount, weight) FROM orders", "corr(amount, weight)"),
        ("duckdb", "SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY amount) FROM orders", "quantile_cont(0.25 ORDER BY amount)"),
        ("duckdb", "SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY amount DESC) FROM orders", "quantile_disc(0.5 ORDER BY amount DESC)"),
    ],
)
def test_columns_are_called_as_duckdb_calls_them(dialect: str, sql: str, name: str) -> None:
    assert [output.name for output in ask(sql, dialect=dialect).post.outputs] == [name]


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("snowflake", "SELECT column1, COUNT(*) AS n FROM users JOIN (VALUES (1), (2)) AS v ON age = column1 GROUP BY column1"),
        ("postgres", "SELECT column1, COUNT(*) AS n FROM users JOIN (VALUES (1), (2)) AS v ON age = column1 GROUP BY column1"),
        ("spark", "SELECT col1, COUNT(*) AS n FROM users JOIN (VALUES (1), (2)) AS v ON age = col1 GROUP BY col1"),
        ("postgres", "SELECT i, COUNT(*) AS n FROM users JOIN generate_series(1, 2) i ON age = i GROUP BY i"),
    ],
)
def test_columns_of_lists_are_called_as_the_dialect_calls_them(dialect: str, sql: str) -> None:
    assert summary(ask(sql, dialect=dialect))["keys"]
