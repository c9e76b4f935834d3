"""What a profile chose, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from dpquery.display.pages import Lines
from dpquery.display.text import Column, facts, grid, receipt_line, safe
from dpquery.engine.capping import percent

if TYPE_CHECKING:
    from dpquery.engine.profile import Found, Profile

NEVER_BELOW = "Where its values are never negative, lower: 0 is right, and means and quantiles err less."
STORED = "Answers that were stored under the schema as it was are not found again: asked again, they are paid again."


def page(found: Profile, *, written: bool) -> Lines:
    """A line for each choice, where it comes from, what it does not say, and what was paid."""
    rows = [row for one in found.found for row in _rows(found.table, one)]
    headings = ("for", "chosen", "", "lost, about")
    yield grid([Column(name, cells, number=place > 1) for place, (name, cells) in enumerate(zip(headings, zip(*rows, strict=True), strict=True))])
    yield facts([("origin", safe(found.origin)), ("written", "into the schema" if written else "nowhere: the price was charged all the same")])
    yield from (Text(said) for said in _said(found, written))
    yield Text(receipt_line(found.receipt))


def _rows(table: str, one: Found) -> Iterator[tuple[str, str, str, str]]:
    """A choice, and the bound below that goes with one above, of which nothing is estimated."""
    name = safe(table if one.column is None else f"{table}.{one.column}")
    yield name, one.key, str(one.value), "not known" if one.lost is None else percent(one.lost)
    if one.lower is not None:
        yield name, "lower", str(one.lower), "not known"


def _said(found: Profile, written: bool) -> Iterator[str]:
    if found.unsummed:
        names = safe(", ".join(found.unsummed))
        yield f"Note: lower of {names} is the negative of upper, as magnitudes were looked at. {NEVER_BELOW}"
        yield f"Note: what a unit's {names} adds up to (most_per_unit) takes a second profile, once these bounds are written; it is paid again."
    if written:
        yield f"Note: {STORED}"
