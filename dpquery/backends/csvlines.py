"""What keeps a CSV file from being read, for its owner: where, and what kind of trouble it is; no text of the file is said."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from dpquery.schema.model import CsvFormat

DELIMITERS = (",", ";", "\t", "|")
LONGEST = 2**20  # bytes of a first line that are looked at
ENDS = {b"\r\n": "CR LF", b"\n": "LF", b"": "nothing"}


def rows(how: CsvFormat, file: TextIO, strict: bool = False) -> Iterator[list[str]]:
    """The file's rows, read as the schema says it is written."""
    doubled = how.escape in ("", how.quote)
    return csv.reader(
        file,
        delimiter=how.delimiter,
        quotechar=how.quote or None,
        doublequote=doubled,
        escapechar=None if doubled else how.escape,
        quoting=csv.QUOTE_MINIMAL if how.quote else csv.QUOTE_NONE,
        strict=strict,
    )


def delimiter(path: Path) -> str:
    """What stands between the names in a file's first line: the commonest of comma, semicolon, tab and bar outside quotation marks; else a comma."""
    with path.open("rb") as file:
        names = file.readline(LONGEST)[:LONGEST].decode("utf-8", "replace").split('"')[::2]
    return max(DELIMITERS, key="".join(names).count)


def unnamed(names: Sequence[str]) -> tuple[str, str] | None:
    """What keeps the first line from naming each column by a name of its own, and what to do; None where it does."""
    if names[-1:] == ("",) and len(names) > 1:
        return (
            "the first line ends with a delimiter, so that its last column has no name",
            "take the last delimiter off each line, or name that column",
        )
    if "" in names:
        message = f"column {names.index('') + 1} has no name in the first line"
        return message, "name it, or write the file without it; of an index of pandas: to_csv(.., index=False)"
    seen = [name.casefold() for name in names]
    twice = next((name for place, name in enumerate(names) if name.casefold() in seen[:place]), None)
    return None if twice is None else (f"the first line names {twice!r} twice, case aside", "give each column a name of its own")


def trouble(how: CsvFormat, path: Path) -> str | None:
    """The first thing in the file that does not fit its format; None where none is found."""
    try:
        return _text(path) or _fields(how, path) or _ends(path)
    except OSError:
        return f"{path.name} cannot be opened"


def _text(path: Path) -> str | None:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return f"{path.name}, line {number}: not UTF-8"
    return None


def _fields(how: CsvFormat, path: Path) -> str | None:
    line, width = 1, None
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, row in enumerate(rows(how, file, strict=True), 1):
                width = width or len(row)
                if len(row) != width and row:
                    return f"{path.name}, row {number}: {len(row)} fields, {width} in the first row"
                line = number + 1
    except csv.Error:
        return f"{path.name}, row {line}: a quote out of place, or a field without end"
    return None


def _ends(path: Path) -> str | None:
    first: bytes | None = None
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            end = line[len(line.rstrip(b"\r\n")) :][-2:]
            first = end if first is None else first
            if end not in (first, b""):
                return f"{path.name}, line {number} ends with {ENDS.get(end, 'CR')}, the first one with {ENDS.get(first, 'CR')}"
    return None
