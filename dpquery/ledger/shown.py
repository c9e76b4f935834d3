"""Stored answers: what was released once is shown again, to whom the log says that it was shown or sold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from dpquery.ledger.chain import commitment
from dpquery.ledger.lines import body, chained, line
from dpquery.ledger.model import JSON, Account, Amounts, Finding, Row, Shown
from dpquery.ledger.replay import amounts
from dpquery.ledger.store import Transaction


@dataclass(frozen=True, slots=True)
class Kept:
    """A released answer to be stored: the hash of what was asked, and what was released, as bytes."""

    question: str
    content: bytes

    def as_dict(self) -> dict[str, str]:
        """What the log says of it: `sha256` binds the bytes to their entry."""
        return {"question": self.question, "sha256": sha256(self.content).hexdigest()}


@dataclass(frozen=True, slots=True)
class Seen:
    """The line of the log by which an account has seen a stored answer: its own charge, or the one of being shown another's."""

    id: str
    commitment: str
    time: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored answer: the charge that paid for it and what that cost, when it was released; `seen` is None for who was not shown it."""

    charge: str
    seq: int
    amounts: Amounts
    time: str
    seen: Seen | None


def keep(tx: Transaction, charge: str, account: str, kept: Kept) -> None:
    """The answer is stored, in the transaction that says that it was released, and shown to who paid."""
    tx.keep(charge, kept.question, kept.content)
    tx.show(charge, account, charge)


def stored(tx: Transaction, question: str, accounts: Sequence[Account]) -> tuple[Stored, ...]:
    """The stored answers to a question: those that the first of the accounts has seen, the dearest first; then others'; of equals the latest first.

    `accounts` are those that pay, as they hold against the log: a ledger that was altered shows nothing. ValueError where the log does not say what
    the tables say.
    """
    rows, account = tx.shown(question), accounts[0].key
    own = {row.entry for row in rows if row.account == account}
    found = [_stored(tx, row, question, row.account == account) for row in rows if row.account == account or row.entry == row.line]
    return tuple(
        sorted(
            (one for one in found if one.seen is not None or one.charge not in own),
            key=lambda one: (one.seen is None, -one.amounts.rho, -one.seq),
        )
    )


def content(tx: Transaction, charge: str) -> bytes | None:
    """The bytes of a stored answer, None where they are gone; ValueError where they are not those that the log binds to the charge."""
    found = tx.kept(charge)
    if found is not None and sha256(found).hexdigest() != _released(tx, charge)[1]["sha256"]:
        raise ValueError("a stored answer was changed")
    return found


def sold(tx: Transaction, charge: str, account: str, price: Amounts) -> Row | None:
    """B8. The line by which the account has seen the stored answer of `charge` already; None where it is to be charged for it now.

    Given   a released answer whose charge every account tested that its payer has; another account that was not shown it, and asks the same.
    Claim   showing it to that account for exactly the price that was charged for it, on that account and its group but not on the data set, keeps
            every cap's guarantee; showing it again to who has seen it costs nobody anything.
    Proof   What is shown is a function of what the charge released, so the data set's loss is that of the charge (post-processing); the price is one
            at which the release was charged, so whoever sees it, and the group, lose no more than they are charged, as if it had been drawn for them:
            their filters (B1) let it through or not like any other charge. Where caps are reserved, all answers together are those of the
            charges, each within its payer's account (B3). A second look shows nothing that is new.
            Hit or miss reads the question, the log's lines on that question and the schema: no data.
    Tight   An account pays all of a shared answer's price: test_a_shared_answer_costs_its_whole_price
    Source  Dwork and Roth 2014, proposition 2.1 (post-processing); docs/pitfalls.md B5, N12.
    """
    row, said = _released(tx, charge)
    if amounts(body(line(tx, charge))) != price:
        raise ValueError("a stored answer is sold for another price than it cost")
    return next((line(tx, one.line) for one in tx.shown(said["question"]) if (one.entry, one.account) == (row.ref, account)), None)


def _stored(tx: Transaction, shown: Shown, question: str, own: bool) -> Stored:
    released, said = _released(tx, shown.entry)
    if said["question"] != question:
        raise ValueError("a stored answer is to another question")
    charge = line(tx, shown.entry)
    seen = line(tx, shown.line)
    if not authorised(body(seen), shown):
        raise ValueError("nobody was shown this stored answer")
    looked = Seen(seen.id, commitment(seen.body), body(seen)["time"]) if own else None
    return Stored(charge.id, charge.seq, amounts(body(charge)), body(released)["time"], looked)


def authorised(body: Mapping[str, JSON], shown: Shown) -> bool:
    """Whether a line of the log says that the account was shown the answer: its own charge, or being shown what another paid for."""
    of = {"charged": body["id"], "shown": body.get("of")}.get(body["event"])
    return of == shown.entry and body["accounts"][0] == shown.account


def _released(tx: Transaction, charge: str) -> tuple[Row, Mapping[str, str]]:
    """The line that says that the charge was released and its answer stored, and what it says of it."""
    row = tx.outcome(charge)
    said = None if row is None else body(chained(tx, row)).get("stored")
    if row is None or not isinstance(said, dict):
        raise ValueError("an answer is stored that the log does not know")
    return row, said


def findings(tx: Transaction) -> Iterator[Finding]:
    """How what is stored differs from what the log says of it."""
    bound, said = dict[str, tuple[int, str, str]](), set[Shown]()
    for row in tx.rows(1):
        told = body(row)
        if row.event == "shown":
            said.add(Shown(told["of"], told["accounts"][0], row.id))
        if "stored" in told and row.ref is not None:
            bound[row.ref] = row.seq, str(told["stored"]["sha256"]), str(told["stored"]["question"])
            said.add(Shown(row.ref, told["account"], row.ref))
    kept = dict(tx.answers())
    for entry, (seq, digest, question) in bound.items():
        found = tx.kept(entry) if entry in kept else None
        if found is None:
            yield Finding(seq, "the answer that it stored is gone")
        elif sha256(found).hexdigest() != digest:
            yield Finding(seq, "the answer that it stored was changed")
        elif kept[entry] != question:
            yield Finding(seq, "the answer that it stored is kept as that to another question")
    yield from (Finding(None, "an answer is stored that the log does not know") for entry in kept if entry not in bound)
    shown = set(tx.shows())
    for one in sorted(shown - said, key=str):
        yield Finding(None, f"account {one.account or 'nobody'} was shown a stored answer without a line of the log")
    for one in sorted(said - shown, key=str):
        yield Finding(None, f"account {one.account} was shown a stored answer, as the log says, and the tables do not know it")
