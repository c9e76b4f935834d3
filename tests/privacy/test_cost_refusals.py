"""What calibration refuses, word by word, and the cases next to a refusal that it answers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from test_cost import ADD, GAUSSIAN, LAPLACE, MICRO, ONE, ask, mechanisms, price, release, spent

from dpquery.accounting.convert import epsilon_up
from dpquery.errors import Refused
from dpquery.mechanisms import Noise
from dpquery.plan.release import Ask, CellBound, Enforced, GroupCap, Release, RowWeights
from dpquery.privacy import calibrate, enforced, reprice
from dpquery.privacy.allocation import shares
from dpquery.privacy.contribution import groups_of_a_unit
from dpquery.privacy.cost import selection_delta

FREE = price(delta=Fraction(0))
PART = Fraction(1, 5)
REFUSALS: list[tuple[Release, Ask, tuple[str, str, str]]] = [
    (
        release(ask("count"), keyed=True),
        FREE,
        (
            "PRIVATE_KEYS_NEED_DELTA",
            "the groups come from private rows: showing them needs a delta above 0",
            "give a delta, or list the keys: declared values, a join with a public table, or WHERE key IN (...)",
        ),
    ),
    (
        release(ask("count")),
        Ask(Fraction(0), rho=ONE),
        ("RHO_NEEDS_DELTA", "a price in rho has no epsilon at delta 0", "give a delta, or a price in epsilon"),
    ),
    (
        release(ask("count")),
        replace(FREE, noise=GAUSSIAN),
        ("GAUSSIAN_NEEDS_DELTA", "Gaussian noise needs a delta above 0", "give a delta, or noise => LAPLACE"),
    ),
    (
        release(ask("count"), keys=3),
        price(selection_epsilon=PART),
        ("NO_SELECTION", "group_selection_epsilon pays for private keys, and this statement has none", "leave it out"),
    ),
    (
        release(ask("count", epsilon=ONE)),
        price(None, rho=ONE),
        (
            "SHARE_NEEDS_EPSILON",
            "an epsilon for one aggregate is a share of the statement's epsilon, which is priced in rho",
            "price the statement in epsilon",
        ),
    ),
    *(
        (
            release(ask("count", epsilon=Fraction(none))),
            price(),
            ("BAD_PRICE", "an aggregate's epsilon must be above 0: no answer is free", "give a positive epsilon, or none"),
        )
        for none in (0, -1)
    ),
    *(
        (
            made,
            price(),
            (
                "SHARES_EXCEED_PRICE",
                "the epsilons of single aggregates and of group selection leave less than nothing of the statement's epsilon",
                "give shares that add up to at most the statement's epsilon, with something left for aggregates without one",
            ),
        )
        for made in (release(ask("count", epsilon=ONE + MICRO)), release(ask("count", epsilon=ONE), ask("total", 1)))
    ),
]


@pytest.mark.parametrize(("made", "asked", "said"), REFUSALS, ids=lambda x: x[0] if isinstance(x, tuple) else "")
def test_a_refusal_says_what_and_what_instead(made: Release, asked: Ask, said: tuple[str, str, str]) -> None:
    with pytest.raises(Refused) as caught:
        calibrate(made, asked, ADD)
    assert (caught.value.code, caught.value.message, caught.value.instead) == said


def test_explicit_shares_may_take_the_whole() -> None:
    made = release(ask("count", epsilon=4 * PART), ask("total", 1, epsilon=PART))
    assert shares(made, price(), in_rho=False) == (4 * PART, PART)
    assert spent(made, FREE).epsilon == 1


def test_what_explicit_shares_leave_is_not_claimed() -> None:
    """The guarantee of a statement that spends a fifth of what it may is that of the fifth, in both currencies."""
    made = release(ask("count", epsilon=PART))
    pure, rho = spent(made, FREE), spent(made, price(noise=GAUSSIAN))
    assert (pure.epsilon, pure.price.epsilon) == (PART, PART)
    assert rho.epsilon == epsilon_up(rho.price.rho, MICRO) < 1


def test_all_parts_weigh_in_the_choice_of_noise() -> None:
    """A small share is better off with Gaussian noise, a large one with Laplace: the product of both variances decides, not the last alone."""
    small = Fraction(1, 20)
    made = release(ask("count", epsilon=1 - small), ask("total", 1, epsilon=small), groups=1, keys=90)

    def error(noise: Noise) -> Fraction:
        return 2 * noise.parameter**2 if noise.mechanism is LAPLACE else noise.parameter

    laplace, gaussian = (spent(made, price(noise=n)).noises for n in (LAPLACE, GAUSSIAN))
    assert error(laplace[1]) > error(gaussian[1])
    assert error(laplace[0]) * error(laplace[1]) < error(gaussian[0]) * error(gaussian[1])
    assert mechanisms(spent(made, price())) == {LAPLACE}


@pytest.mark.lemma("P5")
@pytest.mark.parametrize("cell", [CellBound(0, 1, weighted=True), CellBound(-1, 1), CellBound(-1, 0), CellBound(0, 2)])
def test_a_count_that_selects_has_cells_of_0_and_1(cell: CellBound) -> None:
    bounds = Enforced(GroupCap(2), (cell,), 0, keyed=True)
    with pytest.raises(AssertionError, match=r"^groups are selected by counts of distinct units alone$"):
        selection_delta(bounds, (Noise(LAPLACE, ONE),), 5)


@pytest.mark.lemma("P5")
def test_groups_without_a_threshold_have_no_price() -> None:
    made = release(ask("units"), keyed=True)
    found = spent(made, price())
    with pytest.raises(AssertionError, match=r"^groups are selected by a threshold alone$"):
        reprice(enforced(made), replace(found, threshold=None), ADD)
    assert selection_delta(replace(enforced(made), selecting=None), found.noises, 5) == 0


@pytest.mark.lemma("C8")
def test_row_weights_bound_no_number_of_groups() -> None:
    with pytest.raises(AssertionError, match=r"^row weights do not bound the number of groups$"):
        groups_of_a_unit(Enforced(RowWeights(3), (CellBound(0, 1, weighted=True),), 0, keyed=True))


@pytest.mark.lemma("P6")
def test_bounds_of_another_number_of_parts_have_no_price() -> None:
    """Bounds that are derived anew must be those of the very parts that carry the noise: none is left out of the price."""
    made = release(ask("count"), ask("total", 1))
    found, bounds = spent(made, price()), enforced(made)
    for cells in (bounds.cells[:1], (*bounds.cells, CellBound(0, 1))):
        with pytest.raises(ValueError, match="zip"):
            reprice(replace(bounds, cells=cells), found, ADD)


def test_nothing_costs_a_fraction_of_0() -> None:
    """The ledger adds up fractions: a statement that releases no part has one of each kind."""
    found = spent(release(keys=3), price())
    assert [type(x) for x in (found.price.epsilon, found.price.rho, found.price.delta, found.delta)] == [Fraction] * 4
