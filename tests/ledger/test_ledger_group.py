"""Works that share a transaction: each whole or not at all, none answered before the commit, whatever fails or interrupts."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from ledger_shop import Shop, laplace

from dpquery.errors import Fault, OverBudget
from dpquery.ledger import Ledger, group
from dpquery.ledger.sqlite import SqliteStore
from dpquery.ledger.tables import Lost

BOTH_STORES = True

Commit = Callable[[Any], None]
Second = Callable[[Commit, Any], None]


class Held:
    """Holds the first commit until so many wait, so that all of those share the second; counts commits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, opened: Ledger, waiting: int, second: Second | None = None) -> None:
        self.store: Any = opened._store
        self.commits = 0
        self.under_way = threading.Event()
        self._waiting, self._second = waiting, second
        kind: Any = type(self.store)
        commit = kind.commit

        def held(store: Any) -> None:
            self.commits += 1
            if self.commits == 1:
                self.under_way.set()
                self._until_all_wait()
            if self.commits == 2 and self._second is not None:
                self._second(commit, store)
            else:
                commit(store)

        monkeypatch.setattr(kind, "commit", held)

    def _until_all_wait(self) -> None:
        for _ in range(2000):
            if len(self.store._group._members) > self._waiting:
                return
            time.sleep(0.001)
        raise AssertionError("they do not come")


def gathered(opened: Ledger, charges: int, held: Held | None = None) -> list[Future[str]]:
    """One charge in a transaction of its own, and so many in the next."""
    with ThreadPoolExecutor(charges + 1) as pool:
        first = pool.submit(lambda: opened.charge("default", laplace("0.1"), {}).id)
        if held is not None:
            held.under_way.wait(10)
        return [first, *(pool.submit(lambda: opened.charge("default", laplace("0.1"), {}).id) for _ in range(charges))]


def events(opened: Ledger) -> list[str]:
    return [line.event for line in opened.entries() if line.event in ("charged", "refused")]


