"""The allow-list above the noise: which nodes may stand in HAVING, ORDER BY, QUALIFY and around aggregates, each with the arguments it may have.

What stands here reads released values only, so it needs no total form of its own: the whole of an expression runs inside TRY. Left out are
functions that read files, settings or the catalogue, that differ from call to call, that raise in spite of TRY, or whose results grow without limit.
"""

from __future__ import annotations

from sqlglot import exp

_TWO, _ONE = ("this", "expression"), ("this",)
_BINARY = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Pow, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_LOGIC = (exp.And, exp.Or, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Nullif, exp.Atan2)
_FIND = (exp.StartsWith, exp.EndsWith, exp.Contains, exp.Left, exp.Right)
_MATHS = (exp.Abs, exp.Sign, exp.Sqrt, exp.Cbrt, exp.Exp, exp.Ln, exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Degrees, exp.Radians)
_PARTS = (exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Week, exp.DayOfWeek, exp.DayOfYear, exp.Hour, exp.Minute, exp.Second)
_SINGLE = (exp.Not, exp.Neg, exp.Paren, exp.IsNan, exp.IsInf, exp.Lower, exp.Upper, exp.Length, exp.Dayname, exp.Monthname, exp.LastDay)

NODES: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys((*_BINARY, *_LOGIC, *_FIND), _TWO),
    **dict.fromkeys((*_MATHS, *_PARTS, *_SINGLE), _ONE),
    exp.Div: ("this", "expression", "typed", "safe"),
    exp.IntDiv: ("this", "expression"),
    exp.Is: ("this", "expression", "negate"),
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions"),
    exp.Like: ("this", "expression", "negate"),
    exp.ILike: ("this", "expression", "negate"),
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
    exp.Cast: ("this", "to", "safe"),
    exp.TryCast: ("this", "to", "safe"),
    exp.Coalesce: ("this", "expressions", "is_nvl", "is_null"),
    exp.Greatest: ("this", "expressions", "ignore_nulls"),
    exp.Least: ("this", "expressions", "ignore_nulls"),
    exp.Ceil: ("this",),
    exp.Floor: ("this",),
    exp.Round: ("this", "decimals"),
    exp.Trunc: ("this", "decimals"),
    exp.Log: ("this", "expression"),
    exp.Pi: (),
    exp.Trim: ("this", "expression", "position"),
    exp.Substring: ("this", "start", "length"),
    exp.StrPosition: ("this", "substr"),
    exp.DPipe: ("this", "expression", "safe"),
    exp.Concat: ("expressions", "safe", "coalesce"),
    exp.Extract: ("this", "expression"),
    exp.TimestampTrunc: ("this", "unit"),
    exp.DateTrunc: ("this", "unit"),
    exp.DateDiff: ("this", "expression", "unit", "date_part_boundary"),
    exp.TimeToStr: ("this", "format"),
    exp.Interval: ("this", "unit"),
    exp.Boolean: ("this",),
    exp.Null: (),
    exp.Literal: ("this", "is_string"),
    exp.Var: ("this",),
}
FUNCTIONS = frozenset({"isfinite", "date_part", "datepart", "even", "gcd"})  # those that the parser has no class for

TYPES = frozenset(
    (
        *("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "INT128", "DECIMAL", "FLOAT", "DOUBLE"),
        *("BOOLEAN", "TEXT", "VARCHAR", "CHAR", "DATE", "TIMESTAMP", "TIMESTAMPNTZ", "DATETIME", "UUID"),
    )
)
