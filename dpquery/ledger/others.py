"""Ledgers that lie about: whether one of them knows the data already, under another name or as a copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from dpquery.errors import Error, Refused
from dpquery.ledger import binding, versions
from dpquery.ledger.sqlite import SqliteStore
from dpquery.schema.address import Place
from dpquery.schema.model import Schema

WAIT = 2.0  # seconds for a ledger that others use


def unclaimed(schema: Schema, where: Place, contents: Sequence[str]) -> None:
    """Nothing, or Refused where a ledger beside the schema, the data or the new ledger, which is at `where`, has files of this content.

    It finds data that was renamed, linked or copied, and whose mark was lost, as long as one file is as it was when some version was registered.
    Ledgers elsewhere, in databases, or that cannot be read are not asked.
    """
    for file in _lying_about(schema, where) if contents else ():
        if _knows(file, contents):
            message = f"the data has a ledger already: {file.name} knows it, under another name perhaps; a second ledger would start its budget anew"
            raise Refused("SOURCE_BOUND", message, instead="use that ledger, and the file names of its schema")


def _lying_about(schema: Schema, where: Place) -> Iterator[Path]:
    own = where.resolve() if isinstance(where, Path) else None
    folders = {schema.file.parent, *(place.parent for place in binding.places(schema)), *(() if own is None else (own.parent,))}
    found = {file.resolve() for folder in folders for file in folder.glob("*.ledger")}
    yield from sorted(file for file in found if file != own and file.is_file())


def _knows(file: Path, contents: Sequence[str]) -> bool:
    with suppress(Error):
        store = SqliteStore(file, WAIT)
        try:
            return store.read(lambda tx: versions.holds(tx, contents))
        finally:
            store.close()
    return False
