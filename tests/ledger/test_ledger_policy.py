from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product

import pytest
from ledger_shop import gaussian, laplace

from dpquery.accounting.convert import epsilon_up
from dpquery.accounting.event import Price
from dpquery.ledger import policy
from dpquery.ledger.model import Account, Amounts, Kind, Limit


def account(epsilon: str, delta: str = "0", conv: str | None = None) -> Account:
    cap = Limit(Decimal(epsilon), Decimal(delta))
    return Account("analyst:a", Kind.ANALYST, "a", None, True, cap, cap, Decimal(conv) if conv is not None else cap.delta / 2)


def after(account: Account, price: Price, times: int = 1) -> Account:
    return replace(account, spent=account.spent + Amounts.of(price).times(times))


def accepts(account: Account, price: Price) -> bool:
    return policy.accepts(account, Amounts.of(price))


def test_ten_times_a_tenth_fills_one() -> None:
    full = after(account("1"), laplace("0.1"), 9)
    assert accepts(full, laplace("0.1"))
    assert not accepts(full, laplace("0.10000000000000000000000000000000001"))
    assert not accepts(after(full, laplace("0.1")), laplace("1e-30"))


def test_thirds_are_rounded_up() -> None:
    full = after(account("1"), laplace("1/3"), 2)
    assert not accepts(full, laplace("1/3"))


@pytest.mark.parametrize(
    ("rho", "delta", "epsilon"), [("0.125", "1e-6", 2.4190931768671735), ("0.05", "1e-9", 1.8816602910618363), ("1", "1e-10", 10.03434358134763)]
)
def test_gaussians_fit_up_to_the_converted_cap(rho: str, delta: str, epsilon: float) -> None:
    twice = str(2 * Decimal(delta))
    assert accepts(account(str(epsilon * (1 + 1e-5)), twice), gaussian(rho))
    assert not accepts(account(str(epsilon * (1 - 1e-5)), twice), gaussian(rho))


@pytest.mark.lemma("B1")
def test_a_thousand_small_gaussians_fit_where_basic_composition_allows_a_hundred() -> None:
    # At delta 1e-8 one of these costs more than 0.05, so basic composition allows fewer than 100 in (5, 1e-6); rho adds up more slowly.
    rho = Fraction(6, 10**5)
    assert epsilon_up(rho, Fraction(1, 10**8)) > Fraction(1, 20)
    assert policy.count(account("5", "2e-6"), Amounts.of(Price(None, rho, Fraction(0)))) >= 1000


def test_tight_last_gaussian() -> None:
    cap = account("1", "2e-6")
    small = Amounts.of(gaussian("0.0001"))
    fits = policy.count(cap, small)
    spent = Fraction(fits, 10**4)
    assert epsilon_up(spent, Fraction(1, 10**6)) <= 1 < epsilon_up(spent + Fraction(1, 10**4), Fraction(1, 10**6))
    assert abs(fits / 10**4 - 0.024355970359539778) < 1e-4


def test_one_private_key_query_fits_a_fresh_account() -> None:
    assert accepts(account("1", "1e-6"), laplace("1", "1e-9"))


def test_a_spent_gaussian_leaves_the_converted_branch_only() -> None:
    one = after(account("1", "1e-6"), gaussian("0.001"))
    assert accepts(one, laplace("0.1"))
    assert not accepts(one, laplace("0.9"))


def test_selection_deltas_never_reach_into_delta_conv() -> None:
    one = account("1", "1e-6")
    assert accepts(one, laplace("0.1", "5e-7"))
    assert not accepts(one, laplace("0.1", "5.0000000001e-7"))
    assert not accepts(after(one, laplace("0.1", "5e-7")), laplace("0.1", "1e-30"))


def test_delta_zero_is_pure() -> None:
    one = account("1", "0")
    assert accepts(one, laplace("1"))
    assert not accepts(one, gaussian("1e-30"))
    assert not accepts(one, laplace("0.1", "1e-30"))


def test_delta_conv_stays_when_the_cap_changes() -> None:
    raised = account("1", "1e-3", conv="5e-7")
    rho = gaussian("0.0235")
    assert accepts(account("1", "1e-6"), rho) == accepts(raised, rho)
    assert accepts(raised, laplace("0.1", "0.0009995"))


