"""Who may try to write next, among processes: whoever holds the gate is the only one that tries, so that one who has just written cannot again.

A lock of the file system on a file beside the ledger, which ends with its process, however that ends. It is for fairness alone: that writers follow
one another is the store's own lock's doing. Where there is no such lock to be had, or it is held for long, all try at once.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None
SUFFIX: Final = "-queue"
PATIENCE: Final = 3.0  # seconds: longer than a transaction takes, of others in turn too


class Gate:
    """The gate of one ledger file, used by one thread at a time."""

    def __init__(self, ledger: Path) -> None:
        self._place = ledger.parent / (ledger.name + SUFFIX)
        self._handle: int | None = None
        self._process = os.getpid()
        self._since: float | None = None  # when it was first found shut
        self.held = False

    def passed(self) -> bool:
        """Whether this process may try to write: it holds the gate, or there is none."""
        self._after_fork()
        if self.held or fcntl is None:
            return True
        with suppress(OSError):
            self._open()
            if not self._taken():
                now = time.monotonic()
                self._since = self._since or now
                return now - self._since > PATIENCE
        self._since = None
        return True

    def leave(self) -> None:
        """The next may try."""
        self._after_fork()
        self._since = None
        if self.held and self._handle is not None:
            self.held = False
            with suppress(OSError):
                fcntl.flock(self._handle, fcntl.LOCK_UN)

    def close(self) -> None:
        """Its file is gone, unless another is at it; one that still has it open makes it anew."""
        self.leave()
        with suppress(OSError):
            if fcntl is not None and self._place.exists():
                self._open()
                if self._taken():
                    self._place.unlink()
        self._shut()

    def _after_fork(self) -> None:
        if self._process != os.getpid():
            self._shut()  # the parent's lock hangs on the same handle, and stays
            self._process = os.getpid()

    def _open(self) -> None:
        if self._handle is None:
            self._handle = os.open(self._place, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def _taken(self) -> bool:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self.held = self._is_there()
        if not self.held:
            self._shut()
        return self.held

    def _is_there(self) -> bool:
        """Whether the file that is locked is the one at the place, which others lock."""
        with suppress(FileNotFoundError):
            return self._handle is not None and os.path.samestat(os.fstat(self._handle), os.stat(self._place))
        return False

    def _shut(self) -> None:
        self.held = False
        if self._handle is not None:
            with suppress(OSError):
                os.close(self._handle)
        self._handle = None
