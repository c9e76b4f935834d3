"""Casts and the names of types."""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from dpquery.plan.coerce import DIGITS, Mismatch, convert, fold
from dpquery.plan.functions import call, choose
from dpquery.plan.scalar import Column, Literal, Scalar
from dpquery.sql.fields import take
from dpquery.sql.visit import At
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, STRING, TIMESTAMP, UUID, Kind, Type

TYPES: dict[str, Type] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT"), INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE"), FLOAT),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "NCHAR", "NVARCHAR", "BPCHAR"), STRING),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"), TIMESTAMP),
    "BOOLEAN": BOOLEAN,
    "DATE": DATE,
    "UUID": UUID,
}
"""Types by the parser's name; narrow ones are of the wide one of their kind."""
BITS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 32, "INT": 32}

INSTEAD = {
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMPLTZ"), "TIMESTAMP without a zone, which is in UTC: CAST('2024-03-01 10:00:00' AS TIMESTAMP)"),
    "INTERVAL": "d + INTERVAL 1 DAY, with a literal",
}


def cast_to(arg: Scalar, to: Type, *, lenient: bool) -> Scalar:
    """An explicit cast. A text literal that is no such value is refused, or NULL where the cast is a lenient one."""
    try:
        return fold(arg, to) if isinstance(arg, Literal) and arg.type == STRING and to != STRING else convert(arg, to)
    except Mismatch as error:
        if lenient and error.code == "BAD_LITERAL":
            return Literal(None, to)
        raise


def narrowed(scalar: Scalar, node: exp.Expr, arg: Scalar, *, lenient: bool) -> Scalar:
    """The result of a cast, NULL where it does not fit into the type as written, which may be narrower than that of the plan.

    A bare column of integers stays the column that it is under a cast to 32 bits.
    """
    ends = _ends(node)
    if ends is None or arg.type.kind is Kind.BOOLEAN or (isinstance(scalar, Column) and ends[1].value == 2**31 - 1):
        return scalar
    if not isinstance(scalar, Literal):
        return choose([(call("between", scalar, *ends), scalar)], None)
    if scalar.value is None or ends[0].value <= scalar.value <= ends[1].value:  # type: ignore[operator]
        return scalar
    if lenient:
        return Literal(None, scalar.type)
    raise Mismatch(f"{scalar.value} does not fit into the type", code="BAD_LITERAL", instead="a wider type, or TRY_CAST for NULL")


def _ends(node: exp.Expr) -> tuple[Literal, Literal] | None:
    """The least and greatest value of a type that is narrower than the plan's of its kind."""
    kind, params, _ = take(node, "this", "expressions", "nested")
    name = str(getattr(kind, "name", kind))
    if name in BITS:
        return Literal(-(2 ** (BITS[name] - 1)), INTEGER), Literal(2 ** (BITS[name] - 1) - 1, INTEGER)
    if name != "DECIMAL" or not params:
        return None
    digits, scale = (*sizes(node), 0)[:2]
    most = Decimal((0, (9,) * digits, -scale))
    return None if digits == DIGITS else (Literal(-most, Type(Kind.DECIMAL, scale)), Literal(most, Type(Kind.DECIMAL, scale)))


def type_of(node: exp.Expr, at: At) -> Type:
    """The plan's type for a type as written."""
    kind, params, _ = take(node, "this", "expressions", "nested")
    name = str(getattr(kind, "name", kind))
    if name in TYPES and not params:
        return TYPES[name]
    if name in TYPES:
        message = f"{name} has no size here: DuckDB reads none, other dialects cut texts and fractions to it"
        raise at.refuse("TYPE_NOT_ALLOWED", message, node, "the type without it; LEFT(s, n) cuts a text, ROUND a number")
    if name != "DECIMAL":
        raise at.refuse(
            "TYPE_NOT_ALLOWED", f"no expression can have the type {name}", node, INSTEAD.get(name, "BIGINT, DECIMAL(p, s), DOUBLE or VARCHAR")
        )
    found = sizes(node)
    if not found:
        raise at.refuse("TYPE_NOT_ALLOWED", "DECIMAL without digits means something else in each dialect", node, "DECIMAL(18, 3)")
    digits, scale = found[0], found[1] if len(found) > 1 else 0
    if len(found) > 2 or not (1 <= digits <= 38 and 0 <= scale <= digits):
        raise at.refuse("TYPE_NOT_ALLOWED", "DECIMAL(p, s) takes p up to 38 and s up to p", node)
    return Type(Kind.DECIMAL, scale)


def sizes(node: exp.Expr) -> tuple[int, ...]:
    """The sizes in a type's brackets, -1 for whatever is no whole number: the parser lets any text stand there, and writes it out as it is."""
    return tuple(_size(param) for param in take(node, "this", "expressions", "nested")[1] or ())


def _size(param: exp.Expr) -> int:
    number = take(param, "this")[0] if isinstance(param, exp.DataTypeParam) else None
    text = str(take(number, "this", "is_string")[0]) if isinstance(number, exp.Literal) else ""
    return int(text) if text.isdecimal() and len(text) < 4 else -1
