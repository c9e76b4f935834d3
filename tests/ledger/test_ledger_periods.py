"""B4: caps that begin anew after so many days, by the clock alone, within what the data set has left."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

import pytest
from ledger_shop import Clock, Shop, gaussian, laplace

from dpquery.errors import OverBudget, SchemaError
from dpquery.ledger import Balance, Kind, Ledger, Limit

BOTH_STORES = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def limit(epsilon: str, delta: str = "0") -> Limit:
    return Limit(Decimal(epsilon), Decimal(delta))


def full(opened: Ledger, analyst: str, price: str = "0.1") -> str:
    with pytest.raises(OverBudget) as caught:
        opened.charge(analyst, laplace(price), {})
    return caught.value.message


def renewals(opened: Ledger) -> list[tuple[str, int, int | None]]:
    return [
        (line.body["account"].split(":")[1], line.body["period"], line.body.get("times"))
        for line in opened.entries()
        if line.event in ("renewed", "lapsed")
    ]


@pytest.mark.lemma("B4")
def test_every_period_can_be_spent_in_full(shop: Shop, clock: Clock) -> None:
    opened = shop.begin(budget=("3", "0"), analysts={"alice": ("1", "0", 30)})
    for number in range(3):
        clock.day = 30 * number + 29.9
        opened.charge("alice", laplace("1"), {"period": number})
        assert "in this period of 30 days" in full(opened, "alice")
    clock.day = 90
    assert "had no room for the next" in full(opened, "alice")
    balance = opened.balance("alice")
    assert (balance.lifetime.epsilon, balance.spent.epsilon, balance.guarantee, balance.entries) == (3, 1, limit("3"), 3)
    assert balance.period is not None
    assert (balance.period.number, balance.period.lapsed, balance.period.guarantee) == (4, True, limit("1"))
    assert renewals(opened) == [("alice", 1, 1), ("alice", 2, 1), ("alice", 3, None)]
    assert opened.balances()[0].spent.epsilon == 3
    assert opened.verify() == ()
    assert shop.open(opened.schema).balance("alice") == balance


@pytest.mark.lemma("B4")
def test_a_period_that_nobody_used_is_gone_too(shop: Shop, clock: Clock) -> None:
    """Else what is left for bob's next period would tell that alice asked, which may hang on her answers."""
    quiet = Shop(shop.folder / "quiet")
    seen = [weeks(one, clock, asks) for one, asks in ((shop, True), (quiet, False))]
    quiet.close()
    assert seen[0] == seen[1]


def weeks(shop: Shop, clock: Clock, asks: bool) -> tuple[Balance, Limit]:
    """What bob's account is after ten weeks in which alice asked, or did not, and what she is promised."""
    clock.day = 0
    opened = shop.begin(budget=("5", "0"), analysts={"alice": ("1", "0", 7), "bob": ("1", "0", 7)})
    for day in range(0, 70, 6):
        clock.day = day
        if asks:
            try_(opened, "alice")
    return opened.balance("bob"), opened.balance("alice").guarantee


def try_(opened: Ledger, analyst: str) -> None:
    with suppress(OverBudget):
        opened.charge(analyst, laplace("0.7"), {})


@pytest.mark.lemma("B4")
def test_periods_in_between_take_their_part_in_the_order_of_time(shop: Shop, clock: Clock) -> None:
    """Room for three: alice's of days 10 and 20, and bob's of day 15; none is left for day 30."""
    opened = shop.begin(budget=("5", "0"), analysts={"alice": ("1", "0", 10), "bob": ("1", "0", 15)})
    clock.day = 31
    opened.charge("bob", laplace("1"), {})
    assert renewals(opened) == [("alice", 2, 2), ("alice", 3, None), ("bob", 1, 1), ("bob", 2, None)]
    assert [b.guarantee.epsilon for b in opened.balances()] == [5, 3, 2]
    assert opened.verify() == ()


