"""Variances, covariances and correlations: parts, values, and error bars that cover."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import pytest

from dpquery.aggregates import CARDS, Planned, moments
from dpquery.aggregates.moments import Span, moment
from dpquery.errors import Refused
from dpquery.mechanisms import Noise, SystemBits, sample
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import Additive, Aggregate, HeavyMean, Mechanism, Product, Units
from dpquery.plan.scalar import Column, Interval
from dpquery.values.types import FLOAT, INTEGER, Type

MOMENTS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr")
CONFIDENCE = Fraction(9, 10)


def column(low: int, high: int, id: int = 1, type: Type = INTEGER, step: Fraction | None = None) -> Column:
    return Column(id, f"x{id}", type, Interval(Fraction(low), Fraction(high)), step=step)


def plan(card: str, *values: Column, rows: int = 4, weights: int | None = None, **more: Any) -> Planned:
    both = values[1] if len(values) > 1 else column(-3, 7, 2) if card in MOMENTS[4:] else None
    ask = AggregateAsk("a0", card, card, values[0], **{"where": None, "other": both, **more})
    return CARDS[card].plan(ask, Contributions(2, rows, 1000, weights), None)


def aggregate(card: str, made: Planned) -> Aggregate:
    return Aggregate("a0", card, card, tuple(range(len(made.parts))), made.type, made.step, made.bounds, notes=made.notes, less=made.less)


def exact(made: Planned, xs: list[int], ys: list[int]) -> list[int]:
    """The sums of the parts over rows with these values, each of them in bounds."""
    found = []
    for part in made.parts:
        match part.row:
            case Units() as values:
                found.append(sum(_half(values, v) for v in _of(values, xs, ys)))
            case Product(left=left, right=right, less=less):
                pairs = zip(_of(left, xs, ys), _of(right, xs, ys), strict=True)
                found.append(sum(_half(left, a) * _half(right, b) - less for a, b in pairs))
            case _:
                found.append(len(xs))
    return found


def _of(values: Units, xs: list[int], ys: list[int]) -> list[int]:
    return xs if isinstance(values.value, Column) and values.value.id == 1 else ys


def _half(values: Units, v: int) -> int:
    return 2 * math.floor(v / values.step + Fraction(1, 2)) - (values.low + values.high)


def true(card: str, xs: list[int], ys: list[int]) -> float:
    """The moment by the book."""
    n = len(xs)
    mx, my = Fraction(sum(xs), n), Fraction(sum(ys), n)
    xx, yy = (sum((v - m) ** 2 for v in vs) / n for vs, m in ((xs, mx), (ys, my)))
    xy = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)) / n
    by = Fraction(n, n - 1) if card.endswith("samp") else Fraction(1)
    if card == "corr":
        return float(xy) / math.sqrt(xx * yy)
    if card.startswith("covar"):
        return float(xy * by)
    return float(xx * by) if card.startswith("var") else math.sqrt(xx * by)


def rows(random: Random, n: int) -> tuple[list[int], list[int]]:
    xs = [random.randint(0, 9) for _ in range(n)]
    return xs, [max(-3, min(7, x - random.randint(0, 6))) for x in xs]


@pytest.mark.parametrize("card", MOMENTS)
def test_without_noise_it_is_the_moment(card: str) -> None:
    for seed in range(20):
        xs, ys = rows(Random(seed), 3 + seed)
        for made in (plan(card, column(0, 9)), plan(card, column(0, 9, type=FLOAT), column(-3, 7, 2, FLOAT, Fraction(1, 4)))):
            (found,) = CARDS[card].finish(aggregate(card, made), [[one] for one in exact(made, xs, ys)])
            assert found == pytest.approx(true(card, xs, ys), abs=1e-12, rel=1e-12)


@pytest.mark.parametrize("card", MOMENTS)
def test_far_from_zero_nothing_is_lost(card: str) -> None:
    """As E[x^2] - E[x]^2 on raw values the noise would be that of the square of a billion; here it is that of a width of 9."""
    far, near = plan(card, column(10**9, 10**9 + 9)), plan(card, column(0, 9))
    assert [part.cell for part in far.parts] == [part.cell for part in near.parts]
    xs, ys = rows(Random(1), 30)
    (found,) = CARDS[card].finish(aggregate(card, far), [[one] for one in exact(far, [10**9 + x for x in xs], ys)])
    assert found == pytest.approx(true(card, xs, ys), abs=1e-12)


@pytest.mark.parametrize("card", MOMENTS)
def test_whatever_the_noise_the_value_is_possible(card: str) -> None:
    made = plan(card, column(0, 9))
    one = aggregate(card, made)
    extremes = [-(10**30), -7, -1, 0, 1, 2, 3, 10**30]
    random = Random(3)
    sums = [[random.choice(extremes) for _ in range(300)] for _ in made.parts]
    most = {"var": 81 / 4 * 2, "std": 9 / 2 * math.sqrt(2), "cov": 9 * 10 / 4 * 2, "cor": 1.0}[card[:3]]
    for value in CARDS[card].finish(one, sums):
        assert isinstance(value, float)
        assert (0 if card[0] in "vs" else -most) <= value <= most
    bars = CARDS[card].interval(one, sums, [Noise(Mechanism.LAPLACE, Fraction(3))] * len(sums), CONFIDENCE)
    assert all(bar is not None and (0 if card[0] in "vs" else -most) <= bar[0] <= bar[1] <= most for bar in bars)  # type: ignore[operator]


def test_what_too_few_rows_give_is_known_beforehand() -> None:
    half = {"var_pop": 81 / 8, "var_samp": 81 / 4, "stddev_pop": math.sqrt(81 / 8), "stddev_samp": math.sqrt(81 / 4)}
    for card in MOMENTS:
        made = plan(card, column(0, 9))
        for number in (0, -5, *([1] if card.endswith("samp") else [])):
            sums = [[40] for _ in made.parts[:-1]] + [[number]]
            assert CARDS[card].finish(aggregate(card, made), sums) == [pytest.approx(half.get(card, 0.0))]


@pytest.mark.parametrize("card", MOMENTS)
def test_parts_are_shared_where_they_are_equal(card: str) -> None:
    """With AVG and COUNT of the same values, whose grid is the type's or the schema's."""
    x = column(0, 9)
    shared = {
        part for other in ("mean", "count") for part in CARDS[other].plan(AggregateAsk("a", "a", other, x, None), Contributions(2, 4, 9), None).parts
    }
    assert len(shared & set(plan(card, x).parts)) == (2 if card in MOMENTS[:4] else 0)  # pairs count rows in which both are known
    assert set(plan("var_pop", x).parts) == set(plan("stddev_samp", x).parts)
    assert set(plan("covar_pop", x).parts) < set(plan("corr", x).parts)


@pytest.mark.parametrize(("low", "high"), [(0, 10**18), (-(10**300), 10**300), (5, 6), (-(2**40), 2**33), (10**15, 10**15 + 1)])
@pytest.mark.parametrize("card", ["var_pop", "corr"])
@pytest.mark.parametrize("type", [INTEGER, FLOAT])
def test_n10_squares_fit(card: str, low: int, high: int, type: Type) -> None:
    """Half units have at most 31 bits, so their squares fit into 64; 2^40 of them times the cap into 127."""
    for part in plan(card, column(low, high, type=type), column(low, high, 2, type), rows=1000).parts:
        if isinstance(part.row, Product):
            assert (part.row.left.high - part.row.left.low) * (part.row.right.high - part.row.right.low) <= 2**62
            assert isinstance(part.cell, HeavyMean)
            assert part.cell.width * part.cell.rows * 2**40 < 2**126
    with pytest.raises(Refused, match="could overflow"):
        plan(card, column(0, 2**40, type=FLOAT), column(0, 2**40, 2, FLOAT), rows=2**30)


def test_refusals() -> None:
    for card, more, code in (
        ("var_pop", {"per_group": Interval(Fraction(0), Fraction(1))}, "PER_GROUP_BOUNDS"),
        ("corr", {"per_group": Interval(Fraction(0), Fraction(1))}, "PER_GROUP_BOUNDS"),
        ("corr", {"other": None}, "NOT_A_NUMBER"),
        ("stddev_pop", {"per_row": Interval(Fraction(4), Fraction(4))}, "BAD_BOUNDS"),
    ):
        with pytest.raises(Refused) as caught:
            plan(card, column(0, 9), **more)
        assert caught.value.code == code
    with pytest.raises(Refused) as caught:
        plan("covar_pop", Column(1, "x", INTEGER), column(0, 9, 2))
    assert caught.value.code == "MISSING_BOUNDS"


def test_row_weights_weigh_squares_too() -> None:
    made = plan("var_samp", column(0, 9), weights=7)
    assert [part.cell for part in made.parts] == [Additive(9), Additive(41), Additive(1)]
    xs, ys = rows(Random(5), 12)
    weighed = [[2**20 * one] for one in exact(made, xs, ys)]
    assert CARDS["var_samp"].finish(aggregate("var_samp", made), weighed) == [pytest.approx(true("var_samp", xs, ys))]


# ---- error bars ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize("card", MOMENTS)
def test_error_bars_cover(card: str, mechanism: Mechanism) -> None:
    """At least as often as promised, in small groups and large; and they say something where there are many rows."""
    made = plan(card, column(0, 9), rows=1)
    one, draws = aggregate(card, made), 400
    for n, wide in ((12, 6), (400, 6)):
        xs, ys = rows(Random(n), n)
        noises = [Noise(mechanism, Fraction(wide) * part.cell.width if isinstance(part.cell, HeavyMean) else Fraction(wide)) for part in made.parts]
        sums = [[e + int(z) for z in sample(noise, draws, SystemBits())] for e, noise in zip(exact(made, xs, ys), noises, strict=True)]
        bars = CARDS[card].interval(one, sums, noises, CONFIDENCE)
        value = true(card, xs, ys)
        covered = sum(1 for bar in bars if bar is not None and bar[0] - 1e-9 <= value <= bar[1] + 1e-9)  # type: ignore[operator]
        assert covered >= draws * 0.9 - 4 * math.sqrt(draws * 0.09)
    whole = CARDS[card].interval(one, [[0]] * len(made.parts), noises, CONFIDENCE)[0]
    assert whole is not None
    assert all(bar is not None and bar[1] - bar[0] < whole[1] - whole[0] for bar in bars[:50])  # type: ignore[operator]


@pytest.mark.parametrize("card", MOMENTS[:-1])
def test_how_far_noise_reaches_is_worked_out_once(card: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each group: there it took minutes."""
    made, asked = plan(card, column(0, 9)), list[Noise]()
    monkeypatch.setattr(moments, "half_width", lambda noise, confidence: asked.append(noise) or 3)
    noises = [Noise(Mechanism.LAPLACE, Fraction(3))] * len(made.parts)
    assert len(CARDS[card].interval(aggregate(card, made), [[50] * 20] * len(noises), noises, CONFIDENCE)) == 20
    assert asked == noises


def test_ends_of_a_moment_are_its_range() -> None:
    random = Random(1)
    for _ in range(300):
        q, p = (Span(*sorted(Fraction(random.randint(-9, 9)) for _ in range(2))) for _ in range(2))
        t = Span(*sorted(Fraction(random.randint(1, 30), 30) for _ in range(2)))
        found = moment(q, p, t)
        grid = [t.low + (t.high - t.low) * Fraction(i, 60) for i in range(61)]
        values = [a * x - b * x * x for a, b, x in product(q, p, grid)]
        assert found.low <= min(values)
        assert max(values) <= found.high
        assert found.high - found.low <= max(values) - min(values) + Fraction(1, 50)


@pytest.mark.parametrize("card", MOMENTS)
def test_the_expected_error_falls_with_the_number_of_rows(card: str) -> None:
    made = plan(card, column(0, 9))
    found = CARDS[card].expected_error(aggregate(card, made), [Noise(Mechanism.LAPLACE, Fraction(50))] * len(made.parts), CONFIDENCE)
    assert isinstance(found, dict)
    assert list(found) == ["n=100", "n=1000", "n=10000"]
    assert found["n=100"] >= found["n=1000"] > found["n=10000"] > 0