@pytest.mark.lemma("B1")
@pytest.mark.parametrize("delta", ["0", "1e-9", "4e-7", "6e-7", "1e-6"])
@pytest.mark.parametrize("epsilon", ["0.5", "1"])
def test_a_lowered_cap_accepts_no_more_than_the_largest(epsilon: str, delta: str) -> None:
    largest, lowered = account("1", "1e-6"), account(epsilon, delta, conv="5e-7")
    prices = [laplace(e, d) for e, d in product(["0.1", "0.5", "0.7", "1"], ["0", "1e-9", "4e-7", "5e-7"])] + [
        gaussian(r, d) for r, d in product(["0.001", "0.02", "0.0235"], ["0", "1e-7"])
    ]
    taken = [p for p in prices if accepts(lowered, p)]
    assert all(accepts(largest, p) for p in taken)
    assert accepts(lowered, laplace("0.1")), "pure questions fit whatever the delta"


def test_refusing_names_the_first_account_that_decides() -> None:
    small, large = account("0.5"), account("4")
    untested = replace(small, tested=False, key="dataset", kind=Kind.DATASET)
    assert policy.refusing([large, untested], Amounts.of(laplace("1"))) is None
    assert policy.refusing([large, small], Amounts.of(laplace("1"))) is small


@pytest.mark.parametrize("price", [laplace("0.3"), laplace("0.3", "1e-7"), gaussian("0.002"), gaussian("0.001", "2e-7")])
def test_count_is_what_charging_one_by_one_gives(price: Price) -> None:
    one, by_hand = after(account("2", "1e-6"), laplace("0.2")), 0
    count, state = policy.count(one, Amounts.of(price)), one
    while accepts(state, price):
        state, by_hand = after(state, price), by_hand + 1
    assert count == by_hand


def test_what_is_left_fits() -> None:
    for spent in (laplace("0.9", "1e-7"), gaussian("0.01", "1e-7"), laplace("2.5")):
        one = after(account("3", "1e-6"), spent)
        rest = policy.left(one)
        assert rest.epsilon > 0
        assert accepts(one, laplace(str(rest.epsilon), str(rest.delta)))
        assert rest.rho == 0 or accepts(one, gaussian(str(rest.rho), str(rest.delta)))
    lowered = replace(after(account("3", "1e-6"), laplace("0.9", "4e-7")), cap=Limit(Decimal(3), Decimal("1e-7")))
    assert policy.left(lowered).epsilon == 0
    assert not accepts(lowered, laplace("0.001"))
    full = policy.left(after(account("3", "1e-6"), laplace("3", "5e-7")))
    assert (full.epsilon, full.rho, full.delta) == (0, 0, 0)


@pytest.mark.lemma("B2")
def test_ladder_is_fixed_in_advance_and_adds_up() -> None:
    fresh, used = account("3", "1e-6"), after(account("3", "1e-6"), gaussian("0.01"))
    rungs = policy.ladder(used)
    assert [(r.rho, r.epsilon, r.delta) for r in rungs] == [(r.rho, r.epsilon, r.delta) for r in policy.ladder(fresh)]
    assert sum(r.delta for r in rungs) <= Decimal("5e-7")
    assert all(b.rho == 2 * a.rho and b.epsilon > a.epsilon for a, b in pairwise(rungs))
    reading = next(r for r in rungs if r.holds)
    assert reading.rho / 2 < Decimal("0.01") <= reading.rho
    for j, rung in enumerate(rungs, 1):
        assert Fraction(rung.epsilon) >= epsilon_up(Fraction(2**j, 1024), Fraction(1, 2 * 10**6) / (j * (j + 1)))
    assert policy.ladder(account("3", "0")) == ()


def test_a_rung_without_an_epsilon_ends_the_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    """No delta above 0 gives none; if one did, nothing would be read from there on."""
    given = iter([Fraction(1, 10), None])
    monkeypatch.setattr(policy.convert, "epsilon_up", lambda *_: next(given))
    policy._of_rung.cache_clear()
    try:
        assert [rung.epsilon for rung in policy.ladder(account("3", "1e-6"))] == [Decimal("0.1")]
    finally:
        policy._of_rung.cache_clear()


def test_words_of_a_refusal() -> None:
    one = after(account("1", "1e-6"), laplace("0.75"))
    said = policy.over_budget(one, one, Amounts.of(laplace("0.5")))
    assert said.code == "OVER_BUDGET"
    assert "epsilon 0.5" in said.message
    assert "epsilon 0.75" in said.message
    assert "0.25" in (said.instead or "")


def test_words_about_other_accounts_say_no_number_of_theirs() -> None:
    own, whole = account("4"), replace(after(account("8"), laplace("7.77")), key="dataset", kind=Kind.DATASET, name="dataset")
    said = str(policy.over_budget(whole, own, Amounts.of(laplace("0.5"))))
    assert "7.77" not in said
    assert "0.23" not in said
