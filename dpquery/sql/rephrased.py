"""Dates and times as other dialects write them, put in DuckDB's words where these mean the same.

Types and time zones are those of the dialect's own documentation. A declared timestamp has no zone here and is UTC; so are a session's times:
BigQuery's TIMESTAMP is an instant in UTC, Spark's one in the session's zone. Another zone is refused, as is what DuckDB has no words for.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.sql.abroad import ISO_WEEK
from dpquery.sql.fields import argument
from dpquery.sql.formats import MEANT, joda, meant
from dpquery.sql.refuse import refuse
from dpquery.sql.unanswered import called

LENGTHS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
"""Units that always last as long, in microseconds."""
WEEKDAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
SPARK_UNITS = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}
ZONED = ("TIMESTAMPTZ", "TIMESTAMPLTZ")
UTC = ("UTC", "ETC/UTC", "GMT", "Z", "+00:00", "+00")

Rephrase = Callable[[exp.Expr], exp.Expr | None]


def rephrased(tree: exp.Expr, dialect: str, source: str) -> None:
    """Puts DuckDB's words in the place of the dialect's, innermost first. Raises Refused for a zone that is not UTC."""
    ways = {**EVERYWHERE, **WAYS.get(dialect, {}), **(dict(meant(dialect)) if dialect in MEANT else {})}
    for node in reversed([one for one in tree.walk() if type(one) in ways]):
        _check_zone(node, source)
        found = ways[type(node)](node)
        if found is not None and found is not node:
            found.meta.update(node.meta)
            node.replace(found)


def _check_zone(node: exp.Expr, source: str) -> None:
    zone = argument(node, "expression") if isinstance(node, exp.Datetime) else argument(node, "zone")
    if zone is None or _is_utc(zone):
        return
    message = "timestamps have no zone here and are UTC: one in another zone, or a part of it, is not supported"
    raise _refused(message, zone, source)


def _refused(message: str, node: exp.Expr, source: str) -> Refused:
    return refuse("TIME_ZONE", message, node=node, instead="UTC, with the hours added: t + INTERVAL 1 HOUR", source=source)


def _is_utc(zone: exp.Expr) -> bool:
    return isinstance(zone, exp.Literal) and zone.is_string and zone.name.upper() in UTC


# ---- types and literals --------------------------------------------------------------------------------------------------------------


def _cast(this: exp.Expr, to: exp.DType, kind: type[exp.Expr] = exp.Cast) -> exp.Expr:
    return kind(this=this, to=exp.DataType(this=to))


def _moment(node: exp.Expr) -> exp.Expr:
    """TIMESTAMP(x), DATETIME(x): the moment that a date or text stands for."""
    return _cast(argument(node, "this"), exp.DType.TIMESTAMP)


def _zoned(node: exp.Expr) -> exp.Expr | None:
    """A cast to a dialect's TIMESTAMP that is an instant: in UTC it is DuckDB's TIMESTAMP."""
    return _cast(node.this, exp.DType.TIMESTAMP, type(node)) if _kind(node) in ZONED else None


def _kind(node: exp.Expr) -> str:
    to = argument(node, "to")
    return str(getattr(argument(to, "this"), "name", "")) if isinstance(to, exp.DataType) else ""


def _sized(node: exp.Expr) -> exp.Expr | None:
    """TIMESTAMP(p) without its size, where no fraction is cut: of a literal that has no more digits, and for 6 digits, which all have here."""
    sizes = argument(argument(node, "to"), "expressions") if _kind(node) == "TIMESTAMP" else None
    text = sizes[0].name if sizes and len(sizes) == 1 else ""
    if not text.isdigit():
        return None
    this = node.this
    digits = len(this.name.partition(".")[2]) if isinstance(this, exp.Literal) and this.is_string else 6
    return _cast(this, exp.DType.TIMESTAMP, type(node)) if digits <= int(text) else None


def _from_parts(node: exp.Expr) -> exp.Expr | None:
    """DATE(2024, 3, 1) and DATETIME(2024, 3, 1, 0, 0, 0) of literals that are a date or a time."""
    if isinstance(node, exp.Anonymous) and called(node) != "make_date":
        return None
    given = argument(node, "expressions") if isinstance(node, exp.Anonymous) else [v for v in node.args.values() if isinstance(v, exp.Expr)]
    numbers = [_number(part) for part in given or ()]
    whole = [number for number in numbers if number is not None]
    if len(whole) != len(numbers) or len(whole) != (6 if isinstance(node, exp.TimestampFromParts) else 3):
        return None
    try:
        year, month, day, hour, minute, second = (*whole, 0, 0, 0)[:6]
        moment = datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None
    if len(whole) == 3:
        return _cast(exp.Literal.string(moment.date().isoformat()), exp.DType.DATE)
    return _cast(exp.Literal.string(moment.isoformat(" ")), exp.DType.TIMESTAMP)


def _number(node: exp.Expr) -> int | None:
    text = node.name if isinstance(node, exp.Literal) and not node.is_string else ""
    return int(text) if text.isdigit() and text.isascii() and len(text) < 5 else None


def _zoneless(node: exp.Expr) -> exp.Expr:
    """The same call without its zone, which is UTC."""
    node.set("zone", None)
    return node


def _today(node: exp.Expr) -> exp.Expr:
    if isinstance(node.this, exp.Expr) and _is_utc(node.this):
        node.set("this", None)
    return node


def _iso_date(node: exp.Expr) -> exp.Expr:
    return _cast(node.this, exp.DType.DATE)


# ---- units ---------------------------------------------------------------------------------------------------------------------------


def _unit(node: exp.Expr | None) -> str:
    return node.name.lower() if isinstance(node, exp.Var | exp.Literal) else ""


def _week(unit: exp.Expr | None) -> int | None:
    """By how many days a week of the unit starts before Monday; None for other units."""
    if isinstance(unit, exp.WeekStart):
        name = unit.this.name.upper()
        return -WEEKDAYS.index(name) % 7 if name in WEEKDAYS else None
    return 0 if _unit(unit) == "isoweek" else None


def _days(count: int) -> exp.Expr:
    return exp.Interval(this=exp.Literal.string(str(count)), unit=exp.Var(this="DAY"))


def _in_week(moment: exp.Expr, early: int) -> exp.Expr:
    """The moment that the week starts, days before Monday."""
    moved = exp.paren(exp.Add(this=exp.paren(moment, copy=False), expression=_days(early)), copy=False) if early else moment
    start = exp.TimestampTrunc(this=moved, unit=exp.Var(this="WEEK"))
    return exp.paren(exp.Sub(this=start, expression=_days(early)), copy=False) if early else start


def _truncated(node: exp.Expr) -> exp.Expr:
    """DATE_TRUNC, DATETIME_TRUNC and TIMESTAMP_TRUNC of BigQuery, with its weeks."""
    early = _week(argument(node, "unit"))
    if early is not None:
        return _in_week(node.this, early)
    return exp.TimestampTrunc(this=node.this, unit=argument(node, "unit"))


def _abbreviated(node: exp.Expr) -> exp.Expr:
    """DATE_TRUNC of Spark; TRUNC, which has the parser's other node, gives a date."""
    unit = _unit(argument(node, "unit"))
    found = exp.TimestampTrunc(this=node.this, unit=exp.Var(this=SPARK_UNITS.get(unit, unit).upper()))
    return _cast(found, exp.DType.DATE) if isinstance(node, exp.DateTrunc) else found


