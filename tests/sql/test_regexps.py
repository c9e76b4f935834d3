"""Regular expressions: what is written out matches what was written; dialects' patterns mean what they mean there, or are refused with the reason."""

from __future__ import annotations

import datetime
from random import Random

import duckdb
import pytest
from conformance import ROW, code_or_summary
from sql_shop import schema

from dpquery.errors import Refused
from dpquery.plan.coerce import Mismatch
from dpquery.plan.patterns import MOST_PARTS, Flavour, parse, plain, shortest, sure, written
from dpquery.sql import read

TEXTS = ["", "a", "ab", "AB", "aab b", "b\na", "a.b", "é-ß", "x_1 9", "\t", "[a]", "a\\b", "aaaa", "ba" * 20]
PIECES = (
    "a",
    "b",
    ".",
    "\\d",
    "\\W",
    "\\s",
    "[ab]",
    "[^a\\]]",
    "[[:upper:]_-]",
    "\\.",
    "\\b",
    "^",
    "$",
    "é",
    "[\\s\\S]",
    "[\\w.]",
    "-",
    " ",
    "\\\\",
    "]",
)


def made(random: Random, depth: int = 2) -> str:
    """A pattern of pieces, groups, branches and repetitions."""
    found = ""
    for _ in range(random.randint(1, 4)):
        one = f"({random.choice(['', '?:'])}{made(random, depth - 1)})" if depth and random.random() < 0.3 else random.choice(PIECES)
        found += one + random.choice(["", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "+?", "??", "|"])
    return found


def test_what_is_written_out_matches_what_was_written() -> None:
    """Of made-up patterns those that are read are taken by the engine as they were written, with the same matches, groups included."""
    random, found = Random(7), set[tuple[str, str]]()
    while len(found) < 400:
        text = random.choice(["", "", "(?i)"]) + made(random)
        try:
            found.add((text, written(parse(text))))
        except Mismatch:
            continue
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t(s VARCHAR)")
        con.executemany("INSERT INTO t VALUES (?)", [[text] for text in TEXTS])
        for given, ours in found:
            answers = [
                con.execute("SELECT regexp_matches(s, $1), regexp_extract(s, $1), regexp_replace(s, $1, '<\\0>', 'g') FROM t", [one]).fetchall()
                for one in (given, ours)
            ]
            assert answers[0] == answers[1], given


POSTGRES, TRINO = Flavour(newline=True, longest=True, boundary="y", end="Z"), Flavour(named=False)
SIMILAR = Flavour(newline=True, similar=True)


@pytest.mark.parametrize(
    ("text", "flavour", "ours"),
    [
        ("\\ya.\\Z", POSTGRES, "\\ba[\\s\\S]$"),
        ("a%_.^$", SIMILAR, "a[\\s\\S]*[\\s\\S]\\.\\^\\$"),
        ("(a|b)\\%{2}\\t[^%\\-]", SIMILAR, "(a|b)\\%{2}\\t[^\\%\\-]"),
        ("(?i)\\Aa+?", TRINO, "(?i)^a+?"),
    ],
)
def test_flavours_are_written_out_in_one(text: str, flavour: Flavour, ours: str) -> None:
    assert written(parse(text, flavour)) == ours
    assert written(parse(ours)) == ours


def test_patterns_are_measured() -> None:
    assert shortest(parse("a(b|cd)?e{3,}$").body) == 4
    assert sure(parse("(a)(b)?((c)|d)(e)+")) == {0, 1, 3, 5}
    assert len(written(parse(f"a{{{MOST_PARTS - 1}}}"))) < 9
    with pytest.raises(Mismatch, match="more than 128 characters to match"):
        parse(f"(a|b){{{MOST_PARTS // 4 + 1}}}")
    one_way = ["@(.*)$", "\\d+-\\d+", "a?b?c", "(x)[^y]*y", "(?i)a+[0-9]"]
    assert [text for text in one_way if not plain(parse(text))] == []
    several = ["a|ab", "a*a", "(ab)?", "a+?", "a?b?a", ".*@", "(?i)a+B*A", "[^x]+y"]
    assert [text for text in several if plain(parse(text))] == []


