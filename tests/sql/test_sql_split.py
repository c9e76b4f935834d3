"""Above the noise the answer is DuckDB's own: with exact aggregates in the noisy table, what is read gives the rows of the statement as written."""

# ruff: noqa: E501 (statements are kept whole)

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from sql_shop import ask

from dpquery.plan.draft import AggregateAsk, Question

DATA = """
CREATE TABLE users AS SELECT i AS user_id, (i * 7) % 90 AS age, ['US', 'DE', 'FR', NULL][1 + i % 4] AS country, 'c' || (i % 5) AS city FROM range(60) t(i);
CREATE TABLE orders AS SELECT i AS order_id, i % 60 AS user_id, ((i * 37) % 500)::DECIMAL(38, 2) AS amount, (i % 40)::DOUBLE AS weight, i % 3 = 0 AS paid,
  DATE '2024-01-01' + (i % 6)::INT AS day, ['web', 'shop'][1 + i % 2] AS channel FROM range(200) t(i);
"""

# the statement, its keys as DuckDB spells them, and its FROM
CASES = [
    ("SELECT country, COUNT(*) FROM users GROUP BY country", ["country"], "users"),
    ("SELECT country, COUNT(*) AS n FROM users GROUP BY country HAVING n > 14 ORDER BY n DESC, country", ["country"], "users"),
    ("SELECT city, COUNT(*) AS n FROM users GROUP BY city ORDER BY n, city DESC LIMIT 2 OFFSET 1", ["city"], "users"),
    ("SELECT country, COUNT(*) FROM users GROUP BY ALL ORDER BY 1 DESC NULLS FIRST", ["country"], "users"),
    ("SELECT country, city, SUM(age), AVG(age) FROM users GROUP BY country, city ORDER BY SUM(age) DESC, 1, 2", ["country", "city"], "users"),
    ("SELECT -age AS age, COUNT(*) FROM users GROUP BY users.age ORDER BY age", ["users.age"], "users"),
    ("SELECT age + 10 AS age, COUNT(*) FROM users GROUP BY users.age HAVING age < 30 ORDER BY users.age", ["users.age"], "users"),
    ("SELECT age % 10 AS a, a + COUNT(*) AS b, b * 2 FROM users GROUP BY a ORDER BY a", ["age % 10"], "users"),
    ("SELECT FLOOR(age / 10) * 10 AS low, COUNT(*) FROM users GROUP BY FLOOR(age / 10) ORDER BY low", ["FLOOR(age / 10)"], "users"),
    ("SELECT UPPER(city) || '!', LENGTH(city), city = 'c1' FROM users GROUP BY city ORDER BY city", ["city"], "users"),
    ("SELECT SUM(age) / COUNT(*), COUNT(*) // 7, COUNT(*) % 7, -COUNT(*), ROUND(AVG(age), 1), CAST(AVG(age) AS INTEGER) FROM users", [], "users"),
    (
        "SELECT CASE WHEN COUNT(*) > 14 THEN 'many' ELSE 'few' END, COUNT(*) BETWEEN 1 AND 20, country IS NULL FROM users GROUP BY country ORDER BY country",
        ["country"],
        "users",
    ),
    ("SELECT country, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM users GROUP BY country ORDER BY share, country", ["country"], "users"),
    ("SELECT city, RANK() OVER (ORDER BY SUM(age) DESC) AS r FROM users GROUP BY city QUALIFY r <= 3 ORDER BY r", ["city"], "users"),
    (
        "SELECT city, ROW_NUMBER() OVER (ORDER BY SUM(age), city) AS r, LAG(COUNT(*), 1, 0) OVER (ORDER BY city) FROM users GROUP BY city ORDER BY r",
        ["city"],
        "users",
    ),
    (
        "SELECT day, SUM(SUM(amount)) OVER (ORDER BY day ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM orders GROUP BY day ORDER BY day",
        ["day"],
        "orders",
    ),
    (
        "SELECT day, SUM(COUNT(*) * 2) OVER (ORDER BY day), AVG(AVG(weight) + 1) OVER (), MAX(COUNT(*)) OVER () FROM orders GROUP BY day ORDER BY day",
        ["day"],
        "orders",
    ),
    (
        "SELECT city, FIRST_VALUE(city) OVER (ORDER BY SUM(age)), NTH_VALUE(city, 2) OVER (ORDER BY SUM(age)), COUNT(*) OVER () FROM users GROUP BY city ORDER BY 1",
        ["city"],
        "users",
    ),
    (
        "SELECT day, NTILE(3) OVER (ORDER BY day), CUME_DIST() OVER (ORDER BY day), DENSE_RANK() OVER (ORDER BY COUNT(*)) FROM orders GROUP BY day ORDER BY day",
        ["day"],
        "orders",
    ),
    (
        "SELECT EXTRACT(month FROM day), day + INTERVAL 1 MONTH, date_trunc('month', day), day - DATE '2024-01-01' FROM orders GROUP BY day ORDER BY day",
        ["day"],
        "orders",
    ),
    ("SELECT DISTINCT COUNT(*) FROM users GROUP BY country ORDER BY 1 DESC", ["country"], "users"),
    ("SELECT DISTINCT COUNT(*) > 3 AS many, country IS NULL AS nobody FROM users GROUP BY country ORDER BY nobody", ["country"], "users"),
    ("SELECT DISTINCT city, age > 40 FROM users ORDER BY city, 2", ["city", "age > 40"], "users"),
    ("SELECT COUNT(*) AS n FROM users HAVING n > 100", [], "users"),
    ("SELECT COUNT(*) FILTER (WHERE paid), SUM(amount) FILTER (WHERE day > '2024-01-03'), COUNT(DISTINCT user_id) FROM orders", [], "orders"),
    ("SELECT channel, COUNT_IF(paid) + 1 FROM orders GROUP BY channel ORDER BY COUNT(*), channel DESC", ["channel"], "orders"),
    ("SELECT COALESCE(country, 'none') AS c, COUNT(*) FROM users GROUP BY c ORDER BY c", ["COALESCE(country, 'none')"], "users"),
    ("SELECT COUNT(*), 1 + 1, 'x', NULL, TRUE FROM users", [], "users"),
]


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute(DATA)
        yield made


