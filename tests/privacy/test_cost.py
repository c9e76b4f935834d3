"""P-lemmas: shares, scales, threshold and price; what is asked for is what is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import exp, log, tanh
from random import Random
from typing import Any

import numpy as np
import pytest
import random_plans as rp
from choice_laws import losses
from interpreter import Data, run
from neighbours import moved, sample

from dpquery.accounting.convert import delta_up, epsilon_up
from dpquery.accounting.event import Price
from dpquery.aggregates import CARDS
from dpquery.aggregates.mode import lead
from dpquery.errors import Position, Refused
from dpquery.mechanisms import Noise, selection_delta_up, tail_up
from dpquery.plan.draft import AggregateAsk, Contributions, Draft
from dpquery.plan.release import Ask, CellBound, Choosing, Enforced, GroupCap, Key, Mechanism, PrivateKeys, Release, RowWeights, Units
from dpquery.plan.scalar import Interval
from dpquery.privacy import Facts, Priced, bound, calibrate, enforced, reprice, sensitivities
from dpquery.privacy.allocation import FINE, _root, shares
from dpquery.privacy.cost import NEARLY, USUAL, delta_split, epsilon_of, kept, rho_of, within
from dpquery.values.types import STRING, Adjacency

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
LAPLACE, GAUSSIAN = Mechanism.LAPLACE, Mechanism.GAUSSIAN
FLIP, EXPONENTIAL = Choosing.PERMUTE_AND_FLIP, Choosing.EXPONENTIAL
WORLD = rp.World(Random(0))
ORDERS = WORLD.scan("orders")
_, _, ITEM, AMOUNT, _ = (c.column for c in ORDERS.columns)
ONE, MICRO = Fraction(1), Fraction(1, 10**6)


def ask(card: str, i: int = 0, epsilon: Fraction | None = None, **more: Any) -> AggregateAsk:
    argument = None if card in ("count", "units") else AMOUNT
    name = "count" if card == "number" else card
    return AggregateAsk(f"a{i}", f"{card}(..)", name, argument, None, epsilon=epsilon, position=Position(1, 1), **more)


def release(
    *asks: AggregateAsk, groups: int = 2, keys: int | None = None, keyed: bool = False, minimum: int = 1, weights: int | None = None
) -> Release:
    """orders [GROUP BY item]: private keys, or `keys` listed ones."""
    found = None if keys is None else tuple((f"i{i}",) for i in range(keys))
    columns = (Key("item", ITEM, STRING),) if keyed or keys is not None else ()
    plan = Draft(ORDERS, columns, (), asks, Contributions(groups, 3, 1000, weights), minimum)
    return bound(plan, Facts({}, found, "a list"))


def price(epsilon: Fraction | None = ONE, delta: Fraction = MICRO, **more: Any) -> Ask:
    return Ask(delta, epsilon, **more)


def spent(made: Release, asked: Ask, adjacency: Adjacency = ADD) -> Priced:
    found = calibrate(made, asked, adjacency)
    assert reprice(enforced(made), found, adjacency) == found.price
    return found


def mechanisms(found: Priced) -> set[Mechanism]:
    return {noise.mechanism for noise in found.noises}


# ---- what is asked is what is spent --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(1, 3), Fraction(50), Fraction(1, 10**9)])
@pytest.mark.parametrize("cards", [("count",), ("count", "total", "mean"), ("mean", "number", "units")])
def test_p1_laplace_spends_exactly_what_was_asked(cards: Sequence[str], epsilon: Fraction, adjacency: Adjacency) -> None:
    made = release(*(ask(card, i) for i, card in enumerate(cards)), groups=3, keys=9)
    found = spent(made, price(epsilon, Fraction(0)), adjacency)
    assert mechanisms(found) == {LAPLACE}
    assert found.price.epsilon == found.epsilon == epsilon
    assert (found.price.delta, found.delta, found.conversion) == (0, 0, 0)
    assert found.price.rho <= epsilon * Fraction(tanh(epsilon / 2)) * (1 + Fraction(1, 10**6))
    assert sum(found.shares) == 1


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(8)])
def test_p1_gaussian_spends_nearly_what_was_asked(epsilon: Fraction, adjacency: Adjacency) -> None:
    made = release(ask("count"), ask("total", 1), groups=30, keys=90)
    found = spent(made, price(epsilon, noise=GAUSSIAN), adjacency)
    assert mechanisms(found) == {GAUSSIAN}
    assert found.price.epsilon is None
    assert (found.epsilon, found.delta, found.conversion) == (epsilon, MICRO, MICRO)
    back = epsilon_up(found.price.rho, MICRO)
    assert back is not None
    assert epsilon * Fraction(999, 1000) <= back <= epsilon * (1 + Fraction(1, 10**9))


def test_p1_the_mechanism_of_least_error_is_taken() -> None:
    """Laplace for few coordinates, Gaussian for many; never Gaussian without a delta."""
    assert mechanisms(spent(release(ask("count"), groups=1, keys=9), price())) == {LAPLACE}
    assert mechanisms(spent(release(ask("count"), groups=9, keys=90), price())) == {LAPLACE}
    assert mechanisms(spent(release(ask("count"), groups=12, keys=90), price())) == {GAUSSIAN}
    assert mechanisms(spent(release(ask("count"), groups=12, keys=90), price(delta=Fraction(0)))) == {LAPLACE}
    assert mechanisms(spent(release(ask("count"), groups=12, keys=90), price(noise=LAPLACE))) == {LAPLACE}
    assert mechanisms(spent(release(ask("count"), groups=1, keys=9), price(noise=GAUSSIAN))) == {GAUSSIAN}


@pytest.mark.lemma("P1")
def test_a_price_in_rho_buys_gaussian_noise() -> None:
    """Whose variance is half of Laplace's for a small rho, however few coordinates; for a large one it is not."""
    for made in (release(ask("count")), release(ask("count"), ask("mean", 1)), release(ask("count"), groups=30, keys=90)):
        for plain in (True, False):
            found, laplace = (spent(made, Ask(MICRO, rho=Fraction(1, 50), noise=noise, plain=plain)) for noise in (None, LAPLACE))
            assert mechanisms(found) == {GAUSSIAN}
            assert float(found.error) == pytest.approx(float(laplace.error) / 2 ** len(found.noises), rel=0.05)
    assert mechanisms(spent(release(ask("count")), Ask(MICRO, rho=Fraction(5)))) == {LAPLACE}


