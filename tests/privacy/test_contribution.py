"""C-lemmas: neighbours stay within the claim, and an adversarial unit reaches it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from random import Random

import pytest
import random_plans as rp
from interpreter import Data, run
from neighbours import flat, moved, sample, unit_cells

from dpquery.errors import Position
from dpquery.mechanisms import Noise
from dpquery.plan.draft import AggregateAsk, Contributions, Draft
from dpquery.plan.release import (
    Additive,
    Ask,
    Bounding,
    CellBound,
    Clamp,
    Element,
    Elements,
    Enforced,
    GroupCap,
    HeavyMean,
    Idle,
    Key,
    Mechanism,
    One,
    Part,
    Present,
    Product,
    Release,
    RowWeights,
    Units,
)
from dpquery.plan.scalar import Interval
from dpquery.privacy import Facts, bound, calibrate, enforced, reprice, sensitivities
from dpquery.privacy.contribution import Sensitivity, cell_bound, groups_of_a_unit, ranked
from dpquery.privacy.cost import selection_delta
from dpquery.values.types import STRING, Adjacency

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
HERE = Position(1, 1)


@pytest.mark.lemma("C1", "C2", "L10", "L11")
@pytest.mark.parametrize("seed", range(150))
def test_c1_c2_cells_and_groups_stay_within_their_bounds(seed: int) -> None:
    s = sample(seed)
    limits = enforced(s.release)
    cells = unit_cells(s.release, s.data)
    match limits.bounding:
        case GroupCap(groups=groups):
            found = [(flat(value), cell) for values in cells.values() for value, cell in zip(values, limits.cells, strict=True)]
            assert all(value == {0: 0} or cell.low <= sum(value.values()) <= cell.high for value, cell in found)
            assert all(min(value) >= 0 and max(value) < cell.bins and min(value.values()) > 0 for value, cell in found if cell.bins and value)
            assert all(sum(1 for owner, _ in cells if owner == unit) <= groups for unit in s.units)
        case RowWeights(rows=most):
            for unit, (part, cell) in product(s.units, enumerate(limits.cells)):
                total = sum(abs(values[part]) for (owner, _), values in cells.items() if owner == unit)
                assert total <= (most << 20) * max(abs(cell.low), abs(cell.high))


# ---- tightness: adversarial units ----------------------------------------------------------------------------------------------------

WORLD = rp.World(Random(0))
ORDERS = WORLD.scan("orders")
_, _, ITEM, AMOUNT, _ = (c.column for c in ORDERS.columns)
KEY = Key("item", ITEM, STRING)


def ask(card: str, **more: object) -> AggregateAsk:
    given = {"argument": AMOUNT if card in ("total", "mean", "quantile") else None, "where": None, "position": HERE, **more}
    return AggregateAsk("a0", f"{card}(amount)", card, **given)  # type: ignore[arg-type]


def bounds(low: int, high: int) -> Interval:
    return Interval(Fraction(low), Fraction(high))


def release(one: AggregateAsk, groups: int = 2, rows: int = 3, keys: int | None = None, *, keyed: bool = True, weights: int | None = None) -> Release:
    """orders GROUP BY item under the given limits; `keys`: that many listed keys."""
    given = Contributions(groups, rows, 1000, weights)
    found = None if keys is None else tuple((f"i{i}",) for i in range(keys))
    plan = Draft(ORDERS, (KEY,) if keyed else (), (), (one,), given)
    return bound(plan, Facts({}, found, "a list"))


def orders(unit: int, *rows: tuple[str, int | None]) -> list[dict[str, object]]:
    return [{"oid": 100 * unit + i, "uid": unit, "item": item, "amount": amount, "score": None} for i, (item, amount) in enumerate(rows)]


def data(*bags: list[dict[str, object]]) -> Data:
    return Data({"orders": [row for bag in bags for row in bag]})


def reached(made: Release, one: Data, other: Data, adjacency: Adjacency, part: int = 0) -> set[str]:
    """Which norms of the claim the pair reaches; more is a failure."""
    claim = sensitivities(enforced(made), adjacency)[part]
    found = moved(run(made, one), run(made, other), part)
    assert found.within(claim)
    return {name for name in ("l0", "linf", "l1", "l2_squared") if getattr(found, name) == getattr(claim, name)}


ALL = {"l0", "linf", "l1", "l2_squared"}
MANY = [(f"i{i}", a) for i in range(5) for a in [20] * 9]  # nine rows in each of five groups


@pytest.mark.parametrize(
    "one",
    [
        ask("count"),
        ask("count", per_group=bounds(1, 5)),
        ask("units"),
        ask("total"),
        ask("total", per_group=bounds(5, 40)),
        ask("total", per_row=bounds(3, 10)),
        ask("mean"),
    ],
    ids=lambda a: f"{a.card} {a.per_group or a.per_row or ''}",
)
@pytest.mark.parametrize("keys", [None, 9])
def test_c6_add_remove_is_reached(one: AggregateAsk, keys: int | None) -> None:
    """A unit with many large rows in many groups moves the full claim; so it does in AVG's count."""
    made = release(one, keys=keys)
    for part in made.aggregates[0].parts:
        assert reached(made, data(orders(1, *MANY)), data(), ADD, part) == ALL


