"""Whether somebody still attends to charges that have no outcome yet: a lock that ends with its process, however that ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None  # where there are no such locks, charges of the dead keep no outcome
PATIENCE = 1.0  # seconds that others may look for charges of the dead


@contextmanager
def attended(folder: Path, alone: Callable[[], None]) -> Iterator[None]:
    """Meanwhile others find that somebody attends to charges made here. Before that, `alone` is called if nobody does: all others are dead.

    The lock is on the folder, since closing a second handle of the ledger's file would end SQLite's own locks. Where there is none to be had
    nothing is certain, and nothing is held up.
    """
    handle = _opened(folder)
    if handle is None:
        yield
        return
    try:
        if _taken(handle, fcntl.LOCK_EX):
            alone()
        _wait(handle)
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)  # a child forked meanwhile has the handle too
        os.close(handle)


def _opened(folder: Path) -> int | None:
    with suppress(OSError):
        return os.open(folder, os.O_RDONLY) if fcntl else None
    return None


def _taken(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _wait(handle: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while not _taken(handle, fcntl.LOCK_SH) and time.monotonic() < deadline:
        time.sleep(0.01)
