"""COUNT(DISTINCT unit): a unit counts once in a group, whatever its rows."""

from __future__ import annotations

from fractions import Fraction

from dpquery.aggregates import linear
from dpquery.aggregates.bounds import no_per_group, no_per_row, no_weights
from dpquery.aggregates.card import Card, Planned
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import One, Part, Present
from dpquery.plan.scalar import Interval
from dpquery.values.types import INTEGER


def plan(ask: AggregateAsk, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """One part: 1 for each unit with a row that counts. An argument (the unit from the null side of an outer join) counts where it is not NULL."""
    no_per_row(ask)
    no_per_group(ask, "COUNT(DISTINCT ...) of the unit", "leave them out: a unit counts once")
    no_weights(ask, contributions, "max_groups_contributed")
    return Planned((Part(One(ask.argument), Present(), ask.where),), INTEGER, Fraction(1), Interval(Fraction(0), Fraction(1)))


UNITS = Card("units", plan, linear.finish, linear.interval, linear.expected_error)
