"""Where a refusal names a whole statement to write instead: edits of the text that its code makes sure of, offered only if they are read in turn.

What an edit leaves wrong in other places is edited in turn, a few times; of all that are read the first with the fewest edits is taken. Which edits
a code has is told in `EDITS`, and nowhere else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain

from dpquery.errors import Refused
from dpquery.sql import (
    editedcalls,
    editeddialects,
    editedeverybody,
    editedlaterals,
    editedoptions,
    editedqueries,
    editedrelations,
    editedreleased,
    editedsets,
    editedvalues,
    editedwindows,
)
from dpquery.sql.edited import Change, Place, Remarked
from dpquery.sql.words import words

LONGEST = 4_000  # characters of a statement that is looked at
MOST = 24  # statements that are tried
DEEPEST = 8  # edits of one statement, one after another
PARTS = (
    editedsets.EDITS,
    editedoptions.EDITS,
    editedeverybody.EDITS,
    editedwindows.EDITS,
    editedcalls.EDITS,
    editeddialects.EDITS,
    editedlaterals.EDITS,
    editedvalues.EDITS,
    editedreleased.EDITS,
    editedrelations.EDITS,
    editedqueries.EDITS,
)
EDITS: dict[str, tuple[Change, ...]] = {code: tuple(chain.from_iterable(part.get(code, ()) for part in PARTS)) for code in chain.from_iterable(PARTS)}
DIFFERS = {
    "TABLESAMPLE": "of all rows",
    "SEVERAL_STATEMENTS": "the first statement alone",
    "SET_UNIT": "equal rows counted apart",
    "SET_OPERATION": "equal rows counted once",
    "TIME_TRAVEL": "of the data as it is now",
    "WITH_TIES": "without the ties",
    "GROUP_TOTALS": "without the totals",
    **dict.fromkeys(("CUBE", "ROLLUP"), "of the finest groups alone"),
    **dict.fromkeys(("DISTINCT_IN_SUBQUERY", "GROUP_BY_IN_SUBQUERY"), "within each unit"),
    "AGGREGATE_CLAUSE": "of all values",
    "AGGREGATION_THRESHOLD": "with noise, too",
    "ALIAS": "by the columns' own names",
    "STAR_RENAME": "by the columns' own names",
    "ARRAY_AGG": "one row for each value or bin",
    "EPSILON_SHARES": "at an even share of the price",
    "PER_GROUP_BOUNDS": "with bounds of each row",
    "IGNORE_NULLS": "NULL as a value like others",
    "LIMIT_PERCENT": "so many rows, not per cent",
    "LIST_ABOVE_NOISE": "the first of the list alone",
    "LIST_INDEX": "the last of the list",
    "MODE": "as noisy counts tell, NULL among the values",
    "ORDER_BY_DISTINCT": "what the rows are ordered by is shown, too",
    "SELECT_INTO": "shown, not stored",
    "SELECT_KIND": "as columns",
    "SEMI_PUBLIC": "private rows with a public partner, not public rows",
    "STAR": "how many rows there are",
    "WINDOW_EXCLUDE": "no row excluded",
    "WINDOW_FUNCTION": "of all rows, or in one row for each group",
    "PIVOT": "grouped by what it names alone",
    "NOT_A_SELECT": "one row for each value",
    "DISTINCT_AGGREGATE": "of equal values, too",
    "ANY_VALUE": "of all rows, not of one",
    "MIN_MAX": "how many there are of each, not the least or largest",
    "STRING_AGG": "how many there are of each",
    "BIT_AGGREGATE": "for how many rows, not the bits",
    "BOOLEAN_AGGREGATE": "for how many rows, not whether for any or all",
    "LIMIT": "10 is a placeholder for your own number",
    "RAW_ROWS": "of all rows, not row by row",
    "UNIT_AS_OUTPUT": "how many there are, not who",
    "WINDOW": "within each unit, or in one row for each group",
    "JOIN_ON_UNIT": "of pairs of rows of one unit",
    "POSITIONAL_JOIN": "of pairs of rows of one unit",
    "ASOF_JOIN": "not the nearest alone",
    "KEPT_PUBLIC": "without public rows that have no partner",
    "SCALAR_SUBQUERY": "of the average value",
    "CORRELATED_VALUE": "of the largest value",
    **dict.fromkeys(("EXISTS", "IN_SUBQUERY", "NOT_IN_NULLABLE"), "within each unit alone"),
}
"""What the edits of a code make of the answer that the analyst asked for, where that is another one and the edit itself does not say so."""
EQUAL = frozenset(
    (
        *("AGGREGATE_ORDER_BY", "ANONYMIZATION", "CLUSTER_BY", "COLLATION", "DIALECT_DIFFERS", "DISTINCT_ON", "DISTRIBUTE_BY", "HINT", "KEY_TYPE"),
        *("LATERAL", "LOCK", "NESTED_RELEASE", "NOT_A_CONDITION", "ONLY", "ORDER_BY_IN_SUBQUERY", "QUALIFIED_NAME", "RECURSIVE", "SORT_BY"),
        *("AGGREGATE", "CORRELATION", "SUBQUERY_ABOVE_NOISE", "TYPE_MISMATCH", "WINDOW_FILTER", "WINDOW_FRAME", "WRONG_ARGUMENTS"),
        *("AMBIGUOUS_COLUMN", "DUPLICATE_ALIAS", "JOIN_CONDITION", "MISPLACED_AGGREGATE", "ORDER_BY_ALL", "QUANTILE", "RELEASED_JOIN", "SYNTAX"),
        *("UNKNOWN_COLUMN", "UNKNOWN_FUNCTION", "UNKNOWN_OPTION", "UNKNOWN_TABLE"),
    )
)
"""Codes whose edits leave the answer as it was, or mend what has none, as far as they yield plain texts: the tests hold each against plain DuckDB."""


def statement(refused: Refused, text: str, dialect: str, refusal: Callable[[str], Refused | None]) -> tuple[str, str] | None:
    """The statement to write instead, and how its answer differs, empty where it does not; None where none is sure.

    `refusal` tells how a statement is refused, None where it is not.
    """
    if len(text) > LONGEST:
        return None
    first: tuple[Refused, str, tuple[str, ...]] = (refused, text, ())
    tried, open_ = {text}, deque([first])
    while open_:
        wrong, given, path = open_.popleft()
        for edited in _edited(wrong, given, dialect):
            if edited.text in tried or len(tried) > MOST:
                continue
            tried.add(edited.text)
            again, said = refusal(edited.text), (*path, edited.differs)
            if again is None:
                return edited.text, "; ".join(dict.fromkeys(part for each in said if each for part in each.split("; ")))
            if len(said) < DEEPEST:
                open_.append((again, edited.text, said))
    return None


def _edited(refused: Refused, text: str, dialect: str) -> Iterator[Remarked]:
    """The text with each edit that may mend it, and what the edit makes of the answer."""
    if refused.position is None or refused.source not in (None, text) or refused.code not in EDITS:
        return
    split = words(text, dialect)
    index = None if split is None else split.at(refused.position)
    if split is None or index is None:
        return
    place = Place(refused, split, index, dialect.lower())
    differs = "" if refused.code in EQUAL else DIFFERS.get(refused.code)  # None: an edit that says nothing of it is none
    for change in EDITS[refused.code]:
        try:
            for one in change(place):
                if isinstance(one, Remarked):
                    yield one
                elif differs is not None:
                    yield Remarked(one, differs)
        except Exception:  # a text that the edit did not foresee: the refusal stands without it
            continue
