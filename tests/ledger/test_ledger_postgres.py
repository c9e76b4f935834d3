"""A ledger in PostgreSQL: commits that are not answered, servers that do not keep what they are told, changed tables; and what is said of it."""

from __future__ import annotations

import builtins
import logging
import os
import subprocess
from collections.abc import Callable
from typing import Any

import postgres
import psycopg
import pytest
from ledger_shop import Shop, laplace

from dpquery import ledger
from dpquery.errors import Error, Fault, Refused
from dpquery.ledger import Ledger, binding, migrations, presence, server
from dpquery.ledger.migrations import Migration
from dpquery.ledger.model import Row
from dpquery.ledger.postgres import PostgresStore
from dpquery.ledger.tables import Tables
from dpquery.schema.address import Address, holds_password, place

DATABASE_ALONE = True
PASSWORD = "geheim"


def fault(work: Callable[[], object]) -> Fault:
    with pytest.raises(Fault) as caught:
        work()
    assert caught.value.__cause__ is None
    assert caught.value.instead
    assert PASSWORD not in repr(caught.value.as_dict())
    return caught.value


def store(opened: Ledger) -> PostgresStore:
    assert isinstance(opened._store, PostgresStore)
    return opened._store


def charge(opened: Ledger) -> str:
    return opened.charge("default", laplace("0.1"), {}).id


def charges(opened: Ledger) -> list[str]:
    return [line.id for line in opened.entries() if line.event == "charged"]


def end(shop: Shop, opened: Ledger) -> None:
    """The server ends the connection."""
    connection = store(opened)._connection
    assert connection is not None
    with shop.connect() as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (connection.info.backend_pid,))


# ---- connections that break --------------------------------------------------------------------------------------------------------------


def test_a_connection_that_broke_meanwhile_is_made_anew(shop: Shop) -> None:
    opened = shop.begin()
    charge(opened)
    end(shop, opened)
    charge(opened)
    end(shop, opened)
    assert (opened.balance("default").entries, opened.verify()) == (2, ())


def test_a_connection_that_breaks_under_way_charges_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the midst of a charge: the transaction is lost with all that was in it."""
    opened = shop.begin()
    append = Tables.append

    def broken(tx: Tables, row: Row) -> None:
        monkeypatch.undo()
        append(tx, row)
        end(shop, opened)
        append(tx, row)

    monkeypatch.setattr(Tables, "append", broken)
    assert fault(lambda: charge(opened)).code == "LEDGER_FAILED"
    assert charges(opened) == []
    assert charge(opened) in charges(opened)
    assert opened.verify() == ()


@pytest.mark.parametrize("done", [False, True])
def test_a_commit_that_is_not_answered_is_looked_up(done: bool, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Done, it is a charge like any other; not done, nothing was charged."""
    opened = shop.begin()
    commit = PostgresStore.commit

    def unanswered(one: PostgresStore) -> None:
        monkeypatch.undo()
        if done:
            commit(one)
        end(shop, opened)
        commit(one)

    monkeypatch.setattr(PostgresStore, "commit", unanswered)
    if done:
        assert charge(opened) in charges(opened)
    else:
        assert fault(lambda: charge(opened)).code == "LEDGER_FAILED"
    assert len(charges(opened)) == done
    charge(opened)
    assert opened.verify() == ()