def test_charges_of_threads_share_a_transaction(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = shop.begin()
    held = Held(monkeypatch, opened, 7)
    entries = {done.result() for done in gathered(opened, 7, held)}
    assert (len(entries), held.commits) == (8, 2)
    assert (str(opened.balance("default").spent.epsilon), opened.verify()) == ("0.8", ())


def test_the_leader_waits_for_as_many_as_came_last_time(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a moment: threads that ask again at once would come one short each time."""
    opened = shop.begin()
    held = Held(monkeypatch, opened, 0)
    held.store._group._together, held.store._group._patience = 2, 5.0
    assert len({done.result() for done in gathered(opened, 1)}) == 2
    assert held.commits == 1
    opened.charge("default", laplace("0.1"), {})
    assert held.store._group._patience <= group.LONGEST


def test_a_transaction_takes_no_more_than_so_many(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = shop.begin()
    monkeypatch.setattr(group, "MOST", 2)
    held = Held(monkeypatch, opened, 4)
    assert len({done.result() for done in gathered(opened, 4, held)}) == 5
    assert held.commits == 3


def test_of_charges_in_one_transaction_no_more_are_granted_than_fit(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is tested against the sums that the ones before it left, though none of them is on the disk yet."""
    opened = shop.begin(budget=("0.5", "0"))
    held = Held(monkeypatch, opened, 9)
    told = [done.exception() for done in gathered(opened, 9, held)]
    assert [type(one) for one in told].count(OverBudget) == 5
    assert held.commits == 2
    assert (events(opened).count("charged"), str(opened.balance("default").spent.epsilon), opened.verify()) == (5, "0.5", ())


def test_a_work_that_fails_leaves_nothing_and_the_others_stand(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = shop.begin()
    held = Held(monkeypatch, opened, 3)
    lines = iter(range(100))
    put = group.Tables.put

    def failing(tx: group.Tables, account: object) -> None:
        put(tx, account)  # type: ignore[arg-type]
        if next(lines) == 4:  # an account of the third charge, after its line was written
            tx._execute("SELECT * FROM nothing", ())

    monkeypatch.setattr(group.Tables, "put", failing)
    told = [done.exception() for done in gathered(opened, 3, held)]
    assert [one.code for one in told if isinstance(one, Fault)] == ["LEDGER_CORRUPT"]
    assert (events(opened), str(opened.balance("default").spent.epsilon), opened.verify()) == (["charged"] * 3, "0.3", ())


def test_where_the_commit_fails_nobody_is_answered_and_nothing_is_charged(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = shop.begin()

    def full(commit: Commit, store: Any) -> None:
        error = sqlite3.OperationalError("disk full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error if isinstance(store, SqliteStore) else psycopg.errors.DiskFull()

    held = Held(monkeypatch, opened, 4, full)
    told = [done.exception() for done in gathered(opened, 4, held)]
    faults = [one for one in told if isinstance(one, Fault)]
    assert [one.code for one in faults] == ["LEDGER_FAILED"] * 4
    assert len({id(one) for one in faults}) == 4
    assert events(opened) == ["charged"]
    assert [done.exception() for done in gathered(opened, 1)] == [None, None], "what was undone does not confuse it"
    assert (str(opened.balance("default").spent.epsilon), opened.verify()) == ("0.3", ())


@pytest.mark.parametrize("done", [False, True])
def test_who_leads_is_interrupted_and_the_others_are_answered(done: bool, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right before the commit, or right after: each charge is made once, and only the interrupted one hears of the interrupt."""
    opened = shop.begin()

    def interrupted(commit: Commit, store: Any) -> None:
        if done:
            commit(store)
        raise KeyboardInterrupt

    held = Held(monkeypatch, opened, 3, interrupted)
    told = [one.exception() for one in gathered(opened, 3, held)]
    assert [repr(one) for one in told].count("None") == 3
    assert [type(one) for one in told if one is not None] == [Fault if done else KeyboardInterrupt]
    assert (events(opened), opened.verify()) == (["charged"] * (4 if done else 3), ())


@pytest.mark.parametrize("taken", [False, True])
def test_who_waits_is_interrupted(taken: bool, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its work is under way nothing is charged; later the charge stands, and the interrupt names it."""
    opened = shop.begin()
    store: Any = opened._store
    kind: Any = type(store)
    under_way, leave = threading.Event(), threading.Event()
    commit, wait = kind.commit, threading.Event.wait

    def held(one: Any) -> None:
        monkeypatch.setattr(kind, "commit", commit)
        under_way.set()
        leave.wait(10)
        commit(one)

    def interrupted(event: threading.Event, timeout: float | None = None) -> bool:
        if threading.current_thread().name == "waits" and timeout is None:
            while taken and (members := [*store._group._members]) and not members[-1].taken:
                time.sleep(0.001)
            raise KeyboardInterrupt
        return wait(event, timeout)

    told: list[BaseException] = []

    def asks() -> None:
        try:
            opened.charge("default", laplace("0.1"), {})
        except BaseException as error:
            told.append(error)

    leads, waits = threading.Thread(target=asks, name="leads"), threading.Thread(target=asks, name="waits")
    if not taken:
        monkeypatch.setattr(kind, "commit", held)
        leads.start()
        under_way.wait(10)
        monkeypatch.setattr(threading.Event, "wait", interrupted)
        waits.start()
        waits.join(0.05)
        leave.set()
    else:
        monkeypatch.setattr(threading.Event, "wait", interrupted)
        with store._turn:
            leads.start()
            while not store._group._members:
                time.sleep(0.001)
            waits.start()
            while len(store._group._members) < 2:
                time.sleep(0.001)
    leads.join()
    waits.join()
    assert [type(one) for one in told] == [Fault if taken else KeyboardInterrupt]
    assert (events(opened), opened.verify()) == (["charged"] * (2 if taken else 1), ())
    assert not store._group._members


def test_what_must_not_be_left_half_done_is_done_before_an_interrupt_leaves() -> None:
    tries = iter([KeyboardInterrupt(), KeyboardInterrupt(), None])
    done: list[int] = []

    def work() -> None:
        interrupt = next(tries)
        if interrupt is not None:
            raise interrupt
        done.append(1)

    with pytest.raises(KeyboardInterrupt):
        group._surely(work)
    assert done == [1]
    with pytest.raises(ZeroDivisionError):
        group._surely(lambda: done.append(1 // 0))


@pytest.mark.parametrize(("raised", "leaves"), [(ValueError, Lost), (KeyboardInterrupt, KeyboardInterrupt)])
def test_a_work_whose_savepoint_is_gone_loses_the_transaction(raised: type[BaseException], leaves: type[BaseException]) -> None:
    def execute(statement: str, values: object) -> Any:
        if statement.startswith("ROLLBACK"):
            raise sqlite3.OperationalError("no such savepoint")

    def work(tx: group.Tables) -> None:
        raise raised

    with pytest.raises(leaves):
        group.Tables(execute).attempted(work)


def test_one_who_waits_too_long_makes_room_for_the_next(shop: Shop) -> None:
    schema = shop.begin().schema
    opened = shop.open(schema, wait=0.05)
    other: Any = shop.connect()
    other.execute("BEGIN; LOCK TABLE turn IN EXCLUSIVE MODE" if isinstance(shop.place, str) else "BEGIN IMMEDIATE")
    told = [done.exception() for done in gathered(opened, 2)]
    assert [one.code for one in told if isinstance(one, Fault)] == ["LEDGER_LOCKED"] * 3
    other.execute("ROLLBACK")
    other.close()
    assert opened.charge("default", laplace("0.1"), {}).id
