"""Where a refusal names a whole statement to write instead: edits of the text that its code makes sure of, offered only if they are read in turn.

What an edit leaves wrong in other places is edited in turn, a few times; of all that are read the first with the fewest edits is taken. Which edits
a code has is told in `EDITS`, and nowhere else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from dpquery.errors import Refused
from dpquery.sql import editedcalls, editedoptions, editedqueries, editedrelations
from dpquery.sql.edited import Change, Place
from dpquery.sql.words import words

LONGEST = 4_000  # characters of a statement that is looked at
MOST = 24  # statements that are tried
DEEPEST = 8  # edits of one statement, one after another
EDITS: dict[str, tuple[Change, ...]] = {**editedoptions.EDITS, **editedcalls.EDITS, **editedrelations.EDITS, **editedqueries.EDITS}


def statement(refused: Refused, text: str, dialect: str, refusal: Callable[[str], Refused | None]) -> str | None:
    """The statement to write instead; None where none is sure. `refusal` tells how a statement is refused, None where it is not."""
    if len(text) > LONGEST:
        return None
    tried, open_ = {text}, deque([(refused, text, 1)])
    while open_:
        wrong, given, depth = open_.popleft()
        for edited in _edited(wrong, given, dialect):
            if edited in tried or len(tried) > MOST:
                continue
            tried.add(edited)
            again = refusal(edited)
            if again is None:
                return edited
            if depth < DEEPEST:
                open_.append((again, edited, depth + 1))
    return None


def _edited(refused: Refused, text: str, dialect: str) -> Iterator[str]:
    """The text with each edit that may mend it."""
    if refused.position is None or refused.source not in (None, text) or refused.code not in EDITS:
        return
    split = words(text, dialect)
    index = None if split is None else split.at(refused.position)
    if split is None or index is None:
        return
    place = Place(refused, split, index)
    for change in EDITS[refused.code]:
        try:
            yield from change(place)
        except (LookupError, ValueError):  # a text that the edit did not foresee: the refusal stands without it
            continue
