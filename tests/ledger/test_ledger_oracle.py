"""Any interleaving of questions, caps and restarts against an oracle that keeps Fractions."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import postgres
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_shop import Shop

from dpquery.accounting.convert import epsilon_up
from dpquery.accounting.event import Price
from dpquery.errors import OverBudget
from dpquery.ledger import Ledger
from dpquery.ledger.model import Amounts

ANALYSTS = ("alice", "bob", "default")
CAPS = (("1", "0"), ("1", "2e-7"), ("2", "2e-7"), ("2", "3e-7"))


@dataclass
class Model:
    """One account as the design's section 6 says it."""

    epsilon: Fraction
    delta: Fraction
    conv: Fraction
    pure: Fraction | None = Fraction(0)
    rho: Fraction = Fraction(0)
    deltas: Fraction = Fraction(0)
    entries: int = 0

    def takes(self, price: Price) -> bool:
        pure = None if self.pure is None or price.epsilon is None else self.pure + price.epsilon
        rho, deltas = self.rho + price.rho, self.deltas + price.delta
        conv = min(self.conv, self.delta)
        if deltas > self.delta - conv:
            return False
        if pure is None or pure > self.epsilon:
            converted = epsilon_up(rho, conv)
            if converted is None or converted > self.epsilon:
                return False
        return True

    def add(self, price: Price) -> None:
        self.pure = None if self.pure is None or price.epsilon is None else self.pure + price.epsilon
        self.rho, self.deltas, self.entries = self.rho + price.rho, self.deltas + price.delta, self.entries + 1


@dataclass
class World:
    oversubscribe: bool
    accounts: dict[str, Model] = field(default_factory=dict)

    def charge(self, analyst: str, price: Price) -> bool:
        own, whole = self.accounts[analyst], self.accounts["dataset"]
        taken = own.takes(price) and (not self.oversubscribe or whole.takes(price))
        if taken:
            own.add(price)
            whole.add(price)
        return taken


PRICES = st.builds(
    lambda tenths, gaussian, billionths: Price(
        None if gaussian else Fraction(tenths, 20), Fraction(tenths**2, 800) if not gaussian else Fraction(tenths, 4000), Fraction(billionths, 10**9)
    ),
    st.integers(1, 20),
    st.booleans(),
    st.sampled_from([0, 0, 0, 1, 50]),
)
STEPS = st.one_of(
    st.tuples(st.just("charge"), st.sampled_from((*ANALYSTS, "carol")), PRICES),
    st.tuples(st.just("refused"), st.sampled_from(ANALYSTS), st.none()),
    st.tuples(st.just("caps"), st.sampled_from(ANALYSTS), st.sampled_from(CAPS)),
)


@pytest.mark.lemma("B1", "B3")
@settings(max_examples=100, deadline=None)
@given(st.booleans(), st.lists(STEPS, min_size=5, max_size=25))
def test_every_interleaving_agrees_with_the_oracle(oversubscribe: bool, steps: list[tuple[str, str, object]]) -> None:
    interleaved(None, oversubscribe, steps)


@settings(max_examples=5, deadline=None)
@given(st.booleans(), st.lists(STEPS, min_size=5, max_size=25))
def test_so_does_every_interleaving_in_a_database(oversubscribe: bool, steps: list[tuple[str, str, object]]) -> None:
    interleaved(postgres.database(), oversubscribe, steps)


def interleaved(url: str | None, oversubscribe: bool, steps: list[tuple[str, str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(Path(folder) / "shop", url)
        budget = ("3", "4e-7") if oversubscribe else ("6", "1e-6")
        caps = dict.fromkeys(ANALYSTS, CAPS[2])
        world = World(oversubscribe)
        for name, (epsilon, delta) in {**caps, "dataset": budget}.items():
            world.accounts[name] = Model(Fraction(epsilon), Fraction(delta), Fraction(delta) / 2)
        opened = shop.begin(budget=budget, analysts=caps, oversubscribe=oversubscribe)
        for step, analyst, value in steps:
            match step:
                case "charge":
                    assert isinstance(value, Price)
                    own = analyst if analyst in caps else "default"
                    fits = world.accounts[own].takes(value)
                    assert opened.room(analyst).accepts(Amounts.of(value)) == fits
                    assert charged(opened, analyst, value) == world.charge(own, value)
                case "refused":
                    opened.refused(analyst, {"code": "X"})
                case _:
                    assert isinstance(value, tuple)
                    caps[analyst] = value
                    world.accounts[analyst].epsilon, world.accounts[analyst].delta = Fraction(value[0]), Fraction(value[1])
                    opened.close()
                    opened = shop.open(shop.schema(budget=budget, analysts=caps, oversubscribe=oversubscribe))
        agree(opened, world)
        assert opened.verify() == ()
        shop.close()


def charged(opened: Ledger, analyst: str, price: Price) -> bool:
    before = sum(1 for line in opened.entries() if line.event == "charged")
    try:
        opened.charge(analyst, price, {})
    except OverBudget:
        assert sum(1 for line in opened.entries() if line.event == "charged") == before
        return False
    return True


def agree(opened: Ledger, world: World) -> None:
    for balance in opened.balances():
        model = world.accounts[balance.account]
        pure = balance.spent.epsilon
        assert (None if pure is None else Fraction(pure)) == model.pure
        assert (Fraction(balance.spent.rho), Fraction(balance.spent.delta), balance.entries) == (model.rho, model.deltas, model.entries)
        assert balance.cap.epsilon == Decimal(model.epsilon.numerator) / model.epsilon.denominator
