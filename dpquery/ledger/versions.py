"""Data versions: the log holds a number and a commitment under the owner's key; the fingerprint itself is nowhere."""

from __future__ import annotations

import hmac
import json

from dpquery.ledger import log
from dpquery.ledger.chain import canonical
from dpquery.ledger.model import JSON
from dpquery.ledger.store import Transaction


def admitted(tx: Transaction, fingerprint: str) -> int | None:
    """The number of the version with this fingerprint; None where the owner never admitted it."""
    wanted = _sealed(tx, "data version", fingerprint)
    for row in tx.registered():
        body = json.loads(row.body)
        if hmac.compare_digest(str(body["commitment"]), wanted):
            return int(body["version"])
    return None


def admit(tx: Transaction, fingerprint: str) -> int:
    """The number of the version with this fingerprint, admitted from now on if it was not before."""
    known = admitted(tx, fingerprint)
    if known is not None:
        return known
    version = len(tx.registered()) + 1
    log.append(tx, {"event": "registered", "version": version, "commitment": _sealed(tx, "data version", fingerprint)})
    return version


def seen(tx: Transaction, identity: JSON) -> int | None:
    """The version last found behind files of this identity."""
    version = tx.seen(_sealed(tx, "identity", canonical(identity)))
    return version if version is not None and 0 < version <= len(tx.registered()) else None


def remember(tx: Transaction, identity: JSON, version: int) -> None:
    """That version was found behind files of this identity."""
    tx.see(_sealed(tx, "identity", canonical(identity)), version)


def _sealed(tx: Transaction, purpose: str, content: str) -> str:
    return hmac.digest(tx.secret(), f"dpquery {purpose}\0{content}".encode(), "sha256").hex()