SAME = [
    ("bigquery", "REGEXP_CONTAINS(channel, r'^a\\d')", "channel ~ '^a[0-9]'"),
    ("bigquery", "REGEXP_CONTAINS(channel, '^a\\\\d')", "channel ~ '^a\\d'"),
    ("bigquery", "REGEXP_EXTRACT(channel, r'a(b)')", "CASE WHEN channel ~ 'a(b)' THEN regexp_extract(channel, 'a(b)', 1) END"),
    ("bigquery", "REGEXP_SUBSTR(channel, r'a')", "CASE WHEN channel ~ 'a' THEN regexp_extract(channel, 'a') END"),
    ("bigquery", "REGEXP_REPLACE(channel, r'a(b)', '\\\\1')", "regexp_replace(channel, 'a(b)', '\\1', 'g')"),
    ("snowflake", "REGEXP_LIKE(channel, 'a.*', 'i')", "channel ~ '(?i)^(?:a.*)$'"),
    ("snowflake", "channel RLIKE 'a'", "regexp_full_match(channel, 'a')"),
    ("snowflake", "REGEXP_SUBSTR(channel, 'a(b)', 1, 1, 'e')", "CASE WHEN channel ~ 'a(b)' THEN regexp_extract(channel, 'a(b)', 1) END"),
    ("snowflake", "REGEXP_REPLACE(channel, '[0-9]')", "regexp_replace(channel, '\\d', '', 'g')"),
    ("postgres", "channel ~* 'a.'", "channel ~ '(?i)a[\\s\\S]'"),
    ("postgres", "channel !~ '\\ya'", "NOT channel ~ '\\ba'"),
    ("postgres", "channel SIMILAR TO 'a_(b|c)%'", "regexp_full_match(channel, 'a[\\s\\S](b|c)[\\s\\S]*')"),
    ("postgres", "SUBSTRING(channel FROM '@(.*)$')", "CASE WHEN channel ~ '@([\\s\\S]*)$' THEN regexp_extract(channel, '@([\\s\\S]*)$', 1) END"),
    ("postgres", "SUBSTRING(channel FROM 2)", "SUBSTRING(channel, 2)"),
    ("postgres", "REGEXP_REPLACE(channel, 'a', '[\\&]')", "regexp_replace(channel, 'a', '[\\0]')"),
    ("postgres", "REGEXP_REPLACE(channel, 'a', '\\\\&\\\\0')", "regexp_replace(channel, 'a', '\\\\&\\\\0')"),
    ("postgres", "REGEXP_REPLACE(channel, 'a', 'b', 1, 0)", "regexp_replace(channel, 'a', 'b', 'g')"),
    ("spark", "DAYNAME(day) = 'Fri'", "left(dayname(day), 3) = 'Fri'"),
    ("spark", "channel RLIKE 'a'", "channel ~ 'a'"),
    ("spark", "REGEXP_EXTRACT(channel, 'a(b)')", "regexp_extract(channel, 'a(b)', 1)"),
    ("spark", "REGEXP_REPLACE(channel, '(a)', '$1\\\\$')", "regexp_replace(channel, '(a)', '\\1$', 'g')"),
    ("trino", "REGEXP_LIKE(channel, 'a|b')", "channel ~ 'a|b'"),
    ("trino", "REGEXP_EXTRACT(channel, 'a|b')", "CASE WHEN channel ~ 'a|b' THEN regexp_extract(channel, 'a|b') END"),
    ("postgres", "channel LIKE channel || '%'", "CASE WHEN NOT contains(channel || '%', '\\') THEN channel LIKE channel || '%' END"),
    ("trino", "channel LIKE channel || '%'", "channel LIKE channel || '%'"),
    ("duckdb", "CAST(day AS TIMESTAMP) AT TIME ZONE 'UTC' > '2024-01-01'", "CAST(day AS TIMESTAMP) > '2024-01-01'"),
]


