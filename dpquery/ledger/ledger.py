"""The ledger: what was spent, by whom, and whether more may be. Charged first, answered after, never refunded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from dpquery.accounting.event import Price
from dpquery.errors import Fault, OverBudget, Refused
from dpquery.ledger import audit, binding, evidence, faults, log, policy, replay, reserve, restoring, shown, stores, upkeep, verifying, versions
from dpquery.ledger.chain import canonical, commitment
from dpquery.ledger.checkpoint import Key
from dpquery.ledger.entries import amounts_of, line, plain, refused
from dpquery.ledger.evidence import Proof
from dpquery.ledger.mark import Head, Mark
from dpquery.ledger.model import DATASET, JSON, Account, Amounts, Balance, Entry, Finding, Kind, Limit, Logged, Outcome, Row, Terms
from dpquery.ledger.room import Room
from dpquery.ledger.shown import Kept, Stored
from dpquery.ledger.store import Store, Transaction
from dpquery.schema.address import Place, place
from dpquery.schema.model import Schema

T = TypeVar("T")
PAGE: Final = 1000  # lines of the log read at a time


class Ledger:
    """An open ledger. Any number of threads may use it."""

    def __init__(self, store: Store, schema: Schema, terms: Terms, reader: audit.Reader, mark: Mark, head: Head) -> None:
        self.schema = schema
        self.terms = terms
        self._store = store
        self._reader = reader
        self._mark = mark
        self._head = head  # the last line that this process saw
        self._seen: Transaction | None = None  # the transaction whose lines were read

    # ---- questions -------------------------------------------------------------------------------------------------------------

    def charge(self, analyst: str, price: Price, record: Mapping[str, JSON], of: str | None = None) -> Entry:
        """The entry of a charge that is on the disk: from here on the question may be answered. Nothing refunds it.

        With `of`, the charge of a stored answer at that price, the analyst and the group pay for being shown it, and the data set nothing (B8).
        Raises OverBudget where an account has no room or is locked (logged, nothing charged), Refused UNKNOWN_ANALYST, or a Fault: one that names
        the entry where an interrupt came right after the charge.
        """
        keys, amounts, record, name = reserve.route(self.schema, analyst), amounts_of(price), plain(record), log.new_id()
        self._renew()

        def work(tx: Transaction) -> tuple[Row, Account] | OverBudget:
            accounts = self._paying(tx, keys[0], of is not None)
            known = None if of is None else shown.sold(tx, of, keys[0], amounts)
            if known is not None:
                return known, accounts[0]
            refusal = self._refusal(accounts, amounts)
            if refusal is not None:
                log.append(tx, refused(analyst, keys[:1], record, refusal.code, amounts))
                return refusal
            paying = {"analyst": analyst, "accounts": [one.key for one in accounts], **amounts.as_dict(), "record": record}
            row, after = log.append(tx, {"id": name, **({"event": "charged"} if of is None else {"event": "shown", "of": of}), **paying}, accounts)
            if of is not None:
                tx.show(of, keys[0], name)
            return row, after[0]

        try:
            done = self._write(work)
        except KeyboardInterrupt:
            if self._read(lambda tx: tx.row(name)) is None:
                raise
            if of is None:
                self.settle(name, "failed")
            raise Fault("INTERRUPTED", "the query was interrupted before it ran (the price stays charged)", entry=name) from None
        if isinstance(done, OverBudget):
            raise done
        row, own = done
        return Entry(row.id, commitment(row.body), json.loads(row.body)["time"], policy.left(own))

    def refused(self, analyst: str, record: Mapping[str, JSON]) -> str:
        """The id of an entry that says a question was refused; it costs nothing."""
        try:
            own = reserve.route(self.schema, analyst)[:1]
        except Refused:
            own = ()
        content = refused(analyst, own, plain(record), str(record.get("code", "REFUSED")), Amounts())
        return self._write(lambda tx: log.append(tx, content)[0].id)

    def settle(self, entry: str, outcome: Outcome, answer: Kept | None = None) -> None:
        """How the charge `entry` ended, as a further entry; with it `answer` is stored. A time-out counts against the account. The charge stays."""

        def work(tx: Transaction) -> None:
            charge, before = tx.row(entry), tx.outcome(entry)
            if charge is None or charge.event != "charged":
                raise Fault("LEDGER_FAILED", "there is no such charge in the ledger", entry=entry)
            if before is not None and before.event != outcome:
                raise Fault("LEDGER_FAILED", "the charge has another outcome already", entry=entry)
            if before is None:
                payer = json.loads(charge.body)["accounts"][0]
                said = {} if answer is None else {"stored": answer.as_dict()}
                log.append(tx, {"event": outcome, "entry": entry, "account": payer, **said}, [self._account(tx, payer)])
                if answer is not None:
                    shown.keep(tx, entry, payer, answer)

        self._write(work)

    @contextmanager
    def attended(self) -> Iterator[None]:
        """Meanwhile charges made here are attended to. Charges of processes that died are settled first, as interrupted: that one ran out of memory,
        or was killed because it took long, may say something about the data.
        """

        def left_behind() -> None:
            for entry in self._read(lambda tx: sorted(self._reader.charged.keys() - self._reader.settled)):
                self.settle(entry, "interrupted")

        with self._store.attended(left_behind):
            yield

    def stored(self, analyst: str, question: str) -> tuple[Stored, ...]:
        """The stored answers to a question: those that the account has seen, the dearest first, then others'; of equals the latest first."""
        keys = reserve.route(self.schema, analyst)
        return self._read(lambda tx: shown.stored(tx, question, [self._account(tx, key) for key in keys]))

    def content(self, answer: Stored) -> bytes | None:
        """What was stored; None where it is gone."""
        return self._read(lambda tx: shown.content(tx, answer.charge))

    # ---- accounts --------------------------------------------------------------------------------------------------------------

    def balance(self, analyst: str) -> Balance:
        """What the analyst's own account has spent and has left: a function of that account alone."""
        return self._balance(self._own(analyst))

    def balances(self) -> tuple[Balance, ...]:
        """All accounts that ever were, the data set's first. For the owner."""
        self._renew()
        accounts = self._read(self._accounts)
        return tuple(self._balance(a) for a in sorted(accounts.values(), key=lambda a: (a.key != DATASET, a.key)))

    def room(self, analyst: str) -> Room:
        """The analyst's own account as it stands, to try prices on: a function of that account alone."""
        account = self._own(analyst)
        return Room(account, self._locked(account), self.terms.unsafe_testing)

    def unlock(self, analyst: str) -> str:
        """The name of the analyst's account, which may be charged again after too many time-outs: its count starts anew. For the owner."""
        key = reserve.route(self.schema, analyst)[0]
        _, (account,) = self._write(lambda tx: log.append(tx, {"event": "unlocked", "account": key}, [self._account(tx, key)]))
        return account.name

    def grant(self, kind: Kind, name: str, more: Limit, reason: str) -> Balance:
        """The account, whose cap is so much larger than the schema says from now on; of one that renews, until its period ends. For the owner.

        Refused UNKNOWN_ACCOUNT, BAD_GRANT; SchemaError CAPS_EXCEED_BUDGET where there is no room, BAD_BUDGET.
        """
        self._renew()
        return self._balance(self._write(lambda tx: upkeep.granted(tx, self._held(tx), self.schema, (kind, name), more, reason)))

    # ---- data versions ---------------------------------------------------------------------------------------------------------

    def register(self, fingerprint: str, identity: JSON, contents: Sequence[str] = ()) -> int:
        """The number of the data version with this fingerprint, admitted from now on. For the owner, after `check` passed."""

        def work(tx: Transaction) -> int:
            version = versions.admit(tx, self.schema.scope, fingerprint, contents)
            versions.remember(tx, self.schema.scope, identity, version)
            return version

        return self._write(work)

    def join(self, fingerprint: str, identity: JSON, contents: Sequence[str] = ()) -> int:
        """The same for the first version of a data set that shares the account from now on; the log says that it does."""
        self._write(lambda tx: log.append(tx, {"event": "joined", "dataset": self.schema.dataset}))
        return self.register(fingerprint, identity, contents)

    def admitted(self, fingerprint: str) -> int | None:
        """The number of the data version with this fingerprint; None where the owner never admitted it."""
        return self._read(lambda tx: versions.admitted(tx, self.schema.scope, fingerprint))

    def version_of(self, identity: JSON, fingerprint: Callable[[], str]) -> int | None:
        """The number of the data version at hand, None where it is not admitted. `fingerprint` is called only for files not seen before;
        `identity` is what changes whenever the files do (size, times, inode of each), as JSON."""
        known = self.looked_at(identity)
        if known is None and (known := self.admitted(fingerprint())) is not None:
            self.remember(identity, known)
        return known

    def looked_at(self, identity: JSON) -> int | None:
        """The number of the data version that was last found behind files of this identity, None where none was."""
        return self._read(lambda tx: versions.seen(tx, self.schema.scope, identity))

    def remember(self, identity: JSON, version: int) -> None:
        """That version is at hand behind files of this identity."""
        self._write(lambda tx: versions.remember(tx, self.schema.scope, identity, version))

    # ---- the log ---------------------------------------------------------------------------------------------------------------

    def entries(self, analyst: str | None = None) -> Iterator[Logged]:
        """The log's lines in order: all of them, for the owner; or those of one analyst's questions."""
        for row in self._rows():
            logged = line(row)
            if analyst is None or logged.body.get("analyst") == analyst:
                yield logged

    def stood(self, entry: str, key: str) -> Iterator[Balance]:
        """How an account stood right after an entry, and after each that changed it since."""
        accounts, reached = dict[str, Account](), False
        for row in self._rows():
            changed = replay.applied(accounts, json.loads(row.body))
            accounts.update({account.key: account for account in changed})
            if row.id == entry or (reached and any(account.key == key for account in changed)):
                reached = True
                yield self._balance(accounts[key])

    def export(self) -> Iterator[str]:
        """The log as JSON Lines, for the owner: each line with its commitment and link, which anyone can check again. No secret is in it."""
        for row in self._rows():
            yield canonical({"seq": row.seq, "body": json.loads(row.body), "commitment": commitment(row.body), "link": row.link})

    def verify(self, checkpoint: str | None = None, key: Key | None = None) -> tuple[Finding, ...]:
        """What is wrong with the ledger, from its first line on; nothing where all is well. `checkpoint` and `key` as in `verifying.verify`."""
        return verifying.verified(self._store, self.schema, checkpoint, key)

    def checkpoint(self) -> str:
        """The signed head of the log, for the owner to keep where whoever could change the ledger cannot."""
        return self._read(lambda tx: evidence.checkpoint(tx, self.terms))

    def key(self) -> Key:
        """The public key that checkpoints are signed under."""
        return self._read(lambda tx: evidence.owner_key(tx, self.terms))

    def proof(self, entry: str) -> Proof:
        """That an entry is in the log, for whom the owner gives it to. Refused UNKNOWN_ENTRY."""
        return self._read(lambda tx: evidence.proof(tx, self.terms, entry))

    def backup(self, where: Path) -> str:
        """The signed head of the log, after a copy of the ledger was made at `where`. Refused where something lies there."""
        try:
            self._store.backup(where)
        except FileExistsError:
            raise Refused("FILE_EXISTS", f"there is a file at {where} already", instead="name another: a backup replaces none") from None
        return self.checkpoint()

    def close(self) -> None:
        """Nothing is left open."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # ---- inside ----------------------------------------------------------------------------------------------------------------

    def _refusal(self, accounts: list[Account], amounts: Amounts) -> OverBudget | None:
        """Why the price is not charged. What it says is a function of the analyst's own account, but for a bare no of the others."""
        own = accounts[0]
        if self._locked(own):
            return policy.account_locked(own)
        full = None if self.terms.unsafe_testing else policy.refusing(accounts, amounts)
        return None if full is None else policy.over_budget(full, own, amounts)

    def _renew(self) -> None:
        """Periods that are due have begun."""
        if any(upkeep.renewals(self._reader.accounts, self.schema)):
            self._write(lambda tx: upkeep.renewed(tx, self._held(tx), self.schema))

    def _held(self, tx: Transaction) -> dict[str, Account]:
        """All accounts as they stand, each held against the log."""
        return {key: self._account(tx, key) for key in tx.accounts()}

    def _own(self, analyst: str) -> Account:
        self._renew()
        key = reserve.route(self.schema, analyst)[0]
        return self._read(lambda tx: self._account(tx, key))

    def _locked(self, account: Account) -> bool:
        return policy.locked(account, self.schema.limits.timeouts_per_account)

    def _balance(self, account: Account) -> Balance:
        return policy.balance(account, self.terms, self.schema.limits.timeouts_per_account)

    def _rows(self) -> Iterator[Row]:
        first = 1
        while page := self._page(first):
            yield from page
            first = page[-1].seq + 1

    def _page(self, first: int) -> Sequence[Row]:
        return self._read(lambda tx: tx.rows(first, PAGE))

    def _read(self, work: Callable[[Transaction], T]) -> T:
        return self._store.read(lambda tx: work(self._steady(tx)))

    def _write(self, work: Callable[[Transaction], T]) -> T:
        done, head = self._store.write(lambda tx: (work(self._steady(tx, marked=True)), tx.head()))
        self._head = max(self._head, head)
        self._mark.move(head)
        return done

    def _steady(self, tx: Transaction, marked: bool = False) -> Transaction:
        """The transaction, if the log still holds the last line that this process saw, and, where it is to be written, the one that the mark names:
        an older copy put in its place would forget charges.

        Lines that are new since the last transaction are read, so that sums can be held against them. Works that share a transaction see this done
        by the first: what they write is read by the next transaction, when it is known to have stayed.
        """
        if tx is self._seen:
            return tx
        if not evidence.holds(tx, self._head):
            raise faults.rolled_back(self._head[0], "this process")
        lost = self._mark.lost(lambda head: evidence.holds(tx, head)) if marked else None
        if lost is not None:
            raise faults.rolled_back(lost[0], "the mark beside the data")
        self._reader.follow(tx.rows((self._reader.seq or 0) + 1))
        self._head = max(self._head, (self._reader.seq or 0, self._reader.link))
        self._seen = tx
        return tx

    def _account(self, tx: Transaction, key: str) -> Account:
        """One account as it stands. ValueError where that is not what the log gives: somebody wrote into the file."""
        account = tx.account(key)
        if account is None or not (tx.changed(key) or account == self._reader.accounts.get(key)):
            raise ValueError("an account is gone or was changed")
        return account

    def _paying(self, tx: Transaction, key: str, shown: bool) -> list[Account]:
        """The accounts that pay, as the log says by now: the own one, its group's, and, unless a stored answer is shown, the data set's."""
        own = self._account(tx, key)
        return [own, *(self._account(tx, other) for other in replay.paying(own, shown)[1:])]

    def _accounts(self, tx: Transaction) -> Mapping[str, Account]:
        """All accounts, likewise."""
        accounts = tx.accounts()
        if accounts != self._reader.accounts:
            raise ValueError("accounts were changed")
        return accounts


