"""What the textbook's functions do not take, word by word, and the numbers next to those, which they do."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from dpquery.accounting.textbook.composition import adaptive_epsilon, advanced_epsilon, basic, optimal_epsilon
from dpquery.accounting.textbook.concentrated import bounded_range_rho, continuous_laplace_rho, loose_epsilon, loose_rho
from dpquery.accounting.textbook.gaussian import classical_sigma, gaussian_delta, gaussian_epsilon, gaussian_sigma
from dpquery.accounting.textbook.groups import group_delta_up, group_rho, loose_group_delta_up
from dpquery.accounting.textbook.loss import batch_epsilon_up, gaussian_pair, laplace_pair, pure_pair, sampled_pairs
from dpquery.accounting.textbook.pure import laplace_delta, randomised_response_epsilon, staircase_error
from dpquery.accounting.textbook.renyi import gaussian_renyi, laplace_renyi, pure_renyi, renyi_epsilon
from dpquery.accounting.textbook.sampling import amplified, sampled_gaussian_renyi
from dpquery.accounting.textbook.selection import exponential_probabilities, least_units, truncated_geometric

INF, NAN = math.inf, math.nan
ZERO, ONE, LESS = Fraction(0), Fraction(1), Fraction(-1)
NO_DELTA, NO_QUERY = "delta is above 0 and below 1", "at least one query is needed"
NO_EPSILON, NO_RATE = "epsilon is finite and not negative", "a sampling rate is above 0 and at most 1"
NO_GROUP = "a group has at least one unit, and epsilon, delta and rho are not negative"
NO_ORDER, NO_SIZE = "a finite size that is not negative and an order of at least 1 are needed", "a positive and finite size is needed"
NO_SUM, NO_BATCH = "epsilon and delta are finite and not negative", "delta is above 0 and below 1, and a batch has a release"
PURE = pure_pair(1.0)
Refusals = list[tuple[Callable[..., object], str, list[tuple[Any, ...]]]]

REFUSED: Refusals = [
    (
        classical_sigma,
        "the classical Gaussian mechanism needs 0 < epsilon <= 1 and 0 < delta < 1",
        [(0.0, 0.5), (1.01, 0.5), (NAN, 0.5), (0.5, 0.0), (0.5, 1.0), (0.5, NAN)],
    ),
    (
        gaussian_delta,
        "a positive mu and an epsilon that is not negative are needed",
        [(0.0, 1.0), (INF, 1.0), (1.0, -1e-9), (1.0, INF), (NAN, 1.0), (1.0, NAN)],
    ),
    (gaussian_epsilon, "Gaussian noise needs 0 < delta < 1", [(1.0, 0.0), (1.0, 1.0), (1.0, NAN)]),
    (gaussian_sigma, "Gaussian noise needs 0 < delta < 1", [(1.0, 0.0), (1.0, 1.0)]),
    (gaussian_sigma, "epsilon is not negative", [(-1e-9, 0.5), (INF, 0.5), (NAN, 0.5)]),
    (laplace_delta, "epsilons are finite and not negative", [(-1.0, 0.0), (1.0, -1.0), (INF, 1.0), (1.0, INF), (NAN, 1.0), (1.0, NAN)]),
    (
        randomised_response_epsilon,
        "randomised response needs 0 < truth < 1 and two answers or more",
        [(0.0, 2), (1.0, 2), (0.5, 1), (NAN, 2)],
    ),
    (staircase_error, "epsilon is positive", [(0.0,), (-1.0,), (NAN,)]),
    (
        exponential_probabilities,
        "finite scores and an epsilon that is not negative are needed",
        [([], 1.0), ([1.0], -1e-9), ([INF], 1.0), ([1.0, NAN], 1.0), ([1.0], INF), ([1.0], NAN)],
    ),
    (
        truncated_geometric,
        "epsilon and units are not negative, and 0 < delta <= 1",
        [(-1e-9, 0.1, 1), (INF, 0.1, 1), (1.0, 0.0, 1), (1.0, 1.1, 1), (1.0, 0.1, -1), (NAN, 0.1, 1), (1.0, NAN, 1)],
    ),
    (least_units, "0 < probability <= 1", [(1.0, 0.1, 0.0), (1.0, 0.1, 1.1), (1.0, 0.1, NAN)]),
    (least_units, "epsilon and units are not negative, and 0 < delta <= 1", [(1.0, 0.0, 0.5)]),
    (
        loose_epsilon,
        "rho is finite and not negative, and 0 < delta <= 1",
        [(-1e-9, 0.1), (INF, 0.1), (NAN, 0.1), (1.0, 0.0), (1.0, 1.1), (1.0, NAN)],
    ),
    (loose_rho, NO_EPSILON, [(LESS,)]),
    (bounded_range_rho, NO_EPSILON, [(LESS,)]),
    (continuous_laplace_rho, NO_EPSILON, [(-1e-9,), (INF,), (NAN,)]),
    (group_delta_up, NO_GROUP, [(LESS, ONE, 1), (ONE, LESS, 1), (ONE, ONE, 0)]),
    (loose_group_delta_up, NO_GROUP, [(LESS, ONE, 1), (ONE, LESS, 1), (ONE, ONE, 0)]),
    (group_rho, NO_GROUP, [(LESS, 1), (ONE, 0)]),
    (basic, NO_QUERY, [(ONE, ONE, 0)]),
    (basic, NO_EPSILON, [(LESS, ONE, 1)]),
    (basic, "delta is finite and not negative", [(ONE, LESS, 1)]),
    (advanced_epsilon, NO_QUERY, [(1.0, 0, 0.1)]),
    (advanced_epsilon, NO_EPSILON, [(-1e-9, 1, 0.1), (INF, 1, 0.1), (NAN, 1, 0.1)]),
    (advanced_epsilon, NO_DELTA, [(1.0, 1, 0.0), (1.0, 1, 1.0), (1.0, 1, NAN)]),
    (optimal_epsilon, NO_QUERY, [(1.0, 0, 0.1)]),
    (optimal_epsilon, NO_EPSILON, [(-1e-9, 1, 0.1)]),
    (optimal_epsilon, "delta is finite and not negative", [(1.0, 1, 0.1, -1e-9)]),
    (optimal_epsilon, NO_DELTA, [(1.0, 1, 0.0), (1.0, 1, NAN), (1.0, 1, 1.0)]),
    (adaptive_epsilon, "squares is finite and not negative", [(-1e-9, 0.1), (INF, 0.1)]),
    (adaptive_epsilon, NO_DELTA, [(1.0, 0.0), (1.0, 1.0)]),
    (gaussian_renyi, NO_ORDER, [(-1e-9, 2.0), (INF, 2.0), (1.0, 0.5), (1.0, INF), (NAN, 2.0)]),
    (laplace_renyi, NO_ORDER, [(-1e-9, 2.0), (1.0, 0.5)]),
    (pure_renyi, NO_ORDER, [(NAN, 2.0), (1.0, INF)]),
    (
        renyi_epsilon,
        "delta is above 0 and below 1, and orders are above 1",
        [([1.0], 0.0, [2.0]), ([1.0], 1.0, [2.0]), ([1.0, 1.0], 0.1, [1.0, 2.0])],
    ),
    (renyi_epsilon, "zip() argument 2 is shorter than argument 1", [([1.0], 0.1, [2.0, 3.0])]),
    (amplified, NO_SUM, [(-1e-9, 0.0, 0.5), (INF, 0.0, 0.5), (1.0, -1e-9, 0.5), (1.0, INF, 0.5)]),
    (amplified, NO_RATE, [(1.0, 0.0, 0.0), (1.0, 0.0, 1.1), (1.0, 0.0, NAN)]),
    (sampled_gaussian_renyi, NO_RATE, [(0.0, 1.0, 2.0), (1.1, 1.0, 2.0)]),
    (
        sampled_gaussian_renyi,
        "a positive sigma and an order above 1 are needed",
        [(0.5, 0.0, 2.0), (0.5, INF, 2.0), (0.5, 1.0, 1.0), (0.5, 1.0, INF)],
    ),
    (pure_pair, NO_SIZE, [(0.0,), (INF,), (NAN,)]),
    (laplace_pair, NO_SIZE, [(0.0,), (INF,)]),
    (gaussian_pair, NO_SIZE, [(NAN, 0.1)]),
    (gaussian_pair, "rare is above 0 and below 1", [(1.0, 0.0), (1.0, 1.0)]),
    (sampled_pairs, NO_RATE, [(PURE, 0.0), (PURE, 1.1), (PURE, NAN)]),
    (batch_epsilon_up, NO_BATCH, [([], 0.1), ([(PURE, 0)], 0.1), ([(PURE, 1), (PURE, 0)], 0.1), ([(PURE, 1)], 0.0), ([(PURE, 1)], 1.0)]),
]


def called(case: object) -> str:
    return getattr(case, "__name__", "")


@pytest.mark.parametrize(("function", "said", "wrong"), REFUSED, ids=called)
def test_wrong_numbers_raise(function: Callable[..., object], said: str, wrong: list[tuple[Any, ...]]) -> None:
    for numbers in wrong:
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            function(*numbers)
        assert str(caught.value) == said, numbers


TAKEN: list[tuple[Callable[..., object], tuple[Any, ...], object]] = [
    (classical_sigma, (1, 0.5), math.sqrt(2 * math.log(2.5))),
    (gaussian_delta, (1.0, 0.0), math.erf(0.5 / math.sqrt(2))),
    (gaussian_sigma, (0.0, math.erf(0.5 / math.sqrt(2))), 1.0),
    (laplace_delta, (0.0, 0.0), 0),
    (laplace_delta, (2.0, 0.0), -math.expm1(-1)),
    (randomised_response_epsilon, (0.5, 2), 0),
    (exponential_probabilities, ([1.0, 2.0], 0.0), (0.5, 0.5)),
    (truncated_geometric, (0.0, 1.0, 0), 0),
    (truncated_geometric, (0.0, 1.0, 1), 1),
    (least_units, (0.0, 1.0, 1.0), 1),
    (loose_epsilon, (0.0, 0.5), 0),
    (loose_epsilon, (3.0, 1.0), 3),
    (loose_rho, (ZERO,), 0),
    (bounded_range_rho, (ZERO,), 0),
    (continuous_laplace_rho, (0.0,), 0),
    (group_delta_up, (ONE, ZERO, 1), 0),
    (loose_group_delta_up, (ONE, ONE, 1), 1),
    (group_rho, (ZERO, 1), 0),
    (basic, (ZERO, ZERO, 1), (0, 0)),
    (basic, (ONE, ONE / 2, 3), (3, 3 * ONE / 2)),
    (advanced_epsilon, (0.0, 1, 0.5), 0),
    (advanced_epsilon, (700.0, 1, 0.5), 700 * (math.sqrt(2 * math.log(2)) + math.expm1(700))),
    (adaptive_epsilon, (0.0, 0.5), 0),
    (gaussian_renyi, (0.0, 2.0), 0),
    (gaussian_renyi, (3.0, 1.0), 4.5),
    (laplace_renyi, (0.0, 1.0), 0),
    (pure_renyi, (0.0, 2.0), 0),
    (amplified, (0.0, 0.0, 1.0), (0, 0)),
    (sampled_gaussian_renyi, (1.0, 1.0, 1.5), 0.75),
]


@pytest.mark.parametrize(("function", "numbers", "value"), TAKEN, ids=called)
def test_the_least_and_largest_numbers_are_taken(function: Callable[..., object], numbers: tuple[Any, ...], value: object) -> None:
    assert function(*numbers) == pytest.approx(value, rel=1e-12)
