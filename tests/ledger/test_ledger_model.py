"""The ledger against a model of it that keeps Fractions: any interleaving of questions on two data sets of one account, refusals, stored answers,
grants, periods, changed caps, second doors and crashes keeps every cap, and the sums that the log gives are the sums that are stored.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import postgres
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from ledger_shop import Clock, Shop

from dpquery import ledger
from dpquery.accounting.convert import epsilon_up
from dpquery.accounting.event import Price
from dpquery.errors import Fault, OverBudget, SchemaError
from dpquery.ledger import Amounts, Kept, Kind, Ledger, Limit, Stored
from dpquery.schema.address import place
from dpquery.schema.model import Limits, Schema, Source

MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # what is tried here is what the ledger says, not how a disk keeps it
Pair = tuple[Fraction, Fraction]
NONE: Pair = (Fraction(0), Fraction(0))
WHOLE, TEAM, ANALYSTS = "dataset", "team", ("alice", "bob", "carol")
BUDGETS: tuple[Pair, ...] = ((Fraction(6), Fraction("9e-7")), (Fraction("4.5"), Fraction("6e-7")))  # in the second all is set aside
TEAMS: tuple[str, str, int | None] = ("3", "5e-7", None)
GROUP: Pair = (Fraction(TEAMS[0]), Fraction(TEAMS[1]))
CAPS: dict[str, tuple[str, str, int | None]] = {"alice": ("1", "2e-7", 10), "bob": ("1", "2e-7", None), "carol": ("1.5", "1e-7", 15)}
CHOICES = [("1", "2e-7", None), ("1", "1e-7", 10), ("0.5", "2e-7", 10), ("1.5", "1e-7", 15), ("1.5", "1e-7", None), ("2", "3e-7", 4)]


def plus(a: Pair, b: Pair, times: int = 1) -> Pair:
    return a[0] + times * b[0], a[1] + times * b[1]


def most(a: Pair, b: Pair) -> Pair:
    return max(a[0], b[0]), max(a[1], b[1])


def within(a: Pair, b: Pair) -> bool:
    return a[0] <= b[0] and a[1] <= b[1]


@dataclass
class Sums:
    pure: Fraction | None = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def add(self, price: Price | Sums) -> None:
        epsilon = price.pure if isinstance(price, Sums) else price.epsilon
        self.pure = None if self.pure is None or epsilon is None else self.pure + epsilon
        self.rho, self.delta = self.rho + price.rho, self.delta + price.delta


@dataclass
class Model:
    """One account, as docs/budgets.md says it."""

    base: Pair
    conv: Fraction
    group: str | None = None
    days: int | None = None
    since: Fraction = Fraction(0)
    number: int = 0
    lapsed: bool = False
    granted: Pair = NONE
    largest: Pair = NONE
    ended: Pair = NONE
    spent: Sums = field(default_factory=Sums)
    earlier: Sums = field(default_factory=Sums)

    @property
    def cap(self) -> Pair:
        return plus(self.base, self.granted)

    @property
    def reserved(self) -> Pair:
        return plus(self.ended, self.largest)

    def keeps(self, sums: Sums) -> bool:
        conv = min(self.conv, self.cap[1])
        if sums.delta > self.cap[1] - conv:
            return False
        if sums.pure is not None and sums.pure <= self.cap[0]:
            return True
        converted = epsilon_up(sums.rho, conv)
        return converted is not None and converted <= self.cap[0]

    def takes(self, price: Price) -> bool:
        after = deepcopy(self.spent)
        after.add(price)
        return self.keeps(after)

    def recapped(self, base: Pair, days: int | None, now: Fraction) -> None:
        if days != self.days:
            self.days, self.number, self.lapsed = days, 0, False
            self.since = self.since if days is None else now
        self.base = base
        self.largest = most(self.largest, self.cap)

    def renew(self, number: int) -> None:
        self.ended = self.reserved
        self.earlier.add(self.spent)
        self.spent, self.granted, self.largest, self.number, self.lapsed = Sums(), NONE, self.base, number, False


@dataclass
class Answer:
    """A stored answer: what was asked, what it cost, who paid, and who has seen it."""

    charge: str
    question: str
    price: Price
    seen: set[str]


class World:
    """All accounts; `free`: nothing is reserved, and the data set's own filter decides too."""

    def __init__(self, free: bool, budget: Pair) -> None:
        self.free = free
        self.accounts = {WHOLE: Model(budget, budget[1] / 2), TEAM: Model(GROUP, GROUP[1] / 2)}
        for name, (epsilon, delta, days) in CAPS.items():
            team = TEAM if name in ("alice", "bob") else None
            self.accounts[name] = Model((Fraction(epsilon), Fraction(delta)), Fraction(delta) / 2, team, days)
        for one in self.accounts.values():
            one.largest = one.base

    def held(self, group: str | None = None) -> Pair:
        """What analysts reserve: of one group, or all."""
        total = NONE
        for name in ANALYSTS:
            if group is None or self.accounts[name].group == group:
                total = plus(total, self.accounts[name].reserved)
        return total

    def allotted(self) -> Pair:
        """The same, a group counting as a whole."""
        return plus(self.accounts["carol"].reserved, most(self.held(TEAM), self.accounts[TEAM].cap))

    def fits(self, name: str) -> bool:
        """A member's into the team's cap, and anyone's with all of that into the data set's: others cannot take what is set aside for a group. (The
        team's cap may have been lowered below what its members hold: of them nobody grows then, but others may.)"""
        member = self.accounts[name].group is not None
        return (not member or within(self.held(TEAM), self.accounts[TEAM].cap)) and within(self.allotted(), self.accounts[WHOLE].cap)

    def pass_time(self, now: Fraction) -> None:
        """Boundary by boundary, in the order of time."""
        renewing = {name: one for name, one in self.accounts.items() if one.days is not None}
        ahead = {name: max(one.number, int((now - one.since) // (one.days or 1))) for name, one in renewing.items()}
        due = [
            (Fraction(-1), name, one.number)
            for name, one in renewing.items()
            if one.lapsed and ahead[name] == one.number and one.since + one.number * (one.days or 0) <= now
        ]
        for name, one in renewing.items():
            due += [(one.since + n * (one.days or 0), name, n) for n in range(one.number + 1, ahead[name] + 1)]
        full: set[str] = set()
        for _, name, number in sorted(due, key=lambda d: (d[0], f"analyst:{d[1]}")):
            if name in full:
                continue
            tried = deepcopy(self)
            one = tried.accounts[name]
            one.ended = plus(one.ended, one.base)
            team = one.group is None or within(tried.held(TEAM), tried.accounts[TEAM].cap)
            if self.free or (team and within(tried.allotted(), tried.accounts[WHOLE].cap)):
                renewing[name].renew(number)
            else:
                full.add(name)
                renewing[name].number, renewing[name].lapsed = ahead[name], True

    def recap(self, name: str, cap: tuple[str, str, int | None], now: Fraction) -> bool:
        """Whether the cap came into force."""
        one, base = self.accounts[name], (Fraction(cap[0]), Fraction(cap[1]))
        before, lower = one.reserved, name == TEAM and within(plus(base, one.granted), one.cap)
        one.recapped(base, cap[2], now)
        if self.free or lower:
            return True
        return within(self.allotted(), self.accounts[WHOLE].cap) if name == TEAM else one.reserved == before or self.fits(name)

    def grant(self, name: str, more: Pair) -> bool:
        one = self.accounts[name]
        before = one.reserved
        one.granted = plus(one.granted, more)
        one.largest = most(one.largest, one.cap)
        if self.free or name == WHOLE:
            return True
        if name == TEAM:
            return within(self.allotted(), self.accounts[WHOLE].cap)
        return one.reserved == before or self.fits(name)

    def charge(self, name: str, price: Price, again: bool = False) -> bool:
        """Whether the price is paid: by the analyst, the group and, but for an answer that is shown `again`, the data set."""
        route = [self.accounts[name], *([self.accounts[TEAM]] if self.accounts[name].group else []), *([] if again else [self.accounts[WHOLE]])]
        if not all(one.takes(price) for one in (route if self.free else route[:1])):
            return False
        for one in route:
            one.spent.add(price)
        return True


def _price(twentieths: int, gaussian: bool, billionths: int) -> Price:
    rho = Fraction(twentieths, 2000) if gaussian else Fraction(twentieths**2, 800)
    return Price(None if gaussian else Fraction(twentieths, 20), rho, Fraction(billionths, 10**9))


def serves(name: str, one: Answer, price: Price, share: bool) -> bool:
    """Whether an answer is shown, as docs/budgets.md says it: to who has seen it where it was no cheaper, to others at that very price."""
    return one.price.rho >= price.rho if name in one.seen else share and one.price == price


PRICES = st.builds(_price, st.integers(1, 25), st.sampled_from([False, False, True]), st.sampled_from([0, 0, 0, 1, 40]))
ROUND = st.builds(_price, st.sampled_from([2, 4, 8]), st.booleans(), st.just(0))  # few, so that the same is asked again
NAMES = st.sampled_from(ANALYSTS)


class Interleaving(RuleBasedStateMachine):
    store: ClassVar[str] = "sqlite"

    @initialize(free=st.sampled_from([False, False, True]), budget=st.sampled_from(BUDGETS))
    def begin(self, free: bool, budget: Pair) -> None:
        self.patch = pytest.MonkeyPatch()
        self.clock = Clock(self.patch)
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))
        self.shop = Shop(self.folder, postgres.database() if self.store == "postgres" else None)
        (self.folder / "visits.duckdb").write_bytes(b"other rows")
        self.world, self.caps = World(free, budget), {**CAPS, TEAM: TEAMS}
        self.shop.create(self.schema())
        ledger.join(self.schema("visits"), place(self.shop.place), fingerprint="v1", identity=["visits.duckdb", 10, 1])
        self.doors = [self.shop.open(self.schema())]
        self.charged = 0
        self.answers: list[Answer] = []

    def schema(self, dataset: str = "shop") -> Schema:
        """Of one of two data sets of the same people."""
        analysts = {name: cap if cap[2] is not None else cap[:2] for name, cap in self.caps.items() if name != TEAM}
        budget = (str(Decimal(x.numerator) / x.denominator) for x in self.world.accounts[WHOLE].base)
        teams = {TEAM: (self.caps[TEAM][:2], ("alice", "bob"))}
        many = Limits(timeouts_per_account=10**6)
        named = {"account": "people", "dataset": dataset, "file": self.folder / f"{dataset}.yaml", "source": Source(path=f"{dataset}.duckdb")}
        return self.shop.schema(budget=tuple(budget), analysts=analysts, groups=teams, oversubscribe=self.world.free, limits=many, **named)  # type: ignore[arg-type]

    @property
    def now(self) -> Fraction:
        return Fraction(self.clock.day)

    def door(self, which: int) -> Ledger:
        return self.doors[which % len(self.doors)]

    @rule(name=NAMES, price=PRICES, which=st.integers(0, 1))
    def charge(self, name: str, price: Price, which: int) -> None:
        self.world.pass_time(self.now)
        expected = self.world.charge(name, price)
        try:
            entry = self.door(which).charge(name, price, {})
        except OverBudget:
            assert not expected
        else:
            assert expected
            self.charged += 1
            self.door(which).settle(entry.id, "released")

    @rule(name=NAMES, price=ROUND, question=st.sampled_from("xy"), share=st.booleans(), fresh=st.booleans(), which=st.integers(0, 1))
    def ask(self, name: str, price: Price, question: str, share: bool, fresh: bool, which: int) -> None:
        self.put(name, price, question, share, fresh, which)

    def put(self, name: str, price: Price, question: str, share: bool, fresh: bool, which: int) -> None:
        """As a question is asked: a stored answer that serves is shown, for nothing or for its price; else one is drawn, paid and stored."""
        self.world.pass_time(self.now)
        found = () if fresh else self.door(which).stored(name, question)
        assert fresh or {(one.charge, one.seen is not None) for one in found} == self.known(name, question)
        hit = next((one for one in map(self.answer, found) if serves(name, one, price, share)), None)
        if hit is not None and name in hit.seen:
            self.door(which).balance(name)  # looking up begins no period, and the model has begun those that are due
            return
        expected = self.world.charge(name, price, again=hit is not None)
        try:
            entry = self.door(which).charge(name, price, {}, of=None if hit is None else hit.charge)
        except OverBudget:
            assert not expected
            return
        assert expected
        if hit is not None:
            hit.seen.add(name)
            assert self.door(which).charge(name, price, {}, of=hit.charge).id == entry.id, "a second look is free"
            return
        self.charged += 1
        self.door(which).settle(entry.id, "released", Kept(question, entry.id.encode()))
        self.answers.append(Answer(entry.id, question, price, {name}))

    @precondition(lambda self: self.answers)
    @rule(name=NAMES, answer=st.integers(0, 9), share=st.sampled_from([True, True, False]), which=st.integers(0, 1))
    def ask_again(self, name: str, answer: int, share: bool, which: int) -> None:
        """What was answered to somebody already, at its price."""
        one = self.answers[answer % len(self.answers)]
        self.put(name, one.price, one.question, share, False, which)

    def known(self, name: str, question: str) -> set[tuple[str, bool]]:
        return {(one.charge, name in one.seen) for one in self.answers if one.question == question}

    def answer(self, found: Stored) -> Answer:
        """The model's, of the same price and content."""
        one = next(one for one in self.answers if one.charge == found.charge)
        assert found.amounts == Amounts.of(one.price)
        assert self.door(0).content(found) == one.charge.encode()
        return one

    @rule(name=NAMES, price=PRICES)
    def commit_that_fails(self, name: str, price: Price) -> None:
        """Nothing is charged: but for the time that passed, all is as it was."""
        self.door(0).balance(name)
        self.world.pass_time(self.now)

        def lost(store: object) -> None:
            raise OSError("lost")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(self.door(0)._store), "commit", lost)
            with pytest.raises((Fault, OverBudget)):
                self.door(0).charge(name, price, {})

    @rule(name=NAMES, price=PRICES)
    def process_that_dies(self, name: str, price: Price) -> None:
        """After the charge, before its outcome; the next who asks finds it."""
        self.world.pass_time(self.now)
        expected = self.world.charge(name, price)
        if expected:
            self.door(0).charge(name, price, {})
            self.charged += 1
        self.doors = [self.shop.open(self.schema())]
        self.world.pass_time(self.now)
        with self.doors[0].attended():
            pass

    @rule(name=NAMES)
    def refuse(self, name: str) -> None:
        self.door(1).refused(name, {"code": "X", "statement": "SELECT"})

    @rule(days=st.sampled_from([0.25, 1, 3, 9, 40, -20]))
    def time(self, days: float) -> None:
        self.clock.day += days

    @rule(name=st.sampled_from((*ANALYSTS, "carol", TEAM, WHOLE)), epsilon=st.sampled_from(["0.25", "1"]), delta=st.sampled_from(["0", "1e-8"]))
    def grant(self, name: str, epsilon: str, delta: str) -> None:
        self.world.pass_time(self.now)
        tried = deepcopy(self.world)
        expected = tried.grant(name, (Fraction(epsilon), Fraction(delta)))
        kind = Kind.DATASET if name == WHOLE else Kind.GROUP if name == TEAM else Kind.ANALYST
        try:
            self.door(0).grant(kind, name, Limit(Decimal(epsilon), Decimal(delta)), "why")
        except SchemaError:
            assert not expected
        else:
            assert expected
            self.world = tried
            self.world.pass_time(self.now)

    @rule(name=NAMES, cap=st.sampled_from(CHOICES))
    def change_a_cap(self, name: str, cap: tuple[str, str, int | None]) -> None:
        early, tried = deepcopy(self.world), deepcopy(self.world)
        tried.pass_time(self.now)
        expected = early.recap(name, cap, self.now) and tried.recap(name, cap, self.now)
        before = self.caps[name]
        self.caps[name] = cap
        try:
            self.doors = [self.shop.open(self.schema())]
        except SchemaError:
            assert not expected
            self.caps[name] = before
        else:
            assert expected
            self.world = tried
            self.world.pass_time(self.now)

    @rule(cap=st.sampled_from([("2", "3e-7", None), ("3", "5e-7", None), ("4", "5e-7", None)]))
    def change_the_teams_cap(self, cap: tuple[str, str, int | None]) -> None:
        self.change_a_cap(TEAM, cap)

    @rule(name=st.sampled_from(["alice", "bob"]), epsilon=st.booleans())
    def take_what_is_set_aside(self, name: str, epsilon: bool) -> None:
        """Whatever others were granted before, a member gets all that the team has left."""
        self.door(0).balance(name)  # where nothing is left only time passes, for both
        self.world.pass_time(self.now)
        held, cap = self.world.held(TEAM), self.world.accounts[TEAM].cap
        rest = cap[0] - held[0] if epsilon else cap[1] - held[1]
        if self.world.free or not within(held, cap) or not rest:
            return
        amount = Decimal(rest.numerator) / rest.denominator
        self.door(0).grant(Kind.ANALYST, name, Limit(amount, Decimal(0)) if epsilon else Limit(Decimal(0), amount), "set aside")
        assert self.world.grant(name, (rest, Fraction(0)) if epsilon else (Fraction(0), rest))
        self.world.pass_time(self.now)

    @precondition(lambda self: len(self.doors) < 2)
    @rule()
    def second_door(self) -> None:
        """To the other data set."""
        self.doors.append(self.shop.open(self.schema("visits")))
        self.world.pass_time(self.now)

    @invariant()
    def keeps_every_cap(self) -> None:
        """Of all analysts in every period, the largest caps fit into what the data set was ever promised; and each sum into its cap."""
        if hasattr(self, "world"):
            whole = self.world.accounts[WHOLE]
            assert self.world.free or within(self.world.held(), whole.largest)
            assert self.world.free or within(self.world.allotted(), whole.cap), "and what is set aside is there"
            tested = (*ANALYSTS, *((WHOLE, TEAM) if self.world.free else ()))
            for one in (self.world.accounts[name] for name in tested):
                assert Model(one.largest, one.conv).keeps(one.spent)

    def teardown(self) -> None:
        if not hasattr(self, "folder"):
            return
        try:
            self.world.pass_time(self.now)
            agree(self.doors[-1], self.world)
            assert sum(body["event"] == "charged" for body in paid(self.doors[-1])) == self.charged
            assert self.doors[-1].verify() == ()
        finally:
            self.shop.close()
            self.patch.undo()
            shutil.rmtree(self.folder)


