"""What the ledger remembers, as frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any, Final, Literal

from dpquery.accounting.event import Price
from dpquery.ledger.amounts import ZERO, minus, plus, rounded_up, text, times

JSON = Any
DATASET: Final = "dataset"  # the key of the data set's account
Outcome = Literal["released", "failed", "timeout", "interrupted"]


class Kind(StrEnum):
    """Whose account it is."""

    DATASET = "dataset"
    GROUP = "group"
    ANALYST = "analyst"


@dataclass(frozen=True, slots=True)
class Amounts:
    """A charge, or a sum of charges: exact decimals. `epsilon` is None for infinite."""

    epsilon: Decimal | None = ZERO
    rho: Decimal = ZERO
    delta: Decimal = ZERO

    @staticmethod
    def of(price: Price) -> Amounts:
        """The price as decimals, each rounded up. ValueError for a negative one."""
        if min(price.epsilon or Fraction(0), price.rho, price.delta) < 0:
            raise ValueError("a price is not negative")
        epsilon = None if price.epsilon is None else rounded_up(price.epsilon)
        return Amounts(epsilon, rounded_up(price.rho), rounded_up(price.delta))

    def __add__(self, other: Amounts) -> Amounts:
        epsilon = None if self.epsilon is None or other.epsilon is None else plus(self.epsilon, other.epsilon)
        return Amounts(epsilon, plus(self.rho, other.rho), plus(self.delta, other.delta))

    def times(self, n: int) -> Amounts:
        """The charge n times over, exactly."""
        return Amounts(None if self.epsilon is None else times(self.epsilon, n), times(self.rho, n), times(self.delta, n))

    def as_dict(self) -> dict[str, str]:
        """Decimal strings; "infinite" for an epsilon that is."""
        return {"epsilon": "infinite" if self.epsilon is None else text(self.epsilon), "rho": text(self.rho), "delta": text(self.delta)}


@dataclass(frozen=True, slots=True)
class Limit:
    """A cap on epsilon and one on delta."""

    epsilon: Decimal
    delta: Decimal

    def __add__(self, other: Limit) -> Limit:
        return Limit(plus(self.epsilon, other.epsilon), plus(self.delta, other.delta))

    def or_more(self, other: Limit) -> Limit:
        """The larger of both, of each amount."""
        return Limit(max(self.epsilon, other.epsilon), max(self.delta, other.delta))

    def times(self, n: int) -> Limit:
        """The cap n times over, exactly."""
        return Limit(times(self.epsilon, n), times(self.delta, n))

    def as_dict(self) -> dict[str, str]:
        """Decimal strings."""
        return {"epsilon": text(self.epsilon), "delta": text(self.delta)}


NOTHING: Final = Limit(ZERO, ZERO)


@dataclass(frozen=True, slots=True)
class Periods:
    """The periods of a cap that renews: `days` long each (None: no longer), counted from `since`, in seconds of Unix time.

    `number` counts the boundaries that were passed. `lapsed`: at the last one there was no room to renew. Of the periods that ended, `reserved`
    adds up the largest caps, and `spent` the charges.
    """

    days: int | None
    since: int
    number: int = 0
    lapsed: bool = False
    reserved: Limit = NOTHING
    spent: Amounts = Amounts()

    def as_dict(self) -> dict[str, JSON]:
        """As the log and the store hold it."""
        counts = {"days": self.days, "since": self.since, "number": self.number, "lapsed": self.lapsed}
        return {**counts, "reserved": self.reserved.as_dict(), "spent": self.spent.as_dict()}


@dataclass(frozen=True, slots=True)
class Account:
    """One account: the cap in force, the largest it ever had, and the running sums of what was charged.

    `tested`: its filter decides about charges (otherwise sums are kept only). `delta_conv`, fixed when the account is made, is the part of delta
    that converts rho. `strikes` counts time-outs since the last unlock, interrupts among them. `granted` is the part of the cap that is not the
    schema's. Where the cap renews, `cap`, `largest`, `granted` and `spent` are the present period's.
    """

    key: str
    kind: Kind
    name: str
    group: str | None
    tested: bool
    cap: Limit
    largest: Limit
    delta_conv: Decimal
    spent: Amounts = Amounts()
    entries: int = 0
    timeouts: int = 0
    strikes: int = 0
    granted: Limit = NOTHING
    periods: Periods | None = None

    @property
    def base(self) -> Limit:
        """The schema's part of the cap."""
        return Limit(minus(self.cap.epsilon, self.granted.epsilon), minus(self.cap.delta, self.granted.delta))

    @property
    def reserved(self) -> Limit:
        """What all answers to the account together are promised to stay within: its largest cap, over all periods."""
        return self.largest if self.periods is None else self.periods.reserved + self.largest

    @property
    def lifetime(self) -> Amounts:
        """All that was ever charged."""
        return self.spent if self.periods is None else self.periods.spent + self.spent

    def recapped(self, base: Limit, group: str | None, days: int | None = None, since: int = 0) -> Account:
        """The account with another cap of the schema, in this group; what it spent, was granted and the largest cap it had stay.

        Periods of another length are counted from `since` on, and the present one goes on until the first of them ends.
        """
        periods = self.periods
        if periods is None:
            periods = None if days is None else Periods(days, since)
        elif periods.days != days:
            periods = replace(periods, days=days, since=periods.since if days is None else since, number=0, lapsed=False)
        return replace(self._capped(base + self.granted), group=group, periods=periods)

    def given(self, more: Limit) -> Account:
        """The account with so much more in its cap than the schema says."""
        return replace(self._capped(self.cap + more), granted=self.granted + more)

    def renewed(self, number: int, times: int) -> Account:
        """The account in its period of that number, so many caps on: grants end with theirs, and the periods in between are reserved too."""
        periods = self._passing(number)
        if times < 1:
            raise ValueError("a renewal of no period")
        reserved = periods.reserved + self.largest + self.base.times(times - 1)
        after = replace(periods, number=number, lapsed=False, reserved=reserved, spent=periods.spent + self.spent)
        return replace(self, cap=self.base, largest=self.base, granted=NOTHING, spent=Amounts(), periods=after)

    def lapsed(self, number: int) -> Account:
        """The account after a boundary at which there was no room: its period goes on."""
        return replace(self, periods=replace(self._passing(number), number=number, lapsed=True))

    def _passing(self, number: int) -> Periods:
        periods = self.periods
        if periods is None or periods.days is None or number < periods.number or (number == periods.number and not periods.lapsed):
            raise ValueError("a period that does not follow")
        return periods

    def _capped(self, cap: Limit) -> Account:
        return replace(self, cap=cap, largest=self.largest.or_more(cap))


