"""Standard output and standard error, whose readers may go away at any time, as `head` does: that is no error."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TextIO

from dpquery.errors import Fault


def prepare() -> None:
    """Both streams are there and take every character: neither a closed stream nor a poor locale may cost an answer that was paid for."""
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO()) if stream is None else stream for stream in (sys.stdout, sys.stderr))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def write(content: str | bytes) -> None:
    """The content is on standard output, or nobody reads any more; then whatever else is written goes nowhere. Fault where the disk is full."""
    try:
        if isinstance(content, bytes):
            sys.stdout.buffer.write(content)
        else:
            sys.stdout.write(content)
        sys.stdout.flush()
    except BrokenPipeError:
        silence()
    except OSError as error:
        silence()
        raise Fault("OUTPUT_FAILED", f"standard output cannot be written: {error.strerror}") from None


def tell(lines: Iterable[str]) -> None:
    """The lines are on standard error, unless it takes none: what is told there is never worth an answer or an exit status."""
    try:
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO | None = None) -> None:
    """What is left in the stream (standard output), and all that follows, goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):  # a stream of no file
        os.dup2(nowhere, (stream or sys.stdout).fileno())
    os.close(nowhere)


def plain() -> bool:
    """Whether standard output can show no more than ASCII."""
    return not (sys.stdout.encoding or "").lower().startswith("utf")
