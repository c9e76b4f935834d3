"""Which types meet: the implicit conversions of DuckDB for the common cases, refused where DuckDB would convert a column row by row and fail."""

from __future__ import annotations

import datetime
import math
import re
import uuid
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

from dpquery.plan.scalar import Cast, Literal, Scalar
from dpquery.values.types import FLOAT, INTEGER, NULL, STRING, TIMESTAMP, Kind, Type, Value

LONGEST = 4096  # characters of a string below the noise line
DIGITS = 38  # of a decimal
LEAST_INTEGER, GREATEST_INTEGER = -(2**63), 2**63 - 1

_INTEGER = re.compile(r"\s*[+-]?\d{1,19}\s*", re.ASCII)
_NUMBER = re.compile(r"\s*[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,4})?\s*", re.ASCII)
_DATE = re.compile(r"\s*(\d{4})[-/](\d{1,2})[-/](\d{1,2})\s*", re.ASCII)
_TIME = re.compile(r"\s*(\d{4})[-/](\d{1,2})[-/](\d{1,2})[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?\s*", re.ASCII)
_TRUTH = {"true": True, "t": True, "false": False, "f": False}
_EXACT = Context(prec=2 * DIGITS)

CASTS: dict[Kind, frozenset[Kind]] = {
    Kind.BOOLEAN: frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.STRING}),
    Kind.INTEGER: frozenset({Kind.BOOLEAN, Kind.DECIMAL, Kind.FLOAT, Kind.STRING}),
    Kind.DECIMAL: frozenset({Kind.BOOLEAN, Kind.INTEGER, Kind.FLOAT, Kind.STRING}),
    Kind.FLOAT: frozenset({Kind.BOOLEAN, Kind.INTEGER, Kind.DECIMAL, Kind.STRING}),
    Kind.STRING: frozenset({Kind.BOOLEAN, Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.DATE, Kind.TIMESTAMP, Kind.UUID}),
    Kind.DATE: frozenset({Kind.TIMESTAMP, Kind.STRING}),
    Kind.TIMESTAMP: frozenset({Kind.DATE, Kind.STRING}),
    Kind.UUID: frozenset({Kind.STRING}),
    Kind.INTERVAL: frozenset(),
    Kind.NULL: frozenset(set(Kind) - {Kind.INTERVAL, Kind.NULL, Kind.LIST}),
    Kind.LIST: frozenset(),
}
"""From which kind to which other kinds a cast is allowed."""