@dataclass(frozen=True, slots=True)
class Terms:
    """What `create` fixes for good, beside each account's delta_conv."""

    ledger: str
    dataset: str
    privacy_unit: str
    adjacency: str
    oversubscribe: bool
    unsafe_testing: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the log as it is stored. `body` is canonical JSON; `link` hashes the body's commitment onto the previous link."""

    seq: int
    id: str
    event: str
    ref: str | None
    body: str
    link: str


@dataclass(frozen=True, slots=True)
class Shown:
    """That an account was shown the stored answer of the charge `entry`; `line` is the id of the line of the log that says so."""

    entry: str
    account: str
    line: str


@dataclass(frozen=True, slots=True)
class Left:
    """What surely fits into an account still: Laplace noise up to `epsilon`, or a rho; and of delta, for private keys, this much."""

    epsilon: Decimal
    rho: Decimal
    delta: Decimal

    def as_dict(self) -> dict[str, str]:
        """Decimal strings."""
        return {"epsilon": text(self.epsilon), "rho": text(self.rho), "delta": text(self.delta)}


@dataclass(frozen=True, slots=True)
class Entry:
    """A charge that is durable. `left` is what the account had left right after it."""

    id: str
    commitment: str
    time: str
    left: Left


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung of the ladder that is fixed in advance: while the spent rho is at most `rho`, the loss is at most `epsilon` but for `delta`.

    `holds`: it still is. The first rung that holds is the one to read.
    """

    rho: Decimal
    epsilon: Decimal
    delta: Decimal
    holds: bool


@dataclass(frozen=True, slots=True)
class Period:
    """The present period of a cap that renews: how long, which one, from when to when, and whether the next one found no room.

    `guarantee` is what is promised of its answers alone. Times are those of the owner's clock, in ISO 8601.
    """

    days: int
    number: int
    began: str
    ends: str
    lapsed: bool
    guarantee: Limit

    def as_dict(self) -> dict[str, JSON]:
        """JSON-ready."""
        return {**asdict(self), "guarantee": self.guarantee.as_dict()}


@dataclass(frozen=True, slots=True)
class Balance:
    """One account as its holder may see it. `guarantee` is what is promised of all answers ever: the largest cap that was in force, added up over all
    periods where it renews. Then `cap`, `spent`, `left` and `granted` are those of the present `period`; `lifetime` is all that was ever spent.
    `oversubscribe`: of all accounts the data set's alone is promised anything.
    """

    dataset: str
    account: str
    cap: Limit
    spent: Amounts
    left: Left
    guarantee: Limit
    delta_conv: Decimal
    ladder: tuple[Rung, ...]
    entries: int
    timeouts: int
    locked: bool
    unsafe_testing: bool
    oversubscribe: bool
    granted: Limit
    lifetime: Amounts
    period: Period | None

    def as_dict(self) -> dict[str, JSON]:
        """The machine contract of a budget: amounts as decimal strings."""
        rungs = [{"rho": text(r.rho), "epsilon": text(r.epsilon), "delta": text(r.delta), "holds": r.holds} for r in self.ladder]
        return {
            "dataset": self.dataset,
            "analyst": self.account,
            "cap": self.cap.as_dict(),
            "spent": self.spent.as_dict(),
            "left": self.left.as_dict(),
            "guarantee": self.guarantee.as_dict(),
            "delta_conv": text(self.delta_conv),
            "ladder": rungs,
            "entries": self.entries,
            "timeouts": self.timeouts,
            "locked": self.locked,
            "unsafe_testing": self.unsafe_testing,
            "oversubscribe": self.oversubscribe,
            "granted": self.granted.as_dict(),
            "lifetime": self.lifetime.as_dict(),
            "period": None if self.period is None else self.period.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class Logged:
    """One line of the log as it is read: `body` holds what the event says."""

    seq: int
    id: str
    time: str
    event: str
    commitment: str
    body: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that `verify` found wrong, at line `seq` of the log (None: not at one line)."""

    seq: int | None
    message: str

    def __str__(self) -> str:
        return self.message if self.seq is None else f"line {self.seq} of the log: {self.message}"
