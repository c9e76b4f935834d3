"""Edits of LATERAL: joined by what its WHERE compared with the row beside it, or what it computes of that row in place of its columns."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import TokenType

from dpquery.sql.edited import Change, Place
from dpquery.sql.editedvalues import COUNTS, FOLDS
from dpquery.sql.ties import Ties, conjuncts, pair, put_for, ties
from dpquery.sql.words import Edit, Level, Words


def lateral(place: Place) -> Iterator[str]:
    """LATERAL as a join with a subquery that selects what it was compared with; grouped by that, where it aggregates: a count of none is 0."""
    words = place.words
    found = _lateral(place)
    inner = None if found is None else words.level(found[0] + 3)
    branches = [] if found is None or inner is None else _branches(words, inner, found[1])
    tied = [ties(words, one) for one in branches]
    if found is None or inner is None or not all(tied):
        return
    at, _, named, behind = found
    alias = words.cut(named, named + 1)
    edits, across, grouped = list[Edit](), list[str](), False
    for one, tie in zip(branches, tied, strict=True):
        if tie is not None:
            edit = _branch(words, one, tie, alias)
            edits, across, grouped = edits + edit[0], across + edit[1], grouped or edit[2]
    outer_columns = {tuple(other for _, other in tie.pairs) for tie in tied if tie is not None}
    if len(outer_columns) > 1 or (len(branches) > 1 and (across or grouped)) or tied[0] is None:
        return
    if behind > named + 1:  # names of its columns
        own = ", ".join(key.rpartition(".")[2] for key, _ in tied[0].pairs)
        edits.append((words.begin(named + 2), words.begin(named + 2), f"{own}, "))
    first, kept = _joining(words, at)
    edits.append((words.stop(first - 1), words.begin(at + 1), " LEFT JOIN " if grouped or kept else " JOIN "))
    end = words.stop(behind - 1)
    on = " AND ".join([f" ON {tied[0].on(alias)}", *across])
    if words.kind(behind) is not TokenType.ON:
        edits.append((end, end, on))
    elif words.word(behind + 1) == "TRUE":
        edits.append((end, words.stop(behind + 1), on))
    elif grouped or words.level(at) is None or any(words.kind(one) is TokenType.OR for one in words.flat(behind, len(words.tokens))):
        return  # with a row for each it says which rows have a partner
    else:
        edits.append((end, words.stop(behind), f"{on} AND"))
    outer = words.level(at)
    counts = {} if outer is None or behind > named + 1 or not grouped else _counts(words, inner, alias)
    shown = [] if outer is None else put_for(words, outer, alias, counts, range(at, behind))
    yield words.with_edits(*edits, *shown)


def _branches(words: Words, inner: Level, close: int) -> list[Level]:
    """The SELECTs that UNION ALL puts together; none of other sets."""
    found = [inner]
    while found[-1].end < close:
        at = found[-1].end
        level = words.level(at + 3) if words.kind(at) is TokenType.UNION and words.kind(at + 1) is TokenType.ALL else None
        if level is None or level.start != at + 2:
            return []
        found.append(level)
    return found


def _branch(words: Words, inner: Level, tied: Ties, alias: str) -> tuple[list[Edit], list[str], bool]:
    """The edits of one SELECT, its conditions as the join has them, and whether it has one row for each key, whatever there is."""
    folds = any(words.word(one) in FOLDS and words.call(one) for one in range(inner.start, inner.end))
    first = words.items(inner)[0][0]
    rows = not folds and not {TokenType.GROUP_BY, TokenType.LIMIT, TokenType.QUALIFY} & inner.clauses.keys() and first == inner.start + 1
    across, needed, where = _across(words, inner, alias) if rows else ([], [], tied.where)
    shown = [] if words.kind(first) is TokenType.STAR else [*(key for key, _ in tied.pairs), *needed]
    edits: list[Edit] = [where]
    if shown:
        edits.append((words.begin(first), words.begin(first), f"{', '.join(dict.fromkeys(shown))}, "))
    if TokenType.GROUP_BY in inner.clauses:
        at = words.begin(inner.clauses[TokenType.GROUP_BY] + 1)
        edits.append((at, at, f"{tied.keys}, "))
    elif folds:
        end = min((at for kind, at in inner.clauses.items() if kind is not TokenType.FROM and kind is not TokenType.WHERE), default=inner.end)
        at = words.begin(end) if end == inner.end else words.stop(end - 1)
        edits.append((at, at, f" GROUP BY {tied.keys}"))
    chosen = _first_rows(words, inner, tied.keys)
    return edits + ([] if chosen is None else [chosen]), across, folds and TokenType.GROUP_BY not in inner.clauses


def _across(words: Words, inner: Level, alias: str) -> tuple[list[str], list[str], Edit]:
    """The conditions that read the row beside it, over its alias; its columns that they read; and its WHERE without them and without ties."""
    first, end = inner.clauses[TokenType.WHERE], inner.after(TokenType.WHERE)
    known = {words.word(at) for at in range(inner.clauses[TokenType.FROM], inner.after(TokenType.FROM))}
    names = {words.word(last - 1) for _, last in words.items(inner)}
    moved, needed, rest = list[str](), list[str](), list[str]()
    tests = conjuncts(words, first, end) or [(first + 1, end)]
    for start, stop in tests:
        dotted = [at for at in range(start, stop) if words.kind(at + 1) is TokenType.DOT]
        if all(words.word(at) in known for at in dotted):
            rest.append(words.cut(start, stop))
        elif any(words.kind(at) is TokenType.VAR and _bare(words, at) for at in range(start, stop)):
            rest.append(words.cut(start, stop))  # in the join the name may mean another column
        elif pair(words, start, stop, known, None) is None:
            edits: list[Edit] = [(words.begin(at), words.stop(at), alias) for at in dotted if words.word(at) in known]
            moved.append(_within(words, start, stop, edits))
            needed += [words.cut(at, at + 3) for at in dotted if words.word(at) in known and words.word(at + 2) not in names]
    return moved, needed, (words.stop(first - 1), words.stop(end - 1), f" WHERE {' AND '.join(rest)}" if rest else "")


def _bare(words: Words, at: int) -> bool:
    """Whether a word is a column without its table."""
    return TokenType.DOT not in (words.kind(at - 1), words.kind(at + 1)) and words.kind(at + 1) is not TokenType.L_PAREN


def _within(words: Words, start: int, stop: int, edits: list[Edit]) -> str:
    """The words with the edits made."""
    whole = words.with_edits(*edits)
    return whole[words.begin(start) : len(whole) - (len(words.text) - words.stop(stop - 1))]


def as_values(place: Place) -> Iterator[str]:
    """LATERAL of one row of aggregates as these aggregates, each a subquery of its own where its column is read."""
    words, found = place.words, _lateral(place)
    inner = None if found is None else words.level(found[0] + 3)
    outer = None if found is None else words.level(found[0])
    if found is None or inner is None or outer is None or inner.end != found[1] or inner.clauses.keys() - {TokenType.FROM, TokenType.WHERE}:
        return
    at, _, named, behind = found
    items = words.items(inner)
    if behind > named + 1 or not all(words.word(a) in FOLDS and words.kind(b - 2) is TokenType.ALIAS for a, b in items):
        return
    rows, alias = words.cut(inner.clauses[TokenType.FROM], inner.end), words.cut(named, named + 1)
    texts = {words.word(b - 1): f"(SELECT {words.cut(a, b - 2)} {rows})" for a, b in items}
    first, kept = _joining(words, at)
    end, test = behind, ""
    if words.kind(behind) is TokenType.ON:
        end = outer.after(TokenType.FROM)
        test = "" if words.word(behind + 1) == "TRUE" else words.cut(behind + 1, end)
    if any(words.kind(one) in (TokenType.JOIN, TokenType.COMMA) for one in words.flat(behind, outer.after(TokenType.FROM))) or (test and kept):
        return
    taken: list[Edit] = [(words.stop(first - 1), words.stop(end - 1), "")]
    if test:
        for name, text in texts.items():
            test = text.join(re.split(rf"\b{alias}\s*\.\s*{name}\b", test, flags=re.IGNORECASE))
        where = outer.clauses.get(TokenType.WHERE)
        at_where = words.stop(end - 1) if where is None else words.stop(where)
        taken = (
            [(words.stop(first - 1), words.stop(end - 1), f" WHERE {test}")] if where is None else [*taken, (at_where, at_where, f" ({test}) AND")]
        )
    yield words.with_edits(*taken, *put_for(words, outer, alias, texts, range(first, end)))


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


EDITS: dict[str, tuple[Change, ...]] = {"LATERAL": (computed, lateral, as_values, alone)}
