"""Edits of a SELECT as a whole: keys, rows that are shown, rows that are chosen, and subqueries that are values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, product

from sqlglot import TokenType

from dpquery.sql.dialect import LITERALS
from dpquery.sql.edited import Change, Place, Remarked, clause_left_out, put_behind, remarked
from dpquery.sql.quoting import NAME, bare
from dpquery.sql.words import Edit, Level, Words

UNIT = re.compile(rf"PARTITION BY ({NAME}(?:\.{NAME})?)")
SET = re.compile(r"\(([^()]*)\)|([\w.\"]+)")
TRIMMED = (TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH)


def _clause(words: Words, level: Level, kind: TokenType) -> str:
    """The text of a clause behind its word; empty where there is none."""
    return words.cut(level.clauses[kind] + 1, level.after(kind)) if kind in level.clauses else ""


def _without(words: Words, level: Level, *kinds: TokenType) -> list[Edit]:
    return [(words.stop(level.clauses[kind] - 1), words.stop(level.after(kind) - 1), "") for kind in kinds if kind in level.clauses]


def _tail(words: Words, level: Level, text: str = "") -> Edit:
    """Something in place of ORDER BY, LIMIT and OFFSET, which are the last clauses."""
    first = min([level.clauses[kind] for kind in TRIMMED if kind in level.clauses], default=level.end)
    return words.stop(first - 1), words.stop(level.end - 1), text


def aggregated(place: Place) -> Iterator[str]:
    """In place of rows: the average of a number, how often each value there is, or how many rows."""
    level, words = place.level, place.words
    if level is not None and words.kind(level.start - 2) is TokenType.EXISTS:  # which is shown, and has no place of its own
        level = words.level(level.start - 1)
    if level is None or TokenType.FROM not in level.clauses:
        return
    items = words.items(level)
    shown = [_unnamed(words, *item) for item in items]
    start, stop = words.begin(items[0][0]), words.stop(items[-1][1] - 1)
    stars = any(words.kind(end - 1) is TokenType.STAR or words.kind(first) in LITERALS for first, end in items)
    if not stars and TokenType.GROUP_BY not in level.clauses:
        for means in sorted(product((True, False), repeat=len(items)), key=lambda one: -sum(one)) if len(items) < 4 else ():
            averages = [f"AVG({value})" if mean else words.cut(*item) for mean, value, item in zip(means, shown, items, strict=True)]
            keys = [value for mean, value in zip(means, shown, strict=True) if not mean]
            counts = [] if any(means) else ["COUNT(*) AS n"]
            tail = _tail(words, level, f" GROUP BY {', '.join(keys)}" if keys else "")
            yield words.with_edits((start, stop, ", ".join(averages + counts)), tail)
    yield words.with_edits((start, stop, "COUNT(*)"), _tail(words, level))


def _unnamed(words: Words, first: int, end: int) -> str:
    """An item without its alias."""
    return words.cut(first, end - 2) if words.kind(end - 2) is TokenType.ALIAS else words.cut(first, end)


def first_of_unit(place: Place) -> Iterator[Remarked]:
    """DISTINCT ON as QUALIFY: the first row of each key, within the unit where the refusal names it."""
    level, words = place.level, place.words
    if level is None or words.kind(level.start + 2) is not TokenType.ON or words.kind(level.start + 3) is not TokenType.L_PAREN:
        return
    close = words.closing(level.start + 3)
    if close is None:
        return
    keys = [words.cut(*part) for part in words.parts(level.start + 4, close)]
    unit = UNIT.search(place.instead)
    added = unit is not None and unit.group(1).rpartition(".")[2] not in [key.rpartition(".")[2] for key in keys]
    if unit is not None and added:
        keys = [unit.group(1), *keys]
    bare = (words.begin(level.start + 1), words.begin(close + 1), "")
    order, end = level.clauses.get(TokenType.ORDER_BY), level.after(TokenType.ORDER_BY)
    terms = [] if order is None else [words.cut(*part) for part in words.parts(order + 1, end)]
    others = [term for term in terms if re.sub(r"\s+(?:ASC|DESC)\Z", "", term, flags=re.IGNORECASE) not in keys]
    if TokenType.QUALIFY not in level.clauses:
        start = words.stop((end if order is None else order) - 1)
        text = words.with_edits(bare, (start, words.stop(end - 1), f" QUALIFY {_numbered(keys, others)} = 1"))
        yield Remarked(text, "the first within each unit" if added else "")


def _numbered(keys: list[str], terms: list[str]) -> str:
    """The number of a row within its keys."""
    order = f" ORDER BY {', '.join(terms)}" if terms else ""
    return f"row_number() OVER (PARTITION BY {', '.join(keys)}{order})"


def not_first(place: Place) -> Iterator[Remarked]:
    """All rows in place of the first of each key."""
    level, words = place.level, place.words
    close = words.closing(level.start + 3) if level is not None and words.kind(level.start + 2) is TokenType.ON else None
    if level is not None and close is not None and words.opening(level.start) is None:
        yield Remarked(words.with_edits((words.begin(level.start + 1), words.begin(close + 1), "")), "of all rows, not of the first of each")


def chosen_counted(place: Place) -> Iterator[Remarked]:
    """How many rows QUALIFY chooses within units, in place of these rows."""
    level, words = place.level, place.words
    if level is None or TokenType.QUALIFY not in level.clauses or words.opening(level.start) is not None or level.end != len(words.tokens):
        return
    first, tail = words.items(level)[0][0], _tail(words, level)
    if words.word(first - 1) == "SELECT":  # no clause of privacy, no DISTINCT
        start, stop = words.begin(first), tail[0]
        text = f"COUNT(*) AS n FROM (SELECT {place.text[start:stop]}) AS chosen"
        yield Remarked(words.with_edits((start, words.stop(level.end - 1), text)), "how many such rows there are, not which")


def limited(place: Place) -> Iterator[Remarked]:
    """The first rows of each unit in place of the first of all; without an order, all rows."""
    level, words, unit = place.level, place.words, UNIT.search(place.instead)
    if level is None:
        return
    number, order = _clause(words, level, TokenType.LIMIT), level.clauses.get(TokenType.ORDER_BY)
    if unit is not None and order is not None and number.isdigit() and not {TokenType.QUALIFY, TokenType.OFFSET} & level.clauses.keys():
        terms = [words.cut(*part) for part in words.parts(order + 1, level.after(TokenType.ORDER_BY))]
        text = words.with_edits(_tail(words, level, f" QUALIFY {_numbered([unit.group(1)], terms)} <= {number}"))
        yield Remarked(text, f"the first {number} of each unit, not of all")
    if order is None:
        yield Remarked(words.with_edits(_tail(words, level)), "of all rows, not of the first alone")


# ---- keys ----------------------------------------------------------------------------------------------------------------------------


def keyed(word: TokenType, says: str) -> Change:
    """The list of keys with the unit in front."""

    def change(place: Place) -> Iterator[str]:
        unit, words = place.instead.removesuffix(says), place.words
        starts = [at for at in range(min(place.index + 1, len(words.tokens))) if words.kind(at) is word]
        if starts and re.fullmatch(r"\w+(\.\w+)?", unit):
            at = words.begin(starts[-1] + 1)
            yield words.with_edits((at, at, f"{unit}, "))

    return change


def finest(place: Place) -> Iterator[str | Remarked]:
    """The keys of the finest of several groupings: CUBE (a, b), ROLLUP (a, b), GROUPING SETS ((a, b), ..)."""
    level, words = place.level, place.words
    if level is None or TokenType.GROUP_BY not in level.clauses:
        return
    first, end = level.clauses[TokenType.GROUP_BY] + 1, level.after(TokenType.GROUP_BY)
    text = words.cut(first, end)
    sets = re.fullmatch(r"GROUPING\s+SETS\s*\(((?:[^()]|\([^()]*\))*)\)", text, re.IGNORECASE | re.DOTALL)
    levels = re.fullmatch(r"(?:CUBE|ROLLUP)\s*\((.*)\)", text, re.IGNORECASE | re.DOTALL)
    after = re.fullmatch(r"(.*?)\s+WITH\s+(?:CUBE|ROLLUP)", text, re.IGNORECASE | re.DOTALL)
    if sets is not None:
        named = [[one.strip() for one in (inside or alone).split(",") if one.strip()] for inside, alone in SET.findall(sets.group(1))]
        keys = list(dict.fromkeys(chain.from_iterable(named)))
        whole = any(len(set(part)) == len(keys) for part in named)
        text = words.with_edits((words.begin(first), words.stop(end - 1), ", ".join(keys)))
        if keys:
            yield Remarked(text, "of the finest groups alone" if whole else "in groups by all of the keys at once")
        return
    found = levels or after
    if found is not None and found.group(1).strip():
        yield words.with_edits((words.begin(first), words.stop(end - 1), found.group(1).strip()))


def units_counted(place: Place) -> Iterator[str]:
    """How many units there are in place of a list of them."""
    level, words = place.level, place.words
    unit = re.match(rf"COUNT\(DISTINCT ((?:{NAME}\.)*{NAME})\)", place.instead)
    if level is None or unit is None or TokenType.GROUP_BY not in level.clauses:
        return
    name = bare(unit.group(1))
    first, end = level.clauses[TokenType.GROUP_BY], level.after(TokenType.GROUP_BY)
    keys = [words.cut(*part) for part in words.parts(first + 1, end)]
    kept = [key for key in keys if bare(key) != name]
    items = [item for item in words.items(level) if bare(words.cut(*item)) == name]
    edits: list[Edit] = [(words.begin(a), words.stop(b - 1), f"COUNT(DISTINCT {words.cut(a, b)})") for a, b in items]
    edits.append((words.stop(first - 1), words.stop(end - 1), f" GROUP BY {', '.join(kept)}" if kept else ""))
    if len(kept) < len(keys):
        yield words.with_edits(*edits)


def averaged(place: Place) -> Iterator[Remarked]:
    """A column that is no key inside the aggregate that the refusal names."""
    found, words = re.search(rf"\bor (\w+)\(({NAME})\)\Z", place.instead), place.words
    if found is not None:
        dotted = words.kind(place.index + 1) is TokenType.DOT
        end = words.stop(place.index + 2 * dotted)
        text = words.with_edits((place.offset, end, f"{found.group(1)}({place.text[place.offset : end]})"))
        counted = found.group(1).upper() == "COUNT"
        yield Remarked(text, "how many values there are of what is no key" if counted else "the average of what is no key")


def in_having(place: Place) -> Iterator[str]:
    """A condition on an aggregate in HAVING."""
    level, words = place.level, place.words
    where = None if level is None else level.clauses.get(TokenType.WHERE)
    if level is None or where is None:
        return
    end = level.after(TokenType.WHERE)
    if any(words.kind(at) in (TokenType.OR, TokenType.BETWEEN) for at in words.flat(where, end)):
        return
    ands = [at for at in words.flat(where, end) if words.kind(at) is TokenType.AND]
    tests = list(zip([where, *ands], [*ands, end], strict=True))
    mine = [words.cut(a + 1, b) for a, b in tests if a < place.index < b]
    rest = [words.cut(a + 1, b) for a, b in tests if not a < place.index < b]
    old = _clause(words, level, TokenType.HAVING)
    behind = words.stop(level.after(TokenType.HAVING) - 1)
    having = f" AND {mine[0]}" if old else f" HAVING {mine[0]}"
    kept = f" WHERE {' AND '.join(rest)}" if rest else ""
    start, stop = words.stop(where - 1), words.stop(end - 1)
    yield words.with_edits((start, stop, kept + having)) if behind == stop else words.with_edits((start, stop, kept), (behind, behind, having))


def shown_too(place: Place) -> Iterator[str]:
    """What the rows are ordered by in SELECT, too."""
    level, words = place.level, place.words
    order = None if level is None else level.clauses.get(TokenType.ORDER_BY)
    if level is None or order is None:
        return
    part = next((one for one in words.parts(order + 1, level.after(TokenType.ORDER_BY)) if one[0] <= place.index < one[1]), None)
    if part is not None:
        term = re.sub(r"\s+(?:ASC|DESC|NULLS\s+\w+)\b.*\Z", "", words.cut(*part), flags=re.IGNORECASE)
        at = words.stop(words.items(level)[-1][1] - 1)
        yield words.with_edits((at, at, f", {term}"))


# ---- values --------------------------------------------------------------------------------------------------------------------------


def folded(aggregate: str) -> Change:
    """The subquery's only item inside an aggregate; of public rows that are one alone, nothing else is changed."""

    def change(place: Place) -> Iterator[str]:
        words, level = place.words, place.level
        starts = (at for at in range(place.index, -1, -1) if words.kind(at) is TokenType.L_PAREN)
        inside = next((at for at in starts if words.kind(at + 1) is TokenType.SELECT), None)
        if inside is not None and level is not None and level.start != inside + 1:
            level = words.level(inside + 2)
        items = [] if level is None else words.items(level)
        if level is None or level.start == 0 or len(items) != 1 or any(kind in level.clauses for kind in TRIMMED[:1]):
            return
        first, end = items[0]
        distinct = words.kind(level.start + 1) is TokenType.DISTINCT
        start = words.begin(level.start + 1) if distinct else words.begin(first)
        yield words.with_edits((start, words.stop(end - 1), f"{aggregate}({words.cut(first, end)})"), *_without(words, level, *TRIMMED[1:]))

    return change