def agree(opened: Ledger, world: World) -> None:
    """Stored sums, the model's, and those added up from the exported log, to the last digit."""
    logged = {name: Sums() for name in world.accounts}
    for body in paid(opened):
        amount = None if body["epsilon"] == "infinite" else Fraction(body["epsilon"])
        for key in body["accounts"]:
            logged[key.split(":")[-1]].add(Price(amount, Fraction(body["rho"]), Fraction(body["delta"])))
    for balance in opened.balances():
        model = world.accounts[balance.account]
        whole = deepcopy(model.earlier)
        whole.add(model.spent)
        stored = balance.lifetime
        assert whole == Sums(None if stored.epsilon is None else Fraction(stored.epsilon), Fraction(stored.rho), Fraction(stored.delta))
        assert logged[balance.account] == whole
        assert (Fraction(balance.cap.epsilon), Fraction(balance.cap.delta)) == model.cap
        assert (Fraction(balance.guarantee.epsilon), Fraction(balance.guarantee.delta)) == model.reserved
        assert (None if balance.period is None else balance.period.lapsed) == (None if model.days is None else model.lapsed)


def paid(opened: Ledger) -> Iterator[dict[str, str]]:
    yield from (body for body in (json.loads(line)["body"] for line in opened.export()) if body["event"] in ("charged", "shown"))


class Longer(Interleaving):
    """The same, more often and for longer."""


class InDatabase(Interleaving):
    """The same, in PostgreSQL."""

    store = "postgres"


class LongerInDatabase(InDatabase):
    """The same, more often and for longer."""


def often(examples: int, steps: int) -> settings:
    return settings(max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck))


TestInterleaving = pytest.mark.lemma("B1", "B3", "B4", "B8")(Interleaving.TestCase)
TestInterleaving.settings = often(15, 20)
TestInDatabase = InDatabase.TestCase
TestInDatabase.settings = often(2, 15)
TestLonger = pytest.mark.slow(Longer.TestCase)
TestLonger.settings = often(100, 40)
TestLongerInDatabase = pytest.mark.slow(LongerInDatabase.TestCase)
TestLongerInDatabase.settings = often(50, 40)
