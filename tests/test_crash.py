"""Processes that die, race or run away: a charge stays, the ledger stays usable, nobody gets more than there is, and nothing of the data is told."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import people
import pytest

from dpquery.engine import open_ledger, open_session, verify_ledger
from dpquery.engine.session import Session
from dpquery.errors import Fault, OverBudget

COUNT = "SELECT count(*) FROM visits"
RUNAWAY = "SELECT count(*) FROM visits a JOIN visits b USING (pid) JOIN visits c USING (pid) WHERE a.s || b.s <> c.s"
GLUTTON = "SELECT a.s || b.s AS pair, count(*) FROM visits a JOIN visits b USING (pid) GROUP BY pair"
TABLES = """
tables:
  people: {unit: pid, max_rows_per_unit: 1, columns: {pid: {type: integer}}}
  visits: {unit: pid, columns: {pid: {type: integer}, s: {type: string}}}
"""
DATA = """
CREATE TABLE people AS SELECT i::INT AS pid FROM range(100) t(i);
CREATE TABLE visits AS SELECT (i % 100)::INT AS pid, 'SECRET-VALUE-' || i AS s FROM range(100000) t(i);
"""
TERMS = """
budget: {epsilon: 10, delta: 1e-6}
per_query: {epsilon: 0.5, delta: 1e-9}
contribution: {max_groups_contributed: 4, max_rows_per_group: 10}
"""


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    def make(limits: str = "{timeout: 60, memory: 1GB, threads: 1}", terms: str = TERMS) -> Path:
        return people.made(tmp_path / "kept", DATA, TABLES, terms + f"limits: {limits}\n")

    return make


def started(schema: Path, sql: str, *words: str) -> subprocess.Popen[str]:
    """One question asked on the command line, in a process group of its own."""
    command = [sys.executable, "-m", "dpquery", "query", sql, "--schema", str(schema), "--format", "json", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def log(schema: Path) -> list[dict[str, Any]]:
    with open_ledger(schema) as ledger:
        return [dict(line.body) for line in ledger.entries()]


def events(schema: Path) -> list[str]:
    return [body["event"] for body in log(schema) if body["event"] in ("charged", "released", "failed", "timeout", "interrupted", "refused")]


def until_charged(schema: Path, process: subprocess.Popen[str]) -> None:
    """Waits until the question is charged, and so its engine runs."""
    for _ in range(600):
        if "charged" in events(schema):
            return
        assert process.poll() is None, "it ends before it is charged"
        time.sleep(0.05)
    raise AssertionError("it is never charged")


def workers(parent: int) -> list[int]:
    """The processes that this one has started and that still live."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == parent and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def gone(process: int) -> bool:
    for _ in range(200):
        try:
            if Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def no_secret(*texts: object) -> None:
    assert not [text for text in texts if "SECRET" in str(text)]


def test_death_between_charge_and_release_leaves_the_charge(made: Callable[..., Path]) -> None:
    schema = made()
    process = started(schema, RUNAWAY)
    until_charged(schema, process)
    engines = workers(process.pid)
    assert engines, "an engine runs"
    os.killpg(process.pid, signal.SIGKILL)
    out, err = process.communicate()
    assert (process.returncode, out) == (-signal.SIGKILL, "")
    no_secret(err)
    assert all(gone(engine) for engine in engines), "the engine does not outlive its parent"
    assert events(schema) == ["charged"]
    assert verify_ledger(schema) == ()
    with people.opened(schema) as (session,):
        assert session.budget().spent.epsilon == Decimal("0.5")
        answer = session.query(COUNT)
        assert answer.table.num_rows == 1
        assert session.budget().spent.epsilon == Decimal(1)
    assert events(schema) == ["charged", "interrupted", "charged", "released"], "who comes next finds that nobody attends to it"


def test_an_interrupt_after_the_charge_says_so(made: Callable[..., Path]) -> None:
    schema = made()
    process = started(schema, RUNAWAY)
    until_charged(schema, process)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 5
    error = json.loads(out)["error"]
    assert error["code"] == "INTERRUPTED"
    assert "stays charged" in error["message"]
    no_secret(out, err)
    assert events(schema) == ["charged", "interrupted"], "that there was no answer by then tells what a time-out tells"
    assert "counts as a time-out" in error["message"]
    assert f"Ledger entry: {log(schema)[-1]['entry']}" in err


