"""Function calls: which parser nodes, and which names that the parser does not know, are which function of the allow-list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from sqlglot import exp

from dpquery.plan.coerce import Mismatch, convert
from dpquery.plan.functions import call, choose
from dpquery.plan.scalar import Literal, Scalar
from dpquery.sql.casts import cast_to
from dpquery.sql.fields import take
from dpquery.sql.formats import formatted
from dpquery.sql.moments import day_part, interval, shift, shift_by, unit_name
from dpquery.sql.regexps import REGEXPS, substring
from dpquery.sql.visit import At, Reader, clock, unknown, visit
from dpquery.values.types import DATE, INTEGER, STRING, TIMESTAMP, Value

SIGNATURES: dict[type[exp.Expr], tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    exp.Abs: ("abs", ("this",), ()),
    exp.Sign: ("sign", ("this",), ()),
    exp.Floor: ("floor", ("this",), ()),
    exp.Ceil: ("ceil", ("this",), ()),
    exp.Round: ("round", ("this", "decimals"), ()),
    exp.Trunc: ("trunc", ("this", "decimals"), ("fractions_supported",)),
    exp.Sqrt: ("sqrt", ("this",), ()),
    exp.Exp: ("exp", ("this",), ()),
    exp.Ln: ("ln", ("this",), ()),
    exp.Pow: ("power", ("this", "expression"), ()),
    exp.SafeDivide: ("div", ("this", "expression"), ()),
    exp.Lower: ("lower", ("this",), ()),
    exp.Upper: ("upper", ("this",), ()),
    exp.Length: ("length", ("this",), ("binary",)),
    exp.Left: ("left", ("this", "expression"), ()),
    exp.Right: ("right", ("this", "expression"), ()),
    exp.Replace: ("replace", ("this", "expression", "replacement"), ()),
    exp.StartsWith: ("starts_with", ("this", "expression"), ()),
    exp.EndsWith: ("ends_with", ("this", "expression"), ()),
    exp.Contains: ("contains", ("this", "expression"), ()),
    exp.StrPosition: ("strpos", ("this", "substr"), ("clamp_position",)),
    exp.LastDay: ("last_day", ("this",), ()),
}
"""Nodes whose arguments are a function's, in order: the function, the arguments that are read, and those that change nothing here."""

