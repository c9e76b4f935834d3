"""What an aggregate is to the rest of dpquery: four functions on one card."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

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
Settle = Callable[[Aggregate, Sequence[Sequence[int]], Sequence[Noise]], Sequence[Shown]]
Floors = Sequence[int | None]  # of each part the least noisy integer with which a group was shown at all; none where all are
Expected = Callable[[Aggregate, Sequence[Noise], Fraction], float | Mapping[str, float]]


class Intervals(Protocol):
    """The error bars of an aggregate."""

    def __call__(
        self, aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction, floors: Floors = ()
    ) -> Sequence[Bars]:
        """Per group its bar, from the noisy integers of the aggregate's parts and their noises."""


@dataclass(frozen=True, slots=True)
class Card:
    """One aggregate.

    plan            the parts of an ask, given the contribution limits and the most rows a unit can have by the plan (None: unbounded); or Refused
    finish          per group the released value or list of values, from the noisy integers of the aggregate's parts; never fails
    interval        per group the error bar at a confidence level, that of groups of which nothing less than `floors` is shown, where there are
                    some; None where there is none
    expected_error  half the width of that bar: a number, or numbers by the count n of values ("n=100", ...) where it depends on it
    settle          what finish is of noisy integers where that depends on their noise; None: it does not
    """

    name: str
    plan: Plan
    finish: Finish
    interval: Intervals
    expected_error: Expected
    settle: Settle | None = None
