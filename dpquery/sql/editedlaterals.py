"""Edits of LATERAL: joined by what its WHERE compared with the row beside it, or what it computes of that row in place of its columns."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import TokenType

from dpquery.sql.edited import Change, Place
from dpquery.sql.editedvalues import COUNTS, FOLDS
from dpquery.sql.ties import put_for, ties
from dpquery.sql.words import Edit, Level, Words


def lateral(place: Place) -> Iterator[str]:
    """LATERAL as a join with a subquery that selects what it was compared with; grouped by that, where it aggregates: a count of none is 0."""
    words = place.words
    found = _lateral(place)
    inner = None if found is None else words.level(found[0] + 3)
    tied = None if inner is None else ties(words, inner)
    if found is None or inner is None or tied is None:
        return
    at, close, named, behind = found
    folds = any(words.word(one) in FOLDS and words.call(one) for one in range(inner.start, inner.end))
    edits: list[Edit] = [tied.where]
    if words.kind(inner.start + 1) is not TokenType.STAR:
        edits.append((words.begin(inner.start + 1), words.begin(inner.start + 1), f"{tied.keys}, "))
    if folds and TokenType.GROUP_BY not in inner.clauses:
        edits.append((words.begin(close), words.begin(close), f" GROUP BY {tied.keys}"))
    chosen = _first_rows(words, inner, tied.keys)
    if chosen is not None:
        edits.append(chosen)
    if behind > named + 1:  # names of its columns
        own = ", ".join(key.rpartition(".")[2] for key, _ in tied.pairs)
        edits.append((words.begin(named + 2), words.begin(named + 2), f"{own}, "))
    first, kept = _joining(words, at)
    edits.append((words.stop(first - 1), words.begin(at + 1), " LEFT JOIN " if folds or kept else " JOIN "))
    alias, end = words.cut(named, named + 1), words.stop(behind - 1)
    on = f" ON {tied.on(alias)}"
    if words.kind(behind) is not TokenType.ON:
        edits.append((end, end, on))
    elif words.word(behind + 1) == "TRUE":
        edits.append((end, words.stop(behind + 1), on))
    elif folds or words.level(at) is None or any(words.kind(one) is TokenType.OR for one in words.flat(behind, len(words.tokens))):
        return  # with a row for each it says which rows have a partner
    else:
        edits.append((end, words.stop(behind), f"{on} AND"))
    outer = words.level(at)
    counts = {} if outer is None or behind > named + 1 else _counts(words, inner, alias)
    shown = [] if outer is None else put_for(words, outer, alias, counts, range(at, behind))
    yield words.with_edits(*edits, *shown)


def computed(place: Place) -> Iterator[str]:
    """What LATERAL without FROM computes of the row beside it, in place of its columns."""
    words, found = place.words, _lateral(place)
    inner = None if found is None else words.level(found[0] + 3)
    outer = None if found is None else words.level(found[0])
    if found is None or inner is None or outer is None or inner.clauses:
        return
    at, _, named, behind = found
    items = words.items(inner)
    names = [words.word(one) for one in range(named + 2, behind - 1, 2)] or [words.word(end - 1) for _, end in items]
    texts = {}
    for name, (first, end) in zip(names, items, strict=True):
        plain = behind == named + 1
        if plain and words.kind(end - 2) is not TokenType.ALIAS:
            return
        texts[name] = f"({words.cut(first, end - 2 if words.kind(end - 2) is TokenType.ALIAS else end)})"
    first, _ = _joining(words, at)
    true = words.kind(behind) is TokenType.ON and words.word(behind + 1) == "TRUE"
    if words.kind(behind) is TokenType.ON and not true:
        return
    end = words.stop(behind + 1 if true else behind - 1)
    alias = words.cut(named, named + 1)
    yield words.with_edits((words.stop(first - 1), end, ""), *put_for(words, outer, alias, texts, range(at, behind)))


def alone(place: Place) -> Iterator[str]:
    """What names no table but its own, without the word LATERAL."""
    words, at = place.words, _word(place)
    if at is None:
        return
    opened = next((one for one in range(at + 1, at + 4) if words.kind(one) is TokenType.L_PAREN), None)
    close = None if opened is None else words.closing(opened)
    if opened is None or close is None:
        return
    level = words.level(opened + 2) if words.kind(opened + 1) is TokenType.SELECT else None
    own = range(0) if level is None or TokenType.FROM not in level.clauses else range(level.clauses[TokenType.FROM], level.after(TokenType.FROM))
    known = {words.word(one) for one in own}
    if all(words.word(one - 1) in known for one in range(opened, close) if words.kind(one) is TokenType.DOT):
        yield words.with_edits((words.begin(at), words.begin(at + 1), ""))


def _word(place: Place) -> int | None:
    """The word LATERAL around or behind the place."""
    words = place.words
    order = (*range(place.index, -1, -1), *range(place.index, len(words.tokens)))
    return next((one for one in order if words.kind(one) is TokenType.LATERAL), None)


def _lateral(place: Place) -> tuple[int, int, int, int] | None:
    """LATERAL of a subquery: its word, the closing bracket, the alias, and the word behind that and the names of columns."""
    words, at = place.words, _word(place)
    close = None if at is None or words.kind(at + 1) is not TokenType.L_PAREN else words.closing(at + 1)
    if at is None or close is None or words.kind(at + 2) is not TokenType.SELECT:
        return None
    named = close + 1 + (words.kind(close + 1) is TokenType.ALIAS)
    if not words.word(named).isidentifier():
        return None
    names = words.closing(named + 1) if words.kind(named + 1) is TokenType.L_PAREN else named
    return None if names is None else (at, close, named, names + 1)


def _counts(words: Words, inner: Level, alias: str) -> dict[str, str]:
    """What stands for the columns that count rows: 0 where there are none."""
    items = [one for one in words.items(inner) if words.word(one[0]) in COUNTS and words.kind(one[1] - 2) is TokenType.ALIAS]
    return {words.word(end - 1): f"COALESCE({alias}.{words.cut(end - 1, end)}, 0)" for _, end in items}


def _first_rows(words: Words, inner: Level, key: str) -> Edit | None:
    """The first rows of each key in place of the first of those that the row outside meets."""
    limit, order = inner.clauses.get(TokenType.LIMIT), inner.clauses.get(TokenType.ORDER_BY)
    if limit is None or limit + 2 != inner.end or words.kind(limit + 1) is not TokenType.NUMBER:
        return None
    first = limit if order is None else order
    terms = "" if order is None else f" {words.cut(order, limit)}"
    text = f" QUALIFY row_number() OVER (PARTITION BY {key}{terms}) <= {words.word(limit + 1)}"
    return words.stop(first - 1), words.stop(limit + 1), text


def _joining(words: Words, at: int) -> tuple[int, bool]:
    """The first word of the join, and whether it keeps rows without a partner."""
    first = at - 1
    kept = False
    while words.word(first - 1) in ("LEFT", "CROSS", "INNER", "OUTER"):
        first -= 1
        kept = kept or words.word(first) == "LEFT"
    return first, kept


EDITS: dict[str, tuple[Change, ...]] = {"LATERAL": (computed, lateral, alone)}
