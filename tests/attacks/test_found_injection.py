"""What the parser keeps as bare text in a node is written out as it stands: it must not be able to end the expression it stands in.

`CAST(country AS NVARCHAR("10))) || (SELECT string_agg(age, ',') FROM data.main.people) .."))` was read as a cast of a public column, and written out
into the statement that makes the public table, in the engine that holds the private ones: every age came back in the list of keys, without noise.
"""

from __future__ import annotations

import re
from datetime import datetime
from itertools import product

import pytest
from attack_lab import code, rows
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from dpquery.engine.session import Session
from dpquery.errors import Refused
from dpquery.plan.rel import Lookup, Public, walk
from dpquery.plan.scalar import Column
from dpquery.sql import read
from dpquery.sql.public import written
from dpquery.values.types import STRING

AGES = "10))) || (SELECT STRING_AGG(AGE::VARCHAR) FROM DATA.MAIN.PEOPLE)::VARCHAR || TRY(CAST(q.c0 AS VARCHAR(5"
TYPES = ("NVARCHAR", "NCHAR", "INT", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "BOOLEAN", "UUID", "DECIMAL", "NUMERIC", "REAL")
PLACES = (
    "SELECT h, count(*) FROM people JOIN (SELECT country, {} AS h FROM places) m USING (country) GROUP BY h",
    "SELECT count(*) FROM people JOIN (SELECT country FROM places WHERE {} IS NULL) m USING (country)",
    "SELECT count(*) FROM people p JOIN (SELECT p.country FROM places p JOIN places r ON {} IS NULL) m USING (country)",
    "SELECT count(*) FROM people WHERE {} IS NULL",
    "SELECT {} AS k, count(*) FROM people GROUP BY k",
    "SELECT country, {}, count(*) FROM people GROUP BY country",
    "SELECT country, count(*) FROM people GROUP BY country HAVING {} IS NULL",
    "SELECT country, count(*) FROM people GROUP BY country ORDER BY {}",
    "SELECT country, sum(count(*)) OVER (PARTITION BY {}) FROM people GROUP BY country",
)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("place", PLACES)
def test_the_size_of_a_type_is_a_number(place: str, kind: str, lab: Session) -> None:
    for size in (f'"{AGES}"', "(SELECT 1)", "x", "'x'", "f(1)", "1, 2, 3", '1 "x) y"'):
        column = "p.country" if "places p" in place else "country"
        found = code(lab, place.format(f"CAST({column} AS {kind}({size}))"))
        assert found not in ("answered", "ENGINE_FAILED", "INTERNAL", "UNANSWERABLE"), (found, size)


INSIDE = (
    "extract(\"day FROM t.k0) + length(current_setting('memory_limit')) + extract(day\" FROM born)",
    "date_part('day FROM t.k0) + (SELECT count(*) FROM duckdb_settings()) + extract(day', born)",
    "date_trunc('day'', t.k0) || current_setting(''memory_limit'') || date_trunc(''day', born)",
    'INTERVAL 1 "day + random()" + born',
    "date_diff('day'', t.k0, t.k0) + random() + date_diff(''day', born, born)",
)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "snowflake", "bigquery", "spark"])
@pytest.mark.parametrize("expression", INSIDE)
def test_parts_and_units_above_the_noise_are_words(expression: str, dialect: str, lab: Session) -> None:
    """In PostgreSQL's dialect the text of date_part() became SQL over the noisy table, with the engine's settings and catalogue in reach."""
    found = code(lab, f"SELECT born, {expression}, count(*) FROM people GROUP BY born", dialect=dialect)
    assert found not in ("ENGINE_FAILED", "INTERNAL", "UNANSWERABLE")
    if found == "answered":  # as the name of a part that no date has
        assert {row[1] for row in rows(lab, f"SELECT born, {expression} AS x, count(*) FROM people GROUP BY born", dialect=dialect)} == {None}


ODD = (
    exp.cast(exp.column("c0", table="q"), exp.DataType(this=exp.DType.INT, expressions=[exp.DataTypeParam(this=exp.var("1) x"))])),
    exp.Extract(this=exp.var("day FROM x) + (y"), expression=exp.column("c0", table="q")),
    exp.Anonymous(this="f(x), g", expressions=[]),
    exp.column("age) FROM people --", table="q"),
    exp.column("c0", table="people"),
    exp.Add(this=exp.column("c0", table="q"), expression=exp.Subquery(this=exp.select("1"))),
    exp.Exists(this=exp.select("1").from_("people")),
    exp.Literal(this="1 + random()", is_string=False),
)


@pytest.mark.parametrize("node", ODD, ids=str)
def test_nothing_but_words_numbers_and_our_own_names_is_written_out(node: exp.Expr) -> None:
    with pytest.raises(Refused):
        written(node)


