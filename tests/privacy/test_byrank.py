"""Quantiles whose bin is chosen by rank: how far scores move, what is read off choices, how often their bar holds, statements that ask for it."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
import random_plans as rp
from choice_laws import law as choice_law
from people import ORDINARY, made, opened

from dpquery.aggregates import CARDS, byrank
from dpquery.mechanisms import Noise, SystemBits, choose
from dpquery.plan.draft import AggregateAsk, Contributions, Draft
from dpquery.plan.release import Aggregate, Ask, Bins, CellBound, Choosing, Enforced, GroupCap, Mechanism
from dpquery.plan.scalar import Column, Interval
from dpquery.privacy import Facts, bound, calibrate, enforced, reprice, sensitivities
from dpquery.release import ranks
from dpquery.values.types import INTEGER, Adjacency

CARD = CARDS["quantile_by_rank"]
ROW = 2**20
C95 = Fraction(95, 100)
HALF, DECILE = Fraction(1, 2), Fraction(9, 10)
ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


def asked(high: int = 9, fraction: Fraction = HALF, discrete: bool = False) -> AggregateAsk:
    bounds = Interval(Fraction(0), Fraction(high))
    return AggregateAsk("a0", "median(x)", "quantile_by_rank", Column(0, "x", INTEGER), None, None, bounds, fractions=(fraction,), discrete=discrete)


def of(ask: AggregateAsk) -> Aggregate:
    found = CARD.plan(ask, Contributions(1, 1, 1, listed=1), None)
    parts = tuple(range(len(found.parts)))
    return Aggregate("a0", "median(x)", "quantile_by_rank", parts, found.type, found.step, found.bounds, notes=found.notes, quantile=found.quantile)


# ---- the score ---------------------------------------------------------------------------------------------------------------------------


def score(sums: Sequence[int], rank: Fraction, side: int = 0, aside: int = 0) -> list[int]:
    """By the definition: the place's distance to the ranks of a bin, in its denominator's parts."""
    ends = [[float(sum(sums[:j])), float(sum(sums[: j + 1]))] for j in range(len(sums))]
    if side:
        ends[min(0, -side)][0 if side < 0 else 1] = side * math.inf
    wanted = rank * sum(sums) + Fraction(aside, rank.denominator)
    falls = (0 if low <= wanted <= high else min(abs(wanted - Fraction(end)) for end in (low, high) if math.isfinite(end)) for low, high in ends)
    return [-int(rank.denominator * fall) for fall in falls]


def claim(rank: Fraction, most: int, groups: int, among: int | None, adjacency: Adjacency, keyed: bool = True) -> tuple[int, int, int]:
    cell = CellBound(0, most, bins=3, ranked=rank)
    found = sensitivities(Enforced(GroupCap(groups), (cell,), None, keyed=keyed, listed=among), adjacency)[0]
    assert found.lemma == "C12"
    return (found.linf, *found.spreads)


ASIDE = ((0, 0), (0, 3), (-1, -5), (-1, -1), (-1, 2), (1, 5), (1, 1), (1, -2))  # the side, and what is added to the place in b-ths


@pytest.mark.parametrize("rank", [Fraction(0), HALF, DECILE, Fraction(1, 3), Fraction(1)])
@pytest.mark.parametrize(("side", "aside"), ASIDE)
def test_scores_are_distances_of_ranks(rank: Fraction, side: int, aside: int) -> None:
    for sums in product(range(4), repeat=3):
        expected = [*score(sums, rank, side, aside), *score(sums[::-1], rank, side, aside)]
        assert ranks.scores([*sums, *sums[::-1]], 3, ranks.Aim(rank, side, aside)) == expected


@pytest.mark.lemma("C12")
@pytest.mark.parametrize("rank", [Fraction(0), HALF, DECILE, Fraction(1, 3), Fraction(1)])
@pytest.mark.parametrize("adjacency", Adjacency)
def test_c12_one_group_by_brute_force(rank: Fraction, adjacency: Adjacency) -> None:
    """Others' rows and a unit's, of weight 2 at most, in three bins: no score moves further, and no two move further apart, from no side."""
    linf, _, apart = claim(rank, 2, 1, 1, adjacency, keyed=False)
    cells = [v for v in product(range(3), repeat=3) if sum(v) <= 2]
    for (side, aside), others in product(ASIDE[::2], product(range(4), repeat=3)):
        totals = [t for cell in cells for t in map(operator.add, others, cell)]
        scores = ranks.scores(totals, 3, ranks.Aim(rank, side, aside))
        moved = np.array(scores).reshape(-1, 3)
        shifts = moved - moved[:1] if adjacency is ADD else (moved[:, None] - moved[None]).reshape(-1, 3)
        assert np.abs(shifts).max() <= linf
        assert (shifts.max(axis=1) - shifts.min(axis=1)).max() <= apart


def test_c12_add_remove_is_reached() -> None:
    """All rows of a unit in one bin: those below the rank move one way, those above it as far the other way."""
    for rank, others, cell in ((HALF, (0, 0, 2), (0, 2, 0)), (DECILE, (7, 11, 0), (0, 0, 2)), (Fraction(1, 4), (0, 2, 4), (2, 0, 0))):
        linf, groups, apart = claim(rank, 2, 1, 1, ADD, keyed=False)
        one, two = score([a + b for a, b in zip(others, cell, strict=True)], rank), score(others, rank)
        shifts = [a - b for a, b in zip(one, two, strict=True)]
        assert (groups, max(map(abs, shifts)), max(shifts) - min(shifts)) == (1, linf, apart)


@pytest.mark.lemma("C12")
def test_c12_replace_one_is_reached() -> None:
    """All rows of a unit from one end to the other: the scores at one end rise, those at the other fall."""
    for rank in (HALF, DECILE, Fraction(1, 4)):
        linf, groups, apart = claim(rank, 2, 1, 1, REPLACE, keyed=False)
        a, b = rank.numerator, rank.denominator
        others = (10 * a, 0, 10 * (b - a))
        one, two = score((others[0] + 2, 0, others[2]), rank), score((others[0], 0, others[2] + 2), rank)
        shifts = [x - y for x, y in zip(one, two, strict=True)]
        assert (groups, linf, apart) == (1, 2 * b, 4 * b)
        assert max(shifts) - min(shifts) <= apart
        wide = (10 * a + 1, 0, 0, 10 * (b - a) + 1)
        ends = [score([x + y for x, y in zip(wide, v, strict=True)], rank) for v in ((2, 0, 0, 0), (0, 0, 0, 2))]
        assert max(x - y for x, y in zip(*ends, strict=True)) <= linf
    assert _reached(HALF, 2) == claim(HALF, 2, 1, 1, REPLACE, keyed=False)[2]


def _reached(rank: Fraction, most: int) -> int:
    """The furthest apart that the unit moves scores, over what others have in four bins."""
    units = [(most, 0, 0, 0), (0, 0, 0, most)]
    found = 0
    for others in product(range(0, 9, 2), repeat=4):
        one, two = (score([a + b for a, b in zip(others, unit, strict=True)], rank) for unit in units)
        shifts = [a - b for a, b in zip(one, two, strict=True)]
        found = max(found, max(shifts) - min(shifts))
    return found


@pytest.mark.lemma("C12")
def test_c12_groups_by_brute_force() -> None:
    """Cells of three bins in at most one of three groups, replaced: sums over groups of rising, superadditive functions.

    Of two bins only one's score can move, so that they cannot tell one group from two.
    """
    cells = [v for v in product(range(3), repeat=3) if 0 < sum(v) <= 2]
    vectors = [tuple(v if i == at else (0, 0, 0) for i in range(3)) for at in range(3) for v in cells]
    for rank in (HALF, DECILE):
        for among in (None, 3, 1):
            _, groups, apart = claim(rank, 2, 1, among, REPLACE)
            reached = 0
            for base in ((4, 4, 4), (8, 10, 0), (1, 9, 1), (0, 0, 0)):
                for one, two in product(vectors, repeat=2):
                    if among == 1 and (any(map(any, one[1:])) or any(map(any, two[1:]))):
                        continue
                    spreads = [_apart(base, a, b, rank) for a, b in zip(one, two, strict=True)]
                    for f in (lambda x: x, lambda x: x * x):
                        assert sum(map(f, spreads)) <= groups * f(apart)
                    reached = max(reached, sum(spreads))
            if rank == DECILE and among != 1:
                assert reached == 72 > apart, "two groups of a unit's are needed, the one that it leaves and the one that it enters"


def _apart(base: Sequence[int], one: Sequence[int], two: Sequence[int], rank: Fraction) -> int:
    scores = (score([a + b for a, b in zip(base, cell, strict=True)], rank) for cell in (one, two))
    shifts = [a - b for a, b in zip(*scores, strict=True)]
    return max(shifts) - min(shifts)


# ---- the card ----------------------------------------------------------------------------------------------------------------------------


def test_it_is_three_parts_of_the_narrowest_bins() -> None:
    """What is shown, and the two ends of its error bar."""
    found = CARD.plan(asked(99_999, DECILE), Contributions(1, 3, 1, listed=1), None)
    shown = Bins(3, 25, 4000, rank=DECILE)
    doubt = Fraction(1, 20)
    assert [part.cell for part in found.parts] == [shown, replace(shown, side=-1, doubt=doubt), replace(shown, side=1, doubt=doubt)]
    assert found.quantile is not None
    assert (found.quantile.widths, found.quantile.doubt) == ((25,), doubt)


def ones(count: int, *places: int) -> list[int]:
    """The choices of so many groups, of so many bins each."""
    return [int(i == place) for place in places for i in range(count)]


def test_the_middle_of_the_chosen_bin_is_shown() -> None:
    drawn = [ones(10, 2, 7), ones(10, 0, 0), ones(10, 9, 9)]
    assert CARD.finish(of(asked()), drawn) == [2.0, 7.0]
    wide = of(asked(40_950))
    assert CARD.finish(wide, [ones(4096, 4095), ones(4096, 0), ones(4096, 4095)]) == [40_950.0], "of ten units the bounds leave one"
    assert CARD.finish(wide, [ones(4096, 0)] * 3) == [4.5]
    assert CARD.finish(of(asked(discrete=True)), drawn) == [2, 7]
    assert {type(v) for v in CARD.finish(of(asked(discrete=True)), drawn)} == {int}
    assert CARD.finish(of(asked()), [[], [], []]) == []


LAW = (Noise(Choosing.EXPONENTIAL, Fraction(1)),) * 3


def test_the_chosen_ends_are_the_error_bar() -> None:
    drawn = [ones(10, 2, 7, 5), ones(10, 1, 8, 6), ones(10, 9, 9, 3)]
    assert CARD.interval(of(asked()), drawn, LAW, C95) == [(1.0, 9.0), (8.0, 9.0), (3.0, 6.0)], "ends that cross change places"
    assert CARD.finish(of(asked()), drawn) == [2.0, 8.0, 5.0], "what is shown is cut to the ends"
    assert CARD.interval(of(asked()), drawn, LAW, Fraction(1, 2)) == CARD.interval(of(asked()), drawn, LAW, C95)
    surer = C95 + Fraction(1, 10**9)
    assert CARD.interval(of(asked()), drawn, LAW, surer) == [(0.0, 9.0)] * 3, "no end was chosen for so high a confidence"
    wide = of(asked(40_950))
    assert CARD.interval(wide, [ones(4096, 1), ones(4096, 1), ones(4096, 4095)], LAW, C95) == [(10.0, 40_950.0)]
    assert CARD.interval(of(asked(discrete=True)), drawn, LAW, C95)[0] == (1, 9)


def test_a_list_rises_and_each_bar_holds_its_value() -> None:
    """In the order in which the fractions are asked for."""
    several = of(replace(asked(), fractions=(DECILE, HALF), listed=True))
    drawn = [ones(10, 3), ones(10, 2), ones(10, 4), ones(10, 6), ones(10, 5), ones(10, 9)]
    assert CARD.finish(several, drawn) == [[6.0, 3.0]]
    assert CARD.interval(several, drawn, LAW * 2, C95) == [[(2.0, 6.0), (3.0, 9.0)]]


@pytest.mark.parametrize("mechanism", Choosing)
@pytest.mark.parametrize("rank", [Fraction(0), HALF, Fraction(3, 4), Fraction(1)])
def test_the_bar_holds_the_quantile_of_every_data_set(mechanism: Choosing, rank: Fraction) -> None:
    """Whatever rows lie in four bins, few or many: by the exact laws of the two choices. No chance is left."""
    doubt, worst = Fraction(1, 5), 0.0
    cell = Bins(1, 1, 4, rank=rank, doubt=doubt)
    law = Noise(mechanism, Fraction(2 * ROW))
    lower, upper = (ranks.aim(replace(cell, side=side), law) for side in (-1, 1))
    assert lower is not None
    assert upper is not None
    for counts in (*product((0, 1, 4), repeat=4), (9, 0, 0, 9), (20, 0, 0, 0), (0, 9, 9, 0), (30, 0, 0, 10), (10, 0, 0, 30)):
        values = [bin for bin, n in enumerate(counts) for _ in range(n)]
        if not values:
            continue
        place = rank * (len(values) - 1)
        low, high = values[math.floor(place)], values[min(math.floor(place) + 1, len(values) - 1)]
        x = low if place == math.floor(place) else (low + high) / 2  # between the two, wherever
        sums = [n * ROW for n in counts]
        early, late = (np.array([*map(float, choice_law(mechanism, ranks.scores(sums, 4, one), law.parameter))]) for one in (lower, upper))
        missed = 1 - early[np.arange(4) <= x].sum() * late[np.arange(4) >= x].sum()
        worst = max(worst, missed)
        assert missed <= doubt, counts
    assert rank in (0, 1) or worst > float(doubt) / 9, "and it is not held by a wide margin"


@pytest.mark.parametrize("mechanism", Choosing)
@pytest.mark.parametrize("fraction", [HALF, DECILE])
def test_it_is_as_far_off_as_expected(mechanism: Choosing, fraction: Fraction) -> None:
    """Of 1,000 values spread evenly over as many bins, 1,000 times: means of distances, whose deviation is 1/30 of them; 6 of these are 0.2."""
    one = of(asked(999, fraction))
    law = Noise(mechanism, Fraction(3 * ROW * fraction.denominator))
    ((off, half),) = byrank.reach(one, [law] * 3)
    drawn = []
    for part in CARD.plan(asked(999, fraction), Contributions(1, 1, 1, listed=1), None).parts:
        sought = ranks.aim(part.cell, law)  # type: ignore[arg-type]
        assert sought is not None
        drawn.append(choose(law, ranks.scores([ROW] * 1000, 1000, sought) * 1000, 1000, SystemBits()))
    shown, bars = np.array(CARD.finish(one, drawn)), np.array(CARD.interval(one, drawn, [law] * 3, C95))
    mean = np.abs(shown - float(fraction) * 999).mean()
    assert off / 2 <= mean <= off * 1.2
    expected = CARD.expected_error(one, [law] * 3, C95)
    assert not isinstance(expected, float)
    assert expected["n=1000"] == pytest.approx(half + 0.5, abs=0.1)
    assert np.median(bars[:, 1] - bars[:, 0]) / 2 == pytest.approx(expected["n=1000"], rel=0.2)


# ---- the price ---------------------------------------------------------------------------------------------------------------------------

MICRO = Fraction(1, 10**6)
BY_EPSILON, BY_RHO = Choosing.PERMUTE_AND_FLIP, Choosing.EXPONENTIAL


@pytest.mark.lemma("P1", "P6")
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (Ask(Fraction(0), Fraction(1)), BY_EPSILON),
        (Ask(MICRO, Fraction(1)), BY_EPSILON),
        (Ask(MICRO, Fraction(1), noise=Mechanism.LAPLACE), BY_EPSILON),
        (Ask(MICRO, Fraction(1), noise=Mechanism.GAUSSIAN), BY_RHO),
        (Ask(MICRO, None, Fraction(1, 50)), BY_RHO),
        (Ask(MICRO, None, Fraction(2)), BY_RHO),
        (Ask(MICRO, None, Fraction(2), noise=Mechanism.LAPLACE), BY_EPSILON),
    ],
)
def test_what_is_priced_in_rho_is_drawn_by_the_exponential_mechanism(ask: Ask, expected: Choosing, adjacency: Adjacency) -> None:
    """And by permute and flip what is priced in epsilon; each spends what was asked, and no more."""
    orders = rp.World(Random(0)).scan("orders")
    bins = replace(asked(40), argument=orders.columns[3].column)
    made = bound(Draft(orders, (), (), (bins,), Contributions(1, 3, 1000)), Facts({}))
    found = calibrate(made, ask, adjacency)
    assert made.ranked == (0, 1, 2)
    assert [noise.mechanism for noise in found.noises] == [expected] * 3
    assert found.price == reprice(enforced(made), found, adjacency)
    assert found.price.epsilon == (ask.epsilon or found.price.epsilon if expected is BY_EPSILON else None)
    assert ask.rho is None or ask.rho * Fraction(999, 1000) <= found.price.rho <= ask.rho


# ---- statements --------------------------------------------------------------------------------------------------------------------------

CHOSEN = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(noise = EXPONENTIAL)"


def test_a_statement_names_it(tmp_path: Path) -> None:
    with opened(made(tmp_path)) as (session,):
        exact = session.query("SELECT median(age) AS m, quantile_disc(age, 0.9) AS q, count(*) AS n FROM people")
        chosen = session.query(f"{CHOSEN} median(age) AS m, quantile_disc(age, 0.9) AS q, count(*) AS n FROM people")
        groups = session.query(f"{CHOSEN} menu, median(age) AS m FROM people GROUP BY menu")
    (one,), (two,) = exact.table.to_pylist(), chosen.table.to_pylist()
    assert two["n"] == one["n"]
    assert abs(two["m"] - one["m"]) <= 1
    assert abs(two["q"] - one["q"]) <= 1
    for name, bars in zip("mq", chosen.intervals, strict=False):
        assert bars is not None
        assert bars[0][0] <= one[name] <= bars[0][1]  # type: ignore[index]
    assert chosen.types == exact.types
    assert not any("as noisy as" in said for said in chosen.warnings)
    assert groups.table.num_rows == 4


def test_explain_says_how_and_what_it_costs(tmp_path: Path) -> None:
    with opened(made(tmp_path, terms=ORDINARY)) as (session,):
        chosen = session.explain(f"{CHOSEN} median(age) FROM people", epsilon=1, delta=0).as_dict()
        tree = session.explain("SELECT median(age) FROM people", epsilon=1, delta=0).as_dict()
        nine = session.explain(f"{CHOSEN} quantile_cont(age, 0.9) FROM people", epsilon=1, delta=0).as_dict()
    (row,), (other,) = chosen["releases"], tree["releases"]
    assert (row["noise"], row["lemma"], row["scale"]) == ("permute_and_flip", "C12", 3.0)
    assert nine["releases"][0]["scale"] == 5.4, "twice 9 / 10 of a row, for a third of the price"
    assert chosen["price"]["charged_epsilon"] == tree["price"]["charged_epsilon"] == "1"
    assert {"C12", "C10"} & {*chosen["lemmas"]} == {"C12"}
    assert other["noise"] == "laplace", "of so few values the tree needs but two levels"


def test_what_is_not_chosen_has_noise_as_ever(tmp_path: Path) -> None:
    with opened(made(tmp_path, terms=ORDINARY)) as (session,):
        said = session.explain(f"{CHOSEN} count(*), median(age), mode(menu) FROM people", epsilon=1, delta=0).as_dict()["releases"]
    assert [row["noise"] for row in said] == ["laplace", "permute_and_flip", "permute_and_flip"]


def test_scores_cannot_be_released_with_too_little_noise() -> None:
    """Should noise be added to scores, it is priced by how far all of them move: no less than a choice."""
    cell = CellBound(0, 6, bins=3, ranked=HALF)
    (s,) = sensitivities(Enforced(GroupCap(1), (cell,), None, keyed=False), ADD)
    assert (s.linf, s.l1, s.l2_squared) == (6, 18, 3 * 36)
    assert replace(s, spreads=(0, 0)).moves == ((3, 6),)
    assert Mechanism.LAPLACE not in {*Choosing}