def test_of_private_keys_the_least_threshold_is_taken() -> None:
    """Laplace noise has the smaller variance, Gaussian noise the lower threshold: whether or not something is counted of the groups."""
    made, asked = release(keyed=True, groups=5), price()
    laplace, gaussian = (spent(made, price(noise=noise)) for noise in (LAPLACE, GAUSSIAN))
    assert laplace.error < gaussian.error
    assert spent(made, asked).threshold == gaussian.threshold < (laplace.threshold or 0)
    among = [within(release(keyed=True, groups=1), replace(asked, noise=noise), ADD, Fraction(6), MICRO) for noise in (None, LAPLACE, GAUSSIAN)]
    assert among[1].error < among[2].error
    assert among[0].threshold == among[2].threshold < (among[1].threshold or 0)
    for asks, first in (((), 3), ((ask("units"),), 3), ((ask("count"),), 2)):  # half a price needs as much noise as a cap twice as high
        for cap in (1, 2, 3, 5):
            assert mechanisms(spent(release(*asks, keyed=True, groups=cap), asked)) == {LAPLACE if cap < first else GAUSSIAN}


def test_the_error_is_the_product_of_variances() -> None:
    """About: 2 s^2 of Laplace's, v of Gauss'; of a choice the square of the lead that a value needs."""
    two = release(ask("count"), ask("total", 1), keys=9)
    for noise in (LAPLACE, GAUSSIAN):
        found = spent(two, price(noise=noise))
        first, second = (one.parameter for one in found.noises)
        assert found.error == (4 * first**2 * second**2 if noise is LAPLACE else first * second)
    chosen = spent(release(mode(), ask("count", 1), keys=9), price(delta=Fraction(0)))
    flip, laplace = chosen.noises
    assert chosen.error == Fraction(lead(3, flip, USUAL)) ** 2 * 2 * laplace.parameter**2
    assert spent(release(keys=3), price()).error == 1


@pytest.mark.lemma("P10")
def test_p10_a_release_among_several_converts_nothing() -> None:
    made = release(ask("count"), keyed=True)
    pure, by_rho = within(made, price(), ADD, None, MICRO / 3), within(made, price(), ADD, Fraction(1, 90), MICRO / 3)
    assert (pure.epsilon, pure.price.epsilon, pure.conversion) == (ONE, ONE, 0)
    assert 0 < pure.delta == pure.price.delta <= MICRO / 3
    assert by_rho.conversion == 0
    assert 0 < by_rho.delta == by_rho.price.delta <= MICRO / 3
    assert by_rho.epsilon == by_rho.price.epsilon


def test_the_choice_depends_on_the_plan_alone() -> None:
    made = release(ask("count"), groups=12, keys=90)
    assert spent(made, price()) == spent(made, price())


def test_p1_rho_asks_are_met() -> None:
    for noise in (GAUSSIAN, LAPLACE, None):
        found = spent(release(ask("count"), ask("total", 1), groups=4, keys=9), price(None, rho=Fraction(1, 50), noise=noise))
        assert Fraction(1, 50) * Fraction(999, 1000) <= found.price.rho <= Fraction(1, 50)
        assert found.epsilon == epsilon_up(found.price.rho, MICRO)
        assert found.conversion == MICRO


@pytest.mark.lemma("P1", "P2", "P6", "P7")
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("adjacency", Adjacency)
def test_p6_reprice_equals_the_price_charged(seed: int, adjacency: Adjacency) -> None:
    """On random releases: the price from bounds and noises alone is the one charged, and within what was asked."""
    s = sample(seed, adjacency)
    asked = price(Fraction(s.random.randint(1, 20), 10), Fraction(1, 1000))
    found = spent(s.release, asked, adjacency)
    taken = sum(found.shares)
    assert found.epsilon == asked.epsilon if taken == 1 else found.epsilon < asked.epsilon
    assert found.delta <= asked.delta
    assert found.price.epsilon in (asked.epsilon * taken, None)


# ---- shares --------------------------------------------------------------------------------------------------------------------------


