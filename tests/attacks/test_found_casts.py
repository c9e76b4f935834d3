"""A cast is NULL where a value does not fit into the type as written, which may be narrower than the one that dpquery works in."""

from __future__ import annotations

import duckdb
import pytest
from attack_lab import DATA, code, rows

from dpquery.engine.session import Session

NARROW = (
    "TRY_CAST(qty * 100 AS TINYINT)",
    "TRY_CAST(qty AS TINYINT)",
    "TRY_CAST(qty * 10000 AS SMALLINT)",
    "TRY_CAST(qty * 1e9 AS INT)",
    "TRY_CAST(qty * 1000000000 :: BIGINT AS INTEGER)",
    "TRY_CAST(price AS DECIMAL(4, 2))",
    "TRY_CAST(price AS DECIMAL(4, 1))",
    "TRY_CAST(price * 100 AS DECIMAL(4))",
    "TRY_CAST(CAST(qty * 100 AS VARCHAR) AS TINYINT)",
    "TRY_CAST(CAST(qty * 100 AS VARCHAR) AS DECIMAL(5, 2))",
    "TRY_CAST('300' AS TINYINT)",
    "TRY_CAST(127 AS TINYINT) + TRY_CAST(128 AS TINYINT)",
    "TRY_CAST(99.94 AS DECIMAL(3, 1))",
    "TRY_CAST(99.96 AS DECIMAL(3, 1))",
    "TRY_CAST(qty > 0 AS TINYINT)",
    "CAST(qty AS INT)",
    "CAST(qty AS BIGINT)",
)


@pytest.mark.parametrize("cast", NARROW)
def test_casts_to_narrow_types_are_those_of_the_engine(cast: str, lab: Session) -> None:
    """TRY_CAST(300 AS TINYINT) was 300, and TRY_CAST(12345.6 AS DECIMAL(4, 1)) 12345.6, where DuckDB has NULL."""
    with duckdb.connect() as con:
        con.execute(DATA)
        sql = f"SELECT {cast} AS k, count(*) FROM orders JOIN (SELECT DISTINCT pid FROM orders) USING (pid) GROUP BY k ORDER BY k NULLS LAST"
        expected = con.execute(sql).fetchall()
    assert rows(lab, f"SELECT {cast} AS k, count(*) FROM orders GROUP BY k") == expected


def test_a_literal_that_does_not_fit_is_refused(lab: Session) -> None:
    assert code(lab, "SELECT count(*) FROM orders WHERE qty < CAST(300 AS TINYINT)") == "BAD_LITERAL"
    assert code(lab, "SELECT count(*) FROM orders WHERE qty < CAST('300' AS TINYINT)") == "BAD_LITERAL"


def test_integers_of_dialects_that_have_one_kind_are_wide(lab: Session) -> None:
    """INT of Snowflake has 38 digits, that of BigQuery 64 bits."""
    for dialect in ("snowflake", "bigquery"):
        assert len(rows(lab, "SELECT CAST(qty * 1000000000 AS INT) AS k, COUNT(*) FROM orders GROUP BY k", dialect=dialect)) == 23
        assert rows(lab, "SELECT CAST(COUNT(*) * 1000000000.0 AS INT) FROM people", dialect=dialect) == [(24_000_000_000,)]
    assert len(rows(lab, "SELECT CAST(qty * 1000000000 AS INT) AS k, COUNT(*) FROM orders GROUP BY k")) == 6
