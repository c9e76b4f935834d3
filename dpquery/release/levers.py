"""What makes error bars narrower, of a plan whose answer is mostly noise: the price, the groups, and what of each unit is let through."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dpquery.aggregates.bounds import CHOSEN
from dpquery.plan.release import Aggregate, GroupCap, Idle, Release

OF_ONE = re.compile(r"at most 1 rows|max_rows_per_group is 1\)")


def advice(releases: Sequence[Release], *, grouped: bool) -> str:
    """One sentence, with the limits that are in force and no others."""
    ways = ["Pay more", "ask for larger groups" if grouped else "ask of more rows"]
    limits = [*dict.fromkeys(limit for one in releases for limit in _limits(one))]
    if limits:
        ways.append(f"let less of each unit through ({', '.join(limits)})")
    return f"{', '.join(ways[:-1])} or {ways[-1]}."


def _limits(release: Release) -> Iterator[str]:
    bounding = release.table.bounding
    if not isinstance(bounding, GroupCap):
        if bounding.rows > 1:
            yield f"a max_rows_contributed below {bounding.rows}"
        return
    if any(map(_of_many_rows, release.aggregates)):
        yield "a lower max_rows_per_group"
    if bounding.groups > 1 and bounding.idle in (None, Idle.ALL_KEYS):
        yield f"a max_groups_contributed below {bounding.groups}"
    if any(map(_open, release.aggregates)):
        yield "bounds => 'auto'"


def _of_many_rows(one: Aggregate) -> bool:
    """Whether a limit of more than one row of a unit is in force."""
    return any("max_rows_per_group" in said and not OF_ONE.search(said) for said in (*one.notes, *one.cuts))


def _open(one: Aggregate) -> bool:
    """Whether its bounds could be chosen, and are not so narrow already that a unit counts once."""
    return one.card in CHOSEN and one.cap is None and one.bounds is not None and (one.card != "count" or one.bounds.magnitude > 1)
