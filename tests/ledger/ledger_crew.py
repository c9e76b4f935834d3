"""Processes that use one ledger at once, or die while they do. Run as a script: its process has one thread, so it may fork.

ledger_crew.py race FOLDER PROCESSES CHARGES EPSILON    each process charges so often; prints what each of them was granted
ledger_crew.py share FOLDER PROCESSES SECONDS LEAST     each process charges as often as it can; prints how often each did
ledger_crew.py kill FOLDER                              one process per statement of a charge dies before that statement; prints how many
ledger_crew.py keep FOLDER                              likewise of settling a charge with an answer that is stored; prints what was there after each
ledger_crew.py kills FOLDER TIMES                       processes of three threads that charge are killed; prints the answers, and what was wrong
ledger_crew.py die FOLDER                               one process charges and dies at once, its files left as they are
ledger_crew.py fork FOLDER                              parent and child use the one Ledger that the parent opened
"""

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import NoReturn

from ledger_shop import Shop, laplace

from dpquery.errors import OverBudget
from dpquery.ledger import Kept, Ledger


def forked(work: Callable[[], object]) -> Callable[[], object]:
    """Starts `work` in a child; calling the result waits for it and gives what it returned, or the signal that killed it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            said = json.dumps(work())
        except BaseException as error:
            said = json.dumps(repr(error))
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)

    def wait() -> object:
        with os.fdopen(read) as pipe:
            said = pipe.read()
        _, status = os.waitpid(child, 0)
        return json.loads(said) if said else -os.WTERMSIG(status)

    return wait


def opened(folder: Path) -> Ledger:
    shop = Shop(folder)
    return shop.open(shop.schema(budget=("1", "0")), wait=300)


def race(folder: Path, processes: int, charges: int, epsilon: str) -> list[object]:
    ready, start = os.pipe()

    def work() -> int:
        os.close(start)
        ledger, granted = opened(folder), 0
        os.read(ready, 1)
        for _ in range(charges):
            try:
                ledger.charge("default", laplace(epsilon), {"by": os.getpid()})
                granted += 1
            except OverBudget:
                pass
        ledger.close()
        return granted

    waiting = [forked(work) for _ in range(processes)]
    os.close(start)
    return [wait() for wait in waiting]


def share(folder: Path, processes: int, seconds: float, least: int) -> list[object]:
    """What each process was granted in so many seconds; in more, on a busy machine, until it is `least` in all."""
    ready, start = os.pipe()
    granted = memoryview(mmap.mmap(-1, 8 * processes)).cast("Q")  # shared

    def work(place: int) -> int:
        os.close(start)
        ledger = opened(folder)
        os.read(ready, 1)
        end = time.monotonic() + seconds
        while time.monotonic() < end or sum(granted) < least:
            ledger.charge("default", laplace("0.00001"), {})
            granted[place] += 1
        ledger.close()
        return granted[place]

    waiting = [forked(partial(work, place)) for place in range(processes)]
    os.close(start)
    return [wait() for wait in waiting]


def kill(folder: Path) -> int:
    """The number of statements of a charge, after a process died before each of them."""
    for step in range(1, 100):

        def work(step: int = step) -> str:
            ledger = opened(folder)
            dying(ledger, step)
            return ledger.charge("default", laplace("0.01"), {"step": step}).id

        if forked(work)() != -signal.SIGKILL:
            return step - 1
    raise AssertionError("a charge without end")


def keep(folder: Path) -> list[tuple[bool, int]]:
    """Whether a charge has an outcome, and how many answers are stored, after a process died before each statement of settling it, and after all."""
    ledger, found = opened(folder), []
    entry = ledger.charge("default", laplace("0.01"), {}).id
    ledger.close()
    for step in range(1, 100):

        def work(step: int = step) -> None:
            ledger = opened(folder)
            dying(ledger, step)
            ledger.settle(entry, "released", Kept("question", b"answer"))

        died = forked(work)() == -signal.SIGKILL
        ledger = opened(folder)
        settled = any(line.body.get("entry") == entry for line in ledger.entries())
        found.append((settled, len(ledger.stored("default", "question"))))
        ledger.close()
        if not died:
            return found
    raise AssertionError("a settlement without end")


def dying(ledger: Ledger, step: int) -> None:
    """The process dies before the ledger's statement of that number from now on."""
    left, connection = step, ledger._store._connection  # type: ignore[attr-defined]

    def before(*statement: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    if isinstance(connection, sqlite3.Connection):
        connection.set_trace_callback(before)
        return
    execute = connection.execute

    def told(*given: object) -> object:
        before()
        return execute(*given)

    connection.execute = told


def kills(folder: Path, times: int) -> list[object]:
    """So often three threads charge until their process is killed, at no time in particular: what was wrong afterwards."""
    answered, spent, wrong = set[str](), Decimal(0), list[object]()
    for _ in range(times):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            charging(folder, write)
        os.close(write)
        told = os.read(read, 32).decode()  # it is at it
        time.sleep(random.uniform(0, 0.04))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(read) as pipe:
            told += pipe.read()
        answered |= {told[i : i + 32] for i in range(0, len(told), 32)}
        with opened(folder) as ledger:
            charged = {line.id for line in ledger.entries() if line.event == "charged"}
            now = ledger.balance("default").spent.epsilon or Decimal(0)
            wrong += [*(answered - charged), *map(str, ledger.verify())]
            wrong += [] if now == Decimal("0.0001") * len(charged) and now >= spent else [f"{spent} -> {now}"]
            spent = now
    return [len(answered), wrong]


def charging(folder: Path, write: int) -> NoReturn:
    ledger = opened(folder)

    def charge() -> None:
        while True:
            os.write(write, ledger.charge("default", laplace("0.0001"), {}).id.encode())

    for _ in range(2):
        threading.Thread(target=charge).start()
    charge()
    raise AssertionError


def die(folder: Path) -> object:
    def work() -> None:
        opened(folder).charge("default", laplace("0.5"), {})
        os.kill(os.getpid(), signal.SIGKILL)

    return forked(work)()


def fork(folder: Path) -> list[object]:
    ledger = opened(folder)
    ledger.charge("default", laplace("0.1"), {})
    waiting = [forked(lambda: ledger.charge("default", laplace("0.1"), {}).id) for _ in range(3)]
    for _ in range(3):
        ledger.charge("default", laplace("0.1"), {})
    said = [wait() for wait in waiting]
    ledger.charge("default", laplace("0.1"), {})
    return [said, str(ledger.balance("default").spent.epsilon), [str(f) for f in ledger.verify()]]


if __name__ == "__main__":
    task, folder, *rest = sys.argv[1:]
    match task:
        case "race":
            result: object = race(Path(folder), int(rest[0]), int(rest[1]), rest[2])
        case "share":
            result = share(Path(folder), int(rest[0]), float(rest[1]), int(rest[2]))
        case "kill":
            result = kill(Path(folder))
        case "keep":
            result = keep(Path(folder))
        case "kills":
            result = kills(Path(folder), int(rest[0]))
        case "die":
            result = die(Path(folder))
        case "fork":
            result = fork(Path(folder))
    print(json.dumps(result))
