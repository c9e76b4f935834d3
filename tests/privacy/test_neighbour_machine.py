"""The neighbour machine: random plans, random data, both adjacencies, counted. It fails where a unit moves further than is claimed or paid for, and
where a plan node, an option or a card exists that no random plan has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from random import Random
from typing import get_args

import nodes
import pytest
import random_plans as rp
from neighbours import Sample, alone, moved, paid, sample, sums

from dpquery.aggregates import CARDS
from dpquery.errors import Position, Refused
from dpquery.mechanisms import Noise
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.rel import CapRows, Private
from dpquery.plan.release import Ask, Enforced, Release
from dpquery.plan.scalar import Column, Interval
from dpquery.privacy import Priced, calibrate, enforced, sensitivities
from dpquery.privacy.contribution import groups_of_a_unit
from dpquery.values.types import Adjacency, Type

PAIRS, BLOCKS = 10_000, 20
MORE, PARTS = int(os.environ.get("DPQUERY_PAIRS", "200000")), 40
FIRST = 1_000_000  # seed of the longer run
NEIGHBOURS = ((Adjacency.ADD_REMOVE, rp.removed), (Adjacency.REPLACE_ONE, rp.replaced), (Adjacency.REPLACE_ONE, rp.replaced))


@dataclass(frozen=True)
class Pair:
    """A pair of neighbours that passed; whether a price covered it too."""

    sample: Sample
    adjacency: Adjacency
    priced: Priced | None


def pairs(seed: int, step: int) -> Iterator[Pair]:
    """Pairs without end, each checked before it is counted."""
    for at in count(seed, step):
        yield from pairs_of(sample(at, shares=True), at)


def pairs_of(s: Sample, at: int | str) -> Iterator[Pair]:
    """The pairs of one sample."""
    limits, before = enforced(s.release), sums(s.release, s.units, s.public)
    claims = {adjacency: sensitivities(limits, adjacency) for adjacency in Adjacency}
    prices = {adjacency: sold(s, adjacency) for adjacency in Adjacency}
    for unit in s.units:
        for adjacency, neighbour in NEIGHBOURS:
            after = sums(s.release, neighbour(s.units, unit, s.random), s.public)
            moves = [moved(before, after, part) for part in range(len(limits.cells))]
            for move, claim in zip(moves, claims[adjacency], strict=True):
                assert move.within(claim), (at, unit, adjacency, move, claim)
            assert limits.selecting is None or alone(before, after) <= groups_of_a_unit(limits), (at, unit, adjacency)
            priced = prices[adjacency]
            assert priced is None or paid(moves, priced), (at, unit, adjacency, moves, priced)
            yield Pair(s, adjacency, priced)


def sold(s: Sample, adjacency: Adjacency) -> Priced | None:
    """The release at the first random price at which it can be had."""
    for _ in range(3):
        try:
            return calibrate(s.release, rp.ask(s.random), adjacency)
        except Refused:
            pass
    return None


def run(seed: int, step: int, wanted: int) -> None:
    passed = list(islice(pairs(seed, step), wanted))
    assert len(passed) == wanted
    assert {one.adjacency for one in passed} == set(Adjacency)
    assert sum(one.priced is not None for one in passed) >= 0.8 * wanted


@pytest.mark.lemma("C3", "C8", "C9", "P6")
@pytest.mark.parametrize("block", range(BLOCKS))
def test_c3_random_releases_stay_within_their_claims(block: int) -> None:
    """Random statements and data: one unit removed or replaced moves the pre-noise vector by at most the claimed L0, Linf, L1, L2^2 and rho, lets at
    most as many groups come and go as claimed, and loses no more than the price. 10,000 pairs in all."""
    assert PAIRS % BLOCKS == 0
    assert PAIRS >= 10_000
    run(block, BLOCKS, PAIRS // BLOCKS)


@pytest.mark.audit
@pytest.mark.parametrize("part", range(PARTS))
def test_many_more_random_releases(part: int, record_property: Callable[[str, object], None]) -> None:
    """As many as DPQUERY_PAIRS says; 200,000 without it."""
    run(FIRST + part, PARTS, MORE // PARTS)
    record_property("pairs", MORE // PARTS)


# ---- what the random plans have ------------------------------------------------------------------------------------------------------

LEAVES = frozenset({Type, Column, Interval, Position})
ROOTS = (Release, Enforced, Ask, AggregateAsk, Contributions, Noise)
NEVER = {
    **dict.fromkeys(("Scan.columns=empty", "Public.columns=empty"), "a table has columns"),
    **dict.fromkeys(("Compute.items=empty", "Call.args=empty", "Case.branches=empty"), "none is made empty"),
    "Aggregate.parts=empty": "every card has parts",
    **dict.fromkeys(
        (f"{node}.input=CapRows" for node in ("Keep", "Compute", "CapRows", "Group", "Windowed", "UnitTable")), "caps stand right below joins"
    ),
    **dict.fromkeys(("Semi.left=CapRows", "Semi.right=CapRows"), "a semi join multiplies nothing, and so caps nothing"),
    **dict.fromkeys(("Stack.left=CapRows", "Stack.right=CapRows"), "nor does a stack"),
    **dict.fromkeys((f"Stack.{field}=empty" for field in ("columns", "ours", "theirs")), "a branch has columns"),
    "Lookup.fanout=None": "a release knows every fan-out",
    "Contributions.listed=given": "groups are counted where a draft is bound, and the cards told: test_quantiles.py asks one",
    **dict.fromkeys(("Quantile.widths=empty", "Quantile.fractions=empty"), "a tree has bins, and is asked for something"),
    "AggregateAsk.position=Position": "random plans have no text",
}
"""Options that no release can have, each with the reason."""


def made() -> list[Sample]:
    """The samples of `make test`."""
    each = PAIRS // BLOCKS // (4 * len(NEIGHBOURS))
    return [sample(block + BLOCKS * i, shares=True) for block in range(BLOCKS) for i in range(each)]


def of(s: Sample) -> set[str]:
    """What a sample shows."""
    asks, priced = [rp.ask(s.random) for _ in range(4)], sold(s, Adjacency.ADD_REMOVE)
    values = (s.release, enforced(s.release), s.plan.asks, s.plan.contributions, *asks, priced and priced.noises)
    return {one for value in values for one in nodes.shown(value, LEAVES)}


RELATIONS = tuple(made.__name__ for made in get_args(Private) if made is not CapRows)
MADE_BY = {
    **{name: (name,) for name in RELATIONS},
    "CapRows": ("Match", "Lookup"),
    "Public": ("Lookup", "Semi"),
    **dict.fromkeys(("Reduction", "Whole"), ("Group", "Windowed")),
    **dict.fromkeys(("Placing", "Term", "Frame"), ("Windowed",)),
}
"""The nodes that a draft needs for a class to be in it; of other classes any draft will do."""
TRIES = 300


def sought(what: str) -> Iterator[Sample]:
    """Samples that are likely to show "Node.field=kind": the node, or one that has it, on top, and the kind below it if that is a node too."""
    node, below = what.partition(".")[0], what.rpartition("=")[2]
    for i in range(TRIES):
        seed = f"{what} {i}"
        if node == "UnitTable" and below in RELATIONS:
            yield sample(seed, made=lambda world: rp.over(world, below))
        elif node in MADE_BY:
            top = MADE_BY[node][i % len(MADE_BY[node])]
            held = below if below in RELATIONS else Random(seed).choice(RELATIONS)
            yield sample(seed, made=lambda world, top=top, held=held: rp.over(world, top, lambda: rp.over(world, held)))  # type: ignore[misc]
        else:
            yield sample(seed, shares=True)


def found_for(what: str) -> Sample | None:
    """The first sample that shows it; its neighbours stay within the claims."""
    for s in sought(what):
        if what in of(s):
            assert list(pairs_of(s, what))
            return s
    return None


def test_random_plans_have_every_node_and_option() -> None:
    """What is rare among all of them is looked for among those made for it, so that a new production hides none of the others."""
    found = {one for s in made() for one in of(s)}
    required = nodes.required(ROOTS, LEAVES)
    missed = [one for one in sorted(required - found - NEVER.keys()) if found_for(one) is None]
    assert missed == [], "the random plans never have these: teach random_plans.py to make them"
    assert sorted(NEVER.keys() & found) == [], "these are said to be impossible"
    assert sorted(NEVER.keys() - required) == [], "these do not exist any more"


PAIRED = tuple(
    one
    for one in sorted(nodes.required((Release,), LEAVES) - NEVER.keys())
    if one.partition(".")[0] in (*RELATIONS, "UnitTable", "CapRows") and one.rpartition("=")[2] in RELATIONS
)


@pytest.mark.lemma("L1", "C3", "P6")
@pytest.mark.parametrize("pair", PAIRED)
def test_each_node_stands_on_each(pair: str) -> None:
    """Every operator right below every other one, whatever chance makes of them elsewhere: neighbours stay within the claims and the price."""
    assert found_for(pair) is not None, "no random plan has one on the other"


def test_random_plans_have_every_card_with_every_option() -> None:
    """Each combination of argument, FILTER, bounds and row weights that a card takes."""
    found = {
        rp.Options(
            ask.card,
            *(given is not None for given in (ask.argument, ask.where, ask.per_group, ask.per_row, ask.other)),
            weights=bool(weights),
        )
        for s in made()
        for weights in [s.plan.contributions.weights]
        for ask in s.plan.asks
    }
    assert {options.card for options in rp.ACCEPTED} == set(CARDS), "a card takes none of the options that random plans know"
    assert not set(rp.ACCEPTED) - found


def test_what_no_plan_has_is_missed() -> None:
    """The check itself: without a node, an option or a constant among the plans, it names it."""
    some = made()[:800]
    found = {one for s in some for one in nodes.shown(s.release, LEAVES)}
    given = {one for s in some for one in nodes.shown(s.plan.contributions, LEAVES)}
    for one in (
        "RowWeights",
        "Match.single=True",
        "GroupCap.idle=UNIT_KEY",
        "Match.left=Lookup",
        "PrivateKeys.minimum=other",
        "UnitTable.keys=empty",
    ):
        assert one in nodes.required(ROOTS, LEAVES)
        assert one in found
        assert one not in given
