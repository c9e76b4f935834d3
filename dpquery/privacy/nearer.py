"""Which way quantiles are found where the statement names no noise: read off a tree of noisy counts, or chosen by rank; whichever errs less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from dpquery.aggregates import byrank, quantile
from dpquery.aggregates.byrank import BY_RANK, FINEST
from dpquery.aggregates.quantile import MOST_NUMBERS, QUANTILE, Reach, loss
from dpquery.plan.draft import Draft
from dpquery.plan.extent import numbers
from dpquery.plan.release import Ask, Release
from dpquery.privacy.cost import calibrate
from dpquery.privacy.resolve import MOST_KEYS, Facts, bound
from dpquery.values.types import Adjacency

WAYS = ("read off a tree of noisy counts", "chosen by rank")


def settled(draft: Draft, facts: Facts, ask: Ask, adjacency: Adjacency, together: int = 1) -> Release:
    """R6. The bounded draft, each of its quantiles found in the way that errs less.

    Given   a draft, facts of public tables, its ask; `together` error bars at most are used for one output.
    Claim   the release is R1's, of the draft or of the one with the same quantiles by another card; which of the two is a function of what is given.
    Proof   R1 twice. What is compared are the distances that the two cards expect under the noises that P1 gives each of them: of the ask, the
            plans and the adjacency. No exact number is read.
    Tight   Nothing to reach: a choice between two releases, each priced as it is. test_the_choice_reads_no_data
    Source  docs/sql.md, quantiles.
    """
    doubt = (1 - ask.confidence) / together
    draft = replace(draft, asks=tuple(replace(one, doubt=doubt) for one in draft.asks))
    counted = bound(draft, facts)
    places = [i for i, one in enumerate(draft.asks) if one.card == QUANTILE.name]
    if ask.noise is not None or not places:
        return counted
    if any(fraction.denominator > FINEST for i in places for fraction in draft.asks[i].fractions):
        return _noted(counted, dict.fromkeys(places, f"{WAYS[False]}: too fine a fraction for a choice by rank"))
    asks = (replace(one, card=BY_RANK) if one.card == QUANTILE.name else one for one in draft.asks)
    ranked = bound(replace(draft, asks=tuple(asks)), facts)
    if numbers(ranked, MOST_KEYS, ranked.ranked) > MOST_NUMBERS:
        return _noted(counted, dict.fromkeys(places, f"{WAYS[False]}: too many groups for choices by rank"))
    tree, choice = (_reach(one, places, ask, adjacency, doubt) for one in (counted, ranked))
    nearer = loss(choice) < loss(tree)
    have, other = (choice, tree) if nearer else (tree, choice)
    notes = {i: _why(nearer, *map(max, both)) for i, *both in zip(places, have, other, strict=True)}
    return _noted(ranked if nearer else counted, notes)


def _reach(release: Release, places: Sequence[int], ask: Ask, adjacency: Adjacency, doubt: Fraction) -> Sequence[Reach]:
    """Of each aggregate at these places how far off its quantiles are, with the noise that the ask buys for the release alone."""
    noises = calibrate(release, ask, adjacency).noises
    own = [(release.aggregates[i], tuple(noises[part] for part in release.aggregates[i].parts)) for i in places]
    return [byrank.reach(one, given) if one.card == BY_RANK else quantile.reach(one, given, doubt) for one, given in own]


def _why(nearer: bool, have: tuple[float, float], other: tuple[float, float]) -> str:
    """How an aggregate's quantiles are found, and how far off the worst of them would be either way."""
    (off, half), (less, wide) = have, other
    mine, bar, others, wider = (f"{one:.3g}" if one < 1000 else f"{one:,.0f}" for one in (off, half, less, wide))
    return f"{WAYS[nearer]}: off by about {mine} rows, error bar about ±{bar} rows; {WAYS[not nearer]} it would be {others} and ±{wider}"


def _noted(release: Release, notes: Mapping[int, str]) -> Release:
    """The release with a note more on some aggregates."""
    more = (replace(one, notes=(*one.notes, notes[i])) if i in notes else one for i, one in enumerate(release.aggregates))
    return replace(release, aggregates=tuple(more))
