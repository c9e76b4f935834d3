"""A statement of another dialect that reads alike but means something else is refused, or answered in that dialect's meaning."""

from __future__ import annotations

from pathlib import Path

import pytest
from attack_lab import DATA, code, made, opened, rows

from dpquery.engine.session import Session

OTHERS = [
    ("bigquery", "EXTRACT(DAYOFWEEK FROM day)"),
    ("bigquery", "EXTRACT(WEEK FROM day)"),
    ("bigquery", "SUBSTR(note, 0, 2)"),
    ("bigquery", "LEFT(note, -1)"),
    ("bigquery", "TRIM(note)"),
    ("bigquery", "LTRIM(note)"),
    ("spark", "dayofweek(day)"),
    ("spark", "extract(DOW FROM day)"),
    ("spark", "date_part('dayofweek', day)"),
    ("spark", "weekday(day)"),
    ("spark", "substring(note, 0, 2)"),
    ("spark", "right(note, -1)"),
    ("spark", "extract(SECOND FROM CAST(day AS TIMESTAMP))"),
    ("snowflake", "LEFT(note, -1)"),
    ("postgres", "extract(second FROM CAST(day AS TIMESTAMP))"),
    ("postgres", "date_part('second', CAST(day AS TIMESTAMP))"),
]


@pytest.mark.parametrize(("dialect", "expression"), OTHERS)
def test_what_means_something_else_is_refused_by_name(dialect: str, expression: str, lab: Session) -> None:
    """Sunday was day 0 for BigQuery and Spark, whose Sunday is 1; weeks, places and lengths likewise."""
    assert code(lab, f"SELECT {expression} AS k, COUNT(*) FROM orders GROUP BY k", dialect=dialect) == "DIALECT_DIFFERS"
    assert code(lab, f"SELECT day, note, {expression}, COUNT(*) FROM orders GROUP BY day, note", dialect=dialect) == "DIALECT_DIFFERS"
    assert code(lab, f"SELECT COUNT(*) FROM orders WHERE {expression} IS NULL", dialect=dialect) == "DIALECT_DIFFERS"


HALVES = "INSERT INTO people SELECT 90 + i, 1, 'X', [0.5, 1.5, -2.5, 2.7][1 + i], NULL, NULL FROM range(4) t(i);"
WHOLE = {"duckdb": [-2, 0, 2, 3], "postgres": [-2, 0, 2, 3], "bigquery": [-3, 1, 2, 3], "snowflake": [-3, 1, 2, 3], "spark": [-2, 0, 1, 2]}
INTEGER = {"bigquery": "INT64"}


@pytest.mark.parametrize("dialect", WHOLE)
def test_casts_to_integers_round_as_the_dialect_does(dialect: str, tmp_path: Path) -> None:
    """Spark cuts, BigQuery and Snowflake round halves away from zero; all were rounded to even."""
    kind = INTEGER.get(dialect, "INT")
    with opened(made(tmp_path, DATA + HALVES)) as session:
        found = rows(session, f"SELECT CAST(score AS {kind}) AS k, COUNT(*) FROM people WHERE country = 'X' GROUP BY k", dialect=dialect)
        assert [key for key, n in found for _ in range(n)] == WHOLE[dialect]
        half = rows(session, f"SELECT CAST(COUNT(*) * 0.625e0 AS {kind}) FROM people WHERE country = 'X'", dialect=dialect)
        assert half == [({"spark": 2, "bigquery": 3, "snowflake": 3}.get(dialect, 2),)]


def test_integers_above_the_noise_are_divided_as_the_dialect_does(lab: Session) -> None:
    """PostgreSQL divides integers into integers: 25 / 2 is 12."""
    assert rows(lab, "SELECT (COUNT(*) + 1) / 2 FROM people", dialect="postgres") == [(12,)]
    assert rows(lab, "SELECT (COUNT(*) + 1) / 2 FROM people") == [(12.5,)]
    assert rows(lab, "SELECT (COUNT(*) + 1) / 2.0 FROM people", dialect="postgres") == [(12.5,)]
    assert rows(lab, "SELECT AVG(age) / 2 FROM people WHERE pid < 3", dialect="postgres") == rows(
        lab, "SELECT AVG(age) / 2 FROM people WHERE pid < 3"
    )
    assert rows(lab, "SELECT CAST(COUNT(*) AS DOUBLE PRECISION) / 7 FROM people", dialect="postgres") == [(24 / 7,)]
    assert rows(lab, "SELECT SUM(age) / COUNT(*), SUM(-age) / COUNT(*) FROM people", dialect="postgres") == [(42, -42)]
    assert rows(lab, "SELECT SUM(age) / COUNT(*), SUM(-age) / COUNT(*) FROM people") == [(42.5, -42.5)]
    assert rows(lab, "SELECT COALESCE(COUNT(*) + 1, 0) / 2 FROM people", dialect="postgres") == [(12,)]
    nested = "SELECT sum(n) / 3 AS m FROM (SELECT pid, count(*) AS n FROM orders GROUP BY pid) o"
    assert code(lab, nested, dialect="postgres") == "DIVISION_TYPE"


def test_public_tables_are_computed_as_the_dialect_does(lab: Session) -> None:
    sql = "SELECT h, COUNT(*) FROM orders o JOIN (SELECT n, day, (0 - n) / 2 AS h FROM moments) m ON o.qty = m.n GROUP BY h"
    assert [row[0] for row in rows(lab, sql, dialect="postgres")] == [-4, -3, -2, -1, 0]
    cast = "SELECT h, COUNT(*) FROM orders o JOIN (SELECT n, CAST(n / 2 AS INT) AS h FROM moments) m ON o.qty = m.n GROUP BY h"
    assert [row[0] for row in rows(lab, cast, dialect="spark")] == [0, 1, 2, 3, 4]


def test_days_are_added_to_public_dates(lab: Session) -> None:
    """A number of days from a public table is read as 64 bits, which DuckDB adds to no date: the engine failed."""
    plus = "SELECT d, COUNT(*) FROM orders o JOIN (SELECT n, day {} n AS d FROM moments) m ON o.qty = m.n GROUP BY d"
    assert {str(row[0]) for row in rows(lab, plus.format("-"))} == {"2023-12-20"}
    assert len(rows(lab, plus.format("+"))) == 10