@pytest.mark.parametrize("keys", [None, 9])
def test_c9_values_of_one_unit_alone_are_reached(keys: int | None) -> None:
    """Many values in many groups, none of them another unit's; for replace-one other values in other groups."""
    made = release(ask("distinct", argument=AMOUNT), keys=keys)
    part = len(made.table.parts) - 1
    mine, far = (orders(1, *((f"i{i}", a) for i in own for a in range(5))) for own in (range(3), range(4, 7)))
    others = orders(2, ("i0", 17), ("i1", 18))
    assert reached(made, data(mine, others), data(others), ADD, part) == ALL
    found = [reached(made, data(mine, others), data(other, others), REPLACE, part) for other in (far, [])]
    assert "l1" in set().union(*found)
    assert {s.lemma for s in sensitivities(enforced(made), ADD)} >= {"C9"}


def test_sets_of_values_are_not_weighed_and_select_no_groups() -> None:
    with pytest.raises(AssertionError, match=r"^a set of values has no weights$"):
        cell_bound(Part(Element(AMOUNT), Additive(1)))
    bounds = Enforced(GroupCap(1), (CellBound(0, 1, united=True),), 0, keyed=True)
    with pytest.raises(AssertionError, match="distinct units"):
        selection_delta(bounds, (Noise(Mechanism.LAPLACE, Fraction(1)),), 9)


def test_c9_values_that_others_have_move_nothing() -> None:
    """The count is of a union: what two units bring counts once, and stays when one of them goes."""
    made = release(ask("distinct", argument=AMOUNT), keyed=False)
    same = [orders(unit, ("i0", 3), ("i1", 3), ("i1", 4)) for unit in (1, 2)]
    assert run(made, data(*same)) == run(made, data(same[0])) == {(): (2,)}


@pytest.mark.lemma("C9")
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("keys", [None, 3])
def test_c9_unions_by_brute_force(adjacency: Adjacency, keys: int | None) -> None:
    """Many pairs of small data sets of two units: none is beyond the claim."""
    made = release(ask("distinct", argument=AMOUNT), groups=2, rows=2, keys=keys)
    part = len(made.table.parts) - 1
    bags = [orders(1, *own) for n in range(5) for own in combinations([(f"i{i}", a) for i in range(3) for a in range(2)], n)]
    other = orders(2, ("i0", 0), ("i2", 1))
    pairs = [(one, []) for one in bags] if adjacency is ADD else [(one, two) for one in bags[::2] for two in bags[::3]]
    found = [reached(made, data(one, rest), data(two, rest), adjacency, part) for one, two in pairs for rest in ([], other)]
    assert adjacency is REPLACE or "l1" in set().union(*found)


def test_c1_group_cap_is_reached() -> None:
    made = release(ask("units"), groups=3)
    assert len(run(made, data(orders(1, *MANY)))) == 3 == groups_of_a_unit(enforced(made))


