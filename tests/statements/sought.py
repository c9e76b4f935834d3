"""Statements likely to have a part of a plan: what is rare among random ones is looked for here, so that a new production hides none of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import long
import nodes
from checked import check
from grammar import RELATION, Statement
from relations import views
from worlds import World, world

from dpquery.errors import Position, Refused
from dpquery.plan.release import Release
from dpquery.sql import read

LEAVES = frozenset({Position})
SEEDS = 16
NAMES_OF_FROM = {production.__name__: production for _, production in RELATION}
MADE_BY = {
    **dict.fromkeys(("Group", "Reduction", "Sort", "Whole"), "grouped"),
    **dict.fromkeys(("Windowed", "Placing", "Term", "Frame"), "windowed"),
    **dict.fromkeys(("Lookup", "Public"), "looked_up"),
    "Match": "matched",
    "Semi": "with_partner",
    "Stack": "stacked",
    "Keep": "subquery",
    "Compute": "subquery",
    "Scan": "table",
}
"""The production of FROM that makes a node, or what only such a node has."""


def bounded_nodes() -> set[str]:
    """The classes of what a bounded plan is made of, but for keys that are released, and groups that are compared (led.py)."""
    return {name for name in nodes.required([Release], LEAVES) if "=" not in name} - {"ReleasedKeys", "Leading"}


@cache
def with_views(seed: int) -> World:
    made = world(seed)
    views(made)
    return made


def sought(what: str) -> Iterator[tuple[World, Statement]]:
    """Statements that are likely to show "Node.field=kind": the node above, and the kind below it if that is a node as well."""
    node, below = MADE_BY.get(what.partition(".")[0]), MADE_BY.get(what.rpartition("=")[2])
    for seed in range(SEEDS if node else 0):
        some = long.statements(with_views(seed), NAMES_OF_FROM[str(node)], f"{what} {seed}", NAMES_OF_FROM[below] if below else None)
        yield from ((with_views(seed), one) for one in some)


def is_made(what: str) -> bool:
    """Whether a statement shows it; the first that does is checked as every random statement is."""
    for made, one in sought(what):
        try:
            question = read(one.dp, made.schema)
        except Refused:
            continue
        if what in nodes.shown(question, LEAVES):
            check(made, one, salt=1)
            return True
    return False