def test_shares_add_up() -> None:
    """Equal per aggregate, split equally over parts; a shared part takes the sum; a hidden count takes one share."""
    x = Fraction(1, 2)
    assert shares(release(ask("count")), price(), in_rho=False) == (1,)
    assert shares(release(ask("count"), ask("mean", 1)), price(), in_rho=False) == (x, x / 2, x / 2)
    assert shares(release(ask("number"), ask("mean", 1)), price(), in_rho=False) == (x + x / 2, x / 2)
    assert shares(release(ask("count"), ask("count", 1)), price(), in_rho=False) == (1,)
    assert shares(release(ask("count"), keyed=True), price(), in_rho=False) == (x, x)
    assert shares(release(ask("units"), keyed=True), price(), in_rho=False) == (1,)
    assert shares(release(keyed=True), price(), in_rho=False) == (1,)
    assert shares(release(keys=3), price(), in_rho=False) == ()


LAWS = [(True, 1), (False, 2)]  # whether shares are of rho, and the power of a share that a variance falls with


@pytest.mark.lemma("P7")
@pytest.mark.parametrize(("in_rho", "power"), LAWS)
def test_shares_of_plain_sql_err_least(in_rho: bool, power: int) -> None:
    """COUNT(x) and AVG(x) share a count: of their variances, in units of each part's bound, no other shares make a smaller sum."""
    made = release(ask("number"), ask("mean", 1), ask("total", 2))
    assert [one.parts for one in made.aggregates] == [(0,), (1, 0), (2,)]

    def error(found: Sequence[Fraction]) -> Fraction:
        return sum((w / share**power for w, share in zip((Fraction(3, 2), Fraction(1, 2), ONE), found, strict=True)), Fraction(0))

    found = shares(made, price(plain=True), in_rho=in_rho)
    assert sum(found) == 1
    assert error(found) < error(shares(made, price(), in_rho=in_rho)) * Fraction(97, 100)
    for i, j in ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)):
        moved_ = [share + ((at == i) - (at == j)) * Fraction(1, 50) for at, share in enumerate(found)]
        assert error(moved_) > error(found)


@pytest.mark.lemma("P7")
def test_shares_of_plain_sql_are_those_of_roots_to_ten_bits() -> None:
    """Exact, so that a price is the same on every machine."""
    made = release(ask("mean"), ask("total", 1))
    assert shares(made, price(plain=True), in_rho=True) == (Fraction(724, 2472), Fraction(724, 2472), Fraction(1024, 2472))
    assert shares(made, price(plain=True), in_rho=False) == (Fraction(812, 2648), Fraction(812, 2648), Fraction(1024, 2648))
    for power, weight in ((p, Fraction(top, under)) for p in (2, 3) for top in range(12) for under in range(1, 6)):
        root = Fraction(_root(weight, power), 1 << FINE)
        assert root**power <= weight < (root + Fraction(1, 1 << FINE)) ** power


def test_parts_are_scaled_by_the_shares_of_what_their_noise_is_priced_in() -> None:
    made = release(ask("mean"), ask("total", 1), groups=1)
    for noise, in_rho in ((LAPLACE, False), (GAUSSIAN, True)):
        asked = price(plain=True, noise=noise)
        found = spent(made, asked)
        wanted = shares(made, asked, in_rho=in_rho)
        assert found.shares == wanted
        assert wanted != shares(made, asked, in_rho=not in_rho)
        costs = [rho_of(n, s) if in_rho else epsilon_of(n, s) or 0 for n, s in zip(found.noises, sensitivities(enforced(made), ADD), strict=True)]
        assert [float(cost / sum(costs)) for cost in costs] == pytest.approx([float(share) for share in wanted], rel=1e-9)


@pytest.mark.lemma("P7")
@pytest.mark.parametrize(("in_rho", "power"), LAWS)
def test_selection_of_plain_sql_weighs_what_goes_with_a_group(in_rho: bool, power: int) -> None:
    """B aggregates against one count that weighs B; never less than an equal share, and half of the price where one is asked for."""
    asks, root = (ask("count"), ask("total", 1), ask("mean", 2), ask("number", 3)), 1 if in_rho else 2
    for b in range(1, 5):
        made = release(*asks[:b], keyed=True)
        assert isinstance(made.keys, PrivateKeys)
        found, equal = (shares(made, price(plain=plain), in_rho=in_rho) for plain in (True, False))
        own = found[made.keys.count]
        assert sum(found) == 1
        assert min(found) > 0
        assert float(own) == pytest.approx(1 / (1 + b ** (root / (root + 1))), abs=2e-3)
        assert own >= equal[made.keys.count]
    for made in (release(keyed=True), release(ask("units"), keyed=True), release(ask("units"), ask("count", 1), keyed=True)):
        assert shares(made, price(plain=True), in_rho=in_rho) == shares(made, price(), in_rho=in_rho)


@pytest.mark.lemma("P1", "P7")
def test_plain_sql_spends_exactly_what_was_asked() -> None:
    made = release(ask("number"), ask("mean", 1), ask("total", 2), keyed=True)
    for asked in (price(noise=LAPLACE, plain=True), price(noise=GAUSSIAN, plain=True), Ask(MICRO, rho=Fraction(1, 50), plain=True)):
        found = spent(made, asked)
        assert sum(found.shares) == 1
        assert found.epsilon == ONE or found.price.rho <= Fraction(1, 50)
    assert spent(made, price(noise=LAPLACE, plain=True)).price.epsilon == ONE


