"""Where clauses stand that the parser keeps no place of: at their word, not at what follows it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dpquery.errors import Position, Refused

WORDS: Mapping[str, tuple[str | tuple[str, ...], str]] = {
    "TABLESAMPLE": ("TABLESAMPLE", r"TABLESAMPLE|USING\s+SAMPLE|SAMPLE"),
    "PIVOT": ("PIVOT", r"UNPIVOT|PIVOT"),
    "FETCH": ("FETCH", r"FETCH"),
    "LOCK": ("FOR", r"FOR\s+(?:NO\s+KEY\s+|KEY\s+)?(?:UPDATE|SHARE)"),
    "STAR_EXCLUDE": ("EXCLUDE", r"EXCLUDE|EXCEPT"),
    "STAR_LIKE": ("LIKE", r"I?LIKE|SIMILAR\s+TO"),
    "RECURSIVE": ("WITH", r"RECURSIVE"),
    "SELECT_INTO": ("INTO", r"INTO"),
    "SELECT_KIND": ("SELECT AS", r"AS\s+(?:STRUCT|VALUE)"),
    "CUBE": ("CUBE", r"CUBE"),
    "ROLLUP": ("ROLLUP", r"ROLLUP"),
    "GROUPING_SETS": ("GROUPING SETS", r"GROUPING\s+SETS"),
}
"""By code: how a message about the clause starts, and the clause's word."""
MEANT: Mapping[str, tuple[str | tuple[str, ...], str]] = {
    "EXISTS": ("EXISTS", r"(?:NOT\s+)?EXISTS"),
    "LATERAL": ("LATERAL in FROM", r"LATERAL|(?:CROSS|OUTER)\s+APPLY"),
    "SET_OPERATION": (("EXCEPT ALL", "INTERSECT ALL"), r"(?:EXCEPT|INTERSECT)\s+ALL"),
}
"""Likewise where another place is what the statement to write instead is made from: moved once that is made."""
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)


def pointed(refused: Refused, text: str, words: Mapping[str, tuple[str | tuple[str, ...], str]] = WORDS) -> None:
    """Moves a refusal of a clause to the clause's word: the last one before where it points, else the first."""
    start, word = words.get(refused.code, ("", ""))
    if not word or refused.position is None or refused.source != text or not refused.message.startswith(start):
        return
    bare = QUOTED.sub(lambda found: " " * len(found.group()), text)
    found = [(_position(text, one.start()), one) for one in re.finditer(rf"\b(?:{word})\b", bare, re.IGNORECASE)]
    before = [(at, one) for at, one in found if (at.line, at.column) <= (refused.position.line, refused.position.column)]
    if found:
        at, one = before[-1] if before else found[0]
        refused.position = Position(at.line, at.column, one.end() - one.start())


def _position(text: str, offset: int) -> Position:
    before = text[:offset]
    return Position(before.count("\n") + 1, offset - before.rfind("\n"))
