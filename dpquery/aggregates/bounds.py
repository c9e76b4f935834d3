"""Whose bounds hold: those of the statement, else those of the expression; and the refusals about them."""

from __future__ import annotations

from dpquery.errors import Refused
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.intervals import interval
from dpquery.plan.scalar import Interval, Scalar

CHOSEN = ("count", "total", "mean")  # whose bounds may be chosen from a noisy histogram
ONLY = " (bounds => 'auto' chooses them for COUNT, SUM and AVG only)"


def rows_per_cell(contributions: Contributions, rows_per_unit: int | None) -> int:
    """The most rows of a unit that count in a group: the cap, or what the plan proves where that is less; at least 1."""
    return max(1, contributions.rows if rows_per_unit is None else min(contributions.rows, rows_per_unit))


def row_cap(contributions: Contributions, rows_per_unit: int | None) -> str | None:
    """What the cap on rows does to a unit that has more of them; None where none can."""
    if rows_per_unit is not None and rows_per_unit <= contributions.rows:
        return None
    return f"a unit counts as at most {contributions.rows} rows in a group (max_rows_per_group), what it has beyond is left out"


def told(cap: str | None, contributions: Contributions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(notes, cuts): what the cap on rows does is a note where the statement itself set it, else a cut, which is warned of."""
    said = () if cap is None else (cap,)
    return (said, ()) if contributions.rows_given else ((), said)


def row_bounds(ask: AggregateAsk, argument: Scalar) -> Interval | None:
    """The bounds of one row: as written, else by interval arithmetic from the schema; None where there are none."""
    return ask.per_row or interval(argument)


def numeric(ask: AggregateAsk) -> Scalar:
    """The argument, which is a number; Refused otherwise."""
    if ask.argument is None or not ask.argument.type.numeric:
        raise Refused("NOT_A_NUMBER", f"{ask.label} needs a number to add up", position=ask.position, instead="CAST it, or COUNT it")
    return ask.argument


def missing(ask: AggregateAsk) -> Refused:
    """The refusal of an aggregate whose rows have no bounds."""
    inner = ask.label.rstrip().removesuffix(")")
    own = f"write {inner}, contribution_bounds_per_row => (low, high)) with bounds of your own"
    auto = f", or {inner}, bounds => 'auto'), which chooses them from the data out of the same price" if ask.card in ("total", "mean") else ""
    return Refused(
        "MISSING_BOUNDS",
        f"nothing bounds what one row adds to {ask.label}{'' if ask.card in CHOSEN else ONLY}",
        position=ask.position,
        instead=f"{own}{auto}, or ask the data owner to declare lower and upper for its columns",
    )


def no_per_group(ask: AggregateAsk, reason: str, instead: str) -> None:
    """Nothing, or Refused where per-group bounds were written that cannot be enforced."""
    if ask.per_group is not None:
        raise Refused(
            "PER_GROUP_BOUNDS", f"{ask.label}: contribution_bounds_per_group does not go with {reason}", position=ask.position, instead=instead
        )


def no_per_row(ask: AggregateAsk) -> None:
    """Nothing, or Refused where per-row bounds were written for a count of rows."""
    if ask.per_row is not None:
        raise Refused(
            "PER_ROW_BOUNDS",
            f"{ask.label}: a row counts as 1, so that contribution_bounds_per_row bounds nothing",
            position=ask.position,
            instead="leave them out, or bound the rows of a unit by contribution_bounds_per_group => (0, 10)",
        )


BY_WEIGHT = "rows are weighed so that those of a unit count as max_rows_contributed at most"
WEIGHED = "max_rows_contributed (row weights bound sums over rows only)"


def no_weights(ask: AggregateAsk, contributions: Contributions, other: str) -> None:
    """Nothing, or Refused where rows are to be weighed for what is no sum over rows; `other` names the options to use instead."""
    if contributions.weights is not None:
        instead = f"use {other} instead of max_rows_contributed"
        raise Refused("ROW_WEIGHTS", f"{ask.label} does not go with {WEIGHED}", position=ask.position, instead=instead)