@pytest.mark.lemma("P7")
def test_explicit_shares_leave_equal_ones_in_plain_sql_too() -> None:
    fifth = Fraction(1, 5)
    for made, asked in (
        (release(ask("number", epsilon=fifth), ask("mean", 1), ask("total", 2)), price()),
        (release(ask("number"), ask("mean", 1), keyed=True), price(selection_epsilon=fifth)),
        (release(keys=3), price()),
    ):
        assert shares(made, replace(asked, plain=True), in_rho=False) == shares(made, asked, in_rho=False)


def test_b11_explicit_epsilons_set_shares_of_the_price() -> None:
    fifth = Fraction(1, 5)
    made = release(ask("count", epsilon=fifth), ask("total", 1), ask("mean", 2))
    assert shares(made, price(), in_rho=False) == (fifth, 2 * fifth, fifth, fifth)
    found = spent(made, price(Fraction(2), Fraction(0)))
    assert found.price.epsilon == 2
    assert epsilon_of(found.noises[0], sensitivities(enforced(made), ADD)[0]) == fifth
    everything = release(ask("count", epsilon=fifth), ask("total", 1, epsilon=fifth))
    assert spent(everything, price(delta=Fraction(0))).price.epsilon == 2 * fifth


def test_selection_epsilon_sets_the_share_of_the_count() -> None:
    tenth = Fraction(1, 10)
    assert shares(release(ask("count"), keyed=True), price(selection_epsilon=tenth), in_rho=False) == (tenth, 1 - tenth)
    assert shares(release(ask("units"), ask("count", 1), keyed=True), price(selection_epsilon=tenth), in_rho=False) == (
        Fraction(45, 100) + tenth,
        Fraction(45, 100),
    )


def refused(code: str, made: Release, asked: Ask) -> None:
    with pytest.raises(Refused) as caught:
        calibrate(made, asked, ADD)
    assert caught.value.code == code
    assert caught.value.instead


def test_f10_shares_beyond_the_price_are_refused() -> None:
    refused("SHARES_EXCEED_PRICE", release(ask("count", epsilon=Fraction(13, 10))), price())
    refused("SHARES_EXCEED_PRICE", release(ask("count", epsilon=ONE), ask("total", 1)), price())
    refused("SHARES_EXCEED_PRICE", release(ask("count"), keyed=True), price(selection_epsilon=Fraction(12, 10)))
    refused("BAD_PRICE", release(ask("count", epsilon=Fraction(-1))), price())
    refused("SHARE_NEEDS_EPSILON", release(ask("count", epsilon=ONE)), price(None, rho=ONE))


def test_e_no_selection_is_paid_for_without_private_keys() -> None:
    refused("NO_SELECTION", release(ask("count"), keys=3), price(selection_epsilon=Fraction(1, 10)))
    assert len(spent(release(ask("count"), keys=3), price()).noises) == 1


# ---- delta ---------------------------------------------------------------------------------------------------------------------------


def test_n8_delta_is_split_once() -> None:
    d = Fraction(1, 10**9)
    assert delta_split(d, conversion=True, selection=True) == (d / 2, d / 2)
    assert delta_split(d, conversion=True, selection=False) == (d, 0)
    assert delta_split(d, conversion=False, selection=True) == (0, d)
    assert delta_split(d, conversion=False, selection=False) == (0, 0)


def test_n8_gaussian_with_private_keys_halves_it_under_replace_one() -> None:
    found = spent(release(ask("count"), keyed=True, groups=4), price(noise=GAUSSIAN), REPLACE)
    assert found.conversion == MICRO / 2
    assert MICRO / 20 < found.price.delta <= MICRO / 2
    assert found.delta == found.conversion + found.price.delta <= MICRO


def test_n8_one_delta_pays_for_conversion_and_half_of_it_for_selection() -> None:
    """Under add/remove a unit's groups are its own or others' as well, and each of them is charged for once (P11)."""
    made = release(ask("count"), keyed=True, groups=4)
    found = spent(made, price(noise=GAUSSIAN))
    assert found.conversion == MICRO * NEARLY
    assert MICRO / 20 < found.price.delta <= MICRO / 2
    assert found.epsilon == ONE
    assert kept(enforced(made), found.price, ONE, ADD) <= found.delta == MICRO
    assert found.conversion + found.price.delta > MICRO
    asked = Ask(MICRO, rho=Fraction(1, 50))
    assert spent(made, asked).epsilon == epsilon_up(spent(made, asked).price.rho, MICRO * NEARLY)


def exact_deltas(noise: Noise, threshold: int, groups: int, alone: int, epsilon: float) -> tuple[float, float]:
    """The least delta, either way, of counts of units with noise of which a unit has so many groups, and so many of them alone: by sums."""
    z = np.arange(-200, 201)
    law = np.exp(-(z**2) / (2 * float(noise.parameter))) if noise.mechanism is GAUSSIAN else np.exp(-abs(z) / float(noise.parameter))
    law /= law.sum()
    hidden = (1 - law[z >= threshold - 1].sum()) ** alone
    total, more = np.ones(1), np.ones(1)  # of what the other groups' counts are together, without the unit and with it
    for _ in range(groups - alone):
        total, more = np.convolve(total, law), np.convolve(more, np.roll(law, 1))
    there = 1 - hidden + np.maximum(0, hidden * more - exp(epsilon) * total).sum()
    return there, np.maximum(0, total - exp(epsilon) * hidden * more).sum()


