"""P8 to P10: the price of a statement is split over its releases, and is their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import exp
from random import Random

import pytest
from test_cost import ADD, GAUSSIAN, LAPLACE, MICRO, ONE, REPLACE, ask, mechanisms, price, release

from dpquery.accounting.convert import epsilon_up
from dpquery.errors import Refused
from dpquery.mechanisms import tail_up
from dpquery.plan.release import Ask, Release
from dpquery.privacy import bill, enforced, together
from dpquery.values.types import Adjacency

COUNT, MANY, PRIVATE = release(ask("count")), release(ask("count"), groups=30, keys=90), release(ask("count"), groups=3, keyed=True)


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


def test_gaussian_noise_needs_a_delta() -> None:
    whole = price(delta=Fraction(0))
    asks = [replace(one, noise=GAUSSIAN) for one in equal(whole, [COUNT, COUNT])]
    with pytest.raises(Refused) as refused:
        bill([COUNT, COUNT], asks, whole, ADD)
    assert refused.value.code == "GAUSSIAN_NEEDS_DELTA"
