"""Corners of the ledger: forged logs whose chain holds, files of other makers, systems that fail."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ledger_shop import Shop, gaussian, laplace

from dpquery import ledger
from dpquery.errors import Error, Fault, OverBudget, Refused
from dpquery.ledger import audit, binding, chain, creation, sqlite, tables
from dpquery.ledger.mark import NONE, Mark, written
from dpquery.ledger.model import Amounts, Row
from dpquery.ledger.replay import OLDEST
from dpquery.schema.model import Limits

Body = dict[str, Any]


def log(shop: Shop) -> list[Body]:
    """The bodies of a used ledger's log: made, two charges, the outcome of the first."""
    opened = shop.begin()
    first = opened.charge("default", laplace("0.1"), {})
    opened.charge("default", laplace("0.1"), {})
    opened.settle(first.id, "released")
    return list(bodies(shop.path))


def bodies(path: Path) -> Iterator[Body]:
    with sqlite3.connect(path) as connection:
        yield from (json.loads(body) for (body,) in connection.execute("SELECT body FROM entries ORDER BY seq"))


def forged(entries: list[Body]) -> list[Row]:
    """A log of these entries, as whoever can write the whole file could make it: every link holds."""
    rows: list[Row] = []
    head = (0, chain.START)
    for body in entries:
        rows.append(chain.row(head, body))
        head = (rows[-1].seq, rows[-1].link)
    return rows


def said(rows: list[Row], previous: str = chain.START) -> str:
    return "; ".join(finding.message for finding in audit.findings(rows, {}, audit.Reader(previous)))


def of(entries: list[Body], event: str, place: int = 0) -> Body:
    return [body for body in entries if body["event"] == event][place]


