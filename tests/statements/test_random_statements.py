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


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_more_random_statements(part: int) -> None:
    """As many as DPQUERY_STATEMENTS says."""
    for seed in range(WORLDS + part, WORLDS + MORE, 8):
        run(seed)