P11 = [(v, t, groups, epsilon) for v in (4, 9) for t in (5, 8, 11) for groups in (1, 2, 5) for epsilon in (1.0, 2.5)]


def kept_of(v: int, t: int, groups: int, epsilon: float) -> tuple[Fraction, Price]:
    bounds, noise = Enforced(GroupCap(groups), (CellBound(0, 1),), 0, keyed=True), Noise(GAUSSIAN, Fraction(v))
    found = reprice(bounds, Priced((noise,), t, Price(ONE, ONE, ONE), (ONE,), None, ONE, ONE), ADD)
    return kept(bounds, found, Fraction(epsilon), ADD), found


@pytest.mark.lemma("P11", "V4")
@pytest.mark.parametrize(("v", "t", "groups", "epsilon"), P11)
def test_p11_exact_losses_are_below_the_claim(v: int, t: int, groups: int, epsilon: float) -> None:
    """However many groups are the unit's alone. The sum over the other groups is enough: the ratio of two laws is a function of it."""
    claim, _ = kept_of(v, t, groups, epsilon)
    for alone in range(groups + 1):
        assert max(exact_deltas(Noise(GAUSSIAN, Fraction(v)), t, groups, alone, epsilon)) <= claim * (1 + Fraction(1, 10**9))


@pytest.mark.lemma("P11")
def test_p11_both_ends_are_reached() -> None:
    """All groups the unit's alone: that is selection's delta, and all of the claim where conversion takes less. None: that of conversion (V3). A
    claim of one end alone is passed by what the other costs."""
    claim, found = kept_of(4, 5, 2, 2.5)
    exact = max(exact_deltas(Noise(GAUSSIAN, Fraction(4)), 5, 2, 2, 2.5))
    assert exact == pytest.approx(float(found.delta), rel=1e-9)
    assert claim == pytest.approx(exact, rel=0.05)
    assert delta_up(found.rho, Fraction(5, 2)) < exact / 2
    claim, found = kept_of(9, 14, 5, 1.0)
    assert claim == delta_up(found.rho, ONE)
    assert found.delta < max(exact_deltas(Noise(GAUSSIAN, Fraction(9)), 14, 5, 0, 1.0)) / 2


@pytest.mark.lemma("P11")
def test_p11_other_releases_pay_for_both() -> None:
    """Replace-one, listed keys, a delta that is no small one: the deltas add up."""
    for made, adjacency in ((release(ask("count"), keyed=True, groups=4), REPLACE), (release(ask("count"), keys=90, groups=30), ADD)):
        found = spent(made, price(noise=GAUSSIAN), adjacency)
        assert kept(enforced(made), found.price, ONE, adjacency) == delta_up(found.price.rho, ONE) + found.price.delta
    off = spent(release(ask("count"), keyed=True), price(delta=ONE, noise=GAUSSIAN))
    assert (off.conversion, off.delta) == (Fraction(1, 2), 1)


@pytest.mark.lemma("P11")
@pytest.mark.parametrize(("groups", "delta", "epsilon"), [(1, "0.05", "0.01"), (4, "0.3", "0.01"), (20, "0.2", "0.1")])
def test_p11_where_a_delta_does_not_pay_twice_it_is_halved(groups: int, delta: str, epsilon: str) -> None:
    made = release(ask("count"), keyed=True, groups=groups)
    found = spent(made, price(Fraction(epsilon), Fraction(delta), noise=GAUSSIAN))
    assert found.conversion == Fraction(delta) / 2
    assert found.epsilon == Fraction(epsilon)
    assert kept(enforced(made), found.price, Fraction(epsilon), ADD) <= found.delta == found.conversion + found.price.delta <= Fraction(delta)


@pytest.mark.lemma("P11")
def test_p11_patterns_are_in_proportion_to_the_cap() -> None:
    """What it rests on: under add/remove every part costs as many groups times as much rho as in one."""
    cells = (CellBound(0, 1), CellBound(-7, 3), CellBound(0, 4, united=True), CellBound(0, 6, bins=3), CellBound(0, 6, bins=3, ranked=Fraction(1, 3)))
    for mechanisms in ((LAPLACE, LAPLACE, LAPLACE, FLIP, FLIP), (GAUSSIAN, GAUSSIAN, GAUSSIAN, EXPONENTIAL, EXPONENTIAL), (LAPLACE,) * 5):
        each = [
            [
                rho_of(Noise(m, Fraction(5)), s)
                for m, s in zip(mechanisms, sensitivities(Enforced(GroupCap(n), cells, 0, keyed=True), ADD), strict=True)
            ]
            for n in (1, 7)
        ]
        assert each[1] == [7 * one for one in each[0]]


def test_n8_laplace_with_private_keys_spends_it_on_selection() -> None:
    found = spent(release(ask("count"), keyed=True, groups=2), price(noise=LAPLACE))
    assert found.conversion == 0
    assert MICRO / 4 < found.price.delta == found.delta <= MICRO


def test_a_selecting_mechanism_of_its_own() -> None:
    """GAUSSIAN_THRESHOLD beside Laplace sums: one conversion of the total rho, Laplace's included."""
    made = release(ask("total"), keyed=True)
    found = spent(made, price(noise=LAPLACE, selection=GAUSSIAN))
    assert isinstance(made.keys, PrivateKeys)
    assert [n.mechanism for n in found.noises] == [GAUSSIAN if i == made.keys.count else LAPLACE for i in range(2)]
    assert found.price.epsilon is None
    back = epsilon_up(found.price.rho, found.conversion)
    assert back is not None
    assert Fraction(99, 100) <= back <= 1 + Fraction(1, 10**9)


