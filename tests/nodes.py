"""Which node types, and which options of them, a set of plans shows: a node or an option that no generator makes fails a test.

What is required is read from the dataclasses themselves, so that a new class, a new member of a union or an enumeration, or a new optional field is
required from the day it is written. A field of a number or a text with a default must be seen with it and without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from dpquery.plan.scalar import Scalar
from dpquery.values.types import Value

ALIKE = (Value, Scalar)  # a constant of any type, an expression of any form: one kind
SIZED = (tuple, frozenset, Mapping, dict)


def required(roots: Iterable[Any], leaves: frozenset[type] = frozenset()) -> set[str]:
    """All that values of these types can show: "Match", "Match.join=left", "Lookup.on=None". Nothing of what lies inside the leaves."""
    found: set[str] = set()
    waiting, known = [one for root in roots for one in _classes(root)], set[type]()
    while waiting:
        made = waiting.pop()
        if made in known or made in leaves:
            continue
        known.add(made)
        found.add(made.__name__)
        for field, hint in _hinted(made):
            found.update(f"{made.__name__}.{field.name}={kind}" for kind in _kinds(field, hint))
            waiting += _classes(hint)
    return found


def shown(value: Any, leaves: frozenset[type] = frozenset()) -> Iterator[str]:
    """What a value shows, and all that it holds."""
    if isinstance(value, tuple | frozenset):
        for item in value:
            yield from shown(item, leaves)
    elif is_dataclass(value) and type(value) not in leaves:
        name = type(value).__name__
        yield name
        for field, hint in _hinted(type(value)):
            held = getattr(value, field.name)
            kind = _kind(field, hint, held)
            if kind is not None:
                yield f"{name}.{field.name}={kind}"
            yield from shown(held, leaves)


@cache
def _hinted(made: type) -> tuple[tuple[Field[Any], Any], ...]:
    hints = get_type_hints(made)
    return tuple((field, hints[field.name]) for field in fields(made))


def _members(hint: Any) -> tuple[Any, ...]:
    """The members of a union; all constants as one, all expressions as one."""
    if get_origin(hint) not in (Union, UnionType):
        return (hint,)
    members = get_args(hint)
    for union in ALIKE:
        own = set(get_args(union)) - {NoneType}
        if own <= set(members):
            members = (union, *(m for m in members if m not in own))
    return members


def _classes(hint: Any) -> list[type]:
    """The dataclasses that a hint names, in tuples and unions too."""
    if isinstance(hint, type) and is_dataclass(hint):
        return [hint]
    return [made for arg in get_args(hint) for made in _classes(arg)]


def _kinds(field: Field[Any], hint: Any) -> set[str]:
    """The kinds of values that the field can hold; one alone says nothing."""
    found = {kind for member in _members(hint) for kind in _of(field, member)}
    return found if len(found) > 1 else set()


def _of(field: Field[Any], member: Any) -> set[str]:
    if member is NoneType:
        return {"None"}
    if member is bool:
        return {"True", "False"}
    if isinstance(member, type) and issubclass(member, Enum):
        return {one.name for one in member}
    if isinstance(member, type) and is_dataclass(member):
        return {member.__name__}
    if get_origin(member) in SIZED or (get_origin(member) is not None and issubclass(get_origin(member), Mapping)):
        return {"empty", "some"} if ... in get_args(member) or get_origin(member) is not tuple else {"given"}
    return {"default", "other"} if field.default is not MISSING and field.default is not None else {"given"}


def _kind(field: Field[Any], hint: Any, held: Any) -> str | None:
    """Which kind it holds; None where there is one kind only."""
    possible = _kinds_of(field, hint)
    if not possible:
        return None
    match held:
        case None:
            return "None"
        case bool():
            return str(held)
        case Enum():
            return held.name
        case _ if is_dataclass(held) and type(held).__name__ in possible:
            return type(held).__name__
        case tuple() | frozenset() | Mapping() if "given" not in possible:
            return "some" if held else "empty"
        case _ if "default" in possible:
            return "default" if held == field.default else "other"
        case _:
            return "given"


@cache
def _kinds_of(field: Field[Any], hint: Any) -> frozenset[str]:
    return frozenset(_kinds(field, hint))
