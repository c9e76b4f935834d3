"""Dates that an engine has and nobody else: beyond the years 1 to 9999, and infinite ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from attack_lab import DATA, code, made, opened, rows

from dpquery.engine.session import Session

ODD = """
INSERT INTO moments VALUES ('infinity', 100), ('-infinity', 101), ('20000-01-01', 102), ('0044-03-15 (BC)', 103), ('9999-12-31', 104), (NULL, 105);
INSERT INTO orders VALUES (900, 1, 1, 'a', 'infinity', 1), (901, 2, 1, 'a', '20000-01-01', 1), (902, 3, 1, 'a', '9999-12-31', 1);
"""
JOINS = (
    "SELECT m.day, count(*) FROM orders o JOIN moments m USING (day) GROUP BY m.day",
    "SELECT m.day, count(*) FROM orders o RIGHT JOIN moments m USING (day) GROUP BY m.day",
    "SELECT m.day, m.n, count(*) FROM orders o JOIN moments m ON o.qty < m.n GROUP BY m.day, m.n",
    "SELECT t, count(*) FROM orders o JOIN (SELECT day, CAST(day AS TIMESTAMP) AS t FROM moments) m USING (day) GROUP BY t",
)


@pytest.mark.parametrize("sql", JOINS)
def test_public_keys_beyond_the_calendar_are_no_keys(tmp_path: Path, sql: str) -> None:
    """They ended in Python's own error, before the charge, for every statement that grouped by them."""
    with opened(made(tmp_path, DATA + ODD)) as session:
        days = [row[0] for row in rows(session, sql)]
    assert days
    assert all(1 <= day.year <= 9999 for day in days)


@pytest.mark.parametrize(
    "moved",
    [
        "day + INTERVAL '9000' YEAR",
        "day + 4000000",
        "day - 4000000",
        "CAST('infinity' AS DATE)",
        "CAST('infinity' AS TIMESTAMP)",
        "CAST('-infinity' AS TIMESTAMP)",
        "DATE '0044-01-01 (BC)'",
        "lag(day + INTERVAL '9000' YEAR, 0) OVER (ORDER BY day)",
    ],
)
def test_dates_that_leave_the_calendar_above_the_noise_are_null(lab: Session, moved: str) -> None:
    """The answer was lost after the charge, and the account counted a time-out: five of them locked it."""
    before = lab.budget().timeouts
    answer = lab.query(f"SELECT day, {moved} AS moved, count(*) AS n FROM orders GROUP BY day")
    assert set(answer.table.column("moved").to_pylist()) == {None}
    assert any("moved: NULL in" in said for said in answer.warnings)
    assert lab.budget().timeouts == before


def test_dates_at_the_calendars_ends_stay(lab: Session) -> None:
    ends = "CAST('0001-01-01' AS DATE) a, CAST('9999-12-31' AS DATE) b, CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP) c"
    assert [str(value) for value in rows(lab, f"SELECT {ends}, count(*) FROM people")[0][:3]] == [
        "0001-01-01",
        "9999-12-31",
        "9999-12-31 23:59:59.999999",
    ]


@pytest.mark.parametrize("output", ["INTERVAL 1 DAY", "INTERVAL '290000000' YEAR", "CAST(day AS TIMESTAMP) - TIMESTAMP '2020-01-01'"])
def test_an_output_that_no_format_can_show_is_refused_before_the_charge(lab: Session, output: str) -> None:
    """An INTERVAL could not be written to Parquet: the price was paid for nothing."""
    assert code(lab, f"SELECT day, {output}, count(*) FROM orders GROUP BY day") == "OUTPUT_TYPE"
