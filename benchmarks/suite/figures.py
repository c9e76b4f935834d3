"""Figures of many answers: medians with quartiles, and how far off they were."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Key = tuple[str, ...]
Answer = Mapping[Key, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and quartiles."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class Off:
    """How far off a number was, over all groups that appeared and all answers; `mean` is the mean of the true ones."""

    rmse: float
    bias: float
    mean: float


def spread(values: Sequence[float]) -> Spread:
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(low, middle, high)


def answer(rows: Sequence[Any]) -> Answer:
    return {tuple(map(str, keys)): values for keys, values in rows}


def off(answers: Sequence[Answer], true: Answer, place: int) -> Off | None:
    """Of the number at this place in each row. A group without rows is 0 in truth; an average over nothing is left out, and so is no number."""
    errors, truths = [], []
    for one in answers:
        for key, values in one.items():
            right = true[key][place] if key in true else 0.0
            if math.isfinite(values[place]) and math.isfinite(right):
                errors.append(values[place] - right)
                truths.append(right)
    if not errors:
        return None
    return Off(math.sqrt(statistics.fmean(e * e for e in errors)), statistics.fmean(errors), statistics.fmean(truths))


def released(answers: Sequence[Answer], true: Answer) -> float:
    """The mean share of true groups that appeared."""
    return statistics.fmean(sum(key in one for key in true) / max(len(true), 1) for one in answers)
