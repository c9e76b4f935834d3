"""Confidence levels and bounds at their ends."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest
from attack_lab import code

from dpquery.backends.grid import grid
from dpquery.engine.session import Session
from dpquery.values.types import Kind, Type


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


@pytest.mark.parametrize(
    "bounds", ["contribution_bounds_per_row => (0, 0), contribution_bounds_per_group => (0, 1)", "contribution_bounds_per_group => (0, 1e30)"]
)
def test_rows_that_are_all_0_on_the_grid_of_their_groups_are_refused(ordinary: Session, bounds: str) -> None:
    """Every row of [-1000, 1000] is 0 on a grid for 1e30: noise alone was sold as the sum."""
    assert code(ordinary, f"SELECT sum(price, {bounds}) FROM orders") == "BAD_BOUNDS"


def test_a_grid_of_nothing_but_0_binds() -> None:
    """More than 18 digits after the point, and bounds of 0: the statement did not bind."""
    with duckdb.connect() as con:
        text = grid("x", Type(Kind.DECIMAL, 30), Fraction(1, 10**30), 0, 0)
        assert con.execute(f"SELECT {text} FROM (SELECT 1.5::DECIMAL(38, 30) AS x)").fetchone() == (0,)
