"""Expressions on ordinary values: read, lowered and run, they give what plain DuckDB gives, of the type the plan says."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from scalars import TYPES, lowered, scalar, table

from dpquery.backends.scalar import sql
from dpquery.backends.values import type_name

ROWS = [
    "7, 3, 2.5e0, 4e0, 19.99, 1.2345, 12, 'food', 'fo', '2024-02-29', "
    "'2023-12-31', '2024-02-29 13:45:59.5', '2020-01-01 00:00:00', TRUE, FALSE, uuid(1)",
    "-7, 3, -2.5e0, 0.5e0, -0.05, -2.5000, -12, 'Toys ', 'oy', '2000-01-01', "
    "'2024-03-01', '1999-12-31 23:59:59', '2024-02-29 13:45:59', FALSE, NULL, uuid(2)",
    "25, -4, 1e9, 3e0, 500.00, 0.5000, 5, ' a%b_c', 'b', '1970-01-01', "
    "'1970-01-01', '1970-01-01 00:00:00', '1970-01-02 00:00:00', NULL, TRUE, uuid(3)",
    "100, 10, 0.285e0, 7e0, 0.01, 3.3333, 0, 'é🦆ß', '🦆', '2021-07-15', "
    "'2021-07-16', '2021-07-15 12:00:00', '2021-07-15 12:00:01', TRUE, TRUE, uuid(1)",
    "NULL, 1, NULL, 1e0, NULL, 1.0000, NULL, NULL, 'x', NULL, '2024-01-01', NULL, '2024-01-01 00:00:00', NULL, NULL, NULL",
]

SAME = r"""
i + j ; i - j ; i * j ; i + 1 ; i * 1.5 ; i + x ; p + q ; p - q ; p * q ; p * i ; p + i ; x + y ; x - y ; x * y ; -i ; -x ; -p ; i / j ; p / j
x / y ; i // j ; i // 3 ; i % j ; i % 7 ; x % y ; p % 7 ; mod(i, 4) ; (i + j) * 2 - i ; 2 * 3 + i ; i - (j - i) ; abs(i) ; abs(x) ; abs(p)
sign(i) ; sign(x) ; sign(p) ; floor(x) ; floor(p) ; ceil(x) ; ceil(p) ; ceiling(x) ; floor(i / 10) ; round(x) ; round(x, 1) ; round(p)
round(p, 1) ; round(p, 5) ; round(p, -1) ; round(i) ; round(i, -1) ; round(i, 2) ; round(x, -1) ; trunc(x) ; trunc(x, 1) ; trunc(p) ; trunc(p, 1)
trunc(p, -1) ; trunc(i) ; trunc(i, -1) ; sqrt(abs(x)) ; exp(y) ; ln(y) ; log10(y) ; log2(y) ; log(y) ; log(2, y) ; log(3, y) ; log(10, y)
power(y, 2) ; power(y, x / 1e9) ; y ** 3 ; y ^ 2 ; pow(i, 2) ; i = j ; i <> j ; i < j ; i <= j ; i > j ; i >= j ; i = 7 ; x > 2 ; x = 2.5
p = 19.99 ; p > 19.985 ; i > 6.5 ; x > i ; p > i ; p < x ; s = 'food' ; s < t ; d = e ; d > '2020-01-01' ; ts > '2024-01-01' ; ts > d ; d = ts
ts >= DATE '2024-01-01' ; f = g ; f = TRUE ; f = 1 ; u = '00000000-0000-0000-0000-000000000001' ; i IS DISTINCT FROM j ; i IS NOT DISTINCT FROM 7
s IS DISTINCT FROM NULL ; x IS NULL ; x IS NOT NULL ; f IS TRUE ; f IS NOT TRUE ; f IS FALSE ; f IS UNKNOWN ; i BETWEEN 3 AND 30
i NOT BETWEEN 3 AND 30 ; x BETWEEN i AND y ; d BETWEEN '2000-01-01' AND '2022-01-01' ; i IN (7, 25) ; i NOT IN (7, 25) ; i IN (7, NULL)
i NOT IN (7, NULL) ; p IN (19.99, 500) ; s IN ('food', 'x') ; d IN ('2024-02-29') ; x IN (2.5, 1e9) ; f AND g ; f OR g ; NOT f ; f AND NULL
f OR NULL ; NULL AND g ; i > 3 AND x > 0 OR s = 'food' ; NOT (i > 3 OR f) ; TRUE ; NULL IS NULL
CASE WHEN i > 0 THEN 'a' WHEN x < 0 THEN 'b' ELSE s END ; CASE i WHEN 7 THEN 1 WHEN 25 THEN 2 END ; CASE WHEN f THEN 1 ELSE 1.5 END
CASE WHEN f THEN i ELSE x END ; if(f, i, j) ; coalesce(i, j) ; coalesce(i, 0) ; coalesce(x, i, 0) ; ifnull(s, 'none') ; nullif(i, 7)
nullif(i, j) ; nullif(s, 'food') ; coalesce(p, i) ; greatest(i, j) ; least(i, j) ; greatest(i, 8, NULL) ; least(x, y) ; greatest(s, t)
least(d, e) ; greatest(d, ts) ; CAST(i AS DOUBLE) ; CAST(i AS VARCHAR) ; CAST(x AS BIGINT) ; CAST(p AS BIGINT) ; CAST(p AS DOUBLE)
CAST(p AS DECIMAL(38, 1)) ; CAST(f AS BIGINT) ; i::BOOLEAN ; CAST(d AS TIMESTAMP) ; CAST(ts AS DATE) ; CAST(d AS VARCHAR) ; CAST(ts AS VARCHAR)
CAST(u AS VARCHAR) ; TRY_CAST(s AS BIGINT) ; TRY_CAST(s AS DATE) ; x::VARCHAR ; TRY_CAST('12' AS BIGINT) ; CAST(x AS DECIMAL(38, 3))
CAST(i AS DECIMAL(38, 2)) ; TRY_CAST('nope' AS BIGINT) ; lower(s) ; upper(s) ; trim(s) ; ltrim(s) ; rtrim(s) ; length(s) ; len(s) ; left(s, 2)
right(s, 2) ; left(s, -1) ; right(s, -1) ; left(s, 0) ; substring(s, 2) ; substring(s, 2, 2) ; substr(s, -2) ; substring(s, -3, 2)
substring(s, 0, 2) ; substring(s, 3, -2) ; s || t ; s || '-' || t || '!' ; concat(s, t) ; concat(s, '-', t, 1, NULL) ; s || i ; concat(s)
replace(s, 'o', '00') ; replace(s, '', 'x') ; replace(s, 'oo', '') ; starts_with(s, 'fo') ; prefix(s, 'To') ; ends_with(s, 'd') ; suffix(s, ' ')
contains(s, 'o') ; strpos(s, 'o') ; position('oo' IN s) ; instr(s, 'z') ; contains(s, '') ; s LIKE 'f%' ; s LIKE '%o%' ; s NOT LIKE '_oo_'
s LIKE t || '%' ; s NOT LIKE t ; s ILIKE t ; s LIKE '%' || t || '%' ; s ~ '^f' ; s !~ 'o+' ; s SIMILAR TO '[a-z]+' ; s NOT SIMILAR TO 'f|.*'
regexp_matches(s, 'T.*\s$') ; regexp_matches(s, '^t', 'i') ; regexp_matches(s, '(?i)OO?(d|y)') ; regexp_full_match(s, '\w{2,4}')
s ~ '[^x]🦆' ; regexp_extract(s, '[a-z]+') ; regexp_extract(s, '(f)(o+)', 2) ; regexp_extract(s, 'z') ; regexp_extract(s, 'O+', 0, 'i')
regexp_replace(s, 'o', '0') ; regexp_replace(s, 'o', '0', 'g') ; regexp_replace(s, '(.)(.)', '\2\1', 'g') ; regexp_replace(s, 'o*', '-', 'g')
regexp_replace(s, '[^[:alpha:]]', '')
s ILIKE 't%' ; s NOT ILIKE 'T%' ; s LIKE '%$%%' ESCAPE '$' ; s LIKE '%a$_%' ESCAPE '$' ; s LIKE '%🦆%' ; s LIKE '' ; extract(year FROM d)
extract(month FROM ts) ; date_part('day', d) ; year(d) ; quarter(d) ; month(d) ; week(d) ; day(d) ; dayofmonth(d) ; dayofyear(d) ; dayofweek(d)
isodow(d) ; isoyear(d) ; hour(ts) ; minute(ts) ; second(ts) ; hour(d) ; epoch(ts) ; extract(epoch FROM d) ; extract(dow FROM ts)
extract(doy FROM ts) ; weekofyear(d) ; date_trunc('month', d) ; date_trunc('week', d) ; date_trunc('hour', ts) ; date_trunc('quarter', ts)
date_trunc('year', ts) ; date_trunc('day', ts) ; date_trunc('minute', d) ; d + INTERVAL 1 MONTH ; d - INTERVAL 1 DAY ; ts + INTERVAL '3 hours'
ts - INTERVAL '1 month 3 days' ; INTERVAL 1 YEAR + d ; d + INTERVAL 2 WEEK ; d + INTERVAL '-3' DAY ; d + 3 ; d - 3 ; 3 + d ; d - e
date_diff('day', d, e) ; date_diff('month', d, e) ; date_diff('hour', ts, tu) ; date_diff('year', d, ts) ; datediff('week', d, e)
date_diff('microsecond', ts, tu) ; date_diff('millisecond', ts, tu) ; date_diff('quarter', d, e) ; last_day(d) ; last_day(ts) ; dayname(d)
monthname(ts) ; d + INTERVAL 1 QUARTER ; d > DATE '2024-02-29' - INTERVAL 1 DAY ; (d - INTERVAL 1 DAY)::DATE ; date_trunc('month', d)::DATE = d
year(d) * 100 + month(d) ; 100 / (i - 19) ; length(s) + i
"""

EXPRESSIONS = [text.strip() for line in SAME.strip().splitlines() for text in line.split(" ; ")]


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute("CREATE MACRO uuid(n) AS ('00000000-0000-0000-0000-00000000000' || n)::UUID")
        table(con, "ordinary", list(TYPES), ROWS)
        yield con


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_as_duckdb(con: duckdb.DuckDBPyConnection, text: str) -> None:
    ours = con.execute(f"SELECT {lowered(text)}, typeof({lowered(text)}) FROM ordinary").fetchall()
    theirs = con.execute(f"SELECT {text} FROM ordinary").fetchall()
    assert [row[0] for row in ours] == [row[0] for row in theirs]
    assert {row[1] for row in ours} == {type_name(scalar(text).type)}


DIFFERENT = {
    "100 / (i - 7)": "CASE WHEN i <> 7 THEN 100 / (i - 7) END",
    "x / (i - 7)": "CASE WHEN i <> 7 THEN x / (i - 7) END",
    "i // (j - 3)": "CASE WHEN j <> 3 THEN i // (j - 3) END",
    "i % (j - 3)": "CASE WHEN j <> 3 THEN i % (j - 3) END",
    "sqrt(x)": "CASE WHEN x >= 0 THEN sqrt(x) END",
    "ln(x)": "CASE WHEN x > 0 THEN ln(x) END",
    "power(x, 0.5)": "CASE WHEN x >= 0 THEN power(x, 0.5) END",
    "power(z, -1)": "CASE WHEN z <> 0 THEN power(z, -1) END",
    "p % q": "(CAST(p AS DECIMAL(38, 4)) % q)",
    "greatest(p, q)": "CASE WHEN p IS NULL OR q > p THEN q ELSE CAST(p AS DECIMAL(38, 4)) END",
    "floor(i)": "i",
    "d + i": "d + CAST(i AS INTEGER)",
    "d - i": "d - CAST(i AS INTEGER)",
    "CAST(s AS BIGINT)": "TRY_CAST(s AS BIGINT)",
    "CAST(i AS SMALLINT)": "i",
    "CAST(p AS DECIMAL(4, 1))": "CAST(p AS DECIMAL(38, 1))",
    "extract(doy FROM d)": "dayofyear(d)",
    "9223372036854775807 + i": "CASE WHEN i <= 0 THEN 9223372036854775807 + i END",
    "i * 9223372036854775807": "CASE WHEN i IN (0, 1, -1) THEN i * 9223372036854775807 END",
    "CURRENT_DATE - 1": "DATE '2024-02-28'",
    "now()": "TIMESTAMP '2024-02-29 23:59:59.123456'",
    "iif(f, 1, 2)": "CASE WHEN f THEN 1 ELSE 2 END",
    "nvl(i, j)": "coalesce(i, j)",
}


@pytest.mark.parametrize("text", DIFFERENT)
def test_where_it_differs_from_duckdb(con: duckdb.DuckDBPyConnection, text: str) -> None:
    ours = con.execute(f"SELECT {lowered(text)}, typeof({lowered(text)}) FROM ordinary").fetchall()
    theirs = con.execute(f"SELECT {DIFFERENT[text]} FROM ordinary").fetchall()
    assert [row[0] for row in ours] == [row[0] for row in theirs]
    assert {row[1] for row in ours} == {type_name(scalar(text).type)}


@pytest.mark.parametrize(
    ("dialect", "text", "same"),
    [
        ("postgres", "i / j", "i // j"),
        ("bigquery", "SAFE_DIVIDE(i, j)", "i / j"),
        ("bigquery", "SAFE_CAST(s AS INT64)", "TRY_CAST(s AS BIGINT)"),
        ("bigquery", "CONCAT(s, t, NULL)", "s || t || NULL"),
        ("bigquery", "GREATEST(i, j)", "CASE WHEN i IS NULL OR j IS NULL THEN NULL ELSE greatest(i, j) END"),
        ("bigquery", "DATE_SUB(d, INTERVAL 3 DAY)", "d - INTERVAL 3 DAY"),
        ("bigquery", "LOG(y)", "ln(y)"),
        ("bigquery", "DATE_DIFF(d, e, MONTH)", "date_diff('month', e, d)"),
        ("snowflake", "DATEADD(day, 3, d)", "d + INTERVAL 3 DAY"),
        ("snowflake", "DATE_TRUNC('month', d)", "date_trunc('month', d)::DATE"),
        ("snowflake", "IFF(f, i, j)", "CASE WHEN f THEN i ELSE j END"),
        ("spark", "DATEDIFF(d, e)", "date_diff('day', e, d)"),
        ("spark", "i div j", "i // j"),
    ],
)
def test_other_dialects(con: duckdb.DuckDBPyConnection, dialect: str, text: str, same: str) -> None:
    names = dict(enumerate(TYPES))
    ours = con.execute(f"SELECT {sql(scalar(text, dialect), names)} FROM ordinary").fetchall()
    assert ours == con.execute(f"SELECT {same} FROM ordinary").fetchall()