def test_a_lapsed_period_begins_when_there_is_room(shop: Shop, clock: Clock) -> None:
    opened = shop.begin(budget=("1", "0"), analysts={"alice": ("1", "0", 30)})
    opened.charge("alice", laplace("1"), {})
    clock.day = 65
    full(opened, "alice")
    opened.grant(Kind.DATASET, "dataset", limit("1"), "a new agreement")
    opened.charge("alice", laplace("1"), {})
    assert renewals(opened) == [("alice", 2, None), ("alice", 2, 1)]
    clock.day = 100
    full(opened, "alice")
    raised = shop.open(shop.schema(budget=("3", "0"), analysts={"alice": ("1", "0", 30)}))
    raised.charge("alice", laplace("0.5"), {})
    assert renewals(raised)[2:] == [("alice", 3, None), ("alice", 3, 1)]
    assert raised.verify() == ()


def test_a_lapsed_period_waits_for_its_time_where_the_clock_was_set_back(shop: Shop, clock: Clock) -> None:
    """There is room again before its time has come again: had it begun, the log would say that it began too early, and be taken for forged."""
    opened = shop.begin(budget=("1", "0"), analysts={"alice": ("1", "0", 30)})
    clock.day = 35
    opened.balance("alice")
    clock.day = 20
    opened.grant(Kind.DATASET, "dataset", limit("1"), "a new agreement")
    for day, begun in ((20, []), (29.9, []), (30, [("alice", 1, 1)])):
        clock.day = day
        opened.balance("alice")
        assert opened.verify() == ()
        assert renewals(opened) == [("alice", 1, None), *begun]


def test_a_new_account_cannot_have_what_periods_took(shop: Shop, clock: Clock) -> None:
    renewing = {"alice": ("1", "0", 30)}
    opened = shop.begin(budget=("4", "0"), analysts=renewing)
    clock.day = 61
    assert opened.balance("alice").guarantee == limit("3")
    with pytest.raises(SchemaError) as caught:
        shop.open(shop.schema(budget=("4", "0"), analysts={**renewing, "bob": ("2", "0")}))
    assert caught.value.code == "CAPS_EXCEED_BUDGET"
    assert "`alice` 3" in caught.value.message
    shop.open(shop.schema(budget=("4", "0"), analysts={**renewing, "bob": ("1", "0")})).charge("bob", laplace("1"), {})


def test_members_renew_out_of_their_groups_cap_and_others_not(shop: Shop, clock: Clock) -> None:
    team = {"team": (("3", "0"), ("alice", "bob"))}
    opened = shop.begin(budget=("5", "0"), analysts={"alice": ("1", "0", 30), "bob": ("1", "0", 30), "carol": ("1", "0", 30)}, groups=team)
    clock.day = 95
    assert {b.account: b.guarantee.epsilon for b in opened.balances()} == {"dataset": 5, "team": 3, "alice": 2, "bob": 1, "carol": 2}
    assert opened.verify() == ()


def test_oversubscribed_periods_begin_freely_and_the_data_set_decides(shop: Shop, clock: Clock) -> None:
    opened = shop.begin(budget=("2", "0"), analysts={"alice": ("1", "0", 1)}, oversubscribe=True)
    for day in range(2):
        clock.day = day
        opened.charge("alice", laplace("1"), {})
    clock.day = 1000
    with pytest.raises(OverBudget) as caught:
        opened.charge("alice", laplace("0.1"), {})
    assert "the data set's budget" in caught.value.message
    assert opened.balance("alice").spent.epsilon == 0
    assert opened.verify() == ()


def test_a_clock_set_back_begins_nothing_and_one_set_forward_takes_what_it_passes(shop: Shop, clock: Clock) -> None:
    opened = shop.begin(budget=("4", "0"), analysts={"alice": ("1", "0", 30)})
    clock.day = 45
    opened.charge("alice", laplace("1"), {})
    clock.day = -400
    full(opened, "alice")
    assert opened.balance("alice").guarantee == limit("2")
    clock.day = 20_000
    assert opened.balance("alice").guarantee == limit("4"), "all that is left, and no more"
    clock.day = 46
    opened.charge("alice", laplace("1"), {})
    full(opened, "alice")
    assert opened.verify() == ()


