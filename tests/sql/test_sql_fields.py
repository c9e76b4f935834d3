"""Read it or refuse it: an argument that is set on any node of an answered statement changes the answer, or the statement is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlglot
from sql_shop import NOW, schema
from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.draft import Question
from dpquery.sql.dialect import parse
from dpquery.sql.fields import rebuild, take, unset
from dpquery.sql.names import Statement
from dpquery.sql.question import question

STATEMENTS = [
    "SELECT country, COUNT(*) AS n, SUM(age) FILTER (WHERE age > 3) FROM users WHERE city IN ('a', 'b') GROUP BY country HAVING n > 3 "
    "QUALIFY RANK() OVER (PARTITION BY country ORDER BY n DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) < 3 ORDER BY n DESC LIMIT 3 OFFSET 1",
    "WITH t(a) AS (SELECT * FROM users WHERE NOT age BETWEEN 1 AND 2) SELECT COUNT(DISTINCT a), AVG(t.age / 2) FROM t, orders o "
    "WHERE t.a = o.user_id AND o.channel LIKE 'x%' AND o.day + INTERVAL 1 DAY > DATE '2024-01-01' AND o.paid IS NOT NULL",
    "SELECT c.country, COUNT(o.amount) FROM users u RIGHT JOIN (SELECT DISTINCT country FROM countries WHERE region <> 'x') c "
    "ON u.country = c.country LEFT JOIN (SELECT user_id, amount + 1 AS amount FROM orders AS p(i)) AS o USING (user_id) GROUP BY ALL",
    "SELECT CASE WHEN age > 3 THEN 'a' ELSE 'b' END AS k, CAST(SUM(COALESCE(age, 0)) AS DOUBLE) / NULLIF(COUNT(*), 0), "
    "ROUND(AVG(ABS(age)), 1), SUM(COUNT(*)) OVER (), LAG(COUNT(*), 1, 0) OVER (ORDER BY k), LENGTH(k), -COUNT(*) FROM users GROUP BY 1",
    "SELECT DISTINCT UPPER(SUBSTRING(city, 1, 2)) FROM users WHERE FLOOR(age / 10) = 3 OR age IS NULL ORDER BY 1",
]
# Arguments that change nothing on purpose: quotation marks, marks of how a thing was spelled, and how the engine may plan it.
SPELLING = {
    *(("Identifier", "quoted"), ("Literal", "is_string"), ("Coalesce", "is_nvl"), ("Coalesce", "is_null"), ("Cast", "safe"), ("Div", "safe")),
    *(("Div", "typed"), ("DataType", "nested"), ("DataType", "expressions"), ("Length", "binary"), ("If", "false"), ("Count", "big_int")),
    *(("Extract", "expression"), ("DPipe", "safe")),
}


def read(sql: str, tree: exp.Expr | None = None) -> Question:
    parsed = parse(sql)
    return question(Statement(schema(), sql, parsed.named, NOW, parsed.clauses), tree or parsed.tree)


def dummies() -> Iterator[Any]:
    yield exp.Var(this="X")
    yield True
    yield [exp.Var(this="X")]
    yield [exp.column("age")]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_no_argument_is_overlooked(sql: str) -> None:
    tree, plain = parse(sql).tree, read(sql)
    overlooked = set()
    for place, node in enumerate(tree.walk()):
        for name in node.arg_types:
            if not unset(node.args.get(name)) or (type(node).__name__, name) in SPELLING:
                continue
            for dummy in dummies():
                changed = tree.copy()
                list(changed.walk())[place].args[name] = dummy
                try:
                    same = read(sql, changed) == plain
                except (Refused, AttributeError, TypeError):  # a dummy of the wrong kind is no refusal, but it was read
                    same = False
                if same:
                    overlooked.add((type(node).__name__, name))
    assert not overlooked


def test_take_returns_what_is_named_and_refuses_the_rest() -> None:
    node = sqlglot.parse_one("SELECT a FROM t WHERE b", read="duckdb")
    items, source, where, nothing = take(node, "expressions", "from_", "where", "having")
    assert (len(items), type(source), type(where), nothing) == (1, exp.From, exp.Where, None)
    with pytest.raises(Refused) as caught:
        take(node, "expressions", "from_")
    assert caught.value.code == "UNSUPPORTED_CLAUSE"
    assert str(caught.value.position) == "line 1, column 23"
    assert caught.value.instead == "the statement without it"


def test_take_knows_clauses_by_name() -> None:
    node = sqlglot.parse_one("SELECT a FROM t QUALIFY b", read="duckdb")
    with pytest.raises(Refused) as caught:
        take(node, "expressions", "from_")
    assert caught.value.code == "QUALIFY"


@pytest.mark.parametrize(("value", "says_nothing"), [(None, True), (False, True), ([], True), ((), True), (0, False), ("", False), ([None], False)])
def test_unset(value: object, says_nothing: bool) -> None:
    assert unset(value) is says_nothing


def test_rebuild_changes_every_child_and_refuses_the_rest() -> None:
    node = sqlglot.parse_one("x IN (1, 2)", read="duckdb")
    made = rebuild(node, ("this", "expressions"), lambda child: exp.Literal.number(7))
    assert made.sql() == "7 IN (7, 7)"
    assert node.sql() == "x IN (1, 2)"
    with pytest.raises(Refused):
        rebuild(node, ("this",), lambda child: child)
