"""Literals and raw columns: any physical type, any value, in canonical form or NULL."""

from __future__ import annotations

import datetime
import math
import uuid
from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pytest
from extremes import EXTREMES
from scalars import TYPES

from dpquery.backends.scalar import literal, scan
from dpquery.backends.values import type_name
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, STRING, TIMESTAMP, UUID, Kind, Type, Value

PHYSICAL = {
    **{name: ["0", "1"] for name in ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")},
    "BIGINT": EXTREMES[Kind.INTEGER],
    "UBIGINT": ["0", "18446744073709551615"],
    "HUGEINT": ["0", "170141183460469231731687303715884105727", "-170141183460469231731687303715884105728"],
    "UHUGEINT": ["340282366920938463463374607431768211455"],
    "FLOAT": ["'nan'", "'inf'", "'-inf'", "'-0.0'", "3.4e38", "1e-45", "0.1"],
    "DOUBLE": EXTREMES[Kind.FLOAT],
    "DECIMAL(4,1)": ["999.9", "-0.1"],
    "DECIMAL(18,18)": ["0.999999999999999999"],
    "DECIMAL(38,0)": ["99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"],
    "DECIMAL(38,38)": ["'0.99999999999999999999999999999999999999'"],
    "VARCHAR": [
        *EXTREMES[Kind.STRING],
        "repeat('a', 5000)",
        "repeat('🦆', 5000)",
        "repeat('é', 4096)",
        "'1e37'",
        "'9999999999999999999999999999999999999999'",
    ],
    "DATE": EXTREMES[Kind.DATE],
    "TIMESTAMP": EXTREMES[Kind.TIMESTAMP],
    "TIMESTAMP_S": ["'infinity'", "'2024-01-01 00:00:00'"],
    "TIMESTAMP_MS": ["'-infinity'", "'2024-01-01 00:00:00'"],
    "TIMESTAMP_NS": ["'1677-09-22 00:00:00'", "'2024-01-01 00:00:00'"],
    "BOOLEAN": ["TRUE", "FALSE"],
    "UUID": ["'00000000-0000-0000-0000-000000000001'"],
}
KINDS = [BOOLEAN, INTEGER, FLOAT, STRING, DATE, TIMESTAMP, UUID, Type(Kind.DECIMAL, 0), Type(Kind.DECIMAL, 2), Type(Kind.DECIMAL, 38)]


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        yield con


@pytest.mark.parametrize("physical", PHYSICAL)
def test_any_column_can_be_scanned_as_any_type(con: duckdb.DuckDBPyConnection, physical: str) -> None:
    rows = ", ".join(f"(CAST({value} AS {physical}))" for value in ["NULL", *PHYSICAL[physical]])
    con.execute(f"CREATE OR REPLACE TABLE raw AS SELECT * FROM (VALUES {rows}) v(x)")
    for kind in KINDS:
        con.execute(f"SELECT count({scan('x', kind)}) FROM raw WHERE {scan('x', kind)} IS NOT NULL").fetchall()
        con.execute(f"CREATE OR REPLACE TABLE scanned AS SELECT {scan('x', kind)} AS y FROM raw")
        assert con.execute("SELECT DISTINCT typeof(y) FROM scanned").fetchall() == [(type_name(kind),)]
        if kind == FLOAT:
            assert con.execute("SELECT count(*) FROM scanned WHERE isnan(y) OR (y = 0 AND signbit(y))").fetchall() == [(0,)]
        if kind == STRING:
            assert con.execute("SELECT count(*) FROM scanned WHERE length(y) > 4096").fetchall() == [(0,)]


def test_scans_keep_what_fits(con: duckdb.DuckDBPyConnection) -> None:
    kept = {
        ("'inf'::DOUBLE", FLOAT): math.inf,
        ("'nan'::DOUBLE", FLOAT): None,
        ("'-0'", FLOAT): 0.0,
        ("' 12 '", INTEGER): 12,
        ("'x'", INTEGER): None,
        ("9223372036854775808::HUGEINT", INTEGER): None,
        ("19.99::DECIMAL(10,2)", Type(Kind.DECIMAL, 2)): Decimal("19.99"),
        ("'infinity'::DATE < 'infinity'::DATE", BOOLEAN): False,
        ("TIMESTAMP '2024-01-01 10:00:00'", DATE): datetime.date(2024, 1, 1),
        ("DATE '5881580-07-10'", TIMESTAMP): None,
        ("'a' || chr(0) || 'b'", STRING): "a\0b",
        ("repeat('é', 4097)", STRING): "é" * 4096,
        ("'00000000000000000000000000000001'", UUID): uuid.UUID(int=1),
    }
    for (text, kind), wanted in kept.items():
        assert con.execute(f"SELECT {scan('x', kind)} FROM (SELECT {text} AS x)").fetchall() == [(wanted,)], text


VALUES: list[tuple[Value, Type]] = [
    *((n, INTEGER) for n in (0, 1, -1, 2**31, 2**63 - 1, -(2**63), -(2**63) + 1)),
    *((Decimal(text), Type(Kind.DECIMAL, 2)) for text in ("0", "-0.05", "19.99", "9" * 36 + ".99", "-" + "9" * 36 + ".99")),
    (Decimal("0." + "9" * 38), Type(Kind.DECIMAL, 38)),
    *((x, FLOAT) for x in (0.0, 0.1, -0.1, 1e22, -1e-7, 5e-324, 1.7976931348623157e308, 2.5, math.inf, -math.inf, 123456789.123456789)),
    *((text, STRING) for text in ("", "it's", "''", "a\\'b", "line\nbreak", "🦆", "a\0b", "\0", "$$", "--", ";", "%", "é" * 4096)),
    (datetime.date(1, 1, 1), DATE),
    (datetime.date(9999, 12, 31), DATE),
    (datetime.date(999, 2, 3), DATE),
    (datetime.datetime(1, 1, 1), TIMESTAMP),
    (datetime.datetime(2024, 2, 29, 1, 2, 3, 4), TIMESTAMP),
    (datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), TIMESTAMP),
    (True, BOOLEAN),
    (False, BOOLEAN),
    (uuid.UUID(int=2**128 - 1), UUID),
    *((None, kind) for kind in TYPES.values()),
]


@pytest.mark.parametrize(("value", "kind"), VALUES, ids=lambda one: str(one)[:20].encode("unicode_escape").decode())
def test_literals_come_back(con: duckdb.DuckDBPyConnection, value: Value, kind: Type) -> None:
    text = literal(value, kind)
    assert con.execute(f"SELECT {text}, typeof({text}), {text} IS NOT DISTINCT FROM {text}").fetchall() == [(value, type_name(kind), True)]


def test_literals_that_have_another_form(con: duckdb.DuckDBPyConnection) -> None:
    assert con.execute(f"SELECT {literal(math.nan, FLOAT)}, signbit({literal(-0.0, FLOAT)})").fetchall() == [(None, False)]
    assert literal(5, FLOAT) == "5.0e0::DOUBLE"
    assert literal(True, INTEGER) == "1::BIGINT"
