"""How long texts can become: what bounds the memory of one row."""

from __future__ import annotations

from dpquery.plan.coerce import LONGEST
from dpquery.plan.rules import GROWTH, MOST_GROUPS
from dpquery.plan.scalar import Call, Case, Cast, Column, Literal, Scalar
from dpquery.values.types import Kind

MOST_SPELLED = 64  # characters of any value but a text, spelled out


def longest(scalar: Scalar) -> int:
    """The most characters that a text expression can have."""
    match scalar:
        case Literal(value=value):
            return len(value) if isinstance(value, str) else 0
        case Cast(arg=arg):
            return min(LONGEST, longest(arg)) if arg.type.kind is Kind.STRING else MOST_SPELLED
        case Case():
            return max((longest(result) for result in results(scalar)), default=0)
        case Call(function="coalesce" | "greatest" | "least", args=args):
            return max(longest(arg) for arg in args)
        case Call(function="left" | "right", args=(arg, Literal(value=int(count)))) if count >= 0:
            return min(longest(arg), count)
        case Call(function="substring", args=(arg, _, Literal(value=int(count)))):
            return min(longest(arg), abs(count))
        case Call(function="lower" | "upper" | "trim" | "ltrim" | "rtrim" | "left" | "right" | "substring" | "regexp_extract", args=args):
            return longest(args[0])
        case Call(function="dayname" | "monthname"):
            return MOST_SPELLED
        case Call(function="cat" | "concat", args=args):
            return min(LONGEST, sum(longest(arg) for arg in args))
        case Call() | Column():
            return LONGEST


def bulk(scalar: Scalar) -> int:
    """The most characters that the engine holds for one row to work out this node alone, its arguments not counted."""
    match scalar:
        case Call(function="replace", args=args):
            return GROWTH * longest(args[0])
        case Call(function="regexp_replace", args=args):
            return (GROWTH + MOST_GROUPS) * (longest(args[0]) + 1)
        case Call(function="cat" | "concat", args=args):
            return sum(longest(arg) for arg in args)
        case Call() | Cast() if scalar.type.kind is Kind.STRING:
            return longest(scalar)
        case _:
            return 0


def results(case: Case) -> tuple[Scalar, ...]:
    """What a CASE can result in, its NULLs left out."""
    found = (*(result for _, result in case.branches), *(() if case.otherwise is None else (case.otherwise,)))
    return tuple(one for one in found if not (isinstance(one, Literal) and one.value is None))
