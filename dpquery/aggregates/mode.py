"""MODE: the most frequent of listed values, chosen by the numbers of rows that have them.

Each value has a bin, as those of a quantile have. As nothing is shown but which bin has the most, that is chosen by a mechanism that releases no
number: permute and flip where an epsilon is spent, the exponential mechanism where a rho is. A value that leads all n - 1 others by m is the one
that is shown with at least the confidence 1 - b: what each other one takes of its chances is largest at a lead of exactly m, where with
p = exp(-m / s) permute and flip shows another with probability E K / (1 + K) <= (n - 1) p / 2, K the number of others whose coin lands, and the
exponential mechanism with (n - 1) p / (1 + (n - 1) p).

Where the statement names a noise, or Gaussian noise errs less (of many values under replace-one), the bins are released with noise of their own, and
what is shown is the largest, a function of released numbers that costs nothing more. Of equal ones it is the first of the list.

What is shown has, with at least the confidence, fewer than m rows less than the most frequent one, whatever the counts: let K of the others lie by m
or more below it. Each then has at most the chances above beside the first one, and those that lie nearer only take from them.

Of noisy counts, a value v that leads by more than m is the most frequent one with at least the confidence: where another value t is more frequent,
noise moved v past it by more than m, which two independent noises do with probability at most (1 - confidence) / (n - 1) each, over the n - 1 others.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import assert_never

from dpquery.aggregates.bounds import no_per_group, no_per_row, no_weights, row_cap, rows_per_cell, told
from dpquery.aggregates.card import Bar, Card, Floors, Planned
from dpquery.aggregates.combined import quantile_up
from dpquery.aggregates.grid import fits
from dpquery.errors import Refused
from dpquery.mechanisms import Noise, shortfall
from dpquery.numbers import float_near
from dpquery.plan import functions
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import WEIGHT_BITS, Aggregate, Bins, Choosing, Mechanism, Part, Units
from dpquery.plan.scalar import Case, Literal, Scalar, walk
from dpquery.values.types import INTEGER, Value

ONE = 2**WEIGHT_BITS  # what a row weighs
MOST = 256  # values
MOST_NUMBERS = 2**21  # noisy integers over all groups, where these are listed
MOST_NODES = 10_000  # of the comparisons with all values
ELSEWHERE = "SELECT x FROM .. GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1"


def plan(ask: AggregateAsk, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """One part, a bin for each value. A row of a unit with more rows than the cap weighs less, so that its n rows count as so many."""
    no_per_row(ask)
    no_per_group(ask, "MODE", "leave them out: max_rows_per_group says as how many rows a unit counts")
    no_weights(ask, contributions, "max_groups_contributed and max_rows_per_group")
    if ask.argument is None:
        raise Refused("NO_ARGUMENT", f"{ask.label} is the mode of nothing", position=ask.position, instead="MODE(x)")
    _check_list(ask, contributions.listed)
    most, count = rows_per_cell(contributions, rows_per_unit), len(ask.values)
    part = Part(Units(_place(ask.argument, ask.values), Fraction(1), 0, count - 1), Bins(most, 1, count), ask.where)
    capped, cuts = told(row_cap(contributions, rows_per_unit), contributions)
    how = f"the most frequent of {count} values; the expected error is by how many rows it has to lead to be the one that is shown"
    return Planned(fits(ask, (part,), None), ask.argument.type, Fraction(1), None, (how, *capped), cuts, values=ask.values)


def _check_list(ask: AggregateAsk, groups: int | None) -> None:
    """Nothing, or Refused where the list of values is too short or too long."""
    count, most = len(ask.values), MOST if groups is None else min(MOST, MOST_NUMBERS // max(1, groups))
    long = sum(1 for _ in walk(ask.argument)) * count > MOST_NODES if ask.argument is not None else False
    if count >= 2 and count <= most and not long:
        return
    few = (
        "one value, which it then is whatever the data"
        if count < 2
        else f"{count:,} values, too many" + (" for so long an expression" if long else "")
    )
    raise Refused("MODE", f"{ask.label} is chosen from a list of {few}", position=ask.position, instead=ELSEWHERE)


def _place(argument: Scalar, values: Sequence[Value]) -> Scalar:
    """The place of the argument on the list; NULL where it is not there."""
    tests = (functions.call("eq", argument, Literal(value, argument.type)) for value in values)
    return Case(tuple((test, Literal(i, INTEGER)) for i, test in enumerate(tests)), None, INTEGER)


def _groups(aggregate: Aggregate, sums: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """The noisy integers of each group."""
    count = len(aggregate.values)
    return [sums[0][start : start + count] for start in range(0, len(sums[0]), count)]


def finish(aggregate: Aggregate, sums: Sequence[Sequence[int]]) -> list[Value]:
    """Per group the value whose integer is the largest: the noisy count, or the 1 of a choice."""
    return [aggregate.values[max(range(len(own)), key=own.__getitem__)] for own in _groups(aggregate, sums)]


def interval(aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction, floors: Floors = ()) -> list[Bar]:
    """No bars: a value among others has no ends."""
    return [None] * len(_groups(aggregate, sums))


def expected_error(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> float:
    """By how many rows a value has to lead."""
    return lead(len(aggregate.values) - 1, noises[0], confidence)


@lru_cache(maxsize=64)
def lead(others: int, noise: Noise, confidence: Fraction) -> float:
    """By how many rows a value has to lead so many others to be shown with at least the confidence."""
    match noise.mechanism:
        case Choosing.PERMUTE_AND_FLIP | Choosing.EXPONENTIAL:
            return float_near(shortfall(noise, others, 1 - confidence) / ONE)
        case Mechanism.LAPLACE | Mechanism.GAUSSIAN:
            import numpy as np

            (found,) = quantile_up(np.array([[1.0], [-1.0]]), np.ones((2, 1)), [0, 0], (noise,), (1 - confidence) / others)
            return float(found)
        case _:
            assert_never(noise.mechanism)


def assured(label: str, aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> str:
    """How sure the value is, known before any row is read."""
    rows = ceil(expected_error(aggregate, noises, confidence))
    percent = (Decimal(confidence.numerator) / confidence.denominator * 100).normalize()
    return f"{label}: with {percent:f}% confidence, at most {rows:,} rows fewer have the value shown than have the most frequent one."


def close(aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction) -> list[bool]:
    """Per group whether the noise alone may have put the value before another one; a choice does not tell."""
    if isinstance(noises[0].mechanism, Choosing):
        return [False] * len(_groups(aggregate, sums))
    least = expected_error(aggregate, noises, confidence) * ONE
    return [max(own) - sorted(own)[-2] <= least for own in _groups(aggregate, sums)]


MODE = Card("mode", plan, finish, interval, expected_error)
