"""Edits of what another dialect means in another way than DuckDB: the same value in words that both take alike, or one near it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlglot import TokenType

from dpquery.sql.edited import Change, Place, Remarked
from dpquery.sql.editedgroups import arguments

FROM_MONDAY = "ISO weeks, from Monday"
SUNDAY = "(MOD(EXTRACT(ISODOW FROM {x}), 7) + 1)"
SUNDAYS = {"dayofweek": (SUNDAY, ""), "dow": (SUNDAY, "")}
MEANT: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "bigquery": {
        **SUNDAYS,
        "week": ("EXTRACT(ISOWEEK FROM {x})", FROM_MONDAY),
        "trim": ("TRIM({x}, ' ')", "spaces alone are taken off"),
    },
    "spark": {
        **SUNDAYS,
        "weekday": ("(EXTRACT(ISODOW FROM {x}) - 1)", ""),
        "second": ("SECOND({x})", "whole seconds"),
        "seconds": ("SECOND({x})", "whole seconds"),
    },
    "trino": {
        "dow": ("DAY_OF_WEEK({x})", ""),
        "day_of_week": ("DAY_OF_WEEK({x})", ""),
        "trim": ("TRIM(BOTH ' ' FROM {x})", "spaces alone are taken off"),
    },
}
"""By dialect and part of a date or function: the expression to write, and how it differs."""
EXTRACTED = re.compile(r"(\w+)(?:\s*\(\s*\w+\s*\))?\s+FROM\s+(.+)", re.IGNORECASE | re.DOTALL)
NAMED = re.compile(r"\(dialect (\w+)\)\Z")


def same_day(place: Place) -> Iterator[Remarked]:
    """The call in other words, in SELECT and GROUP BY alike."""
    dialect = NAMED.search(place.refused.message)
    meant = MEANT.get(dialect.group(1), {}) if dialect is not None else {}
    words, at = place.words, place.index
    while at >= 0:
        found = _part(place, at)
        if found is not None and found[0] in meant:
            template, differs = meant[found[0]]
            given = place.text[words.begin(at) : words.stop(found[2])]
            yield Remarked(place.text.replace(given, template.format(x=found[1])), differs)
            return
        at = (words.opening(at) or 0) - 1


def _part(place: Place, at: int) -> tuple[str, str, int] | None:
    """What is asked of what by the call whose name stands there, and its closing bracket."""
    found, name = arguments(place.words, at), place.words.word(at).lower()
    if found is None:
        return None
    match name, found[0]:
        case "extract", [text] if (parts := EXTRACTED.fullmatch(text)) is not None:
            return parts.group(1).lower(), parts.group(2), found[1]
        case (("date_part" | "datepart"), [part, x]):
            return part.strip("'").lower(), x, found[1]
        case _, [x] if name != "week":  # in BigQuery WEEK(MONDAY) is a part by itself
            return name, x, found[1]
        case _:
            return None


def from_one(place: Place) -> Iterator[str]:
    """A text from its first place on, where place 0 is taken for that."""
    words = place.words
    opened = words.opening(place.index) if words.call(place.index) is None else place.index + 1
    close = None if opened is None else words.closing(opened)
    parts = [] if opened is None or close is None else words.parts(opened + 1, close)
    if "place 0 is taken for 1" in place.refused.message and len(parts) > 1 and words.kind(parts[1][0]) is TokenType.NUMBER:
        yield words.with_edits((words.begin(parts[1][0]), words.stop(parts[1][1] - 1), "1"))


EDITS: dict[str, tuple[Change, ...]] = {"DIALECT_DIFFERS": (same_day, from_one)}
