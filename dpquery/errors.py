"""Every error that leaves dpquery.

    Error
    ├── SchemaError   the schema file, or the data against it           exit status 4
    ├── Refused       a statement or option that is not answered        exit status 2
    ├── OverBudget    a price that an account cannot pay                exit status 3
    └── Fault         something broke: files, ledger, engine, limits    exit status 5

Fields, not only text: `code` is stable and upper case, `message` says what and why, `position` says where, `instead` says what to do.
No field ever holds a private value or an engine's message.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import ClassVar, Final

SQL: Final = re.compile(r"\b(?:SELECT|FROM|WHERE|CASE|WITH|OPTIONS|OVER)\b|=>")
COMMAND: Final = re.compile(r"`[^`]*`")
GLUE: Final = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a text: line and column counted from 1, and the length of what is meant."""

    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class PriceWarning(UserWarning):
    """Something to know of a price before it is paid; made an error by `warnings.simplefilter`, it stops the question, and nothing is charged."""


class Error(Exception):
    """The root: whatever dpquery raises on purpose is one of the four kinds below it."""

    exit_status: ClassVar[int] = 5
    rewritten: str | None = None  # the whole statement to write instead, where one is sure to be read
    differs: str = ""  # how its answer differs from the one that was asked for, in a few words

    def __init__(self, code: str, message: str, *, position: Position | None = None, instead: str | None = None, source: str | None = None) -> None:
        super().__init__(code, message)  # as it is made: so that it passes from one process to another
        self.code = code
        self.message = message
        self.position = position
        self.instead = instead
        self.source = source

    def __str__(self) -> str:
        return self.told()

    def told(self, width: int | None = None, before: str = "") -> str:
        """The whole of it for people: sentences wrapped at a width, where one is given, and never what one would paste or what a caret points at."""
        lines = _wrapped(f"{before}{self.code}: {self.message}", width)
        if self.position is not None:
            lines.append(self._pointed(self.position))
        if self.instead:
            lines += _wrapped(f"Instead: {self.instead}", width)
        if self.rewritten:
            lines.append(f"Accepted{', ' * bool(self.differs)}{self.differs}: {self.rewritten}")
        return "\n".join(lines)

    def _pointed(self, position: Position) -> str:
        """The line of the source with a caret under the place, or the bare position where there is no source."""
        rows = (self.source or "").splitlines()
        if not 1 <= position.line <= len(rows):
            return f"  at {position}"
        row, start = rows[position.line - 1].expandtabs(1), position.column - 1
        if len(row) > 100:
            cut = max(0, start - 40)
            row, start = row[cut : cut + 100], start - cut
        caret = " " * start + "^" * max(1, min(position.length, len(row) - start))
        return f"  at {position}\n    {row}\n    {caret}"

    def as_dict(self) -> dict[str, object]:
        """The machine contract of an error: code, message, position ({line, column} or null), instead; rewritten, where there is such a statement,
        and differs, where its answer is another one."""
        where = None if self.position is None else {"line": self.position.line, "column": self.position.column}
        rewritten = {} if self.rewritten is None else {"rewritten": self.rewritten} | ({"differs": self.differs} if self.differs else {})
        return {"code": self.code, "message": self.message, "position": where, "instead": self.instead, **rewritten}


def _wrapped(text: str, width: int | None) -> list[str]:
    """The sentence on lines of at most that width; SQL and what stands between backticks stays whole."""
    if width is None or SQL.search(text):
        return [text]
    kept = COMMAND.sub(lambda found: found[0].replace(" ", GLUE), text)
    lines = textwrap.wrap(kept, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return [line.replace(GLUE, " ") for line in lines]


class SchemaError(Error):
    """The schema file is wrong, does not fit the data, or differs from what the ledger was created with."""

    exit_status: ClassVar[int] = 4


class Refused(Error):
    """The statement cannot be answered privately, or not as written; nothing was read, nothing was charged."""

    exit_status: ClassVar[int] = 2


class OverBudget(Error):
    """The price does not fit into what the account has left; nothing was read, nothing was charged."""

    exit_status: ClassVar[int] = 3


class Fault(Error):
    """Something broke. `entry` is the ledger entry where the charge had been made already (it stays)."""

    exit_status: ClassVar[int] = 5

    def __init__(self, code: str, message: str, *, instead: str | None = None, entry: str | None = None) -> None:
        super().__init__(code, message, instead=instead)
        self.entry = entry
