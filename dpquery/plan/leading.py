"""A release of which nothing is shown but the key of one group: the one with the most of its only aggregate, or with the least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpquery.plan.release import Release


@dataclass(frozen=True, slots=True)
class Lead:
    """What a statement wants: the key of the group with the `most` (else the least) of the only aggregate, by `label`, the analyst's text.

    Groups in which the key at the place `key` is NULL do not take part.
    """

    most: bool
    key: int
    label: str


@dataclass(frozen=True, slots=True)
class Leading:
    """Of an aggregate nothing is shown but which of so many groups has the `most` of it, else the least."""

    most: bool
    among: int


def led(release: Release) -> dict[int, Leading]:
    """The parts whose sums are compared between groups, one of which is chosen; and how."""
    return {part: one.leading for one in release.aggregates if one.leading is not None for part in one.parts}
