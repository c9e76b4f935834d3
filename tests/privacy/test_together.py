"""P8 to P10: the price of a statement is split over its releases, and is their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import exp, prod
from random import Random

import pytest
from test_cost import ADD, GAUSSIAN, LAPLACE, MICRO, ONE, REPLACE, ask, mechanisms, price, release

from dpquery.accounting.convert import epsilon_up, rho_down
from dpquery.accounting.event import Price
from dpquery.errors import Refused
from dpquery.mechanisms import tail_up
from dpquery.plan.release import Ask, Mechanism, Release
from dpquery.privacy import Bill, bill, calibrate, enforced, together
from dpquery.privacy.cost import HALF, within
from dpquery.values.types import Adjacency

COUNT, MANY, PRIVATE = release(ask("count")), release(ask("count"), groups=30, keys=90), release(ask("count"), groups=3, keyed=True)

SPLIT = Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)


def asked(whole: Ask, *shares: Fraction) -> list[Ask]:
    if whole.rho is not None:
        return [replace(whole, rho=whole.rho * share) for share in shares]
    return [replace(whole, epsilon=(whole.epsilon or 0) * share) for share in shares]


def equal(whole: Ask, releases: Sequence[Release]) -> list[Ask]:
    return asked(whole, *[Fraction(1, len(releases))] * len(releases))


@pytest.mark.lemma("P8", "P10")
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(7, 3)])
def test_p8_the_whole_price_is_spent(epsilon: Fraction, adjacency: Adjacency) -> None:
    """Laplace: the epsilons add up to what was asked, each release's part to its share; of delta selection alone takes any, in equal parts."""
    whole = price(epsilon, noise=LAPLACE)
    found = bill([COUNT, PRIVATE, PRIVATE], asked(whole, Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)), whole, adjacency)
    assert found.epsilon == found.price.epsilon == epsilon
    assert [one.price.epsilon for one in found.releases] == [epsilon / 2, epsilon / 4, epsilon / 4]
    assert found.conversion == 0
    assert MICRO * Fraction(1, 2) < found.price.delta == found.delta <= MICRO
    assert all(one.price.delta <= MICRO / 2 for one in found.releases)
    assert found.releases[0].price.delta == 0


@pytest.mark.lemma("P8", "P10")
def test_p8_one_conversion_serves_the_statement() -> None:
    """Gaussian: rhos add up to what converts to the asked epsilon with half of delta, once; the other half is selection's."""
    whole = price(ONE, noise=GAUSSIAN)
    found = bill([MANY, PRIVATE], equal(whole, [MANY, PRIVATE]), whole, ADD)
    assert all(mechanisms(one) == {GAUSSIAN} for one in found.releases)
    assert found.price.epsilon is None
    assert (found.epsilon, found.conversion) == (ONE, MICRO / 2)
    back = epsilon_up(found.price.rho, MICRO / 2)
    assert back is not None
    assert Fraction(999, 1000) <= back <= 1 + Fraction(1, 10**9)
    assert found.price.delta <= MICRO / 2
    assert found.delta == found.conversion + found.price.delta


@pytest.mark.lemma("P9")
@pytest.mark.parametrize("adjacency", Adjacency)
def test_p8_prices_of_releases_add_up(adjacency: Adjacency) -> None:
    random = Random(8)
    for _ in range(20):
        releases = random.choices([COUNT, MANY, PRIVATE], k=random.randint(2, 4))
        whole = random.choice([price(Fraction(random.randint(1, 30), 10)), price(None, rho=Fraction(1, random.randint(2, 90))), price(noise=LAPLACE)])
        found = bill(releases, equal(whole, releases), whole, adjacency)
        assert together.price([enforced(one) for one in releases], found, adjacency) == found.price
        assert found.price.rho == sum(one.price.rho for one in found.releases)
        assert found.price.delta == sum(one.price.delta for one in found.releases)
        assert found.delta <= whole.delta
        if whole.epsilon is not None:
            assert found.epsilon is not None
            assert found.epsilon <= whole.epsilon
        if whole.rho is not None:
            assert found.price.rho <= whole.rho


