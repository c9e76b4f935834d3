"""Conditions that no row meets as the schema declares its columns: a value that is on no declared list, a number beyond declared bounds.

The declaration is not believed, so the question is answered and charged; a word on it is a function of the statement and the schema alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpquery.plan.intervals import span
from dpquery.plan.scalar import Call, Column, Literal, Scalar, conjuncts, walk
from dpquery.sql.refuse import near

MOST = 3  # values of one list that are named
SEARCHED = 500  # declared values that are looked through for one like it

SIGNS = {"eq": "=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
TURNED = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def told(conditions: Iterable[Scalar | None]) -> tuple[str, ...]:
    """A word on each such condition, once."""
    found: dict[str, None] = {}
    for condition in conditions:
        for part in conjuncts(condition):
            found.update(dict.fromkeys(_beyond(part)))
            for below in walk(part):
                found.update(dict.fromkeys(_unlisted(below)))
    return tuple(found)


def _unlisted(scalar: Scalar) -> Iterator[str]:
    match scalar:
        case Call(function="eq" | "ne" | "in", args=(Column(values=values) as column, *literals)) if values is not None:
            pass
        case Call(function="eq" | "ne", args=(Literal() as literal, Column(values=values) as column)) if values is not None:
            literals = [literal]
        case _:
            return
    known = frozenset(values)
    odd = [one for one in literals if isinstance(one, Literal) and one.type == column.type and one.value is not None and one.value not in known]
    for one in odd[:MOST]:
        like = near(str(one.value)[:60], map(str, values)) if len(values) <= SEARCHED else ""
        yield f"{_shown(one)} is none of the declared values of {column.name}, so that as declared no row has it{like}."
    if len(odd) > MOST:
        yield f"{len(odd) - MOST:,} more values beside {column.name} are none of its declared ones."


def _beyond(scalar: Scalar) -> Iterator[str]:
    match scalar:
        case Call(function=sign, args=(Column() as column, Literal() as literal)) if sign in SIGNS:
            pass
        case Call(function=turned, args=(Literal() as literal, Column() as column)) if turned in SIGNS:
            sign = TURNED[turned]
        case Call(function="between", args=(Column() as column, Literal() as low, Literal() as high)):
            yield from _beyond(Call("ge", (column, low), scalar.type))
            yield from _beyond(Call("le", (column, high), scalar.type))
            return
        case _:
            return
    bounds, value = column.declared, span(literal).low
    if bounds is None or value is None or not column.type.numeric:
        return
    below = sign in ("gt", "ge", "eq") and (value > bounds.high or (value == bounds.high and sign == "gt"))
    above = sign in ("lt", "le", "eq") and (value < bounds.low or (value == bounds.low and sign == "lt"))
    if below or above:
        ends = f"{float(bounds.low):g} to {float(bounds.high):g}"
        yield f"{column.name} {SIGNS[sign]} {_shown(literal)}: {column.name} is declared from {ends}, so that as declared no row meets it."


def _shown(literal: Literal) -> str:
    return "'" + str(literal.value).replace("'", "''")[:60] + "'" if isinstance(literal.value, str) else str(literal.value)[:60]
