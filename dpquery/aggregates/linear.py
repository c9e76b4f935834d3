"""Aggregates that are one released integer times a step: value, error bar and expected error."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpquery.aggregates.card import Bar
from dpquery.aggregates.values import bar, double, released
from dpquery.mechanisms import Noise, half_width
from dpquery.plan.release import Aggregate
from dpquery.values.types import Value


def finish(aggregate: Aggregate, sums: Sequence[Sequence[int]]) -> list[Value]:
    """Per group the noisy integer in the aggregate's own units and type; negative values stay."""
    return [released(value * aggregate.step, aggregate.type) for value in sums[0]]


def interval(aggregate: Aggregate, sums: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: Fraction) -> list[Bar]:
    """Per group the noisy integer plus and minus the exact quantile of the noise's magnitude, before any saturation."""
    width = half_width(noises[0], confidence)
    return [bar((value - width) * aggregate.step, (value + width) * aggregate.step, aggregate.type) for value in sums[0]]


def expected_error(aggregate: Aggregate, noises: Sequence[Noise], confidence: Fraction) -> float:
    """Half the width of the error bar: the same whatever the data."""
    return double(half_width(noises[0], confidence) * aggregate.step)