def test_c2_cells_reach_their_bounds() -> None:
    for one in (ask("count"), ask("total"), ask("mean"), ask("units"), ask("total", per_group=bounds(-3, 8))):
        made = release(one, keyed=False)
        cell = cell_bound(made.table.parts[made.aggregates[0].parts[0]])
        high = run(made, data(orders(1, *[("i", 20)] * 9)))[()][0]
        low = run(made, data(orders(1, *[("i", -5)] * 9)))[()][0]
        assert high == cell.high
        assert low == (cell.low if one.card in ("total", "mean") else cell.high)


def test_c2_a_heavy_unit_keeps_its_mean() -> None:
    """Nine rows of mean 5 count as three rows of mean 5: the half units sum to 3 * (2 * 5 - 15) = -15."""
    made = release(ask("mean"), keyed=False)
    assert run(made, data(orders(1, *[("i", 0), ("i", 5), ("i", 10)] * 3)))[()] == (-15, 3)
    assert run(made, data(orders(1, ("i", 0), ("i", 5), ("i", 10), ("i", 6))))[()] == (-13, 3)  # -18 * 3 / 4, towards zero


@pytest.mark.lemma("C2")
def test_c2_the_interval_of_each_kind_of_cell() -> None:
    rows = Units(AMOUNT, Fraction(1), -3, 8)
    assert cell_bound(Part(rows, Clamp(-9, 24))) == CellBound(-9, 24)
    assert cell_bound(Part(One(), Present())) == CellBound(0, 1)
    assert cell_bound(Part(Units(AMOUNT, Fraction(1), -3, 8, centred=True), HeavyMean(3, 11))) == CellBound(-33, 33)
    assert cell_bound(Part(One(), Additive(1))) == CellBound(0, 1, weighted=True)
    assert cell_bound(Part(rows, Additive(8))) == CellBound(-3, 8, weighted=True)
    assert cell_bound(Part(Units(AMOUNT, Fraction(1), -3, 8, centred=True), Additive(11))) == CellBound(-11, 11, weighted=True)
    assert cell_bound(Part(Product(rows, rows, 60), Additive(1))) == CellBound(-60, 121 - 60, weighted=True)
    assert cell_bound(Part(Product(rows, Units(AMOUNT, Fraction(1), 0, 5), 7), Additive(1))) == CellBound(-55 - 7, 55 - 7, weighted=True)
    assert cell_bound(Part(Element(AMOUNT), Elements(4))) == CellBound(0, 4, united=True)


@pytest.mark.parametrize("one", [ask("count"), ask("total"), ask("mean"), ask("total", per_group=bounds(-7, -2))], ids=lambda a: a.card)
def test_c4_one_group_is_reached(one: AggregateAsk) -> None:
    """Add/remove: the largest cell. Replace-one: from the lowest cell to the highest, or from no counted row where 0 lies outside the bounds."""
    made = release(one, keyed=False)
    high, low = orders(1, *[("i", 20)] * 9), orders(1, *[("i", -5)] * 9)
    empty = orders(1, ("i", None)) if one.card != "count" else []
    far = low if one.per_group else high
    assert "l1" in reached(made, data(far), data(), ADD)
    assert "l1" in reached(made, data(far), data(empty if one.card == "count" or one.per_group else low), REPLACE)


def test_c5_all_listed_groups_are_reached() -> None:
    """Two listed keys under a cap of 2: at most two coordinates move, for replace-one too."""
    made = release(ask("total"), groups=2, keys=2)
    assert made.table.bounding == GroupCap(2, Idle.ALL_KEYS)
    high, low = orders(1, *MANY), orders(1, *[(item, -5) for item, _ in MANY])
    assert reached(made, data(high), data(), ADD) == ALL
    assert reached(made, data(high), data(low), REPLACE) == ALL


def test_c6_replace_one_is_reached() -> None:
    """Signed sums reach Linf and L2 in the same groups, L0 and L1 in other groups; counts reach all but Linf's square there."""
    signed = release(ask("total", per_row=bounds(-20, 20)), keys=9)
    high, low = orders(1, *MANY[:18]), orders(1, *[(item, -20) for item, _ in MANY[:18]])
    elsewhere = orders(1, *[(f"i{i}", 20) for i in (5, 6) for _ in range(9)])
    assert reached(signed, data(high), data(low), REPLACE) == {"linf", "l1", "l2_squared"}
    assert reached(signed, data(high), data(elsewhere), REPLACE) == {"l0", "l1"}
    count = release(ask("count"), keys=9)
    assert reached(count, data(high), data(elsewhere), REPLACE) == ALL


