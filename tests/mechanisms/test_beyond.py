"""M9 against sums over all outcomes: the probability that any of several draws goes beyond its width."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import mpmath as mp
import pytest
from exact_laws import GAUSSIAN, LAPLACE, noise, real, total_weight, weight

from dpquery.mechanisms import Noise, beyond_up, half_width

SMALL = [noise(LAPLACE, Fraction(2, 3)), noise(LAPLACE, 3), noise(GAUSSIAN, Fraction(3, 2)), noise(GAUSSIAN, 4)]


def inside(law: Noise, width: int) -> mp.mpf:
    return mp.fsum(weight(law, z) for z in range(-width, width + 1)) / total_weight(law)


@pytest.mark.lemma("M9")
@pytest.mark.parametrize("widths", [(0, 3), (2, 2), (5, 0), (9, 14)])
def test_beyond_is_the_probability_that_any_draw_goes_beyond_its_width(widths: tuple[int, int]) -> None:
    with mp.workdps(50):
        for (one, other), draws in product(product(SMALL, SMALL), (1, 2, 7)):
            exact = 1 - inside(one, widths[0]) ** draws * inside(other, widths[1])
            found = real(beyond_up([(one, widths[0], draws), (other, widths[1], 1)]))
            assert 0 <= found - exact <= mp.mpf(10) ** -14


@pytest.mark.lemma("M9")
def test_beyond_is_summed_over_every_joint_outcome() -> None:
    """Two draws of one law and one of another, outcome by outcome."""
    first, second = SMALL[0], SMALL[2]
    with mp.workdps(50):
        joint = mp.fsum(weight(first, a) * weight(first, b) * weight(second, c) for a, b, c in product(range(-2, 3), range(-2, 3), range(-3, 4)))
        exact = 1 - joint / (total_weight(first) ** 2 * total_weight(second))
        assert 0 <= real(beyond_up([(first, 2, 2), (second, 3, 1)])) - exact <= mp.mpf(10) ** -14


@pytest.mark.parametrize("law", SMALL, ids=str)
@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999999"])
def test_of_one_draw_it_is_the_half_width(law: Noise, confidence: str) -> None:
    width, doubt = half_width(law, Fraction(confidence)), 1 - Fraction(confidence)
    assert beyond_up([(law, width, 1)]) <= doubt
    assert width == 0 or beyond_up([(law, width - 1, 1)]) > doubt


def test_many_draws_are_one_by_one() -> None:
    law = SMALL[1]
    one_by_one = beyond_up([(law, 20, 1)] * 1000)
    assert float(beyond_up([(law, 20, 1000)])) == pytest.approx(float(one_by_one), rel=1e-12)
    assert beyond_up([]) == 0
    assert beyond_up([(law, 20, 0)]) == 0
    assert beyond_up([(law, 0, 10**6)]) == 1 or beyond_up([(law, 0, 10**6)]) > Fraction(999999, 10**6)
    with pytest.raises(ValueError, match="not negative"):
        beyond_up([(law, -1, 1)])
