"""A ledger that forgot: noticed by the mark beside the data, and used again only on its owner's word, which the log keeps."""

from __future__ import annotations

from collections.abc import Callable

from dpquery.errors import Refused
from dpquery.ledger import evidence, faults, log
from dpquery.ledger.mark import Head, Mark
from dpquery.ledger.store import Store, Transaction
from dpquery.ledger.upkeep import LONGEST_REASON


def marked(store: Store, mark: Mark, reason: str | None) -> None:
    """Nothing, if the ledger holds what the mark names; else a Fault, or, with a reason, a line in the log and the mark on it."""
    if reason is None:
        if store.read(lambda tx: _looked(mark, tx)) is not None and (lost := store.write(lambda tx: _looked(mark, tx))) is not None:
            raise faults.rolled_back(lost[0], "the mark beside the data")
        return
    if not reason.strip() or len(reason) > LONGEST_REASON or not reason.isprintable():
        raise Refused("BAD_REASON", f"a reason has 1 to {LONGEST_REASON} printable characters, which the log keeps", instead="`--reason TEXT`")
    mark.move(store.write(_restored(mark, reason)), back=True)


def _restored(mark: Mark, reason: str) -> Callable[[Transaction], Head]:
    def work(tx: Transaction) -> Head:
        lost = _looked(mark, tx)
        if lost is None:
            raise Refused("NOTHING_FORGOTTEN", "the ledger has every entry that the mark beside the data knows of", instead="use it as it is")
        log.append(tx, {"event": "restored", "reason": reason, "line": lost[0], "link": lost[1]})
        return tx.head()

    return work


def _looked(mark: Mark, tx: Transaction) -> Head | None:
    return mark.lost(lambda head: evidence.holds(tx, head))
