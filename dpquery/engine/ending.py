"""How a question ends: a refusal of what nobody foresaw, what the analyst is told after the charge, and what the ledger keeps of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dpquery.errors import Error, Fault, Refused
from dpquery.ledger import Entry, Kept, Ledger, Outcome
from dpquery.release.answer import Answer

# Failures after the charge that say nothing about the data. All others may (a time-out does), so they count against the account's time-outs.
BLAMELESS = frozenset({"DATA_CHANGED", "DATA_MISSING", "DATA_WAL", "PRICE_DIFFERS"})


def of_ledger(error: Error) -> bool:
    """Whether it is the ledger itself that failed."""
    return error.code.startswith("LEDGER_")


def told(broken: BaseException, entry: Entry) -> Fault:
    """What the analyst is told of a failure after the charge: constant words, with the entry's id."""
    if isinstance(broken, Fault) and of_ledger(broken):
        message = "the ledger failed after the charge; the answer is withheld (the price stays charged)"
        return Fault(broken.code, message, instead="tell the data owner, who sees to the ledger", entry=entry.id)
    if isinstance(broken, Fault):
        return Fault(broken.code, broken.message + " (the price stays charged)", instead=broken.instead, entry=entry.id)
    return Fault("INTERNAL", "the query failed (the price stays charged)", instead=f"report entry {entry.id} to the data owner", entry=entry.id)


def outcome(reply: Answer | Fault) -> Outcome:
    """What the ledger keeps of a reply after the charge."""
    if isinstance(reply, Answer):
        return "released"
    return "failed" if reply.code in BLAMELESS or of_ledger(reply) else "timeout"


def settle(ledger: Ledger, entry: Entry, outcome: Outcome, kept: Kept | None) -> None:
    """The charge has its outcome in the log, and what it released is stored. Where the ledger fails meanwhile it has neither, as after a crash: the
    charge holds either way."""
    with suppress(Fault):
        ledger.settle(entry.id, outcome, kept)


@contextmanager
def foreseen() -> Iterator[None]:
    """Before the charge, a failure that nobody foresaw is a refusal: no foreign error leaves, with an engine's or a library's words in it."""
    try:
        yield
    except Error:
        raise
    except Exception:
        message = "the statement cannot be answered, for a reason that nobody foresaw; nothing was charged"
        raise Refused("UNANSWERABLE", message, instead="a simpler wording; and a report to the makers of dpquery") from None
