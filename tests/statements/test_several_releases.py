"""Random statements of several releases: neighbours of each, one price, and the plain engine's answer where noise is off."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from checked import REFUSALS
from grammar import Statement
from inside import Inside
from relations import views
from several import ABOVE, OTHERS, PRICES, combined, expected, multiset, prepared, silent, stands, usable
from statements import statement
from worlds import MAIN, World, world

from dpquery.errors import Refused
from dpquery.plan.release import Release

PER_UNIT = frozenset(
    {"AGGREGATE_CLAUSE", "FULL_JOIN", "NAMED_ARGUMENT", "QUANTILE", "RAW_ROWS", "RELEASED_JOIN", "SUBQUERY_ABOVE_NOISE", "UNKNOWN_TABLE", "WINDOW"}
)
"""What a statement may be refused for besides, where one inside it is no release: a key of it fixes the unit."""
EACH, TRIED = 1, 16  # answered, and tried for that


@cache
def data_set(seed: int) -> World:
    made = world(seed)
    views(made)
    return made


def found(made: World, name: str) -> Statement:
    """A random statement that can stand inside another one."""
    return next(one for i in range(100) if usable(one := statement(made, f"{name}/{i}")))


def fixed(one: Statement) -> bool:
    """Whether a key can fix the unit: one value of it is one unit's."""
    return any(key.value.bare is not None and key.value.bare.ties for key in one.keys)


def shape(release: Release) -> tuple[int, int]:
    """How many keys and how many aggregates it has."""
    return len(release.table.keys), len(release.aggregates)


@pytest.mark.lemma("P8", "P9", "P10")
@pytest.mark.parametrize("above", range(len(ABOVE)))
def test_random_statements_of_several_releases(above: int) -> None:
    said = Counter[str]()
    for i in range(TRIED):
        if said["answered"] == EACH:
            break
        seed = 100 * above + i
        made = data_set(seed % 4)
        one, other = found(made, f"of several {seed}/a"), found(made, f"of several {seed}/b")
        several = combined(ABOVE[above], one, other)
        backend = Inside(made, MAIN)
        try:
            answers, known = [], set[tuple[int, int]]()
            for each in (one, other):
                alone = prepared(made, backend, each.dp, seed)
                answers.append(silent(made, alone))
                known |= set(map(shape, alone.releases))
        except Refused as refused:
            said[refused.code] += 1
            continue
        try:
            ready = prepared(made, backend, several.dp, seed)
        except Refused as refused:
            per_unit = refused.code.endswith("_IN_SUBQUERY") or refused.code in PER_UNIT
            if not (per_unit and any(map(fixed, (one, other)))) and refused.code not in REFUSALS | PRICES | OTHERS:
                raise AssertionError(f"{refused.code}: {refused.message}\n{several.dp}") from None
            said[refused.code] += 1
            continue
        if any(block.feeds for block in ready.question.blocks) or not known.issuperset(map(shape, ready.releases)):
            # rows by unit, joined with a release of the other, or counted
            said["per unit"] += 1
            continue
        stands(made, ready)
        got, wanted = silent(made, ready), expected(several, dict(zip(("first", "second"), answers, strict=True)))
        rows = list(zip(*(column.to_pylist() for column in got.columns), strict=True))
        assert multiset(rows) == multiset(wanted), several.dp
        said["answered"] += 1
    assert said["answered"], said
