"""Which data version is at hand: the files behind a schema, and what the schema promises of them that was looked up when they were registered."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from dpquery.backends import duckdb as backend_door
from dpquery.errors import Fault
from dpquery.ledger import Place
from dpquery.ledger import files as ledger_files
from dpquery.schema.digest import promises
from dpquery.schema.model import Schema

JSON = Any


def identity(schema: Schema) -> JSON:
    """What tells at a glance that files or promises are other ones."""
    return [promises(schema), *backend_door.identity(schema)]


def keeps(schema: Schema, ledger: Place, path: Path) -> bool:
    """Whether a file, links in its path resolved, is one that the data set lives by, not to be written over: the schema, the ledger, the data."""
    files = {schema.file, *ledger_files(schema, ledger), *(Path(name) for name, *_ in backend_door.identity(schema))}
    return any(_same(path, file) for file in files)


def _same(one: Path, other: Path) -> bool:
    try:
        return one == other.resolve() or one.samefile(other)
    except (OSError, RuntimeError):  # one of them is not there, or leads round in a circle
        return False


def fingerprint(schema: Schema) -> str:
    """The SHA-256 of the promises and of all that the files hold: a promise that was added later was never looked up."""
    return hashlib.sha256(f"{promises(schema)} {backend_door.fingerprint(schema)}".encode()).hexdigest()


def contents(schema: Schema) -> tuple[str, ...]:
    """The SHA-256 of each private file, by which a ledger knows its data again under another name."""
    return backend_door.contents(schema)


def checked(schema: Schema, before: JSON) -> str:
    """The fingerprint of data that was checked since its identity was `before`; a Fault where the files changed meanwhile."""
    found = fingerprint(schema)
    if identity(schema) != before:
        raise Fault(
            "DATA_CHANGED", "the data changed while it was checked; it is not registered", instead="wait until nothing writes to it, then again"
        )
    return found