@pytest.mark.parametrize(("dialect", "theirs", "ours"), SAME)
def test_dialects_mean_the_same_by(dialect: str, theirs: str, ours: str) -> None:
    found, wanted = code_or_summary(ROW.format(theirs), dialect), code_or_summary(ROW.format(ours))
    assert found == wanted
    assert not isinstance(found, str)


SPACES, DEEP = "channel ~ '" + "\\s" * 100 + "'", f"regexp_full_match(channel, '{'(' * 8}a{')' * 8}')"


@pytest.mark.parametrize(
    "condition",
    [f"channel ~ '{'.' * 127}'", f"regexp_matches(channel, '{'.' * 100}', 's')", SPACES, DEEP],
)
def test_patterns_up_to_the_limits_are_read_however_long_they_are_written_out(condition: str) -> None:
    assert not isinstance(code_or_summary(ROW.format(condition)), str)


REFUSED = [
    ("bigquery", "REGEXP_EXTRACT(channel, r'(a)(b)')", "BAD_LITERAL", "at most one group"),
    ("bigquery", "REGEXP_EXTRACT(channel, r'a(b)?')", "DIALECT_DIFFERS", "may have no part"),
    ("bigquery", "REGEXP_EXTRACT(channel, r'a', 2)", "LITERAL_NEEDED", "from the first character on"),
    ("bigquery", "REGEXP_REPLACE(channel, r'a*', 'b')", "DIALECT_DIFFERS", "where there is nothing"),
    ("snowflake", "REGEXP_SUBSTR(channel, 'a|ab')", "DIALECT_DIFFERS", "several ways to match"),
    ("snowflake", "REGEXP_REPLACE(channel, 'a', 'b', 1, 2)", "LITERAL_NEEDED", "all matches"),
    ("snowflake", "channel SIMILAR TO 'a'", "DIALECT_DIFFERS", "SIMILAR TO"),
    ("postgres", "channel ~ '\\bxyz'", "BAD_LITERAL", "the escape \\b"),
    ("postgres", "SUBSTRING(channel FROM 'a.*b')", "DIALECT_DIFFERS", "several ways to match"),
    ("postgres", "REGEXP_REPLACE(channel, 'a', '\\0')", "BAD_LITERAL", "backslash"),
    ("spark", "channel RLIKE '[[:alpha:]]'", "BAD_LITERAL", "[:alpha:]"),
    ("postgres", "REGEXP_REPLACE(channel, 'a', '\\q')", "BAD_LITERAL", "backslash"),
    ("postgres", "channel ~ '\\Y'", "BAD_LITERAL", "several bytes"),
    ("duckdb", "regexp_replace(channel, '\\B', 'x') <> ''", "BAD_LITERAL", "several bytes"),
    ("postgres", "channel SIMILAR TO 's\\d'", "BAD_LITERAL", "the escape \\d"),
    ("postgres", "channel SIMILAR TO '[\\w]'", "BAD_LITERAL", "the escape \\w"),
    ("trino", "REGEXP_REPLACE(channel, 'a', '$x')", "BAD_LITERAL", "'$' alone"),
    ("trino", "REGEXP_LIKE(channel, '(?=a)b')", "BAD_LITERAL", "look-ahead"),
    ("duckdb", "CAST(day AS TIMESTAMP) AT TIME ZONE 'Asia/Tokyo' IS NULL", "TIME_ZONE", "one in another zone"),
]


@pytest.mark.parametrize(("dialect", "text", "code", "says"), REFUSED)
def test_what_a_dialect_means_otherwise_is_refused(dialect: str, text: str, code: str, says: str) -> None:
    with pytest.raises(Refused) as refused:
        read(ROW.format(text), schema(), dialect=dialect, now=datetime.datetime(2024, 5, 6, tzinfo=datetime.UTC))
    assert refused.value.code == code
    assert says in refused.value.message
    assert refused.value.position is not None
