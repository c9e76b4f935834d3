"""Whether a log hangs together: the chain, what follows what, and the running sums beside it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from fractions import Fraction

from dpquery.ledger import policy, versions
from dpquery.ledger.chain import MALFORMED, START, commitment, link
from dpquery.ledger.model import DATASET, JSON, Account, Finding, Kind, Limit, Row
from dpquery.ledger.renewal import begins
from dpquery.ledger.replay import FORMAT, LATER, OLDEST, OUTCOMES, applied, balanced, paying, restored, terms

SLACK = 60  # seconds that the clock may be set back while a line is written
PRICE = ("epsilon", "rho", "delta")


def findings(rows: Iterable[Row], stored: Mapping[str, Account], reader: Reader) -> Iterator[Finding]:
    """What is wrong with the log and the sums stored beside it; nothing where all is well.

    `rows` is the whole log, or its end from a `balanced` entry on, for a new `reader`, which began with the link before that.
    """
    for row in rows:
        yield from reader.read(row)
    yield from reader.compared(stored)


class Reader:
    """Reads a log line by line, as it grows. It stops making sense of accounts after the first line that it cannot follow.

    `accounts` are the sums that the log gives, up to line `seq`, whose link is `link`.
    """

    def __init__(self, previous: str = START) -> None:
        self.link = previous
        self.seq: int | None = None
        self.whole = previous == START
        self.accounts: dict[str, Account] = {}
        self.ids: set[str] = set()
        self.charged: dict[str, str] = {}  # id -> the account that pays
        self.settled: set[str] = set()
        self.open: dict[str, JSON] = {}  # what a charge cost that has no outcome yet
        self.stored: dict[str, JSON] = {}  # what the charges cost whose answers are stored
        self.versions: Counter[str] = Counter()
        self.looked: dict[str, str] = {}  # the line about the files of each identity
        self.key: str | None = None  # the commitment to the owner's key
        self.format = FORMAT
        self.capped = self.reserving = False  # known from the first line only
        self.lost = False

    def follow(self, rows: Iterable[Row]) -> None:
        """Nothing; the lines were read. ValueError where one does not hold, from then on each time."""
        for row in rows:
            self.lost = any([*self.read(row)]) or self.lost
        if self.lost:
            raise ValueError("the log does not hold")

    def read(self, row: Row) -> Iterator[Finding]:
        """What is wrong with one line."""
        first, expected = self.seq is None, (self.seq or 0) + 1
        if (not first or self.whole) and row.seq != expected:
            yield Finding(row.seq, f"line {expected} is missing")
        self.seq = row.seq
        try:
            linked = link(self.link, commitment(row.body))
        except ValueError:
            linked = ""
        if row.link != linked:
            yield Finding(row.seq, "the hash chain is broken: this line, or one before it, was changed, moved or taken out")
        self.link = row.link
        if self.lost:
            return
        try:
            self._follow(row, json.loads(row.body), first)
        except MALFORMED as error:
            self.lost = True
            yield Finding(row.seq, f"the line cannot follow the ones before it ({_said(error)})")

    def _follow(self, row: Row, body: Mapping[str, JSON], first: bool) -> None:
        if (body["id"], body["event"], body.get("entry")) != (row.id, row.event, row.ref):
            raise ValueError("its columns differ from its body")
        if row.id in self.ids:
            raise ValueError("an id twice")
        self.ids.add(row.id)
        if first and self.whole:
            fixed = terms(body)
            self.capped, self.format, self.key = not fixed.unsafe_testing, body["format"], body.get("key")
            self.reserving = self.capped and not fixed.oversubscribe
        elif row.event == "created":
            raise ValueError("created twice")
        if row.event == "balanced":
            self._balance(body, first)
        elif first and not self.whole:
            raise ValueError("no balance to start from")
        self._states(body)
        self.accounts.update({account.key: account for account in applied(self.accounts, body)})

    def _balance(self, body: Mapping[str, JSON], first: bool) -> None:
        if first and not self.whole:
            self.accounts, self.versions = restored(body["accounts"]), versions.restored(body["versions"])
        elif (balanced(tuple(self.accounts.values())), versions.held(self.versions)) != (body["accounts"], body["versions"]):
            raise ValueError("its sums differ from those of the lines before it")

    def _states(self, body: Mapping[str, JSON]) -> None:
        """ValueError where a charge has two outcomes, an outcome no charge, or a data version another number than the next."""
        if body["event"] in ("charged", "shown"):
            self._paid(body)
        if body["event"] == "charged":
            self.charged[body["id"]] = body["accounts"][0]
            self.open[body["id"]] = [body[name] for name in PRICE]
        elif body["event"] in OUTCOMES:
            self._outcome(body["entry"], body["account"])
            cost = self.open.pop(body["entry"], None)
            if "stored" in body:
                self.stored[body["entry"]] = cost
        elif body["event"] == "upgraded":
            if self.whole and not self.format < body["format"] <= FORMAT:
                raise ValueError("formats out of order")
            self.format, self.key = body["format"], body.get("key")
        elif self.format == OLDEST and body["event"] in LATER:
            raise ValueError("an event that its format does not have")
        elif body["event"] == "shown":
            self._shown(body)
        elif body["event"] in ("renewed", "lapsed"):
            self._passed(self.accounts[body["account"]], body)
        elif body["event"] == "looked":
            if not 0 < body["version"] <= self.versions[versions.scope_of(body)]:
                raise ValueError("a data version is found that was never admitted")
            self.looked[body["identity"]] = body["id"]
        elif body["event"] == "registered":
            scope = versions.scope_of(body)
            self.versions[scope] += 1
            if body["version"] != self.versions[scope]:
                raise ValueError("data versions out of order")

    def _paid(self, body: Mapping[str, JSON]) -> None:
        """ValueError where not the accounts pay that should, or a data version is at hand that was never admitted."""
        own, record = self.accounts[body["accounts"][0]], body["record"]
        if own.kind is not Kind.ANALYST or paying(own, body["event"] == "shown") != tuple(body["accounts"]):
            raise ValueError("it is charged to other accounts than the analyst's own, the group's and the data set's")
        if "data_version" in record and not 0 < record["data_version"] <= self.versions[record["dataset"] if any(self.versions) else ""]:
            raise ValueError("it is about a data version that was never admitted")

    def _passed(self, account: Account, body: Mapping[str, JSON]) -> None:
        if body["event"] == "renewed" and self._overspent(account):
            raise ValueError("more was spent in a period than its largest cap")
        if account.periods is not None and begins(account.periods, body["period"]) > datetime.fromisoformat(body["time"]).timestamp() + SLACK:
            raise ValueError("a period begins before its time")

    def _shown(self, body: Mapping[str, JSON]) -> None:
        cost = self.stored.get(body["of"])
        if cost != [body[name] for name in PRICE] and (cost is not None or self.whole):  # else it was stored before what was read
            raise ValueError("a stored answer is shown that is none, or for another price than it cost")

    def _outcome(self, entry: str, account: str) -> None:
        if entry in self.settled:
            raise ValueError("a charge with two outcomes")
        self.settled.add(entry)
        if self.whole and self.charged.get(entry) != account:
            raise ValueError("an outcome without its charge")

    def compared(self, stored: Mapping[str, Account]) -> Iterator[Finding]:
        """How the sums stored beside the log differ from those that the log gives."""
        if self.seq is None:
            yield Finding(None, "the log is empty")
        if self.lost or self.seq is None:
            return
        for key in sorted(self.accounts.keys() | stored.keys()):
            if self.accounts.get(key) != stored.get(key):
                yield Finding(None, f"the stored sums of account {key} differ from those that the log gives")
        for account in self.accounts.values():
            if self._overspent(account):
                yield Finding(None, f"account {account.key} has spent more than any cap it ever had")
        if self.reserving:
            yield from (Finding(None, said) for said in self._overreserved())

    def _overspent(self, account: Account) -> bool:
        return self.capped and account.tested and not policy.within(account.largest, account.delta_conv, account.spent)

    def _overreserved(self) -> Iterator[str]:
        """Whose caps add up to more than they may: those of all analysts, or of a group's members."""
        analysts = [a for a in self.accounts.values() if a.kind is Kind.ANALYST]
        if _more([a.reserved for a in analysts], self.accounts[DATASET].largest):
            yield "the largest caps of all analysts add up to more than any cap that the data set ever had"
        for group in (a for a in self.accounts.values() if a.kind is Kind.GROUP):
            if _more([a.reserved for a in analysts if a.group == group.name], group.largest):
                yield f"the largest caps of the members of group {group.name} add up to more than any cap that it ever had"


def _more(caps: Sequence[Limit], whole: Limit) -> bool:
    return sum(Fraction(c.epsilon) for c in caps) > whole.epsilon or sum(Fraction(c.delta) for c in caps) > whole.delta


def _said(error: Exception) -> str:
    return str(error) if type(error) is ValueError else "it is not of this format"
