"""Row-wise expressions below the noise line. Closed: a literal, a column, a call, CASE, a cast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from dpquery.values.types import Type, Value


@dataclass(frozen=True, slots=True)
class Interval:
    """All values between two finite bounds, both included."""

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("an interval's low end lies above its high end")

    @property
    def magnitude(self) -> Fraction:
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of one relation of one statement. `id` is unique in the statement; lineage is equality of ids, never of names.

    `declared` is the interval of the schema: a wish, never believed, only the default of a clamp.
    `values` is the declared list of the schema: a default key list. `public` names the public relation it comes from, if any. `step` is the
    declared grid of a FLOAT column, `total` the default clamp of what one unit's values add up to.
    """

    id: int
    name: str
    type: Type
    declared: Interval | None = None
    values: tuple[Value, ...] | None = None
    public: str | None = None
    nullable: bool = True
    step: Fraction | None = None
    total: Interval | None = None


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value
    type: Type


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the allow-list (plan/functions.py), by its canonical name, operators included: `add`, `eq`, `and`, `in`, `lower`."""

    function: str
    args: tuple[Scalar, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first branch whose condition is true; `otherwise` (NULL where None) if there is none."""

    branches: tuple[tuple[Scalar, Scalar], ...]
    otherwise: Scalar | None
    type: Type


@dataclass(frozen=True, slots=True)
class Cast:
    """A total cast: NULL where the value does not fit."""

    arg: Scalar
    type: Type


Scalar = Literal | Column | Call | Case | Cast


def children(scalar: Scalar) -> tuple[Scalar, ...]:
    """The direct sub-expressions, in reading order."""
    match scalar:
        case Literal() | Column():
            return ()
        case Call(args=args):
            return args
        case Cast(arg=arg):
            return (arg,)
        case Case(branches=branches, otherwise=otherwise):
            pairs = tuple(part for branch in branches for part in branch)
            return pairs if otherwise is None else (*pairs, otherwise)
        case _:
            assert_never(scalar)


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """The expression and everything in it, parents first."""
    yield scalar
    for child in children(scalar):
        yield from walk(child)


def columns(scalar: Scalar) -> frozenset[Column]:
    """Every column the expression reads."""
    return frozenset(node for node in walk(scalar) if isinstance(node, Column))


def conjuncts(scalar: Scalar | None) -> tuple[Scalar, ...]:
    """The top-level AND-ed conditions of a predicate."""
    match scalar:
        case None:
            return ()
        case Call(function="and", args=args):
            return tuple(part for arg in args for part in conjuncts(arg))
        case _:
            return (scalar,)


def replaced(scalar: Scalar, new: Mapping[Scalar, Scalar]) -> Scalar:
    """The expression with others in place of some of its parts."""
    if scalar in new:
        return new[scalar]
    match scalar:
        case Literal() | Column():
            return scalar
        case Call(args=args):
            return replace(scalar, args=tuple(replaced(arg, new) for arg in args))
        case Cast(arg=arg):
            return replace(scalar, arg=replaced(arg, new))
        case Case(branches=branches, otherwise=otherwise):
            parts = tuple((replaced(condition, new), replaced(result, new)) for condition, result in branches)
            return replace(scalar, branches=parts, otherwise=None if otherwise is None else replaced(otherwise, new))
        case _:
            assert_never(scalar)


def equated(on: Iterable[Scalar], own: Set[int]) -> set[int]:
    """Those of the `own` columns that some condition says are equal to an expression of their type that reads none of these."""
    found: set[int] = set()
    for part in on:
        match part:
            case Call(function="eq", args=(left, right)) if left.type == right.type:
                for one, other in ((left, right), (right, left)):
                    if isinstance(one, Column) and one.id in own and not {c.id for c in columns(other)} & own:
                        found.add(one.id)
            case _:
                pass
    return found
