"""What run time tells of one person, measured: everything where replies leave at once, nothing that can be seen where they leave on a time grid."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import comb
from pathlib import Path

import people
import pytest
from timing_lab import SLOW, THERE, Hasty, made

from dpquery.engine.pace import Clock
from dpquery.engine.session import Session

FALSE_ALARM = 1e-6
OPEN, GRID = 60, 200  # pairs of questions, one to each of the two neighbours
QUANTUM = 1000  # seconds: above the time limit, which no machine in use reaches
LIMITS = f", timeout: 600, response_quantum: {QUANTUM}"
STEP = 0.01  # seconds: finer differences after the grid point are not looked at
LATEST = 30  # seconds after the grid point at which a reply has left
AT_ONCE = 4  # pairs that are asked at the same time, of data sets of their own

DOCS = Path(__file__).parents[2] / "docs" / "schema.md"
Pairs = list[tuple[float, float]]


def seconds(session: Session, clock: Hasty) -> float:
    start = clock.now()
    session.query(SLOW, fresh=True)
    return clock.now() - start


def times(folder: Path, limits: str, count: int) -> Pairs:
    """What a stopwatch shows at the analyst's side, with the person there and without; a coin says which of a pair is asked first."""
    clock = Hasty()
    with people.opened(made(folder / "with", limits, THERE), made(folder / "without", limits)) as opened:
        sessions = [Session(one.schema, None, None, Clock(clock.now, clock.sleep)) for one in opened]
        for session in sessions:
            session.query(SLOW, fresh=True)
        found = []
        for _ in range(count):
            first = secrets.randbelow(2)
            one, two = seconds(sessions[first], clock), seconds(sessions[1 - first], clock)
            found.append((two, one) if first else (one, two))
        for session in sessions:
            session.close()
    return found


def pairs(folder: Path, limits: str, count: int) -> Pairs:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        parts = [pool.submit(times, folder / str(i), limits, count // AT_ONCE) for i in range(AT_ONCE)]
        return [pair for part in parts for pair in part.result()]


def chance(found: Sequence[tuple[float, float]]) -> float:
    """How likely it is that fair coins are at least as uneven as the pairs' later halves, those that are even left out."""
    uneven = [a > b for a, b in found if a != b]
    n, few = len(uneven), min(sum(uneven), len(uneven) - sum(uneven))
    return min(1.0, 2 * sum(comb(n, k) for k in range(few + 1)) / 2**n)


def advantage(found: Sequence[tuple[float, float]]) -> float:
    """How often the reply with the person is the later one, less how often the other way round: 1 tells them apart, 0 does not."""
    return sum((a > b) - (a < b) for a, b in found) / len(found)


def told_apart(found: Pairs) -> str:
    """By what the replies on the grid tell the neighbours apart; empty where by nothing."""
    for name, side in (("with", [a for a, _ in found]), ("without", [b for _, b in found])):
        if min(side) < QUANTUM:
            return f"a reply {name} the person left before the first grid point"
        if max(side) >= QUANTUM + LATEST:
            return f"a reply {name} the person left {max(side) - QUANTUM:.1f} s after the first grid point"
    steps = [((a - QUANTUM) // STEP, (b - QUANTUM) // STEP) for a, b in found]
    return f"one side is later after the grid point: advantage {advantage(steps):.3f}" if chance(steps) < FALSE_ALARM else ""


LEAKS: dict[str, Callable[[int], float]] = {  # seconds after the grid point of the i-th reply with the person; without it, some hundredths
    "one in ten at the next point": lambda i: QUANTUM if i % 10 == 0 else 0.02,
    "one reply at the next point": lambda i: QUANTUM if i == 7 else 0.02,
    "one reply early": lambda i: -0.1 if i == 7 else 0.02,
    "one in eight late": lambda i: 0.2 if i % 8 == 0 else 0.02,
    "all later by more than their spread": lambda i: 0.02 + i % 3 * 0.01 + 0.04,
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_found(leak: str) -> None:
    """A leak of some kind in some replies of one side, the other one having none."""
    assert told_apart([(QUANTUM + LEAKS[leak](i), QUANTUM + 0.02) for i in range(GRID)])
    assert told_apart([(QUANTUM + 0.02, QUANTUM + LEAKS[leak](i)) for i in range(GRID)])


def test_no_leak_is_none() -> None:
    """Nor is lateness that comes and goes with what else the machine does, however long it takes."""
    assert not told_apart([(QUANTUM + 0.025, QUANTUM + 0.026)] * GRID)
    assert not told_apart([(QUANTUM + i % 7, QUANTUM + i * 3 % 7) for i in range(GRID)])


def test_the_documentation_says_which_advantage_would_pass() -> None:
    most = max(k for k in range(GRID + 1) if chance([(1, 0)] * k + [(0, 1)] * (GRID - k)) >= FALSE_ALARM)
    assert f"by an advantage above {(2 * most - GRID) / GRID:g}" in DOCS.read_text().replace("\n", " ")


@pytest.mark.audit
def test_run_time_tells_of_a_person_unless_replies_leave_on_a_grid(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """On a clock on which waiting takes no time, so that the grid can be as wide as no run is long.

    False alarms: a coin decides which neighbour is asked first. Were replies after the grid point late by what the machine does and not by whom they
    are about, each of a pair would be the later one with even chances, whatever else runs and however unevenly: by the exact test of signs that
    looks as it does here at most once in a million runs. That a reply leaves beyond the first grid point takes a run of 1000 seconds, where it
    takes about one, and that it leaves half a minute after it, a machine that stands still. Without the grid the person's pairs of rows take
    several times as long as all else; that this is seen fails only where a fifth of the pairs comes out the other way round.
    """
    at_once, on_grid = pairs(tmp_path / "open", ", timeout: 600", OPEN), pairs(tmp_path / "grid", LIMITS, GRID)
    late = [t - QUANTUM for pair in on_grid for t in pair]
    found = {"without": advantage(at_once), "with": advantage([(a // STEP, b // STEP) for a, b in on_grid]), "latest": max(late)}
    for name, value in found.items():
        record_property(name, round(value, 3))
    print(f"advantage at telling whether one person is there: {found}, {len(at_once)} and {len(on_grid)} pairs")
    assert chance(at_once) < FALSE_ALARM
    assert found["without"] > 0
    assert told_apart(on_grid) == ""
