"""Keys that put values into bins: public lists where bounds of the schema or of WHERE make them finite, private keys elsewhere."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sql_shop import ask

import dpquery


@pytest.fixture(scope="module")
def con(shop: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    with dpquery.connect(shop(tmp_path_factory.mktemp("bins") / "demo")) as opened:
        yield opened


LISTED = [
    ("users", "floor(age / 10)", "TRUE", 13),
    ("users", "floor(age / 10)", "age >= 20 AND age < 40", 2),
    ("users", "floor(age / 10) * 10", "age BETWEEN 20 AND 40", 3),
    ("users", "age // 10", "TRUE", 13),
    ("users", "age % 3", "TRUE", 3),
    ("users", "CAST(age / 10 AS INTEGER)", "TRUE", None),
    ("users", "TRY_CAST(age * 10 AS TINYINT)", "TRUE", None),
    ("users", "TRY_CAST(floor(age / 10) * 20 AS TINYINT)", "TRUE", 8),
    ("users", "CASE WHEN age < 20 THEN 1 WHEN age < 40 THEN 2 END", "TRUE", 3),
    ("users", "10 // (age // 40)", "TRUE", 4),
    ("users", "COALESCE(floor(age / 10), -1)", "TRUE", 14),
    ("users", "CASE WHEN age IS NULL THEN -1 ELSE age // 20 END", "TRUE", 8),
    ("orders", "CAST(amount AS INTEGER)", "TRUE", None),
    ("orders", "floor(amount * amount / 10000)", "TRUE", None),
    ("users", "CASE WHEN age < 20 THEN -1 ELSE age // 20 END", "TRUE", 7),
    ("users", "age > 30", "TRUE", 2),
    ("users", "age > 30 AND country = 'US'", "TRUE", 2),
    ("users", "ceil(age / 7.5)", "age > 0", 16),
    ("orders", "floor(amount / 50)", "TRUE", 11),
    ("orders", "round(amount)", "amount < 10", 11),
    ("orders", "floor(user_id / 10)", "user_id BETWEEN 1 AND 100", None),
    ("orders", "month(day)", "TRUE", 12),
    ("orders", "year(day)", "TRUE", None),
    ("orders", "year(day)", "day >= DATE '2023-01-01' AND day < DATE '2025-01-01'", 2),
    ("orders", "date_trunc('month', day)", "day BETWEEN DATE '2024-01-10' AND DATE '2024-03-05'", 3),
    ("orders", "date_trunc('week', CAST(day AS TIMESTAMP))", "day BETWEEN DATE '2024-01-01' AND DATE '2024-01-14'", 2),
    ("orders", "date_trunc('month', day)", "day >= DATE '2024-01-10'", None),
    ("orders", "date_trunc('month', day)", "day >= DATE '2024-01-10' AND day < DATE '2024-01-01'", None),
    ("orders", "date_trunc('day', day)", "day BETWEEN DATE '1900-01-01' AND DATE '2024-01-01'", None),
    ("users", "age", "TRUE", None),
    ("users", "age + 1", "TRUE", None),
    ("users", "length(country) // 2", "TRUE", 1),
    ("order_items", "length(product) // 2", "TRUE", None),
    ("orders", "dayofyear(day)", "TRUE", 366),
    ("orders", "monthname(day)", "TRUE", 12),
    ("orders", "left(dayname(day), 1)", "TRUE", 5),
    ("orders", "COALESCE(strftime(day, '%b'), 'none')", "TRUE", 13),
    ("orders", "monthname(day)", "day BETWEEN DATE '2024-02-10' AND DATE '2024-03-05'", 2),
]


@pytest.mark.parametrize(("table", "key", "where", "count"), LISTED)
def test_how_many_bins_there_are(con: Any, table: str, key: str, where: str, count: int | None) -> None:
    found = con.explain(f"SELECT {key} AS k, count(*) AS n FROM {table} WHERE {where} GROUP BY k").keys
    assert (found["rule"], found.get("count")) == ("threshold" if count is None else "listed", count)


def test_every_bin_appears_and_in_its_type(con: Any) -> None:
    found = con.query("SELECT floor(age / 10) * 10 AS k, count(*) AS n FROM users WHERE age < 50 AND age >= 10 GROUP BY k", epsilon="0.1")
    assert [row[0] for row in found.fetchall()] == [10.0, 20.0, 30.0, 40.0]
    span = "day BETWEEN DATE '2031-01-10' AND DATE '2031-03-05'"
    months = f"SELECT CAST(date_trunc('month', day) AS DATE) AS m, count(*) AS n FROM orders WHERE {span} GROUP BY m"
    found = con.query(months, epsilon="0.1")
    assert [row[0] for row in found.fetchall()] == [datetime.date(2031, month, 1) for month in (1, 2, 3)]
    assert "true and false" in str(con.query("SELECT age > 30 AS old, count(*) AS n FROM users GROUP BY old", epsilon="0.1").warnings)


def test_a_threshold_asked_for_makes_them_private(con: Any) -> None:
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(group_selection_strategy = LAPLACE_THRESHOLD) age // 10 AS k, count(*) AS n FROM users GROUP BY k"
    assert con.explain(sql).keys["rule"] == "threshold"


def test_too_many_bins_in_all_are_private_keys(con: Any) -> None:
    sql = "SELECT floor(amount / 0.1) AS a, month(day) AS m, count(*) AS n FROM orders GROUP BY a, m"
    assert con.explain(sql).keys["rule"] == "threshold"


def test_long_keys_are_not_looked_through() -> None:
    for length, listed in ((10, True), (150, False)):
        sql = f"SELECT floor(age / 10){' + 1' * length} AS k, COUNT(*) AS n FROM users GROUP BY k"
        assert bool(ask(sql).blocks[0].draft.sources) == listed


@pytest.mark.parametrize("key", ["o.paid", "floor(o.amount / 50)"])
def test_what_an_outer_join_sets_to_null_has_no_list(key: str) -> None:
    sql = f"SELECT {key} AS k, COUNT(*) AS n FROM users u {{}} JOIN orders o USING (user_id) GROUP BY k"
    assert not ask(sql.format("LEFT")).blocks[0].draft.sources
    assert ask(sql.format("INNER")).blocks[0].draft.sources


def test_null_is_a_bin_where_a_value_within_bounds_has_none(con: Any) -> None:
    """No row is lost to a step that fails: its group is listed, from the bounds alone."""
    for key, listed in (
        ("TRY_CAST(floor(age / 10) * 20 AS TINYINT)", [*range(0, 121, 20), None]),
        ("CASE WHEN age < 20 THEN 1 WHEN age < 40 THEN 2 END", [1, 2, None]),
        ("10 // (age // 40)", [3, 5, 10, None]),
        ("age // 40", [0, 1, 2, 3]),
    ):
        found = con.query(f"SELECT {key} AS k, count(*) AS n FROM users GROUP BY k", epsilon="0.01")
        assert [row[0] for row in found.fetchall()] == listed
        assert any("are left out" in warning for warning in found.warnings)  # rows beyond the bounds, and those without an age