def _boundaries(node: exp.Expr) -> exp.Expr | None:
    """DATE_DIFF and DATETIME_DIFF of BigQuery: how many times a unit begins in between."""
    to, since, unit = node.this, node.expression, argument(node, "unit")
    early = _week(unit)
    if early is None:
        return exp.DateDiff(this=to, expression=since, unit=unit, date_part_boundary=True)
    days = exp.DateDiff(this=_in_week(to, early), expression=_in_week(since, early), unit=exp.Var(this="DAY"), date_part_boundary=True)
    return exp.paren(exp.IntDiv(this=days, expression=exp.Literal.number(7)), copy=False)


def _elapsed(node: exp.Expr) -> exp.Expr | None:
    """The whole units that lie between two moments, for units that always last as long."""
    length = LENGTHS.get(_unit(argument(node, "unit")))
    if length is None or argument(node, "date_part_boundary"):
        return None
    to, since = (one.this if isinstance(one, exp.TsOrDsToDate) else one for one in (node.this, node.expression))
    found = exp.DateDiff(this=to, expression=since, unit=exp.Var(this="MICROSECOND"), date_part_boundary=True)
    return exp.paren(exp.IntDiv(this=found, expression=exp.Literal.number(length)), copy=False)


def _extracted(node: exp.Expr) -> exp.Expr:
    """EXTRACT(DATE FROM t) and EXTRACT(ISOWEEK FROM t) of BigQuery."""
    if _unit(node.this) == "date":
        return _cast(node.expression, exp.DType.DATE)
    if _unit(node.this) == "isoweek":
        node.set("this", exp.Var(this="WEEK"))
        node.meta[ISO_WEEK] = True
    return node


