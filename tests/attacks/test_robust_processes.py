"""Connections shared by threads, carried across a fork, sent to another process; errors that travel."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from attack_lab import ORDINARY, made

import dpquery
from dpquery.engine import verify_ledger
from dpquery.errors import Fault, OverBudget, Position, Refused, SchemaError
from dpquery.release import post

COUNT = "SELECT count(*) AS n FROM people"
BY_REGION = "SELECT region, count(*) AS n FROM people JOIN places USING (country) GROUP BY region"
BY_DAY = "SELECT n, count(*) AS m FROM orders JOIN moments USING (day) GROUP BY n"
FORKS = """
import os, signal, sys, threading, time
import dpquery
con = dpquery.connect(sys.argv[1])
ask = lambda: con.query("SELECT count(*) AS n FROM people", epsilon="0.001").columns
ask()
stop = threading.Event()
busy = threading.Thread(target=lambda: [ask() for _ in iter(stop.is_set, True)])
busy.start()
said = []
for i in range(5):
    time.sleep(0.05 + 0.03 * i)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if ask() == ["n"] and ask() == ["n"] else 1)
    said.append(os.waitpid(child, 0)[1])
stop.set()
busy.join()
print(said)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return made(tmp_path, more=ORDINARY)


def test_threads_that_share_a_connection_take_turns(file: Path) -> None:
    """One dropped the public tables that another's statement, which was charged already, was about to read."""
    con, ended = dpquery.connect(file), Counter[str]()

    def ask(first: int) -> None:
        for i in range(4):
            try:
                con.query((BY_REGION, BY_DAY, COUNT)[(first + i) % 3], epsilon="0.01", fresh=True)
                ended["answered"] += 1
            except dpquery.Error as error:
                ended[error.code] += 1

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended == {"answered": 16}
    assert con.budget().entries == 16
    assert con.budget().timeouts == 0
    con.close()


def test_a_child_forked_while_another_thread_asks_can_ask(file: Path) -> None:
    """It waited for ever for a lock of a thread that it does not have, or found the ledger in use by nobody."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS, str(file)], capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(done.stdout) == [0] * 5
    assert not verify_ledger(file)


def test_a_connection_sent_elsewhere_opens_the_same_ledger(file: Path) -> None:
    with dpquery.connect(file, analyst="alice") as con:
        result = con.query(COUNT, epsilon="0.5")
        for sent in (pickle.loads(pickle.dumps(con)), copy.deepcopy(con)):
            with sent:
                sent.query(COUNT, epsilon="0.5", fresh=True)
        assert con.budget().entries == 3
    assert pickle.loads(pickle.dumps(result)).fetchall() == result.fetchall()


@pytest.mark.parametrize("kind", [SchemaError, Refused, OverBudget])
def test_errors_travel_between_processes(kind: type[dpquery.Error]) -> None:
    """A pool of processes hung, or broke, over an error that could not be made again."""
    error = kind("CODE", "what", position=Position(1, 2), instead="this", source="SELECT")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.as_dict()) == (kind, str(error), error.as_dict())


def test_a_fault_travels_with_its_entry() -> None:
    again = pickle.loads(pickle.dumps(Fault("CODE", "what", instead="this", entry="abc")))
    assert (again.code, again.message, again.instead, again.entry) == ("CODE", "what", "this", "abc")


def test_an_interrupt_above_the_noise_is_told_as_one(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine turns an interrupt into an error of its own: it left as that, after the charge as a broken engine's."""
    asked, answer = [], post._answer

    def interrupted(con: Any, sql: str) -> Any:
        asked.append(sql)
        if len(asked) == 2:
            raise RuntimeError("Query interrupted")
        return answer(con, sql)

    monkeypatch.setattr(post, "_answer", interrupted)
    monkeypatch.setattr(post, "_SOUND", set())  # no check of another test is remembered
    with dpquery.connect(file) as con:
        with pytest.raises(Fault) as caught:
            con.query(COUNT, epsilon="0.1")
        assert caught.value.code == "INTERRUPTED"
        assert caught.value.entry
        assert (con.budget().entries, con.budget().timeouts) == (1, 1)
        asked[:] = ["one"]
        post._SOUND.clear()
        with pytest.raises(KeyboardInterrupt):
            con.explain(COUNT, epsilon="0.1")
        assert con.query(COUNT, epsilon="0.1").columns == ["n"]
