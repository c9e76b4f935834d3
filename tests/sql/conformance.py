"""The table of docs/dialects.md: each construct in each dialect, read as DuckDB's construct, as another one that means the same, or refused by name.

Run as a script it writes the page; test_conformance.py holds the page against it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from sql_shop import schema, summary

from dpquery.errors import Refused
from dpquery.sql import read
from dpquery.sql.dialect import DIALECTS

PAGE = Path(__file__).parents[2] / "docs/dialects.md"
OTHERS = tuple(d for d in DIALECTS if d != "duckdb")
NOW = datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=datetime.UTC)
ROW = "SELECT COUNT(*) AS n FROM orders WHERE ({}) IS NOT NULL"


class Construct(NamedTuple):
    """One construct: DuckDB's spelling, other dialects' where it differs, and what else (in DuckDB's spelling) a dialect may mean by it."""

    title: str
    duckdb: str
    spelled: Mapping[str, str] = {}
    means: tuple[str, ...] = ()


WHOLE = (
    Construct("COUNT, SUM, AVG", "SELECT COUNT(*) AS n, COUNT(amount) AS c, SUM(amount) AS s, AVG(amount) AS m FROM orders"),
    Construct("COUNT(DISTINCT unit)", "SELECT COUNT(DISTINCT user_id) AS n FROM orders"),
    Construct("COUNT_IF", "SELECT COUNT_IF(amount > 9) AS n FROM orders", {"bigquery": "SELECT COUNTIF(amount > 9) AS n FROM orders"}),
    Construct(
        "a quantile",
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY amount) AS m FROM orders",
        {"bigquery": "SELECT APPROX_QUANTILES(amount, 2)[OFFSET(1)] AS m FROM orders"},
    ),
    Construct(
        "quantiles as a list",
        "SELECT QUANTILE_CONT(amount, [0, 0.5, 1]) AS q FROM orders",
        {
            "bigquery": "SELECT APPROX_QUANTILES(amount, 2) AS q FROM orders",
            "snowflake": "SELECT APPROX_QUANTILES(amount, 2) AS q FROM orders",
            "postgres": "SELECT PERCENTILE_CONT(ARRAY[0, 0.5, 1]) WITHIN GROUP (ORDER BY amount) AS q FROM orders",
            "spark": "SELECT percentile_approx(amount, array(0, 0.5, 1)) AS q FROM orders",
            "trino": "SELECT approx_percentile(amount, ARRAY[0, 0.5, 1]) AS q FROM orders",
        },
    ),
    Construct(
        "one value of a list",
        "SELECT q[2] AS m FROM (SELECT QUANTILE_CONT(amount, [0, 0.5, 1]) AS q FROM orders) AS t",
        {
            "bigquery": "SELECT q[OFFSET(1)] AS m FROM (SELECT APPROX_QUANTILES(amount, 2) AS q FROM orders) AS t",
            "snowflake": "SELECT q[1] AS m FROM (SELECT APPROX_QUANTILES(amount, 2) AS q FROM orders) AS t",
            "spark": "SELECT q[1] AS m FROM (SELECT percentile(amount, array(0, 0.5, 1)) AS q FROM orders) AS t",
            "postgres": "SELECT q[2] AS m FROM (SELECT PERCENTILE_CONT(ARRAY[0, 0.5, 1]) WITHIN GROUP (ORDER BY amount) AS q FROM orders) AS t",
            "trino": "SELECT element_at(q, 2) AS m FROM (SELECT approx_percentile(amount, ARRAY[0, 0.5, 1]) AS q FROM orders) AS t",
        },
    ),
    Construct("MODE", "SELECT MODE(country) AS m FROM users"),
    Construct("MODE WITHIN GROUP", "SELECT MODE() WITHIN GROUP (ORDER BY country) AS m FROM users"),
    Construct("FILTER", "SELECT COUNT(*) FILTER (WHERE amount > 9) AS n FROM orders"),
    Construct("WITH", "WITH o AS (SELECT user_id, amount FROM orders) SELECT SUM(amount) AS s FROM o"),
    Construct("JOIN USING", "SELECT country, COUNT(*) AS n FROM users JOIN orders USING (user_id) GROUP BY country"),
    Construct("LEFT JOIN ON", "SELECT COUNT(*) AS n FROM users u LEFT JOIN orders o ON u.user_id = o.user_id"),
    Construct("GROUP BY an ordinal", "SELECT country, COUNT(*) AS n FROM users GROUP BY 1"),
    Construct("GROUP BY ALL", "SELECT country, COUNT(*) AS n FROM users GROUP BY ALL"),
    Construct("SELECT DISTINCT", "SELECT DISTINCT country FROM users"),
    Construct(
        "HAVING, ORDER BY .. NULLS LAST, LIMIT, OFFSET",
        "SELECT country, COUNT(*) AS n FROM users GROUP BY country HAVING n > 3 ORDER BY n NULLS LAST LIMIT 3 OFFSET 1",
    ),
    Construct(
        "ORDER BY without NULLS",
        "SELECT country, COUNT(*) AS n FROM users GROUP BY country ORDER BY n",
        means=("SELECT country, COUNT(*) AS n FROM users GROUP BY country ORDER BY n NULLS FIRST",),
    ),
    Construct(
        "QUALIFY", "SELECT country, COUNT(*) AS n FROM users GROUP BY country QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC NULLS LAST) <= 3"
    ),
    Construct("shares of a total", "SELECT country, SUM(COUNT(*)) OVER () AS n FROM users GROUP BY country"),
    Construct(
        "the clause", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) SUM(amount, contribution_bounds_per_row => (0, 9)) AS s FROM orders"
    ),
    Construct("DP_INTERVAL_LOW", "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low FROM orders"),
    Construct(
        "quoted names and texts",
        "SELECT COUNT(*) AS n FROM users WHERE \"city\" = 'x'",
        {"bigquery": 'SELECT COUNT(*) AS n FROM users WHERE `city` = "x"', "spark": 'SELECT COUNT(*) AS n FROM users WHERE `city` = "x"'},
    ),
    Construct(
        "a star without a column",
        "SELECT SUM(age) AS s FROM (SELECT * EXCLUDE (city) FROM users) AS u",
        {
            "bigquery": "SELECT SUM(age) AS s FROM (SELECT * EXCEPT (city) FROM users) AS u",
            "postgres": "SELECT SUM(age) AS s FROM (SELECT u.* FROM users AS u) AS u",
            "spark": "SELECT SUM(age) AS s FROM (SELECT * EXCEPT (city) FROM users) AS u",
            "trino": "SELECT SUM(age) AS s FROM (SELECT u.* FROM users AS u) AS u",
        },
    ),
    Construct(
        "a named window",
        "SELECT country, SUM(COUNT(*)) OVER w AS n FROM users GROUP BY country WINDOW w AS (PARTITION BY country)",
    ),
    Construct(
        "FIRST_VALUE within a unit",
        "SELECT SUM(f) AS s FROM (SELECT FIRST_VALUE(amount) OVER (PARTITION BY user_id ORDER BY day NULLS LAST) AS f FROM orders) AS o",
        means=(
            "SELECT SUM(f) AS s FROM (SELECT FIRST_VALUE(amount) OVER (PARTITION BY user_id ORDER BY day NULLS LAST "
            "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS f FROM orders) AS o",
        ),
    ),
    Construct(
        "integers divided",
        "SELECT COUNT(*) AS n FROM users WHERE age / 2 = 1",
        means=("SELECT COUNT(*) AS n FROM users WHERE age // 2 = 1",),
    ),
    Construct(
        "a sum of integers divided",
        "SELECT SUM(age) / COUNT(*) AS n, SUM(CASE WHEN age > 9 THEN 1 ELSE 0 END) * 100 / COUNT(*) AS m FROM users",
        means=(
            "SELECT (SUM(age)) // (COUNT(*)) AS n, (SUM(CASE WHEN age > 9 THEN 1 ELSE 0 END) * 100) // (COUNT(*)) AS m FROM users",
            "SELECT SUM(age) / NULLIF(COUNT(*), 0) AS n, SUM(CASE WHEN age > 9 THEN 1 ELSE 0 END) * 100 / NULLIF(COUNT(*), 0) AS m FROM users",
        ),
    ),
    Construct(
        "a count divided by all counts",
        "SELECT country, COUNT(*) * 100 / SUM(COUNT(*)) OVER () AS n FROM users GROUP BY country",
        means=(
            "SELECT country, (COUNT(*) * 100) / (SUM(COUNT(*)) OVER ()) AS n FROM users GROUP BY country",
            "SELECT country, (COUNT(*) * 100) // (SUM(COUNT(*)) OVER ()) AS n FROM users GROUP BY country",
            "SELECT country, COUNT(*) * 100 / NULLIF(SUM(COUNT(*)) OVER (), 0) AS n FROM users GROUP BY country",
        ),
    ),
    Construct(
        "SAFE_DIVIDE",
        "SELECT (SUM(age)) / NULLIF(COUNT(*), 0) AS n FROM users",
        means=("SELECT ((SUM(age))) // (NULLIF(COUNT(*), 0)) AS n FROM users",),
        spelled={"bigquery": "SELECT SAFE_DIVIDE(SUM(age), COUNT(*)) AS n FROM users", "spark": "SELECT (SUM(age)) / COUNT(*) AS n FROM users"},
    ),
)
"""Whole statements."""

