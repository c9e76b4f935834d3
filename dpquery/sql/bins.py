"""Keys that put values into bins: floor(x / 10), x // 10, x % 3, date_trunc('month', d), x > 5. Where bounds leave finitely many, they are listed.

A list is a function of the text and the schema alone, so that it may be any list whatever; rows whose key is not on it are left out, which a warning
says. The bounds are those of the schema and of WHERE, which the rows need not keep. Only what is there to make bins has a list: a cast to a number
has none, whatever the bounds of its operand. NULL is a bin where a value within bounds has it for its key, and what a missing value has for its key,
if not NULL, is one.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import islice

from dpquery.plan.intervals import Range, interval
from dpquery.plan.lengths import results
from dpquery.plan.scalar import Call, Case, Cast, Column, Interval, Literal, Scalar, columns, replaced, walk
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, TIMESTAMP, Kind, Value

MOST = 10_000
MOST_UNBOUNDED = 366  # where the function alone bounds its values: days of the year, but not all years
MOST_NODES = 100  # of a key that is looked at: the time it takes grows with their square
STAND_IN = -1
NAMES: Mapping[str, tuple[Value, ...]] = {
    "monthname": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
    "dayname": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}
BINNING = ("floor", "ceil", "round", "trunc", "intdiv", "mod", "sign", "date_part", "date_trunc", *NAMES)
DAILY = ("year", "isoyear", "quarter", "month", "week", "day", "doy", "dow", "isodow", "decade", "century")
LESS, MORE = ("lt", "le"), ("gt", "ge")
TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


@dataclass(frozen=True, slots=True)
class Bins:
    """The values of a stand-in, and the key as an expression of it; `instead` is the part of the key for which it stands."""

    values: tuple[Value, ...]
    stand_in: Column
    key: Scalar
    instead: Scalar


def bins(key: Scalar, known: Sequence[Scalar]) -> Bins | None:
    """The bins of a key, as far as bounds make them finite. `known` are the conditions that hold in every row."""
    if key.type == BOOLEAN:
        return None if isinstance(key, Literal) else _over(key, key, (False, True))
    if any(islice(walk(key), MOST_NODES, None)) or not any(_is_binning(part) for part in walk(key)):
        return None
    bounded: dict[Scalar, Scalar] = {one: replace(one, declared=found) for one in columns(key) if (found := _bounds(one, known)) is not None}
    for part in reversed(list(walk(key))):
        if not columns(part) or not columns(replaced(key, {part: _stand_in(part)})) <= {_stand_in(part)}:
            continue
        match part:
            case Call(function=name) if name in NAMES:
                values: tuple[Value, ...] | None = NAMES[name]
            case _ if part.type in (DATE, TIMESTAMP):
                values = _days(part, key, known)
            case _:
                values = _wholes(part, replaced(part, bounded))
        if values is not None:
            return _over(key, part, values)
    return None


def values(key: Scalar, known: Sequence[Scalar]) -> tuple[Value, ...] | None:
    """All values of an expression of which bounds leave finitely many by themselves: truth values, whole numbers, days."""
    if key.type == BOOLEAN:
        return None if isinstance(key, Literal) else (False, True)
    if any(islice(walk(key), MOST_NODES, None)):
        return None
    if key.type == DATE:
        return _days(key, key, known)
    bounded: dict[Scalar, Scalar] = {one: replace(one, declared=found) for one in columns(key) if (found := _bounds(one, known)) is not None}
    return _wholes(key, replaced(key, bounded))


def _is_binning(part: Scalar) -> bool:
    match part:
        case Call(function=name):
            return name in BINNING
        case Cast(arg=arg, type=kind):
            return kind == DATE and arg.type == TIMESTAMP
        case Case():  # not one that a cast to a narrow type is made of
            return all(isinstance(result, Literal) for result in results(part))
        case _:
            return False


def _stand_in(part: Scalar) -> Column:
    return Column(STAND_IN, "", part.type)


def _over(key: Scalar, part: Scalar, values: tuple[Value, ...]) -> Bins:
    return Bins(values, _stand_in(part), replaced(key, {part: _stand_in(part)}), part)


# ---- whole numbers -------------------------------------------------------------------------------------------------------------------


def _wholes(part: Scalar, bounded: Scalar) -> tuple[Value, ...] | None:
    """All values of a part that is a whole number between bounds, or a column with declared values.

    Where a part reads a column twice, its bounds may lie beyond all values that it can have.
    """
    if isinstance(part, Column) and part.values is not None:
        return tuple(value for value in part.values if value is not None)
    read = [one for one in walk(part) if isinstance(one, Column)]
    if not _is_whole(part) or len(read) > len(set(read)):
        return None
    found = interval(bounded)
    most = MOST if all(column.declared is not None for column in columns(bounded)) else MOST_UNBOUNDED
    if found is None or found.high - found.low >= most:
        return None
    whole = range(math.ceil(found.low), math.floor(found.high) + 1)
    return tuple(_typed(value, part) for value in whole)


def _is_whole(part: Scalar) -> bool:
    """Whether the part is a whole number, whatever its type."""
    match part:
        case Call(function="floor" | "ceil", type=kind):
            return kind.numeric
        case Call(function="round" | "trunc", args=(_,), type=kind):
            return kind.numeric
        case _:
            return part.type == INTEGER


def _typed(value: int, part: Scalar) -> Value:
    if part.type == FLOAT:
        return float(value)
    return Decimal(value) if part.type.kind is Kind.DECIMAL else value


def _bounds(column: Column, known: Sequence[Scalar]) -> Interval | None:
    """The narrowest bounds of a column in the schema and in conditions on it."""
    if not column.type.numeric:
        return None
    ends = Range(None, None) if column.declared is None else Range(column.declared.low, column.declared.high)
    for sign, value in _conditions(column, known):
        if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
            continue
        if sign not in MORE:
            ends = Range(ends.low, Fraction(value) if ends.high is None else min(ends.high, Fraction(value)))
        if sign not in LESS:
            ends = Range(Fraction(value) if ends.low is None else max(ends.low, Fraction(value)), ends.high)
    return Interval(ends.low, ends.high) if ends.low is not None and ends.high is not None and ends.low <= ends.high else None


def _conditions(column: Scalar, known: Sequence[Scalar]) -> Iterator[tuple[str, Value]]:
    """The conditions that compare a column with a literal: the sign and the literal's value."""
    for fact in known:
        match fact:
            case Call(function="between", args=(one, Literal(value=low), Literal(value=high))) if _is(one, column):
                yield from (("ge", low), ("le", high))
            case Call(function=name, args=(one, Literal(value=value))) if name in TURNED and _is(one, column):
                yield name, value
            case Call(function=name, args=(Literal(value=value), one)) if name in TURNED and _is(one, column):
                yield TURNED[name], value


