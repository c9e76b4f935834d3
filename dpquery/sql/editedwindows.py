"""Edits of windows: within the privacy unit, without a frame, as aggregates of all rows, and frames of days as joins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import TokenType

from dpquery.sql.edited import Change, Place, Remarked, left_out_behind
from dpquery.sql.editedgroups import key_added
from dpquery.sql.quoting import NAME
from dpquery.sql.words import Edit, Words


def _over(words: Words, index: int) -> tuple[int, int, int] | None:
    """OVER ( .. ) of the call at or around a word: OVER's place, and those of its brackets."""
    for at in range(index, len(words.tokens)):
        if words.word(at) == "OVER" and words.kind(at + 1) is TokenType.L_PAREN:
            close = words.closing(at + 1)
            return None if close is None else (at, at + 1, close)
    return None


def _framed(words: Words, index: int) -> tuple[int, int, int, int] | None:
    """The window whose frame holds a word: its call, OVER, the frame's first word, and the closing bracket."""
    opened = words.opening(index)
    close = None if opened is None else words.closing(opened)
    if opened is None or close is None or words.word(opened - 1) != "OVER":
        return None
    frame = next((at for at in words.flat(opened + 1, close) if words.word(at) in ("ROWS", "RANGE", "GROUPS")), None)
    bracket = words.opening(opened - 2) if words.kind(opened - 2) is TokenType.R_PAREN else None
    depth, call = 0, None
    for at in range(opened - 2, -1, -1):
        depth += (words.kind(at) is TokenType.R_PAREN) - (words.kind(at) is TokenType.L_PAREN)
        if depth == 0:
            call = at - 1
            break
    return None if frame is None or call is None or call == bracket else (call, opened - 1, frame, close)


def unframed(place: Place) -> Iterator[str | Remarked]:
    """The window without its frame, where the function takes no heed of it; FIRST_VALUE of a frame as the row so many before."""
    words, found = place.words, _framed(place.words, place.index)
    if found is None:
        return
    call, over, frame, close = found
    bare = f"OVER ({words.cut(over + 2, frame)})"
    if words.word(call) == "FIRST_VALUE":
        yield from _first(words, found, bare)
    elif words.word(call) in ("ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE", "LAG", "LEAD", "PERCENT_RANK", "CUME_DIST"):
        yield words.with_edits((words.stop(frame - 1), words.begin(close), ""))
    elif words.word(frame) == "RANGE":
        yield Remarked(words.with_edits((words.begin(frame), words.stop(frame), "ROWS")), "over rows, not over equal rows or distances")


def _first(words: Words, found: tuple[int, int, int, int], bare: str) -> Iterator[str]:
    call, over, frame, close = found
    preceding = re.match(r"ROWS\s+(?:BETWEEN\s+)?(\d{1,3})\s+PRECEDING\b(?!.*PRECEDING)", words.cut(frame, close), re.IGNORECASE | re.DOTALL)
    if preceding is not None:
        x, rows = words.cut(call + 2, over - 1), preceding.group(1)
        made = f"CASE WHEN row_number() {bare} > {rows} THEN lag({x}, {rows}) {bare} ELSE first_value({x}) {bare} END"
        yield words.with_edits((words.begin(call), words.stop(close), made))


DISTANCES = re.compile(
    r"(?:PARTITION\s+BY\s+(?P<by>[\w.\"`]+)\s+)?ORDER\s+BY\s+(?P<x>[\w.\"`]+)(?:\s+ASC)?\s+RANGE\s+(?:BETWEEN\s+(?P<from>.+?)\s+PRECEDING\s+AND\s+"
    r"(?:(?P<now>CURRENT\s+ROW)|(?P<to>.+?)\s+FOLLOWING)|(?P<since>.+?)\s+PRECEDING)",
    re.IGNORECASE | re.DOTALL,
)
UNIQUE = re.compile(rf"grouped by ({NAME}), which tells")


def joined_by_distance(place: Place) -> Iterator[Remarked]:
    """A frame of distances as a join of the table with itself: each row with those around it, by a column that tells the rows apart."""
    words, unique = place.words, UNIQUE.search(place.instead)
    over = next((at for at in range(place.index, -1, -1) if words.word(at) == "OVER"), None)
    over = next((at for at in range(place.index, len(words.tokens)) if words.word(at) == "OVER"), None) if over is None else over
    close = None if over is None else words.closing(over + 1)
    level = None if over is None else words.level(over)
    if unique is None or over is None or close is None or level is None or TokenType.FROM not in level.clauses:
        return
    frame = DISTANCES.fullmatch(words.cut(over + 2, close))
    own = {TokenType.FROM, TokenType.WHERE}
    item = next((one for one in words.items(level) if one[0] < over < one[1]), None)
    call = None if item is None else words.call(item[0])
    if frame is None or frame["by"] is None or item is None or call is None or call[1] + 1 != over or not level.clauses.keys() <= own:
        return
    others = [words.cut(*one) for one in words.items(level) if one != item]
    if not all(re.fullmatch(rf"(?:{NAME}\.)?{NAME}", one) for one in others):
        return
    from_, end = level.clauses[TokenType.FROM], level.after(TokenType.FROM)
    x = words.cut(call[0] + 1, call[1])
    shown = ", ".join([f"{frame['by']} AS near_unit", f"{frame['x']} AS near_place", *([] if x == "*" else [f"{x} AS near_value"])])
    low, high = frame["from"] or frame["since"], frame["to"]
    test = f"near_place BETWEEN {frame['x']} - {low} AND {frame['x']}{f' + {high}' if high else ''}"
    near = f"(SELECT {shown} {words.cut(from_, level.end)}) AS near"
    keys = ", ".join(dict.fromkeys([frame["by"], unique[1], *others]))
    edits: list[Edit] = [
        (words.begin(call[0] + 1), words.stop(close), f"{'*' if x == '*' else 'near_value'})"),
        (words.stop(end - 1), words.stop(end - 1), f" JOIN {near} ON near_unit = {frame['by']} AND {test}"),
    ]
    behind = words.stop(level.end - 1)
    grouped = f" GROUP BY {keys}"
    edits = [*edits[:1], (behind, behind, edits[1][2] + grouped)] if end == level.end else [*edits, (behind, behind, grouped)]
    yield Remarked(words.with_edits(*edits), f"of rows whose {frame['x']} is known")


