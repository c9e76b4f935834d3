"""Aggregates that are one released integer times a step: value, error bar and expected error."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpquery.aggregates.card import Bar, Floors
from dpquery.aggregates.selected import low_end
from dpquery.aggregates.values import bar, double, released
from dpquery.mechanisms import Noise, half_width
from dpquery.plan.release import Aggregate
from dpquery.values.types import Value


def finish(aggregate: Aggregate, sums: Sequence[Sequence[int]]) -> list[Value]:
    """Per group the noisy integer in the aggregate's own units and type; negative values stay."""
    return [released(value * aggregate.step, aggregate.type) for value in sums[0]]


def interval(aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction, floors: Floors = ()) -> list[Bar]:
    """Per group the noisy integer plus and minus the exact quantile of the noise's magnitude, before any saturation. Down to 1, where it was shown
    for being large enough and is not clear of that (selected.py)."""
    width, floor = half_width(noises[0], confidence), next(iter(floors), None)
    return [bar(low_end(value, width, floor) * aggregate.step, (value + width) * aggregate.step, aggregate.type) for value in sums[0]]


def expected_error(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> float:
    """Half the width of the error bar: the same whatever the data."""
    return double(half_width(noises[0], confidence) * aggregate.step)