def exact(one: AggregateAsk) -> str:
    integer = one.card in ("count", "units") or (one.card == "total" and str(one.argument and one.argument.type) == "integer")
    return f"CAST({one.label} AS BIGINT)" if integer else one.label


def answer(con: duckdb.DuckDBPyConnection, question: Question, keys: list[str], source: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """What the statement above the noise gives for exact aggregates."""
    items = [f"{key} AS k{i}" for i, key in enumerate(keys)] + [f"{exact(one)} AS {one.name}" for one in question.blocks[0].draft.asks]
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE noisy AS SELECT *, row_number() OVER () AS __row FROM (SELECT {', '.join(items)} FROM {source}{group})"
    )
    found = con.execute(question.post.sql)
    names = [column[0] for column in found.description or ()]
    rows = found.fetchall()
    return (names[:-1], [row[:-1] for row in rows]) if question.post.rows else (names, rows)


def close(a: object, b: object) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(float(a), float(b), rel_tol=1e-12)  # type: ignore[arg-type]
    return a == b


@pytest.mark.parametrize(("sql", "keys", "source"), CASES)
def test_same_rows_as_duckdb(con: duckdb.DuckDBPyConnection, sql: str, keys: list[str], source: str) -> None:
    question = ask(sql)
    assert len(question.blocks[0].draft.keys) == len(keys)
    names, rows = answer(con, question, keys, source)
    assert names == [one.name for one in question.post.outputs]
    wanted = con.execute(sql).fetchall()
    if "ORDER BY" not in sql.rpartition(")")[2] and "ORDER BY" not in sql:
        wanted, rows = sorted(wanted, key=repr), sorted(rows, key=repr)
    assert len(rows) == len(wanted)
    assert all(close(a, b) for row, want in zip(rows, wanted, strict=True) for a, b in zip(row, want, strict=True)), (rows, wanted)