@pytest.mark.lemma("P8", "P9")
def test_p8_two_counts_reach_the_sum_of_their_prices() -> None:
    """One unit moves two counts at once, and the loss of the pair of answers is the sum of both epsilons."""
    whole = price(ONE, Fraction(0))
    one = release(ask("units"))
    found = bill([one, one], equal(whole, [one, one]), whole, ADD)
    ratios = []
    for priced in found.releases:
        (noise,) = priced.noises
        here, there = (tail_up(noise, at) - tail_up(noise, at + 1) for at in (5, 6))  # P(noise = 5) where the unit is, P(noise = 6) where it is not
        ratios.append(float(here / there))
    assert ratios[0] * ratios[1] == pytest.approx(exp(float(found.price.epsilon or 0)), rel=1e-9)


def test_mechanisms_are_chosen_release_by_release() -> None:
    """Where any of the noise is Gaussian, all of it is priced in rho; each release then has what errs less."""
    whole = price()
    found = bill([COUNT, MANY], equal(whole, [COUNT, MANY]), whole, ADD)
    assert mechanisms(found.releases[1]) in ({GAUSSIAN}, {LAPLACE})
    tiny = bill([COUNT, COUNT], equal(whole, [COUNT, COUNT]), whole, REPLACE)
    assert [mechanisms(one) for one in tiny.releases] == [{LAPLACE}, {LAPLACE}]


@pytest.mark.parametrize("gaussian", [{"noise": GAUSSIAN}, {"selection": GAUSSIAN}])
def test_gaussian_noise_needs_a_delta(gaussian: dict[str, Mechanism]) -> None:
    """Also where nothing but the selection of groups was to have it."""
    whole = price(delta=Fraction(0))
    with pytest.raises(Refused) as refused:
        bill([COUNT, COUNT], [replace(one, **gaussian) for one in equal(whole, [COUNT, COUNT])], whole, ADD)  # type: ignore[arg-type]
    said = refused.value
    assert (said.code, said.message) == ("GAUSSIAN_NEEDS_DELTA", "Gaussian noise needs a delta above 0")
    assert said.instead == "give a delta, or noise => LAPLACE"


@pytest.mark.lemma("P8")
@pytest.mark.parametrize("whole", [price(), price(noise=GAUSSIAN), price(noise=LAPLACE), price(None, rho=Fraction(1, 50))])
def test_one_release_costs_what_it_costs_alone(whole: Ask) -> None:
    for one in (COUNT, MANY, PRIVATE):
        alone = calibrate(one, whole, REPLACE)
        assert bill([one], [whole], whole, REPLACE) == Bill((alone,), alone.price, alone.epsilon, alone.delta, alone.conversion)


@pytest.mark.lemma("P8", "P10")
@pytest.mark.parametrize(
    "whole", [price(Fraction(7, 3), noise=GAUSSIAN), price(None, rho=Fraction(1, 50)), price(None, rho=Fraction(1, 50), noise=LAPLACE)]
)
def test_p8_each_release_has_its_parts_of_rho_and_of_delta(whole: Ask) -> None:
    """Half of delta goes to conversion, once; half of the rest to each release that selects. Without one all of it is conversion's."""
    asks = asked(whole, *SPLIT)
    rho = whole.rho or rho_down(whole.epsilon or 0, MICRO / 2)
    found = bill([MANY, PRIVATE, PRIVATE], asks, whole, REPLACE)
    parts = zip([MANY, PRIVATE, PRIVATE], asks, SPLIT, [0, MICRO / 4, MICRO / 4], strict=True)
    assert found.releases == tuple(within(one, ask, REPLACE, rho * share, Fraction(delta)) for one, ask, share, delta in parts)
    assert (found.conversion, found.delta) == (MICRO / 2, MICRO / 2 + sum(one.price.delta for one in found.releases))
    assert found.epsilon == (whole.epsilon or epsilon_up(found.price.rho, MICRO / 2))
    listed = bill([COUNT, MANY], equal(whole, [COUNT, MANY]), whole, ADD)
    rho = whole.rho or rho_down(whole.epsilon or 0, MICRO)
    assert listed.releases == tuple(
        within(one, ask, ADD, rho / 2, Fraction(0)) for one, ask in zip([COUNT, MANY], equal(whole, [COUNT, MANY]), strict=True)
    )
    assert (listed.conversion, listed.delta, listed.price.delta) == (MICRO, MICRO, 0)


