"""Where a refusal names a whole statement to write instead: edits of the text that its code makes sure of, offered only if they are read in turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from dpquery.errors import Refused

LONGEST = 4_000  # characters of a statement that is looked at
DROPPED: Mapping[str, str] = {
    "LOCK": r"\s*\bFOR\s+(?:NO\s+KEY\s+|KEY\s+)?(?:UPDATE|SHARE)\b(?:\s+(?:NOWAIT|SKIP\s+LOCKED))?",
    "HINT": r"/\*\+.*?\*/\s*",
    "TABLESAMPLE": r"\s*\b(?:TABLESAMPLE|USING\s+SAMPLE)\s+(?:\w+\s*)?(?:\([^()]*\)|[\d.]+\s*(?:%|PERCENT|ROWS)?)",
    "SELECT_INTO": r"\bINTO\s+\w+\s+",
    "SORT_BY": r"\s*\bSORT\s+BY\s+[\w\s,.]+\Z",
    "ONLY": r"\bONLY\s+(?=\w)",
}
"""Clauses that are left out, from where the refusal points on."""
PUT: Mapping[str, tuple[str, str]] = {
    "ANONYMIZATION": (r"ANONYMIZATION", "DIFFERENTIAL_PRIVACY"),
    "QUALIFIED_NAME": (r"(?:\w+\.)+(?=\w)", ""),
}
"""What is put in the place of a word, where the refusal points or just before."""
KEYED: Mapping[str, tuple[str, str]] = {
    "GROUP_BY_IN_SUBQUERY": (r"(?i)\bGROUP\s+BY\s+", " in GROUP BY"),
    "DISTINCT_IN_SUBQUERY": (r"(?i)\bSELECT\s+DISTINCT\s+", " in SELECT"),
}
"""Lists of keys that the unit is put in front of, and how the refusal says so."""
LIKE = re.compile(r"\(did you mean '([^']*)'\?\)")
ENDS = {"MIN": "0.01", "MAX": "0.99"}
OVER = re.compile(r"\bOVER\s*\(\s*", re.IGNORECASE)
PARTITION = re.compile(r"\APARTITION\s+BY\s+", re.IGNORECASE)
NUMBER = re.compile(r"(\w+\s*=>?\s*)'([0-9]*[.,]?[0-9]+)'", re.ASCII)
FORMATTED = re.compile(r"([\w.\"]+)\s*,\s*'([^']*)'")
MOMENTS = {
    **dict.fromkeys(("%Y-%m", "YYYY-MM", "yyyy-MM"), "date_trunc('month', {})"),
    **dict.fromkeys(("%Y", "YYYY", "yyyy"), "year({})"),
    **dict.fromkeys(("%m", "MM"), "month({})"),
    **dict.fromkeys(("%Y-%m-%d", "YYYY-MM-DD", "yyyy-MM-dd"), "CAST({} AS DATE)"),
}
TRUTHS = {"AVG takes numbers, not a boolean": "AVG(CAST({} AS INT))", "SUM takes numbers, not a boolean": "COUNT(*) FILTER (WHERE {})"}
EXTREME = re.compile(r"(MIN|MAX)\s*\(([^()]*)\)", re.IGNORECASE)


def statement(refused: Refused, text: str, reads: Callable[[str], bool]) -> str | None:
    """The statement to write instead; None where none is sure. `reads` says whether a statement is read."""
    if refused.position is None or refused.source != text or len(text) > LONGEST:
        return None
    found = (edited for edited in _edited(refused, text, _offset(text, refused.position.line, refused.position.column)) if edited != text)
    return next((edited for edited in found if reads(edited)), None)


def _offset(text: str, line: int, column: int) -> int:
    return sum(len(row) + 1 for row in text.split("\n")[: line - 1]) + column - 1


def _edited(refused: Refused, text: str, at: int) -> Iterator[str]:
    code, near = refused.code, LIKE.search(refused.message)
    if code in DROPPED:
        clauses = list(re.finditer(DROPPED[code], text, re.IGNORECASE | re.DOTALL))
        yield from (text[: one.start()] + text[one.end() :] for one in clauses if one.start() <= at <= one.end())
    if code in PUT:
        word, other = PUT[code]
        words = [one for one in re.finditer(word, text, re.IGNORECASE) if one.start() <= at <= one.end()]
        yield from (text[: one.start()] + other + text[one.end() :] for one in words)
    if code in KEYED:
        clause, says = KEYED[code]
        unit = (refused.instead or "").removesuffix(says)
        starts = [one for one in re.finditer(clause, text) if one.start() <= at]
        if starts and re.fullmatch(r"\w+(\.\w+)?", unit):
            yield text[: starts[-1].end()] + unit + ", " + text[starts[-1].end() :]
    unit = (refused.instead or "").removesuffix(" in PARTITION BY")
    if code == "WINDOW" and unit != refused.instead and (over := OVER.search(text, at)) is not None:
        yield f"{text[: over.end()]}PARTITION BY {unit} {text[over.end() :]}"
        yield f"{text[: over.end()]}PARTITION BY {unit}, {re.sub(PARTITION, '', text[over.end() :], count=1)}"
    if code in ("UNKNOWN_COLUMN", "UNKNOWN_TABLE", "UNKNOWN_FUNCTION", "UNKNOWN_OPTION") and near is not None:
        yield text[:at] + near.group(1) + re.sub(r"\A(\w+|\"[^\"]*\")", "", text[at:], count=1)
    if code == "MIN_MAX" and (extreme := EXTREME.match(text, at)) is not None:
        name = extreme.group(1).upper()
        yield f"{text[:at]}quantile_cont({extreme.group(2).strip()}, {ENDS[name]}){text[extreme.end() :]}"
    if code == "TYPE_MISMATCH" and (made := TRUTHS.get(refused.message)) is not None and (call := _call(text, at)) is not None:
        argument, after = call
        yield text[:at] + made.format(argument) + text[after:]
    if code == "UNKNOWN_FUNCTION" and (call := _call(text, at)) is not None and (made := _moment(call[0])) is not None:
        yield text.replace(text[at : call[1]], made)  # in SELECT and GROUP BY alike
    if code == "OPTION_VALUE" and (number := NUMBER.match(text, at)) is not None:
        yield text[:at] + number.group(1) + number.group(2).replace(",", ".") + text[number.end() :]


def _call(text: str, at: int) -> tuple[str, int] | None:
    """What stands between the brackets of the call that starts here, and where it ends; None of one that holds quotation marks of names."""
    start = re.compile(r"\w+\s*\(").match(text, at)
    depth, quoted = 1, False
    for place in range(start.end() if start else len(text), len(text)):
        quoted ^= text[place] == "'"
        depth += 0 if quoted else {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0 and start is not None:
            return text[start.end() : place].strip(), place + 1
    return None


def _moment(arguments: str) -> str | None:
    """What groups days or times as the text would that they are formatted to."""
    found = FORMATTED.fullmatch(arguments)
    made = None if found is None else MOMENTS.get(found.group(2))
    return None if found is None or made is None else made.format(found.group(1))
