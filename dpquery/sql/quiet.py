"""The parser's own log, silent while a statement is read here: what is wrong with one is a refusal, and no line on somebody's standard error.

The log is left alone for whoever else uses the parser in the same program.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_READING: ContextVar[bool] = ContextVar("reading", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing that the parser says in here is heard."""
    before = _READING.set(True)
    try:
        yield
    finally:
        _READING.reset(before)


def _heard(record: logging.LogRecord) -> bool:
    return not _READING.get()


logging.getLogger("sqlglot").addFilter(_heard)
