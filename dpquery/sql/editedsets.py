"""Edits of what puts private rows beside public ones, of lists of units, and of the one value of a list in order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import TokenType

from dpquery.sql.edited import Change, Place, Remarked, left_out
from dpquery.sql.editedgroups import arguments
from dpquery.sql.editedqueries import TRIMMED
from dpquery.sql.quoting import NAME, bare
from dpquery.sql.words import SETS, Level, Words

FULL = re.compile(r"\bFULL(?:\s+OUTER)?(?=\s+JOIN\b)", re.IGNORECASE)
LISTS = ("ARRAY_AGG", "LIST", "ARRAY_AGG_DISTINCT", "COLLECT_LIST")
ORDERED = re.compile(
    r"(?P<x>.+?)(?:\s+(?:IGNORE|RESPECT)\s+NULLS)?\s+ORDER\s+BY\s+(?P<by>[\w.\"`]+)(?:\s+(?:ASC|(?P<down>DESC)))?(?:\s+NULLS\s+\w+)?(?:\s+LIMIT\s+\d+)?",
    re.IGNORECASE | re.DOTALL,
)
FIRST = re.compile(r"\s*\)*\s*\[\s*(?:(?:SAFE_)?OFFSET\s*\(\s*0\s*\)|(?:SAFE_)?ORDINAL\s*\(\s*1\s*\)|(?P<bare>[01]))\s*\]", re.IGNORECASE)
SHOWN = "of values that are declared or that enough people have"


# ---- private and public rows ---------------------------------------------------------------------------------------------------------


def _branches(words: Words, index: int) -> tuple[list[Level], list[int]]:
    """The SELECTs of a set operation that a word stands in, and the operations between them."""
    level = words.level(index)
    opened = None if level is None else words.opening(level.start)
    first, end = (0, len(words.tokens)) if opened is None else (opened + 1, words.closing(opened) or len(words.tokens))
    flat = list(words.flat(first, end))
    levels = [words.level(at) for at in flat if words.kind(at) is TokenType.SELECT]
    return [one for one in levels if one is not None], [at for at in flat if words.kind(at) in SETS]


def released_first(place: Place) -> Iterator[Remarked]:
    """A branch of private rows as the list of its values: set operations that keep each row once say the same of lists."""
    words = place.words
    levels, sets = _branches(words, place.index)
    if place.refused.code == "SET_OPERATION" and "not aggregated" not in place.refused.message:
        return
    if any(words.kind(at + 1) is TokenType.ALL for at in sets):
        return
    for level in levels:
        first = words.items(level)[0][0]
        if words.kind(first - 1) is not TokenType.DISTINCT and TokenType.GROUP_BY not in level.clauses:
            yield Remarked(words.with_edits((words.begin(first), words.begin(first), "DISTINCT ")), SHOWN)


def branch_left_out(place: Place) -> Iterator[Remarked]:
    """UNION ALL without the last or the first branch: rows that belong to nobody are not counted among those of people."""
    words = place.words
    levels, sets = _branches(words, place.index)
    if len(levels) == 2 and len(sets) == 1 and words.kind(sets[0]) is TokenType.UNION:
        (left, right), (at,) = levels, sets
        for first, end in ((words.stop(at - 1), words.stop(right.end - 1)), (words.begin(left.start), words.begin(right.start))):
            yield Remarked(words.with_edits((first, end, "")), "of the private rows alone; the public ones can be counted by themselves, for nothing")


def kept_on_one_side(place: Place) -> Iterator[Remarked]:
    """FULL JOIN with a public table as the one that keeps the private rows, or a list of keys with those of each."""
    found = [one for one in FULL.finditer(place.text) if one.start() <= place.offset]
    for way in ("LEFT", "RIGHT") if found else ():
        text = place.text[: found[-1].start()] + way + place.text[found[-1].end() :]
        yield Remarked(text, "without the rows that one side has alone")


# ---- units ---------------------------------------------------------------------------------------------------------------------------


def units_chosen(place: Place) -> Iterator[Remarked]:
    """How many units there are in the list, and of each other key; what is asked of each unit is asked within it."""
    words, level = place.words, place.level
    unit = re.match(rf"COUNT\(DISTINCT ((?:{NAME}\.)*{NAME})\)", place.instead)
    if level is None or unit is None or words.opening(level.start) is not None or level.end != len(words.tokens):
        return
    grouped, chosen = TokenType.GROUP_BY in level.clauses, {TokenType.HAVING, TokenType.QUALIFY} & level.clauses.keys()
    items = words.items(level)
    texts = [re.sub(r"\A.*\bAS\s+", "", words.cut(*one), flags=re.IGNORECASE | re.DOTALL) for one in items]
    own = level.clauses.get(TokenType.GROUP_BY, level.end)
    keys = [words.cut(*part) for part in words.parts(own + 1, level.after(TokenType.GROUP_BY))] if grouped else []
    named = [items[int(key) - 1] if key.isdigit() and 0 < int(key) <= len(items) else None for key in keys]
    keys = [key if at is None else words.cut(*at) for key, at in zip(keys, named, strict=True)]
    others = [key for key in keys if bare(key) != bare(unit.group(1))]
    if not all(re.fullmatch(rf"(?:{NAME}\.)?{NAME}", key) and bare(key) in map(bare, texts) for key in others):
        return
    if not grouped and words.kind(items[0][0] - 1) is not TokenType.DISTINCT:
        return
    if grouped and not chosen and not any(named):
        return  # the totals of all units say more
    shown = [key.rpartition(".")[2] for key in others]
    tail = min([level.clauses[kind] for kind in TRIMMED if kind in level.clauses], default=level.end)
    distinct = "DISTINCT " * (words.kind(items[0][0] - 1) is TokenType.DISTINCT)
    inner = f"SELECT {distinct}{words.text[words.begin(items[0][0]) : words.stop(tail - 1)]}"
    start = words.begin(items[0][0] - bool(distinct))
    text = f"{', '.join([*shown, 'COUNT(*) AS n'])} FROM ({inner}) AS units{' GROUP BY ' * bool(shown)}{', '.join(shown)}"
    yield Remarked(words.with_edits((start, words.stop(level.end - 1), text)), "how many there are, not who")


# ---- the first of a list -------------------------------------------------------------------------------------------------------------


def first_of_list(place: Place) -> Iterator[Remarked]:
    """`ARRAY_AGG(x ORDER BY y)[OFFSET(0)]` as the x of the row with the least y; where none is shown, a quantile or the median."""
    words, found = place.words, arguments(place.words, place.index)
    behind = None if found is None else FIRST.match(place.text, words.stop(found[1]))
    if found is None or behind is None or words.word(place.index) not in LISTS:
        return
    order = ORDERED.fullmatch(words.cut(place.index + 2, found[1]))
    if order is None:
        return
    if behind["bare"] == ("1" if place.dialect in ("bigquery", "spark", "snowflake") else "0"):
        return  # the second, or none
    closed = behind.group().count(")") - behind.group().count("(")
    start = place.offset
    for _ in range(closed):  # (ARRAY_AGG(..))[1]
        start = place.text.rindex("(", 0, start)
    x, by, down = order["x"], order["by"], order["down"] is not None

    def put(text: str) -> str:
        return place.text[:start] + text + place.text[behind.end() :]

    if place.refused.code == "AGGREGATE_IN_SUBQUERY":
        yield Remarked(put(f"{'ARG_MAX' if down else 'ARG_MIN'}({x}, {by})"), "of rows where both are known")
    elif x == by:
        end = "0.99" if down else "0.01"
        yield Remarked(put(f"quantile_cont({x}, {end})"), f"the {end} quantile, not the {'largest' if down else 'smallest'} value")
    else:
        yield Remarked(put(f"MEDIAN({x})"), "of all rows, not of one")
        yield Remarked(put(f"{'ARG_MAX' if down else 'ARG_MIN'}({x}, {by})"), "")


EXPLODED = left_out(r"\s*\bLATERAL\s+VIEW\s+(?:OUTER\s+)?\w+\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s+\w+(?:\s+AS\s+\w+(?:\s*,\s*\w+)*)?")


def not_exploded(place: Place) -> Iterator[Remarked]:
    """The rows themselves, where LATERAL VIEW reads a list of each."""
    for text in EXPLODED(place):
        yield Remarked(str(text), "of the rows themselves, not of the items of their lists")


EDITS: dict[str, tuple[Change, ...]] = {
    "SET_PUBLIC": (released_first, branch_left_out),
    "SET_OPERATION": (released_first,),
    "FULL_JOIN": (kept_on_one_side,),
    "UNIT_AS_OUTPUT": (units_chosen,),
    "ARRAY_AGG": (first_of_list,),
    "AGGREGATE_IN_SUBQUERY": (first_of_list,),
    "LATERAL": (not_exploded,),
}
