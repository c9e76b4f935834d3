"""Data versions: the log holds a number and a commitment under the owner's key; the fingerprint itself is nowhere.

Data sets that share a ledger count apart: `scope` is the data set's name there, and empty where the ledger is one data set's own.
"""

from __future__ import annotations

import hmac
import json
from collections import Counter
from collections.abc import Mapping

from dpquery.ledger import log
from dpquery.ledger.chain import canonical
from dpquery.ledger.model import JSON
from dpquery.ledger.store import Transaction


def admitted(tx: Transaction, scope: str, fingerprint: str) -> int | None:
    """The number of the version with this fingerprint; None where the owner never admitted it."""
    wanted = _sealed(tx, "data version", fingerprint)
    for body in _bodies(tx):
        if scope_of(body) == scope and hmac.compare_digest(str(body["commitment"]), wanted):
            return int(body["version"])
    return None


def admit(tx: Transaction, scope: str, fingerprint: str) -> int:
    """The number of the version with this fingerprint, admitted from now on if it was not before."""
    known = admitted(tx, scope, fingerprint)
    if known is not None:
        return known
    version = _count(tx, scope) + 1
    whose = {"dataset": scope} if scope else {}
    log.append(tx, {"event": "registered", **whose, "version": version, "commitment": _sealed(tx, "data version", fingerprint)})
    return version


def seen(tx: Transaction, scope: str, identity: JSON) -> int | None:
    """The version last found behind files of this identity."""
    version = tx.seen(_identified(tx, scope, identity))
    return version if version is not None and 0 < version <= _count(tx, scope) else None


def remember(tx: Transaction, scope: str, identity: JSON, version: int) -> None:
    """That version was found behind files of this identity."""
    tx.see(_identified(tx, scope, identity), version)


def scope_of(body: Mapping[str, JSON]) -> str:
    """The scope of an entry that admits a version."""
    return str(body.get("dataset", ""))


def counts(tx: Transaction) -> JSON:
    """How many versions each data set has."""
    return held(Counter(map(scope_of, _bodies(tx))))


def held(counted: Mapping[str, int]) -> JSON:
    """Such counts as a balance holds them: a number where there is one data set alone."""
    return dict(counted) if any(counted) else counted.get("", 0)


def restored(given: JSON) -> Counter[str]:
    """The counts behind `held`."""
    return Counter(given) if isinstance(given, dict) else Counter({"": given})


def _bodies(tx: Transaction) -> list[Mapping[str, JSON]]:
    return [json.loads(row.body) for row in tx.registered()]


def _count(tx: Transaction, scope: str) -> int:
    return sum(scope_of(body) == scope for body in _bodies(tx))


def _identified(tx: Transaction, scope: str, identity: JSON) -> str:
    return _sealed(tx, "identity", canonical([scope, identity] if scope else identity))


def _sealed(tx: Transaction, purpose: str, content: str) -> str:
    return hmac.digest(tx.secret(), f"dpquery {purpose}\0{content}".encode(), "sha256").hex()
