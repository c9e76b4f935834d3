"""What one person's rows may hold: whatever it is, nothing but that person's own bounded share of an answer changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import people
import pytest
from people import code, one, rows, shown

from dpquery.engine.session import Session
from dpquery.errors import Error

Pair = tuple[Session, Session]
TABLES = """
tables:
  people: {unit: pid, max_rows_per_unit: 1, columns: {pid: {type: integer}}}
  things:
    unit: pid
    columns:
      pid: {type: integer}
      f: {type: float, lower: -10, upper: 10}
      i: {type: integer, lower: -10, upper: 10}
      c: {type: decimal, lower: -10, upper: 10, step: 0.01}
      s: {type: string}
      d: {type: date}
      t: {type: timestamp}
      b: {type: boolean}
      g: {type: uuid}
      h: {type: integer}
      w: {type: "decimal(38,10)"}
"""
DATA = """
CREATE TABLE people AS SELECT i::INT AS pid FROM range(1, 21) t(i);
CREATE TABLE things AS SELECT (1 + i % 20)::INT AS pid, (i % 21 - 10)::DOUBLE AS f, (i % 21 - 10)::BIGINT AS i,
  ((i % 21 - 10) / 2)::DECIMAL(18,2) AS c, 'k' || (i % 3) AS s, DATE '2024-01-01' + (i % 60)::INT AS d,
  TIMESTAMP '2024-01-01' + INTERVAL (i % 60) HOUR AS t, i % 2 = 0 AS b,
  ('00000000-0000-0000-0000-00000000000' || (i % 3))::UUID AS g, (i % 3)::BIGINT AS h, (i % 3)::DECIMAL(38,10) AS w FROM range(200) t(i);
"""
LOW, HIGH, ROWS = -5, 7, 9  # what one row may add, and how many rows the awkward person has
AWKWARD = """
INSERT INTO people VALUES (77);
INSERT INTO things SELECT 77, f, i, c, s, d, t, b, g, h, w FROM (VALUES
 ('nan'::DOUBLE, 9223372036854775807, 9999999999999999.99, '', 'infinity'::DATE, 'infinity'::TIMESTAMP, NULL, NULL, -9223372036854775808,
  9999999999999999999999999999.9999999999),
 ('inf'::DOUBLE, -9223372036854775808, -9999999999999999.99, repeat('x', 100000), '-infinity'::DATE, '-infinity'::TIMESTAMP, true,
  'ffffffff-ffff-ffff-ffff-ffffffffffff', 9223372036854775807, -9999999999999999999999999999.9999999999),
 ('-inf'::DOUBLE, NULL, NULL, '%_\\', '5877642-06-25 (BC)'::DATE, '290309-12-22 (BC) 00:00:00'::TIMESTAMP, false, NULL, 0, NULL),
 (1.7e308, 0, 0, 'SECRET-VALUE', '5881580-07-10'::DATE, '294247-01-10 04:00:54.775806'::TIMESTAMP, NULL, NULL, NULL, 0),
 (-1.7e308, 1, 1, 'nan', '9999-12-31'::DATE, '9999-12-31 23:59:59.999999'::TIMESTAMP, NULL, NULL, 1, 1),
 ('-0.0'::DOUBLE, 1, 1, '1e999', '0001-01-01'::DATE, '0001-01-01'::TIMESTAMP, NULL, NULL, 1, 1),
 (5e-324, 1, 1, chr(0) || 'a', '0001-01-01'::DATE, '0001-01-01'::TIMESTAMP, NULL, NULL, 1, 1),
 (NULL, 1, 1, 'ß𝒳', NULL, NULL, NULL, NULL, 1, 1),
 (0, 1, 1, NULL, NULL, NULL, NULL, NULL, 1, 1)) q(f, i, c, s, d, t, b, g, h, w);
