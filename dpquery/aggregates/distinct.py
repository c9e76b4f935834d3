"""COUNT(DISTINCT x): different values in a group, of which a unit brings at most max_rows_per_group."""

from __future__ import annotations

from fractions import Fraction

from dpquery.aggregates import linear
from dpquery.aggregates.bounds import no_per_group, no_per_row, no_weights, rows_per_cell, told
from dpquery.aggregates.card import Card, Planned
from dpquery.aggregates.grid import fits
from dpquery.errors import Refused
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import Element, Elements, Part
from dpquery.plan.scalar import Column, Interval, Scalar
from dpquery.values.types import INTEGER


def plan(ask: AggregateAsk, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """One part: the size of the union of units' sets of values."""
    no_per_row(ask)
    no_per_group(ask, "COUNT(DISTINCT ...)", "leave them out: max_rows_per_group says how many values of a unit count in a group")
    if ask.argument is None:
        raise Refused("NO_ARGUMENT", f"{ask.label} counts the values of nothing", position=ask.position, instead="COUNT(*)")
    no_weights(ask, contributions, "max_groups_contributed")
    rows = rows_per_cell(contributions, rows_per_unit)
    most = max(1, min(rows, _declared(ask.argument) or rows))
    parts = fits(ask, (Part(Element(ask.argument), Elements(most), ask.where),), None)
    cap = None if rows_per_unit is not None and rows_per_unit <= most else _cap(most)
    notes, cuts = told(cap, contributions) if most == rows else ((_cap(most),), ())
    return Planned(parts, INTEGER, Fraction(1), Interval(Fraction(0), Fraction(most)), notes, cuts)


def _declared(argument: Scalar) -> int | None:
    """How many values the schema declares of a bare column: a unit needs no more to bring all that it has."""
    return len([value for value in argument.values if value is not None]) if isinstance(argument, Column) and argument.values else None


def _cap(most: int) -> str:
    return f"a unit counts with at most {most} different values in a group (max_rows_per_group), what it has beyond is left out"


DISTINCT = Card("distinct", plan, linear.finish, linear.interval, linear.expected_error)