def test_what_needs_a_delta_is_refused_without_one() -> None:
    nothing = price(delta=Fraction(0))
    refused("PRIVATE_KEYS_NEED_DELTA", release(ask("count"), keyed=True), nothing)
    refused("GAUSSIAN_NEEDS_DELTA", release(ask("count")), replace(nothing, noise=GAUSSIAN))
    refused("RHO_NEEDS_DELTA", release(ask("count")), Ask(Fraction(0), rho=ONE))


# ---- threshold -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.lemma("P5")
@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize("adjacency", Adjacency)
def test_p5_selection_delta_is_reached(mechanism: Mechanism, adjacency: Adjacency) -> None:
    """T is the least threshold whose exact tail gives delta = 1 - (1 - p)^l0: one less would spend more than was asked. Cells are 0 or 1."""
    made = release(ask("count"), keyed=True, groups=3)
    found = spent(made, price(noise=mechanism), adjacency)
    allowed = MICRO if mechanism is LAPLACE else MICRO / 2
    assert found.threshold is not None
    assert isinstance(made.keys, PrivateKeys)
    noise = found.noises[made.keys.count]
    assert selection_delta_up(noise, found.threshold, 3) == found.price.delta <= allowed
    assert selection_delta_up(noise, found.threshold - 1, 3) > allowed
    assert found.price.delta == pytest.approx(1 - (1 - float(tail_up(noise, found.threshold - 1))) ** 3, rel=1e-6)


def test_a13_a_minimum_does_not_change_the_price() -> None:
    """noisy(units - (m - 1)) >= T: the threshold, its noise and its delta are those without a minimum."""
    one, five = (spent(release(ask("count"), keyed=True, minimum=m), price(noise=LAPLACE)) for m in (1, 5))
    assert one == five


def test_a15_groups_are_selected_by_counts_of_units_alone() -> None:
    """Cells beyond {0, 1} have a tail of their own: such a part never selects."""
    made = release(ask("units"), keyed=True)
    found = spent(made, price(noise=LAPLACE))
    with pytest.raises(AssertionError):
        reprice(replace(enforced(made), cells=(CellBound(0, 20),)), found, ADD)


def test_keys_alone_take_the_mechanism_with_the_lower_threshold() -> None:
    for groups in (1, 4, 40):
        made = release(keyed=True, groups=groups)
        best, *others = (spent(made, price(noise=m)).threshold for m in (None, LAPLACE, GAUSSIAN))
        assert best == min(t for t in others if t is not None)


# ---- single lemmas -------------------------------------------------------------------------------------------------------------------


def claim(cell: CellBound, groups: int, adjacency: Adjacency) -> Any:
    return sensitivities(Enforced(GroupCap(groups), (cell,), None, keyed=True), adjacency)[0]


def mass(noise: Noise, z: int) -> Fraction:
    """P(Z = z) by the law's own tails, to 15 digits."""
    return tail_up(noise, abs(z)) - tail_up(noise, abs(z) + 1)


@pytest.mark.lemma("P3", "Z0")
def test_p3_epsilon_is_reached() -> None:
    """Three coordinates shifted by their claim: an outcome beyond both vectors is exp(epsilon) times as likely under the one as under the other."""
    noise = Noise(LAPLACE, Fraction(7, 2))
    s = claim(CellBound(0, 5), 3, ADD)
    epsilon = epsilon_of(noise, s)
    assert (s.l0, s.linf, epsilon) == (3, 5, Fraction(15) / noise.parameter)
    assert (float(mass(noise, 9 - 5) / mass(noise, 9 - 0))) ** 3 == pytest.approx(exp(epsilon), rel=1e-12)
    assert max(float(mass(noise, z - 5) / mass(noise, z)) for z in range(-30, 31)) <= exp(epsilon / 3) * (1 + 1e-12)
    assert epsilon_of(Noise(GAUSSIAN, noise.parameter), s) is None


# ---- choices -------------------------------------------------------------------------------------------------------------------------

BINS = CellBound(0, 6, bins=2)


def mode(i: int = 0, count: int = 4, **more: Any) -> AggregateAsk:
    return replace(ask("mode", i, **more), values=tuple(range(count)))


def drawn(found: Priced) -> list[Any]:
    return [noise.mechanism for noise in found.noises]


@pytest.mark.lemma("P3")
@pytest.mark.parametrize("adjacency", Adjacency)
def test_p3_epsilon_of_a_choice_is_reached(adjacency: Adjacency) -> None:
    """A unit's rows in one bin of each of two groups, or moved from one bin to another: what is chosen is exp(epsilon) times as likely."""
    s, scale = claim(BINS, 2, adjacency), Fraction(8)
    epsilon = epsilon_of(Noise(FLIP, scale), s)
    assert epsilon == (Fraction(12, 8) if adjacency is ADD else Fraction(24, 8))
    one, two = ((0, 0), (6, 0)) if adjacency is ADD else ((12, 0), (6, 6))
    assert 2 * float(max(map(abs, losses(FLIP, one, two, scale)))) == pytest.approx(float(epsilon), abs=1e-12)
    assert epsilon_of(Noise(EXPONENTIAL, scale), s) is None