EDITS: dict[str, tuple[Change, ...]] = {
    "RAW_ROWS": (aggregated,),
    "DISTINCT_ON": (first_of_unit, not_first),
    "WINDOW": (chosen_counted,),
    "LIMIT_IN_SUBQUERY": (limited,),
    "GROUP_BY_IN_SUBQUERY": (keyed(TokenType.GROUP_BY, " in GROUP BY"),),
    "DISTINCT_IN_SUBQUERY": (keyed(TokenType.DISTINCT, " in SELECT"),),
    **dict.fromkeys(("CUBE", "ROLLUP", "GROUPING_SETS"), (finest,)),
    "UNIT_AS_OUTPUT": (units_counted,),
    "NOT_GROUPED": (averaged,),
    "MISPLACED_AGGREGATE": (in_having,),
    "ORDER_BY_DISTINCT": (shown_too,),
    "CORRELATED_VALUE": (folded("max"), remarked(clause_left_out(TokenType.GROUP_BY), "of all of its groups at once")),
    "SCALAR_SUBQUERY": (folded("avg"), remarked(folded("max"), "of the largest value")),
    "SET_OPERATION": (put_behind(r"\b(EXCEPT|INTERSECT)\s+ALL\b", r"\1"),),
    "SET_UNIT": (put_behind(r"\bUNION\b(?!\s+ALL)", "UNION ALL"),),
}
