"""Totality: no allowed function can make the engine raise, whatever the data and wherever the expression stands."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from scalars import IDS, TYPES, scalar

from dpquery.backends.scalar import sql
from dpquery.backends.values import scan, type_name
from dpquery.errors import Refused
from dpquery.plan.coerce import LONGEST
from dpquery.plan.functions import FUNCTIONS
from dpquery.plan.scalar import Call, Cast, columns, walk
from dpquery.values.types import Kind


def split(text: str) -> list[str]:
    """Expressions and values are listed many to a line."""
    return [one.strip() for line in text.strip().splitlines() for one in line.split(" ; ")]


EXTREMES: dict[Kind, list[str]] = {
    Kind.INTEGER: split("""
        NULL ; 0 ; 1 ; -1 ; 2 ; 7 ; 10000 ; 4000001 ; 9223372036854775807 ; 9223372036854775806 ; '-9223372036854775808'::BIGINT ; 4611686018427387904
        -3037000500 ; 9007199254740993
    """),
    Kind.DECIMAL: split("NULL ; 0 ; 1 ; -1 ; 0.01 ; -0.05 ; 1e12::DECIMAL(38,2) ; '9e33' ; '-9e33'"),
    Kind.FLOAT: split("""
        NULL ; 0e0 ; '-0.0'::DOUBLE ; 1e0 ; -1e0 ; 0.5e0 ; 2.5e0 ; 1e16 ; 9.223372036854775807e18 ; -9.3e18 ; 1e38 ; 1e300 ; -1e308
        1.7976931348623157e308 ; 5e-324 ; -5e-324 ; 'inf'::DOUBLE ; '-inf'::DOUBLE ; 'nan'::DOUBLE ; -('nan'::DOUBLE)
    """),
    Kind.STRING: split("""
        NULL ; '' ; ' ' ; 'a' ; repeat('a', 4096) ; repeat('🦆', 4096) ; repeat(' ', 4096) ; '\u0130\u0149\xdf\u0301' ; chr(0) || 'x' || chr(0)
        '%_\\$' ; '9223372036854775808' ; '-0' ; 'nan' ; '-inf' ; '1e400' ; '2024-01-01' ; 'infinity' ; '00000000-0000-0000-0000-00000000000g'
        '\u200b\u202e\ufeff' ; '294247-01-10 04:00:54.775807' ; 't' ; '99999-13-45' ; '2024-02-30 25:61:61' ; '0x1F' ; '1_000'
    """),
    Kind.DATE: split("""
        NULL ; '1970-01-01' ; '2024-02-29' ; '0001-01-01' ; '9999-12-31' ; '0001-01-01 (BC)' ; 'infinity' ; '-infinity' ; '5881580-07-10'
        '5877642-06-25 (BC)' ; '294247-01-11' ; '10000-01-01'
    """),
    Kind.TIMESTAMP: split("""
        NULL ; '1970-01-01 00:00:00' ; '2024-02-29 23:59:59.999999' ; '0001-01-01 00:00:00' ; '9999-12-31 23:59:59.999999' ; 'infinity' ; '-infinity'
        '294247-01-10 04:00:54.775806' ; '290309-12-22 (BC) 00:00:00' ; '10000-01-01 00:00:00'
    """),
    Kind.BOOLEAN: split("NULL ; TRUE ; FALSE"),
    Kind.UUID: split("NULL ; '00000000-0000-0000-0000-000000000000' ; 'ffffffff-ffff-ffff-ffff-ffffffffffff'"),
}
WIDEST = {0: "repeat('9', 38)", 2: "repeat('9', 36) || '.99'", 4: "repeat('9', 34) || '.9999'"}

PARTS = ["year", "isoyear", "quarter", "month", "week", "day", "doy", "dow", "isodow", "hour", "minute", "second", "epoch"]
UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"]

GENERATED = [
    *(f"{a} {op} {b}" for op in "+-*/%" for a, b in ("ij", "pq", "xy", "ip", "px", "ix", "zp", "zq")),
    *(f"{a} {op} {b}" for op in ("=", "<>", "<", "<=", ">", ">=") for a, b in ("ij", "pq", "xy", "ix", "px", "st", "de", "fg")),
    *(f"{f}({a}{n})" for f in ("round", "trunc") for a in "ixpqz" for n in ["", *(f", {n}" for n in (0, 1, 3, 38, -1, -18, -19, -20, -37, -38))]),
    *(f"{f}({a})" for f in ("abs", "sign", "floor", "ceil", "sqrt", "exp", "ln", "log10", "log2", "log") for a in "ixp"),
    *(
        f"CAST({a} AS {to})"
        for a in "ixpqzfs"
        for to in ("BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN", "DECIMAL(38, 0)", "DECIMAL(38, 2)", "DECIMAL(38, 37)")
    ),
    *(f"{f}(s)" for f in ("lower", "upper", "trim", "ltrim", "rtrim", "length")),
    *(f"{f}(s, {n})" for f in ("left", "right", "substring") for n in (0, 1, -1, 4096, -4096)),
    *(f"date_part('{part}', {a})" for part in PARTS for a in ("d", "ts")),
    *(f"date_trunc('{unit}', {a})" for unit in UNITS for a in ("d", "ts")),
    *(f"date_diff('{unit}', {a}, {b})" for unit in UNITS for a, b in (("d", "e"), ("ts", "tu"), ("d", "ts"))),
    *(
        f"{a} {op} INTERVAL {n}"
        for a in ("d", "ts")
        for op in "+-"
        for n in ("1 MONTH", "9999 YEAR", "3000000 DAY", "9 MICROSECOND", "'1 month 3 days'")
    ),
]

WRITTEN = r"""
i // j ; i // -1 ; i // 7 ; i // 0 ; i % -1 ; i % 0 ; x % 0 ; p % 0 ; x / 0 ; i * -1 ; i + 9223372036854775807 ; p * 1.5 ; p * 99999.99
p * 0.0000000001 ; 1.5 * z ; x * 1e308 ; x * x ; x + x - x ; x / 5e-324 ; p * 9223372036854775807 ; i * 12345678901234567890.12 ; p * p ; -i ; -x
-p ; log(x, y) ; log(2, x) ; log(3, x) ; log(x, 5) ; power(x, y) ; power(x, -1) ; power(x, 0) ; power(x, 0.5) ; power(i, j) ; x ** 3 ; x ** -3
power(sqrt(x), 0) ; power(1, x - x) ; sqrt(ln(x)) + ln(exp(x)) ; (x - x) / (y - y) ; x * y - x * y ; 1 / (1 / (1 / x)) ; x / y / x / y
i IS DISTINCT FROM j ; x IS NOT DISTINCT FROM y ; i BETWEEN j AND 5 ; x BETWEEN y AND 1e308 ; d BETWEEN e AND '2024-01-01' ; s BETWEEN t AND 'z'
i IN (1, -9223372036854775808, NULL) ; x IN (1, 1e308) ; s IN ('a', '') ; d IN ('2024-02-29') ; u IN ('00000000-0000-0000-0000-000000000000')
f AND g ; f OR g ; NOT f ; f IS TRUE ; f IS FALSE ; x IS NULL ; x + y IS NULL ; i IS NULL ; s IS NULL ; NOT (x - y > 1 AND f)
CASE WHEN x > 0 THEN 1 / x WHEN y < 0 THEN ln(y) ELSE x - y END ; CASE i WHEN j THEN x ELSE y END ; if(f, i, p) ; nullif(x, y) ; nullif(s, t)
coalesce(x / y, x - y, 0) ; coalesce(i, j) ; coalesce(d, e) ; greatest(x, y) ; least(x, y, 0) ; greatest(i, j) ; least(p, q) ; greatest(d, ts)
CAST(s AS DATE) ; CAST(s AS TIMESTAMP) ; CAST(s AS UUID) ; CAST(d AS TIMESTAMP) ; CAST(ts AS DATE) ; CAST(d AS VARCHAR) ; CAST(ts AS VARCHAR)
CAST(u AS VARCHAR) ; CAST(CAST(s AS DOUBLE) AS BIGINT) ; CAST(x AS DECIMAL(38, 20)) * CAST(y AS DECIMAL(38, 2)) ; CAST(i AS DECIMAL(38, 22))
substring(s, 0, -4096) ; substring(s, -4096, 4096) ; substring(s, 4096, -1) ; substring(s, 2, 0) ; s || t ; s || s || s || s || s || t
concat(s, t, s, t, s, t, s, t, s) ; concat(s) ; s || x ; concat(s, i, f) ; concat(s, d, u) ; concat(s, p, ts) ; upper(s || t) || lower(t)
replace(s, 'a', 'aaaaaaaaaaaaaaaa') ; replace(s, '', 'x') ; replace(s, '🦆', '') ; replace(replace(s, 'a', '🦆🦆🦆'), '🦆', 'aa')
starts_with(s, '🦆') ; ends_with(s, '') ; contains(s, 'aaaaaaaaaaaaaaaaaaaaab') ; strpos(s, '') ; strpos(s, 'a🦆') ; s LIKE '%a%a%a%a%a%b'
s ILIKE '%A_🦆%' ; s LIKE '$%$_$$%' ESCAPE '$' ; s ILIKE '%$_%' ESCAPE '$' ; s LIKE '' ; s NOT LIKE '_%' ; s LIKE '%\_' ESCAPE '\'
d + INTERVAL 9999 YEAR + INTERVAL 9999 YEAR ; date_trunc('week', d - INTERVAL 9999 YEAR) ; d + i ; d - i ; d + 3652059 ; d - 2147483647 - 1
d - e ; last_day(d) ; last_day(ts) ; dayname(d) ; dayname(ts) ; monthname(d) ; monthname(ts) ; last_day(d + 40) ; year(d + i) + i
CAST(d + i AS TIMESTAMP)
"""

EXPRESSIONS = {text: scalar(text) for text in dict.fromkeys([*GENERATED, *split(WRITTEN)])}


def values(name: str) -> list[str]:
    kind = TYPES[name]
    found = [
        f"CAST({value} AS {type_name(kind)})" for value in EXTREMES[kind.kind] if not (kind.scale == 0 and kind.kind is Kind.DECIMAL and "." in value)
    ]
    if kind.kind is Kind.DECIMAL:
        found += [f"CAST({sign}({WIDEST[kind.scale]}) AS {type_name(kind)})" for sign in ("", "'-' || ")]
    return found


def names_of(text: str) -> list[str]:
    """The columns an expression reads, in the order of the table of types."""
    return sorted((column.name for column in columns(EXPRESSIONS[text])), key=list(TYPES).index)


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """On disk, so that the optimizer has exact statistics: one table of all values per column, and one table per value."""
    path = tmp_path_factory.mktemp("total") / "total.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("SET threads = 1")
        for name in TYPES:
            con.execute(f"CREATE TABLE all_{name} AS SELECT * FROM (VALUES {', '.join(f'({value})' for value in values(name))}) v({name})")
            for place, value in enumerate(values(name)):
                con.execute(f"CREATE TABLE one_{name}_{place} AS SELECT {value} AS {name}")
        con.execute("CHECKPOINT")
        yield con


def test_every_function_is_tried() -> None:
    tried = {node.function for found in EXPRESSIONS.values() for node in walk(found) if isinstance(node, Call)}
    assert tried == set(FUNCTIONS)


def test_every_cast_is_tried() -> None:
    from dpquery.plan.coerce import CASTS

    tried = {(node.arg.type.kind, node.type.kind) for found in EXPRESSIONS.values() for node in walk(found) if isinstance(node, Cast)}
    allowed = {(source, to) for source, targets in CASTS.items() for to in targets if source is not Kind.NULL}
    assert allowed <= tried


IDS_TO_NAMES = {place: name for name, place in IDS.items()}
GROUPS = {
    names: [text for text in EXPRESSIONS if tuple(names_of(text)) == names] for names in dict.fromkeys(tuple(names_of(text)) for text in EXPRESSIONS)
}
"""The expressions by the columns they read: those of a group run in one statement."""


def run(con: duckdb.DuckDBPyConnection, shape: str, made: dict[str, str]) -> None:
    """Runs `shape` with the expressions in place of `{}`; where that raises, with each alone, to name it."""
    try:
        con.execute(shape.format(", ".join(made.values()))).fetchall()
    except duckdb.Error:
        for text, one in made.items():
            try:
                con.execute(shape.format(one)).fetchall()
            except duckdb.Error as error:
                pytest.fail(f"{text}: {error}")
        raise


@pytest.mark.parametrize("names", GROUPS, ids=",".join)
def test_nothing_raises(con: duckdb.DuckDBPyConnection, names: tuple[str, ...]) -> None:
    """Raw columns, not canonical ones: selected, as a condition, as a join condition, and on one-row tables whose statistics say it all."""
    made = {text: sql(EXPRESSIONS[text], IDS_TO_NAMES) for text in GROUPS[names]}
    tables = [f"all_{name}" for name in names]
    run(con, f"SELECT {{}} FROM {' CROSS JOIN '.join(tables)}", made)
    conditions = {text: one if EXPRESSIONS[text].type.kind is Kind.BOOLEAN else f"({one}) IS NOT NULL" for text, one in made.items()}
    for text, one in conditions.items():
        run(con, f"SELECT count(*) FROM {' CROSS JOIN '.join(tables)} WHERE {{}}", {text: one})
        if len(names) == 2:
            run(con, f"SELECT count(*) FROM {tables[0]} LEFT JOIN {tables[1]} ON {{}}", {text: one})
    for name in names:
        others = [f"all_{other}" for other in names if other != name]
        for place in range(len(values(name))):
            source = " CROSS JOIN ".join([f"one_{name}_{place}", *others])
            run(con, f"SELECT {{}} FROM {source}", {text: f"max({one})" for text, one in made.items()})
            run(con, f"SELECT {{}} FROM {source}", {text: f"count(*) FILTER (WHERE {one})" for text, one in conditions.items()})


@pytest.mark.parametrize("names", GROUPS, ids=",".join)
def test_constants_do_not_raise(con: duckdb.DuckDBPyConnection, names: tuple[str, ...]) -> None:
    """Constants are folded while the statement is planned; that must not raise either."""
    chosen = list(itertools.product(*(values(name) for name in names)))
    for some in chosen[:: max(1, len(chosen) // 40)]:
        given = {IDS[name]: value for name, value in zip(names, some, strict=True)}
        run(con, "SELECT {}", {text: sql(EXPRESSIONS[text], given) for text in GROUPS[names]})


@pytest.mark.parametrize("names", GROUPS, ids=",".join)
def test_results_are_canonical(con: duckdb.DuckDBPyConnection, names: tuple[str, ...]) -> None:
    """Over scanned columns: the type that the plan says, no NaN, no -0.0, no text beyond the limit."""
    sources = " CROSS JOIN ".join(f"(SELECT {scan(f'r.{name}', TYPES[name])} AS {name} FROM all_{name} r)" for name in names)
    for text in GROUPS[names]:
        kind, made = EXPRESSIONS[text].type, sql(EXPRESSIONS[text], IDS_TO_NAMES)
        wrong = {
            Kind.FLOAT: "count(*) FILTER (WHERE isnan(r) OR (r = 0 AND signbit(r)))",
            Kind.STRING: f"count(*) FILTER (WHERE length(r) > {LONGEST})",
        }
        query = f"SELECT min(typeof(r)), max(typeof(r)), {wrong.get(kind.kind, '0')} FROM (SELECT {made} AS r FROM {sources})"
        assert con.execute(query).fetchall() == [(type_name(kind), type_name(kind), 0)], text


def test_parquet_columns_do_not_raise(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """Files bring statistics and dictionaries of their own."""
    for name in TYPES:
        con.execute(f"COPY (SELECT * FROM all_{name}, range(50)) TO '{tmp_path}/{name}.parquet'")
    for names, texts in GROUPS.items():
        if len(names) == 1:
            run(con, f"SELECT {{}} FROM '{tmp_path}/{names[0]}.parquet'", {text: f"max({sql(EXPRESSIONS[text], IDS_TO_NAMES)})" for text in texts})


PLAIN = split("""
i + j ; i - j ; i * j ; -i ; abs(i) ; i // j ; i % j ; p + q ; p * q ; round(i, -1) ; round(z, -1) ; CAST(x AS BIGINT) ; CAST(s AS DATE)
d + INTERVAL 1 MONTH ; date_trunc('month', d) ; last_day(d) ; date_diff('microsecond', ts, tu) ; CAST(d AS TIMESTAMP) ; d + 3652059
""")


@pytest.mark.parametrize("text", PLAIN)
def test_plain_forms_do_raise(con: duckdb.DuckDBPyConnection, text: str) -> None:
    """The extreme values are extreme enough: without total forms these fail."""
    with pytest.raises(duckdb.Error):
        con.execute(f"SELECT {text} FROM {' CROSS JOIN '.join(f'all_{name}' for name in names_of(text))}").fetchall()


def test_nothing_is_named_too_often() -> None:
    """Divisions within divisors double the text each time: refused long before the engine would choke on it, and not by a stack that overflows."""
    deep = "x"
    for _ in range(40):
        deep = f"1 / ({deep})"
    with pytest.raises(Refused) as refused:
        sql(scalar(deep), IDS_TO_NAMES)
    assert refused.value.code == "TOO_COMPLEX"
    assert len(sql(scalar(" + ".join(["x"] * 150)), IDS_TO_NAMES)) < 10_000
    assert len(sql(scalar(f"i IN ({', '.join(map(str, range(10_000)))})"), IDS_TO_NAMES)) < 100_000