def _is(one: Scalar, column: Scalar) -> bool:
    """Whether an expression is the column, or a cast of it that keeps order."""
    return one == column or (isinstance(one, Cast) and one.arg == column and (one.type.numeric or one.type == TIMESTAMP))


# ---- days ----------------------------------------------------------------------------------------------------------------------------


def _days(part: Scalar, key: Scalar, known: Sequence[Scalar]) -> tuple[Value, ...] | None:
    """All days between the bounds of a column of dates or timestamps, where the key depends on nothing finer."""
    if not isinstance(part, Column) or (part.type == TIMESTAMP and not _is_daily(key, part)):
        return None
    ends = moments(part, known)
    if ends is None:
        return None
    first, last = (end.date() for end in ends)
    count = (last - first).days + 1
    if not 0 < count <= MOST:
        return None
    days = [first + datetime.timedelta(days=n) for n in range(count)]
    return tuple(days) if part.type == DATE else tuple(datetime.datetime.combine(day, datetime.time()) for day in days)


def moments(part: Scalar, known: Sequence[Scalar]) -> tuple[datetime.datetime, datetime.datetime] | None:
    """The first and the last moment that conditions on a date or timestamp leave; None where they leave it open on some side."""
    lows, highs = list[datetime.datetime](), list[datetime.datetime]()
    for sign, value in _conditions(part, known):
        moment = _moment(value)
        if moment is None:
            continue
        if sign not in MORE:
            highs.append(moment - datetime.timedelta(microseconds=1) if sign == "lt" and moment > datetime.datetime.min else moment)
        if sign not in LESS:
            lows.append(moment)
    return (max(lows), min(highs)) if lows and highs else None


def _moment(value: Value) -> datetime.datetime | None:
    if isinstance(value, datetime.datetime):
        return value
    return datetime.datetime.combine(value, datetime.time()) if isinstance(value, datetime.date) else None


def _is_daily(part: Scalar, column: Column) -> bool:
    """Whether the expression has one value for all moments of a day."""
    match part:
        case Column():
            return part != column
        case Literal():
            return True
        case Cast(type=kind) if kind == DATE:
            return True
        case Call(function="date_trunc" | "date_part", args=(Literal(value=unit), *_)) if unit in DAILY:
            return True
        case Call(function="dayname" | "monthname" | "last_day"):
            return True
        case Call(args=args):
            return all(_is_daily(arg, column) for arg in args)
        case Cast(arg=arg):
            return _is_daily(arg, column)
        case Case(branches=branches, otherwise=otherwise):
            parts = [one for branch in branches for one in branch] + ([] if otherwise is None else [otherwise])
            return all(_is_daily(one, column) for one in parts)