PART_NODES: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Week: "week",
    exp.WeekOfYear: "week",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfYear: "doy",
    exp.DayOfWeek: "dow",
    exp.DayOfWeekIso: "isodow",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.TimeToUnix: "epoch",
}
PART_CALLS = {"dow": "dow", "doy": "doy", "weekday": "dow", "isoyear": "isoyear", "dayofweek": "dow", "epoch": "epoch"}
PLAIN_CALLS = {"prefix": "starts_with", "suffix": "ends_with", "mod": "mod"}
TRIMS = {None: "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
MOST_BUCKETS = 9_998  # with those below and above, as many as keys are listed
CLOCKS = ("now", "get_current_timestamp", "transaction_timestamp")


def _plain(node: exp.Expr, at: At) -> Scalar:
    name, fields, ignored = SIGNATURES[type(node)]
    found = take(node, *fields, *ignored)[: len(fields)]
    return call(name, *(visit(arg, at) for arg in found if arg is not None))


def _substring(node: exp.Substring, at: At) -> Scalar:
    """By places, or in PostgreSQL by a pattern."""
    found = substring(node, at)
    return call("substring", *(visit(arg, at) for arg in take(node, "this", "start", "length") if arg is not None)) if found is None else found


def _trim(node: exp.Trim, at: At) -> Scalar:
    """The parser keeps ltrim and rtrim as TRIM with a position."""
    this, which, position = take(node, "this", "expression", "position")
    name = TRIMS.get(None if position is None else str(position).upper())
    if name is None:
        raise at.refuse("UNSUPPORTED_CLAUSE", "TRIM takes LEADING, TRAILING or BOTH", node)
    return call(name, *(visit(arg, at) for arg in (this, which) if arg is not None))


def _concat(node: exp.Concat, at: At) -> Scalar:
    """Whether NULLs are left out or make the result NULL is the dialect's: `coalesce` says so."""
    parts, coalesced, _ = take(node, "expressions", "coalesce", "safe")
    args = tuple(visit(part, at) for part in parts)
    return call("concat" if coalesced or len(args) == 1 else "cat", *args)


def _log(node: exp.Log, at: At) -> Scalar:
    """log(x) has base 10, log(b, x) base b; the parser reads log2 and log10 as the latter."""
    base, of = take(node, "this", "expression")
    if of is None:
        return call("log10", visit(base, at))
    scalar = visit(base, at)
    name = {2: "log2", 10: "log10"}.get(scalar.value, "") if isinstance(scalar, Literal) and isinstance(scalar.value, int) else ""
    return call(name, visit(of, at)) if name else call("log", scalar, visit(of, at))


def _width_bucket(node: exp.WidthBucket, at: At) -> Scalar:
    """The number of the bucket of equal width, from 1; 0 below the first, one more than there are from the last one's end on."""
    of, *rest = take(node, "this", "min_value", "max_value", "num_buckets")
    low, high, number = (None if one is None else visit(one, at) for one in rest)
    values = [one.value if isinstance(one, Literal) else None for one in (low, high, number)]
    if low is None or high is None or number is None or not _buckets(values):
        code, instead = "LITERAL_NEEDED", "width_bucket(x, 0, 100, 10)"
        raise Mismatch(f"width_bucket takes two literal bounds, the lower first, and a number up to {MOST_BUCKETS:,}", code=code, instead=instead)
    place = call("floor", call("div", call("mul", call("sub", visit(of, at), low), number), call("sub", high, low)))
    within = convert(place, INTEGER)
    none, last = Literal(0, INTEGER), call("add", number, Literal(1, INTEGER))
    return choose([(call("lt", place, none), none), (call("ge", place, number), last)], call("add", within, Literal(1, INTEGER)))


def _buckets(values: Sequence[Value]) -> bool:
    """Whether these are bounds and a number of buckets."""
    low, high, number = values
    numbers = all(isinstance(one, int | float | Decimal) and not isinstance(one, bool) for one in values)
    return numbers and isinstance(number, int) and 1 <= number <= MOST_BUCKETS and low < high  # type: ignore[operator]


# ---- dates ---------------------------------------------------------------------------------------------------------------------------


def _part(node: exp.Expr, at: At) -> Scalar:
    (this,) = take(node, "this")
    return call("date_part", Literal(PART_NODES[type(node)], STRING), visit(this, at))


def _extract(node: exp.Extract, at: At) -> Scalar:
    part, this = take(node, "this", "expression")
    return day_part(part, visit(this, at))


def _named(node: exp.Dayname | exp.Monthname, at: At) -> Scalar:
    this, short = take(node, "this", "abbreviated")
    name = call("dayname" if isinstance(node, exp.Dayname) else "monthname", visit(this, at))
    return call("left", name, Literal(3, INTEGER)) if short else name


def _date_trunc(node: exp.DateTrunc | exp.TimestampTrunc, at: At) -> Scalar:
    """In dialects that say so (`input_type_preserved`), a truncated date stays one."""
    this, unit, preserved = take(node, "this", "unit", "input_type_preserved")
    moment = visit(this, at)
    found = call("date_trunc", Literal(unit_name(unit), STRING), moment)
    return cast_to(found, DATE, lenient=False) if preserved and moment.type == DATE else found


def _date_diff(node: exp.DateDiff, at: At) -> Scalar:
    """The parser puts the later one first. `boundary` says that the dialect counts the boundaries of units crossed; DuckDB does, but for weeks."""
    to, since, unit, boundary, _ = take(node, "this", "expression", "unit", "date_part_boundary", "big_int")
    name = "day" if unit is None else unit_name(unit)
    if name != "day" and bool(boundary) == (name == "week"):
        raise Mismatch(f"this dialect counts {name}s in another way than DuckDB", code="UNSUPPORTED_CLAUSE", instead="the number of days")
    return call("date_diff", Literal(name, STRING), visit(since, at), visit(to, at))


def _date_add(sign: int) -> Reader:
    def reader(node: exp.Expr, at: At) -> Scalar:
        this, by, unit = take(node, "this", "expression", "unit")
        found = shift(by)
        return shift_by(visit(this, at), interval(by, unit) if found is None else found, sign)

    return reader


def _date(node: exp.Date, at: At) -> Scalar:
    (this,) = take(node, "this")
    if this is None:
        raise at.refuse("WRONG_ARGUMENTS", "date(x) takes 1 argument", node)
    return cast_to(visit(this, at), DATE, lenient=False)


def _to_date(node: exp.TsOrDsToDate, at: At) -> Scalar:
    this, _ = take(node, "this", "safe")
    return cast_to(visit(this, at), DATE, lenient=False)


# ---- names the parser does not know --------------------------------------------------------------------------------------------------


def _anonymous(node: exp.Anonymous, at: At) -> Scalar:
    name, args = take(node, "this", "expressions")
    lowered, args = str(name).lower(), tuple(args or ())
    if lowered in CLOCKS and not args:
        return Literal(clock(at.scope), TIMESTAMP)
    if lowered in PART_CALLS and len(args) == 1:
        return call("date_part", Literal(PART_CALLS[lowered], STRING), visit(args[0], at))
    if lowered in ("date_part", "datepart") and len(args) == 2:
        return day_part(args[0], visit(args[1], at))
    if lowered in PLAIN_CALLS:
        return call(PLAIN_CALLS[lowered], *(visit(arg, at) for arg in args))
    raise unknown(lowered, node, at)


CALLS: Mapping[type[exp.Expr], Callable[..., Scalar]] = {
    **dict.fromkeys(SIGNATURES, _plain),
    **dict.fromkeys(PART_NODES, _part),
    **REGEXPS,
    exp.Substring: _substring,
    exp.Trim: _trim,
    exp.Concat: _concat,
    exp.Log: _log,
    exp.WidthBucket: _width_bucket,
    exp.TimeToStr: formatted,
    exp.Extract: _extract,
    exp.Dayname: _named,
    exp.Monthname: _named,
    exp.DateTrunc: _date_trunc,
    exp.TimestampTrunc: _date_trunc,
    exp.DateDiff: _date_diff,
    exp.DateAdd: _date_add(1),
    exp.DateSub: _date_add(-1),
    exp.TimestampAdd: _date_add(1),
    exp.TimestampSub: _date_add(-1),
    exp.DatetimeAdd: _date_add(1),
    exp.DatetimeSub: _date_add(-1),
    exp.TsOrDsAdd: _date_add(1),
    exp.Date: _date,
    exp.TsOrDsToDate: _to_date,
    exp.Anonymous: _anonymous,
}
"""The reader of each kind of call."""