@pytest.mark.lemma("P4")
def test_p4_rho_of_choices() -> None:
    """Counts move apart by W, replaced ones by 2 W in as many groups, not in twice as many."""
    for adjacency, apart in ((ADD, 6), (REPLACE, 12)):
        s = claim(BINS, 2, adjacency)
        assert s.spreads == (2, apart)
        assert rho_of(Noise(EXPONENTIAL, Fraction(5)), s) == Fraction(2 * apart**2, 8 * 25)
        assert float(rho_of(Noise(FLIP, Fraction(5)), s)) == pytest.approx(2 * apart / 5 * tanh(apart / 10))
    single = claim(CellBound(0, 6), 2, ADD)
    for price_of in (epsilon_of, rho_of):
        for nothing in (single, replace(single, spreads=(0, 5)), replace(single, spreads=(5, 0))):
            with pytest.raises(AssertionError, match=r"^a choice is among several integers of a group$"):
                price_of(Noise(FLIP if price_of is epsilon_of else EXPONENTIAL, Fraction(1)), nothing)
    assert epsilon_of(Noise(FLIP, Fraction(2)), replace(single, spreads=(1, 1))) == Fraction(1, 2)


@pytest.mark.lemma("P1", "P6")
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(50)])
def test_p1_a_choice_spends_what_was_asked(epsilon: Fraction, adjacency: Adjacency) -> None:
    made = release(mode(), ask("count", 1), groups=3, keys=9)
    found = spent(made, price(epsilon, Fraction(0)), adjacency)
    assert drawn(found) == [FLIP, LAPLACE]
    assert found.price.epsilon == found.epsilon == epsilon
    by_rho = spent(release(mode(), groups=60, keys=90), price(epsilon / 10), adjacency)
    assert drawn(by_rho) == [EXPONENTIAL]
    assert (by_rho.price.epsilon, by_rho.epsilon, by_rho.conversion) == (None, epsilon / 10, MICRO)
    back = epsilon_up(by_rho.price.rho, MICRO)
    assert back is not None
    assert epsilon / 10 * Fraction(999, 1000) <= back <= epsilon / 10 * (1 + Fraction(1, 10**9))


def test_p1_rho_buys_a_choice() -> None:
    found = spent(release(mode(), groups=4, keys=9), price(None, rho=Fraction(1, 50)))
    assert drawn(found) == [EXPONENTIAL]
    assert Fraction(1, 50) * (1 - Fraction(1, 10**9)) <= found.price.rho <= Fraction(1, 50)


def test_a_named_noise_is_what_is_drawn() -> None:
    for noise in Mechanism:
        assert drawn(spent(release(mode()), price(noise=noise))) == [noise]


def test_bins_that_a_quantile_reads_are_released() -> None:
    """The same bins, shown by a mode and by a quantile: they are paid for once, with noise, as the quantile needs the numbers."""
    values = tuple(range(4))
    (part,) = CARDS["mode"].plan(replace(ask("mode"), values=values), Contributions(1, 3, 1000, listed=1), None).parts
    assert isinstance(part.row, Units)
    both = release(mode(), ask("quantile", 1))
    assert both.modal == (0,), "bins of their own"
    place = AggregateAsk("a1", "q", "quantile", part.row.value, None, per_row=Interval(Fraction(0), Fraction(3)), fractions=(Fraction(1, 2),))
    shared = release(mode(), place)
    assert len(shared.table.parts) == 1
    assert shared.modal == ()
    assert drawn(spent(shared, price())) == [LAPLACE]
    assert release(mode(), mode(1)).modal == (0,), "two modes of the same values are one choice"


@pytest.mark.lemma("R1")
def test_the_number_of_groups_decides_how_fine_bins_are() -> None:
    """One group, few listed ones, many, and private ones, which also have the count that selects them."""
    wide = ask("quantile", per_row=Interval(Fraction(0), Fraction(10**9)))
    found = [release(wide, keys=keys, keyed=keyed) for keys, keyed in ((None, False), (9, True), (9000, True), (None, True))]
    assert [[part.numbers for part in one.table.parts] for one in found] == [[16, 256, 4096], [16, 256, 4096], [16, 256], [1, 16, 256]]


@pytest.mark.parametrize(("count", "adjacency", "expected"), [(256, ADD, EXPONENTIAL), (4, REPLACE, EXPONENTIAL), (200, REPLACE, GAUSSIAN)])
def test_of_choice_and_noise_the_better_is_taken(count: int, adjacency: Adjacency, expected: Any) -> None:
    """Priced in rho: Gaussian noise on many values moves less than the exponential mechanism where scores move both ways; nowhere else."""
    found = spent(release(mode(count=count), groups=60, keys=90), price(None, rho=Fraction(1, 50)), adjacency)
    assert drawn(found) == [expected]


@pytest.mark.parametrize("count", [2, 3, 9, 40, 256])
@pytest.mark.parametrize("adjacency", Adjacency)
def test_a_choice_errs_less_than_laplace_noise(count: int, adjacency: Adjacency) -> None:
    choice = spent(release(mode(count=count)), price(delta=Fraction(0)), adjacency)
    noisy = spent(release(mode(count=count)), price(delta=Fraction(0), noise=LAPLACE), adjacency)
    assert drawn(choice) == [FLIP]
    assert choice.noises[0].parameter == noisy.noises[0].parameter, "the same scale, one-sided"
    assert lead(count - 1, choice.noises[0], USUAL) < 0.85 * lead(count - 1, noisy.noises[0], USUAL)


