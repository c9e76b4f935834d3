"""Hostile text: whatever is written, nothing but Refused escapes, and no refusal is a reader's own failure."""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from sql_shop import HERE, ask

from dpquery.errors import Refused
from dpquery.sql.dialect import DIALECTS, parse

STATEMENTS = [case["sql"] for path in sorted((HERE / "cases").glob("*.yaml")) for case in YAML(typ="safe").load(path)]
STATEMENTS += [case["sql"] for case in json.loads((HERE.parent / "cases" / "cases.json").read_text())]
WORDS = sorted({word for sql in STATEMENTS for word in sql.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()})


def refusal(sql: str, dialect: str) -> Refused | None:
    try:
        ask(sql, dialect=dialect)
    except Refused as refused:
        return refused
    return None


def code(sql: str, dialect: str = "duckdb") -> str:
    """The code of the refusal; empty for an answer."""
    refused = refusal(sql, dialect)
    if refused is None:
        return ""
    assert refused.code != "UNREADABLE", sql
    assert refused.source is not None
    assert str(refused)
    return refused.code


REPEATED: dict[str, Any] = {
    "parentheses": lambda n: "SELECT " + "(" * n + "1" + ")" * n,
    "open parentheses": lambda n: "SELECT " + "(" * n,
    "NOT": lambda n: "SELECT " + "NOT " * n + "1",
    "minus": lambda n: "SELECT " + "- " * n + "1",
    "CASE": lambda n: "SELECT " + "CASE WHEN " * n + "1" + " THEN 1 END" * n,
    "sum": lambda n: "SELECT COUNT(*) FROM users WHERE " + "age + " * n + "1 > 0",
    "sum above": lambda n: "SELECT " + "COUNT(*) + " * n + "1 FROM users",
    "AND": lambda n: "SELECT COUNT(*) FROM users WHERE " + "age > 1 AND " * n + "age > 1",
    "AND above": lambda n: "SELECT COUNT(*) FROM users HAVING " + "COUNT(*) > 1 AND " * n + "COUNT(*) > 1",
    "casts": lambda n: "SELECT COUNT(*)" + "::int" * n + " FROM users",
    "dots": lambda n: "SELECT a" + ".a" * n + " FROM users",
    "indexes": lambda n: "SELECT COUNT(*)" + "[1]" * n + " FROM users",
    "joins": lambda n: "SELECT COUNT(*) FROM users" + " JOIN users" * n,
    "cross joins": lambda n: "SELECT COUNT(*) FROM users" + " CROSS JOIN users" * n,
    "natural joins": lambda n: "SELECT COUNT(*) FROM users" + " NATURAL JOIN users" * n,
    "lateral joins": lambda n: "SELECT COUNT(*) FROM users" + " JOIN LATERAL (SELECT 1) ON TRUE" * n,
    "joins with conditions": lambda n: "SELECT COUNT(*) FROM users" + " JOIN users USING (user_id)" * n,
    "joins in parentheses": lambda n: "SELECT COUNT(*) FROM " + "(users JOIN " * n + "users" + ")" * n,
    "commas": lambda n: "SELECT COUNT(*) FROM users" + ", users" * n,
    "unions": lambda n: "SELECT 1" + " UNION ALL SELECT 1" * n,
    "subqueries": lambda n: "SELECT COUNT(*) FROM " + "(SELECT * FROM " * n + "users" + ")" * n,
    "WITH": lambda n: "WITH a AS (" * n + "SELECT 1" + ") SELECT 1" * n,
    "functions": lambda n: "SELECT " + "abs(" * n + "1" + ")" * n,
    "lists": lambda n: "SELECT " + "[" * n + "1" + "]" * n,
    "structs": lambda n: "SELECT " + "{a: " * n + "1" + "}" * n,
    "intervals": lambda n: "SELECT " + "INTERVAL " * n + "1",
    "types": lambda n: "SELECT CAST(1 AS " + "STRUCT(a " * n + "INT" + ")" * n + ")",
    "lambdas": lambda n: "SELECT " + "x -> " * n + "1",
    "concatenation": lambda n: "SELECT COUNT(*) FROM users WHERE city" + " || city" * n + " = 'x'",
    "options": lambda n: "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(" + "epsilon=1," * n + ") COUNT(*) FROM users",
    "arguments": lambda n: "SELECT SUM(age" + ", epsilon => 1" * n + ") FROM users",
    "items": lambda n: "SELECT " + "COUNT(*), " * n + "1 FROM users",
    "comments": lambda n: "SELECT COUNT(*) FROM users " + "/*" * n,
    "quotes": lambda n: "SELECT COUNT(*) FROM users WHERE city = " + "'" * (2 * n + 1),
    "semicolons": lambda n: ";" * n,
    "digits": lambda n: "SELECT COUNT(*) FROM users WHERE age > " + "9" * n,
    "names": lambda n: "SELECT COUNT(*) FROM " + "u" * n,
}


