"""Edits of calls: another aggregate in the place of one that is not answered, what stands inside it left out, windows without their frame."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlglot import TokenType

from dpquery.sql.edited import Change, Place, Remarked, left_out_behind, put
from dpquery.sql.editedgroups import PICKED, TAIL, arguments, binned, cased, frequent, item, key_added, picked, summarized, unpivoted
from dpquery.sql.editedoptions import name_put
from dpquery.sql.words import Words

ENDS = {"MIN": "0.01", "MAX": "0.99"}
TRUTHS = {"AVG takes numbers, not a boolean": "AVG(CAST({0} AS INT))", "SUM takes numbers, not a boolean": "COUNT(*) FILTER (WHERE {0})"}
SPREADS = ("STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP")
ROW = re.compile(r"\(\s*([\w.\"]+(?:\s*,\s*[\w.\"]+)+)\s*\)")
DISTINCT = re.compile(r"\ADISTINCT\b\s*", re.IGNORECASE)
FORMATTED = re.compile(r"([\w.\"]+)\s*,\s*'([^']*)'")
MOMENTS = {
    **dict.fromkeys(("%Y-%m", "YYYY-MM", "yyyy-MM"), "date_trunc('month', {})"),
    **dict.fromkeys(("%Y", "YYYY", "yyyy"), "year({})"),
    **dict.fromkeys(("%m", "MM"), "month({})"),
    **dict.fromkeys(("%Y-%m-%d", "YYYY-MM-DD", "yyyy-MM-dd"), "CAST({} AS DATE)"),
}
HOW_MANY = ("COUNT({0})", "how many values there are, not which")
WITHIN: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("LIST", "ARRAY_AGG"), HOW_MANY),
    "FIRST": ("MIN({0})", "the smallest value"),
    "LAST": ("MAX({0})", "the largest value"),
    "APPROX_COUNT_DISTINCT": ("COUNT(DISTINCT {0})", "counted exactly"),
    "APPROX_QUANTILE": ("QUANTILE_CONT({0}, {1})", "the exact quantile"),
}
"""What stands for an aggregate within a unit that is not answered there, and how it differs."""
ORDERED = re.compile(r"\s+ORDER\s+BY\b.*", re.IGNORECASE | re.DOTALL)
BOTH = "{0} IS NOT NULL AND {1} IS NOT NULL"
OTHERS: Mapping[str, str] = {
    **dict.fromkeys(("BOOL_OR", "BOOLOR_AGG", "LOGICAL_OR", "SOME", "ANY"), "COUNT(*) FILTER (WHERE {0})"),
    **dict.fromkeys(("BOOL_AND", "BOOLAND_AGG", "LOGICAL_AND", "EVERY"), "COUNT(*) FILTER (WHERE NOT ({0}))"),
    "BIT_AND": "COUNT(*) FILTER (WHERE {0} % 2 = 1)",
    "BIT_OR": "COUNT(*) FILTER (WHERE {0} % 2 = 1)",
    "BIT_XOR": "COUNT(*) FILTER (WHERE {0} % 2 = 1)",
    "REGR_SLOPE": "COVAR_POP({0}, {1}) / VAR_POP({1}) FILTER (WHERE {0} IS NOT NULL)",
    "REGR_INTERCEPT": f"(AVG({{0}}) FILTER (WHERE {BOTH}) - COVAR_POP({{0}}, {{1}}) / VAR_POP({{1}}) FILTER (WHERE {BOTH}) * "
    f"AVG({{1}}) FILTER (WHERE {BOTH}))",
    "MAD": "(QUANTILE_CONT({0}, 0.75) - QUANTILE_CONT({0}, 0.25)) / 2",
    "REGR_R2": "POWER(CORR({0}, {1}), 2)",
    "REGR_COUNT": f"COUNT(*) FILTER (WHERE {BOTH})",
    "REGR_AVGX": f"AVG({{1}}) FILTER (WHERE {BOTH})",
    "REGR_AVGY": f"AVG({{0}}) FILTER (WHERE {BOTH})",
    "KURTOSIS": "VAR_POP({0})",
    "SKEWNESS": "VAR_POP({0})",
    "LIST": "COUNT({0})",
    "ARRAY_AGG": "COUNT({0})",
    "ANY_VALUE": "MEDIAN({0})",
    "ARBITRARY": "MEDIAN({0})",
    "FIRST": "MEDIAN({0})",
    "LAST": "MEDIAN({0})",
}
"""What nears an aggregate that is not answered, from its arguments."""
REMARKS = {
    **dict.fromkeys(("KURTOSIS", "SKEWNESS"), "the variance"),
    **dict.fromkeys(("LIST", "ARRAY_AGG"), "how many there are, not which"),
    "MAD": "half the distance of the quartiles, which is the same where values lie evenly around the median",
    "REGR_R2": "no number where one of both does not vary",
}
"""How it differs, where its code does not say so."""


def call_put(place: Place, template: str) -> Iterator[str]:
    """Another expression in place of the call, made from its arguments."""
    found = arguments(place.words, place.index)
    if found is not None and len(found[0]) > ("{1}" in template):
        yield place.words.with_edits((place.offset, place.words.stop(found[1]), template.format(*found[0])))


def nearest(place: Place) -> Iterator[str | Remarked]:
    """The aggregate that nears the one that is not answered."""
    word = place.words.word(place.index)
    template, remark = OTHERS.get(word), REMARKS.get(word)
    if template is not None:
        yield from (one if remark is None else Remarked(one, remark) for one in call_put(place, template))


def by_median(place: Place) -> Iterator[str]:
    """Of a number the median in place of the one with the largest or least other value."""
    if place.words.word(place.index) in PICKED:
        yield from call_put(place, "MEDIAN({0})")


def within(place: Place) -> Iterator[Remarked]:
    """What nears an aggregate within a unit."""
    template, differs = WITHIN.get(place.words.word(place.index), ("", ""))
    found = arguments(place.words, place.index)
    if template and found is not None and len(found[0]) > ("{1}" in template):
        text = template.format(ORDERED.sub("", found[0][0]), *found[0][1:])
        yield Remarked(place.words.with_edits((place.offset, place.words.stop(_ordered(place.words, found[1])), text)), differs)


def nearly(place: Place) -> Iterator[Remarked]:
    """A quantile in place of the least or greatest number."""
    end = ENDS.get(place.words.word(place.index))
    if end is not None:
        moments = "date_trunc" in place.instead  # most columns of which have no bounds
        given, own = place_holders("DATE '" if moments else "")
        named = f", contribution_bounds_per_row => ({', '.join(given)})"
        for bounds in ("", named) if moments else ("",):
            for text in call_put(place, f"quantile_cont({{0}}, {end}{bounds})"):
                differs = f"the {end} quantile, not the {'smallest' if end == ENDS['MIN'] else 'largest'} value"
                yield Remarked(text, f"{differs}; {own}" if bounds else differs)


def extremes(place: Place) -> Iterator[str]:
    """How often each value or month there is, in place of the least or greatest; not of numbers, most of which differ."""
    if "QUANTILE_CONT" not in place.instead:
        yield from grouped(place)


def both_counted(place: Place) -> Iterator[str]:
    """COUNT of two arguments, which counts the rows that have both."""
    found = arguments(place.words, place.index)
    if place.words.word(place.index) == "COUNT" and found is not None and len(found[0]) == 2:
        yield from call_put(place, f"COUNT(*) FILTER (WHERE {BOTH})")


def place_holders(instead: str) -> tuple[tuple[str, str], str]:
    """Two bounds that stand for the analyst's own, dates where the advice has some; and a word on it."""
    ends = ("DATE '2024-01-01'", "DATE '2024-12-31'") if "DATE '" in instead else ("0", "100")
    return ends, f"{ends[0]} and {ends[1]} are placeholders for your own bounds"


