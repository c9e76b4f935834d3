"""The value of an expression in a row, in plain Python: the part of the reference interpreter that stands inside its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never

from dpquery.plan.scalar import Call, Case, Cast, Column, Literal, Scalar
from dpquery.values.types import Kind

Row = Mapping[int, Any]


def value(scalar: Scalar, row: Row) -> Any:
    match scalar:
        case Literal(value=constant):
            return constant
        case Column(id=id):
            return row[id]
        case Case(branches=branches, otherwise=otherwise):
            for condition, result in branches:
                if value(condition, row) is True:
                    return value(result, row)
            return None if otherwise is None else value(otherwise, row)
        case Cast(arg=arg, type=type):
            return CASTS[type.kind](x) if (x := value(arg, row)) is not None else None
        case Call(function=function, args=args):
            return _call(function, [value(arg, row) for arg in args])
        case _:
            assert_never(scalar)


def _call(function: str, args: list[Any]) -> Any:
    match function:
        case "and":
            return False if False in args else None if None in args else True
        case "or":
            return True if True in args else None if None in args else False
        case "not":
            return None if args[0] is None else not args[0]
        case "is_null":
            return args[0] is None
        case "coalesce":
            return next((a for a in args if a is not None), None)
        case _:
            return None if None in args else STRICT[function](*args)


CASTS: dict[Kind, Callable[[Any], Any]] = {Kind.FLOAT: float}
STRICT: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "mod": lambda a, b: None if b == 0 else (abs(a) % abs(b)) * (1 if a >= 0 else -1),
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "in": lambda a, *many: a in many,
}