@pytest.mark.parametrize("answer", [psycopg.OperationalError("no"), Fault("LEDGER_FAILED", "no", instead="x")])
def test_where_nobody_can_say_whether_it_was_charged_that_is_said(answer: Exception, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """And there is no answer, though the charge stands: it is settled like that of a process that died."""
    opened = shop.begin()
    commit = PostgresStore.commit

    def lost(one: PostgresStore) -> None:
        commit(one)
        raise psycopg.OperationalError

    def silent(*given: object) -> None:
        raise answer

    with monkeypatch.context() as patch:
        patch.setattr(PostgresStore, "commit", lost)
        patch.setattr(PostgresStore, "holds", _holds(silent))
        told = fault(lambda: charge(opened))
    assert "the log says whether it was charged" in told.message
    assert len(charges(opened)) == 1
    with opened.attended():
        assert [line.event for line in opened.entries()][-1] == "interrupted"


def _holds(silent: Callable[..., None]) -> Callable[[PostgresStore, str], bool]:
    holds = PostgresStore.holds

    def asked(one: PostgresStore, entry: str) -> bool:
        one._begun = silent  # type: ignore[method-assign]
        try:
            return holds(one, entry)
        finally:
            del one._begun  # type: ignore[method-assign]

    return asked


def test_a_commit_of_a_transaction_that_failed_is_no_commit(shop: Shop) -> None:
    """The server answers it with ROLLBACK, and no error."""
    one = store(shop.begin())
    tx = one.begin()
    with pytest.raises(psycopg.Error):
        tx._execute("SELECT * FROM nothing", ())
    assert fault(one.commit).code == "LEDGER_FAILED"


def test_a_child_leaves_its_parents_connections_alone(shop: Shop) -> None:
    """What the child of a fork does, done here."""
    opened = shop.begin()
    charge(opened)
    one = store(opened)
    inherited, one._process = one._connection, -1
    charge(opened)
    assert one._connection is not inherited
    assert inherited in one._inherited
    assert one._process == os.getpid()


def test_threads_of_a_process_attend_together(shop: Shop) -> None:
    opened = shop.begin()
    one, other = store(opened), store(shop.open(opened.schema))
    alone: list[str] = []
    with one.attended(lambda: alone.append("first")):
        with one.attended(lambda: alone.append("second")):
            pass
        with other.attended(lambda: alone.append("other")):
            pass
    with other.attended(lambda: alone.append("later")):
        pass
    assert alone == ["first", "later"]


def test_where_no_lock_is_to_be_had_nothing_is_held_up(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = shop.begin()
    charge(opened)

    def refusing(*given: object) -> None:
        raise psycopg.OperationalError

    monkeypatch.setattr(presence, "connect", refusing)
    with opened.attended():
        charge(opened)
    monkeypatch.undo()
    one = store(opened)._presence
    with opened.attended():
        assert one._connection is not None
        end_presence(shop, one)
    assert one._connection is None


def end_presence(shop: Shop, one: presence.Presence) -> None:
    assert one._connection is not None
    with shop.connect() as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (one._connection.info.backend_pid,))


def test_a_lock_that_another_holds_for_long_is_not_waited_for(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = shop.begin()
    monkeypatch.setattr(presence, "PATIENCE", 0.03)
    called: list[int] = []
    with shop.connect() as other:
        other.execute(f"SELECT pg_advisory_lock({presence.KEY})")
        with store(opened).attended(lambda: called.append(1)):
            pass
    assert called == []


# ---- servers ----------------------------------------------------------------------------------------------------------------------------


class Answers:
    """A connection whose every statement gives one row."""

    def __init__(self, *row: object) -> None:
        self.row = row
        self.told: list[object] = []

    def execute(self, statement: object) -> Answers:
        self.told.append(statement)
        return self

    def fetchone(self) -> tuple[object, ...]:
        return self.row


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("140009", "on", "on", "on", "UTF8", "off"), "older than PostgreSQL 15"),
        (("150000", "off", "on", "on", "UTF8", "off"), "does not write to its disk"),
        (("150000", "on", "off", "on", "UTF8", "off"), "does not write to its disk"),
        (("150000", "on", "on", "on", "SQL_ASCII", "off"), "not in UTF8"),
        (("150000", "on", "on", "on", "UTF8", "on"), "read only"),
    ],
)
def test_a_server_that_does_not_keep_what_it_is_told_is_refused(row: tuple[str, ...], words: str) -> None:
    assert words in fault(lambda: server._durable(Answers(*row), 1)).message  # type: ignore[arg-type]


@pytest.mark.parametrize(("commits", "sets"), [("off", True), ("local", True), ("on", True), ("remote_apply", False)])
def test_commits_are_durable_whatever_the_servers_default(commits: str, sets: bool) -> None:
    told = Answers("150000", "on", "on", commits, "UTF8", "off")
    server._durable(told, 1)  # type: ignore[arg-type]
    assert ("SET synchronous_commit = on" in told.told) == sets