@pytest.mark.lemma("P8", "P10")
def test_p8_each_release_has_its_parts_of_epsilon_and_of_delta() -> None:
    whole = price(Fraction(7, 3), noise=LAPLACE)
    asks = asked(whole, *SPLIT)
    found = bill([PRIVATE, MANY, PRIVATE], asks, whole, ADD)
    parts = zip([PRIVATE, MANY, PRIVATE], asks, [MICRO / 2, 0, MICRO / 2], strict=True)
    assert found.releases == tuple(within(one, ask, ADD, None, Fraction(delta)) for one, ask, delta in parts)
    assert (found.epsilon, found.delta, found.conversion) == (Fraction(7, 3), sum(one.price.delta for one in found.releases), 0)


@pytest.mark.lemma("P8")
def test_p8_noise_is_that_of_least_error() -> None:
    """Where neither was asked for: all of Laplace's, or what rho buys, whichever has the smaller product of variances."""
    met = set()
    for shares in range(1, 20):
        whole, parts = price(), (Fraction(shares, 20), 1 - Fraction(shares, 20))
        ways = [bill([COUNT, MANY], [replace(one, noise=noise) for one in asked(whole, *parts)], whole, ADD) for noise in (LAPLACE, GAUSSIAN)]
        found = bill([COUNT, MANY], asked(whole, *parts), whole, ADD)
        assert error(found) <= min(map(error, ways))
        met.add(found.conversion)
    assert met <= {Fraction(0), MICRO}
    assert bill([COUNT, COUNT], equal(price(), [COUNT, COUNT]), price(), ADD).conversion == 0
    broad = release(ask("count"), groups=90, keys=900)
    assert bill([broad, broad], equal(price(), [broad, broad]), price(), ADD).conversion == MICRO


def error(found: Bill) -> Fraction:
    return prod((one.error for one in found.releases), start=ONE)


@pytest.mark.lemma("P8")
def test_a_delta_of_one_converts_with_a_half() -> None:
    whole = price(delta=ONE, noise=GAUSSIAN)
    found = bill([COUNT, MANY], equal(whole, [COUNT, MANY]), whole, ADD)
    assert (found.conversion, found.delta) == (HALF, HALF)


@pytest.mark.lemma("P7", "P8")
def test_p8_what_explicit_shares_leave_is_not_spent() -> None:
    """An aggregate takes a third of its release's part, the rest is nobody's: the statement is worth less than was asked. A release of no sums
    leaves nothing."""
    whole = price(noise=GAUSSIAN)
    little, nothing = release(ask("count", epsilon=Fraction(1, 6))), release(keys=3)
    found = bill([COUNT, little], equal(whole, [COUNT, little]), whole, ADD)
    assert found.epsilon == epsilon_up(found.price.rho, MICRO)
    assert found.epsilon is not None
    assert found.epsilon < ONE
    assert bill([COUNT, nothing], equal(whole, [COUNT, nothing]), whole, ADD).epsilon == ONE


@pytest.mark.lemma("P9")
def test_p9_a_sum_of_prices_is_finite_where_all_are() -> None:
    prices = [Price(Fraction(1), Fraction(2), Fraction(1, 8)), Price(Fraction(3), Fraction(5), Fraction(1, 4))]
    assert together._total(prices) == Price(Fraction(4), Fraction(7), Fraction(3, 8))
    assert together._total([*prices, Price(None, Fraction(1), Fraction(0))]) == Price(None, Fraction(8), Fraction(3, 8))


@pytest.mark.lemma("P9")
def test_p9_there_are_bounds_and_an_ask_for_each_release() -> None:
    whole = price()
    found = bill([COUNT, MANY], equal(whole, [COUNT, MANY]), whole, ADD)
    with pytest.raises(ValueError, match="zip"):
        together.price([enforced(COUNT)], found, ADD)
    for way in (price(delta=Fraction(0)), price(noise=GAUSSIAN)):
        with pytest.raises(ValueError, match="zip"):
            bill([COUNT, MANY], [*equal(way, [COUNT, MANY]), way], way, ADD)
