"""A line on standard error while a query runs: elapsed time only, since how far the engine is depends on private rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def line() -> Iterator[Callable[[float], None] | None]:
    """A function that shows the elapsed seconds, and wipes them at the end; None where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    shown = False

    def show(seconds: float) -> None:
        nonlocal shown
        shown = True
        _write(f"\rrunning: {seconds:.0f} s")

    try:
        yield show
    finally:
        if shown:
            _write("\r" + " " * 40 + "\r")


def _write(text: str) -> None:
    with suppress(OSError):  # the terminal is gone
        sys.stderr.write(text)
        sys.stderr.flush()