def bounded(place: Place) -> Iterator[Remarked]:
    """The aggregate with bounds that are chosen from the data, where they can be; else with bounds that are for the analyst to choose."""
    call, words = place.words.call(place.index), place.words
    if call is None:
        return
    ends, own = place_holders(place.instead)
    if "greatest(least(" in place.instead:
        for text in call_put(place, f"{words.cut(place.index, place.index + 1)}(greatest(least({{0}}, {ends[1]}), {ends[0]}))"):
            yield Remarked(text, own)
        return
    behind = words.begin(call[1])
    if "bounds => 'auto'" in place.instead:
        yield Remarked(words.with_edits((behind, behind, ", bounds => 'auto'")), "bounds chosen from the data, out of the same price")
    yield Remarked(words.with_edits((behind, behind, f", contribution_bounds_per_row => ({', '.join(ends)})")), own)


def truth(place: Place) -> Iterator[str]:
    """Of conditions their share or their number."""
    made = TRUTHS.get(place.refused.message)
    if made is not None:
        yield from call_put(place, made)


def texts_counted(place: Place) -> Iterator[Remarked]:
    """Of texts how many there are."""
    if place.refused.message not in TRUTHS and place.words.word(place.index) in ("SUM", "AVG"):
        for text in call_put(place, "COUNT({0})"):
            yield Remarked(text, "how many there are, which add up to nothing")


