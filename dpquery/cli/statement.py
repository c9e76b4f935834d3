"""Where a statement comes from: the command line, a file, or standard input."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path

from dpquery.errors import Refused

LONGEST = 2**23  # bytes of a statement that are read: a device has no end


def statement(sql: str | None, file: Path | None) -> str:
    """The statement from the one place that is given: the argument, a file, or standard input."""
    if (sql is None) == (file is None):
        raise Refused("USAGE", "a statement is needed, once", instead="give it as argument, by -f FILE, or - for standard input")
    try:
        return _bytes(sql or "", file).decode("utf-8")
    except OSError as error:
        raise Refused("USAGE", f"the statement cannot be read from {file or 'standard input'}: {error.strerror}") from None
    except UnicodeError:
        raise Refused("USAGE", "the statement is not UTF-8 text") from None


def _bytes(sql: str, file: Path | None) -> bytes:
    """The statement as it was handed in: an argument is UTF-8 too, whatever the locale took it for."""
    if file is None and sql != "-":
        return os.fsencode(sql)
    if file is None and sys.stdin is None:
        raise Refused("USAGE", "there is no standard input to read the statement from", instead="give it as argument, or by -f FILE")
    with nullcontext(sys.stdin.buffer) if file is None else file.open("rb") as source:
        found = source.read(LONGEST + 1)
    if len(found) > LONGEST:
        raise Refused("TOO_LONG", f"the statement has more than {LONGEST:,} bytes")
    return found
