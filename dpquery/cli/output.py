"""Where a command's output goes, opened before anything is charged: an answer that was paid for must not be lost to a typing error."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from dpquery.cli import stream
from dpquery.display import wire
from dpquery.errors import Fault, Refused

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dpquery.engine import Answer


class Format(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


TEXTS = ("", "txt", "text")  # endings of files for people


class Page(StrEnum):
    """How everything else is written."""

    TABLE = "table"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Target:
    """A file that appears, or is replaced, only when its content is complete: what is written first is `temporary`, beside it."""

    path: Path
    temporary: Path

    def write(self, content: str | bytes) -> None:
        """The file holds the content. A Fault where the disk does not take it; the answer then goes to standard output, if it is text."""
        try:
            self.temporary.write_bytes(content if isinstance(content, bytes) else content.encode())
            os.replace(self.temporary, self.path)
        except OSError as error:
            stream.write(content if isinstance(content, str) else b"")
            raise Fault("OUTPUT_FAILED", f"the answer was charged but cannot be written to the file: {error.strerror}") from None


class Output:
    """Takes an answer and writes it in one format to standard output, or to a file."""

    def __init__(self, form: Format, target: Target | None) -> None:
        self._form, self._target = form, target

    def write(self, answer: Answer) -> None:
        """The answer is written; what the format has no place for (warnings, receipt) is told on standard error."""
        if self._target is None:
            _show(_content(answer, self._form))
        else:
            self._target.write(_content(answer, self._form))
        if self._form in (Format.CSV, Format.PARQUET) or self._target is not None:
            _beside(answer, self._target)


def form_of(path: Path | None) -> Format:
    """The format that a file's name ends with; a table where it has no ending or that of a text, and where there is no file. Else Refused."""
    ending = "" if path is None else path.suffix.lower()[1:]
    if ending in tuple(Format):
        return Format(ending)
    if ending in TEXTS:
        return Format.TABLE
    message = f"no answer is written as .{ending[:20]}"
    raise Refused("NO_FORMAT", message, instead="a name that ends with .csv, .json, .parquet or .txt; or --format beside it")


@contextmanager
def opened(form: Format, path: Path | None, kept: Callable[[Path], bool]) -> Iterator[Output]:
    """An output that is known to be writable. Refused where it is not, or where `kept` says that something lies there which is not to be lost.

    A file that was there stays until the answer replaces it; a symbolic link stays, and what it leads to is replaced.
    """
    if path is None:
        if form is Format.PARQUET and sys.stdout.isatty():
            raise Refused("NO_FILE", "Parquet is not for a terminal", instead="give --out FILE")
        yield Output(form, None)
        return
    target = _tried(path, kept)
    try:
        yield Output(form, target)
    finally:
        with suppress(OSError):
            target.temporary.unlink(missing_ok=True)


def _tried(path: Path, kept: Callable[[Path], bool]) -> Target:
    """The file, beside which something could be written."""
    file = Path(os.path.realpath(path))
    if kept(file):
        raise Refused("NO_FILE", f"{path} is the schema, the ledger or the data that is asked", instead="name another file")
    try:
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if file.exists() and not file.is_file():
            raise Refused("NO_FILE", f"{path} is no ordinary file", instead="leave --out out: the answer is written to standard output")
        target = Target(file, file.with_name(f".{file.name}.{os.getpid()}"))
        target.temporary.touch(exist_ok=False)
    except OSError as error:
        raise Refused("NO_FILE", f"cannot write to {path}: {error.strerror}", instead="name a file in a folder that exists") from None
    return target


def _content(answer: Answer, form: Format) -> str | bytes:
    match form:
        case Format.JSON:
            return wire.dump(wire.document(answer))
        case Format.CSV:
            return wire.csv_text(answer)
        case Format.PARQUET:
            return wire.parquet_bytes(answer)
        case Format.TABLE:
            from dpquery.display import text

            return text.as_text(text.answer_lines(answer, width=width()), width())


def _show(content: str | bytes) -> None:
    """On standard output, in signs that it can show."""
    stream.write(content.replace("±", "+-").replace("─", "-") if isinstance(content, str) and stream.plain() else content)


def width() -> int:
    """The terminal's width; 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 80


def _beside(answer: Answer, target: Target | None) -> None:
    """Warnings and receipt on standard error, and where the answer went."""
    from dpquery.display import text

    lines = [f"Note: {text.safe(note)}." for note in text.bounds(answer.receipt)]
    lines += [f"Warning: {text.safe(warning)}" for warning in answer.warnings]
    lines.append(text.receipt_line(answer.receipt))
    if target is not None:
        lines.append(f"Written: {text.safe(str(target.path))}")
    stream.tell(lines)


def page(form: Page, content: object, lines: Iterable[RenderableType]) -> None:
    """Anything but an answer: `content` as JSON, or `lines` for people."""
    if form is Page.JSON:
        stream.write(wire.dump(wire.plain(content)))
        return
    from dpquery.display import text

    _show(text.as_text(lines, width()))
