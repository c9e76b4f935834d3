"""A ledger under attack: what was spent never shrinks, and whoever altered the file gets no answer out of it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from attack_lab import ORDINARY, code, made, opened

import dpquery
from dpquery.engine import verify_ledger
from dpquery.errors import Fault
from dpquery.ledger.formats import TABLES

COUNT = "SELECT count(*) AS n FROM people"
EDITS = {
    "sums": "UPDATE accounts SET epsilon = '0', rho = '0'",
    "caps": "UPDATE accounts SET cap_epsilon = '1000', largest_epsilon = '1000'",
    "one account": "UPDATE accounts SET rho = '0' WHERE key = 'dataset'",
    "an account more": "INSERT INTO accounts SELECT 'analyst:eve', kind, 'eve', member_of, tested, cap_epsilon, cap_delta, largest_epsilon, "
    "largest_delta, delta_conv, '0', '0', '0', 0, 0, 0, '0', '0', NULL FROM accounts WHERE key = 'analyst:default'",
    "a line more": "INSERT INTO entries SELECT seq + 1, 'x', event, NULL, body, link FROM entries ORDER BY seq DESC LIMIT 1",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return made(tmp_path, more=ORDINARY)


def edited(file: Path, statement: str) -> None:
    with sqlite3.connect(file.with_suffix(".ledger")) as con:
        con.execute(statement)
    con.close()


@pytest.mark.parametrize("statement", EDITS.values(), ids=EDITS)
def test_a_ledger_that_is_altered_while_it_is_open_refuses_at_once(statement: str, file: Path) -> None:
    """The sums were held against the log when the ledger was opened only: a notebook that was open went on, up to any cap."""
    with opened(file) as session:
        assert code(session, COUNT) == "answered"
        edited(file, statement)
        if statement == EDITS["an account more"]:
            with pytest.raises(Fault):
                session.ledger.balances()
        else:
            assert code(session, COUNT) == "LEDGER_CORRUPT"
            assert code(session, COUNT) == "LEDGER_CORRUPT"
    assert verify_ledger(file)


def test_what_others_charge_meanwhile_counts(file: Path) -> None:
    with opened(file) as one, opened(file) as other:
        for session in (one, other, other, one):
            assert code(session, COUNT, fresh=True) == "answered"
        assert one.budget().spent == other.budget().spent
        assert one.budget().entries == 4
    assert not verify_ledger(file)


def test_a_ledger_with_two_names_is_not_opened(file: Path) -> None:
    """Locks and log of SQLite lie beside each name, so that two processes would overwrite each other's charges."""
    ledger = file.with_suffix(".ledger")
    os.link(ledger, ledger.with_name("twin"))
    for name in (ledger, ledger.with_name("twin")):
        with pytest.raises(Fault) as caught:
            dpquery.connect(file, ledger=name).budget()
        assert caught.value.code == "LEDGER_FAILED"
        assert "hard links" in caught.value.message
        assert f"remove the others: `find DIR -samefile {name.name}`" in (caught.value.instead or "")
    ledger.with_name("twin").unlink()
    assert dpquery.connect(file).budget().entries == 0


def test_a_symbolic_link_is_the_ledger_it_leads_to(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file.with_suffix(".ledger"))
    with dpquery.connect(file, ledger=link) as one, dpquery.connect(file) as other:
        one.query(COUNT, epsilon="0.5")
        other.query(COUNT, epsilon="0.25")
        assert str(one.budget().spent.epsilon) == str(other.budget().spent.epsilon) != "0"
    assert not verify_ledger(file)


def test_a_relative_ledger_stays_where_it_was_when_named(
    file: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook that changed its folder lost its ledger, or went on with another one that lay there."""
    monkeypatch.chdir(file.parent)
    con = dpquery.connect(file.name, ledger="lab.ledger")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shutil.copy(file.with_suffix(".ledger"), elsewhere)
    monkeypatch.chdir(elsewhere)
    con.query(COUNT, epsilon="0.1")
    assert con.budget().entries == 1
    con.close()
    assert dpquery.connect(file).budget().entries == 1


@pytest.mark.parametrize("place", [lambda folder: folder, lambda folder: folder / "fifo"], ids=["folder", "fifo"])
def test_what_is_no_file_is_no_ledger(place: Callable[[Path], Path], file: Path) -> None:
    os.mkfifo(file.parent / "fifo")
    with pytest.raises(Fault) as caught:
        dpquery.connect(file, ledger=place(file.parent)).budget()
    assert caught.value.code == "LEDGER_FAILED"
    assert "no file" in caught.value.message


STAYS = next(table for table in TABLES if "entries_stay" in table)


def rewritten(body: str, line: int) -> str:
    return f"DROP TRIGGER entries_stay; UPDATE entries SET body = '{body}' WHERE seq = {line}; {STAYS}"


TAMPERED = {
    "an amount without end": "UPDATE accounts SET epsilon = '1e999999999'",
    "an amount as long as a book": f"UPDATE accounts SET rho = '{'9' * 5000}'",
    "a body that recurses": rewritten("[" * 100_000, 1),
    "a body that recurses in words": rewritten('{"a":' * 50_000, 3),
    "a body of another kind": rewritten("[]", 2),
    "no key of the owner's": "DELETE FROM secret",
    "half a key": "UPDATE secret SET value = x'00'",
    "a table more": "CREATE TABLE more (x)",
    "a trigger more": "CREATE TRIGGER evil AFTER INSERT ON entries BEGIN UPDATE accounts SET epsilon = '0'; END",
    "another format": "PRAGMA user_version = 0",
}


def test_a_ledger_made_to_break_its_reader_is_corrupt(file: Path) -> None:
    """Decimals without end and bodies that recurse came out as Python's own errors, also from `verify`."""
    ledger = file.with_suffix(".ledger")
    good = ledger.read_bytes()
    for name, statements in TAMPERED.items():
        ledger.write_bytes(good)
        con = sqlite3.connect(ledger)
        con.executescript(statements)
        con.close()
        assert verify_ledger(file), name
        with opened(file) as session:
            assert code(session, COUNT) == "LEDGER_CORRUPT", name


def test_a_version_that_never_was_is_not_believed(file: Path) -> None:
    with dpquery.connect(file) as con:
        assert con.query(COUNT, epsilon="0.1").receipt["data_version"] == 1
    edited(file, "UPDATE seen SET line = (SELECT id FROM entries WHERE event = 'registered')")
    with dpquery.connect(file) as con, pytest.raises(Fault) as caught:
        con.query(COUNT, epsilon="0.1")
    assert caught.value.code == "LEDGER_CORRUPT"
    assert "which files" in str(verify_ledger(file)[0])
