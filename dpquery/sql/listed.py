"""Lists of values that the statement or the schema gives of an expression: those of a condition on it, the results of a CASE, what is declared."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from dpquery.plan.coerce import Mismatch, convert, rescaled
from dpquery.plan.scalar import Call, Case, Cast, Column, Literal, Scalar
from dpquery.sql import bins
from dpquery.values.types import INTEGER, Kind, Type, Value


def listed(value: Scalar, known: Sequence[Scalar]) -> tuple[Value, ...] | None:
    """The values of an expression, without NULL: those that a condition on it lists, the results of a CASE, what is declared, what bounds leave."""
    lists = [stated for fact in known if (stated := alternatives(fact, value, value.type)) is not None]
    found: Sequence[Value] | None = lists[0] if lists else results(value, value.type)
    if found is None:
        found = bins.values(value, known) if not isinstance(value, Column) or value.values is None else value.values
    return None if found is None else tuple(dict.fromkeys(one for one in found if one is not None))


def alternatives(fact: Scalar, key: Scalar, kind: Type) -> list[Value] | None:
    """The values that `key IN (..)`, `key = ..`, or either with `OR key IS NULL`, leaves; None if the condition is none of these."""
    match fact:
        case Call(function="in", args=(first, *rest)) if _is(first, key):
            return _values(rest, kind)
        case Call(function="eq", args=(first, Literal() as literal)) | Call(function="eq", args=(Literal() as literal, first)) if _is(first, key):
            return _values([literal], kind)
        case Call(function="is_null", args=(first,)) if first == key:
            return [None]
        case Call(function="or", args=args):
            lists = [alternatives(arg, key, kind) for arg in args]
            return None if any(each is None for each in lists) else [value for each in lists if each is not None for value in each]
        case _:
            return None


def _is(one: Scalar, key: Scalar) -> bool:
    """Whether an expression is the key, or the key as a decimal of at least as many digits, which keeps values apart."""
    match one:
        case Cast(arg=arg, type=Type(kind=Kind.DECIMAL, scale=scale)) if key.type.kind in (Kind.INTEGER, Kind.DECIMAL) and scale >= key.type.scale:
            return arg == key
        case _:
            return one == key


def _exactly(value: Decimal, kind: Type) -> list[Value]:
    """The number in the key's type; nothing where it has no such value, and so equals no key."""
    if kind == INTEGER:
        return [int(value)] if value == int(value) else []
    try:
        made = rescaled(value, kind.scale)
    except Mismatch:
        return []
    return [made] if made == value else []


def _values(literals: Sequence[Scalar], kind: Type) -> list[Value] | None:
    """The literals in the key's type; NULL equals nothing and is left out."""
    found: list[Value] = []
    for literal in literals:
        if kind.kind in (Kind.INTEGER, Kind.DECIMAL) and isinstance(literal, Literal) and isinstance(literal.value, Decimal):
            found += _exactly(literal.value, kind)
            continue
        one = _value(literal, kind)
        if one is None:
            return None
        if one.value is not None:
            found.append(one.value)
    return found


def _value(literal: Scalar, kind: Type) -> Literal | None:
    """The literal in another type, where it is the same value there."""
    if not isinstance(literal, Literal):
        return None
    try:
        made = convert(literal, kind)
    except Mismatch:
        return None
    return made if isinstance(made, Literal) else None


def results(value: Scalar, kind: Type) -> list[Value] | None:
    """The results of a literal, or of a CASE all of whose branches are literals and which has an ELSE."""
    match value:
        case Literal():
            return [value.value]
        case Case(branches=branches, otherwise=otherwise) if otherwise is not None:
            parts = [results(result, kind) for result in (*(result for _, result in branches), otherwise)]
            return None if any(part is None for part in parts) else [v for part in parts if part is not None for v in part]
        case _:
            return None
