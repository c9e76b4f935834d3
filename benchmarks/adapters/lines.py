"""A system's side of the suite: JSON lines in, JSON lines out, CPU seconds and peak memory of the process and all below it.

Needs nothing but Python, as it runs in the environment of each peer. Whatever a library prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Rows = list[tuple[Sequence[Any], Sequence[float]]]  # keys and numbers of each group
Ask = Callable[[], Rows]
TICK = os.sysconf("SC_CLK_TCK")


class Cannot(Exception):
    """The system cannot answer this; the message says why."""


def _below() -> list[Path]:
    """The processes below this one."""
    parents: dict[str, list[str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents.setdefault(stat.read_text().rsplit(")", 1)[1].split()[1], []).append(stat.parent.name)
        except OSError:
            continue
    found, left = [], [str(os.getpid())]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return [Path("/proc") / pid for pid in found]


def cpu() -> float:
    """CPU seconds so far, user and system, of this process, those below it, and those of them that have ended."""
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    total = own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
    for process in _below():
        try:
            fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15])) / TICK
    return total


def forget_peak() -> None:
    """The peak of each process starts anew, where the system lets it."""
    for process in [Path("/proc/self"), *_below()]:
        try:
            (process / "clear_refs").write_text("5")
        except OSError:
            continue


def peak() -> float:
    """The peaks of the process and those below it, added up, in MB."""
    total = 0.0
    for process in [Path("/proc/self"), *_below()]:
        try:
            text = (process / "status").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM")) / 1024
    return total or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _measured(ask: Ask) -> dict[str, Any]:
    forget_peak()
    start, wall = cpu(), time.perf_counter()
    rows = ask()
    wall, spent = time.perf_counter() - wall, cpu() - start
    return {"cpu": spent, "wall": wall, "peak": peak(), "rows": [[[str(k) for k in keys], [float(v) for v in values]] for keys, values in rows]}


def serve(opened: Callable[[Path, dict[str, Any]], tuple[str, Callable[[str, Any], Ask]]]) -> None:
    """Answer until the input ends. `opened` gets folder and spec, and gives the version and what answers a workload, by its
    name or by what else is asked: its SQL and number of keys.
    """
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    finder: Any = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if "folder" in asked:
                version, finder = opened(Path(asked["folder"]), asked["told"])
                reply = {"version": version}
            else:
                reply = _measured(finder(asked["workload"], asked))
        except Cannot as why:
            reply = {"cannot": str(why)}
        except Exception as failure:
            traceback.print_exc()
            reply = {"cannot": "fails: " + f"{type(failure).__name__}: {failure}".split("\n")[0][:200]}
        out.write(json.dumps(reply) + "\n")
        out.flush()
