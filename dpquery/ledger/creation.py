"""Making a ledger: all of it, or nothing."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from dpquery.errors import Fault, Refused
from dpquery.ledger import binding, log, reserve, sqlite
from dpquery.ledger.gate import SUFFIX
from dpquery.ledger.model import JSON
from dpquery.ledger.replay import FORMAT, opening
from dpquery.ledger.store import Transaction
from dpquery.ledger.tables import KEY
from dpquery.ledger.versions import admit, remember
from dpquery.schema.model import Schema


def create(schema: Schema, path: str | Path | None = None, *, fingerprint: str, identity: JSON) -> Path:
    """The path of a new ledger, beside the schema file where none is given; the data with this fingerprint is version 1.

    Refused where a ledger lies there already or the data has one; SchemaError where the caps do not add up; Fault where a file cannot be written.
    """
    where = Path(path) if path is not None else schema.default_ledger
    vacant(schema, where)
    ledger = secrets.token_hex(16)

    def begin(tx: Transaction) -> None:
        log.append(tx, {"event": "created", "format": FORMAT, **asdict(reserve.terms(schema, ledger))})
        for account, _ in reserve.changes(schema, {}):
            log.append(tx, opening(account))
        remember(tx, identity, admit(tx, fingerprint))

    draft = where.with_name(f".{where.name}.{ledger}")
    bound: tuple[Path, ...] = ()
    try:
        sqlite.make(draft, secrets.token_bytes(KEY), begin)
        bound = binding.bind(schema, ledger)
        _place(draft, where)
    except BaseException:
        binding.unbind(bound)
        raise
    finally:
        for left_over in (draft, *_beside(draft)):
            with suppress(OSError):
                left_over.unlink()
    return where


def vacant(schema: Schema, where: Path) -> None:
    """Nothing, or Refused where a ledger lies there already or the data has one."""
    if os.path.lexists(where):
        raise Refused(
            "LEDGER_EXISTS",
            f"there is a ledger at {where} already",
            instead="use it; a ledger is never made anew, as that would forget what was spent",
        )
    for left_over in _beside(where):
        if os.path.lexists(left_over):
            message = f"{left_over.name} belongs to a ledger that is missing at {where}"
            raise Refused("LEDGER_EXISTS", message, instead="restore the ledger; only if there is none, remove that file")
    binding.free(schema)


def files(schema: Schema, where: Path) -> tuple[Path, ...]:
    """The files of a ledger at `where`, and those that bind the data to it."""
    return (where, *_beside(where), where.with_name(where.name + SUFFIX), *binding.places(schema))


def _beside(where: Path) -> tuple[Path, ...]:
    """The files that SQLite keeps beside a database while it is in use."""
    return tuple(where.with_name(where.name + suffix) for suffix in ("-wal", "-shm", "-journal"))


def _place(draft: Path, where: Path) -> None:
    """The finished file gets its name in one step, unless another took it meanwhile."""
    try:
        _named(draft, where)
        binding.settled(where.parent)
    except FileExistsError:
        raise Refused("LEDGER_EXISTS", f"there is a ledger at {where} already", instead="use it") from None
    except OSError as error:
        raise Fault("LEDGER_FAILED", f"{where} cannot be written: {error.strerror}", instead="name a folder that is writable") from None


def _named(draft: Path, where: Path) -> None:
    try:
        os.link(draft, where)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(where):
            raise FileExistsError from None
        os.rename(draft, where)
    else:
        with suppress(OSError):  # at once: a ledger with two names is not opened
            draft.unlink()
