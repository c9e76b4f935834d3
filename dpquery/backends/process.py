"""A worker process seen from its parent: started early, asked one thing at a time, killed when it is late."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpquery.backends import wire
from dpquery.errors import Fault

GRACE = 2.0  # seconds between the engine's interrupt and the kill
START = 30.0  # seconds that a start may take on a busy machine

SAID: Mapping[str, tuple[str, str]] = {
    "ENGINE_TIMEOUT": ("the query ran into the time limit", "ask for less: fewer joins, a narrower filter; or the owner raises `limits.timeout`"),
    "ENGINE_MEMORY": ("the query ran into the memory limit", "ask for less: fewer joins, fewer groups; or the owner raises `limits.memory`"),
    "ENGINE_FAILED": ("the engine failed", "ask again; if it fails again, report it to the data owner"),
    "ENGINE_START": (
        f"the engine did not start within {START:g} seconds",
        "ask again when the machine is less busy: the statement is not at fault; if it happens again, the machine has too little memory",
    ),
    "DATA_LOCKED": ("the database is open for writing elsewhere", "close the program that writes to it, then ask again"),
    "DATA_UNREADABLE": ("the data cannot be read as what the schema says it is", "the data owner runs `dpquery check`"),
}


def fault(code: str) -> Fault:
    """The Fault of a code, in constant words; an engine that starts too late has failed, and says that it was time."""
    known = code if code in SAID else "ENGINE_FAILED"
    message, instead = SAID[known]
    return Fault("ENGINE_FAILED" if known == "ENGINE_START" else known, message, instead=instead)


class _Replied(Exception):
    """The worker's reply is an error's code; unless `spoilt`, it can be asked again."""

    def __init__(self, code: str, spoilt: bool) -> None:
        super().__init__(code)
        self.code = code
        self.spoilt = spoilt


class Worker:
    """One running worker. Its folder, private to this user, takes what the engine spills and goes with it."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.owner = os.getpid()
        self.folder, self._process = _started(int(config["threads"]))
        self._end = weakref.finalize(self, _end, self._process, self.folder, self.owner)
        self._ready = False
        self._send({**config, "parent": self.owner, "folder": self.folder})

    @property
    def alive(self) -> bool:
        """Whether it can be asked, by this process."""
        return self._end.alive and self.owner == os.getpid() and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, request: Mapping[str, Any], timeout: float | None) -> bytes:
        """The body of the reply. A Fault where it cannot be had; after most, the worker is gone."""
        try:
            if not self._ready:
                self._receive(START, "ENGINE_START")
                self._ready = True
            self._send({**request, "timeout": timeout})
            return self._receive(None if timeout is None else timeout + GRACE)
        except _Replied as error:
            if error.spoilt:
                self.kill()
            raise fault(error.code) from None
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """Nothing is left of it."""
        self._end()

    def _send(self, header: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        data = memoryview(wire.packed(header))
        try:
            while data:
                data = data[self._process.stdin.write(data) :]
        except BrokenPipeError:
            pass  # it has died; reading its reply says so

    def _receive(self, timeout: float | None, late: str = "ENGINE_TIMEOUT") -> bytes:
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            header, body = wire.unpacked(lambda count: self._read(count, deadline, late))
        except EOFError:
            raise fault("ENGINE_FAILED") from None
        if "error" in header:
            raise _Replied(str(header["error"]), bool(header["spoilt"]))
        return body

    def _read(self, count: int, deadline: float | None, late: str) -> bytes:
        """Exactly so many bytes; EOFError where the worker has died, a Fault of the code `late` where it is."""
        assert self._process.stdout is not None
        parts, missing, pipe = [], count, self._process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while missing:
                left = None if deadline is None else deadline - time.monotonic()
                if (left is not None and left <= 0) or not selector.select(left):
                    raise fault(late)
                part = os.read(pipe, min(missing, 1 << 20))
                if not part:
                    raise EOFError
                parts.append(part)
                missing -= len(part)
        return b"".join(parts)


def _started(threads: int) -> tuple[str, subprocess.Popen[bytes]]:
    """A new folder and a new process. A Fault where the machine has no room for them."""
    folder = None
    try:
        folder = tempfile.mkdtemp(prefix="dpquery-")
        process = subprocess.Popen(
            [sys.executable, "-P", "-s", "-B", "-m", "dpquery.backends.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(threads),
            cwd=folder,
            start_new_session=True,  # an interrupt from the keyboard is the parent's to handle
            bufsize=0,
        )
    except OSError:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise fault("ENGINE_FAILED") from None
    return folder, process


def _environment(threads: int) -> dict[str, str]:
    """Nothing of the caller's environment but where its modules and libraries are.

    There is no home: the engine may write to the folder to which it spills, and would install extensions into a home inside it. Heaps are few and
    none reserves a gigabyte ahead of use, lest the limit on address space mean little.
    """
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT") if name in os.environ}
    modules = [os.path.abspath(p) for p in sys.path if p] + [str(Path(__file__).parents[2])]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(modules)),
        "PATH": os.defpath,
        "HOME": os.devnull,
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "MALLOC_ARENA_MAX": str(max(2, threads)),
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }


def _end(process: subprocess.Popen[bytes], folder: str, owner: int) -> None:
    """Kills and reaps the worker and clears its folder; a forked child leaves its parent's worker alone."""
    if os.getpid() != owner:
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    shutil.rmtree(folder, ignore_errors=True)
