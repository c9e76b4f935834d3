"""Which way quantiles are found where the statement names no noise: whichever errs less, decided without data."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
import random_plans as rp
from people import DATA, EMPTY, WITHOUT, made, opened

from dpquery.plan.draft import AggregateAsk, Contributions, Draft
from dpquery.plan.rel import Filling
from dpquery.plan.release import Ask, Key, Mechanism, Release
from dpquery.plan.scalar import Interval
from dpquery.privacy import Facts, bound, calibrate, settled
from dpquery.privacy.nearer import _why
from dpquery.values.types import INTEGER, Adjacency

ADD = Adjacency.ADD_REMOVE
HALF, DECILE = Fraction(1, 2), Fraction(9, 10)
MICRO = Fraction(1, 10**6)
PURE, RHO = Ask(Fraction(0), Fraction(1)), Ask(MICRO, None, Fraction(1, 50))
WORLD = rp.World(Random(0))
ORDERS = WORLD.scan("orders")


def draft(*fractions: Fraction, high: int = 99_999, card: str = "quantile", keys: tuple[Key, ...] = ()) -> Draft:
    """Quantiles of the same values, as a list where there are several."""
    bounds = Interval(Fraction(0), Fraction(high))
    asked = AggregateAsk("a0", "q", card, ORDERS.columns[3].column, None, None, bounds, fractions=fractions, listed=len(fractions) > 1)
    return Draft(ORDERS, keys, (), (asked,), Contributions(1, 1, 1000))


def way(release: Release) -> str:
    return "rank" if release.ranked else "tree"


@pytest.mark.lemma("R6")
@pytest.mark.parametrize(
    ("given", "ask", "expected"),
    [
        (draft(HALF), PURE, "rank"),
        (draft(HALF), RHO, "rank"),
        (draft(DECILE), PURE, "tree"),
        (draft(Fraction(1, 4)), PURE, "tree"),
        (draft(Fraction(1, 4)), RHO, "rank"),
        (draft(HALF, DECILE), PURE, "tree"),
        (draft(*(Fraction(k, 20) for k in range(1, 20))), RHO, "tree"),
        (draft(HALF, high=100), PURE, "tree"),  # of so few values the tree needs but two levels
        (draft(HALF, high=9), RHO, "tree"),
        (draft(HALF), replace(PURE, epsilon=Fraction(20)), "tree"),  # which is off by less than the half row between two places
        (draft(HALF), replace(PURE, noise=Mechanism.LAPLACE), "tree"),
        (draft(HALF), replace(RHO, noise=Mechanism.GAUSSIAN), "tree"),
        (draft(HALF), Ask(Fraction(1), Fraction(10**20)), "tree"),
        (draft(DECILE, card="quantile_by_rank"), PURE, "rank"),  # the statement names it
        (draft(HALF + Fraction(1, 10**6)), PURE, "rank"),
        (draft(HALF + Fraction(1, 10**6 + 1)), PURE, "tree"),  # too fine for ranks
    ],
)
def test_whichever_errs_less(given: Draft, ask: Ask, expected: str) -> None:
    assert way(settled(given, Facts({}), ask, ADD)) == expected


def test_the_release_is_that_of_its_card() -> None:
    """But for what it says, and how often the error bar may miss."""
    for given, ask in ((draft(HALF), PURE), (draft(DECILE), PURE)):
        made = settled(given, Facts({}), ask, ADD)
        card = made.aggregates[0].card
        plain = bound(replace(given, asks=tuple(replace(one, card=card) for one in given.asks)), Facts({}))
        assert made.table == plain.table
        assert calibrate(made, ask, ADD) == calibrate(plain, ask, ADD)
        assert made.aggregates[0].notes[:-1] == plain.aggregates[0].notes


def test_it_says_how_and_why() -> None:
    (one,) = settled(draft(HALF), Facts({}), PURE, ADD).aggregates
    assert one.notes[-1] == (
        "chosen by rank: off by about 3.5 rows, error bar about ±34.9 rows; read off a tree of noisy counts it would be 6.67 and ±26.1"
    )
    (one,) = settled(draft(DECILE), Facts({}), PURE, ADD).aggregates
    assert one.notes[-1].startswith("read off a tree of noisy counts: off by about 5.74 rows")
    (one,) = settled(draft(HALF + Fraction(1, 10**7)), Facts({}), PURE, ADD).aggregates
    assert one.notes[-1] == "read off a tree of noisy counts: too fine a fraction for a choice by rank"


def test_thousands_are_written_in_full() -> None:
    said = "chosen by rank: off by about 999 rows, error bar about ±1,000 rows; read off a tree of noisy counts it would be 1,000 and ±12,346"
    assert _why(True, (999.4, 1000.0), (1000.4, 12345.6)) == said


def test_the_doubt_is_that_of_all_bars_that_hold_at_once() -> None:
    for ask, together, doubt in ((PURE, 1, Fraction(1, 20)), (PURE, 4, Fraction(1, 80)), (replace(PURE, confidence=Fraction(1, 2)), 1, HALF)):
        found = settled(draft(HALF, card="quantile_by_rank"), Facts({}), ask, ADD, together).aggregates[0].quantile
        assert found is not None
        assert found.doubt == doubt


def test_the_choice_reads_no_data(tmp_path: Path) -> None:
    """EXPLAIN is the same over one person less, and over nobody."""
    schemas = [made(tmp_path / str(i), data) for i, data in enumerate((DATA, DATA + WITHOUT, DATA + EMPTY))]
    with opened(*schemas) as sessions:
        said = [one.explain("SELECT median(age) AS m FROM people", rho="0.02", delta="1e-6").as_dict()["releases"] for one in sessions]
    assert said[0] == said[1] == said[2]
    assert said[0][0]["lemma"] == "C12"


def test_many_groups_are_read_off_a_tree() -> None:
    """Three scores a bin and group are too many where groups are: 2^21."""
    keyed = draft(HALF, keys=(Key("k0", ORDERS.columns[0].column, INTEGER),))
    later = replace(keyed, listed=WORLD.released(Filling.KEYS, INTEGER, INTEGER))
    listed = (Facts({}, tuple((i,) for i in range(groups)), "a list") for groups in (100, 200))
    for given, facts, expected in (*((keyed, one, way) for one, way in zip(listed, ("rank", "tree"), strict=True)), (later, Facts({}), "tree")):
        found = settled(given, facts, RHO, ADD)
        assert way(found) == expected
        assert (found.aggregates[0].notes[-1] == "read off a tree of noisy counts: too many groups for choices by rank") is (expected == "tree")


def test_only_the_scores_of_quantiles_count() -> None:
    """174 groups have room for three choices among 4,000 bins each, whatever else is asked for."""
    keyed = draft(HALF, keys=(Key("k0", ORDERS.columns[0].column, INTEGER),))
    mode = AggregateAsk("a1", "m", "mode", ORDERS.columns[3].column, None, values=tuple(range(60)))
    facts = Facts({}, tuple((i,) for i in range(174)), "a list")
    assert way(settled(replace(keyed, asks=(*keyed.asks, mode)), facts, PURE, ADD)) == "rank"


def test_groups_from_private_rows_have_wide_bins_either_way() -> None:
    keyed = draft(HALF, keys=(Key("k0", ORDERS.columns[0].column, INTEGER),))
    found = settled(keyed, Facts({}), RHO, ADD)
    assert way(found) == "rank"
    assert {part.numbers for part in found.table.parts} == {1, 256}
