"""Extreme values of every type, and expressions that together call every allowed function and cast."""

from __future__ import annotations

from scalars import TYPES, scalar

from dpquery.backends.values import type_name
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
        NULL ; '' ; ' ' ; 'a' ; 'aé' ; repeat('a', 4096) ; repeat('🦆', 4096) ; repeat(' ', 4096) ; '\u0130\u0149\xdf\u0301' ; chr(0) || 'x' || chr(0)
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
    *(f"{f}(s, ' ax\u00e9')" for f in ("trim", "ltrim", "rtrim")),
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
s LIKE t ; s ILIKE t || '%' ; s LIKE s ; t LIKE '%' || s ; s ~ '^(a|\s)*$' ; s ~ '(?i)[^a-z%]{3,64}[\s\S]*🦆' ; s SIMILAR TO '(..|a)+' ; s ~ ''
regexp_extract(s, '(a*)([^a]?)', 2) ; regexp_extract(s, '\w+$') ; regexp_replace(s, '', 'xxxxxxxxxxxxxxxx', 'g')
regexp_replace(s, '.', '\0\0\0', 'g') ; regexp_replace(s, '(a)|(b?)', '\2\\\1') ; regexp_replace(s, '\b', 'x', 'g') ; regexp_replace(s, '$|\b', '-')
regexp_matches(s || t, 'a.{0,100}🦆|\bz') ; length(regexp_replace(s, '[^[:alnum:]]+', '', 'g'))
d + INTERVAL 9999 YEAR + INTERVAL 9999 YEAR ; date_trunc('week', d - INTERVAL 9999 YEAR) ; d + i ; d - i ; d + 3652059 ; d - 2147483647 - 1
d - e ; last_day(d) ; last_day(ts) ; dayname(d) ; dayname(ts) ; monthname(d) ; monthname(ts) ; last_day(d + 40) ; year(d + i) + i
CAST(d + i AS TIMESTAMP)
"""

EXPRESSIONS = {text: scalar(text) for text in dict.fromkeys([*GENERATED, *split(WRITTEN)])}


def values(name: str) -> list[str]:
    """The extreme values of a column, each as SQL of its type."""
    kind = TYPES[name]
    found = [
        f"CAST({value} AS {type_name(kind)})" for value in EXTREMES[kind.kind] if not (kind.scale == 0 and kind.kind is Kind.DECIMAL and "." in value)
    ]
    if kind.kind is Kind.DECIMAL:
        found += [f"CAST({sign}({WIDEST[kind.scale]}) AS {type_name(kind)})" for sign in ("", "'-' || ")]
    return found
