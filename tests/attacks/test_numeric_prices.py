"""Confidence levels and prices at their ends."""

from __future__ import annotations

import pytest
from attack_lab import code

from dpquery.engine.session import Session


@pytest.mark.parametrize("nines", [101, 340, 390])
@pytest.mark.parametrize("noise", ["LAPLACE", "GAUSSIAN"])
def test_a_confidence_next_to_1_is_refused_before_the_charge(ordinary: Session, noise: str, nines: int) -> None:
    """What it left of 1 was 0 as a double: the error bar failed after the charge, and the account counted a time-out."""
    level = "0." + "9" * nines
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(noise = {noise}, confidence_level = {level}) avg(age), sum(age) / count(*) FROM people"
    before = ordinary.budget()
    assert code(ordinary, sql) == "BAD_CONFIDENCE"
    assert ordinary.budget() == before


@pytest.mark.parametrize("noise", ["LAPLACE", "GAUSSIAN"])
def test_one_of_99_nines_is_answered(ordinary: Session, noise: str) -> None:
    many = ", ".join(f"sum(age) / count(*) + {i} * avg(age) + sum(score)" for i in range(3))
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(noise = {noise}, confidence_level = 0.{'9' * 99}) {many} FROM people"
    assert code(ordinary, sql) == "answered"
