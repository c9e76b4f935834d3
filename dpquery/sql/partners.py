"""Rows with a partner, and rows without one: semi and anti joins, however they are written.

A private partner is one of the same unit: a condition of its own says so by lineage, and the plan adds the equality of the units itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from dpquery.plan.functions import call
from dpquery.plan.rel import Public, Semi, output
from dpquery.plan.scalar import Call, Column, Scalar, columns
from dpquery.sql.names import Statement
from dpquery.sql.sides import Bound, firm, fixes_unit


def conjoined(conditions: Sequence[Scalar]) -> Scalar | None:
    """All of the conditions, as one."""
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else call("and", *conditions)


def partnered(statement: Statement, left: Bound, right: Bound | Public, conditions: Sequence[Scalar], negated: bool) -> Bound | None:
    """The left rows for which the conditions hold with some right row, or with none; None where nothing ties the units."""
    if isinstance(right, Public):
        return replace(left, rel=Semi(left.rel, right, conjoined(conditions), negated))
    if not any(tied(statement, c, left, right) for c in conditions):
        return None
    return replace(left, rel=Semi(left.rel, right.rel, conjoined(untied(statement, conditions, left, right)), negated))


def tied(statement: Statement, condition: Scalar, left: Bound, right: Bound) -> bool:
    """Whether a condition, where it is true, proves that both rows have the same unit. A column on a null side proves it where it is not NULL."""
    return bool(fixes_unit(statement, condition, _all(left), _all(right)))


def untied(statement: Statement, conditions: Sequence[Scalar], left: Bound, right: Bound) -> tuple[Scalar, ...]:
    """What is left of the conditions beside the equality of units, which the plan has; where a null side can make it untrue it stays."""
    sides = firm(left.rel), firm(right.rel)
    return tuple(c for c in conditions if ("unit",) not in fixes_unit(statement, c, *sides))


def _all(side: Bound) -> frozenset[int]:
    return frozenset(column.id for column in output(side.rel))


def never_null(statement: Statement, side: Bound, value: Scalar) -> bool:
    """Whether a value is a column of a unit or a key of a path, which is never NULL in a scan, and on no null side."""
    if not isinstance(value, Column) or value.id not in firm(side.rel):
        return False
    origin = statement.origins.get(value.id)
    return origin is not None and bool(origin.fixes)


class Pair(NamedTuple):
    """An equality between the rows and the subquery's."""

    outside: Scalar
    inside: Scalar


def pair_of(condition: Scalar, own: set[int]) -> Pair | None:
    """Both sides of an equality, of which one reads the subquery's rows and the other does not."""
    match condition:
        case Call(function="eq", args=(one, other)) if one.type == other.type:
            for inside, outside in ((one, other), (other, one)):
                read = {c.id for c in columns(inside)}
                if read and read <= own and not {c.id for c in columns(outside)} & own:
                    return Pair(outside, inside)
        case _:
            pass
    return None
