"""Whether somebody still attends to charges in a database: advisory locks of a session, which end with it, however it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from dpquery.ledger.attendance import PATIENCE
from dpquery.ledger.server import connect
from dpquery.turns import Turn

if TYPE_CHECKING:
    from psycopg import Connection

    from dpquery.schema.address import Address

KEY: Final = "'turn'::regclass::oid::integer, 1684107825"  # of this ledger; "dpq1"


class Presence:
    """What one process attends to: one lock for all its threads, on a connection of its own."""

    def __init__(self, address: Address, wait: float) -> None:
        self._address = address
        self._wait = wait
        self._turn = Turn()
        self._count = 0
        self._connection: Connection[Any] | None = None

    @contextmanager
    def attended(self, alone: Callable[[], None]) -> Iterator[None]:
        """Meanwhile others find that somebody attends to charges made here. Before that, `alone` is called if nobody does: all others are dead.

        Where no lock is to be had nothing is certain, and nothing is held up.
        """
        with self._turn:
            if self._count == 0:
                self._enter(alone)
            self._count += 1
        try:
            yield
        finally:
            with self._turn:
                self._count -= 1
                if self._count == 0:
                    self._try("SELECT pg_advisory_unlock_all()")

    def close(self) -> None:
        """Nothing is left open."""
        with self._turn:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _enter(self, alone: Callable[[], None]) -> None:
        if self._try(f"SELECT pg_try_advisory_lock({KEY})"):
            alone()
            self._try(f"SELECT pg_try_advisory_lock_shared({KEY})")  # granted: this session holds the other
            self._try(f"SELECT pg_advisory_unlock({KEY})")
            return
        deadline = time.monotonic() + PATIENCE
        while self._connection is not None and not self._try(f"SELECT pg_try_advisory_lock_shared({KEY})") and time.monotonic() < deadline:
            time.sleep(0.01)

    def _try(self, statement: str) -> bool:
        """What the statement says; no where it fails."""
        with suppress(Exception):
            if self._connection is None:
                self._connection = connect(self._address, self._wait)
            row = self._connection.execute(statement.encode()).fetchone()
            return row is not None and row[0] is True
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        return False