def open(path: str | Place, schema: Schema, *, wait: float = 10.0, restored: str | None = None) -> Ledger:
    """The ledger of the schema's data set, in a file or in a PostgreSQL database (its URL); changed caps in the schema are in force from now on.

    Raises a Fault: LEDGER_MISSING, LEDGER_CORRUPT (chain or sums do not hold), LEDGER_FOREIGN, LEDGER_LOCKED (after `wait` seconds),
    LEDGER_ROLLED_BACK, LEDGER_FAILED; or a SchemaError: LEDGER_MISMATCH, CAPS_EXCEED_BUDGET. The log is read whole up to 5,000 lines, then from its
    last balance on; `verify` reads it all. `restored`: its owner's word, for the log, why one that forgot is used; Refused where it did not.
    """
    store = stores.at(place(path), wait)
    try:
        terms, reader = store.read(_sound)
        reserve.agreed(terms, schema)
        binding.belongs(schema, terms.ledger)
        mark = Mark(binding.places(schema))
        restoring.marked(store, mark, restored)
        if store.read(lambda tx: upkeep.due(tx, schema)):
            store.write(lambda tx: upkeep.brought_up(tx, schema))
        head = store.read(lambda tx: tx.head())
        mark.move(head)
        return Ledger(store, schema, terms, reader, mark, head)
    except BaseException:
        store.close()
        raise


def opened_terms(path: str | Place, *, wait: float = 10.0) -> Terms:
    """The terms of a ledger that need not be this data set's yet. A Fault where there is none, or it cannot be read."""
    store = stores.at(place(path), wait)
    try:
        return store.read(lambda tx: replay.terms(json.loads(tx.rows(1, 1)[0].body)))
    finally:
        store.close()


def _sound(tx: Transaction) -> tuple[Terms, audit.Reader]:
    """The terms in the first line, after the log was read again from its last balance on. ValueError where it does not hold."""
    start = tx.balanced()
    reader = audit.Reader() if start is None else audit.Reader(tx.rows(start.seq - 1, 1)[0].link)
    reader.follow(tx.rows(1 if start is None else start.seq))
    if any(reader.compared(tx.accounts())):
        raise ValueError("the sums do not hold")
    said = json.loads(tx.rows(1, 1)[0].body)
    if said.get("key", owner := versions.owner(tx)) != owner:
        raise ValueError("the owner's key is another one")
    return replay.terms(said), reader
