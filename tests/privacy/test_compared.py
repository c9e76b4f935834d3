"""C17: how far sums of groups move apart, where one of the groups is chosen by them; what is chosen, and how sure it is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import exp, log
from random import Random

import pytest
import random_plans as rp
from choice_laws import losses
from interpreter import Data, run
from neighbours import flat, moved

from dpquery.accounting.pure import choice_epsilon
from dpquery.aggregates import card, leading
from dpquery.aggregates.leading import how
from dpquery.backends.lower import lower
from dpquery.errors import Fault, Refused
from dpquery.mechanisms import Noise, SystemBits
from dpquery.plan.draft import AggregateAsk, Contributions, Draft
from dpquery.plan.leading import Lead, Leading, led
from dpquery.plan.release import Ask, Bounding, CellBound, Choosing, Enforced, GroupCap, Idle, Key, ListedKeys, Mechanism, Release, RowWeights
from dpquery.plan.sameness import form
from dpquery.plan.scalar import Interval
from dpquery.privacy import Facts, bound, calibrate, enforced, lemmas, reprice, sensitivities
from dpquery.privacy.compared import compared
from dpquery.privacy.resolve import _leading
from dpquery.release import noise
from dpquery.values.exact import Exact
from dpquery.values.types import FLOAT, INTEGER, STRING, Adjacency

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
ORDERS = rp.World(Random(0)).scan("orders")
_, UID, ITEM, AMOUNT, _ = (c.column for c in ORDERS.columns)
KEYS = (("i0",), ("i1",), ("i2",))
SURE = Noise(Choosing.PERMUTE_AND_FLIP, Fraction(1, 10**9))
PRICE = Ask(Fraction(0), Fraction(1))


def release(name: str = "total", keys: tuple[tuple[str | None, ...], ...] | None = KEYS, most: bool = True, **given: object) -> Release:
    """The item with the most of an aggregate of orders, amounts in [-5, 20]."""
    limits = Contributions(**{"groups": 2, "rows": 3, "join_rows": 9, **given})  # type: ignore[arg-type]
    argument = None if name in ("count", "units") else AMOUNT
    row = Interval(Fraction(-5), Fraction(20)) if name == "total" else None
    ask = AggregateAsk("a0", f"{name}(amount)", name, argument, None, per_row=row)
    return bound(Draft(ORDERS, (Key("item", ITEM, STRING),), (), (ask,), limits, lead=Lead(most, 0, "arg_max(item, n)")), Facts({}, keys, "a list"))


def data(*rows: tuple[int, str, int]) -> Data:
    return Data({"orders": [{"oid": i, "uid": unit, "item": item, "amount": amount, "score": None} for i, (unit, item, amount) in enumerate(rows)]})


def apart(made: Release, one: Data, other: Data) -> int:
    """How far the sums of the groups move apart."""
    return max(moved(run(made, one), run(made, other), 0).spreads, default=0)


HIGH, LOW = [(1, "i0", 20)] * 3 + [(1, "i1", -5)] * 3, [(1, "i0", -5)] * 3 + [(1, "i1", 20)] * 3
SINGLE = {"count": 3, "units": 1, "distinct": 3}  # how far one sum moves


@pytest.mark.lemma("C17")
@pytest.mark.parametrize("name", ["total", *SINGLE])
def test_c17_add_remove_is_reached(name: str) -> None:
    """A unit with a sum at either end; of counts, which move one way, with rows in one group alone. More groups than any cap would leave."""
    made = release(name)
    rows = HIGH if name == "total" else [(1, "i0", amount) for amount in range(3)]
    claim = sensitivities(enforced(made), ADD)[0]
    assert made.table.bounding == GroupCap(3, Idle.COMPARED)
    assert claim.spreads == (1, apart(made, data(*rows), data())) == (1, SINGLE.get(name, (20 + 5) * 3))
    everywhere = data(*((1, item, amount) for (item,) in KEYS for amount in range(3)))
    assert moved(run(made, everywhere), run(made, data()), 0).within(claim)


@pytest.mark.lemma("C17")
@pytest.mark.parametrize("name", ["total", *SINGLE])
def test_c17_replace_one_is_reached(name: str) -> None:
    made = release(name)
    one, other = ([(1, item, amount) for amount in range(3)] for item in ("i0", "i1"))
    pair = (HIGH, LOW) if name == "total" else (one, other)
    claim = sensitivities(enforced(made), REPLACE)[0]
    assert claim.spreads == (1, apart(made, data(*pair[0]), data(*pair[1]))) == (1, 2 * SINGLE.get(name, (20 + 5) * 3))


@pytest.mark.lemma("C17")
@pytest.mark.parametrize(("low", "high"), [(0, 2), (-1, 2), (-2, 0), (-2, -1), (1, 2), (-3, 1)])
@pytest.mark.parametrize("bounding", [GroupCap(1), GroupCap(2), GroupCap(3, Idle.COMPARED), GroupCap(1, Idle.UNIT_KEY)])
@pytest.mark.parametrize("adjacency", Adjacency)
def test_c17_by_brute_force(low: int, high: int, bounding: GroupCap, adjacency: Adjacency) -> None:
    """All cells of a unit in as many of three groups as it may be in: no pair moves them further apart, and some pair reaches it."""
    claim = sensitivities(Enforced(bounding, (CellBound(low, high, led=True),), None, keyed=True, listed=3), adjacency)[0]
    vectors = [v for v in product(sorted({0, low, high}), repeat=3) if sum(1 for x in v if x) <= bounding.groups]
    others = [(0, 0, 0)] if adjacency is ADD else vectors
    found = [max(shifts) - min(shifts) for one in vectors for other in others for shifts in [[a - b for a, b in zip(one, other, strict=True)]]]
    assert (1, max(found)) == claim.spreads
    assert claim.lemma == "C17"


@pytest.mark.lemma("C17")
@pytest.mark.parametrize("adjacency", Adjacency)
def test_c17_row_weights_by_brute_force(adjacency: Adjacency) -> None:
    """Up to two rows in [-1, 2] whose weights add up to at most 2, in any of three groups."""
    claim = sensitivities(Enforced(RowWeights(2), (CellBound(-1, 2, weighted=True, led=True),), None, keyed=True, listed=3), adjacency)[0]
    rows = [(group, value) for group in range(3) for value in (-1, 0, 2)]
    vectors = {tuple(sum(v for g, v in own if g == group) for group in range(3)) for own in product(rows, repeat=2)} | {(0, 0, 0)}
    others = [(0, 0, 0)] if adjacency is ADD else sorted(vectors)
    found = [max(shifts) - min(shifts) for one in vectors for other in others for shifts in [[a - b for a, b in zip(one, other, strict=True)]]]
    assert (1, max(found) << 20) == claim.spreads


@pytest.mark.lemma("C17")
@pytest.mark.parametrize("adjacency", Adjacency)
def test_c17_unions_by_brute_force(adjacency: Adjacency) -> None:
    """Sets of values of one unit beside those of another."""
    made = release("distinct", rows=2)
    bags = [[(1, *row) for row in own] for n in range(4) for own in combinations([(f"i{i}", a) for i in range(2) for a in range(2)], n)]
    rest = [(2, "i0", 0), (2, "i2", 1)]
    found = {
        apart(made, data(*one, *more), data(*two, *more))
        for one in bags
        for two in (bags if adjacency is REPLACE else [[]])
        for more in ([], rest)
        if one != two
    }
    assert (1, max(found)) == sensitivities(enforced(made), adjacency)[0].spreads


@pytest.mark.lemma("C17")
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("most", [True, False])
def test_the_epsilon_that_is_charged_covers_every_pair(adjacency: Adjacency, most: bool) -> None:
    """By brute force over the probabilities of every group, for the pair that moves them furthest apart; and it is nearly reached."""
    made = release(most=most)
    priced = calibrate(made, PRICE, adjacency)
    (law,) = priced.noises
    assert law.mechanism is Choosing.PERMUTE_AND_FLIP
    assert priced.price.epsilon == 1 == choice_epsilon(sensitivities(enforced(made), adjacency)[0].spreads[1], law.parameter)
    sign = 1 if most else -1
    rest = [(2 + i, item, 20) for i in range(9) for item in ("i2",)] if most else [(2 + i, "i2", -5) for i in range(9)]
    pairs = [(HIGH, LOW), (LOW, HIGH)] if adjacency is REPLACE else [(HIGH, []), ([], LOW)]
    scores = [[[sign * flat(run(made, data(*own, *rest))[key][0])[0] for key in KEYS] for own in pair] for pair in pairs]
    lost = [max(abs(float(x)) for x in losses(law.mechanism, one, other, law.parameter)) for one, other in scores]
    assert max(lost) <= 1 + 1e-9


# ---- the plan ------------------------------------------------------------------------------------------------------------------------


def test_no_cap_is_needed_but_one_that_the_statement_wrote_is_kept() -> None:
    assert release().table.bounding == GroupCap(3, Idle.COMPARED)
    assert release(groups=5).table.bounding == GroupCap(3, Idle.ALL_KEYS)
    assert release(groups_given=True).table.bounding == GroupCap(2)
    once = release(groups=1, groups_given=True)
    assert (once.table.bounding, sensitivities(enforced(once), ADD)[0].spreads) == (GroupCap(1), (1, 60)), "of one group both ends are not met"
    weighed = release(weights=4)
    assert sensitivities(enforced(weighed), ADD)[0].spreads == (1, 4 * 20 << 20)


@pytest.mark.parametrize("bounding", [GroupCap(3, Idle.COMPARED), GroupCap(3), RowWeights(2)])
def test_groups_that_nobody_listed_are_not_compared(bounding: Bounding) -> None:
    with pytest.raises(AssertionError, match=r"^groups are compared by one integer each, and listed$"):
        sensitivities(Enforced(bounding, (CellBound(0, 1, led=True),), None, keyed=True), ADD)
    with pytest.raises(Fault) as caught:
        release(keys=None)
    assert (caught.value.code, caught.value.message) == ("PLAN_BROKEN", "groups are compared where their keys are listed")


def test_a_choice_says_what_is_shown() -> None:
    (one,) = release().aggregates
    assert (one.label, one.type, one.leading) == ("arg_max(item, n)", INTEGER, Leading(True, 3))
    assert one.leading is not None
    assert one.notes[0] == how(one.leading)
    assert len(one.notes) > 1, "and how rows are clamped"
    as_float = _leading(replace(one, type=FLOAT), Lead(True, 0, "arg_max(item, n)"), release().keys)
    assert as_float.type == INTEGER, "which key it is, by its number"


def test_a_key_that_is_null_takes_no_part() -> None:
    made = release(keys=(*KEYS, (None,)))
    assert isinstance(made.keys, ListedKeys)
    assert made.keys.rows == KEYS
    assert made.aggregates[0].leading == Leading(True, 3)


def test_what_is_enforced_is_derived_again_from_the_lowered_text() -> None:
    for made in (release(), release("count"), release("distinct"), release("units"), release("count", weights=2), release(groups_given=True)):
        assert lower(made, 7).enforced == enforced(made)
    wrong = release()
    with pytest.raises(ValueError, match="idle"):
        lower(replace(wrong, table=replace(wrong.table, bounding=GroupCap(2, Idle.COMPARED))), 7)


def test_the_argument_names_what_it_rests_on() -> None:
    assert {"C5", "C17"} <= {*lemmas(release())}
    assert {"C5", "C9", "C17"} <= {*lemmas(release("distinct"))}
    assert {"C7", "C17"} <= {*lemmas(release(weights=2))}


def test_most_and_least_are_two_questions() -> None:
    assert form(release()).digest != form(release(most=False)).digest
    assert form(release()).digest == form(release()).digest
    counted = replace(release(), aggregates=(replace(release().aggregates[0], leading=None),))
    assert form(release()).digest != form(counted).digest


# ---- what is chosen ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [PRICE, replace(PRICE, noise=Mechanism.LAPLACE), Ask(Fraction(1, 10**6), rho=Fraction(1, 8))])
def test_no_number_is_released(asked: Ask) -> None:
    made = release("count")
    priced = calibrate(made, asked, ADD)
    assert {one.mechanism for one in priced.noises} <= {*Choosing}
    assert reprice(enforced(made), priced, ADD) == priced.price
    for _ in range(20):
        shown = noise.add(Exact((("i1",),), ((7,),)), made, priced, SystemBits())
        assert shown.keys == KEYS
        assert sorted(shown.sums[0]) == [0, 0, 1]


@pytest.mark.parametrize(("most", "wanted"), [(True, (0, 0, 1)), (False, (-1, 0, 0))])
def test_the_group_with_the_most_or_the_least(most: bool, wanted: tuple[int, ...]) -> None:
    """Groups without rows are listed, and have 0."""
    made = release(most=most)
    sums = (("i1",), ("i2",)), ((3, 8),)
    priced = replace(calibrate(made, PRICE, ADD), noises=(SURE,))
    assert noise.add(Exact(*sums), made, priced, SystemBits()).sums == (wanted,)
    huge = noise.add(Exact(sums[0], ((2**70, 2**70 + 1),)), made, priced, SystemBits())
    assert huge.sums == (wanted,)


def test_of_no_groups_none_is_chosen() -> None:
    made = release(keys=())
    assert noise.add(Exact((), ((),)), made, calibrate(made, PRICE, ADD), SystemBits()).sums == ((),)


def test_what_is_shown_reads_as_a_column_whose_extreme_is_the_choice() -> None:
    made = release()
    one = made.aggregates[0]
    assert (one.type, one.label) == (INTEGER, "arg_max(item, n)")
    assert card(one).finish(one, [[0, 1, 0]]) == [0, 1, 0]
    assert card(one).interval(one, [[0, 1, 0]], [SURE], Fraction(95, 100)) == [None] * 3
    assert led(made) == {0: Leading(True, 3)}


@pytest.mark.parametrize("mechanism", Choosing)
@pytest.mark.parametrize("most", [True, False])
def test_the_group_that_is_shown_is_as_near_as_is_said(mechanism: Choosing, most: bool) -> None:
    """Others that all fall short by what is said, the worst there is: shown as seldom as the confidence says, of 4,000 (6 deviations off)."""
    made, law = release("count", most=most), Noise(mechanism, Fraction(5))
    one = made.aggregates[0]
    far = card(one).expected_error(one, [law], Fraction(95, 100))
    assert isinstance(far, float)
    assert leading.assured(one, [law], Fraction(95, 100)).endswith(
        f"has at most {-int(-far // 1)} {'less' if most else 'more'} than the one that has the {'most' if most else 'least'}."
    )
    priced, sign = replace(calibrate(made, PRICE, ADD), noises=(law,)), 1 if most else -1
    exact = Exact(KEYS, ((1000, 1000 - sign * (int(far) + 1), 1000 - sign * (int(far) + 1)),))
    missed = sum(1 for _ in range(4000) if noise.add(exact, made, priced, SystemBits()).sums[0][0] == 0)
    assert missed <= 4000 * 0.05 + 6 * 14


OTHERS, DRAWS = 10, 600


@pytest.mark.lemma("M6")
@pytest.mark.parametrize("mechanism", Choosing)
@pytest.mark.parametrize("most", [True, False])
def test_groups_are_chosen_between_by_the_noise_that_is_charged(mechanism: Choosing, most: bool) -> None:
    """How often others are shown that lie three scales off: by Chernoff's bound no further from the exact law than 1e-9 allows, over all four cases.

    Half the scale, or the extreme of sums with Laplace noise of half the scale, would show them a quarter as often, and seldomer.
    """
    keys = tuple((f"i{i:02}",) for i in range(OTHERS + 1))
    made, law = release("count", keys=keys, most=most), Noise(mechanism, Fraction(5))
    priced, sign, p = replace(calibrate(made, PRICE, ADD), noises=(law,)), 1 if most else -1, exp(-3)
    exact = Exact(keys, ((1000, *(1000 - sign * 15,) * OTHERS),))
    first = 1 / (1 + OTHERS * p) if mechanism is Choosing.EXPONENTIAL else (1 - (1 - p) ** (OTHERS + 1)) / ((OTHERS + 1) * p)
    seen = sum(abs(noise.add(exact, made, priced, SystemBits()).sums[0][0]) for _ in range(DRAWS)) / DRAWS
    apart = sum(a * log(a / b) for a, b in ((seen, first), (1 - seen, 1 - first)) if a)
    assert DRAWS * apart <= log(4 * 2 * 10**9)


@pytest.mark.parametrize("adjacency", Adjacency)
def test_scores_that_all_move_one_way_are_half_as_dear(adjacency: Adjacency) -> None:
    """Counts under add/remove are monotone; under replace-one, and sums of both signs, need a wider scale."""
    assert [compared(3, 3, 2, one) for one in (ADD, REPLACE)] == [3, 6]
    assert [compared(3, 5, 2, one) for one in (ADD, REPLACE)] == [5, 10]
    assert [compared(3, 5, 1, one) for one in (ADD, REPLACE)] == [3, 6]
    (law,) = calibrate(release("count"), PRICE, adjacency).noises
    assert law.parameter == (3 if adjacency is ADD else 6)


def test_a_price_in_rho_is_asked_of_the_exponential_mechanism() -> None:
    made = release("count")
    priced = calibrate(made, Ask(Fraction(1, 10**6), rho=Fraction(1, 8)), ADD)
    assert (priced.noises[0].mechanism, priced.noises[0].parameter) == (Choosing.EXPONENTIAL, Fraction(3))
    with pytest.raises(Refused):
        calibrate(made, Ask(Fraction(0), rho=Fraction(1, 8)), ADD)
