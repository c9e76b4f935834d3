"""Charges whose process died are found and settled, those that somebody attends to are left alone; and an interrupt in the moment of a charge."""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ledger_shop import Shop, laplace

from dpquery.errors import Fault, OverBudget
from dpquery.ledger import Ledger, attendance

BOTH_STORES = True

TOLD = ("charged", "released", "failed", "timeout", "interrupted", "refused")


def events(opened: Ledger) -> list[str]:
    return [line.event for line in opened.entries() if line.event in TOLD]


def test_a_charge_that_nobody_attends_to_any_more_is_settled_as_interrupted(shop: Shop) -> None:
    """By whoever comes next: that a process died may say something about the data, so it counts as a time-out."""
    first = shop.begin()
    second = shop.open(first.schema)
    with first.attended():
        first.settle(first.charge("default", laplace("0.1"), {}).id, "released")
        left = first.charge("default", laplace("0.1"), {}).id
        with second.attended():
            pass
        assert events(second) == ["charged", "released", "charged"], "somebody may still answer it"
    with second.attended():
        assert events(second) == ["charged", "released", "charged", "interrupted"]
    assert list(second.entries())[-1].body["entry"] == left
    assert (second.balance("default").timeouts, second.verify()) == (1, ())
    with first.attended():
        assert events(first).count("interrupted") == 1


def test_each_of_several_attends_to_its_own(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was alone at first does not keep others out, nor does its leaving end what others attend to."""
    first = shop.begin()
    second, third = shop.open(first.schema), shop.open(first.schema)
    waits: list[float] = []
    monkeypatch.setattr("dpquery.ledger.attendance.time.sleep", waits.append)
    with ExitStack() as early:
        early.enter_context(first.attended())
        with second.attended():
            second.charge("default", laplace("0.1"), {})
            early.close()
            with third.attended():
                assert events(third) == ["charged"], "the second may still answer it"
    assert waits == []


def test_dead_processes_lock_an_account_like_time_outs(shop: Shop) -> None:
    opened = shop.begin()
    for _ in range(3):
        with opened.attended():
            opened.charge("default", laplace("0.1"), {})
    with opened.attended(), pytest.raises(OverBudget) as locked:
        opened.charge("default", laplace("0.1"), {})
    assert locked.value.code == "ACCOUNT_LOCKED"


def test_a_killed_process_attends_to_nothing(shop: Shop) -> None:
    opened = shop.begin()
    child = os.fork()
    if child == 0:
        with shop.open(opened.schema).attended():
            opened.charge("default", laplace("0.1"), {})
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    with opened.attended():
        assert events(opened) == ["charged", "interrupted"]


def test_a_child_forked_meanwhile_attends_to_nothing(shop: Shop) -> None:
    """It has the handle too, and lives on."""
    opened = shop.begin()
    reader, writer = os.pipe()
    with opened.attended():
        opened.charge("default", laplace("0.1"), {})
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
    with opened.attended():
        assert events(opened) == ["charged", "interrupted"]
    os.close(writer)
    os.waitpid(child, 0)
    os.close(reader)


@pytest.mark.parametrize("without", ["folder", "locks", "room"])
def test_where_nothing_is_certain_nothing_is_settled_or_held_up(without: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    handle = os.open(tmp_path, os.O_RDONLY)
    match without:
        case "locks":
            monkeypatch.setattr(attendance, "fcntl", None)
        case "room":
            fcntl.flock(handle, fcntl.LOCK_EX)
            monkeypatch.setattr(attendance, "PATIENCE", 0.03)
    with attendance.attended(tmp_path / ("none" if without == "folder" else ""), lambda: called.append(1)):
        assert called == []
    os.close(handle)


def after(monkeypatch: pytest.MonkeyPatch, opened: Ledger, when: str) -> None:
    """An interrupt right before, or right after, the next commit."""
    store: Any = type(opened._store)
    commit = store.commit

    def interrupted(self: object) -> None:
        monkeypatch.setattr(store, "commit", commit)
        if when == "after":
            commit(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "commit", interrupted)


def test_an_interrupt_right_after_the_charge_names_the_entry(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was read: it counts as no time-out."""
    opened = shop.begin()
    after(monkeypatch, opened, "after")
    with pytest.raises(Fault) as told:
        opened.charge("default", laplace("0.1"), {})
    charge = next(line for line in opened.entries() if line.event == "charged")
    assert (told.value.code, told.value.entry, "stays charged" in told.value.message) == ("INTERRUPTED", charge.id, True)
    assert events(opened) == ["charged", "failed"]
    assert (opened.balance("default").entries, opened.balance("default").timeouts) == (1, 0)


def test_an_interrupt_before_the_charge_charges_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = shop.begin()
    after(monkeypatch, opened, "before")
    with pytest.raises(KeyboardInterrupt):
        opened.charge("default", laplace("0.1"), {})
    assert (events(opened), opened.balance("default").entries) == ([], 0)


@pytest.mark.parametrize("dear", [False, True])
def test_what_costs_nothing_adds_little_to_the_log(dear: bool, shop: Shop) -> None:
    """Whoever asks and is refused, for ever, writes a short line each time: the beginning of the statement, its length, its hash."""
    opened = shop.begin()
    text = "SELECT \ud800" + "x" * 100_000
    record = {"code": "ODD", "statement": text, "releases": [{"aggregate": "a" * 1000}] * 100}
    if dear:
        with pytest.raises(OverBudget):
            opened.charge("default", laplace("100"), record)
    else:
        opened.refused("default", record)
    line = list(opened.export())[-1]
    assert len(line) < 1500
    kept = list(opened.entries())[-1].body["record"]
    assert kept["sha256"] == hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    assert (kept["statement"], kept["characters"]) == (text[:200], len(text))
