"""A statement's text as words with places: brackets, queries and their clauses, for edits of the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from dpquery.errors import Position
from dpquery.sql import dollars
from dpquery.sql.clause import CLOSING, OPENING

CLAUSES = (
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.WINDOW,
    TokenType.QUALIFY,
    TokenType.ORDER_BY,
    TokenType.LIMIT,
    TokenType.OFFSET,
    TokenType.FETCH,
)
"""The clauses of a SELECT, in their order."""
SETS = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
Edit = tuple[int, int, str]  # from where to where in the text, and what is put there


@dataclass(frozen=True, slots=True)
class Level:
    """One SELECT: its words from the word SELECT to before `end`, and where each of its clauses begins."""

    start: int
    end: int
    clauses: dict[TokenType, int]

    def after(self, kind: TokenType) -> int:
        """The word at which a clause ends, or would stand."""
        later = CLAUSES[CLAUSES.index(kind) + 1 :]
        return min((at for clause, at in self.clauses.items() if clause in later), default=self.end)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text."""

    text: str
    tokens: Sequence[Token]

    def kind(self, index: int) -> TokenType | None:
        return self.tokens[index].token_type if 0 <= index < len(self.tokens) else None

    def word(self, index: int) -> str:
        """The word in capitals; of a text nothing."""
        bare = 0 <= index < len(self.tokens) and self.kind(index) is not TokenType.STRING
        return self.tokens[index].text.upper() if bare else ""

    def begin(self, index: int) -> int:
        """Where a word begins in the text; the text's end behind the last."""
        return self.tokens[index].start if index < len(self.tokens) else len(self.text.rstrip().rstrip(";").rstrip())

    def stop(self, index: int) -> int:
        """Where a word ends."""
        return self.tokens[index].end + 1

    def cut(self, first: int, end: int) -> str:
        """The text of the words from one to before another."""
        return self.text[self.begin(first) : self.stop(end - 1)] if first < end else ""

    def at(self, position: Position) -> int | None:
        """The word at a position, or the first one behind it."""
        rows = self.text.split("\n")
        offset = sum(len(row) + 1 for row in rows[: position.line - 1]) + position.column - 1
        return next((index for index, token in enumerate(self.tokens) if token.end >= offset), None)

    def closing(self, index: int) -> int | None:
        """The bracket that closes the one there."""
        depth = 0
        for at in range(index, len(self.tokens)):
            depth += (self.kind(at) in OPENING) - (self.kind(at) in CLOSING)
            if depth == 0:
                return at
        return None

    def opening(self, index: int) -> int | None:
        """The innermost bracket that is open where a word stands."""
        depth = 0
        for at in range(index - 1, -1, -1):
            depth += (self.kind(at) in CLOSING) - (self.kind(at) in OPENING)
            if depth < 0:
                return at
        return None

    def flat(self, first: int, end: int) -> Iterator[int]:
        """The words between two that stand in no further brackets; brackets themselves are among them."""
        depth = 0
        for at in range(first, end):
            depth -= self.kind(at) in CLOSING
            if depth == 0:
                yield at
            depth += self.kind(at) in OPENING

    def parts(self, first: int, end: int) -> list[tuple[int, int]]:
        """What commas keep apart between two words."""
        commas = [at for at in self.flat(first, end) if self.kind(at) is TokenType.COMMA]
        return list(zip([first, *(at + 1 for at in commas)], [*commas, end], strict=True))

    def level(self, index: int) -> Level | None:
        """The SELECT that a word stands in."""
        opened = self.opening(index)
        while opened is not None and self.kind(opened + 1) not in (TokenType.SELECT, TokenType.WITH):
            opened = self.opening(opened)
        first = 0 if opened is None else opened + 1
        end = len(self.tokens) if opened is None else self.closing(opened)
        if end is None:
            return None
        flat = list(self.flat(first, end))
        starts = [at for at in flat if self.kind(at) is TokenType.SELECT]
        start = next((at for at in reversed(starts) if at <= index), starts[0] if starts else None)
        if start is None:
            return None
        end = next((at for at in flat if at > start and self.kind(at) in SETS), end)
        clauses: dict[TokenType, int] = {}
        for at in flat:
            kind = self.kind(at)
            if start < at < end and kind in CLAUSES and kind is not None:
                clauses.setdefault(kind, at)
        return Level(start, end, clauses)

    def items(self, level: Level) -> list[tuple[int, int]]:
        """The items of SELECT, from word to before word."""
        first = level.start + 1
        if self.word(first) == "WITH":  # the clause of privacy
            close = self.closing(first + 3) if self.word(first + 2) == "OPTIONS" else first + 1
            first = first + 2 if close is None else close + 1
        first += self.kind(first) is TokenType.DISTINCT
        return self.parts(first, min(level.clauses.values(), default=level.end))

    def call(self, index: int) -> tuple[int, int] | None:
        """The brackets of the call whose name stands there."""
        if self.kind(index + 1) is not TokenType.L_PAREN:
            return None
        close = self.closing(index + 1)
        return None if close is None else (index + 1, close)

    def with_edits(self, *edits: Edit) -> str:
        """The text with all of the edits made; they do not overlap."""
        text = self.text
        for start, end, put in sorted(edits, reverse=True):
            text = text[:start] + put + text[end:]
        return text


def words(text: str, dialect: str) -> Words | None:
    """The words of a text; None where it has none."""
    try:
        return Words(text, tuple(dollars.tokens(text, Dialect.get_or_raise(dialect.lower()))))
    except (SqlglotError, ValueError):
        return None
