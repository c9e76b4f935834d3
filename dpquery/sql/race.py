"""bounds => 'race': COUNT or SUM under a public ceiling, as a race of caps below it leaves them."""

from __future__ import annotations

from collections.abc import Mapping

from dpquery.sql.clause import Name, Option, Text
from dpquery.sql.names import Statement

CARDS = {"count": "race_count", "total": "race_total"}


def raced(statement: Statement, card: str, named: Mapping[str, Option]) -> str:
    """The card that answers: another where caps are to race."""
    option = named.get("bounds")
    match option.value if option is not None else None:
        case Text(text=text) | Name(parts=(text,)) if text.upper() == "RACE" and option is not None:
            if card not in CARDS:
                raise statement.refuse_at("RACE", "caps race for COUNT and SUM", option.position, "the aggregate without bounds => 'race'")
            if "contribution_bounds_per_group" not in named:
                instead = "contribution_bounds_per_group => (0, 1000), bounds => 'race'"
                raise statement.refuse_at("RACE", "caps race up to a public ceiling, and none is written", option.position, instead)
            return CARDS[card]
        case _:
            return card
