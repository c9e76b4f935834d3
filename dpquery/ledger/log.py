"""Writing the log: the only place where an entry gets its id, its nonce and its time."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from dpquery.ledger.chain import row
from dpquery.ledger.model import JSON, Account, Row
from dpquery.ledger.replay import applied
from dpquery.ledger.store import Transaction


def append(tx: Transaction, content: Mapping[str, JSON], accounts: Sequence[Account] = ()) -> tuple[Row, tuple[Account, ...]]:
    """The new last line of the log, and those of `accounts` that it changes, as they stand from now on.

    `content` may bring an id of its own, made by `new_id`. The time is for people: order is the chain's, so a clock that was set back does no harm.
    """
    body = {"id": new_id(), "nonce": secrets.token_hex(16), "time": _now(), **content}
    written = row(tx.head(), body)
    tx.append(written)
    changed = applied({account.key: account for account in accounts}, body)
    for account in changed:
        tx.put(account)
    return written, changed


def moment() -> int:
    """What the clock says, in whole seconds of Unix time."""
    return int(datetime.fromisoformat(_now()).timestamp())


def new_id() -> str:
    """The id of an entry: random, so that it says nothing of other entries."""
    return secrets.token_hex(16)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
