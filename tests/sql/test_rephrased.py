"""Dates and times of other dialects: what DuckDB is asked in their place gives what the dialect's documentation says."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import duckdb
import pytest
from sql_shop import ask

from dpquery.errors import Refused
from dpquery.sql.dialect import parse

Moment = datetime.datetime
DAY = datetime.timedelta(days=1)
BASE = Moment(2019, 12, 20, 22, 30, 15)
MOMENTS = [BASE + datetime.timedelta(hours=7 * i, seconds=i) for i in range(400)] + [Moment(1969, 12, 20) + i * DAY for i in range(30)]
SINCE = Moment(2020, 1, 5, 13)


def week(moment: Moment, first: int) -> Moment:
    """The midnight that the moment's week starts with, on the weekday `first` (Monday is 0)."""
    midnight = datetime.datetime.combine(moment.date(), datetime.time())
    return midnight - ((midnight.weekday() - first) % 7) * DAY


def weeks(moment: Moment, first: int) -> int:
    return (week(moment, first) - week(SINCE, first)).days // 7


def passed(moment: Moment, unit: datetime.timedelta) -> int:
    """Whole units from SINCE on, towards zero."""
    span = abs(moment - SINCE) // unit
    return span if moment >= SINCE else -span


EXPRESSIONS: list[tuple[str, str, Callable[[Moment], object]]] = [
    ("bigquery", "DATE_TRUNC(t, WEEK)", lambda t: week(t, 6)),
    ("bigquery", "TIMESTAMP_TRUNC(t, WEEK(WEDNESDAY), 'UTC')", lambda t: week(t, 2)),
    ("bigquery", "DATETIME_TRUNC(t, ISOWEEK)", lambda t: week(t, 0)),
    ("bigquery", "DATE_DIFF(t, TIMESTAMP '2020-01-05 13:00:00', WEEK)", lambda t: weeks(t, 6)),
    ("bigquery", "DATE_DIFF(t, TIMESTAMP '2020-01-05 13:00:00', WEEK(SATURDAY))", lambda t: weeks(t, 5)),
    ("bigquery", "DATETIME_DIFF(t, DATETIME '2020-01-05 13:00:00', ISOWEEK)", lambda t: weeks(t, 0)),
    ("bigquery", "DATETIME_DIFF(t, DATETIME(2020, 1, 5, 13, 0, 0), DAY)", lambda t: (t.date() - SINCE.date()).days),
    ("bigquery", "TIMESTAMP_DIFF(t, TIMESTAMP('2020-01-05 13:00:00'), DAY)", lambda t: passed(t, DAY)),
    ("bigquery", "TIMESTAMP_DIFF(t, TIMESTAMP('2020-01-05 13:00:00', 'UTC'), HOUR)", lambda t: passed(t, DAY / 24)),
    ("bigquery", "EXTRACT(DATE FROM t)", lambda t: t.date()),
    ("bigquery", "EXTRACT(ISOWEEK FROM t)", lambda t: t.isocalendar().week),
    ("bigquery", "EXTRACT(HOUR FROM t AT TIME ZONE 'UTC')", lambda t: t.hour),
    ("bigquery", "TIMESTAMP(DATE(2020, 1, 5))", lambda t: Moment(2020, 1, 5)),
    ("snowflake", "DATE_FROM_PARTS(2020, 1, 5)", lambda t: datetime.date(2020, 1, 5)),
    ("postgres", "TIMESTAMP(0) '2020-01-05 13:00:00'", lambda t: SINCE),
    ("postgres", "make_date(2020, 1, 5)", lambda t: datetime.date(2020, 1, 5)),
    ("spark", "CAST('2020-01-05 13:00:00' AS TIMESTAMP)", lambda t: SINCE),
    ("spark", "TRUNC(t, 'MM')", lambda t: t.date().replace(day=1)),
    ("spark", "DATE_TRUNC('MON', t)", lambda t: datetime.datetime.combine(t.date().replace(day=1), datetime.time())),
    ("spark", "DATEDIFF(t, TIMESTAMP '2020-01-05 13:00:00')", lambda t: (t.date() - SINCE.date()).days),
    ("spark", "DATEDIFF(DAY, TIMESTAMP '2020-01-05 13:00:00', t)", lambda t: passed(t, DAY)),
    ("spark", "TIMESTAMPDIFF(WEEK, TIMESTAMP '2020-01-05 13:00:00', t)", lambda t: passed(t, 7 * DAY)),
    ("trino", "DATE_DIFF('day', TIMESTAMP '2020-01-05 13:00:00', t)", lambda t: passed(t, DAY)),
    ("trino", "DATE_DIFF('week', TIMESTAMP '2020-01-05 13:00:00.000', t)", lambda t: passed(t, 7 * DAY)),
    ("trino", "DATE_DIFF('second', TIMESTAMP '2020-01-05 13:00:00', t)", lambda t: passed(t, DAY / 86400)),
]


