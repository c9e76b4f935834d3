"""Listed keys as the values that a column of their type can hold, so that equal keys are one key."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation, localcontext
from math import isnan

from dpquery.plan.coerce import DIGITS, GREATEST_INTEGER, LEAST_INTEGER, LONGEST
from dpquery.values.types import Kind, Type, Value

Row = tuple[Value, ...]


def canonical(row: Row, types: Sequence[Type]) -> Row | None:
    """The tuple in its keys' types; None where a value has no place in its type, so that no row can have that key."""
    found = tuple(_value(value, kind) for value, kind in zip(row, types, strict=True))
    return None if any(f is None and v is not None for f, v in zip(found, row, strict=True)) else found


def _value(value: Value, kind: Type) -> Value:
    match kind.kind, value:
        case Kind.BOOLEAN, bool():
            return value
        case Kind.STRING, str():
            return value[:LONGEST]
        case Kind.UUID, uuid.UUID():
            return value
        case Kind.TIMESTAMP, datetime.datetime(tzinfo=None):
            return value
        case Kind.TIMESTAMP, datetime.date():
            return datetime.datetime(value.year, value.month, value.day)
        case Kind.DATE, datetime.datetime():
            return value.date() if value == datetime.datetime(value.year, value.month, value.day) else None
        case Kind.DATE, datetime.date():
            return value
        case ((Kind.INTEGER | Kind.DECIMAL | Kind.FLOAT), (int() | float() | Decimal())):
            return _number(value, kind)
        case _:
            return None


def _number(value: int | float | Decimal, kind: Type) -> Value:
    """The number where the type holds exactly it; as a float the nearest one."""
    if kind.kind is Kind.FLOAT:
        try:
            near = float(value) + 0.0
        except OverflowError:
            return None
        return None if isnan(near) else near
    exact = Decimal(value)
    if not exact.is_finite():
        return None
    if kind.kind is Kind.INTEGER:
        return int(exact) if LEAST_INTEGER <= exact <= GREATEST_INTEGER and exact == exact.to_integral_value() else None
    try:
        with localcontext() as context:
            context.prec = DIGITS
            scaled = exact.quantize(Decimal(1).scaleb(-kind.scale))
    except InvalidOperation:
        return None
    return scaled + 0 if scaled == exact else None