@pytest.mark.parametrize("count", [40, 400, 10_000])
@pytest.mark.parametrize("name", REPEATED)
def test_repetition(name: str, count: int) -> None:
    found = code(REPEATED[name](count))
    if count == 10_000 and name not in ("semicolons", "digits", "names", "comments", "quotes"):
        assert found in ("TOO_COMPLEX", "TOO_LONG", "NESTED_JOIN")


def test_a_megabyte() -> None:
    assert code("SELECT COUNT(*) FROM users WHERE city = '" + "x" * 2**20 + "'") == "TOO_LONG"
    assert code("SELECT COUNT(*) FROM users " + " " * 2**20) == "TOO_LONG"


def test_a_long_list_of_literals_is_read() -> None:
    cities = ", ".join(f"'city {i}'" for i in range(10_000))
    assert code(f"SELECT city, COUNT(*) FROM users WHERE city IN ({cities}) GROUP BY city") == ""
    assert code(f"SELECT city, COUNT(*) FROM users WHERE city IN ({cities}, 'x') GROUP BY city") == "TOO_COMPLEX"


def test_aliases_do_not_grow_without_limit() -> None:
    doubled = ", ".join(f"x{i} + x{i} AS x{i + 1}" for i in range(60))
    assert code(f"SELECT COUNT(*) AS x0, {doubled} FROM users") == "TOO_COMPLEX"
    inner = "SELECT age + 0 AS x FROM users"
    for _ in range(25):
        inner = f"SELECT x + x AS x FROM ({inner})"
    assert code(f"SELECT SUM(x) FROM ({inner})") in ("", "TOO_COMPLEX")


def test_queries_do_not_grow_without_limit() -> None:
    chain = ", ".join(f"t{i + 1} AS (SELECT a.user_id FROM t{i} a JOIN t{i} b ON a.user_id = b.user_id)" for i in range(30))
    assert code(f"WITH t0 AS (SELECT * FROM users), {chain} SELECT COUNT(*) FROM t30") == "TOO_COMPLEX"


@pytest.mark.parametrize("above", ["SELECT a.n + b.n AS n FROM {0} AS a, {0} AS b", "SELECT n FROM {0} UNION ALL SELECT n FROM {0}"])
def test_released_queries_that_double_each_other_are_bounded(above: str) -> None:
    """A WITH query above the noise is written out wherever it is read."""
    chain = ", ".join(f"t{i} AS ({above.format(f't{i - 1}')})" for i in range(1, 40))
    before = process_time()
    assert code(f"WITH t0 AS (SELECT COUNT(*) AS n FROM users), {chain} SELECT n FROM t39") == "TOO_COMPLEX"
    assert process_time() - before < 5