def test_gaussian_noise_counts_in_its_period_only(shop: Shop, clock: Clock) -> None:
    opened = shop.begin(budget=("8", "1e-6"), analysts={"alice": ("2", "2e-7", 30)})
    opened.charge("alice", gaussian("0.05"), {})
    assert opened.balance("alice").spent.epsilon is None
    clock.day = 31
    opened.charge("alice", laplace("2"), {})
    balance = opened.balance("alice")
    assert (balance.spent.epsilon, balance.lifetime.epsilon) == (2, None)
    assert balance.delta_conv == Decimal("1e-7"), "one for all periods, fixed when the account was made"
    assert sum(not rung.holds for rung in balance.ladder) > 0, "the ladder is that of all answers ever"
    assert opened.verify() == ()


def test_a_grant_to_a_cap_that_renews_ends_with_its_period(shop: Shop, clock: Clock) -> None:
    opened = shop.begin(budget=("4", "0"), analysts={"alice": ("1", "0", 30)})
    opened.grant(Kind.ANALYST, "alice", limit("1"), "a busy month")
    opened.charge("alice", laplace("2"), {})
    clock.day = 30
    assert (opened.balance("alice").cap, opened.balance("alice").granted) == (limit("1"), limit("0"))
    full(opened, "alice", "1.1")
    assert opened.balance("alice").guarantee == limit("3")
    assert opened.verify() == ()


def test_another_period_or_none_takes_nothing_back(shop: Shop, clock: Clock) -> None:
    opened = shop.begin(budget=("9", "0"), analysts={"alice": ("1", "0", 30)})
    clock.day = 31
    opened.charge("alice", laplace("1"), {})
    weekly = shop.open(shop.schema(budget=("9", "0"), analysts={"alice": ("1", "0", 7)}))
    full(weekly, "alice")
    clock.day = 38
    weekly.charge("alice", laplace("1"), {})
    forever = shop.open(shop.schema(budget=("9", "0"), analysts={"alice": ("1", "0")}))
    clock.day = 400
    full(forever, "alice")
    assert (forever.balance("alice").period, forever.balance("alice").guarantee) == (None, limit("3"))
    assert forever.balance("alice").lifetime.epsilon == 2
    assert forever.verify() == ()
    monthly = shop.open(shop.schema(budget=("9", "0"), analysts={"alice": ("1", "0", 30)}))
    full(monthly, "alice")
    clock.day = 430
    monthly.charge("alice", laplace("1"), {})
    assert monthly.verify() == ()


def test_a_balance_of_the_log_holds_periods_and_grants(shop: Shop, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpquery.ledger.upkeep.BALANCE_EVERY", 3)
    opened = shop.begin(budget=("4", "0"), analysts={"alice": ("1", "0", 30), "bob": ("0.5", "0")})
    opened.grant(Kind.ANALYST, "bob", limit("0.25"), "some more")
    clock.day = 40
    opened.charge("alice", laplace("1"), {})
    before = opened.balances()
    for _ in range(2):
        again = shop.open(opened.schema)
        assert again.balances() == before
    assert any(line.event == "balanced" for line in again.entries())
    assert again.verify() == ()
    assert again.terms == opened.terms


def test_what_a_period_shows_of_others_is_nothing(shop: Shop, clock: Clock) -> None:
    opened = shop.begin(budget=("8", "0"), analysts={"alice": ("1", "0", 30), "bob": ("1", "0", 30)})
    clock.day = 31
    before = opened.balance("bob")
    opened.charge("alice", laplace("1"), {})
    assert opened.balance("bob") == before
