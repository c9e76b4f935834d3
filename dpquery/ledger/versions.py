"""Data versions: the log holds a number and a commitment under the owner's key; the fingerprint itself is nowhere.

Data sets that share a ledger count apart: `scope` is the data set's name there, and empty where the ledger is one data set's own.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Mapping, Sequence

from dpquery.ledger import log
from dpquery.ledger.chain import canonical
from dpquery.ledger.lines import body, line
from dpquery.ledger.model import JSON
from dpquery.ledger.store import Transaction


def admitted(tx: Transaction, scope: str, fingerprint: str) -> int | None:
    """The number of the version with this fingerprint; None where the owner never admitted it."""
    wanted = _sealed(tx, "data version", fingerprint)
    for said in _bodies(tx):
        if scope_of(said) == scope and hmac.compare_digest(str(said["commitment"]), wanted):
            return int(said["version"])
    return None


def admit(tx: Transaction, scope: str, fingerprint: str, contents: Sequence[str] = ()) -> int:
    """The number of the version with this fingerprint, admitted from now on if it was not before; `contents` are the hashes of its files."""
    known = admitted(tx, scope, fingerprint)
    if known is not None:
        return known
    version = _count(tx, scope) + 1
    held_files = {"files": [_sealed(tx, "file", one) for one in contents]} if contents else {}
    log.append(tx, {"event": "registered", **_whose(scope), "version": version, "commitment": _sealed(tx, "data version", fingerprint), **held_files})
    return version


def holds(tx: Transaction, contents: Sequence[str]) -> bool:
    """Whether any version that was ever admitted has a file of this content."""
    wanted = {_sealed(tx, "file", one) for one in contents}
    return any(not wanted.isdisjoint(said.get("files", ())) for said in _bodies(tx))


def seen(tx: Transaction, scope: str, identity: JSON) -> int | None:
    """The version last found behind files of this identity."""
    sealed = _identified(tx, scope, identity)
    found = tx.seen(sealed)
    if found is None:
        return None
    said = body(line(tx, found))
    if (said["event"], said["identity"], scope_of(said)) != ("looked", sealed, scope):
        raise ValueError("the log does not say what was found behind these files")
    return int(said["version"])


def remember(tx: Transaction, scope: str, identity: JSON, version: int) -> None:
    """That version was found behind files of this identity; the log says so, once."""
    if seen(tx, scope, identity) == version:
        return
    sealed = _identified(tx, scope, identity)
    row, _ = log.append(tx, {"event": "looked", **_whose(scope), "version": version, "identity": sealed})
    tx.see(sealed, row.id)


def owner(tx: Transaction) -> str:
    """A commitment to the owner's key."""
    return _sealed(tx, "owner", "")


def scope_of(said: Mapping[str, JSON]) -> str:
    """The scope of an entry that admits a version, or says that it was found."""
    return str(said.get("dataset", ""))


def counts(tx: Transaction) -> JSON:
    """How many versions each data set has."""
    return held(Counter(map(scope_of, _bodies(tx))))


def held(counted: Mapping[str, int]) -> JSON:
    """Such counts as a balance holds them: a number where there is one data set alone."""
    return dict(counted) if any(counted) else counted.get("", 0)


def restored(given: JSON) -> Counter[str]:
    """The counts behind `held`."""
    return Counter(given) if isinstance(given, dict) else Counter({"": given})


def _whose(scope: str) -> dict[str, JSON]:
    return {"dataset": scope} if scope else {}


def _bodies(tx: Transaction) -> list[Mapping[str, JSON]]:
    return [body(row) for row in tx.registered()]


def _count(tx: Transaction, scope: str) -> int:
    return sum(scope_of(said) == scope for said in _bodies(tx))


def _identified(tx: Transaction, scope: str, identity: JSON) -> str:
    return _sealed(tx, "identity", canonical([scope, identity] if scope else identity))


def _sealed(tx: Transaction, purpose: str, content: str) -> str:
    return hmac.digest(tx.secret(), f"dpquery {purpose}\0{content}".encode(), "sha256").hex()
