"""The clause in front of the parser, five dialects, and places that stay true."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from sql_shop import HERE, NOW, ask, schema, summary
from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.draft import Affine, Output, Ratio
from dpquery.sql import read
from dpquery.sql.clause import Name, Text
from dpquery.sql.dialect import DIALECTS, parse

CASES = json.loads((HERE.parent / "cases" / "cases.json").read_text())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_cases_parse_in_every_dialect(dialect: str) -> None:
    """But for what is no statement at all, and DuckDB's own spellings."""
    for case in CASES:
        code = parse_code(case["sql"], dialect)
        assert code in ("", "NESTED_RELEASE") or case["kind"] == "reject", (case["id"], code)
        assert code in ("", "SYNTAX", "SEVERAL_STATEMENTS", "NESTED_RELEASE", "BOUNDS_NOT_LITERAL"), (case["id"], code)


def parse_code(sql: str, dialect: str) -> str:
    try:
        parse(sql, dialect)
    except Refused as refused:
        return refused.code
    return ""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_question_in_every_dialect(dialect: str) -> None:
    sql = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-9, max_groups_contributed=2) country, "
        "COUNT(*, contribution_bounds_per_group => (0, 5)) AS n, SUM(age, contribution_bounds_per_row => (0, 90), epsilon => 0.1) AS s "
        "FROM users WHERE age > 3 AND city LIKE 'x%' GROUP BY country HAVING n > 3 ORDER BY n DESC NULLS LAST LIMIT 3"
    )
    assert summary(ask(sql, dialect=dialect)) == summary(ask(sql))
    assert ask(sql, dialect=dialect).blocks[0].options == ask(sql).blocks[0].options


def test_nulls_are_ordered_as_the_dialect_does() -> None:
    sql = "SELECT city, COUNT(*) AS n FROM users GROUP BY city ORDER BY n"
    assert "ORDER BY t.a0 NULLS LAST" in ask(sql).post.sql
    assert "ORDER BY t.a0 NULLS FIRST" in ask(sql, dialect="bigquery").post.sql


def test_integers_are_divided_as_the_dialect_does() -> None:
    sql = "SELECT COUNT(*) / 2 AS h FROM users WHERE age / 2 = 1"
    assert "div(" in str(summary(ask(sql))["rel"])
    assert "intdiv(" in str(summary(ask(sql, dialect="postgres"))["rel"])


def test_safe_divide_is_a_division_with_an_error_bar() -> None:
    found = ask("SELECT SAFE_DIVIDE(SUM(age), COUNT(*)) AS x FROM users", dialect="bigquery").post
    assert 'TRY((t.a0) / NULLIF(t.a1, 0)) AS "x"' in found.sql
    assert found.outputs == (Output("x", Ratio("a0", "a1"), True, missing="it divides by zero above the noise"),)


def test_quotation_marks_of_bigquery() -> None:
    assert summary(ask('SELECT COUNT(*) FROM `users` WHERE `city` = "x"', dialect="bigquery")) == summary(
        ask("SELECT COUNT(*) FROM users WHERE city = 'x'")
    )


def test_unknown_dialect() -> None:
    with pytest.raises(Refused) as caught:
        ask("SELECT 1", dialect="duckbd")
    assert caught.value.code == "DIALECT"
    assert "duckdb" in caught.value.message


