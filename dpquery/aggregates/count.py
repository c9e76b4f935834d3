"""COUNT(*) and COUNT(x): rows, those with x neither NULL nor NaN; at most max_rows_per_group of a unit in a group."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from dpquery.aggregates import linear
from dpquery.aggregates.bounds import BY_WEIGHT, WEIGHED, no_per_group, no_per_row, row_cap, rows_per_cell, told
from dpquery.aggregates.card import Card, Planned
from dpquery.aggregates.grid import fits
from dpquery.errors import Refused
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import WEIGHT_BITS, Additive, Cell, Clamp, One, Part, Present
from dpquery.plan.scalar import Interval
from dpquery.values.types import INTEGER


def plan(ask: AggregateAsk, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """One part, which counts rows: clamped per group, or weighed per unit."""
    no_per_row(ask)
    row = One(ask.argument)
    if contributions.weights is not None:
        no_per_group(ask, WEIGHED, "leave them out, or use max_groups_contributed")
        parts = fits(ask, (Part(row, Additive(1), ask.where),), contributions.weights)
        return Planned(parts, INTEGER, Fraction(1, 2**WEIGHT_BITS), Interval(Fraction(0), Fraction(contributions.weights)), (BY_WEIGHT,))
    low, high = _bounds(ask, rows_per_cell(contributions, rows_per_unit), rows_per_unit)
    parts = fits(ask, (Part(row, counted(low, high), ask.where),), None)
    notes, cuts = told(row_cap(contributions, rows_per_unit) if ask.per_group is None else None, contributions)
    return Planned(parts, INTEGER, Fraction(1), Interval(Fraction(low), Fraction(high)), notes, cuts)


def _bounds(ask: AggregateAsk, rows: int, rows_per_unit: int | None) -> tuple[int, int]:
    """The clamp of a cell: as written, no higher than the rows that a unit can have; else [0, rows]."""
    if ask.per_group is None:
        return 0, rows
    low, high = max(0, ceil(ask.per_group.low)), floor(ask.per_group.high)
    if high < 1 or low > high:
        raise Refused(
            "BAD_BOUNDS",
            f"no count of rows above 0 lies between the bounds of {ask.label}",
            position=ask.position,
            instead="contribution_bounds_per_group => (0, 10) counts at most ten rows of each unit",
        )
    return low, high if rows_per_unit is None else max(low, 1, min(high, rows_per_unit))


def counted(low: int, high: int) -> Cell:
    """The clamp of a count of rows. Up to 1 it is the count of distinct units, in the spelling that lets the two share a part."""
    return Present() if high == 1 else Clamp(low, high)


COUNT = Card("count", plan, linear.finish, linear.interval, linear.expected_error)
