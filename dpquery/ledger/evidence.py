"""What the owner can show of a log: its head, that an entry is in it, and whether it still holds what was signed."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpquery.errors import Refused
from dpquery.ledger import tree
from dpquery.ledger.chain import MALFORMED, commitment
from dpquery.ledger.checkpoint import Checkpoint, Key, Unsound, key, opened, origin, signed
from dpquery.ledger.model import JSON, Finding, Terms
from dpquery.ledger.store import Transaction


@dataclass(frozen=True, slots=True)
class Proof:
    """That an entry is in the log: its commitment, its place among so many entries, the hashes beside its way to the root, and the signed root.

    It shows how many entries there are, which tells of all who ask: the owner gives it to whom that may be told.
    """

    entry: str
    commitment: bytes
    index: int
    hashes: tuple[bytes, ...]
    checkpoint: str

    def as_dict(self) -> dict[str, JSON]:
        """JSON-ready; hashes in hexadecimal."""
        return {
            "entry": self.entry,
            "commitment": self.commitment.hex(),
            "index": self.index,
            "hashes": [one.hex() for one in self.hashes],
            "checkpoint": self.checkpoint,
        }


def checkpoint(tx: Transaction, terms: Terms) -> str:
    """The signed head of the log as it is now."""
    return _signed(tx, terms, _leaves(tx))


def owner_key(tx: Transaction, terms: Terms) -> Key:
    """The public key that checkpoints of this ledger are signed under."""
    return key(_seed(tx), origin(terms.dataset, terms.ledger))


def proof(tx: Transaction, terms: Terms, entry: str) -> Proof:
    """That this entry is in the log. Refused where none has that id."""
    row = tx.row(entry)
    if row is None:
        raise Refused("UNKNOWN_ENTRY", "the ledger has no entry of that id", instead="an id that a receipt or `dpquery ledger list` shows")
    leaves = _leaves(tx)
    return Proof(row.id, bytes.fromhex(commitment(row.body)), row.seq - 1, tree.inclusion(leaves, row.seq - 1), _signed(tx, terms, leaves))


def holds(tx: Transaction, head: tuple[int, str]) -> bool:
    """Whether the log has that line, with that link to all before it."""
    found = tx.rows(head[0], 1)
    return bool(found) and (found[0].seq, found[0].link) == head


def findings(tx: Transaction, note: str, by: Key) -> Iterator[Finding]:
    """How the log differs from what was signed: entries changed, moved, or cut off at the end, which nothing in the ledger itself can show."""
    try:
        held = opened(note, by)
    except Unsound as unsound:
        yield Finding(None, f"the checkpoint does not hold: {unsound}")
        return
    leaves = _leaves(tx)
    if len(leaves) < held.size:
        yield Finding(
            None, f"the log was cut off: the checkpoint has {held.size:,} entries, the log {len(leaves):,}; an older copy may be in its place"
        )
    elif held.size and not tree.consistent(held.size, held.root, len(leaves), tree.root(leaves), tree.consistency(leaves, held.size)):
        yield Finding(None, f"the first {held.size:,} entries are not those that the checkpoint stands for")


def proved(content: Mapping[str, JSON], commitment: str, by: Key) -> Iterator[Finding]:
    """What is wrong with a proof that is to show an entry of that commitment; nothing where it holds. Needs no ledger."""
    try:
        hashes = [bytes.fromhex(one) for one in content["hashes"]]
        head = opened(content["checkpoint"], by)
        index, shown = int(content["index"]), str(content["commitment"])
    except Unsound as unsound:
        yield Finding(None, f"the proof's checkpoint does not hold: {unsound}")
        return
    except MALFORMED:
        yield Finding(None, "the proof is of no format that `dpquery ledger prove` writes")
        return
    if shown != commitment:
        yield Finding(None, "the proof is another entry's: its commitment is not the receipt's")
    elif not tree.included(tree.leaf(bytes.fromhex(commitment)), index, head.size, hashes, head.root):
        yield Finding(None, "the proof does not lead from the entry to the signed root")


def _signed(tx: Transaction, terms: Terms, leaves: list[bytes]) -> str:
    return signed(Checkpoint(origin(terms.dataset, terms.ledger), len(leaves), tree.root(leaves)), _seed(tx))


def _leaves(tx: Transaction) -> list[bytes]:
    """The leaf of each line, from commitments computed anew."""
    return [tree.leaf(bytes.fromhex(commitment(row.body))) for row in tx.rows(1)]


def _seed(tx: Transaction) -> bytes:
    """The signing key, out of the owner's key: whoever has the ledger's file has both, so what protects is the checkpoint kept elsewhere."""
    return hmac.digest(tx.secret(), b"dpquery checkpoint key", "sha256")