def test_the_clause_is_cut_out_and_kept() -> None:
    sql = """SELECT -- a comment
  WITH DIFFERENTIAL_PRIVACY OPTIONS(
    epsilon = .5, rho = 1e-3, delta = -2.50, noise = 'laplace', "max_rows_per_group" = +3, privacy_unit_column = u."User_Id")
  COUNT(*, contribution_bounds_per_group => (-1, .5)) FROM users u"""
    parsed = parse(sql)
    (options,) = parsed.clauses.values()
    assert [(one.name, one.value, str(one.position)) for one in options] == [
        ("epsilon", Fraction(1, 2), "line 3, column 5"),
        ("rho", Fraction(1, 1000), "line 3, column 19"),
        ("delta", Fraction(-5, 2), "line 3, column 31"),
        ("noise", Text("laplace"), "line 3, column 46"),
        ("max_rows_per_group", Fraction(3), "line 3, column 65"),
        ("privacy_unit_column", Name(("u", "User_Id")), "line 3, column 92"),
    ]
    ((start, (bounds,)),) = parsed.named.items()
    assert sql[start : start + 5] == "COUNT"
    assert (bounds.name, bounds.value) == ("contribution_bounds_per_group", (Fraction(-1), Fraction(1, 2)))
    assert parsed.tree.sql(comments=False) == "SELECT /*+ DP0 */ COUNT(*) FROM users AS u", "a mark says where the clause was"


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT COUNT(*)\nFROM nosuch", "line 2, column 6"),
        ("SELECT COUNT(*)\r\nFROM\tnosuch", "line 2, column 6"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) COUNT(nope)\nFROM users", "line 1, column 59"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY\nOPTIONS(epsilon=1,\ndelta=1e-6) COUNT(*),\n nope FROM users", "line 4, column 2"),
        ("SELECT SUM(age, contribution_bounds_per_group =>\n (0, 1)), SUM(nope) FROM users", "line 2, column 15"),
        ("SELECT 'é', COUNT(*) FROM users WHERE nope > 1", "line 1, column 39"),
        ('SELECT /* x\n y */ COUNT(*) FROM users WHERE "no pe" > 1', "line 2, column 33"),
    ],
)
def test_places_are_those_of_the_text_as_written(sql: str, place: str) -> None:
    with pytest.raises(Refused) as caught:
        ask(sql)
    assert caught.value.code in ("UNKNOWN_COLUMN", "UNKNOWN_TABLE")
    assert str(caught.value.position) == place


def test_functions_of_which_the_parser_keeps_no_place_are_found_in_the_text() -> None:
    with pytest.raises(Refused) as caught:
        ask("SELECT COUNT(*),\n  max ( age )\nFROM users")
    assert str(caught.value.position) == "line 2, column 3"
    assert "      max ( age )\n      ^^^\n" in str(caught.value)


def test_a_refusal_shows_the_line_and_points_at_the_place() -> None:
    with pytest.raises(Refused) as caught:
        ask("SELECT COUNT(*)\nFROM users\nWHERE agee > 3")
    assert "    WHERE agee > 3\n          ^^^^" in str(caught.value)
    assert caught.value.as_dict()["position"] == {"line": 3, "column": 7}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_buckets_of_equal_width_are_bins(dialect: str) -> None:
    draft = ask("SELECT width_bucket(amount, 0, 50, 5) AS b, COUNT(*) AS n FROM orders GROUP BY 1", dialect=dialect).blocks[0].draft
    assert [source.origin for source in draft.sources] == ["the bins of b within bounds"]


@pytest.mark.parametrize("written", ["(amount, 5, 0, 5)", "(amount, 0, 5, 0)", "(amount, 0, 5, 9999)", "(amount, 0, user_id, 5)", "(amount, 0, 5)"])
def test_buckets_without_bounds_are_refused(written: str) -> None:
    with pytest.raises(Refused) as refused:
        ask(f"SELECT width_bucket{written} AS b, COUNT(*) AS n FROM orders GROUP BY 1")
    assert refused.value.code == "LITERAL_NEEDED"
    assert refused.value.instead == "width_bucket(x, 0, 100, 10)"


QUANTILES = {
    ("bigquery", "APPROX_QUANTILES(amount, 4)[OFFSET(1)]"): ("1/4", False),
    ("bigquery", "APPROX_QUANTILES(amount, 3)[ORDINAL(2)]"): ("1/3", False),
    ("bigquery", "APPROX_QUANTILES(amount, 10, contribution_bounds_per_row => (0, 9))[SAFE_OFFSET(10)]"): ("1", False),
    ("snowflake", "APPROX_PERCENTILE(amount, 0.9)"): ("9/10", False),
    ("snowflake", "PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY amount)"): ("9/10", True),
    ("spark", "percentile(amount, 0.25)"): ("1/4", False),
    ("spark", "percentile_approx(amount, 0.25)"): ("1/4", False),
    ("postgres", "percentile_cont(0.75) WITHIN GROUP (ORDER BY amount)"): ("3/4", False),
    ("trino", "approx_percentile(amount, 0.5)"): ("1/2", False),
    ("duckdb", "quantile(amount, 0.5)"): ("1/2", True),
    ("bigquery", "APPROX_QUANTILES(amount, 4)"): ("0, 1/4, 1/2, 3/4, 1", False),
    ("duckdb", "quantile(amount, [0.5, 0.1])"): ("1/2, 1/10", True),
    ("duckdb", "approx_quantile(amount, [0.5, 0.5])"): ("1/2, 1/2", False),
    ("spark", "percentile(amount, array(0.25, 0.5))"): ("1/4, 1/2", False),
    ("spark", "percentile_approx(amount, array(0.25, 0.5), 100)"): ("1/4, 1/2", False),
    ("postgres", "percentile_cont(array[0.75, 1]) WITHIN GROUP (ORDER BY amount DESC)"): ("1/4, 0", False),
    ("postgres", "percentile_disc(array[0.75, 1]) WITHIN GROUP (ORDER BY amount)"): ("3/4, 1", True),
    ("trino", "approx_percentile(amount, ARRAY[0.1, 0.5])"): ("1/10, 1/2", False),
}


