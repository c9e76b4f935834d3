"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path


def _line(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), None)


def _load() -> str:
    """Whether others used it."""
    return ", ".join(f"{value:.1f}" for value in os.getloadavg())


def machine() -> str:
    """One line: processor, cores, memory, system, Python, day."""
    model = _line("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()
    mhz = _line("/proc/cpuinfo", "cpu MHz")
    memory = int((_line("/proc/meminfo", "MemTotal") or "0 kB").split()[0]) / 2**20
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    at = f" at {float(mhz) / 1000:.1f} GHz" if mhz else ""
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    return f"{model}{at}, {cores} cores, {memory:.0f} GiB, {system}, {datetime.now(UTC):%Y-%m-%d}; load when begun {_load()}"
