"""Rounds in which every system is asked everything, in an order that changes, so that what else the machine does hits all alike."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from suite.figures import Answer, answer
from suite.systems import Running, System, installed
from suite.workloads import Workload

SLOW = 20.0  # seconds: what takes longer is asked in the first rounds only
FEW = 3


@dataclass(slots=True)
class Cell:
    """What one system did with one workload."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    cannot: str | None = None


@dataclass(slots=True)
class Measured:
    """Cells by system and workload, with the true answers."""

    rows: int
    versions: dict[str, str]
    true: dict[str, Answer]
    cells: dict[tuple[str, str], Cell]


def start(systems: Sequence[System], folder: Path, told: Mapping[str, Any], patience: float) -> list[Running]:
    return [Running(one, python, folder, told, patience) for one in systems if (python := installed(one)) is not None]


def measure(running: Sequence[Running], workloads: Sequence[Workload], rows: int, rounds: int) -> Measured:
    """The first round warms up and is not counted, but for what takes longer than a patient person waits."""
    cells = {(one.system.name, work.name): Cell() for one in running for work in workloads}
    found = Measured(rows, {}, {}, cells)
    order, shuffled = list(cells), random.Random(1)
    by_name = {one.system.name: one for one in running}
    questions = {work.name: work for work in workloads}
    for i in range(rounds + 1):
        shuffled.shuffle(order)
        for system, name in order:
            cell, work = cells[system, name], questions[name]
            if cell.cannot is not None or (i > FEW and cell.wall and max(cell.wall) > SLOW):
                continue
            said = by_name[system].ask(name, sql_of(by_name[system].system, work), 0 if by_name[system].system.floor else work.keys)
            print(f"{rows:,} rows, round {i}, {system}, {name}: {_short(said)}", file=sys.stderr, flush=True)
            if "cannot" in said:
                cell.cannot = said["cannot"]
            elif i > 0:
                _note(cell, said)
            if system == "duckdb" and "rows" in said:
                found.true[name] = answer(said["rows"])
    found.versions = {one.system.name: one.version for one in running}
    return found


def sql_of(system: System, work: Workload) -> str:
    if system.floor:
        return work.floor
    return work.plain_sql if system.name == "duckdb" else work.sql


def _note(cell: Cell, said: Mapping[str, Any]) -> None:
    cell.cpu.append(said["cpu"])
    cell.wall.append(said["wall"])
    cell.peak.append(said["peak"])
    cell.answers.append(answer(said["rows"]))


def _short(said: Mapping[str, Any]) -> str:
    return (
        str(said["cannot"]) if "cannot" in said else f"{said['cpu']:.2f} s CPU, {said['wall']:.2f} s, {said['peak']:.0f} MB, {len(said['rows'])} rows"
    )
