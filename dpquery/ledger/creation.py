"""Making a ledger: all of it, or nothing."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import assert_never

from dpquery.errors import Fault, Refused
from dpquery.ledger import binding, log, others, postgres, reserve, sqlite
from dpquery.ledger.gate import SUFFIX
from dpquery.ledger.model import JSON
from dpquery.ledger.replay import FORMAT, opening
from dpquery.ledger.store import Transaction
from dpquery.ledger.tables import KEY
from dpquery.ledger.versions import admit, owner, remember
from dpquery.schema.address import Address, Place, place
from dpquery.schema.model import Schema


def create(schema: Schema, path: str | Place | None = None, *, fingerprint: str, identity: JSON, contents: Sequence[str] = ()) -> Place:
    """The place of a new ledger, beside the schema file where none is given; the data with this fingerprint is version 1.

    `contents` are the hashes of its files, by which ledgers that lie about know whether it is theirs.
    Refused where a ledger lies there already or the data has one; SchemaError where the caps do not add up; Fault where a file cannot be written.
    """
    where = place(path if path is not None else schema.default_ledger)
    vacant(schema, where)
    others.unclaimed(schema, where, contents)
    ledger = secrets.token_hex(16)

    def begin(tx: Transaction) -> None:
        log.append(tx, {"event": "created", "format": FORMAT, "key": owner(tx), **asdict(reserve.terms(schema, ledger))})
        for account, _ in reserve.changes(schema, {}, log.moment()):
            log.append(tx, opening(account))
        remember(tx, schema.scope, identity, admit(tx, schema.scope, fingerprint, contents))

    bound: list[Path] = []

    def bind() -> None:
        bound.extend(binding.bind(schema, ledger))

    try:
        match where:
            case Path():
                _in_file(where, ledger, begin, bind)
            case Address():
                _in_database(where, begin, bind)
            case _:
                assert_never(where)
    except BaseException:
        binding.unbind(bound)
        raise
    return where


def vacant(schema: Schema, where: Place) -> None:
    """Nothing, or Refused where a ledger lies there already or the data has one."""
    empty(where)
    binding.free(schema)


def empty(where: Place) -> None:
    """Nothing, or Refused where a ledger lies there already."""
    if isinstance(where, Address):
        postgres.vacant(where)
    else:
        _vacant(where)


def files(schema: Schema, where: Place) -> tuple[Path, ...]:
    """The files of a ledger at `where`, and those that bind the data to it."""
    own = (where, *_beside(where), where.with_name(where.name + SUFFIX)) if isinstance(where, Path) else ()
    return (*own, *binding.places(schema))


def _in_file(where: Path, ledger: str, begin: Callable[[Transaction], None], bind: Callable[[], None]) -> None:
    draft = where.with_name(f".{where.name}.{ledger}")
    try:
        sqlite.make(draft, secrets.token_bytes(KEY), begin)
        bind()
        _place(draft, where)
    finally:
        for left_over in (draft, *_beside(draft)):
            with suppress(OSError):
                left_over.unlink()


def _in_database(where: Address, begin: Callable[[Transaction], None], bind: Callable[[], None]) -> None:
    def work(tx: Transaction) -> None:
        begin(tx)
        bind()  # before the commit: a ledger to which nothing is bound is never there

    postgres.make(where, secrets.token_bytes(KEY), work)


def _vacant(where: Path) -> None:
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
