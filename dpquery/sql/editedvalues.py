"""Edits of private subqueries that are values above the noise: one row for each key."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import TokenType

from dpquery.sql.edited import Change, Place, Remarked
from dpquery.sql.ties import Ties, ties
from dpquery.sql.words import Edit, Level, Words

FOLDS = ("COUNT", "COUNT_IF", "COUNTIF", "SUM", "AVG", "MIN", "MAX", "MEDIAN")
COUNTS = FOLDS[:3]
OWN = {TokenType.SELECT, TokenType.FROM, TokenType.WHERE}
STARTS = (TokenType.WHERE, TokenType.AND, TokenType.OR, TokenType.L_PAREN, TokenType.HAVING, TokenType.ON, TokenType.SELECT, TokenType.COMMA)


def released_by_key(place: Place) -> Iterator[Remarked]:
    """A released value of the rows that equal the row around it as one row for each key, of which that row reads its own."""
    words, inner = place.words, place.level
    tied = None if inner is None or inner.start == 0 else ties(words, inner, place.index)
    if inner is None or tied is None or words.kind(inner.start - 1) is not TokenType.L_PAREN or not inner.clauses.keys() <= OWN:
        return
    items = words.items(inner)
    found = _folds(words, *items[0]) if len(items) == 1 else []
    if len(found) == 1 and found[0] == items[0]:
        name, called, counts = _free(words, "s"), _free(words, "v"), words.word(found[0][0]) in COUNTS
        query = _query(words, inner, tied, f"{words.cut(*found[0])} AS {called}")
        value = f"(SELECT MAX({name}.{called}) FROM ({query}) AS {name} WHERE {tied.on(name)})"
        edit: Edit = (words.begin(inner.start - 1), words.stop(inner.end), f"COALESCE({value}, 0)" if counts else value)
        yield Remarked(words.with_edits(edit), "")


def _folds(words: Words, first: int, end: int) -> list[tuple[int, int]]:
    """The aggregates of an item, each with its filter."""
    found = list[tuple[int, int]]()
    for at in range(first, end):
        call = words.call(at) if words.word(at) in FOLDS and not (found and at < found[-1][1]) else None
        if call is not None:
            behind = call[1] + 1
            filtered = words.closing(behind + 1) if words.word(behind) == "FILTER" else None
            found.append((at, behind if filtered is None else filtered + 1))
    return found


def _free(words: Words, name: str, place: int = 0) -> str:
    """A name that the text does not have."""
    used = {words.word(at) for at in range(len(words.tokens))}
    tries = [name] if place == 0 else []
    return next(one for one in [*tries, *(f"{name}{n}" for n in range(place + 1, 100))] if one.upper() not in used)


def _query(words: Words, inner: Level, tied: Ties, made: str) -> str:
    """The subquery as one row for each of its keys."""
    start = words.begin(inner.clauses[TokenType.FROM])
    return f"SELECT {tied.keys}, {made} {words.text[start : tied.where[0]]}{tied.where[2]} GROUP BY {tied.keys}"


EDITS: dict[str, tuple[Change, ...]] = {"SUBQUERY_ABOVE_NOISE": (released_by_key,)}
