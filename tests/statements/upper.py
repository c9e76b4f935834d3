"""One entry for each node that is allowed above the noise, and for each window: what a statement computes from its aggregates. test_grammar.py fails
where one has none.

`{a}` and `{b}` are aggregates, `{s}`, `{d}` and `{t}` a text, a date and a timestamp made of one. The reference runs the same text in plain DuckDB
over the answer without noise; what fails there is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grammar import Grammar, More
from sqlglot import exp

TEXT, DAY = "CAST({a} AS VARCHAR)", "(DATE '2024-01-29' + CAST({a} AS INTEGER) % 5)"
SHORT = {"{s}": TEXT, "{d}": DAY, "{t}": f"CAST({DAY} AS TIMESTAMP)"}


def _of_two(*signs: str) -> tuple[str, ...]:
    return tuple(f"{{a}} {sign} {{b}}" for sign in signs)


def _called(*names: str, of: str = "{a}") -> tuple[str, ...]:
    return tuple(f"{name}({of})" for name in names)


UPPER: Mapping[type[exp.Expr], tuple[str, ...]] = {
    exp.Add: ("{a} + {b}", "{a} + 3"),
    exp.Sub: ("{a} - {b}", "7 - {a}"),
    exp.Mul: ("{a} * {b}", "{a} * 2", "-3 * {a} + 1"),
    exp.Mod: ("{a} % 3",),
    exp.Pow: ("power({a}, 2)", "{a} ** 2"),
    **{node: _of_two(sign) for node, sign in ((exp.EQ, "="), (exp.NEQ, "<>"), (exp.LT, "<"), (exp.LTE, "<="), (exp.GT, ">"), (exp.GTE, ">="))},
    exp.And: ("{a} > 0 AND {b} > 1",),
    exp.Or: ("{a} > 1 OR {b} < 0",),
    exp.NullSafeEQ: ("{a} IS NOT DISTINCT FROM {b}",),
    exp.NullSafeNEQ: ("{a} IS DISTINCT FROM {b}",),
    exp.Nullif: ("nullif({a}, {b})", "{a} / nullif({b}, 0)", "2 * {a} / nullif({b}, 0)"),
    exp.Atan2: ("atan2({a}, {b})",),
    exp.StartsWith: ("starts_with({s}, '1')",),
    exp.EndsWith: ("ends_with({s}, '0')",),
    exp.Contains: ("contains({s}, '1')",),
    exp.Left: ("left({s}, 1)",),
    exp.Right: ("right({s}, 1)",),
    **dict(
        zip(
            (exp.Abs, exp.Sign, exp.Sqrt, exp.Cbrt, exp.Exp, exp.Ln, exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan),
            ((one,) for one in _called("abs", "sign", "sqrt", "cbrt", "exp", "ln", "sin", "cos", "tan", "asin", "acos", "atan")),
            strict=True,
        )
    ),
    exp.Degrees: ("degrees({a})",),
    exp.Radians: ("radians({a})",),
    **dict(
        zip(
            (exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Week, exp.DayOfWeek, exp.DayOfYear, exp.Dayname, exp.Monthname, exp.LastDay),
            (
                (one,)
                for one in _called("year", "month", "day", "quarter", "week", "dayofweek", "dayofyear", "dayname", "monthname", "last_day", of="{d}")
            ),
            strict=True,
        )
    ),
    exp.Hour: ("hour({t})",),
    exp.Minute: ("minute({t})",),
    exp.Second: ("second({t})",),
    exp.Not: ("NOT {a} > 1",),
    exp.Neg: ("-{a}",),
    exp.Paren: ("({a} + 1) * 2",),
    exp.IsNan: ("isnan(CAST({a} AS DOUBLE))",),
    exp.IsInf: ("isinf(CAST({a} AS DOUBLE))",),
    exp.Lower: ("lower({s})",),
    exp.Upper: ("upper({s})",),
    exp.Length: ("length({s})",),
    exp.Div: ("{a} / {b}", "{a} / {b}", "{a} / {b} * 100", "{a} / {b} * 100", "{a} / 4", "{a} / {b} + {a}", "{a} / (1 + abs({b}))"),
    exp.IntDiv: ("CAST({a} AS BIGINT) // 3",),
    exp.Is: ("{a} IS NULL", "({a} > 0) IS TRUE"),
    exp.Between: ("{a} BETWEEN 1 AND {b}",),
    exp.In: ("{a} IN (1, 2, 3)",),
    exp.Like: ("{s} LIKE '1%'",),
    exp.ILike: ("{s} NOT ILIKE '_'",),
    exp.Case: ("CASE WHEN {a} > 1 THEN {a} ELSE 0 END", "CASE {a} WHEN 1 THEN 'one' ELSE 'more' END"),
    exp.If: ("if({a} > {b}, {a}, {b})",),
    exp.Cast: ("CAST({a} AS BIGINT)", "CAST({a} AS DECIMAL(30, 1))", "CAST({a} AS DOUBLE)"),
    exp.TryCast: ("TRY_CAST({s} AS INTEGER)",),
    exp.Coalesce: ("coalesce({a}, 0)",),
    exp.Greatest: ("greatest({a}, {b}, 1)",),
    exp.Least: ("least({a}, 2)",),
    exp.Ceil: ("ceil({a} / 2)",),
    exp.Floor: ("floor({a} / 2)",),
    exp.Round: ("round({a} / 3, 2)", "round({a})"),
    exp.Trunc: ("trunc({a} / 3)",),
    exp.Log: ("log({a})", "log(2, {a})"),
    exp.Pi: ("{a} * pi()",),
    exp.Trim: ("trim({s})",),
    exp.Substring: ("substring({s}, 1, 1)",),
    exp.StrPosition: ("strpos({s}, '1')",),
    exp.DPipe: ("{s} || '!'",),
    exp.Concat: ("concat({s}, '-', {b})",),
    exp.Extract: ("extract(month FROM {d})",),
    exp.TimestampTrunc: ("date_trunc('month', {t})",),
    exp.DateTrunc: ("date_trunc('month', CAST({d} AS DATE))",),
    exp.DateDiff: ("date_diff('day', DATE '2024-01-01', {d})",),
    exp.TimeToStr: ("strftime({d}, '%Y-%m')",),
    exp.Interval: ("{d} + INTERVAL 1 MONTH",),
    exp.Boolean: ("({a} > 1) = TRUE",),
    exp.Null: ("CASE WHEN {a} > 1 THEN NULL ELSE {b} END",),
    exp.Literal: ("{a} + 0.5",),
    exp.Var: ("extract(day FROM {d})",),
}
"""By the node that each shows; what else it takes comes along."""

UNKNOWN: Mapping[str, str] = {
    "isfinite": "isfinite(CAST({a} AS DOUBLE))",
    "date_part": "date_part('year', {d})",
    "datepart": "datepart('month', {d})",
    "even": "even({a})",
    "gcd": "gcd(CAST({a} AS BIGINT), 6)",
}
"""Likewise the functions that the parser has no class for."""

TYPED: Mapping[str, str] = {
    **{name: f"CAST({{a}} AS {name})" for name in ("TINYINT", "SMALLINT", "BIGINT", "DECIMAL(20, 3)", "FLOAT", "DOUBLE", "VARCHAR")},
    "MEDIUMINT": "CAST({a} AS INTEGER)",
    "INT": "CAST({a} AS INT)",
    "INT128": "CAST({a} AS HUGEINT)",
    "TEXT": "CAST({a} AS TEXT)",
    "CHAR": "CAST({a} AS CHAR)",
    "BOOLEAN": "CAST({a} AS BOOLEAN)",
    "DATE": "CAST({t} AS DATE)",
    "TIMESTAMP": "CAST({d} AS TIMESTAMP)",
    "DATETIME": "CAST({d} AS DATETIME)",
    "TIMESTAMPNTZ": "CAST({d} AS TIMESTAMP)",
    "UUID": "TRY_CAST({s} AS UUID)",
}
"""Likewise the types of casts."""

WINDOWS: Mapping[type[exp.Expr], str] = {
    exp.RowNumber: "row_number() OVER (ORDER BY {a} DESC{k})",
    exp.Rank: "rank() OVER (ORDER BY {a})",
    exp.DenseRank: "dense_rank() OVER (ORDER BY {a} DESC)",
    exp.PercentRank: "percent_rank() OVER (ORDER BY {a})",
    exp.CumeDist: "cume_dist() OVER (ORDER BY {a})",
    exp.Sum: "{a} / SUM({a}) OVER ()",
    exp.Avg: "AVG({a}) OVER ()",
    exp.Min: "MIN({a}) OVER ()",
    exp.Max: "MAX({a}) OVER (PARTITION BY {b} > 1)",
    exp.Count: "COUNT(*) OVER (PARTITION BY {a})",
    exp.Ntile: "ntile(2) OVER (ORDER BY {a}{k})",
    exp.Lag: "lag({a}) OVER (ORDER BY {a}{k})",
    exp.Lead: "lead({a}, 1, 0) OVER (ORDER BY {a} DESC{k})",
    exp.FirstValue: "first_value({a}) OVER (ORDER BY {b}{k})",
    exp.LastValue: "last_value({a}) OVER (ORDER BY {b}{k} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    exp.NthValue: "nth_value({a}, 2) OVER (ORDER BY {a}{k} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
}
"""Likewise the windows; `{k}` are the keys, which break ties without being written."""
ALL = (*(one for ways in UPPER.values() for one in ways), *UNKNOWN.values(), *TYPED.values())


def filled(template: str, a: str, b: str, keys: str) -> str:
    for short, long in SHORT.items():
        template = template.replace(short, long)
    return template.replace("{a}", a).replace("{b}", b).replace("{k}", keys)


def more(g: Grammar, texts: Sequence[str], exact: Sequence[int], templates: Sequence[str]) -> More:
    """A column computed from aggregates whose values are exact. What breaks ties of windows is left open in its plain text."""
    i, j = g.random.choice(exact), g.random.choice(exact)
    template = g.random.choice(templates)
    plain = filled(template, f"a{i}", f"a{j}", "{k}")
    return More(filled(template, texts[i], texts[j], ""), plain if " OVER " in template else f"TRY({plain})")
