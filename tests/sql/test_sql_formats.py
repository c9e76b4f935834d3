"""Dates as text: what a format means in each dialect, the keys that it lists, and formats that are refused."""

from __future__ import annotations

import duckdb
import pytest
from sql_shop import ask

from dpquery.errors import Refused

SPELLED = [
    ("duckdb", "strftime(day, '%Y-%m')"),
    ("duckdb", "strftime('%Y-%m', day)"),
    ("postgres", "to_char(day, 'YYYY-MM')"),
    ("snowflake", "to_char(day, 'YYYY-MM')"),
    ("bigquery", "FORMAT_DATE('%Y-%m', day)"),
    ("spark", "date_format(day, 'yyyy-MM')"),
    ("trino", "date_format(day, '%Y-%m')"),
    ("trino", "format_datetime(day, 'yyyy-MM')"),
]
REFUSED = [
    ("duckdb", "strftime(day, '%c')", "BAD_LITERAL"),
    ("duckdb", "strftime(day, '%Y%')", "BAD_LITERAL"),
    ("duckdb", "strftime(day, '')", "BAD_LITERAL"),
    ("duckdb", "strftime(day, '" + "%Y-" * 9 + "')", "BAD_LITERAL"),
    ("duckdb", "strftime(amount, '%Y')", "TYPE_MISMATCH"),
    ("postgres", "to_char(day, 'Month')", "UNKNOWN_FUNCTION"),
    ("postgres", "to_char(day, 'YYYY-Q')", "UNKNOWN_FUNCTION"),
    ("snowflake", "to_char(day, 'YYYY-MON')", "UNKNOWN_FUNCTION"),
    ("spark", "date_format(day, 'yyyy-QQ')", "UNKNOWN_FUNCTION"),
    ("bigquery", "FORMAT_TIMESTAMP('%Y', CAST(day AS TIMESTAMP), 'America/New_York')", "TIME_ZONE"),
    ("trino", "date_format(day, '%M')", "UNKNOWN_FUNCTION"),
    ("trino", "format_datetime(day, 'YYYY-MM')", "UNKNOWN_FUNCTION"),
    ("trino", "format_datetime(day, 'yyyy-MM''')", "UNKNOWN_FUNCTION"),
    ("trino", "format_datetime(day, '-')", "BAD_LITERAL"),
    ("duckdb", "format_datetime(day, 'yyyy-MM')", "UNKNOWN_FUNCTION"),
]
STATEMENT = "SELECT {} AS m, COUNT(*) AS n FROM orders WHERE day BETWEEN DATE '2024-01-30' AND DATE '2024-03-05' GROUP BY 1"


@pytest.mark.parametrize(("dialect", "call"), SPELLED)
def test_every_dialect_means_the_same(dialect: str, call: str) -> None:
    """The same key, listed by the days between the bounds."""
    draft, same = (ask(STATEMENT.format(text), dialect=d).blocks[0].draft for d, text in ((dialect, call), SPELLED[0]))
    assert draft.keys == same.keys
    assert [len(source.literals) for source in draft.sources] == [36]


@pytest.mark.parametrize(("dialect", "call", "code"), REFUSED)
def test_what_means_something_else_is_refused(dialect: str, call: str, code: str) -> None:
    with pytest.raises(Refused) as refused:
        ask(STATEMENT.format(call), dialect=dialect)
    assert refused.value.code == code
    assert refused.value.instead


def test_the_letters_of_trino_are_the_pieces_of_duckdb() -> None:
    """Text in quotes stays as it is; each letter is the piece that its documentation says."""
    ours = ask(STATEMENT.format("strftime(day, '%A, %-d %b %G-W%V-%u of 100%% %Y')"))
    theirs = ask(STATEMENT.format("format_datetime(day, 'EEEE, d MMM xxxx-''W''ww-e ''of 100%'' yyyy')"), dialect="trino")
    assert theirs.blocks[0].draft.keys == ours.blocks[0].draft.keys


def test_without_bounds_no_list_is_made() -> None:
    assert ask("SELECT strftime(day, '%Y-%m') AS m, COUNT(*) AS n FROM orders GROUP BY 1").blocks[0].draft.sources == ()


def test_the_parts_are_what_plain_sql_says() -> None:
    """The forms themselves, over days around the ends of years."""
    parts = {"%Y": ("year", 4), "%G": ("isoyear", 4), "%m": ("month", 2), "%V": ("week", 2), "%d": ("day", 2), "%j": ("doy", 3), "%u": ("isodow", 1)}
    ours = ", ".join(f"right(repeat('0', {width - 1}) || date_part('{part}', d), {width})" for part, width in parts.values())
    theirs = ", ".join(f"strftime(d, '{code}')" for code in parts)
    names = "monthname(d), left(monthname(d), 3), dayname(d), left(dayname(d), 3)"
    days = "SELECT (DATE '0999-12-20' + (i * 365 + i % 40)::INT)::DATE AS d FROM range(1100) t(i)"
    con = duckdb.connect()
    named = ", ".join(f"strftime(d, '%{code}')" for code in "BbAa")
    assert con.sql(f"SELECT {ours}, {names} FROM ({days})").fetchall() == con.sql(f"SELECT {theirs}, {named} FROM ({days})").fetchall()