"""


@pytest.fixture(scope="module")
def awkward(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Neighbours: without and with a person whose every value is at some edge."""
    folder, terms = tmp_path_factory.mktemp("awkward"), people.NOISELESS.replace("contributed: 5", "contributed: 100")
    schemas = [people.made(folder / name, data, TABLES, terms) for name, data in (("plain", DATA), ("awkward", DATA + AWKWARD))]
    with people.opened(*schemas) as (plain, with_one_more):
        yield plain, with_one_more


@pytest.fixture(scope="module")
def ties(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, ...]]:
    """The same rows in three orders, ten of each person on two days."""
    folder, terms = tmp_path_factory.mktemp("ties"), people.NOISELESS.replace("contributed: 5", "contributed: 100")
    day = "UPDATE things SET d = DATE '2024-01-01' + (h % 2)::INT;"
    orders = ("f, i, s", "-f, s DESC, i", "hash(f || s || i || t)")
    schemas = [
        people.made(folder / str(n), f"{DATA}{day} CREATE OR REPLACE TABLE things AS FROM things ORDER BY {order};", TABLES, terms)
        for n, order in enumerate(orders)
    ]
    with people.opened(*schemas) as sessions:
        yield sessions


def told(session: Session, sql: str) -> Any:
    """The single row of an answer with its types; or how the statement failed."""
    try:
        table = session.query(sql).table
    except Error as error:
        return error.code, str(error)
    assert table.num_rows == 1
    return table.schema, table.to_pylist()[0]


SUMS = [
    *("f + f * f", "1e308 * f", "f / i", "f % i", "i // i", "-i", "abs(h)", "h * h * h * h", "w / w", "round(w, 5)", "exp(exp(f))", "power(f, f)"),
    *("CAST(s AS BIGINT)", "CAST(f AS BIGINT)", "length(s || s || s)", "date_part('year', d)", "d - DATE '2020-01-01'", "nullif(f, h)", "f + i + c"),
]


@pytest.mark.parametrize("expression", SUMS)
def test_a6_no_value_makes_an_expression_fail(expression: str, awkward: Pair) -> None:
    """Nor does it move a sum further than the row bounds allow, nor change its type."""
    sql = (
        f"SELECT sum({expression}, contribution_bounds_per_row => ({LOW}, {HIGH})), avg({expression}, contribution_bounds_per_row => ({LOW}, {HIGH}))"
    )
    (types, row), (others, other) = (told(each, f"{sql} FROM things") for each in awkward)
    assert types == others
    first, second = (list(found.values()) for found in (row, other))
    assert LOW * ROWS - 1e-6 <= float(second[0]) - float(first[0]) <= HIGH * ROWS + 1e-6
    assert LOW <= second[1] <= HIGH


