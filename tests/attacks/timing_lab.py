"""Two neighbouring data sets on which one statement takes long only where one person is there; and a clock on which time passes as a test says."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import people

TABLES = """
tables:
  people: {unit: pid, max_rows_per_unit: 1, columns: {pid: {type: integer}}}
  visits: {unit: pid, columns: {pid: {type: integer}, s: {type: string}}}
"""
TERMS = """
budget: {epsilon: 50, delta: 1e-6}
per_query: {epsilon: 0.01}
contribution: {max_groups_contributed: 4, max_rows_per_group: 10, join_rows_per_unit: 2000}
"""
DATA = """
CREATE TABLE people AS SELECT i::INT AS pid FROM range(100) t(i);
CREATE TABLE visits AS SELECT (i % 100)::INT AS pid, 's' || i AS s FROM range(1000) t(i) WHERE i % 100 <> 8;
"""
THERE = "INSERT INTO visits SELECT 8, 's' || i FROM range(1000) t(i);"  # one million pairs of rows, all of one person
SLOW = "SELECT count(*) FROM visits a JOIN visits b USING (pid) WHERE pid = 8 AND lower(upper(a.s || b.s)) <> replace(lower(b.s || a.s), '1', '2')"
QUICK = "SELECT count(*) FROM people"


def made(folder: Path, limits: str = "", more: str = "", terms: str = TERMS) -> Path:
    """A schema file with the data and an unspent ledger."""
    return people.made(folder, DATA + more, TABLES, terms + f"limits: {{memory: 1GB, threads: 1{limits}}}\n")


class Stage:
    """A clock that stands still but for what `pass_by` and sleeping let pass. `asleep` is called before each sleep."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []
        self.asleep: Callable[[], None] = lambda: None

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.asleep()
        self.slept.append(seconds)
        self.time += seconds

    def pass_by(self, seconds: float) -> None:
        self.time += seconds


class Hasty:
    """The machine's clock, on which waiting for the grid takes no time: it jumps ahead. All else takes the time it takes."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> float:
        return time.monotonic() + self.ahead

    def sleep(self, seconds: float) -> None:
        self.ahead += seconds
