"""What run time tells of one person, measured: everything where replies leave at once, nothing that can be seen where they leave on a time grid."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path

import people
import pytest
from timing_lab import SLOW, THERE, made

from dpquery.engine.session import Session

N = 30  # questions to each of the two neighbours, in turns
Z = 4.9  # standard deviations beyond which a measure of no difference lies once in a million


def seconds(session: Session) -> float:
    start = time.perf_counter()
    session.query(SLOW)
    return time.perf_counter() - start


def times(folder: Path, limits: str) -> tuple[list[float], list[float]]:
    """What a stopwatch shows at the analyst's side, with the person there and without."""
    found: tuple[list[float], list[float]] = ([], [])
    with people.opened(made(folder / "with", limits, THERE), made(folder / "without", limits)) as sessions:
        for session in sessions:
            session.query(SLOW)
        for i in range(N):
            for which in (0, 1) if i % 2 else (1, 0):
                found[which].append(seconds(sessions[which]))
    return found


def advantage(there: Sequence[float], away: Sequence[float]) -> float:
    """How often one reply with the person takes longer than one without, less how often the other way round: 1 tells them apart, 0 does not."""
    return sum((a > b) - (a < b) for a in there for b in away) / (len(there) * len(away))


def test_the_measure_can_tell() -> None:
    far, near = [float(i) for i in range(N)], [i + 0.5 for i in range(N)]
    assert advantage([x + N for x in far], near) == 1
    assert advantage(far, far) == 0
    assert abs(advantage(far, near)) < 0.1


@pytest.mark.audit
def test_run_time_tells_of_a_person_unless_replies_leave_on_a_grid(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Without a grid the person's pairs of rows take several times as long as all else: only a machine that is busy beyond use brings the
    advantage below 0.9. With one, were there no difference at all, the measure would lie beyond its bound, 4.9 standard deviations of the rank
    test, once in a million runs.
    """
    open_there, open_away = times(tmp_path / "open", "")
    quantum = 2 + 4 * max(open_there)
    grid_there, grid_away = times(tmp_path / "grid", f", response_quantum: {quantum:.3f}")
    without, within = advantage(open_there, open_away), advantage(grid_there, grid_away)
    for name, value in (("without", without), ("with", within), ("quantum", quantum)):
        record_property(name, round(value, 3))
    print(f"advantage at telling whether one person is there, of {N} questions each: {without:.3f} at once, {within:.3f} every {quantum:.1f} s")
    assert without > 0.9
    assert abs(within) < Z * sqrt((2 * N + 1) / (3 * N * N))
    cells = [round(t / quantum) for t in (*grid_there, *grid_away)]
    assert cells.count(1) >= 0.9 * len(cells), "replies leave in one cell, but for hiccups of the machine"
