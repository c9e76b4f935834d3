"""The ledger in a PostgreSQL database, 15 or later: for analysts on several machines.

Writers follow one another.
    Given   a writing transaction is REPEATABLE READ, and its first statement is LOCK TABLE turn IN EXCLUSIVE MODE.
    Claim   it sees all that earlier writers committed, and nothing is written beside it: the writers are as in some serial order.
    Proof   LOCK TABLE takes no snapshot. Its lock conflicts with itself, and ends with its transaction, after what that wrote is visible. The
            snapshot is that of the first statement after it, younger than the commit of whoever held the lock before; and until the transaction
            ends no other gets past its own LOCK TABLE.
    Source  PostgreSQL's documentation: LOCK (Notes), 13.2.2, 13.3.1. Should anybody write without the lock, the log's primary key takes the
            number of no line twice, and whoever comes next finds sums that the log does not give.

A commit is on the disk before anybody hears of it: synchronous_commit is on, and a server whose fsync or full_page_writes is off is refused. Where a
commit is not answered, the lock is taken anew on another connection: then that transaction has ended, and the log says how.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dpquery.errors import Fault, Refused
from dpquery.ledger import faults, migrations, server, sqlite, tables
from dpquery.ledger.group import Group
from dpquery.ledger.presence import Presence
from dpquery.ledger.store import Transaction
from dpquery.ledger.tables import Tables
from dpquery.schema.address import Address
from dpquery.turns import Turn

if TYPE_CHECKING:
    from psycopg import Connection

T = TypeVar("T")
READ: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE turn IN EXCLUSIVE MODE"


class PostgresStore:
    """An open ledger, for use by any number of threads; other processes, on other machines too, may have it open.

    `wait` is how many seconds a transaction waits for others' before it gives up.
    """

    def __init__(self, address: Address, wait: float = 10.0) -> None:
        self.address = address
        self._wait = wait
        self._turn = Turn(quiet=True)
        self._process = os.getpid()
        self._connection: Connection[Any] | None = None
        self._inherited: list[object] = []  # a forked child must not touch its parent's connections, not even to close them
        self._group = Group(self, self._turn, wait)
        self._presence = Presence(address, wait)

    def read(self, work: Callable[[Transaction], T]) -> T:
        """What `work` returns on one consistent view."""
        return self._read(work)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """What `work` returns, after all that it did is durable. Threads that write at once share a transaction."""
        self._after_fork()
        return self._group.run(work)

    def damage(self) -> Sequence[str]:
        """Nothing: that the tables are as they were made is seen when the ledger is opened, and the server keeps checksums of its own."""
        self.read(lambda tx: tx.head())
        return ()

    def backup(self, where: Path) -> None:
        """A copy of the ledger as it is, as a SQLite file that only its owner may read. FileExistsError where something lies there."""
        self._read(lambda here: sqlite.make(where, here.secret(), lambda there: tables.copy(here, there)))

    def attended(self, alone: Callable[[], None]) -> AbstractContextManager[None]:
        """Meanwhile others see that charges made here are attended to. `alone` is called before that, if nobody attends to any."""
        self._after_fork()
        return self._presence.attended(alone)

    def close(self) -> None:
        """The connections are closed."""
        self._after_fork()
        with self._turn:
            self._drop()
            self._presence.close()

    # ---- as the medium of a group ---------------------------------------------------------------------------------------------

    def begin(self) -> Tables:
        """A transaction of the only writer: the server lets one in after the other, in the order in which they came."""
        with _faults():
            return self._begun(WRITE)

    def commit(self) -> None:
        """It is durable."""
        if self._connected().execute(b"COMMIT").statusmessage != "COMMIT":  # of a transaction that failed, the server makes a ROLLBACK
            raise server.broken()

    def rollback(self) -> None:
        """Nothing is left of it."""
        idle = server.driver().pq.TransactionStatus.IDLE
        if self._connection is not None and self._connection.info.transaction_status != idle:
            try:
                self._connection.execute(b"ROLLBACK")
            except server.driver().Error:
                self._drop()

    def holds(self, entry: str) -> bool:
        """Whether the log holds that line, after whatever transaction may have written it has ended. Fault where nobody can say."""
        try:
            return self._begun(WRITE).row(entry) is not None
        except server.driver().Error:
            raise server.doubtful() from None
        except Fault:
            raise server.doubtful() from None
        finally:
            self.rollback()

    def fault(self, error: Exception) -> Exception:
        """The Fault for an error of psycopg."""
        return server.fault(error)

    def give_up(self) -> None:
        """Nothing holds anybody up."""

    # ---- inside ----------------------------------------------------------------------------------------------------------------

    def _read(self, work: Callable[[Tables], T]) -> T:
        self._after_fork()
        with self._turn, _faults():
            try:
                return work(self._begun(READ))
            finally:
                self.rollback()

    def _begun(self, begin: bytes) -> Tables:
        """The transaction. A connection that broke while it was idle is made anew, once."""
        used, connection = self._connection is not None, self._connected()
        try:
            connection.execute(begin)
        except server.driver().Error:
            self.rollback()
            if not (used and connection.closed):
                raise
            connection = self._connected()
            connection.execute(begin)
        return _tables(connection)

    def _connected(self) -> Connection[Any]:
        """The connection, to a ledger whose tables are as they were made."""
        if self._connection is None:
            connection = server.connect(self.address, self._wait)
            try:
                with _faults():
                    _checked(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(server.driver().Error):
                self._connection.close()
        self._connection = None

    def _after_fork(self) -> None:
        if self._process != os.getpid():
            self._inherited += [self._connection, self._presence]
            self._process, self._connection = os.getpid(), None
            self._group, self._presence = Group(self, self._turn, self._wait), Presence(self.address, self._wait)


def make(address: Address, key: bytes, work: Callable[[Transaction], None]) -> None:
    """A ledger in the database, where none may be, with what `work` writes into it: all, or nothing. Refused where one is there."""
    connection = server.connect(address, 10.0)
    try:
        with _faults():
            connection.execute(b"BEGIN")
            connection.execute(b"SELECT pg_advisory_xact_lock(1684107825)")  # one is made at a time
            if migrations.ran(connection) is not None:
                raise exists(address)
            migrations.run(connection)
            tx = _tables(connection)
            connection.execute("INSERT INTO secret VALUES ('owner', %s)", (key,))
            work(tx)
            tx.flush()
            connection.execute(b"COMMIT")
    finally:
        connection.close()


def vacant(address: Address) -> None:
    """Nothing, or Refused where the database holds a ledger already."""
    connection = server.connect(address, 10.0)
    try:
        with _faults():
            if migrations.ran(connection) is not None:
                raise exists(address)
    finally:
        connection.close()


def exists(address: Address) -> Refused:
    """A ledger is never made anew."""
    return Refused(
        "LEDGER_EXISTS",
        f"there is a ledger at {address} already",
        instead="use it, or name another schema of the database (?options=-csearch_path%3DNAME); a ledger is never made anew",
    )


def _checked(connection: Connection[Any]) -> None:
    found, known = migrations.ran(connection), [(one.number, one.digest) for one in migrations.known()]
    if found is None:
        lost = "comes back from a dump of the database, or goes on as its backup, a file: `dpquery ledger restored --ledger FILE`"
        raise faults.missing("there is no ledger in the database; without a ledger", lost)
    if len(found) > len(known) and found[: len(known)] == known:
        raise faults.newer()
    if found != known[: len(found)]:
        raise faults.corrupt("the ledger is of no format that ever was")
    if found != known:
        _migrate(connection)
    if not migrations.intact(connection):
        raise faults.corrupt("the tables of the ledger were changed")


def _migrate(connection: Connection[Any]) -> None:
    """An older ledger has the tables of this dpquery: in one transaction, if no other did it meanwhile."""
    connection.execute(b"BEGIN; LOCK TABLE turn IN EXCLUSIVE MODE")
    migrations.run(connection, len(migrations.ran(connection) or ()))
    connection.execute(b"COMMIT")


def _tables(connection: Connection[Any]) -> Tables:
    return Tables(lambda statement, values: connection.execute(statement.replace("?", "%s").encode(), values))


@contextmanager
def _faults() -> Iterator[None]:
    """Errors of psycopg leave as Faults with constant words."""
    try:
        yield
    except FileExistsError:
        raise
    except Exception as error:
        told = server.fault(error)
        if told is error:
            raise
        raise told from None
