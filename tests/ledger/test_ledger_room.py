"""Prices are tried on an account before they are asked for: nothing is charged, and what is said is exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_shop import Shop, gaussian, laplace
from reference import rows_of

from dpquery.accounting.convert import epsilon_up, rho_down
from dpquery.accounting.event import Price
from dpquery.accounting.zcdp import laplace_rho_up
from dpquery.errors import OverBudget
from dpquery.ledger import Amounts, Room
from dpquery.ledger.model import Account, Kind, Limit

BOTH_STORES = True


def room(epsilon: str, delta: str = "0") -> Room:
    cap = Limit(Decimal(epsilon), Decimal(delta))
    return Room(Account("analyst:a", Kind.ANALYST, "a", None, True, cap, cap, cap.delta / 2))


def pure(size: Fraction) -> Amounts:
    return Amounts.of(Price(size, laplace_rho_up(size), Fraction(0)))


def in_rho(size: Fraction) -> Amounts:
    """A Gaussian release that is (size, 1e-9)-DP standing alone."""
    return Amounts.of(Price(None, rho_down(size, Fraction(1, 10**9)), Fraction(0)))


def test_what_is_tried_is_not_charged(shop: Shop) -> None:
    opened = shop.begin(budget=("1", "1e-6"))
    found = opened.room("default")
    assert found.accepts(Amounts.of(laplace("1")))
    assert not found.after(Amounts.of(laplace("0.7"))).accepts(Amounts.of(laplace("0.4")))
    assert opened.balance("default").entries == 0
    opened.charge("default", laplace("0.7"), {})
    assert opened.room("default") == replace(found.after(Amounts.of(laplace("0.7"))), account=opened.room("default").account)
    assert (found.finite, found.pure, opened.room("default").finite) == (True, False, True)


def test_the_largest_price_that_fits_is_exact_to_six_digits() -> None:
    spent = room("1").after(pure(Fraction("0.7654321")))
    assert spent.largest(pure, Fraction(2)) == Decimal("0.234567")
    assert room("1").largest(pure, Fraction("1.5")) == 1
    assert spent.largest(pure, Fraction("0.1234567")) == Decimal("0.1234567"), "up to the size that was asked, whatever its digits"


def private(size: Fraction) -> Amounts:
    """A Laplace release with groups of private rows."""
    return Amounts.of(Price(size, laplace_rho_up(size), Fraction(1, 10**8)))


def in_zcdp(size: Fraction) -> Amounts:
    return Amounts.of(Price(None, size, Fraction(0)))


Priced = Callable[[Fraction], Amounts]
AMOUNT = st.builds(Fraction, st.integers(1, 10**9), st.sampled_from([10**5, 10**9, 10**13]))
CAPS = st.tuples(st.sampled_from(["0.3", "1", "17.5", "1e6"]), st.sampled_from(["0", "1e-15", "1e-6", "0.4"]))
KIND = st.sampled_from([pure, in_rho, private, in_zcdp])


@settings(max_examples=40, deadline=None)
@given(CAPS, st.lists(st.tuples(KIND, AMOUNT), max_size=3), KIND)
def test_what_fits_is_exact(cap: tuple[str, str], before: list[tuple[Priced, Fraction]], kind: Priced) -> None:
    """The largest price fits and one step more does not; as many of one price fit as is said, and not one more."""
    left = room(*cap)
    for other, size in before:
        left = left.after(other(size)) if left.accepts(other(size)) else left
    found = left.largest(kind, Fraction(50))
    if found is None:
        assert not left.accepts(kind(Fraction(1, 10**12)))
        assert left.count(kind(Fraction(1, 10**12))) == 0
        return
    assert left.accepts(kind(Fraction(found)))
    if found < 50:
        assert len(found.as_tuple().digits) <= 6
        assert not left.accepts(kind(min(Fraction(50), Fraction(found) + Fraction(10) ** (found.adjusted() - 5))))
    part = kind(Fraction(found) / 7)
    often = left.count(part)
    assert 1 <= often == 10**6 or (left.accepts(part.times(often)) and not left.accepts(part.times(often + 1)))


def test_nothing_fits_into_nothing() -> None:
    full = room("1").after(pure(Fraction(1)))
    assert full.largest(pure, Fraction(1)) is None
    assert room("1").largest(in_rho, Fraction(1)) is None, "a cap in epsilon alone holds nothing that is charged in rho"
    assert replace(room("1"), locked=True).largest(pure, Fraction(1)) is None
    assert replace(room("1"), locked=True).count(pure(Fraction(1))) == 0
    refusal = replace(room("1"), locked=True).refusal(pure(Fraction(1)))
    assert isinstance(refusal, OverBudget)
    assert refusal.code == "ACCOUNT_LOCKED"
    assert room("1").refusal(pure(Fraction(1))) is None
    assert room("1").pure
    assert replace(full, unlimited=True).accepts(pure(Fraction(10)))


def test_ten_laplace_queries_at_a_tenth_cost_exactly_one(shop: Shop) -> None:
    opened = shop.begin(budget=("1", "2e-6"))
    assert opened.room("default").count(Amounts.of(laplace("0.1"))) == 10
    for _ in range(10):
        opened.charge("default", laplace("0.1"), {})
    assert opened.balance("default").spent.epsilon == Decimal(1)
    assert opened.room("default").count(Amounts.of(laplace("0.1"))) == 0
    discrete, continuous = laplace_rho_up(Fraction(1, 10)), Fraction(math.exp(-0.1)) - Fraction(9, 10)
    for rho, said in ((discrete, 1.47), (continuous, 1.45)):
        converted = epsilon_up(10 * rho, Fraction(1, 10**6))
        assert round(float(converted or 0), 2) == said, "what the converted sum of rhos would say"


def test_a_thousand_small_gaussian_queries_fit_where_basic_composition_allows_a_hundred() -> None:
    """The reference says to which epsilon a rho of 0.125 converts at 1e-6: a cap just above holds exactly a thousand times a thousandth of it."""
    (row,) = (row for row in rows_of("zcdp-eps") if row.id == "zcdp-eps-0.125-1e-06")
    whole, delta = Fraction(row.expected).limit_denominator(10**9), Fraction(str(row.inputs["delta"]))
    tight = room(str(round(row.expected + 2e-6, 6)), "2e-6")
    assert tight.account.delta_conv == Decimal(str(row.inputs["delta"]))
    assert tight.count(Amounts.of(gaussian("0.000125"))) == 1000
    small = Amounts.of(Price(None, rho_down(whole / 100, delta / 100), Fraction(0)))
    basic = whole / (whole / 100)
    assert (basic, tight.count(small) >= 1000) == (100, True)
