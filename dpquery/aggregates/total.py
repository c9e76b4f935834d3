"""SUM(x): rows in whole grid units, clamped; then each unit's sum in a group clamped; then added up."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpquery.aggregates import linear
from dpquery.aggregates.bounds import BY_WEIGHT, WEIGHED, missing, no_per_group, numeric, row_bounds, row_cap, rows_per_cell, told
from dpquery.aggregates.card import Card, Planned
from dpquery.aggregates.grid import cell_units, clamped, fits, grid, not_zero, plain, row_units
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import WEIGHT_BITS, Additive, Clamp, Part, Units
from dpquery.plan.scalar import Column, Interval, Scalar


def plan(ask: AggregateAsk, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """One part. Its grid follows the bounds that fix the sensitivity: the per-group ones where written, else those of a row."""
    argument = numeric(ask)
    rows = row_bounds(ask, argument)
    if contributions.weights is not None:
        no_per_group(ask, WEIGHED, "write contribution_bounds_per_row, or use max_groups_contributed")
        return _weighed(ask, argument, rows, contributions.weights)
    if ask.per_group is not None:
        return _per_group(ask, argument, rows, ask.per_group)
    declared = None if contributions.rows_given else unit_total(ask)
    if declared is not None:
        made = _per_group(ask, argument, rows, declared)
        ends = "" if made.bounds is None else f"[{plain(made.bounds.low)}, {plain(made.bounds.high)}]"
        return replace(made, cuts=(f"a unit's sum in a group is clamped to {ends} (most_per_unit)", *made.cuts))
    if rows is None:
        raise missing(ask)
    return _per_row(ask, argument, rows, contributions, rows_per_unit)


def unit_total(ask: AggregateAsk) -> Interval | None:
    """The declared clamp of what a unit's values of this column add up to; None where the statement bounds rows itself."""
    return ask.argument.total if ask.card == "total" and ask.per_row is None and isinstance(ask.argument, Column) else None


def _per_row(ask: AggregateAsk, argument: Scalar, rows: Interval, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """Rows in [l, u]; a cell of 1 to C rows lies in [min(l, lC), max(u, uC)]."""
    most = rows_per_cell(contributions, rows_per_unit)
    not_zero(ask, rows.low, rows.high)
    fine = grid(argument, rows.magnitude)
    low, high = row_units(rows, fine.step)
    not_zero(ask, low, high)
    cell = Clamp(min(low, low * most), max(high, high * most))
    values = Units(argument, fine.step, low, high)
    parts = fits(ask, (Part(values, cell, ask.where),), None)
    capped = f"a unit's sum in a group is clamped to [{plain(cell.low * fine.step)}, {plain(cell.high * fine.step)}] (max_rows_per_group is {most})"
    notes, cuts = told(capped if row_cap(contributions, rows_per_unit) else None, contributions)
    return Planned(parts, argument.type, fine.step, _own(cell, fine.step), (clamped(values), *notes, *fine.notes), cuts)


def _per_group(ask: AggregateAsk, argument: Scalar, rows: Interval | None, group: Interval) -> Planned:
    """Cells in the bounds as written; rows in theirs where there are any, else saturated."""
    not_zero(ask, group.low, group.high)
    fine = grid(argument, group.magnitude)
    cell = Clamp(*cell_units(ask, group, fine.step))
    not_zero(ask, cell.low, cell.high)
    low, high = row_units(rows, fine.step)
    not_zero(ask, low, high)
    values = Units(argument, fine.step, low, high)
    parts = fits(ask, (Part(values, cell, ask.where),), None)
    within = () if rows is None else (clamped(values),)  # by what the column declares: the statement speaks of the group's sum alone
    return Planned(parts, argument.type, fine.step, _own(cell, fine.step), (*within, *fine.notes))


def _weighed(ask: AggregateAsk, argument: Scalar, rows: Interval | None, weights: int) -> Planned:
    """Rows in [l, u], each times its weight; a unit's weights add up to at most `weights`."""
    if rows is None:
        raise missing(ask)
    not_zero(ask, rows.low, rows.high)
    fine = grid(argument, rows.magnitude)
    low, high = row_units(rows, fine.step)
    not_zero(ask, low, high)
    cell = Additive(max(abs(low), abs(high)))
    parts = fits(ask, (Part(Units(argument, fine.step, low, high), cell, ask.where),), weights)
    bounds = Interval(min(low, 0) * fine.step * weights, max(high, 0) * fine.step * weights)
    return Planned(parts, argument.type, fine.step / 2**WEIGHT_BITS, bounds, (BY_WEIGHT, *fine.notes))


def _own(cell: Clamp, step: Fraction) -> Interval:
    return Interval(cell.low * step, cell.high * step)


TOTAL = Card("total", plan, linear.finish, linear.interval, linear.expected_error)
