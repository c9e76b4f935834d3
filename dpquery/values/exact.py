"""Exact, bounded sums: secret. Only backends and release may import this module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpquery.values.types import Value


@dataclass(frozen=True, slots=True)
class Exact:
    """Per group the exact integer of each part: `keys[i]` is a tuple parallel to the statement's keys, `sums[j][i]` the value of part j.

    Without keys there is exactly one group, `()`. A part of several integers has no `sums[j]`, but `bins[j][i]`: those that are not 0, by place.
    Its repr shows nothing.
    """

    keys: tuple[tuple[Value, ...], ...] = field(repr=False)
    sums: tuple[tuple[int, ...], ...] = field(repr=False)
    bins: Mapping[int, tuple[Mapping[int, int], ...]] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return "Exact(<hidden>)"

    __str__ = __repr__
