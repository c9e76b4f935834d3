"""What a profile chose, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpquery.display.pages import Lines
from dpquery.display.text import Column, facts, grid, safe

if TYPE_CHECKING:
    from dpquery.engine.profile import Profile


def page(found: Profile) -> Lines:
    """A line for each choice, then where it comes from."""
    yield grid(
        [
            Column("for", tuple(safe(found.table if one.column is None else f"{found.table}.{one.column}") for one in found.found)),
            Column("chosen", tuple(one.key for one in found.found)),
            Column("", tuple(str(one.value) for one in found.found), number=True),
            Column("lost, about", tuple("" if one.lost is None else f"{100 * one.lost:.2g}%" for one in found.found), number=True),
        ]
    )
    yield facts([("origin", safe(found.origin))])