# ---- names of columns ----------------------------------------------------------------------------------------------------------------


def _numbered(prefix: str) -> Rephrase:
    """VALUES, whose columns are called by their places, from 1."""

    def rephrase(node: exp.Expr) -> exp.Expr:
        alias = argument(node, "alias")
        rows = node.expressions
        if isinstance(node.parent, exp.From | exp.Join) and rows and not (isinstance(alias, exp.TableAlias) and argument(alias, "columns")):
            names = [exp.to_identifier(f"{prefix}{i + 1}") for i in range(len(rows[0].expressions) if isinstance(rows[0], exp.Tuple) else 1)]
            node.set("alias", exp.TableAlias(this=argument(alias, "this") if isinstance(alias, exp.TableAlias) else None, columns=names))
        return node

    return rephrase


def _exploded(node: exp.Expr) -> exp.Expr:
    """LATERAL VIEW [pos]explode(array(1, 2)) t AS x: a relation of literals that every row is joined with."""
    made = [_listed(lateral) for lateral in argument(node, "laterals") or ()]
    found = [exp.Join(this=one, kind="CROSS") for one in made if one is not None]
    if found and len(found) == len(made):
        node.set("laterals", None)
        node.set("joins", [*(argument(node, "joins") or ()), *found])
    return node


def _listed(lateral: exp.Expr) -> exp.Expr | None:
    call, alias = lateral.this, argument(lateral, "alias")
    if isinstance(call, exp.Explode) and isinstance(call.this, exp.GenerateSeries | exp.GenerateDateArray) and isinstance(alias, exp.TableAlias):
        named = exp.TableAlias(this=argument(alias, "this"), columns=argument(alias, "columns") or [exp.to_identifier("col")])
        return exp.Unnest(expressions=[call.this], alias=named)
    items = call.this.expressions if isinstance(call, exp.Explode | exp.Posexplode) and isinstance(call.this, exp.Array) else []
    if not items or call.expressions or not argument(lateral, "view") or call.find(exp.Column) is not None or not isinstance(alias, exp.TableAlias):
        return None
    placed = isinstance(call, exp.Posexplode)
    rows = [exp.Tuple(expressions=[*([exp.Literal.number(i)] if placed else []), item]) for i, item in enumerate(items)]
    names = argument(alias, "columns") or [exp.to_identifier(name) for name in ("pos", "col")[not placed :]]
    return exp.Values(expressions=rows, alias=exp.TableAlias(this=argument(alias, "this"), columns=names))


def _series(node: exp.Expr) -> exp.Expr:
    """generate_series(1, 3) i: the alias of a function of one column is the column's name too."""
    alias = argument(node, "alias")
    if isinstance(node.this, exp.GenerateSeries) and isinstance(alias, exp.TableAlias) and not argument(alias, "columns"):
        alias.set("columns", [argument(alias, "this").copy()])
    return node


