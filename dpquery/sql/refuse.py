"""Refusals with a place: what, where, why, and what to write instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from itertools import islice

from sqlglot import exp

from dpquery.errors import Position, Refused

SEARCHED = 200  # nodes looked through for one with a place: the text may be hostile


def refuse(
    code: str, message: str, *, node: exp.Expr | None = None, instead: str | None = None, source: str = "", position: Position | None = None
) -> Refused:
    """The refusal to raise. Its position is that of the first token below `node`, unless given."""
    where = position
    while where is None and node is not None:
        where, node = place(node), node.parent
    return Refused(code, message, position=where, instead=instead, source=source or None)


def place(node: exp.Expr) -> Position | None:
    """Where a node stands in the text: the leftmost token found in it; None where the parser kept none."""
    found: Position | None = None
    for count, below in enumerate(node.walk()):
        here = _own(below)
        if here is not None and (found is None or (here.line, here.column) < (found.line, found.column)):
            found = here
        if count >= SEARCHED:
            break
    return found


CALLED = re.compile(r"(\w{1,40})\s*\(\s*(?:DISTINCT\b[\s(]*)?\Z", re.IGNORECASE)


def called_before(node: exp.Expr, source: str) -> re.Match[str] | None:
    """The name and the bracket in front of a function's first token: of some functions the parser notes no more."""
    starts = [below.meta["start"] for below in islice(node.walk(), SEARCHED) if isinstance(below.meta.get("start"), int)]
    if not starts or not isinstance(node, exp.Func):
        return None
    return CALLED.search(source, max(0, min(starts) - 80), min(starts))


def position_of(found: re.Match[str], source: str) -> Position:
    """Where the name stands."""
    before = source[: found.start(1)]
    return Position(before.count("\n") + 1, found.start(1) - before.rfind("\n"), len(found.group(1)))


def near(name: str, known: Iterable[str]) -> str:
    """A hint at the names that look like `name`: ` (did you mean "visits"?)`, or nothing."""
    by_folded = {other.lower(): other for other in known}
    close = difflib.get_close_matches(name.lower(), list(by_folded), n=3, cutoff=0.6)
    return f" (did you mean {' or '.join(repr(by_folded[other]) for other in close)}?)" if close else ""


def _own(node: exp.Expr) -> Position | None:
    """The node's own token, where the parser noted one. The parser counts columns at the token's end."""
    meta = node.meta
    if "line" not in meta or "start" not in meta:
        return None
    length = int(meta["end"]) - int(meta["start"]) + 1
    return Position(int(meta["line"]), max(1, int(meta["col"]) - length + 1), max(1, length))