EXPRESSIONS = (
    Construct("comparisons, AND, OR, NOT", "amount > 1 AND NOT (amount <= 9 OR channel = 'x')"),
    Construct("BETWEEN, IN, IS NULL", "amount BETWEEN 1 AND 9 OR channel IN ('a', 'b') OR channel IS NULL"),
    Construct("IS [NOT] DISTINCT FROM", "channel IS DISTINCT FROM 'a'"),
    Construct("LIKE", "channel LIKE 'a%'"),
    Construct("ILIKE", "channel ILIKE 'a%'"),
    Construct(
        "LIKE ANY", "(channel LIKE 'a%' OR channel LIKE 'b%')", dict.fromkeys(("bigquery", "snowflake", "spark"), "channel LIKE ANY ('a%', 'b%')")
    ),
    Construct(
        "LIKE of a text that is no literal",
        "channel LIKE channel || '%'",
        means=("CASE WHEN NOT CONTAINS(channel || '%', '\\') THEN channel LIKE channel || '%' END",),
    ),
    Construct(
        "a regular expression within a text",
        "REGEXP_MATCHES(channel, 'a[0-9]+')",
        {
            "bigquery": "REGEXP_CONTAINS(channel, r'a\\d+')",
            "snowflake": "REGEXP_LIKE(channel, '[^x]*a[0-9]+')",
            "postgres": "channel ~ 'a\\d+'",
            "spark": "channel RLIKE 'a[0-9]+'",
            "trino": "REGEXP_LIKE(channel, 'a\\d+')",
        },
        means=("REGEXP_FULL_MATCH(channel, '[^x]*a[0-9]+')",),
    ),
    Construct("SIMILAR TO", "channel SIMILAR TO 'a_[bc]%'", means=("REGEXP_FULL_MATCH(channel, 'a[\\s\\S][bc][\\s\\S]*')",)),
    Construct(
        "REGEXP_EXTRACT",
        "REGEXP_EXTRACT(channel, 'a(b+)', 1)",
        {
            "bigquery": "REGEXP_EXTRACT(channel, r'a(b+)')",
            "snowflake": "REGEXP_SUBSTR(channel, 'a(b+)', 1, 1, 'e')",
            "postgres": "SUBSTRING(channel FROM 'a(b+)')",
        },
        means=("CASE WHEN channel ~ 'a(b+)' THEN REGEXP_EXTRACT(channel, 'a(b+)', 1) END",),
    ),
    Construct(
        "REGEXP_REPLACE of all matches",
        "REGEXP_REPLACE(channel, '(a) +', '\\1', 'g')",
        {
            "bigquery": "REGEXP_REPLACE(channel, r'(a) +', r'\\1')",
            "snowflake": "REGEXP_REPLACE(channel, '(a) +', '\\\\1')",
            "spark": "REGEXP_REPLACE(channel, '(a) +', '$1')",
            "trino": "REGEXP_REPLACE(channel, '(a) +', '$1')",
        },
    ),
    Construct(
        "a list of values",
        "channel IN ('a', 'b')",
        {"bigquery": "channel IN UNNEST(['a', 'b'])", "postgres": "channel = ANY(ARRAY['a', 'b'])"},
    ),
    Construct("CASE, COALESCE, NULLIF", "CASE WHEN amount > 1 THEN COALESCE(channel, 'x') ELSE NULLIF(channel, 'y') END"),
    Construct("IF", "IF(amount > 1, 1, 0)"),
    Construct(
        "GREATEST, LEAST",
        "GREATEST(amount, weight)",
        means=("CASE WHEN amount IS NULL OR weight IS NULL THEN NULL ELSE GREATEST(amount, weight) END",),
    ),
    Construct("x || y", "channel || 'x'"),
    Construct("CONCAT", "CONCAT(channel, 'x')", means=("channel || 'x'",)),
    Construct("LOWER, UPPER, LENGTH, REPLACE", "LENGTH(LOWER(REPLACE(UPPER(channel), 'A', 'b')))"),
    Construct("SUBSTR", "SUBSTR(channel, 1, 2)"),
    Construct("SUBSTR from place 0", "SUBSTR(channel, 0, 2)"),
    Construct("LEFT", "LEFT(channel, 2)"),
    Construct("LEFT of a negative length", "LEFT(channel, -2)"),
    Construct("TRIM", "TRIM(channel)"),
    Construct("TRIM of characters", "TRIM(channel, 'xy')", {"spark": "TRIM('xy', channel)", "trino": "TRIM(BOTH 'xy' FROM channel)"}),
    Construct("STRPOS", "STRPOS(channel, 'x')", {"snowflake": "POSITION('x', channel)", "spark": "LOCATE('x', channel)"}),
    Construct("STARTS_WITH", "STARTS_WITH(channel, 'x')", {"snowflake": "STARTSWITH(channel, 'x')", "spark": "STARTSWITH(channel, 'x')"}),
    Construct("ABS, SIGN, FLOOR, CEIL, SQRT, EXP, LN", "ABS(SIGN(FLOOR(CEIL(SQRT(EXP(LN(weight)))))))"),
    Construct("ROUND to digits", "ROUND(weight, 1)"),
    Construct("POWER, %", "POWER(weight, 2)"),
    Construct("LOG of one argument", "LOG(weight)", means=("LN(weight)",)),
    Construct("CAST of a fraction to an integer", "CAST(weight AS BIGINT)", means=("CAST(ROUND(weight) AS BIGINT)", "CAST(TRUNC(weight) AS BIGINT)")),
    Construct("CAST to a text", "CAST(amount AS VARCHAR)", {"bigquery": "CAST(amount AS STRING)", "spark": "CAST(amount AS STRING)"}),
    Construct("CAST to a date", "CAST(channel AS DATE)"),
    Construct("TRY_CAST", "TRY_CAST(channel AS BIGINT)", {"bigquery": "SAFE_CAST(channel AS INT64)"}),
    Construct("a literal date", "day >= DATE '2024-01-31'"),
    Construct(
        "a date and an INTERVAL",
        "day + INTERVAL '1' DAY",
        {"bigquery": "DATE_ADD(day, INTERVAL 1 DAY)"},
        means=("CAST(day + INTERVAL '1' DAY AS DATE)",),
    ),
    Construct("EXTRACT of year, month, day", "EXTRACT(YEAR FROM day) + EXTRACT(MONTH FROM day) + EXTRACT(DAY FROM day)"),
    Construct("EXTRACT of the week", "EXTRACT(WEEK FROM day)"),
    Construct(
        "EXTRACT of the day of the week",
        "EXTRACT(DOW FROM day)",
        {"bigquery": "EXTRACT(DAYOFWEEK FROM day)", "snowflake": "EXTRACT(DAYOFWEEK FROM day)", "spark": "EXTRACT(DAYOFWEEK FROM day)"},
    ),
    Construct("EXTRACT of seconds", "EXTRACT(SECOND FROM CAST(day AS TIMESTAMP))"),
    Construct("DATE_TRUNC", "DATE_TRUNC('month', day)", {"bigquery": "DATE_TRUNC(day, MONTH)"}, means=("CAST(DATE_TRUNC('month', day) AS DATE)",)),
    Construct(
        "DATE_DIFF of months",
        "DATE_DIFF('month', day, DATE '2024-01-31')",
        {
            "bigquery": "DATE_DIFF(DATE '2024-01-31', day, MONTH)",
            "snowflake": "DATEDIFF('month', day, DATE '2024-01-31')",
            "spark": "DATEDIFF(MONTH, day, DATE '2024-01-31')",
        },
    ),
    Construct("CURRENT_DATE", "day < CURRENT_DATE"),
    Construct("a literal timestamp", "CAST(day AS TIMESTAMP) >= TIMESTAMP '2024-03-01 10:00:00'"),
    Construct("a timestamp of a text or date", "CAST(day AS TIMESTAMP) >= CAST('2024-03-01' AS TIMESTAMP)"),
    Construct(
        "TIMESTAMP of a date",
        "CAST(day AS TIMESTAMP) >= CAST('2024-03-01' AS TIMESTAMP)",
        {
            "bigquery": "TIMESTAMP(day) >= TIMESTAMP('2024-03-01', 'UTC')",
            "snowflake": "day::TIMESTAMP_NTZ >= TO_TIMESTAMP('2024-03-01')",
            "postgres": "day::timestamp >= TIMESTAMP(0) '2024-03-01'",
            "spark": "TIMESTAMP(day) >= TO_TIMESTAMP('2024-03-01')",
            "trino": "CAST(day AS TIMESTAMP(6)) >= TIMESTAMP '2024-03-01'",
        },
    ),
    Construct(
        "DATETIME of a date",
        "CAST(day AS TIMESTAMP) > TIMESTAMP '2024-03-01 00:00:00'",
        {"bigquery": "DATETIME(day) > DATETIME(2024, 3, 1, 0, 0, 0)"},
    ),
    Construct(
        "a timestamp with a zone",
        "CAST(day AS TIMESTAMP) IS NULL",
        {
            "postgres": "day::timestamptz IS NULL",
            "bigquery": "DATETIME(day, 'Asia/Tokyo') IS NULL",
            "snowflake": "day::TIMESTAMP_TZ IS NULL",
            "spark": "FROM_UTC_TIMESTAMP(day, 'Asia/Tokyo') IS NULL",
            "trino": "CAST(day AS TIMESTAMP WITH TIME ZONE) IS NULL",
        },
    ),
    Construct(
        "a date of its parts",
        "day >= MAKE_DATE(2024, 3, 1)",
        {"bigquery": "day >= DATE(2024, 3, 1)", "snowflake": "day >= DATE_FROM_PARTS(2024, 3, 1)", "trino": "day >= FROM_ISO8601_DATE('2024-03-01')"},
    ),
    Construct("the date of a timestamp", "CAST(day AS DATE)", {"bigquery": "EXTRACT(DATE FROM day)"}),
    Construct("EXTRACT of the ISO week", "EXTRACT(WEEK FROM day)", {"bigquery": "EXTRACT(ISOWEEK FROM day)", "snowflake": "WEEKISO(day)"}),
    Construct("EXTRACT of a week of choice", "EXTRACT(WEEK FROM day)", {"bigquery": "EXTRACT(WEEK(MONDAY) FROM day)"}),
    Construct(
        "DATE_TRUNC to Monday",
        "DATE_TRUNC('week', day)",
        {"bigquery": "DATE_TRUNC(day, ISOWEEK)"},
        means=("CAST(DATE_TRUNC('week', day) AS DATE)",),
    ),
    Construct(
        "DATE_TRUNC to Sunday",
        "DATE_TRUNC('week', day + INTERVAL 1 DAY) - INTERVAL 1 DAY",
        {"bigquery": "DATE_TRUNC(day, WEEK)"},
        means=("CAST(DATE_TRUNC('week', day + INTERVAL 1 DAY) AS DATE) - INTERVAL 1 DAY",),
    ),
    Construct(
        "DATE_TRUNC abbreviated",
        "DATE_TRUNC('month', day)",
        {"bigquery": "DATETIME_TRUNC(day, MONTH)", "snowflake": "DATE_TRUNC('mm', day)", "spark": "TRUNC(day, 'MM')"},
        means=("CAST(DATE_TRUNC('month', day) AS DATE)",),
    ),
    Construct(
        "DATE_DIFF of days",
        "DATE_DIFF('day', DATE '2024-01-31', day)",
        {
            "bigquery": "DATE_DIFF(day, DATE '2024-01-31', DAY)",
            "snowflake": "DATEDIFF('day', DATE '2024-01-31', day)",
            "postgres": "day - DATE '2024-01-31'",
            "spark": "DATEDIFF(day, DATE '2024-01-31')",
        },
        means=("DATE_DIFF('microsecond', DATE '2024-01-31', day) // 86400000000", "day - DATE '2024-01-31'"),
    ),
    Construct(
        "DATE_DIFF of hours",
        "DATE_DIFF('microsecond', DATE '2024-01-31', day) // 3600000000",
        {
            "bigquery": "TIMESTAMP_DIFF(day, DATE '2024-01-31', HOUR)",
            "spark": "TIMESTAMPDIFF(HOUR, DATE '2024-01-31', day)",
            "trino": "DATE_DIFF('hour', DATE '2024-01-31', day)",
            "snowflake": "DATEDIFF('hour', DATE '2024-01-31', day)",
            "postgres": "AGE(day, DATE '2024-01-31') IS NULL",
        },
        means=("DATE_DIFF('hour', DATE '2024-01-31', day)",),
    ),
    Construct(
        "DATE_DIFF of weeks",
        "DATE_DIFF('day', DATE_TRUNC('week', DATE '2024-01-31'), DATE_TRUNC('week', day)) // 7",
        {
            "bigquery": "DATE_DIFF(day, DATE '2024-01-31', WEEK(MONDAY))",
            "snowflake": "DATEDIFF('week', DATE '2024-01-31', day)",
            "postgres": "AGE(day, DATE '2024-01-31') IS NULL",
            "spark": "DATEDIFF(WEEK, DATE '2024-01-31', day)",
            "trino": "DATE_DIFF('week', DATE '2024-01-31', day)",
        },
        means=("DATE_DIFF('microsecond', DATE '2024-01-31', day) // 604800000000",),
    ),
)
"""Expressions of a row, each asked for in `ROW`."""