@pytest.mark.parametrize(("dialect", "written"), QUANTILES)
def test_quantiles_in_their_spelling(dialect: str, written: str) -> None:
    (one,) = ask(f"SELECT {written} AS q FROM orders", dialect=dialect).blocks[0].draft.asks
    assert (one.card, ", ".join(map(str, one.fractions)), one.discrete) == ("quantile", *QUANTILES[dialect, written])
    assert one.listed == ("," in QUANTILES[dialect, written][0])
    assert (one.per_row is not None) == ("=>" in written)


INDEXED = {
    "duckdb": "QUANTILE_CONT(amount, [0.1, 0.2, 0.3])[2]",
    "bigquery": "(SELECT APPROX_QUANTILES(amount, 10) FROM orders)[OFFSET(1)]",
    "snowflake": "(SELECT APPROX_QUANTILES(amount, 10) FROM orders)[1]",
    "postgres": "(percentile_cont(array[0.1, 0.2]) WITHIN GROUP (ORDER BY amount))[2]",
    "spark": "percentile(amount, array(0.1, 0.2))[1]",
    "trino": "element_at(approx_percentile(amount, ARRAY[0.1, 0.2]), 2)",
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_places_in_lists_are_counted_as_the_dialect_counts_them(dialect: str) -> None:
    """The second value, whatever the dialect calls it, of an aggregate, a subquery and a column; bound as a parameter too."""
    question = ask(f"SELECT {INDEXED[dialect]} AS q, COUNT(*) AS n FROM orders", dialect=dialect)
    assert question.post.outputs[0].interval == Affine("a0" if "SELECT" not in INDEXED[dialect] else "r0.a0", place=1)
    first = 1 if dialect in ("duckdb", "postgres", "trino") else 0
    inner = "(SELECT APPROX_QUANTILES(amount, 10) AS q FROM orders) AS t"
    for written, place in ((str(first + 1), 1), (str(first), 0)):
        assert ask(f"SELECT q[{written}] AS v FROM {inner}", dialect=dialect).post.outputs[0].interval == Affine("r0.a0", place=place)
        bound = read(f"SELECT q[?] AS v FROM {inner}", schema(), dialect=dialect, now=NOW, parameters=[int(written)])
        assert bound.post.outputs[0].interval == Affine("r0.a0", place=place)


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("APPROX_QUANTILES(amount, 4)[OFFSET(5)]", "LIST_INDEX"),
        ("APPROX_QUANTILES(amount, 4)[ORDINAL(0)]", "LIST_INDEX"),
        ("APPROX_QUANTILES(amount, 4)[OFFSET(n)]", "LIST_INDEX"),
        ("APPROX_QUANTILES(amount, 0)[OFFSET(0)]", "QUANTILE"),
        ("APPROX_QUANTILES(amount, 101)", "QUANTILE"),
        ("APPROX_QUANTILES(amount, user_id)", "QUANTILE"),
        ("APPROX_QUANTILES(DISTINCT amount, 4)", "DISTINCT_AGGREGATE"),
        ("APPROX_QUANTILES(day, 4)", "MISSING_BOUNDS"),
        ("APPROX_QUANTILES(channel, 4)", "TYPE_MISMATCH"),
    ],
)
def test_lists_of_quantiles_that_are_none(written: str, code: str) -> None:
    with pytest.raises(Refused) as refused:
        ask(f"SELECT {written} AS q FROM orders", dialect="bigquery")
    assert refused.value.code == code


@pytest.mark.parametrize("dialect", DIALECTS)
def test_lengths_are_of_characters_in_public_texts_too(dialect: str) -> None:
    """The parser of some dialects knows lengths of bytes, which DuckDB would be asked for by its type."""
    found = parse("SELECT count(*) FROM users WHERE age > (SELECT max(length(country)) FROM countries)", dialect)
    assert [node.args.get("binary") for node in found.tree.find_all(exp.Length)] == [None]
