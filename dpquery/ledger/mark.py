"""The mark beside the data names the last line of the ledger that is known to have been written: an older ledger, or another copy, lacks it.

It is the last line of the id file (`binding`), of fixed width, written in place after each commit. So it names a line that is on the disk; where it
lags behind, after a power failure or by a slower process, that line is in the ledger all the more.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import get_ident
from typing import Final

Head = tuple[int, str]
NONE: Final[Head] = (0, "00" * 32)
LINE: Final = r"(?:head ([0-9]{16}) ([0-9a-f]{64})\n)"
LONGEST: Final = 10_000  # bytes of an id file that are read
PAUSE: Final = 0.002  # seconds: another process writes a mark in far less
TRIES: Final = 25  # where many processes move it, one after the other, it may be read in the middle of that several times
_END: Final = re.compile(rf"{LINE}?\Z".encode())


def written(head: Head) -> str:
    """The line that names a head."""
    return f"head {head[0]:016d} {head[1]}\n"


class Mark:
    """The mark of one data set: of its id files the first, which all processes move. Where it cannot be written it stays as it is."""

    def __init__(self, places: Sequence[Path]) -> None:
        self._place = places[0] if places else None
        self._at: int | None = None  # where in the file the head stood when it was last read
        self._known = NONE  # what this process wrote last, or found in the log

    def head(self) -> Head:
        """What it names; NONE where there is none."""
        found = None if self._place is None else _END.search(_content(self._place))
        self._at = None if found is None or found[1] is None else found.start()
        return NONE if found is None or found[1] is None else (int(found[1]), found[2].decode())

    def lost(self, holds: Callable[[Head], bool]) -> Head | None:
        """The head that it names, if the log does not hold that; None where all is well. To be called while nobody else writes."""
        for _ in range(TRIES):
            head = self.head()
            if head in (NONE, self._known) or holds(head):
                self._known = head
                return None
            time.sleep(PAUSE)  # it may have been read while another process wrote it
        return head

    def move(self, head: Head, back: bool = False) -> None:
        """It names this line from now on, after `lost` was asked; `back`: also where it names a later one, as it does where another process was
        quicker. A mark without such a line gets one, by a new file in its place."""
        if self._place is None or head == self._known:
            return
        self._known = head
        if not back and self.head()[0] > head[0]:
            return
        with suppress(OSError):
            if self._at is None:
                _renewed(self._place, head)
                return
            file = os.open(self._place, os.O_WRONLY | getattr(os, "O_BINARY", 0))
            try:
                os.lseek(file, self._at, os.SEEK_SET)
                os.write(file, written(head).encode())
            finally:
                os.close(file)


def _content(place: Path) -> bytes:
    try:
        file = os.open(place, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return b""
    try:
        return os.read(file, LONGEST)
    except OSError:
        return b""
    finally:
        os.close(file)


def _renewed(place: Path, head: Head) -> None:
    """A new file in its place, with this head and no other: another process may have done the same meanwhile."""
    draft = place.with_name(f"{place.name}.{os.getpid()}.{get_ident()}")
    try:
        draft.write_bytes(_END.sub(b"", place.read_bytes(), count=1) + written(head).encode())
        os.replace(draft, place)
    finally:
        with suppress(OSError):
            draft.unlink()
