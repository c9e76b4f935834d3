"""The neighbour tests can fail: each wrong rule below is caught on the same random statements that the right ones pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import interpreter
import pytest
import random_plans as rp
from neighbours import moved, sample, sums

from dpquery.plan.rel import CapRows, Compute, Group, Join, Keep, Lookup, Match, Private, Semi, Stack, output
from dpquery.plan.release import Clamp, GroupCap, HeavyMean, Idle, Part, Release, RowWeights
from dpquery.privacy import Sensitivity, enforced, resolve, sensitivities
from dpquery.privacy.locality import depends_on, fixed
from dpquery.values.types import Adjacency

Change = Callable[[Release], Release]


def violations(
    run: Change,
    claim: Callable[[Sensitivity], Sensitivity] = lambda s: s,
    seeds: range = range(250),
    made: Callable[[rp.World], Private] | None = None,
) -> int:
    """How often one removed unit moves what `run` makes of a release further than is claimed of the release itself."""
    found = 0
    for seed in seeds:
        s = sample(seed, made=made)
        claims = [claim(c) for c in sensitivities(enforced(s.release), Adjacency.ADD_REMOVE)]
        changed = run(s.release)
        before = sums(changed, s.units, s.public)
        for unit in s.units:
            after = sums(changed, rp.without(s.units, unit), s.public)
            found += sum(1 for part, c in enumerate(claims) if not moved(before, after, part).within(c))
    return found


def same(release: Release) -> Release:
    return release


def without_group_cap(release: Release) -> Release:
    bounding = release.table.bounding
    return release if isinstance(bounding, RowWeights) else replace(release, table=replace(release.table, bounding=GroupCap(9, Idle.ALL_KEYS)))


def parts(release: Release, change: Callable[[Part], Part]) -> Release:
    return replace(release, table=replace(release.table, parts=tuple(change(p) for p in release.table.parts)))


def without_clamps(release: Release) -> Release:
    return parts(release, lambda p: replace(p, cell=Clamp(-(10**9), 10**9)) if isinstance(p.cell, Clamp) else p)


def without_heavy_rule(release: Release) -> Release:
    return parts(release, lambda p: replace(p, cell=replace(p.cell, rows=99)) if isinstance(p.cell, HeavyMean) else p)


def one_more_row_weight(release: Release) -> Release:
    bounding = release.table.bounding
    return replace(release, table=replace(release.table, bounding=RowWeights(bounding.rows + 1))) if isinstance(bounding, RowWeights) else release


def test_the_right_rules_pass() -> None:
    assert violations(same) == 0


@pytest.mark.parametrize("mutant", [without_group_cap, without_clamps, without_heavy_rule, one_more_row_weight], ids=lambda m: m.__name__)
def test_a_bound_that_is_not_enforced_is_caught(mutant: Change) -> None:
    assert violations(mutant) > 0


@pytest.mark.parametrize("norm", ["l0", "linf", "l1", "l2_squared"])
def test_a_claim_that_is_one_too_low_is_caught(norm: str) -> None:
    assert violations(same, lambda s: replace(s, **{norm: getattr(s, norm) - 1})) > 0


def multiplied(world: rp.World) -> Private:
    """A join that is said to multiply no rows, and does: each of up to three with each of as many."""
    pair = (CapRows(world.scan("orders"), 3) for _ in range(2))
    return Match(*pair, world.random.choice([Join.INNER, Join.LEFT]), None, single=True)


def test_a_match_that_is_single_by_mistake_costs_accuracy_alone() -> None:
    """L9 counts too few rows of it; what is clamped by that count is clamped in the plan, and sums move no further."""
    seeds = range(60)
    rows = [Counter(unit for unit, _ in interpreter.rows(s.release.table.input, s.data)) for s in (sample(seed, made=multiplied) for seed in seeds)]
    assert max(most for each in rows for most in each.values()) == 9
    assert violations(same, seeds=seeds, made=multiplied) == 0


def across(rel: Private, wrong: Callable[[Private], frozenset[int] | None]) -> frozenset[int]:
    """Fixed columns as L10 finds them, but for what `wrong` says of a node."""
    said = wrong(rel)
    if said is not None:
        return said
    match rel:
        case Keep(input=below) | CapRows(input=below) | Semi(left=below):
            return across(below, wrong)
        case Compute(input=below, items=items):
            known = across(below, wrong)
            return known | {c.id for c, v in items if depends_on(v, known)}
        case Lookup(input=below):
            return across(below, wrong)
        case Match(left=left, right=right, join=join):
            return across(left, wrong) | (across(right, wrong) if join is Join.INNER else frozenset())
        case _:
            return fixed(rel)


def null_side(rel: Private) -> frozenset[int] | None:
    return across(rel.left, null_side) | across(rel.right, null_side) if isinstance(rel, Match) else None


def any_lookup(rel: Private) -> frozenset[int] | None:
    return across(rel.input, any_lookup) | {c.id for c in rel.public.columns} if isinstance(rel, Lookup) else None


def either_branch(rel: Private) -> frozenset[int] | None:
    """What depends on the unit in the left branch of a stack, whatever the right one has in its place."""
    if not isinstance(rel, Stack):
        return None
    known = across(rel.left, either_branch)
    return frozenset(c.id for c, value in zip(rel.columns, rel.ours, strict=True) if depends_on(value, known))


def every_group(rel: Private) -> frozenset[int] | None:
    """What holds of one group of a unit, for all of its groups."""
    return frozenset(c.id for c in output(rel)) if isinstance(rel, Group) else None


def partners(rel: Private) -> frozenset[int] | None:
    """Rows with a partner as if there were one of each unit."""
    return frozenset(c.id for c in output(rel)) if isinstance(rel, Semi) and not rel.negated else None


@pytest.mark.parametrize("wrong", [null_side, any_lookup, either_branch, every_group, partners], ids=lambda w: w.__name__)
def test_a3_a_cap_that_is_idle_by_a_wrong_proof_is_caught(wrong: Callable[[Private], frozenset[int] | None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "fixed", lambda rel: across(rel, wrong))
    assert any(violations(same, seeds=range(first, first + 50)) for first in range(0, 5000, 50))
