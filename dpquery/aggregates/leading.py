"""ARG_MAX and ARG_MIN of groups: which one has the most of a count or sum, or the least, with nothing shown of the count or sum itself.

It is chosen by permute and flip where an epsilon is spent, by the exponential mechanism where a rho is. The group that is shown falls short of the
one with the most by less than the expected error, with at least the confidence and whatever the data (M8): so a group that leads all others by that
is the one that is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil

from dpquery.aggregates.card import Bar, Card, Floors, Planned
from dpquery.aggregates.values import double
from dpquery.mechanisms import Noise, shortfall
from dpquery.numbers import decimal_up
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.leading import Leading
from dpquery.plan.release import Aggregate
from dpquery.values.types import Value

COMPARED = frozenset({"count", "units", "distinct", "total"})  # of one integer to a group, in whose order their values are
DIGITS = 3


def how(leading: Leading) -> str:
    """What is released, in words."""
    which = "most" if leading.most else "least"
    return f"one of {leading.among} groups, chosen for having the {which}, which is not shown; the expected error is how far it may be from that"


def plan(ask: AggregateAsk, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """Nothing asks for it by itself: it is what becomes of another one."""
    raise AssertionError("groups are compared by another aggregate")


def finish(aggregate: Aggregate, sums: Sequence[Sequence[int]]) -> list[Value]:
    """Per group 1 if it was chosen for having the most, -1 if for the least, else 0: what finds the largest value finds it."""
    return [*sums[0]]


def interval(aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction, floors: Floors = ()) -> list[Bar]:
    """No bars: a group among others has no ends."""
    return [None] * len(sums[0])


def expected_error(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> float:
    """How far the group that is shown may be from the most, or the least; in the aggregate's own units."""
    return double(_short(aggregate, noises, confidence))


def assured(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> str:
    """How sure the group is, known before any row is read."""
    percent = (Decimal(confidence.numerator) / confidence.denominator * 100).normalize()
    most = aggregate.leading is not None and aggregate.leading.most
    short = _short(aggregate, noises, confidence)
    far = decimal_up(short, 0 if aggregate.step == 1 else max(0, DIGITS - len(str(ceil(short)))))
    than = f"{far:,f} less than the one that has the most" if most else f"{far:,f} more than the one that has the least"
    return f"{aggregate.label}: with {percent:f}% confidence, the group shown has at most {than}."


def _short(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> Fraction:
    if aggregate.leading is None:
        raise AssertionError("groups are compared by what leads")
    return shortfall(noises[0], aggregate.leading.among - 1, 1 - confidence) * aggregate.step


LEADING = Card("leading", plan, finish, interval, expected_error)
