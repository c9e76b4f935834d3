"""Quantiles of dates and timestamps: of their own type, between bounds of the statement or of its conditions, by both ways."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from datetime import date, timedelta

import duckdb
import pytest

from dpquery.aggregates.values import EPOCH, bar, released
from dpquery.display import text
from dpquery.engine import Session
from dpquery.errors import Refused
from dpquery.numbers import Fraction
from dpquery.values.types import DATE, TIMESTAMP

Opened = Callable[[str], Session]
BOUNDS = "contribution_bounds_per_row => (DATE '2023-12-01', DATE '2024-01-31')"
WITHIN = "WHERE signup_day BETWEEN DATE '2023-12-01' AND DATE '2024-01-31'"
WAYS = ("laplace", "exponential")
EXACT = {"epsilon": "1e20", "delta": "1"}


def answered(session: Opened, sql: str, **more: str) -> tuple[object, ...]:
    table = session("base").query(sql, **EXACT, **more).table
    return tuple(column.to_pylist()[0] for column in table.columns)


@pytest.fixture(scope="module")
def plain(dataset: Callable[[str], object]) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE users AS SELECT CAST(d AS DATE) AS signup_day FROM (VALUES ('2024-01-01'), ('2024-01-02'), ('2024-01-02'), "
        "('2024-01-03'), ('2024-01-03'), ('2024-01-04'), ('2024-01-05'), ('2024-01-06')) t(d)"
    )
    return con


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "call",
    [
        "median(signup_day{})",
        "quantile_cont(signup_day, 0.2{})",
        "quantile_disc(signup_day, 0.2{})",
        "quantile_disc(CAST(signup_day AS TIMESTAMP), 0.9{})",
        "percentile_disc(0.6) WITHIN GROUP (ORDER BY signup_day)",
        "quantile_disc(signup_day, [0.2, 0.9]{})",
    ],
)
def test_what_plain_sql_says(session: Opened, plain: duckdb.DuckDBPyConnection, call: str, way: str) -> None:
    """In the type that DuckDB gives, and the same day; a choice is the middle of a bin, which is a day."""
    clause = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(noise = {way}) "
    (have,) = answered(session, f"{clause}{call.format(', ' + BOUNDS if '{}' in call else '')} AS q FROM users {'' if '{}' in call else WITHIN}")
    ((want,),) = plain.sql(f"SELECT {call.format('')} FROM users").fetchall()
    pairs = [*zip(have, want, strict=True)] if isinstance(have, list) and isinstance(want, list) else [(have, want)]
    loose = timedelta(days=1) if way == "exponential" and "disc" not in call else timedelta(minutes=30) if "TIMESTAMP" in call else timedelta(0)
    for one, other in pairs:
        assert type(one) is type(other)
        assert abs(_moment(one) - _moment(other)) <= loose, (one, other)


def _moment(value: object) -> datetime.datetime:
    assert isinstance(value, date)
    return value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())


def test_bounds_are_enforced_and_may_be_written_in_several_ways(session: Opened) -> None:
    top = date(2024, 1, 2)
    for bounds in ("(DATE '2023-12-30', DATE '2024-01-02')", "('2023-12-30', '2024-01-02')", "(DATE '2023-12-30', TIMESTAMP '2024-01-02 23:00:00')"):
        assert answered(session, f"SELECT quantile_disc(signup_day, 1, contribution_bounds_per_row => {bounds}) AS q FROM users") == (top,)
    assert answered(
        session, "SELECT quantile_disc(signup_day, 1) AS q FROM users WHERE signup_day >= '2023-12-30' AND signup_day < '2024-01-03'"
    ) == (top,)
    filtered = "SELECT quantile_disc(signup_day, 1) FILTER (WHERE signup_day BETWEEN '2023-12-30' AND '2024-01-02') AS q FROM users"
    assert answered(session, filtered) == (top,)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT median(signup_day) FROM users", "MISSING_BOUNDS"),
        ("SELECT median(signup_day) FROM users WHERE signup_day > '2024-01-01'", "MISSING_BOUNDS"),
        ("SELECT median(signup_day, contribution_bounds_per_row => (0, 9)) FROM users", "BOUNDS_NOT_LITERAL"),
        ("SELECT median(signup_day, contribution_bounds_per_row => (DATE '2024-02-01', DATE '2024-01-01')) FROM users", "BOUNDS_NOT_LITERAL"),
        ("SELECT median(signup_day, contribution_bounds_per_row => (DATE '2024-01-01', DATE '2024-13-01')) FROM users", "BOUNDS_NOT_LITERAL"),
        ("SELECT median(signup_day, contribution_bounds_per_row => (DATE '2024-01-01', DATE '2024-01-01')) FROM users", "BAD_BOUNDS"),
        (f"SELECT median(signup_day, contribution_bounds_per_group => (0, 9)) FROM users {WITHIN}", "PER_GROUP_BOUNDS"),
        ("SELECT sum(age, contribution_bounds_per_row => (DATE '2024-01-01', DATE '2024-02-01')) FROM users", "BOUNDS_NOT_LITERAL"),
    ],
)
def test_what_is_refused(session: Opened, sql: str, code: str) -> None:
    with pytest.raises(Refused) as refused:
        session("base").explain(sql, **EXACT)
    assert refused.value.code == code
    assert refused.value.instead


def test_approximate_ones_are_days(session: Opened) -> None:
    sql = f"SELECT approx_quantiles(signup_day, 2)[OFFSET(1)] AS m, approx_quantiles(signup_day, 2) AS q FROM users {WITHIN}"
    assert answered(session, sql, dialect="bigquery") == (date(2024, 1, 3), [date(2024, 1, n) for n in (1, 3, 6)])


def test_bars_are_of_the_same_type(session: Opened) -> None:
    sql = f"""SELECT quantile_disc(signup_day, 0.2, {BOUNDS}) AS q, dp_interval_low(q) AS low, dp_interval_high(q) AS high, q + 1 AS later,
      quantile_disc(signup_day, 0.2, {BOUNDS}, report_format => 'JSON') AS report FROM users"""
    answer = session("base").query(sql, **EXACT)
    q, low, high, later, report = (column.to_pylist()[0] for column in answer.table.columns)
    assert answer.intervals[0] == ((low, high),)
    assert (q, later) == (date(2024, 1, 2), date(2024, 1, 3))
    assert answer.intervals[3] is None
    assert low <= q <= high
    assert json.loads(report)["bounding_report"] == {"lower_bound": "2023-12-01", "upper_bound": "2024-01-31"}
    assert text.columns(answer)[0].cells == (f"2024-01-02 [{low}, {high}]",)


def test_a_median_of_moments_is_a_value_below_the_noise(session: Opened) -> None:
    assert answered(session, f"SELECT count(*) AS n FROM users WHERE signup_day <= (SELECT quantile_disc(signup_day, 0.5, {BOUNDS}) FROM users)") == (
        5,
    )


@pytest.mark.parametrize("kind", [DATE, TIMESTAMP])
def test_moments_saturate(kind: object) -> None:
    kind = DATE if kind == DATE else TIMESTAMP
    assert str(released(Fraction(10**30), kind)).startswith("9999-12-31")
    assert str(released(Fraction(-(10**30)), kind)).startswith("0001-01-01")
    assert _moment(released(Fraction(0), kind)) == EPOCH
    low, high = bar(Fraction(1, 2), Fraction(3, 2), kind)
    assert low == released(Fraction(0), kind)
    assert high == released(Fraction(2), kind)
