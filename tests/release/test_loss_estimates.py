"""Which caps won and what they cut off: functions of released numbers, whose error bars hold as often as they say."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest

from dpquery.accounting.event import Price
from dpquery.aggregates import CARDS
from dpquery.mechanisms import Noise, SystemBits, half_width, sample
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.rel import Scan
from dpquery.plan.release import Aggregate, GroupCap, Mechanism, NoKeys, Release, UnitTable
from dpquery.plan.scalar import Interval
from dpquery.privacy import Priced
from dpquery.release.losses import Loss, Total, best, loss, summed_width, total, winners
from dpquery.values.noisy import Noisy
from dpquery.values.types import INTEGER

TENTH, TIMES = Fraction(1, 10), 200
ALLOWED = TIMES / 10 + 5 * (TIMES / 10) ** 0.5
LAWS = [Noise(Mechanism.LAPLACE, Fraction(40)), Noise(Mechanism.GAUSSIAN, Fraction(900))]


def counted(units: str) -> Aggregate:
    return Aggregate("a0", units, "count", (0,), INTEGER, Fraction(1), Interval(Fraction(0), Fraction(9)))


def priced(*noises: Noise) -> Priced:
    shares = (Fraction(1, len(noises)),) * len(noises)
    return Priced(noises, None, Price(Fraction(1), Fraction(1), Fraction(0)), shares, Fraction(1), Fraction(0), Fraction(0))


def drawn(noise: Noise, exact: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + z for a, z in zip(exact, sample(noise, len(exact), SystemBits()), strict=True))


def of(sums: Sequence[Sequence[int]]) -> Noisy:
    return Noisy(tuple((i,) for i in range(len(sums[0]))), tuple(map(tuple, sums)))


@pytest.mark.parametrize("noise", LAWS)
@pytest.mark.parametrize("count", [1, 2, 12, 90])
def test_a_sum_of_noises_seldom_exceeds_its_width(noise: Noise, count: int) -> None:
    width, draws = summed_width(noise, count, TENTH), drawn(noise, [0] * (TIMES * count))
    beyond = sum(abs(sum(draws[i * count : (i + 1) * count])) > width for i in range(TIMES))
    assert beyond <= ALLOWED
    assert summed_width(noise, 0, TENTH) == 0


@pytest.mark.parametrize("noise", LAWS)
@pytest.mark.parametrize("groups", [1, 6])
def test_the_bar_of_a_loss_holds_it_as_often_as_it_says(noise: Noise, groups: int) -> None:
    shown, whole = [800] * groups, [1000] * groups
    wide = Noise(noise.mechanism, noise.parameter * 3)
    missed = 0
    for _ in range(TIMES):
        one = total(counted("n"), of([drawn(noise, shown)]), priced(noise), TENTH / 2)
        other = total(counted("m"), of([drawn(wide, whole)]), priced(wide), TENTH / 2)
        found = loss(one, other)
        missed += not found.low <= 0.2 <= found.high
        assert found.share is None or found.low <= found.share <= found.high
    assert missed <= ALLOWED


def test_a_loss_is_a_share_or_is_not_known() -> None:
    exact, nothing = Fraction(0), Fraction(9)
    assert loss(Total(Fraction(80), exact), Total(Fraction(100), exact)) == Loss(0.2, 0.2, 0.2)
    assert loss(Total(Fraction(120), exact), Total(Fraction(100), exact)) == Loss(0.0, 0.0, 0.0)
    assert loss(Total(Fraction(80), exact), Total(Fraction(8), nothing)) == Loss(None, 0.0, 1.0)


@pytest.mark.parametrize("values", [(80, 1, 100, 2), (120, 0, 100, 0), (80, 3, 8, 9), (0, 5, 9, 9), (-3, 1, 50, 5)])
def test_a_total_below_0_loses_what_its_opposite_does(values: tuple[int, int, int, int]) -> None:
    shown, off, whole, by = map(Fraction, values)
    assert loss(Total(-shown, off), Total(-whole, by)) == loss(Total(shown, off), Total(whole, by))


# ---- races ---------------------------------------------------------------------------------------------------------------------------


def race(ceiling: int) -> tuple[Aggregate, Release, tuple[int, ...]]:
    ask = AggregateAsk("a0", "n", "race_count", None, None, Interval(Fraction(0), Fraction(ceiling)))
    made = CARDS["race_count"].plan(ask, Contributions(1, 1, 9), None)
    aggregate = Aggregate("a0", "n", "race_count", tuple(range(len(made.parts))), made.type, made.step, made.bounds)
    table = UnitTable(Scan("t", "t", (), ()), (), made.parts, GroupCap(1))  # type: ignore[arg-type]
    return aggregate, Release(table, NoKeys(), (aggregate,)), (1, 2, 4, 8)


def test_the_cap_that_assures_most_has_won() -> None:
    aggregate, release, caps = race(8)
    sure = priced(*(Noise(Mechanism.LAPLACE, Fraction(1, 1000)) for _ in caps))
    noisy = of([(5, 5, -9), (9, 10, -9), (9, 15, -9), (9, 20, -9)])
    assert dict(winners(aggregate, release, noisy, sure)) == {Fraction(2): 1, Fraction(8): 1, None: 1}
    assert best(aggregate, noisy, sure, TENTH) == Total(Fraction(29), Fraction(0))
    assert total(aggregate, noisy, sure, TENTH).value == 20


def test_doubt_about_what_won_is_shared_over_caps_and_groups() -> None:
    aggregate, _, caps = race(8)
    noises = priced(*(Noise(Mechanism.LAPLACE, Fraction(4 * cap)) for cap in caps))
    noisy = of([(-(10**6),) * 6] * 3 + [(10**6,) * 6])
    width = 6 * half_width(noises.noises[-1], 1 - TENTH / (4 * 6))
    assert best(aggregate, noisy, noises, TENTH) == Total(Fraction(6 * 10**6), Fraction(width))


def test_the_bar_of_what_won_holds_whichever_did() -> None:
    """Of units that bring 1, 2 and 6 rows a cap of 8 cuts off nothing, one of 4 two of nine: the bar holds the share of the one that won."""
    aggregate, release, caps = race(8)
    noises = priced(*(Noise(Mechanism.LAPLACE, Fraction(4 * cap)) for cap in caps))
    sums = [60 * sum(min(rows, cap) for rows in (1, 2, 6)) for cap in caps]
    missed = 0
    for _ in range(TIMES):
        noisy = of([drawn(noise, [one]) for noise, one in zip(noises.noises, sums, strict=True)])
        ((cap, _),) = winners(aggregate, release, noisy, noises).items()
        found = loss(best(aggregate, noisy, noises, TENTH / 2), total(aggregate, noisy, noises, TENTH / 2))
        true = 1.0 if cap is None else 1 - sums[caps.index(int(cap))] / sums[-1]
        missed += not found.low <= true <= found.high
    assert missed <= ALLOWED