def test_rows_come_ordered_by_the_keys_nulls_last(con: duckdb.DuckDBPyConnection) -> None:
    _, rows = answer(con, ask("SELECT COUNT(*), country FROM users GROUP BY country"), ["country"], "users")
    assert [row[1] for row in rows] == ["DE", "FR", "US", None]
    _, rows = answer(con, ask("SELECT country, COUNT(*) FROM users GROUP BY country ORDER BY 2"), ["country"], "users")
    assert [row[0] for row in rows] == ["DE", "FR", "US", None]


FAILING = [
    *(
        "CAST(city AS INTEGER)",
        "COUNT(*) + 9223372036854775807",
        "COUNT(*) // 0",
        "COUNT(*) % 0",
        "CAST(COUNT(*) * 1e300 AS INTEGER)",
        "CAST('x' AS DATE)",
    ),
    *(
        "CAST(SUM(age) AS DECIMAL(38, 0)) * 99999999999999999999999999999999999999",
        "SUBSTRING(city, COUNT(*), 9223372036854775807)",
        "-(-9223372036854775808)",
    ),
    *("DATE '9999-12-31' + INTERVAL 1000000 YEAR", "ROUND(CAST(COUNT(*) AS DECIMAL(38, 2)) * 1e36, 2)", "COALESCE(CAST(city AS INTEGER), 0)"),
    *("CASE WHEN CAST(city AS INTEGER) > 3 THEN 1 END", "CAST(city AS UUID)", "ABS(-9223372036854775808 + COUNT(*) * 0)"),
]


@pytest.mark.parametrize("text", FAILING)
def test_nothing_fails_above_the_noise(con: duckdb.DuckDBPyConnection, text: str) -> None:
    """As an output, in HAVING, in QUALIFY, in ORDER BY and as the argument of a window."""
    for sql in (
        f"SELECT city, {text} AS x, COUNT(*) FROM users GROUP BY city",
        f"SELECT city, COUNT(*) FROM users GROUP BY city HAVING ({text}) IS NULL",
        f"SELECT city, COUNT(*) FROM users GROUP BY city ORDER BY {text}",
        f"SELECT city, MAX({text}) OVER (PARTITION BY {text} ORDER BY {text}) FROM users GROUP BY city QUALIFY ({text}) IS NULL",
        f"SELECT DISTINCT {text} FROM users GROUP BY city",
    ):
        answer(con, ask(sql), ["city"], "users")


def test_sums_over_windows_cannot_overflow(con: duckdb.DuckDBPyConnection) -> None:
    question = ask("SELECT city, SUM(SUM(price)) OVER (), SUM(SUM(price) * 1000000000) OVER () FROM users JOIN orders USING (user_id) JOIN order_items "
                   "USING (order_id) GROUP BY city")  # fmt: skip
    con.execute(
        "CREATE OR REPLACE TEMP TABLE noisy AS SELECT 'c' || i AS k0, (repeat('9', 36))::DECIMAL(38, 2) AS a0, i AS __row FROM range(1000) t(i)"
    )
    rows = con.execute(question.post.sql).fetchall()
    assert len(rows) == 1000
    assert rows[0][1] is None


def test_text_in_aliases_and_literals_is_only_text(con: duckdb.DuckDBPyConnection) -> None:
    question = ask("""SELECT COUNT(*) AS "x"" FROM noisy; DROP TABLE users; --", 'it''s; --' AS "k0", '\\' AS b FROM users""")
    names, rows = answer(con, question, [], "users")
    assert names == ['x" FROM noisy; DROP TABLE users; --', "k0", "b"]
    assert rows == [(60, "it's; --", "\\")]


def test_an_alias_called_like_a_column_of_ours_is_not_one(con: duckdb.DuckDBPyConnection) -> None:
    question = ask("SELECT COUNT(*) AS k0, city AS a0, AVG(age) AS t FROM users GROUP BY city")
    _, rows = answer(con, question, ["city"], "users")
    assert [row[1] for row in rows] == ["c0", "c1", "c2", "c3", "c4"]