def test_of_two_processes_one_gets_the_last_share(made: Callable[..., Path], tmp_path: Path) -> None:
    schema = made(terms=TERMS.replace("epsilon: 10", "epsilon: 1"))
    script = f"""
        import pathlib, sys, time
        from dpquery.engine import open_session
        from dpquery.errors import OverBudget
        session = open_session({str(schema)!r})
        session.explain({COUNT!r})
        pathlib.Path({str(tmp_path)!r}, "ready" + sys.argv[1]).touch()
        while not pathlib.Path({str(tmp_path)!r}, "go").exists():
            time.sleep(0.001)
        try:
            session.query({COUNT!r}, epsilon="0.6", fresh=True)
            print("answered")
        except OverBudget as refused:
            print(refused.code)
        session.close()
    """
    words = [sys.executable, "-c", textwrap.dedent(script)]
    racers = [subprocess.Popen([*words, str(i)], stdout=subprocess.PIPE, text=True) for i in range(2)]
    while not all((tmp_path / f"ready{i}").exists() for i in range(2)):
        assert all(racer.poll() is None for racer in racers)
        time.sleep(0.01)
    (tmp_path / "go").touch()
    told = sorted(racer.communicate()[0].strip() for racer in racers)
    assert told == ["OVER_BUDGET", "answered"]
    assert sorted(events(schema)) == ["charged", "refused", "released"]
    assert verify_ledger(schema) == ()
    with people.opened(schema) as (session,):
        assert session.budget().spent.epsilon == Decimal("0.6")


def stopped(session: Session, sql: str) -> Fault:
    with pytest.raises(Fault) as failed:
        session.query(sql)
    no_secret(failed.value, failed.value.as_dict())
    assert failed.value.entry
    return failed.value


def test_a_runaway_stops_at_the_time_limit_and_the_account_locks(made: Callable[..., Path]) -> None:
    """Charged, told in constant words, the process alive, the next question answered; after so many the account waits for its owner."""
    schema = made("{timeout: 0.5, memory: 1GB, threads: 1, timeouts_per_account: 2}")
    with people.opened(schema) as (session,):
        first = stopped(session, RUNAWAY)
        assert session.query(COUNT).table.num_rows == 1
        second = stopped(session, RUNAWAY)
        assert first.as_dict() == second.as_dict()
        assert (first.code, session.budget().spent.epsilon, session.budget().locked) == ("ENGINE_TIMEOUT", Decimal("1.5"), True)
        assert session.query(COUNT).table.num_rows == 1, "what was seen is shown again, and reads no data"
        with pytest.raises(OverBudget) as locked:
            session.query(COUNT, fresh=True)
        assert locked.value.code == "ACCOUNT_LOCKED"
        with people.opened(schema) as (again,), pytest.raises(OverBudget):
            again.query(COUNT, fresh=True)
        session.ledger.unlock("default")
        assert session.query(COUNT, fresh=True).table.num_rows == 1
        assert session.budget().spent.epsilon == Decimal(2)
    assert events(schema) == [
        *("charged", "timeout", "charged", "released", "charged", "timeout", "refused", "refused", "charged", "released"),
    ]


def test_a_glutton_stops_at_the_memory_limit(made: Callable[..., Path]) -> None:
    schema = made("{timeout: 60, memory: 40MB, threads: 2}")
    with people.opened(schema) as (session,):
        for sql in (GLUTTON, RUNAWAY):
            assert stopped(session, sql).code == "ENGINE_MEMORY"
        assert session.query(COUNT).table.num_rows == 1
        assert session.budget().timeouts == 2
    assert events(schema) == ["charged", "timeout", "charged", "timeout", "charged", "released"]


def test_an_engine_that_is_killed_is_a_fault_and_the_next_question_is_answered(made: Callable[..., Path]) -> None:
    schema = made()
    process = started(schema, RUNAWAY)
    until_charged(schema, process)
    while process.poll() is None:  # one that dies before it is asked is replaced, and the new one is asked
        for engine in workers(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(engine, signal.SIGKILL)
        time.sleep(0.02)
    out, err = process.communicate()
    assert process.returncode == 5
    assert json.loads(out)["error"]["code"] == "ENGINE_FAILED"
    no_secret(out, err)
    assert events(schema) == ["charged", "timeout"]
    with people.opened(schema) as (session,):
        assert session.query(COUNT).table.num_rows == 1


def test_nothing_is_left_behind(made: Callable[..., Path]) -> None:
    """No engine and no spill folder after a session, whether it ended well or not."""
    schema = made("{timeout: 0.3, memory: 1GB, threads: 1}")
    session = open_session(schema)
    stopped(session, RUNAWAY)
    session.query(COUNT)
    worker = session.backend._worker  # type: ignore[attr-defined]
    folder, engine = Path(worker.folder), worker.pid
    assert folder.exists()
    assert engine in workers(os.getpid())
    session.close()
    assert not folder.exists()
    assert gone(engine)
