"""What the doors call: open a session, make a ledger, check and register data, draft a schema."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dpquery.ledger as ledgers
from dpquery.backends import duckdb as backend_door
from dpquery.backends import inspect
from dpquery.engine import data
from dpquery.engine.books import path_of, place_of, text_of
from dpquery.engine.session import Session
from dpquery.errors import Refused, SchemaError
from dpquery.schema.check import Report
from dpquery.schema.check import check as check_schema
from dpquery.schema.draft import draft
from dpquery.schema.model import Schema
from dpquery.schema.policy import LONGEST, imported
from dpquery.schema.read import read as read_schema

LONGEST_NAME = 128  # characters of an analyst's name, as in the schema file

__all__ = ["Report", "check", "create_ledger", "draft_schema", "import_policy", "open_session"]


def open_session(schema: str | Path, analyst: str | None = None, ledger: str | Path | None = None) -> Session:
    """A session for one analyst (`default` where none is named); the ledger lies beside the schema file where none is named."""
    read = read_schema(path_of(schema))
    return Session(read, _name(analyst), _absolute(place_of(ledger, read)))


def create_ledger(schema: str | Path, path: str | Path | None = None) -> ledgers.Place:
    """The place of a new ledger, to which the data version at hand is admitted; or of the one of its `account` that is there, which it joins.

    SchemaError where the data does not fit the schema.
    """
    read = read_schema(path_of(schema))
    where = place_of(path, read)
    joins = ledgers.joins(read, where)
    if not joins:
        ledgers.vacant(read, where)  # sooner than the data is read
    before = data.identity(read)
    report = _checked(read)
    if not report.ok:
        raise _unfit(report, read)
    make, contents = ledgers.join if joins else ledgers.create, data.contents(read)
    return make(read, where, fingerprint=data.checked(read, before), identity=before, contents=contents)


def check(schema: str | Path, register: bool = False, ledger: str | Path | None = None) -> Report:
    """How the data fits the schema: for the owner's eyes. With `register`, a fitting data version is admitted to the ledger."""
    read = read_schema(path_of(schema))
    before = data.identity(read)
    report = _checked(read)
    if not register:
        return report
    if not report.ok:
        raise _unfit(report, read)
    opened = ledgers.open(place_of(ledger, read), read)
    try:
        contents = data.contents(read)
        version = opened.register(data.checked(read, before), before, contents)
    finally:
        opened.close()
    return report.registered(version)


def draft_schema(files: Sequence[str | Path]) -> str:
    """A schema file drafted from physical types alone; what only the owner can promise is left to fill in."""
    return draft(inspect.files([Path(path_of(f)) for f in files]))


def import_policy(file: str | Path) -> str:
    """A schema file drafted from another system's privacy policy; what that does not say is left to fill in."""
    return imported(text_of(file, LONGEST + 1))


def _absolute(path: ledgers.Place) -> ledgers.Place:
    """A path from the root on: where the process goes later does not matter."""
    try:
        return path.absolute() if isinstance(path, Path) else path
    except OSError:
        raise SchemaError("FILE_UNREADABLE", f"{path}: there is no current folder any more", instead="name the whole path") from None


def _name(analyst: str | None) -> str | None:
    """The name of an analyst, which goes into the log with each question; Refused for what is none."""
    if analyst is not None and not (isinstance(analyst, str) and len(analyst) <= LONGEST_NAME and analyst.isprintable()):
        message = f"an analyst's name has at most {LONGEST_NAME} printable characters"
        raise Refused("UNKNOWN_ANALYST", message, instead="a name that the schema lists, or none for the shared account")
    return analyst


def _checked(schema: Schema) -> Report:
    backend = backend_door.open(schema)
    try:
        return check_schema(schema, backend.describe(), backend.owner_rows)
    finally:
        backend.close()


def _unfit(report: Report, schema: Schema) -> SchemaError:
    first = next(f for f in report.findings if f.severity == "error")
    return SchemaError(
        "DATA_UNFIT",
        f"the data does not fit {schema.file.name}: {first.message}",
        instead="`dpquery check` lists everything; mend the data or the schema",
    )