def test_public_text_that_reads_a_private_table_is_not_run(lab: Session) -> None:
    """The engine's own reading of the text is held against the declared public tables, should all else have failed."""
    column = (Column(0, "c0", STRING),)
    for sql in (
        'SELECT CAST(max(age) AS VARCHAR) AS c0 FROM "people"',
        "SELECT (SELECT CAST(max(age) AS VARCHAR) FROM data.main.people) AS c0 FROM places",
        "SELECT CAST(age AS VARCHAR) AS c0 FROM query_table('people')",
        "SELECT CAST(age AS VARCHAR) AS c0 FROM query('FROM people')",
        "WITH places AS (FROM people) SELECT CAST(age AS VARCHAR) AS c0 FROM places",
    ):
        with pytest.raises(Exception, match="ENGINE_FAILED"):
            lab.backend.prepare([Public("public_9", sql, column)])
    with pytest.raises(Exception, match="ENGINE_FAILED"):
        lab.backend.public_rows("SELECT CAST(age AS VARCHAR) FROM data.main.people", [STRING])
    lab.backend.prepare([Public("public_9", 'SELECT country AS c0 FROM "places"', column)])
    assert len(lab.backend.public_rows('SELECT c0 FROM memory.main."public_9"', [STRING])) == 4


EXPRESSIONS = (
    "CAST(n AS INT(5))",
    "CAST(n AS DECIMAL(10, 2))",
    "date_trunc('month', day)",
    "extract(year FROM day)",
    "date_part('year', day)",
    "day + INTERVAL 1 DAY",
    "day + INTERVAL '1' DAY",
    "date_diff('day', day, DATE '2024-02-01')",
    "trim(BOTH FROM 'x')",
    "substring('abc' FROM 2 FOR 1)",
    "n::INT + 1.5e0",
    "'a' LIKE 'b' ESCAPE 'c'",
    "CASE n WHEN 1 THEN 2 END IN (1, 2)",
    "strftime(day, '%d')",
    "last_day(day)",
    "try_cast(n AS VARCHAR(5)) || 'a'",
)
FRAMES = (
    "SELECT h, count(*) FROM orders JOIN (SELECT n, {} AS h FROM moments WHERE {} IS NOT NULL) m ON qty = n GROUP BY h",
    "SELECT n, m.day, sum(count(*)) OVER (PARTITION BY {} ORDER BY {}) FROM people JOIN moments m ON age = n GROUP BY n, m.day",
)
ANYWHERE = "n::INT + 1.5e0"  # in each frame and dialect
QUOTES = {"duckdb": '"', "postgres": '"', "snowflake": '"', "bigquery": "`", "spark": "`"}


def within(frame: str, expression: str) -> set[int]:
    """Where in the frame's statement the expression stands."""
    found, at = set[int](), 0
    for part in frame.split("{}")[:-1]:
        found |= set(range(at + len(part), at + len(part) + len(expression)))
        at += len(part) + len(expression)
    return found


def bare(sql: str) -> str:
    """The statement without its texts and quoted names."""
    return re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", "", sql)


@pytest.mark.parametrize("dialect", [one if one in ("duckdb", "bigquery") else pytest.param(one, marks=pytest.mark.slow) for one in QUOTES])
def test_no_word_of_a_statement_can_be_made_sql(dialect: str, lab: Session) -> None:
    """Each word of a frame, and of an expression in it, in turn is replaced by, or followed by, a name or a text that would end an expression."""
    quote, tokenizer = QUOTES[dialect], Dialect.get_or_raise(dialect)
    odd = (f"{quote}canary) zz{quote}", f"({quote}canary) zz{quote})", "'canary'') zz'" if quote == '"' else "'canary\\') zz'")
    read_in_full = 0
    assert ANYWHERE in EXPRESSIONS
    for frame, expression in product(FRAMES, EXPRESSIONS):
        sql, inside = frame.format(*[expression] * frame.count("{}")), within(frame, expression)
        tokens = [token for token in tokenizer.tokenize(sql) if expression == ANYWHERE or token.start in inside]
        for token, word in product(tokens, odd):
            for changed in (sql[: token.start] + word + sql[token.end + 1 :], sql[: token.end + 1] + word + sql[token.end + 1 :]):
                try:
                    found = read(changed, lab.schema, dialect=dialect, now=datetime(2026, 1, 1))
                except Refused:
                    continue
                read_in_full += 1
                publics = [rel.public.sql for rel in walk(found.blocks[0].draft.input) if isinstance(rel, Lookup)]
                assert not [text for text in (found.post.sql, *publics) if "canary" in bare(text).lower()], changed
    assert read_in_full > 20
