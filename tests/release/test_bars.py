"""Error bars of computed outputs: interval arithmetic over bars that all hold at once. Coverage is measured on 4,000 draws from fixed seeds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from dpquery.aggregates.selected import Selected, low_end
from dpquery.mechanisms import Noise, half_width
from dpquery.plan.draft import Affine, Combined, Constant, Operation, Output, Ratio
from dpquery.plan.release import Aggregate, Mechanism, NoKeys, PrivateKeys
from dpquery.plan.scalar import Interval
from dpquery.release.bars import Part, Released, _exact, intervals, shown_from
from dpquery.values.noisy import Noisy
from dpquery.values.types import FLOAT, INTEGER

DRAWS = 4_000
C95 = Fraction(95, 100)
NOISES = tuple(Noise(Mechanism.LAPLACE, Fraction(scale)) for scale in (30, 50, 800, 20))
COUNT = Aggregate("a0", "COUNT(*)", "count", (0,), INTEGER, Fraction(1), Interval(Fraction(0), Fraction(1)))
OTHER = Aggregate("a1", "COUNT(x)", "count", (1,), INTEGER, Fraction(1), Interval(Fraction(0), Fraction(1)))
MEAN = Aggregate("a2", "AVG(x)", "mean", (2, 3), FLOAT, Fraction(1), Interval(Fraction(0), Fraction(100)))
EXACT = (2_000, 900, 48_000, 2_000)  # a mean of 50 + 48000 / 2000 / 2 = 62
A, B, M = Affine("a0"), Affine("a1"), Affine("a2")


def of(operation: Operation, *parts: Part, digits: int = 0) -> Combined:
    return Combined(operation, parts, digits)


def bars(how: Affine | Ratio | Combined, sums: tuple[list[int], ...], rows: list[int] | None = None) -> tuple[Any, ...]:
    """The bars of one output over noisy sums, one row a draw."""
    number = len(sums[0])
    noisy = Noisy(tuple(() for _ in range(number)), tuple(tuple(column) for column in sums))
    release = cast(Any, SimpleNamespace(aggregates=(COUNT, OTHER, MEAN), keys=NoKeys()))
    priced = cast(Any, SimpleNamespace(noises=NOISES))
    found = intervals((Output("x", how, True),), {"t": Released(release, noisy, priced, rows or range(number))}, C95)[0]
    assert found is not None
    return found


def drawn(seed: int) -> tuple[list[int], ...]:
    rng = np.random.default_rng(seed)
    return tuple([int(x) for x in exact + np.rint(rng.laplace(0, float(n.parameter), DRAWS))] for exact, n in zip(EXACT, NOISES, strict=True))


CASES: list[tuple[Combined, Callable[[], float]]] = [
    (of(Operation.SUBTRACT, A, B), lambda: 1_100),
    (of(Operation.ADD, A, of(Operation.MULTIPLY, Constant(Fraction(2)), B)), lambda: 3_800),
    (of(Operation.ROUND, M), lambda: 62),
    (of(Operation.ROUND, Ratio("a1", "a0", Fraction(100)), digits=1), lambda: 45.0),
    (of(Operation.MULTIPLY, M, A), lambda: 124_000),
    (of(Operation.DIVIDE, M, A), lambda: 0.031),
    (of(Operation.SQRT, of(Operation.SUBTRACT, A, of(Operation.DIVIDE, of(Operation.MULTIPLY, B, B), A))), lambda: (2_000 - 405) ** 0.5),
    (of(Operation.GREATEST, B, Constant(Fraction(905))), lambda: 905),
    (of(Operation.LEAST, B, Constant(Fraction(905)), A), lambda: 900),
    (of(Operation.ABS, of(Operation.SUBTRACT, B, A)), lambda: 1_100),
    (of(Operation.FLOOR, M), lambda: 62),
    (of(Operation.CEIL, of(Operation.DIVIDE, A, Constant(Fraction(7)))), lambda: 286),
]


@pytest.mark.parametrize(("how", "truth"), CASES, ids=lambda x: str(x.operation) if isinstance(x, Combined) else "")
def test_computed_bars_cover_at_least_as_promised(how: Combined, truth: Callable[[], float]) -> None:
    found = np.array(bars(how, drawn(5)), dtype=float)
    assert float(np.mean((found[:, 0] <= truth() + 1e-9) & (truth() - 1e-9 <= found[:, 1]))) > 0.94


def test_a_single_bar_is_not_widened() -> None:
    """Only what must hold at once costs confidence: one aggregate, however often it is used, is one bar."""
    (low, high), (own_low, own_high) = bars(of(Operation.ADD, A, A), ([100], [0], [0], [0]))[0], bars(A, ([100], [0], [0], [0]))[0]
    assert (low, high) == (2 * own_low, 2 * own_high)


def test_rounding_takes_ends_to_ends() -> None:
    low, high = bars(A, ([1_234], [0], [0], [0]))[0]
    assert bars(of(Operation.ROUND, A, digits=-2), ([1_234], [0], [0], [0]))[0] == (round(low, -2), round(high, -2))
    assert bars(of(Operation.ROUND, Constant(Fraction(-5, 2))), ([0], [0], [0], [0]))[0] == (-3, -3)


def test_what_may_be_divided_by_zero_or_has_no_root_has_no_bar() -> None:
    sums = ([3], [900], [0], [0])
    assert bars(of(Operation.DIVIDE, B, A), sums) == (None,)
    assert bars(of(Operation.ADD, B, of(Operation.DIVIDE, B, A)), sums) == (None,)
    assert bars(of(Operation.SQRT, of(Operation.SUBTRACT, Constant(Fraction(-(10**6))), A)), sums) == (None,)
    assert bars(of(Operation.MULTIPLY, Constant(Fraction(10) ** 400), A), sums) == (None,)
    assert bars(of(Operation.SQRT, A), ([3], [0], [0], [0]))[0][0] == 0


def test_bars_follow_the_rows_of_the_answer() -> None:
    found = bars(of(Operation.SUBTRACT, A, B), ([10, 5_000], [0, 0], [0, 0], [0, 0]), rows=[1, 1, 0])
    assert len(found) == 3
    assert found[0] == found[1] != found[2]


def test_a_bar_without_finite_ends_bounds_nothing_that_is_computed_from_it() -> None:
    for bar in (None, (float("-inf"), 3.0), (0.0, float("inf"))):
        assert _exact(bar) is None
    assert _exact((0.5, 3.0)) == (Fraction(1, 2), 3)


def test_the_least_count_with_which_a_group_is_shown() -> None:
    """The threshold, and what a minimum above 1 adds: of the count that decides alone, and where one decides."""
    private, listed = (cast(Any, SimpleNamespace(keys=keys)) for keys in (PrivateKeys(1, 3), NoKeys()))
    sure = cast(Any, SimpleNamespace(threshold=17))
    assert shown_from(private, sure, (0, 1, 2)) == Released(private, Noisy((), ()), sure, ()).floors((0, 1, 2)) == (None, 19, None)
    assert shown_from(listed, sure, (0, 1)) == (None, None)
    assert [low_end(value, 4, 19) for value in (22, 23, 24)] == [1, 1, 20]
    assert low_end(22, 4, None) == 18


def test_groups_are_near_to_where_they_are_shown_from() -> None:
    law, doubt = Noise(Mechanism.LAPLACE, Fraction(5)), Fraction(1, 20)
    made = Selected.of((None, 19), (law, law), 1 - doubt)
    far = 19 + 2 * half_width(law, 1 - doubt)
    assert made == Selected((None, 19), (None, far), 1 - doubt * (1 - doubt / 2))
    assert [made.near((0, value)) for value in (far, far + 1)] == [True, False]
