"""Dates and times as SQL writes them: parts, units and literal intervals."""

from __future__ import annotations

import re
from typing import NamedTuple

from sqlglot import exp

from dpquery.plan.coerce import Mismatch, shown
from dpquery.plan.functions import call
from dpquery.plan.scalar import Literal, Scalar
from dpquery.sql.fields import take
from dpquery.values.types import INTEGER, STRING

SYNONYMS = {
    "dayofweek": "dow",
    "weekday": "dow",
    "dayofyear": "doy",
    "dayofmonth": "day",
    "weekofyear": "week",
    "dayofweekiso": "isodow",
    "yr": "year",
    "mon": "month",
    "hr": "hour",
    "min": "minute",
    "sec": "second",
    "ms": "millisecond",
    "us": "microsecond",
}
MICROSECONDS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "millisecond": 1_000, "microsecond": 1}
DAYS = {"day": 1, "week": 7}
MONTHS = {"month": 1, "quarter": 3, "year": 12}
_STEP = re.compile(r"\s*([+-]?\d{1,18})\s*([A-Za-z]+)\s*", re.ASCII)
_COUNT = re.compile(r"\s*([+-]?\d{1,18})\s*", re.ASCII)


class Shift(NamedTuple):
    """A literal interval."""

    months: int = 0
    days: int = 0
    microseconds: int = 0


def unit_name(node: exp.Expr | None) -> str:
    """The unit or part that a node names, in the singular. Raises Mismatch unless it is a literal."""
    match node:
        case exp.Var():
            name = str(take(node, "this")[0])
        case exp.Literal():
            name = str(take(node, "this", "is_string")[0])
        case _:
            raise Mismatch("a unit of time is a literal, as in 'month'", code="LITERAL_NEEDED")
    name = name.lower()
    name = name[:-1] if name.endswith("s") and name not in SYNONYMS else name
    return SYNONYMS.get(name, name)


def day_part(part: exp.Expr, moment: Scalar) -> Scalar:
    """date_part with the part as SQL names it."""
    return call("date_part", Literal(unit_name(part), STRING), moment)


def shift(node: object) -> Shift | None:
    """The literal interval that a node is; None if it is none. Raises Mismatch for an interval that is no literal."""
    while isinstance(node, exp.Paren):
        (node,) = take(node, "this")
    if not isinstance(node, exp.Interval):
        return None
    count, unit = take(node, "this", "unit")
    return interval(count, unit)


def interval(count: exp.Expr | None, unit: exp.Expr | None) -> Shift:
    """The literal interval of a count and a unit, or of a text such as '1 month 3 days'."""
    text = _text(count)
    if unit is not None:
        found = _COUNT.fullmatch(text)
        if found is None:
            raise Mismatch(f"{shown(text)} is no whole number of {unit_name(unit)}s", code="BAD_LITERAL", instead="INTERVAL 3 DAY")
        return _step(int(found.group(1)), unit_name(unit))
    steps = _STEP.findall(text)
    if not steps or _STEP.sub("", text):
        raise Mismatch(f"{shown(text)} is no interval", code="BAD_LITERAL", instead="INTERVAL '1 month 3 days'")
    shifts = [_step(int(number), unit_name(exp.Var(this=name))) for number, name in steps]
    return Shift(sum(one.months for one in shifts), sum(one.days for one in shifts), sum(one.microseconds for one in shifts))


def _text(node: exp.Expr | None) -> str:
    sign = ""
    while isinstance(node, exp.Paren | exp.Neg):
        if isinstance(node, exp.Neg):
            sign = "" if sign else "-"
        (node,) = take(node, "this")
    if not isinstance(node, exp.Literal):
        raise Mismatch("an interval is a literal", code="LITERAL_NEEDED", instead="INTERVAL 3 DAY, or d + n for a number of days")
    text = str(take(node, "this", "is_string")[0])
    return text[1:] if sign and text.startswith("-") else sign + text


def _step(count: int, unit: str) -> Shift:
    if unit in MONTHS:
        return Shift(months=count * MONTHS[unit])
    if unit in DAYS:
        return Shift(days=count * DAYS[unit])
    if unit in MICROSECONDS:
        return Shift(microseconds=count * MICROSECONDS[unit])
    raise Mismatch(f"no unit of time {unit!r}", code="BAD_LITERAL", instead=f"one of {', '.join((*MONTHS, *DAYS, *MICROSECONDS))}")


def shift_by(moment: Scalar, by: Shift, sign: int) -> Scalar:
    """The date or timestamp moved by an interval, forwards or back."""
    return call("date_add", moment, *(Literal(sign * part, INTEGER) for part in by))
