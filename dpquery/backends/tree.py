"""Levels of trees of bins as SQL: what the rows of a unit weigh in each bin of the groups that it keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from dpquery.backends.relation import Script
from dpquery.plan.release import WEIGHT_BITS, Bins, CellBound, Part, Units

PLACE = ("t", "b", "v")  # columns of the result: part, bin, integer; NULL in the rows of the other parts


@dataclass(frozen=True, slots=True)
class Level:
    """One part: the addend `x<place>` of its rows, which lies in [low, high] where it counts, and the bins that these fall into."""

    part: int
    place: int
    low: int
    high: int
    bins: Bins


def levels(parts: Sequence[Part], places: Sequence[tuple[int, ...]]) -> list[Level]:
    """The parts of several integers."""
    found = []
    for i, (part, place) in enumerate(zip(parts, places, strict=True)):
        if isinstance(part.cell, Bins):
            if not isinstance(part.row, Units) or part.row.centred:
                raise ValueError("bins are of values in grid units")
            if (part.row.high - part.row.low) // part.cell.width >= part.cell.count:
                raise ValueError("a value may lie beyond the last bin")
            found.append(Level(i, place[0], part.row.low, part.row.high, part.cell))
    return found


def weighed(given: Sequence[Level], groups: Sequence[str], rows: str, kept: str, script: Script) -> tuple[list[str], Mapping[int, CellBound]]:
    """For each level a SELECT of the group, the part, the bin and what its rows weigh; and the bounds of the parts.

    `kept` has the groups that each unit keeps, with the number `n<place>` of its counted rows in them. Levels with the same rows are added up from
    the same narrow bins.
    """
    alike: dict[tuple[int, int], list[Level]] = {}
    for level in given:
        alike.setdefault((level.place, level.bins.rows), []).append(level)
    selects, bounds = [], dict[int, CellBound]()
    for number, ((place, most), own) in enumerate(alike.items()):
        narrow = gcd(*(level.bins.width for level in own))
        on = " AND ".join(["r.u = c.u", *(f"r.{k} IS NOT DISTINCT FROM c.{k}" for k in groups)])
        weight = f"(least(c.n{place}, {most:d}) * {1 << WEIGHT_BITS:d}) // c.n{place}"
        items = ", ".join([*(f"r.{k}" for k in groups), f"(r.x{place} - ({own[0].low:d})) // {narrow:d} AS b", f"{weight} AS w"])
        each = script.add(f"SELECT {items} FROM {rows} AS r JOIN {kept} AS c ON {on} WHERE r.x{place} IS NOT NULL", f"weighed{number}")
        by = ", ".join([*groups, "b"])
        narrowest = script.add(f"SELECT {by}, sum(w) AS w FROM {each} GROUP BY {by}", f"bins{number}")
        for level in own:
            at = f"b // {level.bins.width // narrow:d}"
            selects.append(f"SELECT {', '.join([*groups, f'{level.part:d} AS t', f'{at} AS b', 'sum(w)::HUGEINT AS v'])} FROM {narrowest}")
            selects[-1] += f" GROUP BY {', '.join([*groups, at])}"
            bounds[level.part] = CellBound(0, most << WEIGHT_BITS, bins=level.bins.count, ranked=level.bins.rank)
    return selects, bounds