def from_the_first(place: Place) -> Iterator[Remarked]:
    """A frame of distances as one of all rows so far, or of as many rows."""
    found = re.compile(r"\bRANGE\s+BETWEEN\s+(INTERVAL\s+)?'?(\d+)[^()]*?\bPRECEDING\s+AND\s+CURRENT\s+ROW", re.IGNORECASE).search(place.text)
    if found is not None:
        before, behind = place.text[: found.start()], place.text[found.end() :]
        yield Remarked(f"{before}ROWS BETWEEN {found[2]} PRECEDING AND CURRENT ROW{behind}", "over rows, not over equal rows or distances")


def to_the_last(place: Place) -> Iterator[Remarked]:
    """LAST_VALUE of the whole partition."""
    words, found = place.words, _over(place.words, place.index)
    if found is not None and words.word(place.index) == "LAST_VALUE":
        _, opened, close = found
        frame = next((at for at in words.flat(opened + 1, close) if words.word(at) in ("ROWS", "RANGE", "GROUPS")), close)
        text = words.with_edits((words.stop(frame - 1), words.begin(close), " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"))
        yield Remarked(text, "the last of all rows")


def partitioned(place: Place) -> Iterator[str]:
    """The window within the privacy unit, where the refusal names its column."""
    unit, words, found = place.instead.removesuffix(" in PARTITION BY"), place.words, _over(place.words, place.index)
    if unit == place.instead or found is None:
        return
    _, opened, close = found
    first = opened + 1
    if words.kind(first) is TokenType.PARTITION_BY:
        yield words.with_edits((words.begin(first), words.begin(first + 1), f"PARTITION BY {unit}, "))
    else:
        yield words.with_edits((words.begin(first), words.begin(first), f"PARTITION BY {unit}{' ' * (first < close)}"))


def _is_call(words: Words, first: int, over: int) -> bool:
    """Whether the words before OVER are one call: with WITHIN GROUP or FILTER, too."""
    found = words.call(first)
    between = set() if found is None else {words.word(at) for at in words.flat(found[1] + 1, over)}
    return found is not None and found[1] < over and between <= {"WITHIN", "GROUP", "WITHIN GROUP", "FILTER", "(", ")"}


def over_all(place: Place) -> Iterator[str]:
    """The aggregate of all rows, or of each group, in place of one that is shown beside each row."""
    words, found, level = place.words, _over(place.words, place.index), place.level
    if found is None or level is None or TokenType.GROUP_BY in level.clauses:
        return
    over, opened, close = found
    if not any(_is_call(words, first, over) and close < end <= close + 3 for first, end in words.items(level)):
        return  # of what is computed from it and from its row nothing is left
    edits: list[Edit] = [(words.stop(over - 1), words.stop(close), "")]
    if words.kind(opened + 1) is TokenType.PARTITION_BY:
        end = next((at for at in words.flat(opened + 2, close) if words.kind(at) is TokenType.ORDER_BY), close)
        edits.append(key_added(words, level, words.cut(opened + 2, end)))
    elif opened + 1 != close:
        return
    yield words.with_edits(*edits)


def filtered(place: Place) -> Iterator[str]:
    """The filter of a window inside its sum."""
    found = re.compile(r"(\w+)\s*\((.*?)\)\s*FILTER\s*\(\s*WHERE\s+(.*?)\)\s*(?=OVER\b)", re.IGNORECASE | re.DOTALL).match(place.text, place.offset)
    if found is not None and found.group(1).upper() in ("SUM", "AVG", "MIN", "MAX"):
        made = f"{found.group(1)}(CASE WHEN {found.group(3)} THEN {found.group(2)} END) "
        yield place.text[: found.start()] + made + place.text[found.end() :]


EDITS: dict[str, tuple[Change, ...]] = {
    "WINDOW": (partitioned, over_all),
    "WINDOW_FRAME": (joined_by_distance, unframed, from_the_first),
    "WINDOW_ARGUMENT": (joined_by_distance, from_the_first),
    "WINDOW_FUNCTION": (to_the_last, over_all),
    "WINDOW_FILTER": (filtered,),
    "WINDOW_EXCLUDE": (left_out_behind(r"\s*\bEXCLUDE\s+(?:TIES|GROUP|CURRENT\s+ROW|NO\s+OTHERS)"),),
}
