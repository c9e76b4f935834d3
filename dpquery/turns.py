"""Taking turns: locks that a fork leaves in order."""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Final
from weakref import WeakSet

_TURNS: Final[WeakSet[Turn]] = WeakSet()
_FORKING = threading.RLock()  # threads that fork at once hold others' turns one after the other
_held: list[Turn] = []


class Turn:
    """One thread at a time; the same thread may enter again. In a forked child it is free: whoever held it does not live there.

    `quiet`: a fork waits until it is free, for what it guards must not be copied half done.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._lock = threading.RLock()
        self.quiet = quiet
        _TURNS.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Turn], tuple[bool]]:
        return Turn, (self.quiet,)

    def renew(self) -> None:
        """It is free, whoever held it."""
        self._lock = threading.RLock()


def _before_fork() -> None:
    _FORKING.acquire()
    _held[:] = [turn for turn in list(_TURNS) if turn.quiet]
    for turn in _held:
        turn.__enter__()


def _in_parent() -> None:
    for turn in _held:
        turn.__exit__(None, None, None)
    _held.clear()
    _FORKING.release()


def _in_child() -> None:
    global _FORKING
    _FORKING = threading.RLock()
    _held.clear()
    for turn in list(_TURNS):
        turn.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
