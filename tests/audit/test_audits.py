"""End to end: what two neighbouring data sets release, held against what is charged for it.

The exact sums are the engine's, of two data sets in DuckDB that one adversarial unit makes as unlike as it can; the noise is the product's. Three
testers look for an event that is likelier under one of them than the claim allows. What they would see is stated with each: weaker noise, a lower
threshold.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from time import process_time

import pytest
from audit_releases import Audit, audited, lowered, weaker
from audit_shapes import ALONE, PRIVATE, SHAPES, Pair, alone, loss, pairs
from audit_tester import MOST_BOUNDS, hardest, line

ADJACENCIES = ("add_remove", "replace_one")
NAMES = (*SHAPES, *ALONE)
FEW, MANY = 8_000, 200_000  # releases of either data set
MULTIPLES = tuple(Fraction(m, 20) for m in (10, 12, 14, 15, 16, 17, 18, 19))
LOWERINGS = (8, 6, 4, 3, 2, 1)
Pairs = Callable[[str], dict[str, Pair]]
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    """The pairs of an adjacency, made on first use."""
    known: dict[str, dict[str, Pair]] = {}

    def get(adjacency: str) -> dict[str, Pair]:
        if adjacency not in known:
            known[adjacency] = pairs(tmp_path_factory.mktemp("audit"), adjacency)
        return known[adjacency]

    return get


def said(audit: Audit) -> list[str]:
    """The claims that were refuted."""
    return [
        f"{how}, {f.claim.name}: epsilon {f.epsilon:.3f} of {f.claim.epsilon:.3f}, delta {f.delta:.5f} of {f.claim.delta:.5f}"
        for how, found in (("likelihood", audit.likelihood), ("histogram", audit.histogram), ("components", audit.components))
        for f in found
        if f.broken
    ]


@pytest.mark.parametrize("adjacency", ["add_remove", pytest.param("replace_one", marks=pytest.mark.audit)])
def test_no_release_tells_more_than_it_costs(made: Pairs, adjacency: str) -> None:
    """All shapes, from few releases."""
    found = made(adjacency)
    unlike(found, adjacency)
    assert not {name: broken for name, pair in found.items() if (broken := said(audited(pair, FEW)))}


def test_a_third_of_the_noise_is_found_out(made: Pairs) -> None:
    """Power: noise of a third of the scale, charged as before, in every shape."""
    third = {name: (pair, weaker(pair.prepared.blocks[0].priced, Fraction(1, 3))) for name, pair in made("add_remove").items() if name not in ALONE}
    assert not [name for name, (pair, drawn) in third.items() if not audited(pair, FEW, drawn).broken]


def test_a_threshold_too_low_is_found_out(made: Pairs) -> None:
    """Power on delta: groups of a lone unit show too often."""
    low = {name: (pair, lowered(pair.prepared.blocks[0].priced, 10)) for name, pair in made("add_remove").items() if name in ALONE}
    assert not [name for name, (pair, drawn) in low.items() if not audited(pair, FEW, drawn).broken]


@pytest.mark.audit
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", NAMES)
def test_nor_do_many_releases_find_it_out(made: Pairs, adjacency: str, name: str, record_property: Record) -> None:
    pair, start = made(adjacency)[name], process_time()
    audit = audited(pair, MANY)
    seconds = process_time() - start
    seen = least_lowering(pair) if name in ALONE else least_weakening(pair)
    testers = {"likelihood": audit.likelihood, "histogram": audit.histogram, "components": audit.components}
    record_property("audit", json.dumps(line(name, adjacency, pair.names, testers, MANY, seen, seconds)))
    assert not said(audit)
    assert seen is not None, "half the noise, or a threshold lower by 8, would not be found out"


def least_weakening(pair: Pair) -> str | None:
    """The largest multiple of the noise that is found out; None where half of it is not."""
    multiple = hardest(MULTIPLES, lambda m: audited(pair, MANY, weaker(pair.prepared.blocks[0].priced, m)).broken)
    return None if multiple is None else f"{float(multiple):g} of the noise"


def least_lowering(pair: Pair) -> str | None:
    """The least lowering of the threshold that is found out; None where it is above 8."""
    by = hardest(LOWERINGS, lambda by: audited(pair, MANY, lowered(pair.prepared.blocks[0].priced, by)).broken)
    return None if by is None else f"threshold less {by}"


# Replacing moves each aggregate of these as far as it is charged, but not all of them at once: a sum swings most where a count stays.
NOT_REACHED = {
    "mean",
    "three aggregates",
    "epsilon 4",
    "explicit shares",
    "Gaussian",
    "price in rho",
    "row weights",
    "hidden count of the threshold",
    "subquery",
}


def unlike(found: dict[str, Pair], adjacency: str) -> None:
    """The pairs are the worst there are: the unit moves sums as far as is charged, and is alone in as many groups as it may be in."""
    assert {name.partition(":")[0] for name in found if name in ALONE} == set(PRIVATE)
    assert all(alone(found[name]) == 2 for name in ALONE)
    short = {name for name, pair in found.items() if name not in ALONE and loss(pair) < 0.999 * charged(pair)}
    assert short == (NOT_REACHED if adjacency == "replace_one" else set())


def charged(pair: Pair) -> float:
    price = pair.prepared.blocks[0].priced.price
    return float(price.epsilon if price.epsilon is not None else price.rho)


def test_false_alarms_are_as_rare_as_is_said() -> None:
    """Few releases and many, three testers, two directions, two events and two bounds for each of at most four claims; the answers' audits,
    and those of at most twelve choices, by one tester."""
    choices = 2 * 1 * 2 * 2 * 2 * 4 * len(ADJACENCIES) * 12
    assert 2 * 3 * 2 * 2 * 2 * 4 * len(ADJACENCIES) * len(NAMES) + 5 * 2 * 2 * 2 * 4 + choices <= MOST_BOUNDS