def _of_text(node: exp.Expr) -> exp.Expr:
    """LENGTH of what is text or bytes in the dialect: no column holds bytes."""
    node.set("binary", None)
    return node


def _as_text(node: exp.Expr) -> exp.Expr:
    """r'a text as it is'."""
    return exp.Literal.string(node.name)


def _escapable(node: exp.Expr) -> exp.Expr | None:
    """LIKE with a pattern that is no literal, where a backslash in it takes the next sign as it is: NULL for such a pattern."""
    pattern = node.expression.unnest()
    if isinstance(pattern, exp.Literal | exp.Any | exp.All) or isinstance(node.parent, exp.Escape):
        return None
    plain = exp.Not(this=exp.Contains(this=pattern.copy(), expression=exp.Literal.string("\\")))
    return exp.Case(ifs=[exp.If(this=plain, true=node.copy())])


ESCAPED: dict[type[exp.Expr], Rephrase] = dict.fromkeys((exp.Like, exp.ILike), _escapable)


def _in_utc(node: exp.Expr) -> exp.Expr:
    """t AT TIME ZONE 'UTC': the moment itself, which is in UTC; other zones were refused."""
    return exp.paren(node.this, copy=False)


EVERYWHERE: Mapping[type[exp.Expr], Rephrase] = {
    exp.AtTimeZone: _in_utc,
    exp.Length: _of_text,
    exp.DateFromParts: _from_parts,
    exp.TimestampFromParts: _from_parts,
    exp.Anonymous: _from_parts,
}


def _never_missing(node: exp.Expr) -> exp.Expr | None:
    """LISTAGG of no values, which is an empty text."""
    inner, around = node, node.parent
    while isinstance(inner, AROUND):
        inner = inner.this
    if not isinstance(inner, exp.GroupConcat) or (isinstance(around, AROUND) and around.this is node):
        return None
    return exp.Coalesce(this=node.copy(), expressions=[exp.Literal.string("")])


AROUND = (exp.WithinGroup, exp.Filter, exp.Window)
WAYS: Mapping[str, Mapping[type[exp.Expr], Rephrase]] = {
    "bigquery": {
        **ESCAPED,
        exp.RawString: _as_text,
        exp.Cast: _zoned,
        exp.TryCast: _zoned,
        exp.Timestamp: _moment,
        exp.Datetime: _moment,
        exp.TsOrDsToDatetime: _moment,
        exp.Date: _zoneless,
        exp.CurrentDate: _today,
        exp.DateTrunc: _truncated,
        exp.DatetimeTrunc: _truncated,
        exp.TimestampTrunc: _truncated,
        exp.DateDiff: _boundaries,
        exp.DatetimeDiff: _boundaries,
        exp.TimestampDiff: _elapsed,
        exp.Extract: _extracted,
    },
    "spark": {
        exp.RawString: _as_text,
        **ESCAPED,
        exp.Cast: _zoned,
        exp.TryCast: _zoned,
        exp.Timestamp: _moment,
        exp.DateTrunc: _abbreviated,
        exp.TimestampTrunc: _abbreviated,
        exp.DateDiff: _elapsed,
        exp.TimestampDiff: _elapsed,
        exp.Values: _numbered("col"),
        exp.Select: _exploded,
    },
    "trino": {
        exp.Cast: _sized,
        exp.TryCast: _sized,
        exp.DateDiff: _elapsed,
        exp.FromISO8601Date: _iso_date,
        exp.Anonymous: lambda node: _from_parts(node) or joda(node),
    },
    "postgres": {**ESCAPED, exp.Cast: _sized, exp.TryCast: _sized, exp.Values: _numbered("column"), exp.Table: _series},
    "snowflake": {
        exp.Values: _numbered("column"),
        **dict.fromkeys((exp.GroupConcat, *AROUND), _never_missing),
    },
}
"""What is put in other words, by dialect and by the parser's node."""
