"""Edits of joins and of subqueries that are compared with the row around them: what ties both to one privacy unit is put in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import TokenType

from dpquery.sql.edited import Change, Place, put, put_behind, remarked
from dpquery.sql.quoting import NAME
from dpquery.sql.words import Edit, Level, Words

TIE = re.compile(rf"(?<![\w\"`])(({NAME})\.({NAME}) = ({NAME})\.({NAME}))")
NAMED = re.compile(r"\bFROM (\w+) AS (\w+)")
JOINING = (TokenType.JOIN, TokenType.COMMA, TokenType.CROSS, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.INNER, TokenType.NATURAL)


def _joined(words: Words, index: int) -> tuple[int, Level] | None:
    """The joined relation's first word, and the SELECT that joins it."""
    at: int | None = index
    while at is not None and words.kind(at - 1) not in (TokenType.JOIN, TokenType.COMMA, TokenType.LATERAL):
        at = words.opening(at)
    level = None if at is None else words.level(at - 1)
    return None if at is None or level is None else (at, level)


def _relation_end(words: Words, first: int, level: Level) -> int:
    """The word behind a relation and its alias."""
    ends = (*JOINING, TokenType.ON, TokenType.USING)
    found = (at for at in words.flat(first, level.end) if at > first and (words.kind(at) in ends or at in level.clauses.values()))
    return next(found, level.end)


def _condition(words: Words, first: int, level: Level) -> tuple[int, int]:
    """From the first word of a condition to the word behind it."""
    clauses = [at for at in level.clauses.values() if at > first]
    found = (at for at in words.flat(first, level.end) if words.kind(at) in JOINING or at in clauses)
    return first, next(found, level.end)


def _with_condition(words: Words, first: int, end: int, tie: str) -> Edit:
    """The condition with the tie in front."""
    old = words.cut(first, end)
    either = any(words.kind(at) is TokenType.OR for at in words.flat(first, end))
    both = tie if old.upper() == "TRUE" else f"{tie} AND ({old})" if either else f"{tie} AND {old}"
    return words.begin(first), words.stop(end - 1), both


def _in_where(words: Words, level: Level, tie: str) -> Edit:
    """The tie in WHERE of a SELECT."""
    if TokenType.WHERE in level.clauses:
        return _with_condition(words, level.clauses[TokenType.WHERE] + 1, level.after(TokenType.WHERE), tie)
    at = words.stop(level.after(TokenType.WHERE) - 1)
    return at, at, f" WHERE {tie}"


def tied(place: Place) -> Iterator[str]:
    """The join with the equality of the units that the refusal names."""
    found, words = TIE.search(place.instead), place.words
    if found is None:
        return
    tie, same = found.group(1), found.group(3) == found.group(5)
    joined = _joined(words, place.index)
    level = place.level if joined is None else joined[1]
    on = None if level is None else _on(words, place.index, level)
    if level is not None and on is not None and " in WHERE" not in place.instead:
        yield words.with_edits(_with_condition(words, *_condition(words, on + 1, level), tie))
    if joined is None:
        return
    at, level = joined
    if words.kind(at - 1) is TokenType.JOIN:
        end = words.stop(_relation_end(words, at, level) - 1)
        crossed = words.kind(at - 2) is TokenType.CROSS
        word: list[Edit] = [(words.begin(at - 2), words.begin(at - 1), "")] if crossed else []
        for how in ([f" USING ({found.group(3)})"] if same else []) + [f" ON {tie}"]:
            yield words.with_edits(*word, (end, end, how))
    yield words.with_edits(_in_where(words, level, tie))


def _on(words: Words, index: int, level: Level) -> int | None:
    """ON of the join that a word stands in."""
    starts = [at for at in words.flat(level.start, level.end) if words.kind(at) is TokenType.ON]
    return next((at for at in reversed(starts) if at < index), None) or next(iter(starts), None)


def on_true(place: Place) -> Iterator[str]:
    """A join with a condition, which is to be tied to the unit."""
    joined = _joined(place.words, place.index)
    if joined is not None:
        end = place.words.stop(_relation_end(place.words, *joined) - 1)
        yield place.words.with_edits((end, end, " ON TRUE"))


def subquery_tied(place: Place) -> Iterator[str]:
    """The subquery with the equality of the units that the refusal names."""
    found, named, words = TIE.search(place.instead), NAMED.search(place.instead), place.words
    before = range(place.index, -1, -1) if place.refused.code == "EXISTS" else range(0)  # which is refused at its first word
    first = next((at for at in before if words.kind(at) is TokenType.EXISTS), place.index)
    starts = (at for at in range(first, len(words.tokens) - 1) if words.kind(at) is TokenType.L_PAREN)
    opened = next((at for at in starts if words.kind(at + 1) is TokenType.SELECT), None)
    level = None if opened is None else words.level(opened + 2)
    if place.refused.code == "CORRELATED_VALUE":  # which is refused at a word of its WHERE
        level = place.level
    if found is None or level is None or TokenType.FROM not in level.clauses:
        return
    edits = [_in_where(words, level, found.group(1))]
    if named is not None:
        at = level.clauses[TokenType.FROM] + 1
        own = any(words.word(one) == words.word(at) and words.kind(one + 1) is TokenType.DOT for one in range(level.start, level.end))
        alone = at + 1 == level.after(TokenType.FROM) and words.word(at) == named.group(1).upper()
        if own or not alone:
            return
        edits.append((words.stop(at), words.stop(at), f" AS {named.group(2)}"))
    yield words.with_edits(*_merged(edits))


def _merged(edits: list[Edit]) -> list[Edit]:
    """The edits, those that put something in at one place in their order: an alias stands in front of WHERE."""
    if len(edits) == 2 and edits[0][:2] == edits[1][:2]:
        return [(edits[0][0], edits[0][1], edits[1][2] + edits[0][2])]
    return edits


EDITS: dict[str, tuple[Change, ...]] = {
    "JOIN_ON_UNIT": (tied,),
    "JOIN_CONDITION": (on_true,),
    "ASOF_JOIN": (put(r"\bASOF\s+((?:LEFT\s+)?JOIN\b[^()]*?\bON\s+)", r"\1"),),
    "POSITIONAL_JOIN": (put(r"\bPOSITIONAL(\s+JOIN\s+)", r"CROSS\1"),),
    "KEPT_PUBLIC": (put_behind(r"\b(?:RIGHT|LEFT|FULL)(?:\s+OUTER)?(\s+JOIN\b)", r"JOIN"),),
    "SEMI_PUBLIC": (put(r"\bFROM\s+(\w+)\s+SEMI\s+JOIN\s+(\w+)\s+(?=USING\b)", r"FROM \2 SEMI JOIN \1 "),),
    **dict.fromkeys(("IN_SUBQUERY", "NOT_IN_NULLABLE", "EXISTS"), (subquery_tied,)),
    "CORRELATED_VALUE": (remarked(subquery_tied, "within each unit alone"),),
}
