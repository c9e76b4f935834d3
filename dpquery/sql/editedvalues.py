"""Edits of private subqueries that are values or conditions: joined as one row for each unit, or compared as a count of all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import TokenType

from dpquery.sql.edited import Change, Place, Remarked
from dpquery.sql.ties import Ties, conjuncts, ties
from dpquery.sql.words import Edit, Level, Words

FOLDS = ("COUNT", "COUNT_IF", "COUNTIF", "SUM", "AVG", "MIN", "MAX", "MEDIAN")
COUNTS = FOLDS[:3]
OWN = {TokenType.SELECT, TokenType.FROM, TokenType.WHERE}
COMPARED = (TokenType.GT, TokenType.GTE, TokenType.EQ, TokenType.LT, TokenType.LTE, TokenType.NEQ)
ABOVE = re.compile(r"(?:>\s*\d+|(?:>=|=)\s*[1-9]\d*)\Z")
BELOW = re.compile(r"(?:\d+\s*<|[1-9]\d*\s*(?:<=|=))\Z")
STARTS = (TokenType.WHERE, TokenType.AND, TokenType.OR, TokenType.L_PAREN, TokenType.HAVING, TokenType.ON, TokenType.SELECT, TokenType.COMMA)


def joined_by_unit(place: Place) -> Iterator[Remarked]:
    """A value of the rows that equal the row around it as a column of a join with one row for each key; of none a count is 0, all else NULL."""
    words, inner = place.words, place.level
    opened = None if inner is None or inner.start == 0 else inner.start - 1
    outer = None if opened is None else words.level(opened)
    tied = None if inner is None else ties(words, inner, place.index)
    if inner is None or opened is None or outer is None or tied is None or words.kind(opened) is not TokenType.L_PAREN:
        return
    items = words.items(inner)
    found = _folds(words, *items[0]) if len(items) == 1 and inner.clauses.keys() <= OWN else []
    close = words.closing(opened)
    if not found or close is None or TokenType.FROM not in outer.clauses:
        return
    if outer.clauses[TokenType.FROM] < opened < outer.after(TokenType.FROM):
        return
    name = _free(words, "s")
    names = [_free(words, "n" if words.word(first) in COUNTS else "v", at) for at, (first, _) in enumerate(found)]
    whole = len(found) == 1 and found[0][0] == items[0][0] and (items[0][1] - found[0][1] < 2 or words.kind(found[0][1]) is TokenType.ALIAS)
    dropped = whole and _dropped(words, outer, (opened, close), words.word(found[0][0]) in COUNTS)
    value = _value(words, items[0], found, [f"{name}.{one}" for one in names], whole, dropped)
    made = ", ".join(f"{words.cut(*one)} AS {called}" for one, called in zip(found, names, strict=True))
    query = _query(words, inner, tied, made)
    at = words.stop(outer.after(TokenType.FROM) - 1)
    for how in ([f"USING ({tied.using})"] if tied.using else []) + [f"ON {tied.on(name)}"]:
        join = f"{' ' if dropped else ' LEFT '}JOIN ({query}) AS {name} {how}"
        yield Remarked(words.with_edits((at, at, join), (words.begin(opened), words.stop(close), value)), "")


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


def _dropped(words: Words, outer: Level, place: tuple[int, int], counts: bool) -> bool:
    """Whether WHERE drops every row for which the subquery has no rows: NULL is compared, or 0 with what it does not meet."""
    where = outer.clauses.get(TokenType.WHERE)
    tests = None if where is None else conjuncts(words, where, outer.after(TokenType.WHERE))
    mine = next(((a, b) for a, b in tests or () if a <= place[0] < b), None)
    if mine is None:
        return False
    before, behind = words.cut(mine[0], place[0]), words.cut(place[1] + 1, mine[1])
    if counts:
        return bool(not before and ABOVE.match(behind)) or bool(not behind and BELOW.match(before))
    rest = (*range(mine[0], place[0]), *range(place[1] + 1, mine[1]))
    plain = all(words.kind(at) not in (TokenType.NOT, TokenType.CASE, TokenType.L_PAREN) for at in rest)
    return plain and (words.kind(place[1] + 1) in COMPARED or words.kind(place[0] - 1) in COMPARED)


def _value(words: Words, item: tuple[int, int], found: list[tuple[int, int]], names: list[str], whole: bool, dropped: bool) -> str:
    """The item with the joined columns in place of its aggregates."""
    texts = [f"COALESCE({name}, 0)" if words.word(first) in COUNTS and not dropped else name for (first, _), name in zip(found, names, strict=True)]
    if whole:
        return texts[0]
    end = item[1] - 2 if words.kind(item[1] - 2) is TokenType.ALIAS else item[1]
    parts, at = "", words.begin(item[0])
    for (first, behind), text in zip(found, texts, strict=True):
        parts, at = parts + words.text[at : words.begin(first)] + text, words.stop(behind - 1)
    return f"({parts}{words.text[at : words.stop(end - 1)]})"


def _query(words: Words, inner: Level, tied: Ties, made: str) -> str:
    """The subquery as one row for each of its keys."""
    start = words.begin(inner.clauses[TokenType.FROM])
    return f"SELECT {tied.keys}, {made} {words.text[start : tied.where[0]]}{tied.where[2]} GROUP BY {tied.keys}"


def counted(place: Place) -> Iterator[Remarked]:
    """[NOT] EXISTS of private rows that nothing ties to the row around them as their number, which is released once for all rows."""
    words = place.words
    at = next((one for one in range(min(place.index, len(words.tokens) - 1), -1, -1) if words.kind(one) is TokenType.EXISTS), None)
    close = None if at is None else words.closing(at + 1)
    level = None if at is None else words.level(at + 3)
    if at is None or close is None or level is None or level.start != at + 2 or TokenType.FROM not in level.clauses:
        return
    if level.end != close or level.clauses.keys() - {TokenType.FROM, TokenType.WHERE, TokenType.ORDER_BY}:
        return
    if any(words.word(one) in FOLDS and words.call(one) for one in range(level.start, level.clauses[TokenType.FROM])):
        return  # one row, whatever there is
    first = at - 1 if words.kind(at - 1) is TokenType.NOT else at
    rows = words.cut(level.clauses[TokenType.FROM], level.after(TokenType.WHERE))
    test = f"(SELECT COUNT(*) {rows}) {'> 0' if first == at else '<= 0'}"
    text = test if words.kind(first - 1) in STARTS else f"({test})"
    edit: Edit = (words.begin(first), words.stop(close), text)
    yield Remarked(words.with_edits(edit), "whether there are any at all, as a noisy count tells")


EDITS: dict[str, tuple[Change, ...]] = {"CORRELATED_VALUE": (joined_by_unit,), "EXISTS": (counted,), "SUBQUERY_ABOVE_NOISE": (released_by_key,)}
