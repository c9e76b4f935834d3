"""What an aggregate is to the rest of dpquery: four functions on one card."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpquery.mechanisms import Noise
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import Aggregate, Part, Quantile
from dpquery.plan.scalar import Interval
from dpquery.values.types import Shown, Type, Value

Bar = tuple[Value, Value] | None  # an error bar: low and high end in the released value's own type
Bars = Bar | list[Bar]  # of a list, one for each of its values


@dataclass(frozen=True, slots=True)
class Planned:
    """What a card makes of an ask: parts to be summed, and how their released integers read.

    `step` is what one integer of the first part is worth (for a mean: one whole grid unit of its values, two of its half units). `notes` say how
    it is bounded, `cuts` what a limit that the statement did not set may leave out of it, `less` what each row of the parts was lessened by,
    `quantile` which one it is, `values` what is counted, of which the most frequent one is shown.
    """

    parts: tuple[Part, ...]
    type: Type
    step: Fraction
    bounds: Interval | None
    notes: tuple[str, ...] = ()
    cuts: tuple[str, ...] = ()
    less: tuple[int, ...] = ()
    quantile: Quantile | None = None
    values: tuple[Value, ...] = ()


Plan = Callable[[AggregateAsk, Contributions, int | None], Planned]
Finish = Callable[[Aggregate, Sequence[Sequence[int]]], Sequence[Shown]]
Intervals = Callable[[Aggregate, Sequence[Sequence[int]], Sequence[Noise], Fraction], Sequence[Bars]]
Settle = Callable[[Aggregate, Sequence[Sequence[int]], Sequence[Noise]], Sequence[Shown]]
Expected = Callable[[Aggregate, Sequence[Noise], Fraction], float | Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Card:
    """One aggregate.

    plan            the parts of an ask, given the contribution limits and the most rows a unit can have by the plan (None: unbounded); or Refused
    finish          per group the released value or list of values, from the noisy integers of the aggregate's parts; never fails
    interval        per group the error bar at a confidence level; None where there is none
    expected_error  half the width of that bar: a number, or numbers by the count n of values ("n=100", ...) where it depends on it
    settle          what finish is of noisy integers where that depends on their noise; None: it does not
    """

    name: str
    plan: Plan
    finish: Finish
    interval: Intervals
    expected_error: Expected
    settle: Settle | None = None