def test_c6_few_listed_groups_are_reached() -> None:
    """Three listed groups under a cap of 2: a count moves in three, not in four. One listed group under a key that depends on the unit: in one."""
    one, other = orders(1, *[("i0", 1)] * 3), orders(1, *[(f"i{i}", 1) for i in (1, 2) for _ in range(3)])
    assert reached(release(ask("count"), keys=3), data(one), data(other), REPLACE) == ALL
    signed = sensitivities(Enforced(GroupCap(1, Idle.UNIT_KEY), (CellBound(-5, 20),), None, keyed=True, listed=1), REPLACE)[0]
    assert (signed.l0, signed.l1, signed.l2_squared, signed.moves) == (1, 25, 625, ((1, 25),))


def test_c6_a_cell_appears_within_a_group() -> None:
    """SUM in [5, 40]: the unit stays in its group and its cell goes from absent (NULL) to 40, further than 40 - 5 (A18)."""
    made = release(ask("total", per_group=bounds(5, 40)), groups=1, keys=9)
    one, other = orders(1, *[("i1", 20)] * 9), orders(1, ("i1", None))
    assert "linf" in reached(made, data(one), data(other), REPLACE)


def test_c7_row_weights_are_reached() -> None:
    """All weight in one group, or spread; W1: a unit with one row counts once; A2: 1,000 groups under R = 10 add up to 10 at most."""
    made = release(ask("total"), keys=9, weights=4)
    heavy, mirrored = orders(1, *[("i1", 20)] * 8), orders(1, *[("i2", -5)] * 8)
    assert reached(made, data(heavy), data(), ADD) == {"linf", "l1", "l2_squared"}
    spread = orders(1, *[(f"i{i}", 20) for i in range(8)])
    assert reached(made, data(spread), data(), ADD) == {"l1"}
    assert moved(run(made, data(heavy)), run(made, data(mirrored)), 0).within(sensitivities(enforced(made), REPLACE)[0])
    signed = release(ask("total", per_row=bounds(-20, 20)), keys=9, weights=4)
    assert reached(signed, data(heavy), data(orders(1, *[("i1", -20)] * 8)), REPLACE) == {"linf", "l1", "l2_squared"}


def test_c7_replace_one_is_reached() -> None:
    """Of one sign: from all weight in one group to all in another, and without GROUP BY only from none to all. Of two signs: within one group too."""
    count = release(ask("count"), keys=9, weights=4)
    one, other = orders(1, *[("i1", 20)] * 8), orders(1, *[("i2", 20)] * 8)
    assert reached(count, data(one), data(other), REPLACE) == {"linf", "l1", "l2_squared"}
    (claim, _) = sensitivities(enforced(release(ask("mean"), keyed=False, weights=4)), REPLACE)
    assert (claim.l1, claim.moves) == (claim.linf, ((1, claim.linf),))
    assert "l1" in reached(release(ask("mean"), keyed=False, weights=4), data(one), data(orders(1, *[("i1", -5)] * 8)), REPLACE)
    assert reached(release(ask("count"), keyed=False, weights=4), data(one), data(), REPLACE) == ALL
    lopsided = release(ask("total", per_row=bounds(-5, 20)), keys=9, weights=4)
    assert "l1" in reached(lopsided, data(one), data(other), REPLACE)
    assert "linf" in reached(lopsided, data(one), data(orders(1, *[("i1", -5)] * 8)), REPLACE)


def test_w1_one_row_counts_once_under_row_weights() -> None:
    made = release(ask("count"), keys=2, weights=10)
    assert run(made, data(orders(1, ("i0", 1)), orders(2, ("i0", 1))))[("i0",)] == (2 << 20,)


