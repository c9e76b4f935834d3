"""Runs jobs in forks of this process: what a job breaks, fills or never ends is gone with its fork."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

SLOWER = 20  # a fork that waits is given so many times the time that one that computes is given, and a minute: others may use the machine
BROKEN = 70  # how a fork ends whose job raised

Job = Callable[[Path], int]


@dataclass(frozen=True, slots=True)
class Ended:
    name: str
    code: int  # of exit, or the signal that ended it, negative
    seconds: float  # of processor time, its children's too
    said: str  # what it wrote to `said` in its folder


def forked(jobs: Iterable[tuple[str, Job]], at_once: int) -> Iterator[Ended]:
    """Does each job in a fork with a folder of its own for what tests leave behind, `at_once` at a time; tells of each as it ends."""
    running: dict[int, tuple[str, Path]] = {}
    try:
        for name, job in jobs:
            folder = Path(tempfile.mkdtemp(prefix="mutant-"))
            running[_start(job, folder)] = name, folder
            if len(running) == at_once:
                yield _next(running)
        while running:
            yield _next(running)
    finally:
        for pid, (_, folder) in running.items():
            _end(pid, folder)


def limit(seconds: float) -> None:
    """Ends this fork when it has used so many more seconds of the processor, or waited for long."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + seconds) + 1, hard))
    signal.alarm(int(seconds * SLOWER) + 60)


def _start(job: Job, folder: Path) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = BROKEN
    try:
        os.setpgid(0, 0)  # so that a process that a test leaves behind is found, and ended
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        code = job(folder)
    except BaseException:
        (folder / "said").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def _next(running: dict[int, tuple[str, Path]]) -> Ended:
    pid, status, use = os.wait3(0)
    name, folder = running.pop(pid)
    said = folder / "said"
    text = said.read_text() if said.exists() else ""
    _end(pid, folder)
    code = os.waitstatus_to_exitcode(status)
    if code == BROKEN:
        raise RuntimeError(f"{name}: {text}")
    return Ended(name, code, use.ru_utime + use.ru_stime, text)


def _end(group: int, folder: Path) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