CONDITIONS = [
    *(
        "s LIKE '%\\_%' ESCAPE '\\'",
        "f <> f",
        "s > 'k1'",
        "b IS NOT TRUE",
        "i BETWEEN -5 AND f",
        "f IS DISTINCT FROM h",
        "length(s) > 1",
        "h IN (1.5, 2)",
    ),
    *("CASE WHEN b THEN f > 0 ELSE i > 0 END", "1 % h = 0", "d + 100000 > d", "t - INTERVAL 10000 YEAR < t", "CAST(s AS INT) = 1"),
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a6_no_value_makes_a_condition_fail(condition: str, awkward: Pair) -> None:
    counts = [one(each, f"SELECT count(*) FROM things WHERE {condition}") for each in awkward]
    assert 0 <= counts[1] - counts[0] <= ROWS


KEYS = [
    *("s", "f", "i", "c", "d", "t", "b", "g", "h", "w", "lower(s)", "-f", "f * 0", "d - 1", "d + INTERVAL 1 MONTH", "dayname(d)"),
    *("date_trunc('week', t)", "CAST(f AS VARCHAR)", "CAST(t AS VARCHAR)", "CAST(s AS DATE)", "CAST(s AS UUID)", "round(f)"),
]


BINS = {"b": 2, "round(f)": 3, "dayname(d)": 3}  # keys with a public list, and how many rows of the awkward person have a key on it


@pytest.mark.parametrize("key", KEYS)
def test_a7_a_key_of_others_is_spelled_and_counted_as_before(key: str, awkward: Pair) -> None:
    sql = f"SELECT {key} AS k, count(*) FROM things GROUP BY k"
    plain, other = ({repr(k): n for k, n in rows(each, sql)} for each in awkward)
    assert all(other[k] >= n for k, n in plain.items())
    assert sum(other.values()) - sum(plain.values()) == BINS.get(key, ROWS)
    for each in awkward:
        assert any("not in the key list" in word for word in shown(each, sql)["warnings"]) == (key in BINS), "no row is left out in silence"
    assert key not in BINS or list(plain) == list(other)
    assert "-0.0" not in other
    assert "nan" not in other


@pytest.mark.parametrize(
    ("sql", "refusal"),
    [
        ("SELECT count(*) FROM things WHERE s LIKE s ESCAPE '!'", "LITERAL_NEEDED"),
        ("SELECT count(*) FROM things WHERE s LIKE 'a' ESCAPE s", "SYNTAX"),
        ("SELECT count(*) FROM things WHERE date_part(s, d) = 1", "LITERAL_NEEDED"),
        ("SELECT count(*) FROM things WHERE t AT TIME ZONE s > t", "TIME_ZONE"),
        ("SELECT count(*) FROM things WHERE strftime(d, s) = 'a'", "UNKNOWN_FUNCTION"),
        ("SELECT count(*) FROM things WHERE error(s) = 'a'", "FUNCTION_NOT_ALLOWED"),
        ("SELECT count(*) FROM things WHERE regexp_matches(s, s)", "LITERAL_NEEDED"),
        ("SELECT count(*) FROM things WHERE repeat(s, 100000) = 'a'", "FUNCTION_NOT_ALLOWED"),
        ("SELECT count(*) FROM things WHERE lpad(s, 100000, 'a') = 'a'", "FUNCTION_NOT_ALLOWED"),
        ("SELECT count(*) FROM things WHERE factorial(i) > 1", "UNKNOWN_FUNCTION"),
        ("SELECT count(*) FROM things WHERE chr(i) = 'a'", "UNKNOWN_FUNCTION"),
        ("SELECT count(*) FROM things WHERE make_date(i, i, i) = d", "UNKNOWN_FUNCTION"),
        ("SELECT count(*) FROM things WHERE i << i > 1", "UNSUPPORTED_EXPRESSION"),
        ("SELECT count(*) FROM things WHERE list_sum([f]) > 1", "UNKNOWN_FUNCTION"),
        ("SELECT count(*) FROM things WHERE d + INTERVAL (i) DAY > d", "LITERAL_NEEDED"),
        ("SELECT sum((SELECT f FROM things t WHERE t.pid = p.pid)) FROM people p", "SCALAR_SUBQUERY"),
    ],
)
def test_a6_functions_without_a_total_form_are_refused(sql: str, refusal: str, awkward: Pair) -> None:
    assert code(awkward[1], sql) == refusal


def test_a5_texts_do_not_grow(awkward: Pair) -> None:
    """A text of 100,000 characters is cut at 4,096 where it is read, and again wherever it could have grown."""
    grown = "replace(s || s, 'x', 'xxxxxxxxxxxxxxxx')"
    mine = "FROM things WHERE length(s) > 4000"
    assert one(awkward[1], f"SELECT sum(length({grown}), contribution_bounds_per_row => (0, 1e9)) {mine}") == 4096
    for _ in range(6):
        grown = f"replace({grown}, 'x', 'xxxxxxxxxxxxxxxx')"
    assert code(awkward[1], f"SELECT sum(length({grown}), contribution_bounds_per_row => (0, 1e9)) {mine}") == "TOO_COMPLEX"


ORDERED = [
    "row_number()",
    "rank()",
    "dense_rank()",
    "lag(f)",
    "lead(i, 2)",
    "first_value(f)",
    "sum(f)",
    "avg(f)",
    "count(f)",
    "max(s)",
    "any_value(f)",
    "ntile(2)",
    "nth_value(f, 2)",
    "percent_rank()",
    "cume_dist()",
]


FRAMED = [
    ("sum(f)", "UNBOUNDED PRECEDING"),
    ("avg(f)", "BETWEEN 2 PRECEDING AND CURRENT ROW"),
    ("max(s)", "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
    ("sum(i)", "BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"),
]


@pytest.mark.parametrize(
    ("function", "frame"), [*((function, "") for function in ORDERED), *((function, f" ROWS {frame}") for function, frame in FRAMED)]
)
def test_a4_what_ties_decide_is_decided_alike_in_whatever_order_rows_come(function: str, frame: str, ties: tuple[Session, ...]) -> None:
    """Inside a unit, ties broken by row order would change other people's rows when one person leaves, or the engine's mood."""
    inner = f"SELECT *, CAST({function} OVER (PARTITION BY pid ORDER BY d{frame}) AS VARCHAR) AS n FROM things"
    found = [rows(each, f"SELECT pid % 5 AS p, n, count(*) FROM ({inner}) GROUP BY p, n ORDER BY p, n") for each in ties]
    assert all(each == found[0] for each in found)
    assert sum(n for _, _, n in found[0]) == 200


@pytest.mark.parametrize("function", ["last_value(f)", "arg_min(f, d)", "string_agg(s)"])
def test_a4_what_depends_on_the_order_of_equal_rows_is_refused(function: str, awkward: Pair) -> None:
    sql = f"SELECT count(*) FROM (SELECT *, {function} OVER (PARTITION BY pid ORDER BY d) AS n FROM things) WHERE n = 1"
    assert code(awkward[0], sql) in ("WINDOW_FUNCTION", "AGGREGATE_IN_SUBQUERY")


def test_a4_no_aggregate_shows_the_value_of_a_row(awkward: Pair) -> None:
    for function in ("min", "max", "any_value", "first", "last", "mode", "list", "string_agg", "bool_or", "product"):
        with pytest.raises(Error) as refused:
            awkward[0].query(f"SELECT {function}(f) FROM things")
        assert refused.value.exit_status == 2


def test_a4_a_sketch_is_the_count_itself(awkward: Pair) -> None:
    """A sketch of distinct values would depend on the order of rows: the name means the capped, exact count."""
    counts = [rows(each, "SELECT approx_count_distinct(f), count(DISTINCT f) FROM things")[0] for each in awkward]
    assert all(sketch == exact for sketch, exact in counts)
    assert 0 <= counts[1][0] - counts[0][0] <= ROWS


INSIDE = [
    *("sum(f)", "avg(f)", "var_pop(f)", "stddev_samp(f)", "min(f)", "max(f)", "median(f)", "any_value(s)", "arg_max(i, d)", "mode(f)", "mode(s)"),
    *("count(DISTINCT s)", "quantile_cont(f, 0.3)", "bool_or(b)", "sum(f) FILTER (WHERE b)"),
    *("arg_max(i, 'x')", "arg_min('x', d)", "arg_min(1.5, TRUE)"),  # by a literal DuckDB orders nothing
]


@pytest.mark.parametrize("inner", INSIDE)
def test_n4_an_aggregate_inside_a_unit_is_the_units_own(inner: str, awkward: Pair) -> None:
    """No value of others changes with one person, whatever that person's rows hold: one group each for these, no more."""
    sql = f"SELECT v, count(*) FROM (SELECT pid, CAST({inner} AS VARCHAR) AS v FROM things GROUP BY pid) GROUP BY v"
    plain, other = (dict(rows(each, sql)) for each in awkward)
    moved = {key: other.get(key, 0) - plain.get(key, 0) for key in plain.keys() | other.keys()}
    assert sorted(n for n in moved.values() if n) == [1]
    assert sum(plain.values()) == 20
    capped = f"SELECT sum(v, contribution_bounds_per_row => (0, 1)) FROM (SELECT pid, length(CAST({inner} AS VARCHAR)) AS v FROM things GROUP BY pid)"
    one_more = [float(one(each, capped)) for each in awkward]
    assert 0 <= one_more[1] - one_more[0] <= 1


def test_n4_sums_inside_a_unit_do_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    """In doubles 1e16 + 1 - 1e16 is 0 or 1 as rows come; cents add up to 0.3 or 0.30000000000000004."""
    tables = """
tables:
  people: {unit: pid, max_rows_per_unit: 1, columns: {pid: {type: integer}}}
  sums: {unit: pid, columns: {pid: {type: integer}, x: {type: float, lower: -1e16, upper: 1e16}, c: {type: float, lower: 0, upper: 100}}}
"""
    start = "CREATE TABLE people AS SELECT i AS pid FROM range(500) t(i); CREATE TABLE sums AS SELECT i % 500 AS pid, "
    values = "[1e16, 1.0, -1e16, 3.0][1 + i // 500 % 4] AS x, [0.1, 0.2, 0.3, 0.7][1 + i // 500 % 4] AS c FROM range(20_000) t(i) ORDER BY "
    orders = ("i", "-i", "hash(i)", "x, i", "i % 7, i")
    schemas = [people.made(tmp_path / str(n), start + values + order, tables) for n, order in enumerate(orders)]
    inner = "SELECT pid, sum(x) AS s, avg(c) AS a, sum(c) AS t, stddev_pop(c) AS d FROM sums GROUP BY pid"
    with people.opened(*schemas) as sessions:
        for key in ("s", "a", "t", "d", "t * 100 = floor(t * 100)", "s > 0"):
            found = [rows(each, f"SELECT CAST({key} AS VARCHAR) AS k, count(*) FROM ({inner}) GROUP BY k") for each in sessions]
            assert all(each == found[0] for each in found)
            assert [n for _, n in found[0]] == [500]
    with people.opened(schemas[0]) as (session,):
        assert code(session, "SELECT sum(DISTINCT x) FROM sums") == "DISTINCT_AGGREGATE"
        assert code(session, "SELECT sum(x ORDER BY c) FROM sums") == "AGGREGATE_ORDER_BY"


def test_n6_two_zeros_are_one(tmp_path: Path) -> None:
    """0.0 and -0.0 are equal; what tells them apart would tell of row order."""
    data = "CREATE TABLE people AS SELECT 1 AS pid; CREATE TABLE zeros AS SELECT 1 AS pid, '-0.0'::DOUBLE AS z, 0.0::DOUBLE AS y;"
    tables = """
tables:
  people: {unit: pid, max_rows_per_unit: 1, columns: {pid: {type: integer}}}
  zeros: {unit: pid, columns: {pid: {type: integer}, z: {type: float}, y: {type: float}}}
"""
    with people.opened(people.made(tmp_path, data, tables)) as (session,):
        for zero in ("z", "y", "-y", "z * 5", "y * -1", "-(z + 0.0)"):
            assert str(rows(session, f"SELECT {zero} AS k, count(*) FROM zeros GROUP BY k")) == "[(0.0, 1)]"
        for sign in ("1 / z > 0", "1 / z < 0", "CAST(z AS VARCHAR) = '-0.0'", "sign(z) < 0"):
            assert one(session, f"SELECT count(*) FROM zeros WHERE {sign}") == 0
        for function in ("signbit", "atan2"):
            assert code(session, f"SELECT count(*) FROM zeros WHERE {function}(z, y) > 0") == "UNKNOWN_FUNCTION"


def test_c1_a_sum_is_clamped_to_what_rows_can_reach(whole: Session) -> None:
    """One row of 50 under bounds (10, 50) and twenty rows at most: 50, not twenty times the lower bound."""
    alone = "sum(age, contribution_bounds_per_row => (10, 50)) FROM people"
    assert one(whole, f"SELECT {alone} WHERE pid = 30") == 50
    assert one(whole, f"SELECT {alone} WHERE pid = 1000") == 0
    rows_of_a_visit = "sum(k + 10, contribution_bounds_per_row => (10, 50)) FROM visits"
    assert one(whole, f"SELECT {rows_of_a_visit} WHERE vid = 7") == 12
    assert one(whole, f"SELECT {rows_of_a_visit} WHERE vid = -7") == 0


def test_c13_a_result_inside_a_unit_is_clamped_where_it_is_released(tmp_path: Path) -> None:
    """One person has a thousand rows beyond all bounds: nothing of that person moves an answer further than EXPLAIN claims."""
    more = "INSERT INTO people VALUES (77, 20, 'US', 'US'); INSERT INTO visits SELECT 5000 + i, 77, '2024-01-01', 1e6, 1, 's1' FROM range(1000) t(i);"
    inner = "SELECT pid, {} AS v FROM visits GROUP BY pid"
    with people.opened(people.made(tmp_path / "a"), people.made(tmp_path / "b", people.DATA + more)) as (plain, other):
        for function, most in (("count(*)", 20), ("sum(x)", 200), ("max(x)", 10), ("avg(x)", 10), ("median(x)", 10)):
            sql = f"SELECT sum(v) FROM ({inner.format(function)})"
            claim = shown(plain, sql)["releases"][0]
            assert claim["linf"] == claim["l1"] == most
            assert one(other, sql) - one(plain, sql) == pytest.approx(most, abs=1e-6)
        assert one(other, f"SELECT count(*) FROM ({inner.format('count(*)')}) WHERE v = 1000") == 1, "a filter reads the exact value"


def test_c14_infinities_clamp_and_count(awkward: Pair) -> None:
    """A sum takes an infinity as its bound, not as a missing value, and a NaN as a missing one, never as the upper bound."""
    mine = "FROM things WHERE pid = 77"
    assert one(awkward[1], f"SELECT sum(f) {mine} AND s NOT LIKE '%\\_%' ESCAPE '\\' AND f > 1e307") == 10 + 10
    assert one(awkward[1], f"SELECT sum(f) {mine} AND f < -1e307") == -10 - 10
    assert one(awkward[1], f"SELECT sum(f) {mine} AND s = ''") == 0
    assert one(awkward[1], f"SELECT count(f) {mine} AND s = ''") == 0


def test_e_one_nan_does_not_erase_a_sum(awkward: Pair) -> None:
    plain, other = (one(each, "SELECT sum(f) FROM things") for each in awkward)
    assert plain == sum(i % 21 - 10 for i in range(200))
    assert abs(other - plain) <= 10 * ROWS


def test_e_an_aggregate_over_nothing_is_one_row(whole: Session) -> None:
    """And a mean of nothing is the middle of its bounds: that nobody is there does not show."""
    for nobody in ("FALSE", "pid = 123456", "x > 1000"):
        assert rows(whole, f"SELECT count(*), count(x), count(DISTINCT pid), sum(x), avg(x) FROM visits WHERE {nobody}") == [(0, 0, 0, 0, 0)]
    assert one(whole, "SELECT avg(age) FROM people WHERE FALSE") == 60


def test_e_the_bounds_are_those_of_the_expression_that_is_summed(whole: Session) -> None:
    """A clamp on the base column would not hold for a function of it."""
    assert one(whole, "SELECT sum(x * x * x, contribution_bounds_per_row => (-1, 1)) FROM visits WHERE x > 2") == one(
        whole, "SELECT count(*) FROM visits WHERE x > 2"
    )
    assert code(whole, "SELECT sum(x / k) FROM visits") == "MISSING_BOUNDS"
    assert code(whole, "SELECT sum(k) FROM visits") == "MISSING_BOUNDS"


def test_c10_bounds_that_nobody_declared_are_not_found(whole: Session) -> None:
    """Neither without a word nor where they are asked for: nothing looks for bounds in private rows."""
    asked = {
        "": "MISSING_BOUNDS",
        ", contribution_bounds_per_row => NULL": "BOUNDS_NOT_LITERAL",
        ", contribution_bounds_per_row => 'AUTO'": "BOUNDS_NOT_LITERAL",
    }
    for more, refusal in asked.items():
        for function in ("sum", "avg"):
            assert code(whole, f"SELECT {function}(x / k{more}) FROM visits") == refusal


def test_e_reversed_bounds_are_refused(whole: Session) -> None:
    for bounds in ("contribution_bounds_per_row => (5, -5)", "contribution_bounds_per_group => (1, 0)"):
        assert code(whole, f"SELECT sum(x, {bounds}) FROM visits") == "REVERSED_BOUNDS"
    assert code(whole, "SELECT sum(x, contribution_bounds_per_row => (0, 0)) FROM visits") == "BAD_BOUNDS"


def test_e_pairs_of_columns_count_where_both_are_known(whole: Session) -> None:
    """A row that lacks either value is in neither sum nor count; a divisor of other rows would bias all."""
    both = rows(whole, "SELECT covar_pop(x, CASE WHEN k = 1 THEN x END), corr(CASE WHEN k = 1 THEN x END, x + 1) FROM visits")[0]
    assert both[0] == pytest.approx(one(whole, "SELECT var_pop(x) FROM visits WHERE k = 1"), abs=1e-6)
    assert both[1] == pytest.approx(1, abs=1e-6)
    assert one(whole, "SELECT covar_pop(x, CASE WHEN FALSE THEN x END) FROM visits") == 0
    assert code(whole, "SELECT corr(x, k) FROM visits") == "MISSING_BOUNDS"
    assert code(whole, "SELECT regr_slope(x, x) FROM visits") == "CORRELATION"


def test_e_pairs_move_no_further_than_their_claims(awkward: Pair) -> None:
    """Each of the noisy sums that a covariance is made of, whatever is in the rows of one person."""
    for function in ("covar_pop", "covar_samp", "corr"):
        found = [one(each, f"SELECT {function}(f, i) FROM things") for each in awkward]
        assert all(abs(value) <= 100 for value in found)
    claimed = shown(awkward[0], "SELECT covar_pop(f, i) FROM things")["releases"]
    assert claimed == shown(awkward[1], "SELECT covar_pop(f, i) FROM things")["releases"]


def test_h_distinct_values_are_capped_by_person_and_merged_over_people(whole: Session) -> None:
    truth = one(whole, "SELECT count(DISTINCT s) FROM visits")
    assert truth == rows(whole, "SELECT count(DISTINCT s), count(DISTINCT pid), count(s) FROM visits")[0][0]
    capped = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_per_group = {}) count(DISTINCT vid) FROM visits"
    assert (one(whole, capped.format(1)), one(whole, capped.format(3))) == (40, 120)


def test_a2_row_weights_do_not_go_with_what_does_not_add_up(whole: Session) -> None:
    weighed = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 4)"
    assert code(whole, f"{weighed} count(DISTINCT pid) FROM visits") == "ROW_WEIGHTS"
    assert code(whole, f"{weighed} sum(x, contribution_bounds_per_group => (5, 10)) FROM visits") == "PER_GROUP_BOUNDS"
    assert code(whole, f"{weighed} s, count(*) FROM visits GROUP BY s") == "ROW_WEIGHTS"
    assert one(whole, f"{weighed} count(*) FROM visits") == pytest.approx(4 * 40, abs=1e-3)


def test_w1_a_unit_with_few_rows_counts_them_whole(whole: Session) -> None:
    assert one(whole, "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 50) count(*) FROM visits") == 400
    assert one(whole, "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 10) count(*) FROM people") == 40