class Mismatch(Exception):
    """An expression that has no type: what is wrong and what to write instead. The reader of SQL adds the place."""

    def __init__(self, message: str, *, code: str = "TYPE_MISMATCH", instead: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.instead = code, message, instead


def named(kind: Type) -> str:
    """The type with its article, for messages."""
    return f"{'an' if kind.kind in (Kind.INTEGER, Kind.INTERVAL) else 'a'} {kind}"


def common(args: Sequence[Scalar]) -> Type:
    """The one type in which the arguments are compared or united. Text literals take the type of the rest, as NULL does."""
    firm = [arg for arg in args if not _pliant(arg)]
    if any(arg.type.kind is Kind.BOOLEAN for arg in firm):
        firm = [arg for arg in firm if not _bit(arg)]
    firm = firm or [arg for arg in args if arg.type not in (STRING, NULL)]  # NULLs that a cast gave a type
    if not firm:
        return STRING if any(arg.type == STRING for arg in args) else NULL
    found = firm[0].type
    for arg in firm[1:]:
        joined = _join(found, arg.type)
        if joined is None:
            raise Mismatch(f"{named(found)} and {named(arg.type)} do not go together", instead=_bridge(found, arg.type))
        found = joined
    return found


def _bridge(a: Type, b: Type) -> str:
    """What brings values of two types together."""
    kinds = {a.kind, b.kind}
    if kinds & {Kind.DATE, Kind.TIMESTAMP} and (a.numeric or b.numeric):
        return "year(d), date_part('month', d) or date_diff('day', d, e) for a number; '2024-01-31' for a date"
    if Kind.BOOLEAN in kinds and (a.numeric or b.numeric):
        return "CASE WHEN b THEN 1 ELSE 0 END"
    if Kind.STRING in kinds:
        other = b if a.kind is Kind.STRING else a
        return f"CAST(s AS {_SQL.get(other.kind, 'VARCHAR')}) of the string, or a literal of its kind"
    return "expressions of one type"


_SQL = {
    Kind.INTEGER: "BIGINT",
    Kind.DECIMAL: "DECIMAL(18, 2)",
    Kind.FLOAT: "DOUBLE",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.UUID: "UUID",
}


def _pliant(arg: Scalar) -> bool:
    return arg.type.kind is Kind.NULL or (isinstance(arg, Literal) and (arg.value is None or arg.type == STRING))


def _bit(arg: Scalar) -> bool:
    return isinstance(arg, Literal) and arg.type == INTEGER and arg.value in (0, 1)


def _join(a: Type, b: Type) -> Type | None:
    if a.kind is b.kind:
        return Type(a.kind, max(a.scale, b.scale))
    if a.numeric and b.numeric:
        return FLOAT if Kind.FLOAT in (a.kind, b.kind) else a if a.kind is Kind.DECIMAL else b
    return TIMESTAMP if {a.kind, b.kind} == {Kind.DATE, Kind.TIMESTAMP} else None


def convert(arg: Scalar, to: Type) -> Scalar:
    """The argument in another type: a literal is converted here and now where that is exact, anything else by a total cast."""
    if arg.type == to:
        return arg
    if to.kind is not arg.type.kind and to.kind not in CASTS[arg.type.kind]:
        raise Mismatch(f"{named(arg.type)} cannot be turned into {named(to)}", instead=_bridge(arg.type, to))
    return fold(arg, to) if isinstance(arg, Literal) else Cast(arg, to)


def fold(arg: Literal, to: Type) -> Scalar:
    """The literal in another type; a cast of it where the conversion is not exact. A text that is no such value is refused."""
    value = arg.value
    match value:
        case None:
            return Literal(None, to)
        case str() if to != STRING:
            return Literal(parse(value, to), to)
        case bool():
            return Literal(int(value), INTEGER) if to == INTEGER else Cast(arg, to)
        case int() if to.kind is Kind.BOOLEAN and value in (0, 1):
            return Literal(value == 1, to)
        case int() | Decimal() if to == FLOAT:
            return Literal(float(value), to)
        case int() | Decimal() if to.kind is Kind.DECIMAL and to.scale >= arg.type.scale:
            return Literal(rescaled(Decimal(value), to.scale), to)
        case datetime.datetime():
            return Cast(arg, to)
        case datetime.date() if to == TIMESTAMP:
            return Literal(datetime.datetime(value.year, value.month, value.day), to)
        case _:
            return Cast(arg, to)


def rescaled(value: Decimal, scale: int) -> Decimal:
    """The decimal with exactly `scale` digits after the point, ties away from zero; refused beyond 38 digits."""
    result = value.quantize(Decimal(1).scaleb(-scale, _EXACT), ROUND_HALF_UP, _EXACT)
    if len(result.as_tuple().digits) > DIGITS:
        raise Mismatch(f"the number has more than {DIGITS} digits as a decimal of scale {scale}", code="BAD_LITERAL", instead="a DOUBLE, as in 1e0")
    return result + 0 if result else abs(result)


def parse(text: str, to: Type) -> Value:
    """The value that a text literal stands for where another type is wanted."""
    value: Value = None
    match to.kind:
        case Kind.INTEGER:
            value = _integer(text)
        case Kind.DECIMAL:
            value = rescaled(Decimal(text.strip()), to.scale) if _NUMBER.fullmatch(text) and abs(float(text)) < 1e38 else None
        case Kind.FLOAT:
            value = float(text) + 0.0 if _NUMBER.fullmatch(text) and math.isfinite(float(text)) else None
        case Kind.BOOLEAN:
            value = _TRUTH.get(text.strip().lower())
        case Kind.DATE:
            value = _date(text)
        case Kind.TIMESTAMP:
            value = _timestamp(text)
        case Kind.UUID:
            value = _uuid(text)
        case Kind.STRING | Kind.INTERVAL | Kind.NULL | Kind.LIST:
            value = None
    if value is None:
        raise Mismatch(f"{shown(text)} is not {named(to)}", code="BAD_LITERAL", instead=_EXAMPLES.get(to.kind))
    return value


_EXAMPLES = {
    Kind.DATE: "a date written as '2024-01-31'",
    Kind.TIMESTAMP: "a timestamp without zone, written as '2024-01-31 12:00:00'",
    Kind.BOOLEAN: "TRUE or FALSE",
    Kind.UUID: "a UUID of 32 hexadecimal digits",
}


def shown(text: str) -> str:
    """A text literal for a message: quoted, cut."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _integer(text: str) -> int | None:
    value = int(text) if _INTEGER.fullmatch(text) else None
    return value if value is not None and LEAST_INTEGER <= value <= GREATEST_INTEGER else None


def _date(text: str) -> datetime.date | None:
    found = _DATE.fullmatch(text)
    try:
        return datetime.date(*map(int, found.groups())) if found else None
    except ValueError:
        return None


def _timestamp(text: str) -> datetime.datetime | None:
    day = _date(text)
    if day is not None:
        return datetime.datetime(day.year, day.month, day.day)
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    year, month, date, hour, minute, second, fraction = found.groups(default="0")
    try:
        return datetime.datetime(int(year), int(month), int(date), int(hour), int(minute), int(second), int(fraction.ljust(6, "0")))
    except ValueError:
        return None


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text.strip())
    except ValueError:
        return None