@pytest.mark.parametrize(
    "sql",
    [
        *("", " ", ";", "\n\n", "--", "/**/", "\x00", "SELECT \x00", "SELECT COUNT(*) FROM users\x00", "\ufeffSELECT COUNT(*) FROM users"),
        *(
            "SELECT 'é\u202e' FROM users",
            "SELECT COUNT(*) AS \u200b FROM users",
            "ＳＥＬＥＣＴ 1",
            "SELECT COUNT(*) FROM ｕｓｅｒｓ",
            "SELECT '\ud800'",
        ),
        "SELECT SUM(age, contribution_bounds_per_row => E'\\0') FROM users",
        *("SELECT COUNT(*) FROM users WHERE city = E'\\x00'", "SELECT COUNT(*), e'\\0' FROM users", "SELECT $$", "SELECT $a$ $b$", "SELECT \\"),
        *("SELECT", "SELECT FROM", "FROM", "WITH", "(", ")", "SELECT (", "SELECT COUNT(", "SELECT COUNT(*) FROM", "SELECT * FROM users GROUP BY ALL"),
        *(
            "SELECT WITH",
            "SELECT WITH DIFFERENTIAL_PRIVACY",
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(",
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(a",
        ),
        *(
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=",
            "SELECT SUM(age, epsilon =>",
            "SELECT SUM(age, epsilon => (",
            "SELECT SUM(epsilon => 1)",
        ),
        *(
            "SELECT => 1",
            "SELECT (a => 1)",
            "SELECT COUNT(*) FROM users WHERE (age, epsilon => 1) = 3",
            "SELECT [epsilon => 1]",
            "SELECT COUNT (epsilon => 1)",
        ),
        *(
            "SELECT COUNT(*) -> FROM users",
            "SELECT COUNT(*) ->> FROM users",
            "SELECT city -> FROM users",
            "SELECT COUNT(*) FROM users WHERE city ->> ",
        ),
    ],
)
def test_odd_text(sql: str) -> None:
    code(sql)


@pytest.mark.parametrize(
    "sql",
    [
        *("SELECT COUNT(*) IN () FROM users", "SELECT COUNT(*) IN , 1 FROM users", "SELECT COUNT(*) FROM users HAVING COUNT(*) NOT IN ()"),
        *(
            "SELECT COUNT(*) FROM users WHERE age IN ()",
            "SELECT COUNT(*) FROM users WHERE age IN",
            "SELECT COUNT(*) FILTER (WHERE age IN) FROM users",
        ),
        "SELECT c.region, COUNT(*) FROM users JOIN (SELECT country, region FROM countries WHERE region IN ()) c USING (country) GROUP BY c.region",
    ],
)
def test_in_without_a_list(sql: str) -> None:
    """The parser reads a list of nothing, which the engine takes for a row of nothing."""
    assert code(sql) == "SYNTAX"


@pytest.mark.parametrize(
    ("sql", "dialect"),
    [
        ("SELECT dayofyear(), COUNT(*) FROM users GROUP BY 1", "spark"),
        ("SELECT COUNT(*) FROM (users ORDER BY age)", "duckdb"),
        ("SELECT COUNT(*) FROM (users LIMIT 1)", "duckdb"),
    ],
)
def test_what_the_parser_makes_without_looking(sql: str, dialect: str) -> None:
    """A function without its value, and a clause at a table, which would otherwise be passed over."""
    with pytest.raises(Refused) as refused:
        parse(sql, dialect)
    assert refused.value.code == "SYNTAX"


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.sampled_from(STATEMENTS), st.data())
def test_damaged_statements(sql: str, data: st.DataObject) -> None:
    """A statement of the cases with words dropped, swapped, repeated or put in, in any dialect."""
    words = sql.split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(words) - 1))
        match data.draw(st.sampled_from(["drop", "swap", "put", "replace"])):
            case "drop" if len(words) > 1:
                del words[at]
            case "swap":
                other = data.draw(st.integers(0, len(words) - 1))
                words[at], words[other] = words[other], words[at]
            case "put":
                words.insert(at, data.draw(st.sampled_from(WORDS)))
            case _:
                words[at] = data.draw(st.sampled_from(WORDS))
    code(" ".join(words), data.draw(st.sampled_from(DIALECTS)))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=20), st.sampled_from(DIALECTS))
def test_random_words(words: list[str], dialect: str) -> None:
    code("SELECT " + " ".join(words), dialect)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.text(max_size=60), st.sampled_from(DIALECTS))
