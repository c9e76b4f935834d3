"""What the owner allows one statement must hold whatever the analyst asks for beside it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
from attack_lab import code, explained, made, opened

from dpquery.engine.session import Session

POLICY = "budget: {epsilon: 100, delta: 1e-5}\nper_query: {epsilon: 1, max_epsilon: 2, delta: 1e-9}"
COUNT = "SELECT country, count(*), sum(age), avg(score) FROM people GROUP BY country"


@pytest.fixture(scope="module")
def owned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with opened(made(tmp_path_factory.mktemp("policy"), more=POLICY)) as session:
        yield session


@pytest.mark.parametrize("delta", ["0.9", "0.5", "1e-3", "1.00001e-5"])
def test_a_large_delta_does_not_make_a_small_epsilon_of_a_large_price(delta: str, owned: Session) -> None:
    """At a delta of 0.9 an epsilon of 2 was a rho of 3.9, which is an epsilon of 17 at the data set's delta: max_epsilon: 2 was passed."""
    clause = COUNT.replace("SELECT", f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 2, delta = {delta}, noise = gaussian)")
    assert code(owned, COUNT, epsilon=2, delta=delta) == "BAD_DELTA"
    assert code(owned, clause) == "BAD_DELTA"
    assert code(owned, COUNT, rho="0.05", delta=delta) == "BAD_DELTA"


def test_the_whole_delta_of_the_data_set_may_be_asked_for(owned: Session) -> None:
    said = explained(owned, COUNT, epsilon=2, delta="1e-5")
    assert Fraction(said["price"]["delta"]) <= Fraction("1e-5")
    assert code(owned, COUNT, epsilon=2) == "answered"