def test_a_log_as_it_is_written_holds(shop: Shop) -> None:
    entries = log(shop)
    assert said(forged(entries)).replace("the stored sums of account", "").count("account") == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda log: [*log, of(log, "charged")], "an id twice"),
        (lambda log: [*log, {**of(log, "created"), "id": "other"}], "created twice"),
        (lambda log: [*log, {**of(log, "released"), "id": "other"}], "a charge with two outcomes"),
        (lambda log: [*log, {**of(log, "released"), "id": "other", "entry": "nobody"}], "an outcome without its charge"),
        (lambda log: [*log, {**of(log, "registered"), "id": "other", "version": 7}], "data versions out of order"),
        (lambda log: [*log, {**of(log, "refused"), "id": "other", "event": "forgiven"}], "an event that this format does not have"),
        (lambda log: [*log, {**of(log, "account"), "id": "other"}], "an account that exists is made again"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_forged_log_is_found_out(shop: Shop, wrong: Callable[[list[Body]], list[Body]], words: str) -> None:
    opened = shop.begin()
    opened.refused("default", {"statement": "x", "code": "SYNTAX"})
    first = opened.charge("default", laplace("0.1"), {})
    opened.settle(first.id, "released")
    entries = list(bodies(shop.path))
    assert words in said(forged(wrong(entries)))
    assert words not in said(forged(entries))


def test_a_log_that_begins_in_the_middle_needs_its_sums(shop: Shop) -> None:
    entries = log(shop)
    assert "no balance to start from" in said(forged([of(entries, "charged")]), previous="11" * 32)


CHARGE = {"event": "charged", "analyst": "alice", "accounts": ["analyst:alice", "dataset"], "rho": "9", "delta": "0", "record": {}}
SHOWN = {**CHARGE, "event": "shown", "accounts": ["analyst:alice"], "epsilon": "0.5"}
RENEWED = {"event": "renewed", "account": "analyst:alice", "times": 1}


@pytest.mark.parametrize(
    ("added", "words"),
    [
        ([{**RENEWED, "period": 1}, {**RENEWED, "period": 1}], "a period that does not follow"),
        ([{**RENEWED, "period": 0}], "a period that does not follow"),
        ([{**RENEWED, "period": 1, "times": 0}], "a renewal of no period"),
        ([{**RENEWED, "period": 1, "account": "analyst:bob"}], "a period that does not follow"),
        ([{"event": "lapsed", "account": "analyst:bob", "period": 1}], "a period that does not follow"),
        ([{**RENEWED, "period": 9, "times": 9}], "add up to more than any cap that the data set ever had"),
        ([{"event": "granted", "account": "analyst:bob", "epsilon": "7", "delta": "0"}], "add up to more than any cap that the data set ever had"),
        ([{"event": "granted", "account": "analyst:bob", "epsilon": "-7", "delta": "0"}], "no amount as it is written here"),
        ([{**CHARGE, "epsilon": "1"}, {**CHARGE, "epsilon": "0.5"}, {**RENEWED, "period": 1}], "more was spent in a period than its largest cap"),
        ([{"event": "upgraded", "format": 2}], "formats out of order"),
        ([{**SHOWN, "of": "nobody"}], "a stored answer is shown that is none"),
    ],
)
def test_grants_and_periods_that_could_not_be_are_found_out(shop: Shop, added: list[Body], words: str) -> None:
    shop.begin(analysts={"alice": ("1", "0", 30), "bob": ("1", "0")})
    entries = list(bodies(shop.path))
    forgery = [{"time": "2999-01-01T00:00:00Z", **body, "id": str(i)} for i, body in enumerate(added)]
    assert words in said(forged([*entries, *forgery]))
    assert words not in said(forged(entries))


def test_an_old_format_has_no_events_of_a_later_one(shop: Shop) -> None:
    shop.begin()
    entries = list(bodies(shop.path))
    assert "an event that its format does not have" not in said(forged(entries))
    of(entries, "created")["format"] = OLDEST
    assert "an event that its format does not have" in said(forged(entries))


def test_a_dearer_answer_is_not_shown_at_a_cheaper_price(shop: Shop) -> None:
    opened = shop.begin(analysts={"alice": ("1", "0"), "bob": ("1", "0")})
    entry = opened.charge("alice", laplace("0.5"), {}).id
    opened.settle(entry, "released", ledger.Kept("question", b"answer"))
    opened.charge("bob", laplace("0.5"), {}, of=entry)
    entries = list(bodies(shop.path))
    assert "is shown" not in said(forged(entries))
    of(entries, "shown")["epsilon"] = "0.25"
    assert "or for another price than it cost" in said(forged(entries))


def test_more_was_spent_than_any_cap_allowed(shop: Shop) -> None:
    entries = log(shop)
    charge = of(entries, "charged")
    dear = [{**charge, "id": str(i), "epsilon": "2", "rho": "2"} for i in range(9)]
    assert "has spent more than any cap it ever had" in said(forged([*entries, *dear]))


# ---- files -----------------------------------------------------------------------------------------------------------------------------


def fault(work: Callable[[], object]) -> Fault:
    with pytest.raises(Fault) as caught:
        work()
    return caught.value


def test_a_ledger_of_a_newer_dpquery_is_left_alone(shop: Shop) -> None:
    schema = shop.schema()
    shop.create(schema)
    with sqlite3.connect(shop.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    told = fault(lambda: shop.open(schema))
    assert (told.code, told.instead) == ("LEDGER_FAILED", "upgrade dpquery")
    assert fault(lambda: ledger.verify(shop.path)).code == "LEDGER_FAILED"


class Answers:
    """A connection whose every statement gives one row."""

    def __init__(self, value: object) -> None:
        self.value = value

    def execute(self, _: str) -> Answers:
        return self

    def fetchone(self) -> tuple[object]:
        return (self.value,)


def test_a_file_system_without_a_write_ahead_log_is_a_fault() -> None:
    told = fault(lambda: sqlite._durable(Answers("delete")))  # type: ignore[arg-type]
    assert "the file system does not allow a write-ahead log" in told.message


def raising(error: BaseException) -> Callable[..., Any]:
    def work(*given: object, **named: object) -> Any:
        raise error

    return work


def test_a_lock_that_the_file_system_reports_is_a_fault_of_its_own(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = sqlite3.OperationalError("database is locked")
    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
    for error, code in ((busy, "LEDGER_LOCKED"), (OSError(errno.EIO, "Input/output error"), "LEDGER_FAILED")):
        if not shop.path.exists():
            shop.begin()
        opened = shop.open(shop.schema(), wait=0.3)
        with monkeypatch.context() as patch:
            patch.setattr(tables.Tables, "accounts", raising(error))
            assert fault(opened.balances).code == code


def test_without_a_current_folder_a_ledger_is_missing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "absolute", raising(FileNotFoundError(errno.ENOENT, "No such file or directory")))
    assert fault(lambda: ledger.verify(Path("some.ledger"))).code == "LEDGER_MISSING"


def test_a_child_leaves_its_parents_connection_alone(shop: Shop) -> None:
    """What the child of a fork does, done here: a connection is of the process that made it."""
    opened = shop.begin()
    opened.charge("default", laplace("0.1"), {})
    store = opened._store
    assert isinstance(store, sqlite.SqliteStore)
    inherited = store._connection
    store._process = -1
    opened.charge("default", laplace("0.1"), {})
    assert store._connection is not inherited
    assert inherited in store._inherited


def test_a_child_of_a_process_that_had_no_connection_makes_its_own(shop: Shop) -> None:
    store = shop.begin()._store
    assert isinstance(store, sqlite.SqliteStore)
    store.close()
    store._process = -1
    store._after_fork()
    assert (store._process, store._inherited) == (os.getpid(), [])


def test_a_writer_that_cannot_connect_yet_tries_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first transaction after a fork, while another process tidies the write-ahead log away."""
    store = (opened := shop.begin())._store
    assert isinstance(store, sqlite.SqliteStore)
    store.close()
    busy, connect = sqlite3.OperationalError("database is locked"), sqlite._connect
    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
    answers = [raising(busy), raising(busy), connect]
    monkeypatch.setattr(sqlite, "_connect", lambda path: answers.pop(0)(path))
    opened._store.write(lambda tx: tx.head())
    assert answers == []


def test_errors_of_sqlite_outside_a_transaction_are_faults_too() -> None:
    busy = sqlite3.OperationalError("database is locked")
    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY

    def connecting() -> None:
        with sqlite._faults():
            raise busy

    assert fault(connecting).code == "LEDGER_LOCKED"


def test_a_path_that_the_system_refuses_is_a_fault(tmp_path: Path) -> None:
    told = fault(lambda: sqlite._file(tmp_path / ("x" * 300)))
    assert told.code == "LEDGER_FAILED"


def test_a_mark_that_cannot_be_read_names_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "id"
    place.write_text(written((7, "11" * 32)))
    assert Mark([place]).head() == (7, "11" * 32)
    with monkeypatch.context() as patch:
        patch.setattr(os, "read", raising(OSError(errno.EIO, "Input/output error")))
        found = Mark([place]).head()
    assert found == NONE


def test_a_ledger_of_other_data_is_found_out(shop: Shop) -> None:
    shop.begin()
    assert ledger.verify(shop.path, schema=shop.schema()) == ()
    binding.places(shop.schema())[0].write_text(f"dpquery ledger {'0' * 32}\n")
    (found,) = ledger.verify(shop.path, schema=shop.schema())
    assert "the data belongs to another ledger" in found.message


# ---- a new ledger's place ----------------------------------------------------------------------------------------------------------------


def test_a_file_system_without_hard_links_takes_a_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", raising(OSError(errno.EPERM, "Operation not permitted")))
    draft, where = tmp_path / "draft", tmp_path / "made"
    draft.write_text("new")
    creation._place(draft, where)
    assert (where.read_text(), draft.exists()) == ("new", False)
    draft.write_text("newer")
    with pytest.raises(Refused) as caught:
        creation._place(draft, where)
    assert caught.value.code == "LEDGER_EXISTS"
    assert where.read_text() == "new"


def test_a_ledgers_name_that_another_took_meanwhile_is_left(tmp_path: Path) -> None:
    draft, where = tmp_path / "draft", tmp_path / "made"
    draft.write_text("new")
    where.write_text("old")
    with pytest.raises(Refused):
        creation._place(draft, where)
    assert where.read_text() == "old"


def test_a_folder_that_cannot_be_written_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = tmp_path / "draft"
    draft.write_text("new")
    monkeypatch.setattr(os, "link", raising(OSError(errno.EROFS, "Read-only file system")))
    monkeypatch.setattr(os, "rename", raising(OSError(errno.EROFS, "Read-only file system")))
    assert fault(lambda: creation._place(draft, tmp_path / "made")).code == "LEDGER_FAILED"


def test_two_ledgers_that_bind_a_source_at_once(tmp_path: Path) -> None:
    place, written = tmp_path / "id", list[Path]()
    binding._write(place, "one", written)
    with pytest.raises(Error) as caught:
        binding._write(place, "two", written)
    assert place.read_text() == "one"
    assert written == [place]
    assert caught.value.instead


# ---- what fits -------------------------------------------------------------------------------------------------------------------------


def told(work: Callable[[], object]) -> str:
    with pytest.raises(OverBudget) as caught:
        work()
    assert caught.value.instead
    return caught.value.instead


def test_what_is_left_of_delta_is_said(shop: Shop) -> None:
    opened = shop.begin()
    opened.charge("default", laplace("0.1", "3e-7"), {})
    assert "what is left of delta for private keys is 2" in told(lambda: opened.charge("default", laplace("0.1", "4e-7"), {}))


def test_gaussian_noise_never_fits_without_delta(shop: Shop) -> None:
    opened = shop.begin(budget=("8", "0"))
    assert "Gaussian noise never fits: the account was made with delta 0" in told(lambda: opened.charge("default", gaussian("0.1"), {}))


def test_nothing_fits_into_a_locked_account(shop: Shop) -> None:
    opened = shop.begin(limits=Limits(timeouts_per_account=1))
    assert opened.room("default").count(Amounts.of(laplace("0.1"))) > 0
    opened.settle(opened.charge("default", laplace("0.1"), {}).id, "timeout")
    assert opened.room("default").count(Amounts.of(laplace("0.1"))) == 0
