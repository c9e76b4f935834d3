"""Edits of aggregates that show values: as groups with their counts, as bins, as the group that has the most, and PIVOT as columns of cases."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import TokenType

from dpquery.sql.edited import Place, Remarked
from dpquery.sql.words import Edit, Level, Words

TESTS = {"HISTOGRAM": "<=", "HISTOGRAM_EXACT": "="}
NUMBERED = {"NUMERIC_HISTOGRAM": (1, 0), "HISTOGRAM_NUMERIC": (0, 1)}  # where the value stands, and how many bins there are
FREQUENT = {"APPROX_MOST_FREQUENT": (1, 0), "APPROX_TOP_K": (0, 1), "APPROX_TOP_COUNT": (0, 1)}  # the value, and how many are shown
PICKED = {
    **dict.fromkeys(("ARG_MAX", "ARGMAX", "MAX_BY"), " DESC"),
    **dict.fromkeys(("ARG_MIN", "ARGMIN", "MIN_BY"), ""),
}
FOLDS = re.compile(r"(?:SUM|COUNT|AVG)\s*\(", re.IGNORECASE)
LISTED = re.compile(r"(?:ARRAY\s*)?\[(.*)\]", re.DOTALL | re.IGNORECASE)
TAIL = {TokenType.ORDER_BY, TokenType.LIMIT, TokenType.QUALIFY}
PIVOTED = re.compile(
    r"SELECT\s+\*\s+FROM\s+(?P<of>.+?)\s+PIVOT\s*\(\s*(?P<call>\w+)\s*\(\s*(?P<x>[\w.]+|\*)\s*\)(?:\s+(?:AS\s+)?\w+)?\s+FOR\s+(?P<key>[\w.]+)\s+"
    r"IN\s*\((?P<values>[^()]+)\)(?:\s*GROUP\s+BY\s+(?P<by>[\w., ]+?))?\s*\)(?:\s+(?:AS\s+)?\w+)?\s*;?\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
STATEMENT = re.compile(
    r"PIVOT\s+(?P<of>\w+|\(.+\))\s+ON\s+(?P<key>\w+)(?:\s+IN\s*\((?P<values>[^()]+)\))?\s+USING\s+(?P<call>\w+\s*\(\s*(?:\w+|\*)\s*\))"
    r"(?:\s+GROUP\s+BY\s+(?P<by>[\w, ]+?))?\s*;?\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
VALUE = re.compile(r"\s*('(?:[^']|'')*'|\d+)(?:\s+(?:AS\s+)?(\w+))?\s*\Z", re.IGNORECASE)


def arguments(words: Words, index: int) -> tuple[list[str], int] | None:
    """The arguments of the call whose name stands there, and its closing bracket."""
    call = words.call(index)
    if call is None:
        return None
    return [words.cut(*part) for part in words.parts(call[0] + 1, call[1]) if part[0] < part[1]], call[1]


def item(place: Place, level: Level, close: int) -> Edit | None:
    """From a call to the end of its item, alias and all, where it is an item of SELECT by itself."""
    words = place.words
    shown = next((one for one in words.items(level) if one[0] == place.index), None)
    named = shown is not None and shown[1] in (close + 1, close + 2, close + 3)
    return (place.offset, words.stop(shown[1] - 1), "") if named and shown is not None else None


def key_added(words: Words, level: Level, key: str) -> Edit:
    """One more key of GROUP BY."""
    at = words.stop(level.after(TokenType.GROUP_BY) - 1)
    return at, at, f", {key}" if TokenType.GROUP_BY in level.clauses else f" GROUP BY {key}"


def _counted(place: Place, level: Level, close: int, key: str, name: str = "", behind: str = "") -> Iterator[str]:
    """The key and how often it is found in place of the item."""
    shown = item(place, level, close)
    if shown is not None:
        start, stop, text = key_added(place.words, level, name or key)
        called = f"{key} AS {name}" if name else key
        yield place.words.with_edits((shown[0], shown[1], f"{called}, COUNT(*) AS n"), (start, stop, text + behind))


def binned(place: Place) -> Iterator[str | Remarked]:
    """The bins of a histogram as groups: between the ends that are listed, or so many of one width, whose ends are for the analyst to choose."""
    found, words, level = arguments(place.words, place.index), place.words, place.level
    word = words.word(place.index)
    if found is None or level is None or len(found[0]) < 2:
        return
    if word in TESTS and (listed := LISTED.fullmatch(found[0][1])) is not None:
        x, ends = found[0][0], [end.strip() for end in listed.group(1).split(",")]
        if all(re.fullmatch(r"-?[\d.]+|'[^']*'", end) for end in ends):
            whens = " ".join(f"WHEN {x} {TESTS[word]} {end} THEN {end}" for end in ends)
            yield from _counted(place, level, found[1], f"CASE {whens} END", "bin")
    if word in NUMBERED:
        x, count = (found[0][at] for at in NUMBERED[word])
        for text in _counted(place, level, found[1], f"width_bucket({x}, 0, 100, {count})", "bucket"):
            yield Remarked(text, "0 and 100 are placeholders for your own ends")


def frequent(place: Place) -> Iterator[str]:
    """The most frequent values with their counts."""
    found, words, level = arguments(place.words, place.index), place.words, place.level
    word = words.word(place.index)
    if found is None or level is None or word not in FREQUENT or len(found[0]) < 2:
        return
    value, most = (found[0][at] for at in FREQUENT[word])
    alone = level.end == len(words.tokens) and not (TAIL | {TokenType.GROUP_BY}) & level.clauses.keys()
    yield from _counted(place, level, found[1], value, behind=f" ORDER BY COUNT(*) DESC LIMIT {most}" if alone else "")


def picked(place: Place) -> Iterator[str]:
    """The value with the largest or smallest sum, of each group where there are some."""
    found, words, level = arguments(place.words, place.index), place.words, place.level
    word = words.word(place.index)
    if found is None or level is None or word not in PICKED or len(found[0]) != 2 or TAIL & level.clauses.keys():
        return
    (value, by), shown = found[0], item(place, level, found[1])
    if shown is None:
        return
    sum_ = by if FOLDS.match(by) else f"SUM({by})"
    start, stop, key = key_added(words, level, value)
    if TokenType.GROUP_BY in level.clauses:
        keys = words.cut(level.clauses[TokenType.GROUP_BY] + 1, level.after(TokenType.GROUP_BY))
        behind = f" QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {sum_}{PICKED[word]}) = 1"
    elif len(words.items(level)) == 1 and level.end == len(words.tokens):
        behind = f" ORDER BY {sum_}{PICKED[word]} LIMIT 1"
    else:
        return
    yield words.with_edits((place.offset, words.stop(found[1]), value), (start, stop, key + behind))


def cased(place: Place) -> Iterator[str]:
    """PIVOT with its values written out as one aggregate of cases for each, in groups of the keys that it names."""
    found = PIVOTED.search(place.text)
    values = [] if found is None else [VALUE.match(one) for one in found["values"].split(",")]
    if found is None or not values or None in values:
        return
    shown = []
    for place_, one in enumerate(values, start=1):
        if one is not None:
            bare = one[1].strip("'")
            name = one[2] or (bare if re.fullmatch(r"[A-Za-z_]\w*", bare) else f"value_{place_}")
            x = "1" if found["x"] == "*" else found["x"]
            shown.append(f"{found['call']}(CASE WHEN {found['key']} = {one[1]} THEN {x} END) AS {name}")
    by = [found["by"].strip()] if found["by"] else []
    keys = f" GROUP BY {by[0]}" if by else ""
    yield f"{place.text[: found.start()]}SELECT {', '.join(by + shown)} FROM {found['of']}{keys}"


def summarized(place: Place) -> Iterator[Remarked]:
    """SUMMARIZE, DESCRIBE and SHOW of a table as how many rows it has."""
    found = re.fullmatch(r"\s*(?:SUMMARIZE|DESCRIBE|DESC|SHOW|TABLE)\s+(?:TABLE\s+)?(\w+)\s*;?\s*", place.text, re.IGNORECASE)
    if found is not None:
        yield Remarked(f"SELECT COUNT(*) FROM {found[1]}", "how many rows there are; `dpquery tables` has the columns and their bounds")


def unpivoted(place: Place) -> Iterator[str]:
    """PIVOT as a statement: one row for each value in place of one column."""
    found = STATEMENT.match(place.text)
    if found is not None:
        keys = ", ".join([*([found["by"].strip()] if found["by"] else []), found["key"]])
        where = f" WHERE {found['key']} IN ({found['values']})" if found["values"] else ""
        yield f"SELECT {keys}, {found['call']} FROM {found['of']}{where} GROUP BY {keys}"
