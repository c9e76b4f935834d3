"""Edits of what looks at everybody's rows below the noise: what it says of all of them is released first, as values that rows are compared with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import TokenType

from dpquery.sql.edited import Change, Place, Remarked, put, remarked
from dpquery.sql.words import Edit, Level, Words

FOLDS = ("AVG", "SUM", "COUNT", "MEDIAN", "MIN", "MAX", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP")
GROUPED = frozenset((TokenType.GROUP_BY, TokenType.HAVING))
ORDERED = re.compile(r"ORDER\s+BY\s+((?:[^\s(),]|\([^()]*\))+)(?:\s+(ASC|DESC))?(?:\s+NULLS\s+(?:FIRST|LAST))?", re.IGNORECASE)
MOST = 10  # parts that rows are put in
FRACTION = "0.9 is a placeholder for your own fraction"


@dataclass(frozen=True, slots=True)
class Window:
    """A call OVER ( .. ): its words, those of its brackets and of OVER's, and the SELECT that it stands in."""

    call: int
    opened: int
    over: int
    close: int
    level: Level
    rows: str  # FROM and WHERE of that


def _windows(place: Place) -> Iterator[Window]:
    """The windows that hold the place, in a SELECT without groups."""
    words = place.words
    for over in range(2, len(words.tokens)):
        if words.word(over) != "OVER" or words.kind(over + 1) is not TokenType.L_PAREN or words.kind(over - 1) is not TokenType.R_PAREN:
            continue
        opened, close, level = words.opening(over - 1), words.closing(over + 1), words.level(over)
        if opened is None or close is None or level is None or not opened - 1 <= place.index <= close:
            continue
        if (rows := _rows(words, level)) is not None:
            yield Window(opened - 1, opened, over, close, level, rows)


def _rows(words: Words, level: Level) -> str | None:
    """FROM and WHERE of a SELECT without groups."""
    if TokenType.FROM not in level.clauses or GROUPED & level.clauses.keys():
        return None
    return words.cut(level.clauses[TokenType.FROM], level.after(TokenType.WHERE))


def released_first(place: Place) -> Iterator[Remarked]:
    """An aggregate of all rows beside each row as its released value."""
    words = place.words
    for one in _windows(place):
        if words.word(one.call) in FOLDS and one.over + 2 == one.close:
            value = f"(SELECT {words.cut(one.call, one.over)} {one.rows})"
            yield Remarked(words.with_edits((words.begin(one.call), words.stop(one.close), value)), "")


def in_parts(place: Place) -> Iterator[Remarked]:
    """NTILE, PERCENT_RANK and CUME_DIST of all rows by their released quantiles."""
    words = place.words
    for one in _windows(place):
        order, name = ORDERED.fullmatch(words.cut(one.over + 2, one.close)), words.word(one.call)
        given = words.cut(one.opened + 1, one.over - 1)
        number = int(given) if name == "NTILE" and given.isdigit() and len(given) < 3 else MOST
        if order is None or name not in ("NTILE", "PERCENT_RANK", "CUME_DIST") or not 2 <= number <= MOST:
            continue
        fractions = [f"{place_ / number:.4g}" for place_ in range(1, number)]
        shown = [str(part + 1) if name == "NTILE" else f"{(part + 0.5) / number:.4g}" for part in range(number)]
        falls = (order[2] or "").upper() == "DESC"
        cuts = [f"{order[1]} {'>' if falls else '<='} (SELECT quantile_cont({order[1]}, {at}) {one.rows})" for at in fractions]
        whens = " ".join(f"WHEN {cut} THEN {part}" for cut, part in zip(cuts[::-1] if falls else cuts, shown, strict=False))
        text = words.with_edits((words.begin(one.call), words.stop(one.close), f"CASE {whens} ELSE {shown[-1]} END"))
        yield Remarked(text, "by released quantiles, rows of one value in one part" + ("" if name == "NTILE" else ", in tenths"))


