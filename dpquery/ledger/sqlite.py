"""The ledger in one SQLite file: write-ahead log, full synchronisation, one writer at a time. SQLite's errors end here."""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote

from dpquery.errors import Fault
from dpquery.ledger import attendance, faults, formats
from dpquery.ledger.chain import MALFORMED
from dpquery.ledger.gate import Gate
from dpquery.ledger.group import Busy, Group
from dpquery.ledger.log import append
from dpquery.ledger.replay import FORMAT, OLDEST
from dpquery.ledger.store import Transaction
from dpquery.ledger.tables import Tables
from dpquery.ledger.versions import owner
from dpquery.turns import Turn

T = TypeVar("T")

APPLICATION: Final = 0x64707131  # "dpq1"
LOCKED: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
FAILED: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM})


class SqliteStore:
    """An open ledger file, for use by any number of threads; other processes may have it open too.

    `wait` is how many seconds a transaction waits for others' before it gives up. Every commit is written back into the main file at once, so that
    the file alone holds all charges even where a process died and its write-ahead log got lost.
    """

    def __init__(self, path: Path, wait: float = 10.0) -> None:
        self.path = _absolute(path)
        self._wait = wait
        self._turn = Turn(quiet=True)
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._inherited: list[sqlite3.Connection] = []  # a forked child must not touch its parent's connection, not even to close it
        self._file: tuple[int, int] | None = None
        self._gate = Gate(self.path)
        self._group = Group(self, self._turn, wait)

    def read(self, work: Callable[[Transaction], T]) -> T:
        """What `work` returns on one consistent view; tried again at random intervals while others hold the file."""
        self._after_fork()
        deadline = time.monotonic() + self._wait
        while True:
            with self._turn, _faults():
                try:
                    return self._read(work)
                except sqlite3.OperationalError as error:
                    if _code(error) not in LOCKED:
                        raise
            if time.monotonic() >= deadline:
                raise faults.locked()
            time.sleep((1 + secrets.randbelow(1000)) / 100_000)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """What `work` returns, after all that it did is on the disk. Threads that write at once share a transaction."""
        self._after_fork()
        return self._group.run(work)

    def damage(self) -> Sequence[str]:
        """What SQLite itself finds wrong with the file."""
        return self.read(lambda _: _damage(self._connected()))

    def backup(self, where: Path) -> None:
        """A copy of the ledger as it is, in a file that only its owner may read. FileExistsError where something lies there."""
        self._after_fork()
        with self._turn, _faults():
            os.close(os.open(where, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            copy = _plain(where)
            try:
                self._connected().backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE").fetchone()  # one file, with nothing beside it
            finally:
                copy.close()

    def attended(self, alone: Callable[[], None]) -> AbstractContextManager[None]:
        """Meanwhile others see that charges made here are attended to. `alone` is called before that, if nobody attends to any."""
        return attendance.attended(self.path.parent, alone)

    def close(self) -> None:
        """The connection is closed; the last one to close tidies the write-ahead log away."""
        with self._turn:
            if self._connection is not None and self._process == os.getpid():
                with suppress(sqlite3.Error):
                    self._connection.close()
            self._connection = None
            self._gate.close()

    # ---- as the medium of a group ---------------------------------------------------------------------------------------------

    def begin(self) -> Tables:
        """A transaction of the only writer. Whoever holds the gate tries alone."""
        with _faults():
            try:
                connection = self._forgetful()
                if not self._gate.passed():
                    raise Busy(0.0005)
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if _code(error) in LOCKED:
                    raise Busy(0.0001) from None  # whoever holds the gate tries often, and is alone in that
                raise
            self._gate.leave()
            return _tables(connection)

    def commit(self) -> None:
        """It is on the disk: SQLite synchronises its log, then writes the pages back."""
        self._connected().execute("COMMIT")

    def rollback(self) -> None:
        """Nothing is left of it."""
        if self._connection is not None and self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def holds(self, entry: str) -> bool:
        """Whether the log holds that line: what another transaction sees is on the disk."""
        return self._connected().execute("SELECT 1 FROM entries WHERE id = ?", (entry,)).fetchone() is not None

    def fault(self, error: Exception) -> Exception:
        """The Fault for an error of SQLite or the file system."""
        return _fault(error)

    def give_up(self) -> None:
        """The gate is open."""
        self._gate.leave()

    # ---- inside ----------------------------------------------------------------------------------------------------------------

    def _read(self, work: Callable[[Transaction], T]) -> T:
        connection = self._forgetful()
        connection.execute("BEGIN")
        try:
            return work(_tables(connection))
        finally:
            self.rollback()

    def _connected(self) -> sqlite3.Connection:
        """The connection; a Fault where the file is gone, or is not the one that was opened."""
        file = _file(self.path)
        if self._connection is None:
            self._connection, self._file = _connect(self.path), file
        elif file != self._file:
            raise faults.corrupt("the ledger file was replaced while it was in use")
        return self._connection

    def _forgetful(self) -> sqlite3.Connection:
        """The connection, with nothing of the file in its memory, which would hide that another was copied over it."""
        connection = self._connected()
        connection.execute("PRAGMA shrink_memory")
        return connection

    def _after_fork(self) -> None:
        if self._process != os.getpid():
            if self._connection is not None:
                self._inherited.append(self._connection)
            self._process, self._connection = os.getpid(), None
            self._group = Group(self, self._turn, self._wait)  # whoever waited does not live here


def make(path: Path, key: bytes, work: Callable[[Tables], None]) -> None:
    """A ledger file at `path`, where none may be, readable by its owner only, with what `work` writes into it."""
    with _faults():
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = _plain(path)
        try:
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            _durable(connection)
            connection.execute("BEGIN IMMEDIATE")
            for statement in formats.TABLES:
                connection.execute(statement)
            connection.execute("INSERT INTO secret VALUES ('owner', ?)", (key,))
            tx = _tables(connection)
            work(tx)
            tx.flush()
            connection.execute("COMMIT")
        finally:
            connection.close()


def _absolute(path: Path) -> Path:
    """The path from the root on: where the process goes later does not matter."""
    try:
        return path.absolute()
    except OSError:  # there is no current folder any more
        raise faults.missing(f"there is no ledger at {path}; without it") from None


def _file(path: Path) -> tuple[int, int]:
    """Which file lies at the path. A Fault where that is none, or one with several names."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise faults.missing(f"there is no ledger at {path}; without it") from None
    except OSError as error:
        raise _failed(error.strerror) from None
    if not stat.S_ISREG(found.st_mode):
        raise _failed("what lies at its path is no file")
    if found.st_nlink > 1:  # SQLite keeps its locks and its log beside each name: two of them would not see each other
        several = "its file has several names (hard links), of which only one may be left"
        raise faults.failed(several, f"remove the others: `find DIR -samefile {path.name}` finds them")
    return found.st_dev, found.st_ino


def _tables(connection: sqlite3.Connection) -> Tables:
    return Tables(connection.execute)


def _damage(connection: sqlite3.Connection) -> Sequence[str]:
    return [said for (said,) in connection.execute("PRAGMA integrity_check(20)") if said != "ok"]


def _plain(path: Path) -> sqlite3.Connection:
    """A connection to an existing file, without a time-out of its own."""
    return sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=rw", uri=True, timeout=0, isolation_level=None, check_same_thread=False)


def _connect(path: Path) -> sqlite3.Connection:
    """A connection to a ledger, each commit of which is durable. Fault where the file is something else."""
    connection = _plain(path)
    try:
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise faults.corrupt("the file is not a ledger, or was cut short")
        version = _version(connection)
        if version > FORMAT:
            raise faults.newer()
        if version < OLDEST:
            raise faults.corrupt("the ledger is of no format that ever was")
        _durable(connection)
        if version < FORMAT:
            _upgrade(connection)
        _expect(connection, formats.TABLES)
    except BaseException:
        connection.close()
        raise
    return connection


def _upgrade(connection: sqlite3.Connection) -> None:
    """A ledger of the format before this one is of this one, with a line in its log that says so; or, where anything fails, as it was."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) < FORMAT:  # else another process did it meanwhile
            _expect(connection, formats.FORMAT_1)
            held = connection.execute("SELECT * FROM accounts").fetchall()
            for statement in formats.UPGRADE:
                connection.execute(statement)
            connection.executemany(formats.UPGRADED, held)
            tx = _tables(connection)
            append(tx, {"event": "upgraded", "format": FORMAT, "key": owner(tx)})
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _expect(connection: sqlite3.Connection, expected: Sequence[str]) -> None:
    """A Fault where the file's tables are not these."""
    found = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")]
    if sorted(found) != sorted(expected):
        raise faults.corrupt("the tables of the ledger were changed")


def _durable(connection: sqlite3.Connection) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise _failed("the file system does not allow a write-ahead log")
    for setting in ("synchronous = FULL", "fullfsync = ON", "wal_autocheckpoint = 1", "trusted_schema = OFF", "cell_size_check = ON"):
        connection.execute(f"PRAGMA {setting}").fetchone()


@contextmanager
def _faults() -> Iterator[None]:
    """Errors of SQLite and the file system leave as Faults with constant words."""
    try:
        yield
    except FileExistsError:
        raise
    except (sqlite3.Error, OSError, *MALFORMED) as error:
        raise _fault(error) from None


def _fault(error: Exception) -> Exception:
    """What leaves in place of an error; errors of dpquery leave as they are."""
    match error:
        case sqlite3.Error():
            return _of_sqlite(_code(error))
        case Busy():
            return faults.locked()
        case OSError():
            return _failed(error.strerror)
        case _ if isinstance(error, MALFORMED):
            return faults.corrupt("the ledger's content was changed from outside")
        case _:
            return error


def _of_sqlite(code: int) -> Fault:
    if code == sqlite3.SQLITE_CANTOPEN or code in FAILED:
        return _failed("the file cannot be written, or its disk is full")
    if code in LOCKED:
        return faults.locked()
    return faults.corrupt("the ledger file is damaged")


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 where Python raised the error by itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _failed(what: str | None) -> Fault:
    return faults.failed(what or "input or output error", "see to the disk and the file's permissions")
