"""Random statements over random data sets: neighbours, plain SQL, independence of the data."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from checked import check
from relations import views
from statements import statement
from worlds import world

EACH = 8  # statements over one data set
WORLDS = 60
MORE = int(os.environ.get("DPQUERY_STATEMENTS", "4000")) // EACH


def run(seed: int) -> Counter[str]:
    """What became of a data set's statements; an AssertionError names the one that fails."""
    made, said = world(seed), Counter[str]()
    views(made)
    for i in range(EACH):
        one = statement(made, f"{seed}/{i}")
        try:
            said[check(made, one, salt=1000 * seed + i, wholly=i == 0)] += 1
        except Exception as error:
            raise AssertionError(f"world {seed}, statement {i}: {error}\n{one.dp}") from error
    made.con.close()
    return said


@pytest.mark.lemma("L1", "C3", "P6", "M6")
@pytest.mark.parametrize("start", range(0, WORLDS, 10))
def test_random_statements(start: int) -> None:
    said = sum((run(seed) for seed in range(start, start + 10)), Counter[str]())
    assert said["answered"] >= 0.6 * sum(said.values()), said


FOUND = {
    "the mean of units whose values are all NULL": (1, 6, "AVG(free, contribution_bounds_per_group", "answered"),
    "a mean of units without keys": (20, 0, "AVG(free, contribution_bounds_per_group", "answered"),
    "DISTINCT of a star in a branch of a view": (4, 2, "seen_from_here", "BAD_BOUNDS"),
    "DISTINCT of a star in a WITH query": (4, 7, "SELECT DISTINCT * FROM people", "answered"),
    "DISTINCT of a star in a subquery": (41, 0, "SELECT DISTINCT * FROM parts", "capped"),
}
"""What random statements have found: the data set, the statement, a part of its text (a seed that makes another one is noticed), and what the
checks say of it."""


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_once(name: str) -> None:
    seed, i, text, said = FOUND[name]
    made = world(seed)
    views(made)
    one = statement(made, f"{seed}/{i}")
    assert text in one.dp, f"another statement: {one.dp}"
    assert check(made, one, salt=1000 * seed + i, wholly=True) == said


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_more_random_statements(part: int) -> None:
    """As many as DPQUERY_STATEMENTS says."""
    for seed in range(WORLDS + part, WORLDS + MORE, 8):
        run(seed)
