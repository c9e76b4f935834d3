"""Expressions as the plan gets them: canonical names, folded literals, implicit conversions."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
import sqlglot
from scalars import NOW, Scope, column, scalar

from dpquery.plan.functions import call
from dpquery.plan.scalar import Call, Case, Cast, Literal, Scalar, conjuncts
from dpquery.sql.scalar import read
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, NULL, STRING, TIMESTAMP, Kind, Type


def whole(value: int) -> Literal:
    return Literal(value, INTEGER)


def words(value: str) -> Literal:
    return Literal(value, STRING)


DAY = datetime.date(2024, 2, 29)
I, J, X, S, D, F = (column(name) for name in "ijxsdf")  # noqa: E741

READ: list[tuple[str, Scalar]] = [
    ("(i)", I),
    ("i + 1", Call("add", (I, whole(1)), INTEGER)),
    ("i + x", Call("add", (Cast(I, FLOAT), X), FLOAT)),
    ("-5", whole(-5)),
    ("- -5", whole(5)),
    ("-0.0", Literal(Decimal("0.0"), Type(Kind.DECIMAL, 1))),
    ("-1.50", Literal(Decimal("-1.50"), Type(Kind.DECIMAL, 2))),
    ("1e3", Literal(1000.0, FLOAT)),
    ("NULL", Literal(None, NULL)),
    ("TRUE", Literal(True, BOOLEAN)),
    ("i <> 3", Call("ne", (I, whole(3)), BOOLEAN)),
    ("i IS NOT DISTINCT FROM NULL", Call("not_distinct", (I, Literal(None, INTEGER)), BOOLEAN)),
    ("i IS NOT NULL", Call("not", (Call("is_null", (I,), BOOLEAN),), BOOLEAN)),
    ("i IN (1, -2, NULL)", Call("in", (I, whole(1), whole(-2), Literal(None, INTEGER)), BOOLEAN)),
    ("i NOT BETWEEN 1 AND 2", Call("not", (Call("between", (I, whole(1), whole(2)), BOOLEAN),), BOOLEAN)),
    ("x > 2", Call("gt", (X, Literal(2.0, FLOAT)), BOOLEAN)),
    ("d = '2024-02-29'", Call("eq", (D, Literal(DAY, DATE)), BOOLEAN)),
    ("DATE '2024-02-29'", Literal(DAY, DATE)),
    ("TIMESTAMP '2024-02-29 01:02:03.5'", Literal(datetime.datetime(2024, 2, 29, 1, 2, 3, 500_000), TIMESTAMP)),
    ("CURRENT_DATE", Literal(DAY, DATE)),
    ("now()", Literal(NOW.replace(tzinfo=None), TIMESTAMP)),
    ("CURRENT_TIMESTAMP", Literal(NOW.replace(tzinfo=None), TIMESTAMP)),
    ("CAST(i AS BIGINT)", I),
    ("i::DOUBLE", Cast(I, FLOAT)),
    ("TRY_CAST('x' AS INT)", Literal(None, INTEGER)),
    ("abs(TRY_CAST('x' AS INT))", Call("abs", (Literal(None, INTEGER),), INTEGER)),
    ("coalesce(NULL, TRY_CAST('x' AS INT), TRY_CAST('x' AS DOUBLE))", Call("coalesce", (Literal(None, FLOAT),) * 3, FLOAT)),
    ("nullif(i, 0)", Case(((Call("eq", (I, whole(0)), BOOLEAN), Literal(None, INTEGER)),), I, INTEGER)),
    ("CASE i WHEN 1 THEN 'a' END", Case(((Call("eq", (I, whole(1)), BOOLEAN), words("a")),), None, STRING)),
    ("if(f, i, 1)", Case(((F, I),), whole(1), INTEGER)),
    ("s LIKE 'a%'", Call("like", (S, words("a%")), BOOLEAN)),
    ("s NOT ILIKE 'a$%' ESCAPE '$'", Call("not", (Call("ilike", (S, words("a$%"), words("$")), BOOLEAN),), BOOLEAN)),
    ("month(d)", Call("date_part", (words("month"), D), INTEGER)),
    ("extract(months FROM d)", Call("date_part", (words("month"), D), INTEGER)),
    ("date_part('dayofweek', d)", Call("date_part", (words("dow"), D), INTEGER)),
    ("d - INTERVAL '1 month 3 days'", Call("date_add", (D, whole(-1), whole(-3), whole(0)), TIMESTAMP)),
    ("INTERVAL 90 MINUTE + d", Call("date_add", (D, whole(0), whole(0), whole(5_400_000_000)), TIMESTAMP)),
    ("d - INTERVAL (-2) WEEK", Call("date_add", (D, whole(0), whole(14), whole(0)), TIMESTAMP)),
    ("3 + d", Call("add_days", (D, whole(3)), DATE)),
    ("d - 3", Call("add_days", (D, whole(-3)), DATE)),
    ("date_diff('day', '2024-02-29'::DATE, d)", Call("date_diff", (words("day"), Literal(DAY, DATE), D), INTEGER)),
    ("log(2, x)", Call("log2", (X,), FLOAT)),
    ("ltrim(s)", Call("ltrim", (S,), STRING)),
    ("rtrim(s, 'xy')", Call("rtrim", (S, Literal("xy", STRING)), STRING)),
    ("trim(BOTH 'x' FROM s)", Call("trim", (S, Literal("x", STRING)), STRING)),
]


@pytest.mark.parametrize(("text", "wanted"), READ, ids=[text for text, _ in READ])
def test_read(text: str, wanted: Scalar) -> None:
    assert scalar(text) == wanted


def test_and_or_are_flat() -> None:
    found = scalar("i = 1 AND (j = 2 AND f) AND (x > 1 OR s = 'a' OR (NOT f))")
    assert [one.function for one in conjuncts(found) if isinstance(one, Call)] == ["eq", "eq", "or"]
    assert isinstance(found, Call)
    assert len(found.args) == 4


def test_long_conditions_and_lists_are_no_deep_ones() -> None:
    many = " OR ".join(f"i = {n}" for n in range(600))
    assert isinstance(scalar(many), Call)
    listed = scalar(f"i IN ({', '.join(map(str, range(10_000)))})")
    assert isinstance(listed, Call)
    assert len(listed.args) == 10_001
    assert scalar(" + ".join(["i"] * 100)).type == INTEGER


def test_parentheses_do_not_count() -> None:
    node = sqlglot.parse_one("SELECT i", dialect="duckdb").selects[0]
    for _ in range(5_000):
        node = sqlglot.exp.Paren(this=node)
    assert read(node, Scope()) == I


def test_the_clock_is_read_in_utc() -> None:
    scope = Scope()
    scope.now = datetime.datetime(2024, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=3)))
    node = sqlglot.parse_one("SELECT CURRENT_DATE", dialect="duckdb").selects[0]
    assert read(node, scope) == Literal(datetime.date(2023, 12, 31), DATE)


def test_calls_built_elsewhere_are_typed_alike() -> None:
    assert call("eq", I, whole(1)) == scalar("i = 1")
