"""Quantiles whose bin is chosen by rank: how far scores move, what is read off a choice, how far off it is, and statements that ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
import random_plans as rp
from people import ORDINARY, made, opened

from dpquery.aggregates import CARDS
from dpquery.mechanisms import Noise, SystemBits, choose
from dpquery.plan.draft import AggregateAsk, Contributions, Draft
from dpquery.plan.release import Aggregate, Ask, Bins, CellBound, Choosing, Enforced, GroupCap, Mechanism
from dpquery.plan.scalar import Column, Interval
from dpquery.privacy import Facts, bound, calibrate, enforced, reprice, sensitivities
from dpquery.release import noise
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
    return Aggregate("a0", "median(x)", "quantile_by_rank", (0,), found.type, found.step, found.bounds, notes=found.notes, quantile=found.quantile)


# ---- the score ---------------------------------------------------------------------------------------------------------------------------


def score(sums: Sequence[int], rank: Fraction) -> list[int]:
    """By the definition: the rank's distance to the ranks of a bin, in its denominator's parts."""
    ends = [(sum(sums[:j]), sum(sums[: j + 1])) for j in range(len(sums))]
    wanted = rank * sum(sums)
    return [-int(rank.denominator * (0 if low <= wanted <= high else min(abs(wanted - low), abs(wanted - high)))) for low, high in ends]


def claim(rank: Fraction, most: int, groups: int, among: int | None, adjacency: Adjacency, keyed: bool = True) -> tuple[int, int, int]:
    cell = CellBound(0, most, bins=3, ranked=rank)
    found = sensitivities(Enforced(GroupCap(groups), (cell,), None, keyed=keyed, listed=among), adjacency)[0]
    assert found.lemma == "C12"
    return (found.linf, *found.spreads)


@pytest.mark.parametrize("rank", [Fraction(0), HALF, DECILE, Fraction(1, 3), Fraction(1)])
def test_scores_are_distances_of_ranks(rank: Fraction) -> None:
    for sums in product(range(4), repeat=3):
        assert noise._scores([*sums, *sums[::-1]], 3, rank) == [*score(sums, rank), *score(sums[::-1], rank)]


@pytest.mark.lemma("C12")
@pytest.mark.parametrize("rank", [Fraction(0), HALF, DECILE, Fraction(1, 3), Fraction(1)])
@pytest.mark.parametrize("adjacency", Adjacency)
def test_c12_one_group_by_brute_force(rank: Fraction, adjacency: Adjacency) -> None:
    """Others' rows and a unit's, of weight 2 at most, in three bins: no score moves further, and no two move further apart."""
    linf, _, apart = claim(rank, 2, 1, 1, adjacency, keyed=False)
    cells = [v for v in product(range(3), repeat=3) if sum(v) <= 2]
    for others in product(range(4), repeat=3):
        moved = [score([a + b for a, b in zip(others, cell, strict=True)], rank) for cell in cells]
        for one, two in product(moved, [moved[0]] if adjacency is ADD else moved):
            shifts = [a - b for a, b in zip(one, two, strict=True)]
            assert max(map(abs, shifts)) <= linf
            assert max(shifts) - min(shifts) <= apart


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


def test_it_is_one_part_of_the_narrowest_bins() -> None:
    found = CARD.plan(asked(99_999, DECILE), Contributions(1, 3, 1, listed=1), None)
    (part,) = found.parts
    assert part.cell == Bins(3, 25, 4000, rank=DECILE)
    assert found.quantile is not None
    assert found.quantile.widths == (25,)
    assert any("no error bar" in note for note in found.notes)


def test_the_middle_of_the_chosen_bin_is_shown() -> None:
    ones = [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert CARD.finish(of(asked()), [ones + ones[::-1]]) == [2.0, 7.0]
    wide = of(asked(40_950))
    assert CARD.finish(wide, [[0] * 4095 + [1]]) == [40_950.0], "of ten units the bounds leave one"
    assert CARD.finish(wide, [[1] + [0] * 4095]) == [4.5]
    assert CARD.finish(of(asked(discrete=True)), [ones]) == [2]
    assert {type(v) for v in CARD.finish(of(asked(discrete=True)), [ones])} == {int}
    assert CARD.finish(of(asked()), [[]]) == []
    assert CARD.interval(of(asked()), [ones + ones], [Noise(Choosing.EXPONENTIAL, Fraction(1))], C95) == [None, None]


@pytest.mark.parametrize("mechanism", Choosing)
@pytest.mark.parametrize("fraction", [HALF, DECILE])
def test_it_is_as_far_off_as_expected(mechanism: Choosing, fraction: Fraction) -> None:
    """Of 1,000 values spread evenly over as many bins, 2,000 times (6 deviations of a proportion of 0.05 are 0.03)."""
    one = of(asked(999, fraction))
    law = Noise(mechanism, Fraction(3 * ROW * fraction.denominator))
    expected = CARD.expected_error(one, [law], C95)
    assert not isinstance(expected, float)
    scores = noise._scores([ROW] * 1000, 1000, fraction)
    shown = [float(str(v)) for _ in range(20) for v in CARD.finish(one, [choose(law, scores * 100, 1000, SystemBits())])]
    off = np.abs(np.array(shown) - float(fraction) * 999)
    assert (off > expected["n=1000"] + 1).mean() <= 0.05 + 0.03
    assert (off > expected["n=1000"] / 3).mean() > 0.05


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
    made = bound(Draft(orders, (), (), (bins,), Contributions(1, 3, 1000)), Facts({}), adjacency)
    found = calibrate(made, ask, adjacency)
    assert made.ranked == (0,)
    assert [noise.mechanism for noise in found.noises] == [expected]
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
    assert chosen.intervals[:2] == (None, None)
    assert chosen.types == exact.types
    assert not any("as noisy as" in said for said in chosen.warnings)
    assert any("no error bar" in note for note in chosen.receipt["releases"][0]["notes"])
    assert groups.table.num_rows == 4


def test_explain_says_how_and_what_it_costs(tmp_path: Path) -> None:
    with opened(made(tmp_path, terms=ORDINARY)) as (session,):
        chosen = session.explain(f"{CHOSEN} median(age) FROM people", epsilon=1, delta=0).as_dict()
        tree = session.explain("SELECT median(age) FROM people", epsilon=1, delta=0).as_dict()
        nine = session.explain(f"{CHOSEN} quantile_cont(age, 0.9) FROM people", epsilon=1, delta=0).as_dict()
    (row,), (other,) = chosen["releases"], tree["releases"]
    assert (row["noise"], row["lemma"], row["scale"]) == ("permute_and_flip", "C12", 1.0)
    assert nine["releases"][0]["scale"] == 1.8, "twice 9 / 10 of a row"
    assert chosen["price"]["charged_epsilon"] == tree["price"]["charged_epsilon"] == "1"
    assert {"C12", "C10"} & {*chosen["lemmas"]} == {"C12"}
    assert all(row["expected_error"][n] < other["expected_error"][n] / 2 for n in ("n=100", "n=1000"))


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