@pytest.mark.lemma("P6", "C3")
@pytest.mark.parametrize("noise", Mechanism)
def test_p6_one_unit_reaches_the_whole_price(noise: Mechanism) -> None:
    """The same rows move every part by its claim, so that losses of all parts add up to what is charged: nothing of the sum is spare."""
    made = release(ask("count"), ask("total", 1), ask("mean", 2), groups=2, keys=9)
    found = spent(made, price(noise=noise))
    rows = [{"oid": i, "uid": 1, "item": f"i{i % 4}", "amount": 20, "score": None} for i in range(40)]
    with_unit, without = run(made, Data({"orders": rows})), run(made, Data({"orders": []}))
    shifts = [moved(with_unit, without, part).shifts for part in range(len(found.noises))]
    if noise is LAPLACE:
        assert sum(sum(own) / n.parameter for own, n in zip(shifts, found.noises, strict=True)) == found.price.epsilon == 1
    else:
        assert sum(sum(x * x for x in own) / (2 * n.parameter) for own, n in zip(shifts, found.noises, strict=True)) == found.price.rho


@pytest.mark.lemma("P4")
def test_p4_rho_of_patterns() -> None:
    """Replace-one: signed cells are worst in the same groups (2 m in each), counts in other groups (m in twice as many)."""
    b = Noise(LAPLACE, Fraction(10))

    def e(x: float) -> float:
        return x * tanh(x / 2)

    signed, counts = claim(CellBound(-10, 10), 2, REPLACE), claim(CellBound(0, 10), 2, REPLACE)
    assert float(rho_of(b, signed)) == pytest.approx(max(2 * e(2), 4 * e(1)))
    assert float(rho_of(b, counts)) == pytest.approx(4 * e(1))
    assert float(rho_of(b, claim(CellBound(-10, 10), 2, ADD))) == pytest.approx(2 * e(1))
    assert rho_of(Noise(GAUSSIAN, Fraction(100)), signed) == Fraction(2 * 400, 200)


def test_a17_discrete_laplace_is_not_charged_the_continuous_rho() -> None:
    """e tanh(e/2) >= the discrete law's own rho (its Renyi divergence of order 1 from the pmf) > e + exp(-e) - 1 at e = 1 and 3."""
    for e in (1, 3):
        charged = float(rho_of(Noise(LAPLACE, Fraction(1, e)), claim(CellBound(0, 1), 1, ADD)))
        mass = {z: exp(-abs(z) * e) * (1 - exp(-e)) / (1 + exp(-e)) for z in range(-60, 60)}
        divergence = sum(p * log(p / mass[z - 1]) for z, p in mass.items() if z - 1 in mass)
        assert charged >= divergence - 1e-12
        assert charged == pytest.approx(divergence, rel=1e-6)
        assert charged > 1.2 * (e + exp(-e) - 1) or e == 3


def test_n2_row_weights_are_charged_as_one_coordinate() -> None:
    """R = 10, b = 10 rows: ten coordinates would be .05 of rho, one is .462; that is what is charged."""
    s = sensitivities(Enforced(RowWeights(10), (CellBound(0, 1, weighted=True),), None, keyed=True), ADD)[0]
    assert float(rho_of(Noise(LAPLACE, Fraction(10 << 20)), s)) == pytest.approx(tanh(0.5))
    made = release(ask("count"), ask("total", 1), keys=9, weights=10)
    assert spent(made, price(delta=Fraction(0))).price.epsilon == 1
    assert spent(made, price(noise=GAUSSIAN)).epsilon == 1


def test_replace_one_costs_more_noise() -> None:
    """Twice L1 for a signed sum in one group; for a count, twice the coordinates."""
    made = release(ask("total", per_row=Interval(Fraction(-5), Fraction(5))), groups=1, keys=9)
    one, two = (spent(made, price(noise=LAPLACE), adjacency).noises[0].parameter for adjacency in Adjacency)
    assert two == 2 * one


# ---- the ends of the range -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", Adjacency)
def test_noise_off(adjacency: Adjacency) -> None:
    """epsilon = 1e20, delta = 1: Laplace that is never drawn but 0, threshold 1."""
    made = release(ask("count"), ask("mean", 1), ask("total", 2), keyed=True)
    found = spent(made, price(Fraction(10**20), ONE), adjacency)
    assert mechanisms(found) == {LAPLACE}
    assert found.threshold == 1
    assert found.price.epsilon == 10**20
    assert found.delta <= 1
    assert all(noise.parameter < Fraction(1, 10**12) for noise in found.noises)
    assert mechanisms(spent(made, price(Fraction(10**20), ONE, noise=GAUSSIAN), adjacency)) == {GAUSSIAN}


def test_a_statement_that_shows_listed_keys_alone_is_free() -> None:
    found = spent(release(keys=3), price())
    assert (found.noises, found.price.epsilon, found.price.rho, found.price.delta) == ((), 0, 0, 0)


@pytest.mark.lemma("P1", "V1", "V3")
def test_guarantee_is_the_conversion_of_what_is_charged() -> None:
    found = spent(release(ask("count"), groups=20, keys=90), price(noise=GAUSSIAN))
    assert found.epsilon is not None
    assert delta_up(found.price.rho, found.epsilon) <= MICRO
