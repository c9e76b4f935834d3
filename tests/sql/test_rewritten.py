"""The whole statement that a refusal names: it is read, and is the one that was meant."""

from __future__ import annotations

import pytest
from sql_shop import ask

from dpquery.errors import Refused

MEANT = [
    ("duckdb", "SELECT COUNT(*) FROM users FOR UPDATE", "SELECT COUNT(*) FROM users"),
    ("spark", "SELECT /*+ BROADCAST(users) */ COUNT(*) FROM users", "SELECT COUNT(*) FROM users"),
    ("duckdb", "SELECT COUNT(*)\nFROM users TABLESAMPLE 10%", "SELECT COUNT(*)\nFROM users"),
    ("duckdb", "SELECT COUNT(*) FROM users USING SAMPLE 5 ROWS", "SELECT COUNT(*) FROM users"),
    ("duckdb", "SELECT COUNT(*) INTO x FROM users", "SELECT COUNT(*) FROM users"),
    (
        "duckdb",
        "SELECT WITH ANONYMIZATION OPTIONS(epsilon=1) COUNT(*) FROM users",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) COUNT(*) FROM users",
    ),
    ("duckdb", "SELECT COUNT(*) FROM a.main.users", "SELECT COUNT(*) FROM users"),
    ("duckdb", "SELECT AVG(agee) FROM users", "SELECT AVG(age) FROM users"),
    ("duckdb", "SELECT COUNT(*) FROM users\nWHERE citty = 'x'", "SELECT COUNT(*) FROM users\nWHERE city = 'x'"),
    ("duckdb", "SELECT MAX(amount) FROM orders", "SELECT quantile_cont(amount, 0.99) FROM orders"),
    ("duckdb", "SELECT AVG(age > 30), COUNT(*) FROM users", "SELECT AVG(CAST(age > 30 AS INT)), COUNT(*) FROM users"),
    ("duckdb", "SELECT sum(city = ')' OR (age > 3)) FROM users", "SELECT COUNT(*) FILTER (WHERE city = ')' OR (age > 3)) FROM users"),
    (
        "duckdb",
        "SELECT strftime(day, '%Y-%m') AS m, COUNT(*) FROM orders GROUP BY strftime(day, '%Y-%m')",
        "SELECT date_trunc('month', day) AS m, COUNT(*) FROM orders GROUP BY date_trunc('month', day)",
    ),
    ("postgres", "SELECT to_char(day, 'YYYY') AS y, COUNT(*) FROM orders GROUP BY 1", "SELECT year(day) AS y, COUNT(*) FROM orders GROUP BY 1"),
    (
        "duckdb",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon='0,1') COUNT(*) FROM users",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.1) COUNT(*) FROM users",
    ),
    (
        "duckdb",
        "SELECT SUM(a) FROM (SELECT amount AS a, ROW_NUMBER() OVER (ORDER BY day) AS k FROM orders) AS o WHERE k = 1",
        "SELECT SUM(a) FROM (SELECT amount AS a, ROW_NUMBER() OVER (PARTITION BY orders.user_id ORDER BY day) AS k FROM orders) AS o WHERE k = 1",
    ),
    (
        "duckdb",
        "SELECT SUM(a) FROM (SELECT amount AS a, ROW_NUMBER() OVER (PARTITION BY day ORDER BY amount) AS k FROM orders) AS o WHERE k = 1",
        "SELECT SUM(a) FROM (SELECT amount AS a, ROW_NUMBER() OVER (PARTITION BY orders.user_id, day ORDER BY amount) AS k FROM orders) AS o "
        "WHERE k = 1",
    ),
]


@pytest.mark.parametrize(("dialect", "sql", "meant"), MEANT, ids=[sql for _, sql, _ in MEANT])
def test_the_statement_to_write_instead_is_named_whole(dialect: str, sql: str, meant: str) -> None:
    with pytest.raises(Refused) as caught:
        ask(sql, dialect=dialect)
    assert caught.value.rewritten == meant
    assert caught.value.as_dict()["rewritten"] == meant
    assert str(caught.value).endswith(f"Accepted: {meant}")
    ask(meant, dialect=dialect)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT amount FROM orders",
        "SELECT COUNT(*) FROM user",  # like several
        "SELECT AVG(agee), MAX(amount) FROM users",  # wrong in two ways
        "SELECT COUNT(*) FROM broken FOR UPDATE",
        "SELECT COUNT(*) FROM users FOR UPDATE" + " " * 5_000,
    ],
)
def test_none_is_named_where_none_is_sure(sql: str) -> None:
    with pytest.raises(Refused) as caught:
        ask(sql)
    assert caught.value.rewritten is None
    assert "rewritten" not in caught.value.as_dict()
