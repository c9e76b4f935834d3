"""Declared columns: type words, bounds, steps and lists of values, each held against the others."""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Final

from dpquery.errors import SchemaError
from dpquery.schema.file import ColumnPart, Scalar, shown
from dpquery.schema.model import Column
from dpquery.schema.where import Where, near
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, STRING, TIMESTAMP, UUID, Kind, Type, Value

MAX_VALUES: Final = 10_000  # as many public keys as a statement may have
MAX_BYTES: Final = 4096  # strings are cut there when they are read
DIGITS: Final = 38
LARGEST: Final = {Kind.INTEGER: Decimal(2**63 - 1), Kind.FLOAT: Decimal("1e300")}
WORDS: Final = {"integer": INTEGER, "float": FLOAT, "string": STRING, "boolean": BOOLEAN, "date": DATE, "timestamp": TIMESTAMP, "uuid": UUID}
SYNONYMS: Final = {
    **dict.fromkeys(("int", "bigint", "smallint", "tinyint", "int64", "int32", "long"), "integer"),
    **dict.fromkeys(("double", "real", "number", "float64", "float32"), "float"),
    **dict.fromkeys(("text", "varchar", "char", "str", "enum"), "string"),
    **dict.fromkeys(("bool", "flag"), "boolean"),
    **dict.fromkeys(("datetime", "timestamptz"), "timestamp"),
    **dict.fromkeys(("numeric", "money"), "decimal(p,s)"),
}

_DECIMAL = re.compile(r"decimal\s*(?:\(\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\))?", re.ASCII)

Fail = Callable[..., SchemaError]


def column(name: str, part: ColumnPart, where: Where, path: tuple[str | int, ...]) -> Column:
    """The column as promised; SchemaError where its parts do not fit together."""

    def fail(code: str, message: str, *inner: str | int, instead: str | None = None) -> SchemaError:
        return where.error(code, message, *path, *inner, instead=instead)

    kind = _type(part, fail)
    _bounds(kind, part, fail)
    _step(kind, part, fail)
    values = None if part.values is None else _values(kind, part, fail)
    most = part.most_per_unit
    if most is not None and (not kind.numeric or most <= 0):
        raise fail("BAD_BOUNDS", "is what numbers of a unit add up to at most, above 0", "most_per_unit")
    return Column(
        name=name,
        type=kind,
        lower=part.lower,
        upper=part.upper,
        step=part.step,
        values=values,
        unique=part.unique,
        most_per_unit=most,
        origin=part.origin,
    )


def digits(number: Decimal) -> int:
    """How many digits stand after the point, trailing zeros left out."""
    denominator, count = Fraction(number).denominator, 0
    while denominator > 1 and 10**count % denominator:
        count += 1
    return count


def _type(part: ColumnPart, fail: Fail) -> Type:
    word = part.type.lower()
    if word in WORDS:
        return WORDS[word]
    match = _DECIMAL.fullmatch(word)
    if match is None:
        close = SYNONYMS.get(word.split("(")[0].strip()) or near(word, [*WORDS, "decimal"])
        instead = f"did you mean `{close}`?" if close else f"known types: {', '.join(WORDS)}, decimal(p,s)"
        raise fail("UNKNOWN_TYPE", f"no type is called {shown(part.type)}", "type", instead=instead)
    if match[1] is None:
        return _decimal_by_step(part, fail)
    precision, scale = int(match[1]), int(match[2])
    if not 1 <= precision <= DIGITS or scale > precision:
        raise fail("UNKNOWN_TYPE", f"decimal(p,s) has 1 <= p <= {DIGITS} and s <= p", "type")
    return Type(Kind.DECIMAL, scale)


def _decimal_by_step(part: ColumnPart, fail: Fail) -> Type:
    if part.step is None:
        raise fail(
            "UNKNOWN_TYPE", "how many digits it has after the point is not said", "type", instead="write `decimal(10,2)`, or a `step: 0.01` beside it"
        )
    scale = digits(part.step)
    if scale > DIGITS:
        raise fail("BAD_STEP", f"has more than {DIGITS} digits after the point", "step")
    return Type(Kind.DECIMAL, scale)


def _bounds(kind: Type, part: ColumnPart, fail: Fail) -> None:
    lower, upper = part.lower, part.upper
    for key, bound in (("lower", lower), ("upper", upper)):
        if bound is None:
            continue
        if not kind.numeric:
            raise fail("BAD_BOUNDS", f"a {kind.kind} column has no bounds", key, instead="leave it out; only numbers have bounds")
        if digits(bound) > kind.scale and kind.kind is not Kind.FLOAT:
            raise fail("BAD_BOUNDS", f"has more digits after the point than the column's type ({kind.scale})", key)
        if bound.copy_abs() > _largest(kind):
            raise fail("BAD_BOUNDS", f"is beyond what the type {kind.kind} can hold", key)
    if lower is None and upper is None:
        return
    if lower is None or upper is None:
        given, lacking = ("upper", "lower") if lower is None else ("lower", "upper")
        raise fail("BAD_BOUNDS", f"`{given}` is there but `{lacking}` is not", given, instead="write both, or neither")
    if lower > upper:
        raise fail("BAD_BOUNDS", f"lower ({lower}) is above upper ({upper})", "lower")
    if not lower and not upper:
        raise fail("BAD_BOUNDS", "both bounds are 0: every value would be 0", "upper")