def test_a2_row_weights_over_a_thousand_groups() -> None:
    made = release(ask("count"), keys=1000, weights=10)
    total = sum(values[0] for values in run(made, data(orders(1, *[(f"i{i}", 1) for i in range(1000)]))).values())
    assert total <= 10 << 20
    assert total >= (10 << 20) - 1000


@pytest.mark.parametrize("rows", [1, 3, 16, 20])
@pytest.mark.parametrize("n", [1, 2, 7, 37, 1000, 2**21, 2**30])
def test_c2_integer_weights_never_exceed_the_rows(rows: int, n: int) -> None:
    assert n * ((min(rows, n) << 20) // n) <= rows << 20


def test_c8_singleton_groups_are_reached() -> None:
    """Two groups exist for one unit alone; replaced, two others do."""
    made = release(ask("units"), groups=2)
    other = orders(2, ("shared", 1))
    one = run(made, data(orders(1, *MANY), other))
    two = run(made, data(orders(1, *[(f"j{i}", 1) for i in range(5)]), other))
    assert len(one.keys() - two.keys()) == 2 == len(two.keys() - one.keys()) == groups_of_a_unit(enforced(made))


def test_a18_no_part_is_ever_free() -> None:
    for low, high, keyed, adjacency in product([0, 1], [0, 1], [False, True], Adjacency):
        if low <= high:
            for s in sensitivities(Enforced(GroupCap(1), (CellBound(low, high),), None, keyed), adjacency):
                assert min(s.l0, s.linf, s.l1, s.l2_squared) >= 1


def test_n1_odd_widths_move_by_the_full_width() -> None:
    """AVG of a 0/1 flag: half units -1 and 1, so that a unit of C rows moves the sum by C half units, as claimed."""
    made = release(ask("mean", per_row=bounds(0, 1)), keyed=False)
    assert sensitivities(enforced(made), ADD)[0].linf == 3
    assert reached(made, data(orders(1, *[("i", 1)] * 3)), data(), ADD) == ALL
    assert run(made, data(orders(1, *[("i", 0)] * 3)))[()] == (-3, 3)


W = 2 << 20
SIGNED, COUNTED, UNITED, BINNED = CellBound(-2, 3), CellBound(0, 3), CellBound(0, 3, united=True), CellBound(0, 3, bins=4)
MEDIAN, QUARTER, UPPER = (replace(BINNED, ranked=Fraction(of, 4)) for of in (2, 1, 3))
CLAIMS: list[tuple[Bounding, CellBound, int | None, Adjacency, Sensitivity]] = [
    (GroupCap(2, Idle.ALL_KEYS), SIGNED, 2, ADD, Sensitivity(2, 3, 6, 18, "C5", ((2, 3),))),
    (GroupCap(2, Idle.ALL_KEYS), SIGNED, 2, REPLACE, Sensitivity(2, 5, 10, 50, "C5", ((2, 5),))),
    (GroupCap(2), SIGNED, None, ADD, Sensitivity(2, 3, 6, 18, "C6", ((2, 3),))),
    (GroupCap(2), SIGNED, None, REPLACE, Sensitivity(4, 5, 12, 50, "C6", ((2, 5), (4, 3)))),
    (GroupCap(2), SIGNED, 3, REPLACE, Sensitivity(4, 5, 12, 50, "C6", ((2, 5), (4, 3)))),
    (GroupCap(2), SIGNED, 2, REPLACE, Sensitivity(2, 5, 10, 50, "C6", ((2, 5),))),
    (GroupCap(2), COUNTED, None, REPLACE, Sensitivity(4, 3, 12, 36, "C6", ((4, 3),))),
    (GroupCap(2), COUNTED, 3, REPLACE, Sensitivity(3, 3, 9, 27, "C6", ((3, 3),))),
    (GroupCap(2), COUNTED, 5, REPLACE, Sensitivity(4, 3, 12, 36, "C6", ((4, 3),))),
    (GroupCap(1, Idle.UNIT_KEY), COUNTED, 0, REPLACE, Sensitivity(1, 3, 3, 9, "C6", ((1, 3),))),
    (GroupCap(2, Idle.ALL_KEYS), UNITED, None, REPLACE, Sensitivity(2, 3, 6, 18, "C9", ((2, 3),))),
    (GroupCap(2), UNITED, 3, REPLACE, Sensitivity(3, 3, 9, 27, "C9", ((3, 3),))),
    (GroupCap(2), BINNED, 3, ADD, Sensitivity(8, 3, 6, 18, "C10", ((2, 3),), (2, 3))),
    (GroupCap(2), BINNED, None, REPLACE, Sensitivity(16, 3, 12, 36, "C10", ((4, 3),), (2, 6))),
    (GroupCap(2), BINNED, 3, REPLACE, Sensitivity(12, 3, 12, 36, "C10", ((4, 3),), (2, 6))),
    (GroupCap(2), BINNED, 5, REPLACE, Sensitivity(16, 3, 12, 36, "C10", ((4, 3),), (2, 6))),
    (GroupCap(1, Idle.UNIT_KEY), BINNED, 0, REPLACE, Sensitivity(4, 3, 6, 18, "C10", ((2, 3),), (1, 6))),
    (GroupCap(2), MEDIAN, None, ADD, Sensitivity(8, 3, 24, 72, "C12", ((8, 3),), (2, 6))),
    (GroupCap(2), MEDIAN, 1, ADD, Sensitivity(4, 3, 12, 36, "C12", ((4, 3),), (1, 6))),
    (GroupCap(2), MEDIAN, None, REPLACE, Sensitivity(16, 6, 96, 576, "C12", ((16, 6),), (2, 12))),
    (GroupCap(2), MEDIAN, 3, REPLACE, Sensitivity(12, 6, 72, 432, "C12", ((12, 6),), (2, 12))),
    (GroupCap(2), QUARTER, None, ADD, Sensitivity(8, 9, 72, 648, "C12", ((8, 9),), (2, 18))),
    (GroupCap(2), UPPER, None, ADD, Sensitivity(8, 9, 72, 648, "C12", ((8, 9),), (2, 18))),
    (GroupCap(2), QUARTER, None, REPLACE, Sensitivity(16, 12, 192, 2304, "C12", ((16, 12),), (4, 24))),
    (GroupCap(2), UPPER, 5, REPLACE, Sensitivity(16, 12, 192, 2304, "C12", ((16, 12),), (4, 24))),
    (GroupCap(2), QUARTER, 3, REPLACE, Sensitivity(12, 12, 144, 1728, "C12", ((12, 12),), (3, 24))),
    (GroupCap(1, Idle.UNIT_KEY), QUARTER, 0, REPLACE, Sensitivity(4, 12, 48, 576, "C12", ((4, 12),), (1, 24))),
    (RowWeights(2), SIGNED, None, ADD, Sensitivity(W, 3 * W, 3 * W, 9 * W**2, "C7", ((1, 3 * W),))),
    (RowWeights(2), SIGNED, None, REPLACE, Sensitivity(2 * W, 5 * W, 6 * W, 25 * W**2, "C7", ((1, 6 * W),))),
    (RowWeights(2), COUNTED, None, REPLACE, Sensitivity(2 * W, 3 * W, 6 * W, 18 * W**2, "C7", ((2, 3 * W),))),
]


@pytest.mark.lemma("C3", "C4", "C5", "C6", "C7", "C9", "C10", "C11")
def test_each_claim_in_figures() -> None:
    """Cells in [-2, 3] and in [0, 3], of one or several integers, under each bounding and adjacency: norms, lemma and the patterns behind them."""
    for bounding, cell, among, adjacency, claim in CLAIMS:
        assert sensitivities(Enforced(bounding, (cell, cell), None, keyed=True, listed=among), adjacency) == (claim, claim)
    for cell, adjacency, shift in ((SIGNED, ADD, 3), (SIGNED, REPLACE, 5), (CellBound(2, 3), REPLACE, 3), (CellBound(-3, -2), REPLACE, 3)):
        one = Enforced(GroupCap(1, Idle.NO_KEYS), (cell,), None, keyed=False)
        assert sensitivities(one, adjacency) == (Sensitivity(1, shift, shift, shift**2, "C4", ((1, shift),)),)
    several = sensitivities(Enforced(GroupCap(1, Idle.NO_KEYS), (BINNED, QUARTER), None, keyed=False), REPLACE)
    assert several[0] == Sensitivity(4, 3, 6, 18, "C10", ((2, 3),), (1, 6))
    assert several[1] == Sensitivity(4, 12, 48, 576, "C12", ((4, 12),), (1, 24))
    with pytest.raises(AssertionError, match=r"^scores are those of a fraction$"):
        ranked(BINNED, 1, 1, ADD)
    whole = sensitivities(Enforced(RowWeights(2), (SIGNED,), None, keyed=False), REPLACE)
    assert whole == (Sensitivity(1, 5 * W, 5 * W, 25 * W**2, "C7", ((1, 5 * W),)),)


@pytest.mark.lemma("C6")
@pytest.mark.parametrize(("low", "high"), list(product(range(-4, 5), repeat=2)))
def test_d_replace_one_by_brute_force(low: int, high: int) -> None:
    """All cell vectors of a unit in at most l0 of 2 l0 groups, cells in [low, high] or absent: no pair moves further, and some pair reaches it."""
    if low > high or (low, high) == (0, 0):
        return
    for l0 in (1, 2):
        claim = sensitivities(Enforced(GroupCap(l0), (CellBound(low, high),), None, keyed=True), REPLACE)[0]
        values = sorted({0, low, high})
        vectors = [v for v in product(values, repeat=2 * l0) if sum(1 for x in v if x) <= l0]
        pairs = [[abs(a - b) for a, b in zip(one, two, strict=True)] for one, two in product(vectors, repeat=2)]
        assert max(sum(p) for p in pairs) == claim.l1
        assert max(sum(x * x for x in p) for p in pairs) == claim.l2_squared
        assert max(max(p) for p in pairs) == claim.linf


# ---- C10: levels of trees of bins ----------------------------------------------------------------------------------------------------

HIGH, LOW = [(f"i{i}", 20) for i in range(5) for _ in range(3)], [(f"i{i}", -5) for i in range(5) for _ in range(3)]
ELSEWHERE = [(f"j{i}", 20) for i in range(5) for _ in range(3)]
IN_ONE = {"linf", "l1", "l2_squared"}  # that all bins of a group change takes as many rows


@pytest.mark.lemma("C10")
@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("rows", [HIGH, [(item, 20) for item, _ in MANY]])
def test_c10_bins_of_a_group_are_reached(keyed: bool, rows: list[tuple[str, int | None]]) -> None:
    """All rows of a unit in one bin, with as many of them as count, or more (of which three weigh 3 << 20 and nine no more)."""
    made = release(ask("quantile"), keyed=keyed)
    assert [part.numbers for part in made.table.parts if part.numbers > 1] == [2, 26]
    for part in range(len(made.table.parts)):
        if made.table.parts[part].numbers > 1:
            found = reached(made, data(orders(1, *rows)), data(), ADD, part)
            assert found == IN_ONE if len(rows) == len(HIGH) and keyed else found <= IN_ONE
    assert {s.lemma for s in sensitivities(enforced(made), ADD)} >= {"C10"}


@pytest.mark.lemma("C10")
@pytest.mark.parametrize("other", [LOW, ELSEWHERE])
def test_c10_replace_one_is_reached(other: list[tuple[str, int | None]]) -> None:
    """Other values in the same groups, or the same values in others: either way twice as much."""
    made = release(ask("quantile"))
    for part in (i for i, part in enumerate(made.table.parts) if part.numbers > 1):
        assert reached(made, data(orders(1, *HIGH)), data(orders(1, *other)), REPLACE, part) == IN_ONE
    alone = release(ask("quantile"), rows=3, keyed=False)
    few = [("i0", 20)] * 3
    assert reached(alone, data(orders(1, *few)), data(orders(1, *[("i0", -5)] * 3)), REPLACE, 0) == {"l0", *IN_ONE}


HALVES = [("i0", 20)] * 3, [("i0", -5)] * 3


@pytest.mark.lemma("C11")
@pytest.mark.parametrize("keyed", [True, False])
def test_c11_add_remove_is_reached(keyed: bool) -> None:
    """All rows of a unit in one bin: that one moves by W, others not at all; both ways round, as only the distance counts."""
    made = release(ask("quantile"), groups=3, keyed=keyed)
    part = next(i for i, part in enumerate(made.table.parts) if part.numbers > 1)
    claim = sensitivities(enforced(made), ADD)[part]
    rows = data(orders(1, *(HIGH if keyed else HALVES[0])))
    for one, other in ((rows, data()), (data(), rows)):
        found = moved(run(made, one), run(made, other), part)
        assert found.within(claim)
        assert (len(found.spreads), max(found.spreads)) == claim.spreads == (3 if keyed else 1, 3 << 20)


@pytest.mark.lemma("C11")
@pytest.mark.parametrize("keyed", [True, False])
def test_c11_replace_one_is_reached(keyed: bool) -> None:
    """All rows in one bin, replaced by as many in another of the same groups: one bin moves up and one down, 2 W apart. Other groups are cheaper."""
    made = release(ask("quantile"), groups=3, keyed=keyed)
    part = next(i for i, part in enumerate(made.table.parts) if part.numbers > 1)
    claim = sensitivities(enforced(made), REPLACE)[part]
    high, low = (HIGH, LOW) if keyed else HALVES
    found = moved(run(made, data(orders(1, *high))), run(made, data(orders(1, *low))), part)
    assert found.within(claim)
    assert (len(found.spreads), max(found.spreads)) == claim.spreads == (3 if keyed else 1, 2 * 3 << 20)
    elsewhere = moved(run(made, data(orders(1, *HIGH))), run(made, data(orders(1, *ELSEWHERE))), part)
    assert elsewhere.within(claim)


@pytest.mark.lemma("C11")
@pytest.mark.parametrize("among", [None, 1, 2, 3])
def test_c11_by_brute_force(among: int | None) -> None:
    """Cells of two bins in at most 2 of 3 groups, integers that add up to at most 2: sums of superadditive f over groups, both adjacencies."""
    cell, groups = CellBound(0, 2, bins=2), 3 if among is None else among
    cells = [(a, b) for a in range(3) for b in range(3) if a + b <= 2]
    vectors = [v for v in product(cells, repeat=groups) if sum(1 for x in v if x != (0, 0)) <= 2]
    for adjacency, others in ((ADD, [((0, 0),) * groups]), (REPLACE, vectors)):
        count, apart = sensitivities(Enforced(GroupCap(2), (cell,), None, keyed=True, listed=among), adjacency)[0].spreads
        for f in (lambda x: x, lambda x: x * x, lambda x: x**3):
            found = [sum(f(_spread(a, b)) for a, b in zip(one, other, strict=True)) for one in vectors for other in others]
            assert max(found) == count * f(apart)


def _spread(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    shifts = [a - b for a, b in zip(one, other, strict=True)]
    return max(shifts) - min(shifts)


@pytest.mark.lemma("C10")
def test_c10_a_row_weighs_less_the_more_there_are() -> None:
    made = release(ask("quantile"), keyed=False)
    ((_, narrow),) = run(made, data(orders(1, *[("i", a) for a in (-5, -5, 0, 20)]))).values()
    assert narrow == {0: 2 * (3 << 20) // 4, 5: (3 << 20) // 4, 25: (3 << 20) // 4}
    assert run(made, data(orders(1, ("i", None))))[()] == ({}, {})


@pytest.mark.lemma("C10")
def test_c10_levels_add_up_in_the_price() -> None:
    """Each level has a noise of its own: together they cost what was asked, and one unit in one bin of each reaches it."""
    made = release(ask("quantile"))
    priced = calibrate(made, Ask(Fraction(1, 10**6), Fraction(1), noise=Mechanism.LAPLACE), ADD)
    assert reprice(enforced(made), priced, ADD).epsilon == 1
    levels = [i for i, part in enumerate(made.table.parts) if part.numbers > 1]
    lost = [sensitivities(enforced(made), ADD)[i].l1 / priced.noises[i].parameter for i in levels]
    assert len(lost) == 2
    assert lost[0] == lost[1] == Fraction(1, 4)  # half of it goes to the count that selects groups
