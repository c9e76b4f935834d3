"""What ties a subquery to the row around it, in the text: equalities of its columns with outer ones; and texts in place of names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import TokenType

from dpquery.sql.words import Edit, Level, Words


@dataclass(frozen=True, slots=True)
class Ties:
    """Pairs of a column of the subquery and the outer one that it equals, as they are written, and WHERE without them."""

    pairs: tuple[tuple[str, str], ...]
    where: Edit

    @property
    def keys(self) -> str:
        """The subquery's own columns."""
        return ", ".join(own for own, _ in self.pairs)

    def on(self, alias: str) -> str:
        """The condition that joins the subquery by them."""
        return " AND ".join(f"{alias}.{own.rpartition('.')[2]} = {other}" for own, other in self.pairs)

    @property
    def using(self) -> str | None:
        """The names that both sides share; None where one differs."""
        names = [(own.rpartition(".")[2], other.rpartition(".")[2]) for own, other in self.pairs]
        return ", ".join(own for own, _ in names) if all(own == other for own, other in names) else None


def conjuncts(words: Words, first: int, end: int) -> list[tuple[int, int]] | None:
    """The conditions behind the word at `first` that AND keeps apart, each from its first word; None where there is more than AND."""
    if any(words.kind(at) in (TokenType.OR, TokenType.BETWEEN) for at in words.flat(first, end)):
        return None
    ands = [at for at in words.flat(first, end) if words.kind(at) is TokenType.AND]
    return [(a + 1, b) for a, b in zip([first, *ands], [*ands, end], strict=True)]


def ties(words: Words, inner: Level, outside: int | None = None) -> Ties | None:
    """The equalities of WHERE with what is outside; `outside` is a word of an outer column, which may stand without its table."""
    if not {TokenType.FROM, TokenType.WHERE} <= inner.clauses.keys():
        return None
    first, end = inner.clauses[TokenType.WHERE], inner.after(TokenType.WHERE)
    tests = conjuncts(words, first, end)
    known = {words.word(at) for at in range(inner.clauses[TokenType.FROM], inner.after(TokenType.FROM))}
    pairs, rest = list[tuple[str, str]](), list[str]()
    for start, stop in tests or ():
        found = pair(words, start, stop, known, outside)
        if found is None:
            rest.append(words.cut(start, stop))
        else:
            pairs.append(found)
    text = f" WHERE {' AND '.join(rest)}" if rest else ""
    return Ties(tuple(pairs), (words.stop(first - 1), words.stop(end - 1), text)) if pairs else None


def pair(words: Words, start: int, stop: int, known: set[str], outside: int | None) -> tuple[str, str] | None:
    """The own column and the outer one of an equality of two columns."""
    equal = next((at for at in range(start, stop) if words.kind(at) is TokenType.EQ), None)
    sides = [] if equal is None else [(start, equal), (equal + 1, stop)]
    if not all(b - a == 1 or (b - a == 3 and words.kind(a + 1) is TokenType.DOT) for a, b in sides):
        return None
    outer = [(b - a == 3 and words.word(a) not in known) or (outside is not None and a <= outside < b) for a, b in sides]
    named = all(words.word(b - 1).isidentifier() or words.tokens[b - 1].token_type is TokenType.IDENTIFIER for _, b in sides)
    if sorted(outer) != [False, True] or not named:
        return None
    own, other = sides if outer[1] else sides[::-1]
    return words.cut(*own), words.cut(*other)


def put_for(words: Words, level: Level, alias: str, texts: Mapping[str, str], but: range) -> list[Edit]:
    """Texts in place of a relation's columns, `x` or `alias.x`, in one SELECT and what it holds, but for some words."""
    if texts and any(words.kind(at) is TokenType.SELECT and at not in but for at in range(level.start + 1, level.end)):
        raise ValueError("a further query may mean another column by the name")
    edits = list[Edit]()
    ends = {end - 1: first for first, end in words.items(level)}
    for at in range(level.start + 1, level.end):
        text = texts.get(words.word(at))
        if at in but or text is None or words.kind(at + 1) in (TokenType.DOT, TokenType.L_PAREN) or words.kind(at - 1) is TokenType.ALIAS:
            continue
        dotted = words.kind(at - 1) is TokenType.DOT
        if dotted and words.word(at - 2) != alias.upper():
            continue
        first = at - 2 if dotted else at
        named = f" AS {words.cut(at, at + 1)}" if ends.get(at) == first else ""
        if at in ends and not named and words.kind(first - 1) in (TokenType.R_PAREN, TokenType.VAR, TokenType.END):
            continue  # an item's alias
        edits.append((words.begin(first), words.stop(at), text + named))
    return edits