def code_or_summary(sql: str, dialect: str = "duckdb") -> object:
    try:
        return summary(read(sql, schema(), dialect=dialect, now=NOW))
    except Refused as refused:
        return refused.code


def cell(one: Construct, dialect: str, shape: str) -> str:
    """What becomes of a construct in a dialect: `same`, `as X`, or the code of its refusal."""
    found = code_or_summary(shape.format(one.spelled.get(dialect, one.duckdb)), dialect)
    if isinstance(found, str):
        return f"`{found}`"
    if found == code_or_summary(shape.format(one.duckdb)):
        return "same"
    for other in one.means:
        if found == code_or_summary(shape.format(other)):
            return "as the dialect has it" if shape == "{}" else f"as `{other}`"
    raise AssertionError(f"{one.title} in {dialect} is read as something else: {found}")


def rows() -> Iterator[tuple[str, ...]]:
    for shape, constructs in (("{}", WHOLE), (ROW, EXPRESSIONS)):
        for one in constructs:
            yield (one.title, *(cell(one, dialect, shape) for dialect in OTHERS))


def page() -> str:
    """The page, written anew."""
    table = [f"| construct | {' | '.join(OTHERS)} |", "|---" * (len(OTHERS) + 1) + "|"]
    table += [f"| {' | '.join(part.replace('||', chr(92) + '|' + chr(92) + '|') for part in row)} |" for row in rows()]
    return HEAD + "\n".join(table) + "\n"


HEAD = """# Dialects

Generated by `make docs` from `tests/sql/conformance.py`. Each construct is written in the dialect's own spelling and held against what DuckDB's
spelling is read as: **same** means the same plan, **as ..** the plan of another DuckDB expression with the dialect's meaning, a code that it is
refused by name. What the table does not list is read as the dialect's parser (sqlglot) reads it and held against the same allow-lists.

A few things are DuckDB's in every dialect: division by zero, overflow and failed casts are NULL and no errors; AVG is a DOUBLE; DATE_TRUNC gives a
TIMESTAMP; names are compared without case, texts by bytes; timestamps have no zone and are UTC, as are the times of a session; a declared integer is
divided, and summed before it is divided, as PostgreSQL's and Trino's `integer` is. In regular expressions `\\d`, `\\w`, `\\s`, `\\b`, `[[:alpha:]]`
know ASCII alone, and `$` is the end of the text; a dot is a new line too in PostgreSQL alone. What engines read otherwise is refused:
back-references, look-around, repetitions of what may be empty, and which of several matches is taken where the dialect takes the longest.

"""

if __name__ == "__main__":
    PAGE.write_text(page())