@pytest.mark.parametrize(("dialect", "text", "meant"), EXPRESSIONS, ids=[f"{dialect}: {text}" for dialect, text, _ in EXPRESSIONS])
def test_what_duckdb_is_asked_is_what_the_dialect_says(dialect: str, text: str, meant: Callable[[Moment], object]) -> None:
    """The same text that stands above the noise; below, the same tree is read into the plan (docs/dialects.md)."""
    written = parse(f"SELECT {text} FROM x", dialect).tree.expressions[0].sql(dialect="duckdb")
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE x AS SELECT unnest(?::TIMESTAMP[]) AS t", [MOMENTS])
        rows = engine.execute(f"SELECT t, {written} FROM x").fetchall()
    assert len(rows) == len(MOMENTS)
    assert [found for _, found in rows] == [meant(t) for t, _ in rows]


@pytest.mark.parametrize(
    ("dialect", "text", "code"),
    [
        ("bigquery", "TIMESTAMP('2024-03-01', 'America/New_York') IS NULL", "TIME_ZONE"),
        ("bigquery", "DATE(day, 'Asia/Tokyo') IS NULL", "TIME_ZONE"),
        ("bigquery", "TIMESTAMP_TRUNC(day, DAY, 'Asia/Tokyo') IS NULL", "TIME_ZONE"),
        ("bigquery", "TIMESTAMP '2024-03-01 10:00:00+02' IS NULL", "BAD_LITERAL"),
        ("bigquery", "EXTRACT(WEEK(SUNDAY) FROM day) = 1", "DIALECT_DIFFERS"),
        ("bigquery", "DATE(2024, 13, 1) IS NULL", "UNKNOWN_FUNCTION"),
        ("bigquery", "DATE_TRUNC(day, ISOYEAR) IS NULL", "BAD_LITERAL"),
        ("postgres", "'2024-03-01'::timestamptz IS NULL", "TYPE_NOT_ALLOWED"),
        ("spark", "DATEDIFF(MONTH, DATE '2024-01-31', day) = 1", "UNSUPPORTED_CLAUSE"),
        ("trino", "DATE_DIFF('month', DATE '2024-01-31', day) = 1", "DIALECT_DIFFERS"),
        ("trino", "CAST(day AS TIMESTAMP(0)) IS NULL", "TYPE_NOT_ALLOWED"),
        ("spark", "user_id IN (SELECT user_id FROM orders GROUP BY user_id HAVING SKEWNESS(order_id) > 1)", "DIALECT_DIFFERS"),
        ("spark", "user_id IN (SELECT user_id FROM orders GROUP BY user_id HAVING KURTOSIS(order_id) > 1)", "DIALECT_DIFFERS"),
        ("trino", "user_id IN (SELECT user_id FROM orders GROUP BY user_id HAVING SKEWNESS(order_id) > 1)", "DIALECT_DIFFERS"),
        ("trino", "user_id IN (SELECT user_id FROM orders GROUP BY user_id HAVING ENTROPY(order_id) > 1)", "DIALECT_DIFFERS"),
    ],
)
def test_what_duckdb_has_no_words_for(dialect: str, text: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        ask(f"SELECT COUNT(*) AS n FROM orders WHERE {text}", dialect=dialect)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("dialect", "text", "sign"),
    [
        ("postgres", "SUM(age) / COUNT(*)", "//"),
        ("postgres", "SUM(CAST(age AS BIGINT)) / COUNT(*)", "/"),
        ("trino", "SUM(CAST(age AS BIGINT)) / COUNT(*)", "//"),
        ("postgres", "SUM(CASE WHEN age > 3 THEN 1 END) * 100 / COUNT(*)", "//"),
        ("postgres", "SUM(CASE WHEN age > 3 THEN 3000000000 ELSE 0.5 END) / 2", "/"),
        ("postgres", "COUNT(*) * 100 / SUM(COUNT(*)) OVER ()", "/"),
        ("trino", "COUNT(*) * 100 / SUM(COUNT(*)) OVER ()", "//"),
        ("trino", "COUNT(*) / AVG(age)", "/"),
    ],
)
def test_quotients_of_sums(dialect: str, text: str, sign: str) -> None:
    assert f") {sign} (" in ask(f"SELECT {text} AS x FROM users", dialect=dialect).post.sql


@pytest.mark.parametrize("text", ["SUM(n) / 3", "SUM(n) / COUNT(*)"])
def test_a_quotient_of_unknown_type_is_refused_at_its_sign(text: str) -> None:
    sql = f"SELECT {text} AS x FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) AS o"
    with pytest.raises(Refused) as caught:
        ask(sql, dialect="postgres")
    assert caught.value.code == "DIVISION_TYPE"
    assert caught.value.position is not None
    assert caught.value.position.column == sql.index("/") + 1
    ask(sql.replace("SUM(n)", "CAST(SUM(n) AS DOUBLE PRECISION)"), dialect="postgres")


def test_snowflakes_list_of_no_texts_is_an_empty_one() -> None:
    sql = "SELECT COUNT(*) AS n FROM (SELECT user_id, {} AS c FROM orders GROUP BY user_id) WHERE c = ''"
    for call in ("LISTAGG(channel, ',')", "LISTAGG(channel, ',') WITHIN GROUP (ORDER BY day)"):
        theirs, ours = ask(sql.format(call), dialect="snowflake"), ask(sql.format(f"COALESCE({call}, '')"))
        assert theirs.blocks[0].draft.input == ours.blocks[0].draft.input
        assert "coalesce" in str(theirs.blocks[0].draft.input)
