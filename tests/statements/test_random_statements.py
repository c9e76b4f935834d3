"""Random statements over random data sets: neighbours, plain SQL, independence of the data."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import nodes
import pytest
from checked import check, prepared
from grammar import AGGREGATE, Grammar, Statement
from inside import Inside
from relations import table, views
from sought import LEAVES, bounded_nodes, sought
from statements import mean, over, statement
from worlds import World, world

from dpquery.errors import Refused

EACH = 8  # statements over one data set
WHOLLY = (0, 2)  # those of which all that is said before private rows are read is compared with the neighbours'
WORLDS = 60
MORE = int(os.environ.get("DPQUERY_STATEMENTS", "4000")) // EACH


KEPT: dict[int, list[Statement]] = {}


def those(made: World, seed: int) -> list[Statement]:
    """A data set's statements; of those that every run looks at, made once."""
    found = KEPT.get(seed) or [statement(made, f"{seed}/{i}") for i in range(EACH)]
    if seed < WORLDS:
        KEPT[seed] = found
    return found


def run(seed: int) -> Counter[str]:
    """What became of a data set's statements; an AssertionError names the one that fails."""
    made, said = world(seed), Counter[str]()
    views(made)
    for i, one in enumerate(those(made, seed)):
        try:
            said[check(made, one, salt=1000 * seed + i, wholly=i in WHOLLY)] += 1
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
def test_the_statements_that_must_not_depend_on_the_data_have_every_node() -> None:
    """Every node, part, cell and source of keys that a plan can have; lists of released values have a test of their own."""
    missing = bounded_nodes()
    for seed in range(WORLDS):
        made = world(seed)
        views(made)
        for i in WHOLLY:
            with suppress(Refused):
                missing -= {*nodes.shown(prepared(made, Inside(made), those(made, seed)[i].dp, 1).release, LEAVES)}
        made.con.close()
        if not missing:
            return
    assert [name for name in sorted(missing) if not is_wholly(name)] == [], "no statement has these"


def is_wholly(name: str) -> bool:
    """Whether a statement that is made for a node that chance left out shows it, and does not depend on the data."""
    for made, one in sought(name):
        with suppress(Refused):
            if name in nodes.shown(prepared(made, Inside(made), one.dp, 1).release, LEAVES):
                return check(made, one, salt=1, wholly=True) == "answered"
    return False


FOUND = {
    "the mean of units whose values are all NULL": "AVG(free, contribution_bounds_per_group",
    "DISTINCT of a star in a branch of a view": "seen_from_here",
    "DISTINCT of a star in a WITH query": "SELECT DISTINCT * FROM people",
    "DISTINCT of a star in a subquery": "SELECT DISTINCT * FROM parts",
}
"""What random statements have found, and a part of the text of such a statement."""


def hopeless(name: str, seed: int) -> bool:
    """Whether the data set's statements are known, and none of them is so."""
    return not FOUND[name].startswith("AVG") and seed in KEPT and not any(FOUND[name] in one.dp for one in KEPT[seed])


def alike(made: World, name: str, seed: int) -> Iterator[Statement]:
    """Random statements that are so, and for a mean those over a table that ask for nothing else: others are too rare."""
    some = list(those(made, seed))
    if FOUND[name].startswith("AVG"):
        kept = list(AGGREGATE)
        AGGREGATE[:] = [(1, mean)]
        try:
            some += [over(g, table(g)) for i in range(4 * EACH) for g in [Grammar(Random(f"{name} {seed}/{i}"), made)]]
        finally:
            AGGREGATE[:] = kept
    yield from (one for one in some if FOUND[name] in one.dp)


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_once(name: str) -> None:
    """The first of the random statements that are so, up to one that is answered."""
    said = set[str]()
    for seed in (seed for seed in range(WORLDS) if not hopeless(name, seed)):
        made = world(seed)
        views(made)
        for i, one in enumerate(alike(made, name, seed)):
            if "answered" not in said:
                said.add(check(made, one, salt=1000 * seed + i, wholly=True))
        made.con.close()
        if "answered" in said:
            return
    raise AssertionError(f"no data set answers such a statement: {said}")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_more_random_statements(part: int) -> None:
    """As many as DPQUERY_STATEMENTS says."""
    for seed in range(WORLDS + part, WORLDS + MORE, 8):
        run(seed)
