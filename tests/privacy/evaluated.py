"""The value of an expression in a row, in plain Python: the part of the reference interpreter that stands inside its nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
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
            chosen = next((result for condition, result in branches if value(condition, row) is True), otherwise)
            return None if chosen is None else value(chosen, row)
        case Cast(arg=arg, type=type):
            return CASTS[type.kind](x) if (x := value(arg, row)) is not None else None
        case Call(function=function, args=args):
            known = [value(arg, row) for arg in args]
            if function in OF_NULLS:
                return OF_NULLS[function](known)
            return None if None in known else STRICT[function](*known)
        case _:
            assert_never(scalar)


CASTS: dict[Kind, Callable[[Any], Any]] = {Kind.FLOAT: float}
OF_NULLS: dict[str, Callable[[Sequence[Any]], Any]] = {  # those that make something of NULL
    "and": lambda known: False if False in known else None if None in known else True,
    "or": lambda known: True if True in known else None if None in known else False,
    "is_null": lambda known: known[0] is None,
    "coalesce": lambda known: next((x for x in known if x is not None), None),
}
STRICT: dict[str, Callable[..., Any]] = {  # the others are NULL where an argument is
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge")},
    "mod": lambda a, b: None if b == 0 else (abs(a) % abs(b)) * (1 if a >= 0 else -1),
    "not": lambda a: not a,
    "div": lambda a, b: None if b == 0 else float(a) / float(b),
    "in": lambda a, *many: a in many,
}
