"""How many numbers a release is made of, which decides the time and memory that its noise takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from dpquery.plan.release import ListedKeys, NoKeys, PrivateKeys, Release, ReleasedKeys


def numbers(release: Release, longest: int, some: Sequence[int] | None = None) -> int:
    """Noisy integers over all groups, of some parts or all. A list of released keys has at most `longest`; of private keys: those of one group."""
    match release.keys:
        case ListedKeys(rows=rows):
            groups = len(rows)
        case ReleasedKeys():
            groups = longest
        case NoKeys() | PrivateKeys():
            groups = 1
        case _:
            assert_never(release.keys)
    return groups * sum(release.table.parts[i].numbers for i in (range(len(release.table.parts)) if some is None else some))
