"""Quantiles: what is read off exact counts, and error bars that hold as often as they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import comb, floor
from random import Random

import duckdb
import numpy as np
import pytest

from dpquery.accounting.event import Price
from dpquery.aggregates import CARDS
from dpquery.aggregates.combined import quantile_up
from dpquery.aggregates.counted import KNOTS, _noise, _noises
from dpquery.aggregates.quantile import counted
from dpquery.errors import Refused
from dpquery.mechanisms import Noise, SystemBits, sample
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.rel import Scan, UnitPath
from dpquery.plan.release import Aggregate, Bins, GroupCap, Key, ListedKeys, Mechanism, Part, Release, Units, UnitTable
from dpquery.plan.scalar import Column, Interval
from dpquery.privacy.cost import Priced
from dpquery.release import noise
from dpquery.values.exact import Exact
from dpquery.values.types import FLOAT, INTEGER, Type

CARD = CARDS["quantile"]
ROW = 2**20
FALSE_ALARM = 1e-6
CON = duckdb.connect()


def quantile(low: object, high: object, *fractions: str, groups: int | None = 1, kind: Type = INTEGER, **more: bool) -> Aggregate:
    """A quantile of a column between these bounds, of so many groups; a list, where there are several."""
    column = Column(0, "x", kind, Interval(Fraction(str(low)), Fraction(str(high))))
    asked = tuple(Fraction(one) for one in fractions or ("0.5",))
    ask = AggregateAsk("a0", "q", "quantile", column, None, fractions=asked, listed=len(asked) > 1, **more)
    found = CARD.plan(ask, Contributions(1, 5, 1, listed=groups), None)
    parts = tuple(range(len(found.parts)))
    return Aggregate("a0", "q", "quantile", parts, found.type, found.step, found.bounds, notes=found.notes, quantile=found.quantile)


def counts(one: Aggregate, values: Sequence[float]) -> list[list[int]]:
    """The exact integers of each level, a row weighing one."""
    which = one.quantile
    assert which is not None
    units = np.clip(np.floor(np.array(values) / float(one.step) + 0.5).astype(np.int64), which.low, which.high) - which.low
    span = which.high - which.low + 1
    return [(np.bincount(units // width, minlength=-(-span // width)) * ROW).tolist() for width in which.widths]


def widths(one: Aggregate) -> tuple[int, ...]:
    assert one.quantile is not None
    return one.quantile.widths


def test_no_groups_have_no_quantiles() -> None:
    """Where no private key passes, the answer has no rows; it does not fail."""
    for groups in (1, None):
        one = quantile(2, 300, groups=groups)
        nothing: list[list[int]] = [[] for _ in widths(one)]
        assert len(nothing) > 1, "levels to be made one"
        assert list(CARD.finish(one, nothing)) == []
        noises = [Noise(Mechanism.LAPLACE, Fraction(9)) for _ in nothing]
        assert list(CARD.interval(one, nothing, noises, Fraction(95, 100)) or ()) == []


# ---- without noise -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fraction", ["0", "0.1", "0.25", "0.5", "0.77", "0.9", "1"])
@pytest.mark.parametrize("span", [(0, 10), (0, 120), (-700, 3000)])
def test_of_whole_numbers_in_bins_of_their_own_they_are_exact(fraction: str, span: tuple[int, int]) -> None:
    random = Random(f"{fraction} {span}")
    for size in (1, 2, 3, 10, 11, 57):
        values = [random.choice([random.randint(*span), span[0], span[1] // 2]) for _ in range(size)]
        one = quantile(*span, fraction)
        assert widths(one)[-1] == 1
        (found,) = CARD.finish(one, counts(one, values))
        assert found == pytest.approx(np.quantile(values, float(fraction)), abs=1e-9)
        other = quantile(*span, fraction, discrete=True)
        (found,) = CARD.finish(other, counts(other, values))
        assert found == np.quantile(values, float(fraction), method="inverted_cdf")
        assert isinstance(found, int)
        greater = quantile(*span, fraction, discrete=True, upper=True)
        down = f"SELECT percentile_disc({float(1 - Fraction(fraction))}) WITHIN GROUP (ORDER BY x DESC) FROM (SELECT unnest({values}) AS x)"
        assert [(one,) for one in CARD.finish(greater, counts(greater, values))] == CON.execute(down).fetchall()


def test_one_of_the_values_is_one_where_there_are_none() -> None:
    for span, wanted in (((0, 5), 3), ((-3, 2), 0)):
        one = quantile(*span, discrete=True)
        assert CARD.finish(one, counts(one, [])) == [wanted]
        which, found = counted(one, counts(one, []))
        assert found.quantiles(which) == [[wanted]]


@pytest.mark.parametrize("fraction", ["0.05", "0.5", "0.99"])
def test_others_are_off_by_less_than_a_bin(fraction: str) -> None:
    values = np.random.default_rng(7).lognormal(3, 1, 4000)
    one = quantile(0, 1000, fraction, kind=FLOAT)
    (found,) = CARD.finish(one, counts(one, list(values)))
    assert abs(float(str(found)) - np.quantile(values, float(fraction))) <= widths(one)[-1] * one.step + 0.1
    assert len(widths(one)) == 3


def test_bins_are_as_many_as_the_groups_allow() -> None:
    assert widths(quantile(0, 100_000, groups=1)) == (25 * 256, 25 * 16, 25)
    assert widths(quantile(0, 100_000, groups=600)) == (391 * 16, 391)
    assert widths(quantile(0, 100_000, groups=None)) == (391 * 16, 391)
    assert widths(quantile(0, 15)) == (1,)
    assert widths(quantile(0, 120)) == (16, 1)


def test_over_nothing_they_divide_the_bounds() -> None:
    for fraction in ("0", "0.25", "1"):
        one = quantile(-10, 290, fraction)
        (found,) = CARD.finish(one, counts(one, []))
        assert found == pytest.approx(-10 + 300 * float(fraction))


def test_bounds_with_one_value_are_refused() -> None:
    with pytest.raises(Refused, match="one value"):
        quantile(3, 3)


# ---- with noise ----------------------------------------------------------------------------------------------------------------------


def noisy(exact: Sequence[Sequence[int]], law: Noise, groups: int) -> list[list[int]]:
    """The counts of so many groups, all with these values, each with noise of its own."""
    bits = SystemBits()
    return [(np.tile(level, groups) + sample(law, len(level) * groups, bits)).tolist() for level in exact]


def rarer(misses: int, draws: int, p: float) -> float:
    """The probability of at least so many misses."""
    return 1.0 - sum(comb(draws, k) * p**k * (1 - p) ** (draws - k) for k in range(misses))


SHAPES = {
    "even": lambda rng: rng.integers(0, 4000, 800),
    "skewed": lambda rng: np.minimum(4000, rng.lognormal(3, 1, 800)),
    "two heaps": lambda rng: rng.choice([40, 3900], 800),
    "few": lambda rng: rng.integers(0, 4000, 20),
    "one": lambda rng: np.array([1234]),
}
LAPLACE = Noise(Mechanism.LAPLACE, Fraction(9 * ROW))
GAUSSIAN = Noise(Mechanism.GAUSSIAN, Fraction((11 * ROW) ** 2))


@pytest.mark.parametrize("groups", [pytest.param(1, marks=pytest.mark.slow), 600])
@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN, Noise(Mechanism.LAPLACE, Fraction(1, 10**12))], ids=["laplace", "gaussian", "none"])
@pytest.mark.parametrize("shape", SHAPES)
def test_error_bars_hold_as_often_as_they_say(shape: str, law: Noise, groups: int) -> None:
    values = SHAPES[shape](np.random.default_rng(5)).tolist()
    draws, confidence = 150, Fraction(9, 10)
    for fraction in ("0", "0.3", "0.5", "0.95", "1"):
        one = quantile(0, 4000, fraction, groups=groups)
        sums = noisy(counts(one, values), law, draws)
        truth = np.quantile(np.floor(np.array(values) + 0.5), float(fraction))
        bars = CARD.interval(one, sums, [law] * len(widths(one)), confidence)
        for bar, value in zip(bars, CARD.finish(one, sums), strict=True):
            assert bar is not None
            assert 0 <= bar[0] <= value <= bar[1] <= 4000
        misses = sum(1 for bar in bars if bar is not None and not bar[0] <= truth <= bar[1])
        assert rarer(misses, draws, 0.1) > FALSE_ALARM, (fraction, misses)


def test_error_bars_are_no_wider_than_they_need_be() -> None:
    """Where many values lie in each bin, they miss nearly as often as they may."""
    rng = np.random.default_rng(3)
    one = quantile(0, 4000, "0.5", groups=600)
    exact = counts(one, rng.integers(0, 4000, 1_000_000).tolist())
    wide = Noise(Mechanism.LAPLACE, Fraction(20_000 * ROW))
    bars = CARD.interval(one, noisy(exact, wide, 3000), [wide] * 2, Fraction(8, 10))
    truth = 2000
    misses = sum(1 for bar in bars if bar is not None and not bar[0] <= truth <= bar[1])
    assert 0.02 * 3000 < misses < 0.2 * 3000 + 130


def test_more_rows_and_more_price_make_them_narrow() -> None:
    one = quantile(0, 4000)
    errors = CARD.expected_error(one, [LAPLACE] * 3, Fraction(95, 100))
    finer = CARD.expected_error(one, [replace(LAPLACE, parameter=LAPLACE.parameter / 10)] * 3, Fraction(95, 100))
    assert isinstance(errors, dict)
    assert isinstance(finer, dict)
    assert errors["n=100"] > errors["n=1000"] > errors["n=10000"] > 0
    assert errors["n=10000"] > 5 * finer["n=10000"] > 0


def test_they_rise_with_the_fraction() -> None:
    exact = counts(quantile(0, 4000), np.random.default_rng(1).integers(0, 4000, 300).tolist())
    sums = noisy(exact, LAPLACE, 30)
    rows = zip(*(CARD.finish(quantile(0, 4000, str(Fraction(i, 20))), sums) for i in range(21)), strict=True)
    assert all(a <= b for row in rows for a, b in pairwise(row))


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_a_list_is_what_its_quantiles_are_alone(law: Noise) -> None:
    """Values and error bars, with noise, where there are few and where there are many."""
    for size, step in ((3, 7), (KNOTS, 12), (21, 5)):
        fractions = [str(Fraction(i * step % 101, 100)) for i in range(size)]
        many = quantile(0, 4000, *fractions, groups=600)
        sums = noisy(counts(many, np.random.default_rng(2).integers(0, 4000, 300).tolist()), law, 20)
        noises = [law] * len(widths(many))
        rows, bars = CARD.finish(many, sums), CARD.interval(many, sums, noises, Fraction(9, 10))
        for place, fraction in enumerate(fractions):
            one = quantile(0, 4000, fraction, groups=600)
            assert [row[place] for row in rows] == CARD.finish(one, sums)  # type: ignore[index]
            for ends, own in zip(bars, CARD.interval(one, sums, noises, Fraction(9, 10)), strict=True):
                low, high = ends[place]  # type: ignore[index]
                assert low <= own[0] <= own[1] <= high  # type: ignore[index, operator]
                assert size > KNOTS or (low, high) == own


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("bins", [(16, 256), (7, 97)])
def test_noise_between_a_few_fractions_is_never_too_small_and_hardly_too_large(law: Noise, bins: tuple[int, ...]) -> None:
    fractions = [i / 40 for i in range(41)]
    between = _noises(fractions, bins, (16, 1), (law, law), Fraction(1, 20))
    for q, found in zip(fractions, between, strict=True):
        exact = _noise(q, bins, (16, 1), (law, law), Fraction(1, 20))
        step = 1e-9 if law == GAUSSIAN else 0.02  # between the widths that are tried, the exact one being rounded up to one of them
        assert (found >= exact * (1 - step)).all(), q
        assert (found <= exact * 1.05).all(), q


@pytest.mark.parametrize("coefficients", [[1.0], [0.5, -0.5], [0.9] * 3 + [-0.1] * 13, [0.06 * i for i in range(1, 16)]])
@pytest.mark.parametrize("outside", [0.25, 0.1, 0.025, 0.0005])
def test_noise_of_combinations_passes_its_quantile_as_seldom_as_it_may(coefficients: list[float], outside: float) -> None:
    draws = 400_000
    total, rng = np.zeros(draws), np.random.default_rng(len(coefficients))
    for coefficient in coefficients:
        total += coefficient * rng.laplace(0, 9, draws)
    numbers = np.ones((len(coefficients), 1))
    (width,) = quantile_up(np.array(coefficients)[:, None], numbers, [0] * len(coefficients), [LAPLACE], Fraction(str(outside)))
    passed = float(np.mean(total > width))
    assert passed <= outside + 6 * (outside / draws) ** 0.5
    assert passed >= (0.8 if len(coefficients) > 2 else 0.05) * outside - 6 * (outside / draws) ** 0.5


def test_out_of_all_proportion() -> None:
    one = quantile(0, 4000)
    huge = Noise(Mechanism.LAPLACE, Fraction(10**110))
    groups = 200
    sums = noisy(counts(one, [1, 2, 3]), huge, groups)
    assert all(0 <= value <= 4000 for value in CARD.finish(one, sums))
    bars = [*CARD.interval(one, sums, [huge] * 3, Fraction(95, 100))]
    assert all(0 <= low <= high <= 4000 for low, high in bars)
    whole = sum(bar == (0.0, 4000.0) for bar in bars)  # noise alone says less than that in one of twenty groups
    assert rarer(groups - whole, groups, 0.1) > FALSE_ALARM
    assert floor(CARD.expected_error(one, [huge] * 3, Fraction(95, 100))["n=100"]) == 2000  # type: ignore[index]


# ---- what the noise is added to ------------------------------------------------------------------------------------------------------


@pytest.mark.lemma("M6")
def test_bins_and_groups_without_rows_have_noise_like_others() -> None:
    """Which of them are empty does not show: each has a draw of its own, around 0."""
    column = Column(0, "x", INTEGER, Interval(Fraction(0), Fraction(9)))
    part = Part(Units(column, Fraction(1), 0, 9), Bins(1, 1, 10))
    table = UnitTable(Scan("t", "t", (), UnitPath("u", INTEGER)), (Key("k", column, INTEGER),), (part,), GroupCap(1))
    release = Release(table, ListedKeys(((1,), (2,)), "a list"), ())
    priced = Priced((LAPLACE,), None, Price(Fraction(1), Fraction(1), Fraction(0)), (Fraction(1),), None, Fraction(0), Fraction(0))
    found = [noise.add(Exact(((2,),), ((),), {0: ({3: 1000 * ROW},)}), release, priced, SystemBits()) for _ in range(60)]
    assert all(len(one.sums[0]) == 20 for one in found)
    columns = list(zip(*(one.sums[0] for one in found), strict=True))
    assert all(len(set(column)) == 60 for column in columns)
    assert [i for i, column in enumerate(columns) if abs(np.mean(column) / ROW) > 500] == [13]
