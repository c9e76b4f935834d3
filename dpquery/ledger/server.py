"""A PostgreSQL server: connections that commit durably, and what errors of psycopg become. Their own words never leave: they name users."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from dpquery.errors import Error, Fault
from dpquery.ledger.chain import MALFORMED
from dpquery.ledger.faults import corrupt, failed, locked
from dpquery.schema.address import Address

if TYPE_CHECKING:
    from psycopg import Connection

OLDEST: Final = 150000  # server_version_num
IDLE: Final = 60_000  # milliseconds after which the server ends a transaction whose client does nothing: it would keep all others out
SETTINGS: Final = ("server_version_num", "fsync", "full_page_writes", "synchronous_commit", "server_encoding", "transaction_read_only")
WAITED: Final = frozenset({"55P03", "40P01", "40001", "57014"})  # lock timeout, deadlock, serialisation, cancelled
CORRUPT: Final = ("21", "22", "23", "42", "P", "XX")  # classes of errors that the ledger's own tables do not give


def driver() -> ModuleType:
    """psycopg, imported when a ledger is in PostgreSQL and not before."""
    try:
        import psycopg
    except ImportError:
        raise Fault(
            "LEDGER_FAILED", "a ledger in PostgreSQL needs psycopg, which is not installed", instead="pip install 'dpquery[postgresql]'"
        ) from None
    return psycopg


def connect(address: Address, wait: float) -> Connection[Any]:
    """A connection that commits durably, and waits for a lock so many seconds. Fault where there is none to be had."""
    psycopg = driver()
    try:
        connection: Connection[Any] = psycopg.connect(
            address.url, autocommit=True, connect_timeout=max(2, round(wait)), fallback_application_name="dpquery"
        )
    except psycopg.Error:  # without a code: libpq has words alone
        raise failed("there is no connection to its database", "see to the server, the URL, the user and the password (PGPASSFILE)") from None
    try:
        _durable(connection, wait)
    except BaseException as error:
        connection.close()
        if isinstance(error, psycopg.Error):
            raise fault(error) from None
        raise
    return connection


def _durable(connection: Connection[Any], wait: float) -> None:
    columns = ", ".join(f"current_setting('{name}')" for name in SETTINGS)
    version, synced, whole, commits, encoding, read_only = connection.execute(f"SELECT {columns}").fetchone() or ("0",) * len(SETTINGS)
    if int(version) < OLDEST:
        raise failed("the server is older than PostgreSQL 15", "a newer server")
    if (synced, whole) != ("on", "on"):
        raise failed("the server does not write to its disk what it commits (fsync, full_page_writes)", "set both on")
    if encoding != "UTF8" or read_only != "off":
        raise failed("the database is read only, or not in UTF8", "name a primary server, and a database in UTF8")
    if commits != "remote_apply":  # which is more
        connection.execute("SET synchronous_commit = on")
    limits = {"lock_timeout": max(1, round(1000 * wait)), "idle_in_transaction_session_timeout": IDLE, "idle_session_timeout": 0}
    connection.execute("; ".join(f"SET {name} = {value}" for name, value in limits.items()).encode())


def fault(error: Exception) -> Exception:
    """What leaves in place of an error; errors of dpquery leave as they are."""
    match error:
        case Fault():
            return Fault(error.code, error.message, instead=error.instead, entry=error.entry)
        case Error():
            return error
        case _ if isinstance(error, driver().Error):
            return _of_state(getattr(error, "sqlstate", None) or "")
        case OSError():
            return broken()
        case _ if isinstance(error, MALFORMED):
            return corrupt("the ledger's content was changed from outside")
        case _:
            return error


def _of_state(state: str) -> Fault:
    """By SQLSTATE, which is empty where there was no answer."""
    if state in WAITED:
        return locked()
    if state == "42501":
        return failed("the user lacks rights on the ledger's tables", "as their owner, grant SELECT, INSERT and UPDATE")
    if state.startswith(CORRUPT):
        return corrupt("the ledger's tables were changed")
    if state[:2] in ("53", "58"):
        return failed("the server is out of disk, memory or connections", "see to the server")
    return broken()


def broken() -> Fault:
    """The server does not answer, or no longer."""
    return failed("the connection to the database broke", "see to the server and the way there")


def doubtful() -> Fault:
    """A commit that was not answered, and a server that cannot be asked."""
    return Fault(
        "LEDGER_FAILED",
        "the connection to the database broke in the moment of the charge; the log says whether it was charged, and no answer is given",
        instead="see to the server and the way there",
    )
