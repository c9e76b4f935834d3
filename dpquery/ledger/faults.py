"""What a ledger's store says when it cannot serve, whichever store it is."""

from __future__ import annotations

from dpquery.errors import Fault


def locked() -> Fault:
    """Others wrote all the time."""
    return Fault("LEDGER_LOCKED", "the ledger is in use by another process; nothing was charged", instead="try again")


def missing(what: str, lost: str = "is restored from its backup") -> Fault:
    """No ledger there."""
    return Fault(
        "LEDGER_MISSING",
        f"{what} no question is answered",
        instead=f"the data owner makes one with `dpquery ledger create`; one that was lost {lost}",
    )


def corrupt(what: str) -> Fault:
    """The ledger is not as it was written."""
    return Fault(
        "LEDGER_CORRUPT",
        f"{what}; nothing was charged",
        instead="the data owner runs `dpquery ledger verify`, and restores the ledger from its backup",
    )


def rolled_back(line: int, who: str) -> Fault:
    """The ledger is in good order, and lacks what was charged: an older one lies in its place, or another copy was charged."""
    return Fault(
        "LEDGER_ROLLED_BACK",
        f"the ledger forgot: {who} saw its entry {line:,}, which it does not have; an older ledger, or another copy of it, lies in its place; "
        "nothing was charged",
        instead="put the newest ledger back; where it is lost, its owner says so with `dpquery ledger restored --reason TEXT`",
    )


def failed(what: str, instead: str) -> Fault:
    """Something that the ledger needs is not so."""
    return Fault("LEDGER_FAILED", f"the ledger failed: {what}; nothing was charged", instead=instead)


def newer() -> Fault:
    """Written in a format that is not known yet."""
    return Fault("LEDGER_FAILED", "the ledger was written by a newer dpquery", instead="upgrade dpquery")