def _largest(kind: Type) -> Decimal:
    if kind.kind is Kind.DECIMAL:
        return Decimal(10 ** (DIGITS - kind.scale) - 1)
    return LARGEST[kind.kind]


def _step(kind: Type, part: ColumnPart, fail: Fail) -> None:
    step = part.step
    if step is None:
        return
    if not kind.numeric:
        raise fail("BAD_STEP", f"a {kind.kind} column has no step", "step", instead="leave it out; only numbers have a step")
    if step <= 0:
        raise fail("BAD_STEP", f"must be above 0, not {step}", "step")
    if digits(step) > kind.scale and kind.kind is not Kind.FLOAT:
        raise fail("BAD_STEP", f"has more digits after the point than the column's type ({kind.scale})", "step")
    if part.lower is not None and part.upper is not None and step > max(part.lower.copy_abs(), part.upper.copy_abs()):
        raise fail("BAD_STEP", f"({step}) is wider than the bounds: every value would be rounded away", "step")


def _values(kind: Type, part: ColumnPart, fail: Fail) -> tuple[Value, ...]:
    items = part.values or []
    if not 1 <= len(items) <= MAX_VALUES:
        raise fail("BAD_VALUES", f"must list 1 to {MAX_VALUES:,} values, not {len(items):,}", "values")
    seen: dict[Value, int] = {}
    for i, item in enumerate(items):
        value = None if item is None else _value(kind, item, partial(fail, "BAD_VALUES"), i)
        if value in seen:
            raise fail("BAD_VALUES", f"is listed twice, first as values[{seen[value]}]", "values", i)
        if value is not None and part.lower is not None and part.upper is not None and not part.lower <= Decimal(str(item)) <= part.upper:
            raise fail("BAD_VALUES", f"{shown(item)} is outside the bounds", "values", i)
        seen[value] = i
    if part.unique and None in seen:
        raise fail("BAD_VALUES", "a unique column has no NULL", "values", seen[None])
    return tuple(seen)


def _value(kind: Type, item: Scalar, fail: Fail, i: int) -> Value:
    match kind.kind:
        case Kind.BOOLEAN if isinstance(item, bool):
            return item
        case Kind.INTEGER | Kind.DECIMAL | Kind.FLOAT if isinstance(item, int | Decimal) and not isinstance(item, bool):
            return _numeric(kind, Decimal(item), fail, i)
        case Kind.STRING if isinstance(item, str):
            if len(item.encode()) > MAX_BYTES or "\0" in item:
                raise fail(f"text of at most {MAX_BYTES:,} bytes, without NUL characters", "values", i)
            return item
        case Kind.STRING:
            raise fail(f"must be text, not {shown(item)}", "values", i, instead="put it in quotes")
        case Kind.DATE | Kind.TIMESTAMP | Kind.UUID if isinstance(item, str):
            return _written(kind, item, fail, i)
    raise fail(f"{shown(item)} is not of the type {kind.kind}", "values", i)


def _numeric(kind: Type, number: Decimal, fail: Fail, i: int) -> Value:
    if not number.is_finite() or number.copy_abs() > _largest(kind):
        raise fail(f"{shown(number)} is beyond what the type {kind.kind} can hold", "values", i)
    if kind.kind is Kind.FLOAT:
        return float(number) + 0.0
    if digits(number) > kind.scale:
        raise fail(f"{shown(number)} has more digits after the point than the column's type ({kind.scale})", "values", i)
    return int(number) if kind.kind is Kind.INTEGER else number


def _written(kind: Type, text: str, fail: Fail, i: int) -> Value:
    forms = {Kind.DATE: "2024-01-31", Kind.TIMESTAMP: "2024-01-31 12:30:00", Kind.UUID: "12345678-1234-5678-1234-567812345678"}
    try:
        match kind.kind:
            case Kind.DATE:
                day = datetime.date.fromisoformat(text)
                if day.isoformat() == text:
                    return day
            case Kind.TIMESTAMP:
                moment = datetime.datetime.fromisoformat(text)
                if moment.tzinfo is None:
                    return moment
            case Kind.UUID if len(text) == 36:
                return uuid.UUID(text)
    except ValueError:
        pass
    raise fail(f"{shown(text)} is not a {kind.kind}", "values", i, instead=f"write it like {forms[kind.kind]}")