def test_random_text(text: str, dialect: str) -> None:
    code(text, dialect)
    code(f"SELECT COUNT(*) AS {text} FROM users", dialect)
    code(f"SELECT COUNT(*) FROM users WHERE city = '{text}'", dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_lists_within_lists_are_not_written_out_without_end(dialect: str) -> None:
    """Each level's copies hold those of the level below: a line of text was minutes of work and a gigabyte."""
    value = "country"
    for _ in range(40):
        value = f"(CASE WHEN {value} LIKE ANY ('a', 'b') THEN 'a' ELSE 'b' END)"
    start = process_time()
    with pytest.raises(Refused):
        parse(f"SELECT COUNT(*) FROM users WHERE {value} = 'a'", dialect)
    assert process_time() - start < 5


def test_stars_upon_stars_are_not_read_without_end() -> None:
    start, rows = process_time(), "users"
    for _ in range(25):
        rows = f"(SELECT *, * FROM {rows})"
    with pytest.raises(Refused) as refused:
        ask(f"SELECT COUNT(*) FROM {rows}")
    assert refused.value.code == "TOO_COMPLEX"
    assert process_time() - start < 10


def windows_within(count: int, term: str) -> str:
    items = ", ".join(f"lag(amount, {i}) OVER (PARTITION BY user_id ORDER BY amount{term.format(i)}) AS x{i}" for i in range(count))
    return f"SELECT sum(x0) FROM (SELECT user_id, {items} FROM orders)"


COSTLY: dict[str, tuple[Any, int]] = {
    "windows of a unit": (lambda n: windows_within(n, ""), 64),
    "windows and terms of a unit": (lambda n: windows_within(n, " + {}"), 32),
    "terms of a window of a unit": (
        lambda n: (
            "SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY user_id ORDER BY "
            + ", ".join(f"amount + {i}" for i in range(1, n))
            + ") AS r FROM orders) WHERE r = 1"
        ),
        64,
    ),
    "aggregates": (lambda n: "SELECT " + ", ".join(f"sum(age + {i})" for i in range(n)) + " FROM users", 200),
    "aggregates of two columns": (lambda n: "SELECT " + ", ".join(f"corr(age, age + {i})" for i in range(n)) + " FROM users", 50),
}


@pytest.mark.parametrize("name", COSTLY)
def test_what_the_engine_plans_in_quadratic_time_is_bounded(name: str) -> None:
    make, most = COSTLY[name]
    assert code(make(most)) == ""
    assert code(make(most + 1)) == "TOO_COMPLEX"


QUICK: dict[str, str] = {
    "brackets": "SELECT " + "(" * 10_000 + "1" + ")" * 10_000,
    "a long list": "SELECT city, COUNT(*) FROM users WHERE city IN (" + ", ".join(f"'{i:07}'" for i in range(9000)) + ") GROUP BY nope",
    "blank lines": "SELECT COUNT(*) " + "\n " * 50_000 + "FROM nope",
    "a comment": "SELECT COUNT(*) /*" + "\n " * 50_000 + "*/ FROM nope",
    "WITH queries": "WITH "
    + ", ".join(f"c{i} AS (SELECT * FROM {f'c{i - 1}' if i else 'users'})" for i in range(400))
    + " SELECT COUNT(*) FROM c399",
    "flat WITH queries": "WITH " + ", ".join(f"c{i} AS (SELECT COUNT(*) FROM users)" for i in range(400)) + " SELECT * FROM c1",
    "windows above": "SELECT city, " + ", ".join(f"sum(COUNT(*) + {i}) OVER (ORDER BY city)" for i in range(300)) + " FROM users GROUP BY city",
    "terms above": "SELECT city, sum(COUNT(*)) OVER (ORDER BY " + ", ".join(f"COUNT(*) + {i}" for i in range(600)) + ") FROM users GROUP BY city",
    "many aggregates": "SELECT " + ", ".join(f"sum(age + {i})" for i in range(600)) + " FROM users",
    "spaces before a bracket": "SELECT COUNT(*), nope" + " " * 100_000 + "(age) FROM users",
}


@pytest.mark.parametrize("name", QUICK)
def test_long_statements_are_read_or_refused_at_once(name: str) -> None:
    start = process_time()
    refused = refusal(QUICK[name], "duckdb")
    assert process_time() - start < 3
    assert refused is None or len(str(refused)) < 4_000
