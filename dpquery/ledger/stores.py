"""Which store a ledger is in, by its place."""

from __future__ import annotations

from pathlib import Path
from typing import assert_never

from dpquery.ledger.postgres import PostgresStore
from dpquery.ledger.sqlite import SqliteStore
from dpquery.ledger.store import Store
from dpquery.schema.address import Address, Place


def at(place: Place, wait: float) -> Store:
    """The store of a ledger: a SQLite file or a PostgreSQL database. `wait` is how many seconds a transaction waits for others'."""
    match place:
        case Path():
            return SqliteStore(place, wait)
        case Address():
            return PostgresStore(place, wait)
        case _:
            assert_never(place)
