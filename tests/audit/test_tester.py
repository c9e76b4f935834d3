"""The testers themselves: exact bounds, and answers known from arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp, log

import numpy as np
import pytest
from audit_tester import Claim, by_components, by_histogram, found, judged, lower, upper


def test_clopper_pearson_solves_the_binomial_tail() -> None:
    assert upper(0, 1000, 1e-6) == pytest.approx(1 - exp(log(1e-6) / 1000), rel=1e-6)
    assert upper(5, 5, 1e-6) == 1
    assert lower(0, 5, 1e-6) == 0
    p = Fraction(upper(7, 60, 0.01))
    assert float(sum(comb(60, k) * p**k * (1 - p) ** (60 - k) for k in range(8))) == pytest.approx(0.01, rel=1e-6)
    assert 0.46 < lower(500, 1000, 0.01) < 0.5 < upper(500, 1000, 0.01) < 0.54


def test_randomised_response_is_found_to_cost_what_it_costs() -> None:
    """Two answers, three times likelier under one data set each: epsilon ln 3. The bound comes within a tenth, and never above."""
    n = 200_000
    one, two = (np.repeat([1.0, 0.0], [share, n - share])[np.random.default_rng().permutation(n)] for share in (3 * n // 4, n // 4))
    result = found(one, two, Claim("rr", 1.0, 0.0))
    assert log(3) - 0.1 < result.epsilon < log(3)
    assert result.broken
    assert not found(one, two, Claim("rr", 1.2, 0.0)).broken


def test_an_event_of_one_data_set_alone_shows_delta() -> None:
    n = 100_000
    one = np.repeat([np.inf, 0.0], [n // 50, n - n // 50])[np.random.default_rng().permutation(n)]
    result = found(one, np.zeros(n), Claim("delta", 1.0, 0.01))
    assert 0.01 < result.delta < 0.02
    assert result.broken
    assert not found(one, np.zeros(n), Claim("delta", 1.0, 0.03)).broken


def test_a_law_that_nobody_told_of_is_learned() -> None:
    """Two columns, neither of which is ordered by likelihood, and one that is missing now and then."""
    random, n = np.random.default_rng(), 60_000
    inner = np.where(random.random(n) < 0.8, random.normal(0, 1, n), random.normal(5, 1, n))
    outer = np.where(random.random(n) < 0.2, random.normal(0, 1, n), random.normal(5, 1, n))
    one = np.column_stack([abs(inner), np.where(random.random(n) < 0.6, np.nan, 1.0)])
    two = np.column_stack([abs(outer), np.where(random.random(n) < 0.3, np.nan, 1.0)])
    (result,) = judged(*by_histogram(one, two), [Claim("histogram", 1.0, 0.0)])
    assert log(4) < result.epsilon < log(8)


def test_noise_that_columns_share_is_seen_by_components() -> None:
    """Each column by itself costs little; what is left between them is next to no noise."""
    random, n = np.random.default_rng(), 20_000
    shared = random.laplace(0, 2, (2, n, 1)) * np.array([1.0, 3.0])
    one, two = np.round(shared + np.array([[[0, 0]], [[1, 1]]]))
    claim = Claim("shared", 1.0, 0.0)
    assert judged(*by_components(one, two), [claim])[0].epsilon > 3
    apart = [np.round(random.laplace(0, 4, (n, 2)) + shift) for shift in (0, 1)]
    assert not judged(*by_components(*apart), [claim])[0].broken


def test_equal_laws_show_nothing() -> None:
    random, n = np.random.default_rng(), 40_000
    one, two = random.normal(0, 1, (n, 3)), random.normal(0, 1, (n, 3))
    (result,) = judged(*by_histogram(one, two), [Claim("nothing", 0.01, 0.0)])
    assert not result.broken