@pytest.mark.parametrize("error", [psycopg.errors.InsufficientPrivilege(), Fault("LEDGER_FAILED", "the user lacks rights", instead="x")])
def test_a_connection_that_cannot_be_made_durable_is_closed(error: Exception, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def failing(connection: object, wait: float) -> None:
        given.append(connection)
        raise error

    monkeypatch.setattr(server, "_durable", failing)
    assert "the user lacks rights" in fault(lambda: shop.create(shop.schema())).message
    assert given[0].closed


def test_the_tests_server_is_one_that_is_not_refused(shop: Shop) -> None:
    one = store(shop.begin())
    found = one.read(lambda tx: tx._execute("SELECT current_setting('synchronous_commit'), current_setting('fsync')", ()).fetchone())  # type: ignore[attr-defined]
    assert found == ("on", "on")


@pytest.mark.parametrize(
    ("state", "code", "words"),
    [
        ("55P03", "LEDGER_LOCKED", "another process"),
        ("42501", "LEDGER_FAILED", "lacks rights"),
        ("42P01", "LEDGER_CORRUPT", "tables were changed"),
        ("23505", "LEDGER_CORRUPT", "tables were changed"),
        ("P0001", "LEDGER_CORRUPT", "tables were changed"),
        ("53100", "LEDGER_FAILED", "out of disk"),
        ("57P01", "LEDGER_FAILED", "connection to the database broke"),
        ("", "LEDGER_FAILED", "connection to the database broke"),
    ],
)
def test_what_the_servers_errors_become(state: str, code: str, words: str) -> None:
    error = psycopg.Error(f"password={PASSWORD}")
    error.sqlstate = state or None
    told = server.fault(error)
    assert isinstance(told, Fault)
    assert (told.code, words in told.message, PASSWORD in str(told)) == (code, True, False)


def test_what_other_errors_become() -> None:
    refused, odd = Refused("X", "x", instead="y"), NotImplementedError()
    assert server.fault(refused) is refused
    assert server.fault(odd) is odd
    assert str(server.fault(OSError("x"))).startswith("LEDGER_FAILED")
    assert str(server.fault(ValueError("x"))).startswith("LEDGER_CORRUPT")
    one = Fault("A", "b", instead="c", entry="d")
    assert (server.fault(one) is one, server.fault(one).args) == (False, one.args)


def test_without_psycopg_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def without(name: str, *given: Any) -> Any:
        if name == "psycopg":
            raise ImportError
        return found(name, *given)

    monkeypatch.setattr(builtins, "__import__", without)
    told = fault(lambda: server.connect(Address("postgresql://h/d", "x"), 1))
    assert told.instead == "pip install 'dpquery[postgresql]'"


# ---- tables -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER entries_stay ON entries",
        "ALTER TABLE entries DISABLE TRIGGER entries_stay",
        "CREATE OR REPLACE FUNCTION only_grows() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE RULE quiet AS ON INSERT TO entries DO INSTEAD NOTHING",
        "ALTER TABLE accounts ALTER COLUMN epsilon DROP NOT NULL",
        "ALTER TABLE entries DROP CONSTRAINT entries_pkey",
        "UPDATE migrations SET sha256 = 'x'",
    ],
)
def test_changed_tables_are_found(statement: str, shop: Shop) -> None:
    opened = shop.begin()
    charge(opened)
    shop.close()
    with shop.connect() as other:
        other.execute(statement)
    assert fault(lambda: shop.open(opened.schema)).code == "LEDGER_CORRUPT"
    assert ledger.verify(shop.place)


@pytest.mark.parametrize("statement", ["UPDATE entries SET body = ''", "DELETE FROM entries", "TRUNCATE entries", "DELETE FROM accounts"])
def test_the_log_only_grows(statement: str, shop: Shop) -> None:
    charge(shop.begin())
    with shop.connect() as other, pytest.raises(psycopg.errors.RaiseException):
        other.execute(statement)


def test_a_ledger_of_a_newer_dpquery_is_left_alone(shop: Shop) -> None:
    opened = shop.begin()
    shop.close()
    with shop.connect() as other:
        other.execute("INSERT INTO migrations VALUES (99, 'x', 'y')")
    assert fault(lambda: shop.open(opened.schema)).instead == "upgrade dpquery"


def test_a_ledger_of_an_older_dpquery_is_brought_up_in_one_transaction(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = shop.begin().schema
    shop.close()
    later = Migration(2, "0002_later.sql", "CREATE TABLE later (x integer); CREATE INDEX more ON entries (event);")
    wrong = Migration(2, "0002_wrong.sql", "CREATE INDEX more ON entries (event); SELECT * FROM nothing;")
    known, shape = migrations.known(), migrations.SHAPE
    monkeypatch.setattr(migrations, "known", lambda: (*known, wrong))
    assert fault(lambda: shop.open(schema)).code == "LEDGER_CORRUPT"
    monkeypatch.setattr(migrations, "known", lambda: (*known, later))
    assert "tables of the ledger were changed" in fault(lambda: shop.open(schema)).message, "more is there than SHAPE says"
    with shop.connect() as other:
        assert other.execute("SELECT count(*) FROM migrations").fetchone() == (2,)
        other.execute("DROP INDEX more")
    assert shape == migrations.SHAPE
    assert charge(shop.open(schema))


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [one.number for one in migrations.known()] == [*range(1, len(migrations.known()) + 1)]


# ---- making one -------------------------------------------------------------------------------------------------------------------------


def test_a_second_ledger_is_refused(shop: Shop) -> None:
    opened = shop.begin()
    with pytest.raises(Refused, match="LEDGER_EXISTS"):
        shop.create(opened.schema)
    shop.remove()
    with pytest.raises(Refused, match="SOURCE_BOUND"):
        shop.create(opened.schema)


def test_two_that_are_made_at_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The later of them finds the other's when it gets to it, and binds nothing."""
    schema = shop.begin().schema
    for beside in shop.folder.glob("*.ledger-id"):
        beside.unlink()
    monkeypatch.setattr("dpquery.ledger.postgres.vacant", lambda address: None)
    with pytest.raises(Refused, match="LEDGER_EXISTS"):
        shop.create(schema)
    assert not [*shop.folder.glob("*.ledger-id")]


def test_all_of_it_or_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*given: object) -> None:
        raise Fault("LEDGER_FAILED", "no room", instead="x")

    with monkeypatch.context() as patch:
        patch.setattr(binding, "bind", failing)
        assert fault(lambda: shop.create(shop.schema())).message == "no room"
    gone = fault(lambda: shop.open(shop.schema()))
    assert gone.code == "LEDGER_MISSING"
    assert "as its backup, a file: `dpquery ledger restored --ledger FILE`" in (gone.instead or "")
    assert charge(shop.begin())