def moment(place: Place) -> Iterator[Remarked]:
    """What groups days or times as the text would that they are formatted to, in SELECT and GROUP BY alike."""
    call, words = place.words.call(place.index), place.words
    found = None if call is None else FORMATTED.fullmatch(words.cut(call[0] + 1, call[1]))
    made = None if found is None else MOMENTS.get(found.group(2))
    if call is not None and found is not None and made is not None:
        text = place.text.replace(place.text[place.offset : words.stop(call[1])], made.format(found.group(1)))
        yield Remarked(text, "dates or numbers, not texts")


WRITTEN: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("GEOMETRIC_MEAN", "GEOMEAN"),
        ("EXP(AVG(LN({0}), bounds => 'auto'))", "of values above 0, their bounds chosen from the data, out of the same price"),
    ),
    "AGE": ("date_diff('day', {1}, {0})", "in days"),
    "MONTHS_BETWEEN": ("date_diff('month', {1}, {0})", "in months that begin in between"),
}
"""What says the same, or nearly, as a function that is not known."""
PAIRED = (
    "each row as one text, '|' in between (which may make two the same), NULL left out",
    "rows without NULL, each as one text, '|' in between (which may make two the same)",
)
MAPS = ("MAP_AGG", "OBJECT_AGG", "JSON_OBJECT_AGG", "JSONB_OBJECT_AGG", "MULTIMAP_AGG", "JSON_OBJECTAGG")
SIZED = re.compile(
    r"\b(?:cardinality|array_length|array_size|size|len|length)\s*\(\s*(?:array_agg|list|set_agg|array_unique_agg|collect_set|collect_list)\s*\("
    r"\s*(?P<distinct>DISTINCT\s+)?(?P<x>[\w.\"`]+)\s*\)\s*(?:,\s*1\s*)?\)",
    re.IGNORECASE,
)


def written_out(place: Place) -> Iterator[Remarked]:
    """A function that is not known in words that are."""
    template, differs = WRITTEN.get(place.words.word(place.index), ("", ""))
    found = arguments(place.words, place.index)
    if template and found is not None and len(found[0]) > ("{1}" in template):
        for text in call_put(place, template):
            yield Remarked(text, differs)


def as_text(place: Place) -> Iterator[Remarked]:
    """COUNT(DISTINCT (a, b)) and COUNT(DISTINCT a, b), which leaves out rows with NULL, as the count of different texts."""
    found, words = arguments(place.words, place.index), place.words
    items = [] if found is None else [DISTINCT.sub("", found[0][0]), *found[0][1:]]
    row = ROW.fullmatch(items[0]) if len(items) == 1 else None
    if found is None or not (row or len(items) > 1):
        return
    sign = " || '|' || "
    text = (
        "CONCAT(" + ", '|', ".join(one.strip() for one in row.group(1).split(",")) + ")"
        if row
        else sign.join(f"CAST({one} AS VARCHAR)" for one in items)
    )
    yield Remarked(words.with_edits((place.offset, words.stop(found[1]), f"COUNT(DISTINCT {text})")), PAIRED[row is None])


