"""Values, columns and casts as total DuckDB SQL: nothing here can fail, whatever the data."""

from __future__ import annotations

import datetime
import math
import uuid
from decimal import Decimal
from typing import assert_never

from dpquery.plan.coerce import LONGEST
from dpquery.values.types import Kind, Type, Value

NAMES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.FLOAT: "DOUBLE",
    Kind.STRING: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.UUID: "UUID",
    Kind.INTERVAL: "INTERVAL",
    Kind.NULL: "BIGINT",
}
INFINITY = "'inf'::DOUBLE"


def type_name(type_: Type) -> str:
    """The type as DuckDB names it."""
    if type_.kind is Kind.LIST:
        return f"{type_name(type_.element)}[]"
    return f"DECIMAL(38,{type_.scale})" if type_.kind is Kind.DECIMAL else NAMES[type_.kind]


def literal(value: Value, type_: Type) -> str:
    """The value as SQL of exactly that type. NaN is NULL."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return f"NULL::{type_name(type_)}"
    match type_.kind:
        case Kind.BOOLEAN:
            return "TRUE" if value else "FALSE"
        case Kind.INTEGER | Kind.NULL:
            return _integer(value if isinstance(value, int) else int(str(value)))
        case Kind.DECIMAL:
            return f"'{Decimal(str(value)):.{type_.scale}f}'::{type_name(type_)}"
        case Kind.FLOAT:
            return _float(float(str(value)))
        case Kind.STRING:
            return quoted(str(value))
        case Kind.DATE:
            return f"DATE '{_day(value)}'"
        case Kind.TIMESTAMP:
            return f"TIMESTAMP '{_moment(value)}'"
        case Kind.UUID:
            return f"'{uuid.UUID(str(value))}'::UUID"
        case Kind.INTERVAL | Kind.LIST:
            raise TypeError(f"{type_} is no value")
        case _:
            assert_never(type_.kind)


def quoted(text: str) -> str:
    """A text literal. DuckDB's plain quotes know no backslash; a zero character is put together, as no SQL text may hold one."""
    plain = "'" + text.replace("'", "''") + "'"
    return plain if "\0" not in text else "(" + plain.replace("\0", "' || chr(0) || '") + ")"


def _signed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _integer(value: int) -> str:
    return f"{_signed(str(int(value)))}::BIGINT" if value > -(2**63) else f"'{value}'::BIGINT"


def _float(value: float) -> str:
    if math.isinf(value):
        return f"'{value}'::DOUBLE"
    text = repr(value + 0.0)
    return _signed(text if "e" in text else text + "e0") + "::DOUBLE"


def _day(value: Value) -> str:
    if isinstance(value, datetime.date):
        return value.strftime("%Y-%m-%d").zfill(10)
    raise TypeError("not a date")


def _moment(value: Value) -> str:
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f").zfill(26)
    raise TypeError("not a timestamp")


def handed(text: str, type_: Type) -> str:
    """A canonical value as it can be handed over: a date beyond the years 1 to 9999, infinity too, is NULL. `text` is repeated."""
    match type_.kind:
        case Kind.DATE:
            return f"CASE WHEN ({text}) BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN ({text}) END"
        case Kind.TIMESTAMP:
            return f"CASE WHEN ({text}) BETWEEN TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999' THEN ({text}) END"
        case _:
            return text


def scan(physical: str, type_: Type) -> str:
    """A raw column as its declared type, in canonical form: what does not fit is NULL, floats have no NaN and no -0.0, texts are cut.

    `physical` is repeated, so it should be a column. A zoned column becomes a TIMESTAMP by the session's zone, which the backend pins to UTC.
    """
    cast = f"TRY_CAST({physical} AS {type_name(type_)})"
    match type_.kind:
        case Kind.FLOAT:
            return f"CASE WHEN {cast} <= {INFINITY} THEN {cast} + 0.0 END"
        case Kind.STRING:
            return f"CASE WHEN strlen({cast}) <= {LONGEST} THEN {cast} ELSE left({cast}, {LONGEST}) END"
        case _:
            return cast


def cast(text: str, source: Type, to: Type) -> str:
    """A total cast between two types of the plan. Only where no value can fail to fit is it a plain one (cheaper)."""
    plain = f"CAST({text} AS {type_name(to)})"
    match source.kind, to.kind:
        case (Kind.NULL, _) | (Kind.BOOLEAN, Kind.INTEGER | Kind.FLOAT | Kind.STRING) | (Kind.INTEGER, Kind.FLOAT | Kind.BOOLEAN | Kind.STRING):
            return plain
        case (Kind.DECIMAL, Kind.FLOAT | Kind.BOOLEAN | Kind.STRING) | (Kind.FLOAT, Kind.BOOLEAN | Kind.STRING):
            return plain
        case (Kind.INTEGER, Kind.DECIMAL) if to.scale <= 38 - 19:
            return plain
        case (Kind.DATE | Kind.TIMESTAMP | Kind.UUID, Kind.STRING):
            return plain
        case _:
            return f"TRY_CAST({text} AS {type_name(to)})"
