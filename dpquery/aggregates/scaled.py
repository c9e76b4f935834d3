"""Aggregates in units of a cap that is released first: x / cap, within bounds of 1, so that no price depends on what the cap will be."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpquery.aggregates import mean, total
from dpquery.aggregates.card import Planned
from dpquery.errors import Refused
from dpquery.plan import functions
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.intervals import interval
from dpquery.plan.scalar import Column, Interval, Literal, Scalar
from dpquery.values.types import FLOAT, INTEGER

ONE = Fraction(1)
NOTE = "in units of a cap that is chosen from a noisy histogram first"


def plan(ask: AggregateAsk, cap: Column, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """The parts of COUNT, SUM or AVG with bounds that are chosen from the data; step and bounds are the cap's."""
    if contributions.weights is not None:
        instead = "bounds => 'auto' without max_rows_contributed"
        raise Refused("BOUNDS_AUTO", f"{ask.label}: rows are weighed or capped, not both", position=ask.position, instead=instead)
    value = _share(ask, cap)
    times = ONE if ask.per_group is None else ask.per_group.high
    within = Interval(Fraction(0) if not signed(ask) else -times, times)
    if ask.card == "mean":
        made = mean.plan(replace(ask, argument=value, per_row=within), contributions, rows_per_unit)
        return replace(made, notes=(NOTE, *(note for note in made.notes if not note.startswith("rows are clamped"))))
    kind = INTEGER if ask.card == "count" or ask.argument is None else ask.argument.type
    made = total.plan(replace(ask, argument=value, per_group=within), contributions, rows_per_unit)
    return replace(made, type=kind, notes=(NOTE, *made.notes))


def signed(ask: AggregateAsk) -> bool:
    """Whether values below 0 are to be reckoned with."""
    if ask.card == "count" or ask.argument is None:
        return False
    known = interval(ask.argument)
    return known is None or known.low < 0


def _share(ask: AggregateAsk, cap: Column) -> Scalar:
    """What a row brings, in units of the cap; nothing where it brings nothing."""
    if ask.card != "count":
        if ask.argument is None:
            raise AssertionError("what is added up has a value")
        return functions.call("div", ask.argument, cap)
    each = functions.call("div", Literal(1.0, FLOAT), cap)
    if ask.argument is None:
        return each
    return functions.choose([(functions.call("not", functions.call("is_null", ask.argument)), each)], None)
