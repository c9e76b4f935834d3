"""Aggregates that show the best of several caps: what is claimed of each cap, and of what is shown."""

from __future__ import annotations

from itertools import pairwise

from dpquery.aggregates import CARDS
from dpquery.errors import Fault
from dpquery.plan.release import One, Part, Release, Units
from dpquery.privacy.contribution import cell_bound


def best_of(release: Release) -> tuple[str, ...]:
    """C18. Where an aggregate shows the best of several caps, every cap is a part that is paid for, and none adds up to more than the highest.

    Given   aggregates whose parts are sums of the same rows, none below 0, in cells that are clamped to [0, t], for rising t.
    Claim   the part of each t moves as C4 to C6 say of [0, t], and the price is that of all of them (P6). What is shown, and which cap it is of, is a
            function of released values. Without noise the sum of no t is above that of a higher one.
    Proof   Parts are priced one by one, whatever is made of them. Which is the best depends on their noisy sums and on the laws of their noises,
            which are the plan's. A cell is clamp(x, 0, t) of one x >= 0, which rises with t; so does the sum over units.
    Tight   A unit at the ceiling moves every cap's sum by all of it: test_c18_a_unit_reaches_the_claim_of_every_cap
    Source  Dong, Fang, Yi, Tao and Machanavajjhala 2022, section 4 (R2T, whose truncation is this clamp where each row has one owner); Dwork and
            Roth 2014, proposition 2.1 and theorem 3.16; docs/pitfalls.md C10.
    """
    raced = [[release.table.parts[place] for place in one.parts] for one in release.aggregates if CARDS[one.card].settle is not None]
    if not all(map(_rising, raced)):
        raise Fault("PLAN_BROKEN", "caps of one aggregate are not of the same rows, none below 0, under rising ceilings (C18)")
    return ("C18",) if raced else ()


def _rising(parts: list[Part]) -> bool:
    bounds = [cell_bound(part) for part in parts]
    alike = len({(part.row, part.where) for part in parts}) == 1
    positive = all(isinstance(part.row, One) or (isinstance(part.row, Units) and not part.row.centred and part.row.low >= 0) for part in parts)
    from_nothing = all(not (bound.low or bound.weighted or bound.united or bound.bins) for bound in bounds)
    return alike and positive and from_nothing and all(a.high < b.high for a, b in pairwise(bounds))