@pytest.mark.slow  # programs are started; a backup does the same in test_ledger_evidence.py
def test_a_dump_of_an_older_state_goes_on_at_its_owners_word(shop: Shop) -> None:
    """As docs/budgets.md has it: `pg_dump`, `psql` into where nothing is, `dpquery ledger restored`. All guards of the tables are there again."""
    url, opened = str(shop.place), shop.begin()
    charge(opened)
    spent = opened.balance("default").spent
    with shop.connect() as connection:
        (schema,) = connection.execute("SELECT current_schema()").fetchone()
    dump = subprocess.run([postgres.program("pg_dump"), "--schema", schema, url], capture_output=True, check=True).stdout
    charge(opened)
    shop.close()
    shop.remove()
    with shop.connect() as connection:
        connection.execute(f"DROP SCHEMA {schema}".encode())
    subprocess.run([postgres.program("psql"), "--quiet", "--set=ON_ERROR_STOP=1", url], input=dump, capture_output=True, check=True)
    assert fault(lambda: shop.open(shop.schema())).code == "LEDGER_ROLLED_BACK"
    assert "the mark beside the data" in str(ledger.verify(shop.place, schema=shop.schema())[0])
    again = shop.open(shop.schema(), restored="the server burnt down")
    assert again.balance("default").spent == spent
    assert charge(again)
    assert again.verify() == ()


def test_databases_and_servers_that_are_not_there(shop: Shop) -> None:
    url = str(shop.place)
    for wrong in (url.replace("/postgres?", "/nowhere?"), f"postgresql://u:{PASSWORD}@/postgres?host=/nowhere"):
        told = fault(lambda wrong=wrong: ledger.verify(wrong, wait=0.1))
        assert (told.code, "no connection to its database" in told.message) == ("LEDGER_FAILED", True)


# ---- URLs -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "shown", "secret"),
    [
        (f"postgresql://u:{PASSWORD}@h:5432/db", "postgresql://h:5432/db", True),
        (f"postgres://u@h/db?password={PASSWORD}&host=x", "postgresql://h/db?host=x", True),
        ("postgresql://u:@/db?host=/tmp&options=-csearch_path%3Ds", "postgresql:///db?host=/tmp&options=-csearch_path=s", False),
        ("postgresql://[::1]:5/db", "postgresql://[::1]:5/db", False),
        ("postgresql://a:1,b:2/db?service=x", "postgresql://a:1,b:2/db", False),
    ],
)
def test_what_is_shown_of_a_url_holds_no_password(url: str, shown: str, secret: bool) -> None:
    found = place(url)
    assert (str(found), holds_password(url)) == (shown, secret)
    assert PASSWORD not in repr(found)
    assert place(found) is found


@pytest.mark.parametrize("url", [f"postgresql://u:{PASSWORD}/x@h/db", f"postgresql://u:{PASSWORD}@x@h/db", f"postgresql://h:{PASSWORD}/db"])
def test_a_url_that_cannot_be_read_is_not_repeated(url: str) -> None:
    with pytest.raises(Error) as caught:
        place(url)
    assert PASSWORD not in str(caught.value)
    assert holds_password(url)


def test_nothing_that_is_logged_or_exported_holds_the_password(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        schema = shop.begin().schema
        opened = shop.take(ledger.open(str(shop.place).replace("postgres:@", f"postgres:{PASSWORD}@"), schema))
        charge(opened)
    assert PASSWORD not in caplog.text + "".join(opened.export())
