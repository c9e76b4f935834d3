"""Parameters: typed values in the parser's tree, never text; counts and names that do not fit are refused."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from uuid import UUID

import pytest
from sql_shop import NOW, schema, summary

from dpquery.engine.asking import call
from dpquery.errors import Refused
from dpquery.plan.draft import Question
from dpquery.sql import read
from dpquery.sql.parameters import Given, written


def ask(sql: str, given: Given | None, dialect: str = "duckdb") -> Question:
    return read(sql, schema(), dialect=dialect, now=NOW, parameters=given)


WRITTEN = [
    (30, "30"),
    (-30, "-30"),
    (2**70, str(2**70)),
    (Decimal("1.50"), "1.50"),
    (2.5, "2.5e0"),
    (-1e-7, "-1e-07"),
    (True, "TRUE"),
    (None, "NULL"),
    ("it's; DROP TABLE users --", "'it''s; DROP TABLE users --'"),
    ("$1 ? \\", "'$1 ? \\'"),
    (datetime.date(2024, 2, 29), "DATE '2024-02-29'"),
    (datetime.datetime(2024, 2, 29, 12, 30), "TIMESTAMP '2024-02-29 12:30:00'"),
    (datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2))), "TIMESTAMP '2024-02-29 10:00:00'"),
    (UUID(int=7), f"CAST('{UUID(int=7)}' AS UUID)"),
]


@pytest.mark.parametrize(("value", "literal"), WRITTEN)
def test_a_value_is_the_literal_that_spells_it(value: object, literal: str) -> None:
    shape = "SELECT COUNT(*) AS n FROM users WHERE COALESCE({0}, NULL) IS NOT NULL"
    assert summary(ask(shape.format("?"), [value])) == summary(ask(shape.format(literal), None))
    assert summary(ask(shape.format("$x"), {"X": value})) == summary(ask(shape.format("?"), [value]))


@pytest.mark.parametrize(
    ("dialect", "sign"), [("duckdb", "$"), ("bigquery", "@"), ("bigquery", "$"), ("snowflake", ":"), ("spark", ":"), ("postgres", "$")]
)
def test_names_in_each_dialect(dialect: str, sign: str) -> None:
    sql = f"SELECT COUNT(*) AS n FROM users WHERE age > {sign}low AND age < {sign}high HAVING COUNT(*) > {sign}low"
    plain = "SELECT COUNT(*) AS n FROM users WHERE age > 3 AND age < 9 HAVING COUNT(*) > 3"
    assert summary(ask(sql, {"low": 3, "high": 9}, dialect)) == summary(ask(plain, None, dialect))


def test_numbers_may_be_used_twice_and_signs_stay_with_them() -> None:
    found = summary(ask("SELECT COUNT(*) + $1 ^ 2 AS n FROM users WHERE age > $2 AND age < $2", [-5, 3]))
    assert "POWER((-5), 2)" in str(found["post"])
    assert found["rel"] == "users where and(gt(age, 3), lt(age, 3))"


SIDE_BY_SIDE = [
    ("age IN ($1,$2)", [30, 40], "age IN (30, 40)"),
    ("age > $a+$a", {"a": 3}, "age > 3 + 3"),
    ("age IN ($s,$s)", {"s": 3}, "age IN (3, 3)"),
    ("(age>$a)AND(age<$a)", {"a": 3}, "age > 3 AND age < 3"),
    ("city='$$'OR city IN($1,$1)", ["x"], "city = '$$' OR city IN ('x', 'x')"),
    ("age IN ($é,/*$$*/$_1) --$", {"é": 1, "_1": 2}, "age IN (1, 2)"),
    ("city IN ($1,$2)", ["$a$", "$$ OR TRUE"], "city IN ('$a$', '$$ OR TRUE')"),
]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize(("where", "given", "plain"), SIDE_BY_SIDE)
def test_two_dollars_without_a_space_between_are_two_parameters(where: str, given: Given, plain: str, dialect: str) -> None:
    shape = "SELECT COUNT(*) AS n FROM users WHERE {}"
    assert summary(ask(shape.format(where), given, dialect)) == summary(ask(shape.format(plain), None, dialect))


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("value", ["$$x$$", "$a$x$a$", "$a$'$a$", "$é$ $1,$1 $é$", "$a+$a$ OR $a", "$1,$$' OR TRUE --$$", "$a$x", "$1$x$1$"])
def test_a_text_between_dollars_is_no_parameter(value: str, dialect: str) -> None:
    for given in (["x"], {"a": "x"}, None):
        with pytest.raises(Refused) as caught:
            ask(f"SELECT COUNT(*) AS n FROM users WHERE city = {value}", given, dialect)
        assert caught.value.code in ("SYNTAX", "PARAMETER", "UNSUPPORTED_EXPRESSION"), caught.value


def test_the_clause_takes_them() -> None:
    sql = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = ?, noise = ?) "
        "SUM(age, contribution_bounds_per_row => (?, ?)) AS s FROM users WHERE age > ?"
    )
    plain = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.1, noise = 'gaussian') "
        "SUM(age, contribution_bounds_per_row => (-2, 90)) AS s FROM users WHERE age > 4"
    )
    assert ask(sql, [0.1, "gaussian", -2, Decimal(90), 4]).blocks[0].draft.asks[0].per_row == ask(plain, None).blocks[0].draft.asks[0].per_row
    assert ask(sql, [0.1, "gaussian", -2, Decimal(90), 4]).blocks[0].options == ask(plain, None).blocks[0].options


WRONG = [
    ("SELECT COUNT(*) FROM users WHERE age > ?", [10**400], "BAD_LITERAL"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", [-(10**400)], "BAD_LITERAL"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", [2**1600 - 1], "BAD_LITERAL"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", [10**310], "BAD_LITERAL"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", [Decimal(10) ** 399], "BAD_LITERAL"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", [10**5000], "PARAMETER_VALUE"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", [float("-inf")], "PARAMETER_VALUE"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", [Decimal("sNaN")], "PARAMETER_VALUE"),
    ("SELECT COUNT(*) FROM users WHERE city = ?", [b"a"], "PARAMETER_VALUE"),
    ("SELECT COUNT(*) FROM users WHERE city = ?", ["x" * 200_000], "TOO_COMPLEX"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", None, "PARAMETER"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", [1, 2], "PARAMETER"),
    ("SELECT COUNT(*) FROM users WHERE age > ? AND age < ?", [1], "PARAMETER"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", {"a": 1}, "PARAMETER"),
    ("SELECT COUNT(*) FROM users WHERE age > $a", {"b": 1}, "PARAMETER"),
    ("SELECT COUNT(*) FROM users WHERE age > $a", {"a": 1, "b": 1}, "PARAMETER"),
    ("SELECT COUNT(*) FROM users WHERE age > $a", {"a": 1, "A": 2}, "PARAMETER"),
    ("SELECT COUNT(*) FROM users WHERE age > $a", [1], "PARAMETER"),
    ("SELECT COUNT(*) FROM users WHERE age > $0", [1], "PARAMETER"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", [Decimal("0." + "1" * 500)], "PARAMETER_VALUE"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", [Decimal("0e-999999999")], "PARAMETER_VALUE"),
    (
        "SELECT COUNT(*) FROM orders WHERE day > ?",
        [datetime.datetime.min.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=14)))],
        "PARAMETER_VALUE",
    ),
    (
        "SELECT COUNT(*) FROM orders WHERE day > ?",
        [datetime.datetime.max.replace(tzinfo=datetime.timezone(-datetime.timedelta(hours=14)))],
        "PARAMETER_VALUE",
    ),
    ("SELECT COUNT(*) FROM users", "abc", "PARAMETER"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", [[1]], "PARAMETER_VALUE"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", [float("nan")], "PARAMETER_VALUE"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", [Decimal("1e999")], "PARAMETER_VALUE"),
    ("SELECT COUNT(*) FROM users WHERE city = ?", ["a\0b"], "BAD_LITERAL"),
    ("SELECT COUNT(*) FROM users WHERE age > ?", ["x"], "BAD_LITERAL"),
    ("SELECT COUNT(*) FROM ?", ["users"], "PARAMETER_PLACE"),
    ("SELECT COUNT(*) ? FROM users", ["x"], "PARAMETER_PLACE"),
    ("SELECT ?(*) FROM users", ["count"], "PARAMETER_PLACE"),
    ("SELECT COUNT(*) FROM users WHERE u.? > 1", ["age"], "PARAMETER_PLACE"),
    ("SELECT COUNT(*) FROM users GROUP BY (?)", [1], "PARAMETER_PLACE"),
    ("SELECT country, COUNT(*) FROM users GROUP BY country ORDER BY ? DESC", [1], "PARAMETER_PLACE"),
    ("SELECT COUNT(*) FROM users WHERE EXTRACT(? FROM DATE '2024-01-01') = 1", ["year"], "PARAMETER_PLACE"),
    ("SELECT COUNT(*) FROM users WHERE CAST(age AS ?) = 1", ["INT"], "PARAMETER_PLACE"),
    ("SELECT COUNT(*) FROM users WHERE city COLLATE ? = 'x'", ["nocase"], "PARAMETER_PLACE"),
    ("SELECT COUNT(*) FROM users LIMIT ?", ["1"], "LIMIT"),
]


@pytest.mark.parametrize(("sql", "given", "code"), WRONG)
def test_what_does_not_fit_is_refused(sql: str, given: Given | None, code: str) -> None:
    with pytest.raises(Refused) as caught:
        ask(sql, given)
    assert caught.value.code == code
    assert caught.value.instead
    assert "\0" not in str(caught.value)


EXTREMES = [
    *(Decimal("1e-399"), Decimal("1e400"), Decimal("1" * 1000), Decimal("-0"), Decimal("0e-399"), Decimal("NaN"), Decimal("9" * 38)),
    *(10**1000, 10**39, 2**63, -(2**63), 0, -1, 5e-324, 1.7e308, -0.0, float("nan"), float("-inf")),
    *("x" * 60_000, "1e999999999", "a\0b", "\ud800", b"abc", [1, 2], {}, (1,), 1j, datetime.timedelta(1), datetime.time(1)),
    *(datetime.date.min, datetime.date.max, datetime.datetime.min, datetime.datetime.max.replace(tzinfo=datetime.UTC)),
]
PLACES = [
    *("SUM(round(amount, ?)) FROM orders", "SUM(trunc(amount, ?)) FROM orders", "COUNT(*) FROM users GROUP BY age // ?", "SUM(age % ?) FROM users"),
    *("COUNT(*) FROM users GROUP BY age LIMIT ?", "COUNT(*) FROM users GROUP BY age LIMIT 1 OFFSET ?", "QUANTILE_CONT(age, ?) FROM users"),
    *("QUANTILE_CONT(age, [?, 0.5]) FROM users", "COUNT(*) FROM users GROUP BY width_bucket(age, ?, 9, 5)"),
    *("COUNT(*) FROM users GROUP BY width_bucket(age, 0, ?, 5)", "COUNT(*) FROM users GROUP BY width_bucket(age, 0, 9, ?)"),
    *("COUNT(*) FROM orders WHERE day + INTERVAL (?) DAY > NOW()", "COUNT(*) FROM users WHERE power(10, ?) < exp(?) + age"),
    *(
        "COUNT(*) ^ ? FROM users",
        "COUNT(*) FROM users WHERE city LIKE ? OR repeat(city, ?) = 'x'",
        "COUNT(*) FROM users JOIN range(0, ?) r(x) ON age = x",
    ),
    *("SUM(age, contribution_bounds_per_row => (?, 5)) FROM users", "COUNT(*) FROM users WHERE CAST(? AS DECIMAL(38, 10)) > age"),
]
OPTIONS = ["epsilon", "delta", "rho", "max_groups_contributed", "max_rows_contributed", "min_privacy_units_per_group", "confidence_level", "noise"]


def refusal(reads: Callable[[], object]) -> str:
    try:
        reads()
    except Refused as refused:
        return refused.code
    return ""


@pytest.mark.parametrize("rest", [*PLACES, *(f"WITH DIFFERENTIAL_PRIVACY OPTIONS({name} = ?) COUNT(*) FROM users" for name in OPTIONS)])
def test_extreme_values_are_read_or_refused_at_once(rest: str) -> None:
    begun = time.process_time()
    found = {refusal(partial(ask, f"SELECT {rest}", [value] * rest.count("?"))) for value in EXTREMES}
    assert not found & {"UNREADABLE", "UNANSWERABLE", "UNKNOWN_COLUMN", "SYNTAX"}
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("name", ["epsilon", "delta", "rho", "confidence", "error", "noise"])
def test_extreme_values_of_the_call_are_read_or_refused_at_once(name: str) -> None:
    begun = time.process_time()
    for value in EXTREMES:
        refusal(partial(call, **{name: value}))  # type: ignore[arg-type]
        refusal(partial(call, error={"n": value}))  # type: ignore[dict-item]
    assert time.process_time() - begun < 5


class Feigned(Decimal):
    """It says another number than it is."""

    def __abs__(self) -> Decimal:
        return self

    def __format__(self, spec: str, /) -> str:
        return "1 OR 1 = 1"

    __str__ = __repr__ = lambda self: "2"


class Written(str):
    __slots__ = ()
    __str__ = __repr__ = lambda self: "other"


class Day(datetime.date):
    def isoformat(self) -> str:
        return "2000-01-01"


def test_a_value_of_a_type_of_ones_own_is_the_plain_value_and_logged_as_it_is() -> None:
    shape = "SELECT COUNT(*) AS n FROM users WHERE COALESCE({0}, NULL) IS NOT NULL"
    for feigned, plain in ((Feigned("7.5"), Decimal("7.5")), (Written("x"), "x"), (Day(2024, 2, 29), datetime.date(2024, 2, 29))):
        assert summary(ask(shape.format("?"), [feigned])) == summary(ask(shape.format("?"), [plain]))
        assert list(written([feigned])) == list(written([plain]))
