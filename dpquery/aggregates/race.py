"""COUNT and SUM of contributions that are not negative, under a public ceiling, as a race of caps leaves them: bounds => 'race'.

The parts are sums Q(t) of cells that are capped at t, for t = the ceiling and its halves down to what one row may bring; each has an equal share of
the price, and noise of its own. With w(t) the width that t's noise exceeds with probability DOUBT / levels at most, what is shown is the largest of
Q(t) + noise - w(t), and of 0: a function of released numbers. As no Q(t) is above Q, the sum under the ceiling, what is shown is above Q with
probability DOUBT at most. It is below Q by more than 2 w(T) with probability DOUBT / levels at most, T being the lowest t that no unit exceeds in any
group: there Q(T) is Q. Dong, Fang, Yi, Tao and Machanavajjhala 2022, where each row is one unit's; what is claimed of the parts is C18.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor

from dpquery.aggregates.bounds import WEIGHED, missing, no_per_group, no_per_row, numeric, row_bounds
from dpquery.aggregates.card import Bar, Card, Floors, Planned
from dpquery.aggregates.grid import cell_units, fits, grid, not_zero, plain, row_units
from dpquery.aggregates.values import bar, double, released
from dpquery.errors import Refused
from dpquery.mechanisms import Noise, half_width
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import Aggregate, Clamp, One, Part, Units
from dpquery.plan.scalar import Interval
from dpquery.values.types import INTEGER, Value

DOUBT = Fraction(1, 20)
MOST = 32  # levels


def plan_count(ask: AggregateAsk, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """A part for each level, which counts rows up to it: that of 1 row, too, is no count of units, whose noise decides which groups are shown."""
    no_per_row(ask)
    top = floor(_ceiling(ask, contributions).high)
    if top < 1:
        raise _refused(ask, "no row fits under its ceiling", "contribution_bounds_per_group => (0, 1000), bounds => 'race'")
    most = top if rows_per_unit is None else max(1, min(top, rows_per_unit))
    levels = _levels(ask, most, 1)
    parts = fits(ask, tuple(Part(One(ask.argument), Clamp(0, level), ask.where) for level in levels), None)
    return Planned(parts, INTEGER, Fraction(1), Interval(Fraction(0), Fraction(most)), _notes(levels, Fraction(1)))


def plan_total(ask: AggregateAsk, contributions: Contributions, rows_per_unit: int | None) -> Planned:
    """A part for each level, whose cells are clamped to it; rows in their bounds, none below 0."""
    argument, ceiling = numeric(ask), _ceiling(ask, contributions)
    rows = row_bounds(ask, argument)
    if rows is None:
        raise missing(ask)
    if rows.low < 0:
        raise _refused(
            ask, "its values may lie below 0, where a lower cap may add up to more", "bounds => 'auto', or contribution_bounds_per_row => (0, 10)"
        )
    not_zero(ask, rows.low, rows.high)
    fine = grid(argument, ceiling.magnitude)
    (_, top), (low, high) = cell_units(ask, ceiling, fine.step), row_units(rows, fine.step)
    not_zero(ask, 0, top)
    not_zero(ask, low, high)
    levels = _levels(ask, top, min(high, top))
    parts = fits(ask, tuple(Part(Units(argument, fine.step, low, high), Clamp(0, level), ask.where) for level in levels), None)
    bounds = Interval(Fraction(0), top * fine.step)
    return Planned(parts, argument.type, fine.step, bounds, (*_notes(levels, fine.step), *fine.notes))


def _ceiling(ask: AggregateAsk, contributions: Contributions) -> Interval:
    """The bounds as written: from 0 to the ceiling."""
    if contributions.weights is not None:
        no_per_group(ask, WEIGHED, "use max_groups_contributed")
    if ask.per_group is None or ask.per_group.low != 0:
        raise _refused(ask, "it has no public ceiling above 0", "contribution_bounds_per_group => (0, 1000), bounds => 'race'")
    return ask.per_group


def _levels(ask: AggregateAsk, top: int, least: int) -> list[int]:
    """The caps: the ceiling, and halves of it down to the least."""
    found = [top]
    while found[-1] > least:
        found.append(max(least, (found[-1] + 1) // 2))
    if len(found) > MOST:
        raise _refused(
            ask, f"its ceiling is more than 2^{MOST - 1} times what a row may bring", "a lower ceiling, contribution_bounds_per_group => (0, 1000)"
        )
    return found[::-1]


def _refused(ask: AggregateAsk, why: str, instead: str) -> Refused:
    return Refused("RACE", f"no caps race for {ask.label}: {why}", position=ask.position, instead=instead)


def _notes(levels: Sequence[int], step: Fraction) -> tuple[str, ...]:
    ends = f"{plain(levels[0] * step)} to {plain(levels[-1] * step)}"
    sure = float(1 - DOUBT)
    below = "what is shown is lower than that by design" if len(levels) > 1 else "what is shown is lower by design"
    return (f"what a unit brings is capped at the best of {len(levels)} caps from {ends}; {below}: not above it with {sure:.0%} confidence",)


def finish(aggregate: Aggregate, sums: Sequence[Sequence[int]]) -> list[Value]:
    """Per group the sum under the ceiling: without noise no cap does better."""
    return [released(value * aggregate.step, aggregate.type) for value in sums[-1]]


def settle(aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise]) -> list[Value]:
    """Per group the largest of what the caps assure, and of 0."""
    return [released(value * aggregate.step, aggregate.type) for value in _largest(sums, _widths(noises, 2 * DOUBT))]


def won(sums: Sequence[Sequence[int]], noises: Sequence[Noise]) -> list[int | None]:
    """Per group the place of the cap that assures most; None where none assures anything above 0."""
    widths = _widths(noises, 2 * DOUBT)
    assured = ([value - width for value, width in zip(own, widths, strict=True)] for own in zip(*sums, strict=True))
    return [own.index(max(own)) if max(own) > 0 else None for own in assured]


def _widths(noises: Sequence[Noise], doubt: Fraction) -> list[int]:
    """What no noise exceeds on one side with probability doubt / 2 at most, all of them together."""
    return [half_width(noise, 1 - doubt / len(noises)) for noise in noises]


def _largest(sums: Sequence[Sequence[int]], widths: Sequence[int]) -> list[int]:
    return [max(0, *(value - width for value, width in zip(own, widths, strict=True))) for own in zip(*sums, strict=True)]


def interval(aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction, floors: Floors = ()) -> list[Bar]:
    """Per group from what the caps assure to what the ceiling's sum may be: half of the doubt on either side, that below over all caps. What is shown
    lies inside, as the bar reaches to it where it would not."""
    doubt = 1 - confidence
    shown, lows = _largest(sums, _widths(noises, 2 * DOUBT)), _largest(sums, _widths(noises, doubt))
    highs = [value + half_width(noises[-1], confidence) for value in sums[-1]]
    ends = [(min(low, value), max(high, value)) for value, low, high in zip(shown, lows, highs, strict=True)]
    return [bar(low * aggregate.step, high * aggregate.step, aggregate.type) for low, high in ends]


def expected_error(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> float:
    """How far the answer may lie below the sum under the ceiling, where a unit reaches that: twice the width of the highest cap. It is less by the
    same factor by which the largest of the units lies below."""
    return double(2 * max(_widths(noises, 2 * (1 - confidence))) * aggregate.step)


COUNTED = Card("race_count", plan_count, finish, interval, expected_error, settle)
SUMMED = Card("race_total", plan_total, finish, interval, expected_error, settle)