def by_key(place: Place) -> Iterator[Remarked]:
    """A map of values by keys as a row for each key, with the sum of its values."""
    found, level, words = arguments(place.words, place.index), place.level, place.words
    if words.word(place.index) in MAPS and found is not None and len(found[0]) == 2 and level is not None:
        shown, (key, value) = item(place, level, found[1]), found[0]
        if shown is not None:
            text = words.with_edits((shown[0], shown[1], f"{key}, SUM({value}) AS total"), key_added(words, level, key))
            yield Remarked(text, "one row for each key, with the sum of its values")


def sized(place: Place) -> Iterator[Remarked]:
    """How many values there are, in place of the size of a list of them."""
    for found in SIZED.finditer(place.text):
        if found.start() <= place.offset < found.end():
            unique = found["distinct"] or re.search(r"set_agg|unique|collect_set", found.group(), re.IGNORECASE)
            text = f"COUNT({'DISTINCT ' if unique else ''}{found['x']})"
            yield Remarked(place.text[: found.start()] + text + place.text[found.end() :], "NULL is not counted")


def inside_left_out(*kinds: TokenType) -> Change:
    """The call without what follows one of these words in its brackets."""

    def change(place: Place) -> Iterator[str]:
        call, words = place.words.call(place.index), place.words
        starts = [] if call is None else [at for at in words.flat(call[0] + 1, call[1]) if words.kind(at) in kinds]
        if call is not None and starts:
            yield words.with_edits((words.stop(starts[0] - 1), words.begin(call[1]), ""))

    return change


def unordered(place: Place) -> Iterator[str | Remarked]:
    """The call without ORDER BY, of which ANY_VALUE alone takes heed."""
    for one in inside_left_out(TokenType.ORDER_BY)(place):
        yield Remarked(str(one), "any value, not the first in order") if place.words.word(place.index) == "ANY_VALUE" else one


def distinct_left_out(place: Place) -> Iterator[str]:
    """The aggregate of all values."""
    call, words = place.words.call(place.index), place.words
    if call is not None and words.kind(call[0] + 1) is TokenType.DISTINCT:
        yield words.with_edits((words.begin(call[0] + 1), words.begin(call[0] + 2), ""))


def percent(place: Place) -> Iterator[str]:
    """A quantile's place from 0 to 1 where it is given in percent."""
    call, words = place.words.call(place.index), place.words
    numbers = [] if call is None else [at for at in range(call[0] + 1, call[1]) if words.kind(at) is TokenType.NUMBER]
    if numbers and re.fullmatch(r"[1-9][0-9]?", words.word(numbers[-1])):
        yield words.with_edits((words.begin(numbers[-1]), words.stop(numbers[-1]), f"0.{int(words.word(numbers[-1])):02}".rstrip("0")))


def last_of_list(place: Place) -> Iterator[str]:
    """The last of a list's values."""
    length = re.search(r"has (\d+) values", place.refused.message)
    found = re.compile(r"\)\s*\[\s*(\d+)\s*\]").search(place.text, place.offset)
    if length is not None and found is not None:
        yield place.text[: found.start(1)] + length.group(1) + place.text[found.end(1) :]


def one_of_list(place: Place) -> Iterator[str]:
    """The first of a list's values."""
    yield place.words.with_edits((place.words.stop(place.index), place.words.stop(place.index), "[1]"))


# ---- groups --------------------------------------------------------------------------------------------------------------------------


