"""What an edit of a refused statement is made from: where it was refused and why, and the simplest edits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import TokenType

from dpquery.errors import Refused
from dpquery.sql.words import Level, Words


@dataclass(frozen=True, slots=True)
class Place:
    """A refusal, the words of the text, and the word that it points at."""

    refused: Refused
    words: Words
    index: int
    dialect: str

    @property
    def text(self) -> str:
        return self.words.text

    @property
    def offset(self) -> int:
        """Where the word begins."""
        return self.words.begin(self.index)

    @property
    def level(self) -> Level | None:
        """The SELECT around it."""
        return self.words.level(self.index)

    @property
    def instead(self) -> str:
        return self.refused.instead or ""


@dataclass(frozen=True, slots=True)
class Remarked:
    """An edited text, and how its answer differs from the one that was asked for, or which of its numbers stand for the analyst's own."""

    text: str
    differs: str


Change = Callable[[Place], Iterator[str | Remarked]]


def left_out(pattern: str) -> Change:
    """Leaves out the text of a pattern that holds the place."""
    return put(pattern, "")


def put(pattern: str, other: str) -> Change:
    """Puts something in the place of the text of a pattern that holds the place or ends right before it; `\\1` is its first part."""
    known = re.compile(pattern, re.IGNORECASE | re.DOTALL)

    def change(place: Place) -> Iterator[str | Remarked]:
        for one in known.finditer(place.text):
            if one.start() <= place.offset <= one.end():
                yield place.text[: one.start()] + one.expand(other) + place.text[one.end() :]

    return change


def left_out_behind(pattern: str) -> Change:
    """Leaves out the first text of a pattern behind the place."""
    return put_behind(pattern, "")


def put_behind(pattern: str, other: str) -> Change:
    """Puts something in the place of the first text of a pattern behind the place."""
    known = re.compile(pattern, re.IGNORECASE)

    def change(place: Place) -> Iterator[str | Remarked]:
        one = known.search(place.text, place.offset)
        if one is not None:
            yield place.text[: one.start()] + one.expand(other) + place.text[one.end() :]

    return change


def clause_left_out(*kinds: TokenType) -> Change:
    """Leaves out clauses of the SELECT."""

    def change(place: Place) -> Iterator[str | Remarked]:
        level, words = place.level, place.words
        if level is not None:
            there = [(level.clauses[kind], level.after(kind)) for kind in kinds if kind in level.clauses]
            yield words.with_edits(*((words.stop(first - 1), words.stop(end - 1), "") for first, end in there))

    return change


def word_left_out(word: str) -> Change:
    """Leaves out a word at the place or right before it, with the space behind it."""
    return left_out(rf"\b{word}\b\s*")


def remarked(change: Change, differs: str) -> Change:
    """The edit with a remark of its own on how the answer differs."""

    def changed(place: Place) -> Iterator[str | Remarked]:
        for one in change(place):
            yield one if isinstance(one, Remarked) else Remarked(one, differs)

    return changed
