"""The gate in which processes wait to write: one at a time tries, whoever has written goes behind, and nothing depends on it but who is next."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ledger_shop import Shop, laplace

from dpquery.errors import Fault
from dpquery.ledger import gate
from dpquery.ledger.gate import Gate
from dpquery.ledger.group import Busy
from dpquery.ledger.sqlite import SqliteStore


def test_who_has_just_written_cannot_write_again_before_one_who_waits(shop: Shop) -> None:
    schema = shop.begin().schema
    one, other = shop.open(schema)._store, shop.open(schema)._store
    assert isinstance(one, SqliteStore)
    assert isinstance(other, SqliteStore)
    one.begin()
    with pytest.raises(Busy):
        other.begin()
    one.commit()
    with pytest.raises(Busy):
        one.begin()  # though nobody writes: the other holds the gate
    other.begin()
    other.commit()
    one.begin()
    one.commit()


def test_who_gives_up_holds_nobody_up(shop: Shop) -> None:
    schema = shop.begin().schema
    hasty, patient = shop.open(schema, wait=0.01), shop.open(schema)
    writer = sqlite3.connect(shop.path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with pytest.raises(Fault, match="LEDGER_LOCKED"):
        hasty.charge("default", laplace("0.1"), {})
    writer.execute("ROLLBACK")
    writer.close()
    assert patient.charge("default", laplace("0.1"), {}).id


def test_the_dead_leave_the_gate(tmp_path: Path) -> None:
    mine = Gate(tmp_path / "a.ledger")
    child = os.fork()
    if child == 0:
        Gate(tmp_path / "a.ledger").passed()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert mine.passed()
    assert mine.held


def test_a_child_has_a_gate_of_its_own(tmp_path: Path) -> None:
    """What it inherited is the parent's: it neither holds nor opens that."""
    mine = Gate(tmp_path / "a.ledger")
    assert mine.passed()
    child = os.fork()
    if child == 0:
        os._exit(10 * mine.passed() + mine.held)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not Gate(tmp_path / "a.ledger").passed()
    mine.leave()
    assert Gate(tmp_path / "a.ledger").passed()


def test_a_child_shuts_what_it_inherited(tmp_path: Path) -> None:
    """What the child of a fork does, done here."""
    mine = Gate(tmp_path / "a.ledger")
    assert mine.passed()
    mine._process = -1
    mine.leave()
    assert (mine.held, mine._handle) == (False, None)
    assert mine.passed()
    assert mine.held


def test_its_file_stays_while_another_is_at_it(tmp_path: Path) -> None:
    one, other = Gate(tmp_path / "a.ledger"), Gate(tmp_path / "a.ledger")
    assert one.passed()
    other.close()
    assert [*tmp_path.iterdir()]
    one.close()
    assert not [*tmp_path.iterdir()]


def test_a_gate_that_stays_shut_is_climbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, other = Gate(tmp_path / "a.ledger"), Gate(tmp_path / "a.ledger")
    assert stuck.passed()
    assert not other.passed()
    monkeypatch.setattr(gate, "PATIENCE", 0.0)
    assert other.passed()
    assert not other.held


def failing(*given: Any) -> Any:
    raise PermissionError


@pytest.mark.parametrize("without", ["locks", "file"])
def test_without_a_gate_all_try(without: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Gate(tmp_path / "a.ledger"), Gate(tmp_path / "a.ledger")
    hidden: Callable[[], None] = {
        "locks": lambda: monkeypatch.setattr(gate, "fcntl", None),
        "file": lambda: monkeypatch.setattr("dpquery.ledger.gate.os.open", failing),
    }[without]
    hidden()
    assert one.passed()
    assert other.passed()
    one.close()


def test_its_file_is_made_anew_after_another_took_it_away(tmp_path: Path) -> None:
    early, late = Gate(tmp_path / "a.ledger"), Gate(tmp_path / "a.ledger")
    assert early.passed()
    early.leave()
    late.close()
    assert list(tmp_path.iterdir()) == []
    early.passed()
    assert early.passed()
    assert early.held
    assert not Gate(tmp_path / "a.ledger").passed()
    early.close()
    assert list(tmp_path.iterdir()) == []