def beyond(place: Place) -> Iterator[Remarked]:
    """The first rows of all as those beyond a released quantile: ORDER BY x LIMIT n, or QUALIFY of their numbers."""
    words, level = place.words, place.level
    rows = None if level is None or words.opening(level.start) is None else _rows(words, level)
    if level is None or rows is None:
        return
    clauses = level.clauses
    if TokenType.QUALIFY in clauses and not {TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET} & clauses.keys():
        first = clauses[TokenType.QUALIFY]
        found = re.fullmatch(
            rf"QUALIFY\s+(?:ROW_NUMBER|RANK|DENSE_RANK)\s*\(\s*\)\s*OVER\s*\(\s*({ORDERED.pattern})\s*\)\s*<=?\s*\d+",
            words.cut(first, level.after(TokenType.QUALIFY)),
            re.IGNORECASE,
        )
        order = None if found is None else ORDERED.fullmatch(found[1])
    elif {TokenType.ORDER_BY, TokenType.LIMIT} <= clauses.keys() and not {TokenType.QUALIFY, TokenType.OFFSET} & clauses.keys():
        first = clauses[TokenType.ORDER_BY]
        order = ORDERED.fullmatch(words.cut(first, clauses[TokenType.LIMIT]))
    else:
        return
    if order is not None:
        falls = (order[2] or "").upper() == "DESC"
        test = f"{order[1]} {'>=' if falls else '<='} (SELECT quantile_cont({order[1]}, {0.9 if falls else 0.1}) {rows})"
        remark = f"of the tenth of all rows that comes first; {FRACTION if falls else FRACTION.replace('0.9', '0.1')}"
        yield Remarked(words.with_edits(*_tested(words, level, test), (words.stop(first - 1), words.stop(level.end - 1), "")), remark)


def _tested(words: Words, level: Level, test: str) -> list[Edit]:
    """One more condition in WHERE."""
    if TokenType.WHERE not in level.clauses:
        at = words.stop(level.after(TokenType.FROM) - 1)
        return [(at - 1, at, words.text[at - 1 : at] + f" WHERE {test}")]
    first, end = level.clauses[TokenType.WHERE] + 1, level.after(TokenType.WHERE)
    return [(words.begin(first), words.stop(end - 1), f"({words.cut(first, end)}) AND {test}")]


def greatest(place: Place) -> Iterator[Remarked]:
    """A value of the first row alone, ORDER BY x LIMIT 1: within a unit as ARG_MAX or ARG_MIN, else as that with the largest or smallest sum."""
    words, level = place.words, place.level
    items = [] if level is None else words.items(level)
    if level is None or len(items) != 1 or level.start == 0 or not {TokenType.ORDER_BY, TokenType.LIMIT} <= level.clauses.keys():
        return
    first, limit = level.clauses[TokenType.ORDER_BY], level.clauses[TokenType.LIMIT]
    order = ORDERED.fullmatch(words.cut(first, limit))
    if order is not None and words.cut(limit + 1, level.end) == "1" and not GROUPED & level.clauses.keys():
        falls, item = (order[2] or "").upper() == "DESC", words.cut(*items[0])
        shown = words.begin(items[0][0]), words.stop(items[0][1] - 1), f"{'arg_max' if falls else 'arg_min'}({item}, {order[1]})"
        behind = words.stop(first - 1), words.stop(level.end - 1)
        yield Remarked(words.with_edits(shown, (*behind, "")), "of rows where neither is NULL")
        ranked = f" GROUP BY {item} ORDER BY SUM({order[1]}){' DESC' * falls} LIMIT 1"
        yield Remarked(words.with_edits((*behind, ranked)), f"that of the {'largest' if falls else 'smallest'} sum, not of one row")


EDITS: dict[str, tuple[Change, ...]] = {
    "WINDOW": (released_first, in_parts, beyond),
    "LIMIT_IN_SUBQUERY": (beyond,),
    "SCALAR_SUBQUERY": (greatest,),
    "NOT_A_SELECT": (remarked(put(r"\bDELETE\s+(?=FROM\b)", "SELECT COUNT(*) "), "how many such rows there are: no row is deleted"),),
}