def grouped(place: Place) -> Iterator[str]:
    """How often each value there is, or the most frequent alone, in place of an aggregate that shows values."""
    level, found, words = place.level, arguments(place.words, place.index), place.words
    if level is None or found is None or not found[0]:
        return
    value, close = DISTINCT.sub("", found[0][0]), _ordered(words, found[1])
    most = words.word(place.index) == "MODE"
    if not most:
        month, alone = f"date_trunc('month', {value})", item(place, level, close)
        behind = words.stop(close)
        name = "" if alone is None else place.text[behind : alone[1]]
        for key in (month, value) if "date_trunc" in place.instead else (value,):
            shown = (place.offset, behind if alone is None else alone[1], f"{key}{name}, COUNT(*) AS n")
            yield words.with_edits(shown, key_added(words, level, key))
    elif level.end == len(words.tokens) and not TAIL & level.clauses.keys():
        start, stop, key = key_added(words, level, value)
        if TokenType.GROUP_BY in level.clauses:
            keys = words.cut(level.clauses[TokenType.GROUP_BY] + 1, level.after(TokenType.GROUP_BY))
            chosen = f" QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY COUNT(*) DESC) = 1"
        elif len(words.items(level)) == 1:
            chosen = " ORDER BY COUNT(*) DESC LIMIT 1"
        else:
            return
        yield words.with_edits((place.offset, words.stop(close), value), (start, stop, key + chosen))


def _ordered(words: Words, close: int) -> int:
    """The last word of a call, that of WITHIN GROUP (ORDER BY ..) behind it where it has that."""
    opened = next((at for at in range(close + 1, close + 4) if words.kind(at) is TokenType.L_PAREN), None)
    return close if opened is None or words.word(close + 1).split()[:1] != ["WITHIN"] else words.closing(opened) or close


def of_each(*names: str) -> Change:
    """How often each value there is, in place of one of these aggregates."""

    def change(place: Place) -> Iterator[Remarked]:
        if place.words.word(place.index) in names:
            for text in grouped(place):
                yield Remarked(text, "how many there are of each")

    return change


def days_counted(place: Place) -> Iterator[Remarked]:
    """A moment of days as one of their numbers."""
    if place.instead.startswith("the number of a day"):
        call = place.words.cut(place.index, place.index + 1)
        for text in call_put(place, f"{call}(date_diff('day', DATE '2000-01-01', {{0}}))"):
            yield Remarked(text, "in days" if call.upper() in SPREADS else "in days since 2000-01-01")


EDITS: dict[str, tuple[Change, ...]] = {
    "AGGREGATE": (nearest, written_out),
    **dict.fromkeys(
        ("BIT_AGGREGATE", "BOOLEAN_AGGREGATE", "CORRELATION", "VARIANCE"), (nearest, of_each("ENTROPY", "KURTOSIS", "KURTOSIS_POP", "SKEWNESS"))
    ),
    **dict.fromkeys(("ANY_VALUE", "ARRAY_AGG"), (sized, nearest, picked, binned, frequent, by_median, grouped)),
    "PIVOT": (cased,),
    "NOT_A_SELECT": (unpivoted, summarized),
    **dict.fromkeys(("STRING_AGG", "MODE"), (grouped,)),
    "MIN_MAX": (nearly, extremes),
    "MISSING_BOUNDS": (bounded,),
    "AGGREGATE_IN_SUBQUERY": (sized, within),
    "AGGREGATE_CLAUSE": (inside_left_out(TokenType.LIMIT, TokenType.HAVING),),
    "AGGREGATE_ORDER_BY": (unordered,),
    "DISTINCT_AGGREGATE": (distinct_left_out,),
    "TYPE_MISMATCH": (truth, days_counted, texts_counted, of_each(*SPREADS)),
    "UNKNOWN_FUNCTION": (name_put, moment, written_out, by_key),
    "FUNCTION_ABOVE_NOISE": (sized,),
    "WRONG_ARGUMENTS": (both_counted,),
    "STAR": (put(r"\b\w+\s*\(\s*\*\s*\)", "COUNT(*)"),),
    "COUNT_DISTINCT": (as_text,),
    "QUANTILE": (percent, nearest),
    "LIST_INDEX": (last_of_list,),
    "LIST_ABOVE_NOISE": (one_of_list,),
    "IGNORE_NULLS": (left_out_behind(r"\s*\b(?:IGNORE|RESPECT)\s+NULLS\b"),),
}
