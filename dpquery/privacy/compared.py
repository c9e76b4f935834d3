"""How far one unit moves the sums of groups apart, where one of the groups is chosen by them."""

from __future__ import annotations

from typing import assert_never

from dpquery.values.types import Adjacency


def compared(shift: int, width: int, groups: int, adjacency: Adjacency) -> int:
    """C17. How far the sums of the listed groups move apart: the largest shift less the smallest one.

    Given   sums of at least two listed groups, one of which is chosen by them (M7) with nothing else shown. A unit's cells lie in [lo, hi] or are 0,
            in at most `groups` of the groups; m = max(|lo|, |hi|) is `shift`, s = max(hi, 0) - min(lo, 0) is `width`. Under row weights (C7) the
            magnitudes of a unit's cells add up to at most m; `groups` is 1. Under C9 a sum is the size of a union of sets of at most m values.
    Claim   with 0 for a group that does not move, the largest shift less the smallest one is at most s for add/remove, m where a unit is in one
            group or under row weights; twice that for replace-one. However many groups a unit is in: no cap on their number is needed.
    Proof   Add/remove: shifts are the unit's cells, all in [min(lo, 0), max(hi, 0)], of width s; or all of them negated. (So counts are monotone: s
            is m where cells have one sign.) Of one cell beside zeros, or of cells whose magnitudes add up to at most m, the largest less the
            smallest is at most the sum of two magnitudes, so m. Replace-one: the shifts are the difference of two such vectors, and the range of
            a difference is at most the sum of their ranges. C9: sizes move like cells in [0, m], all up or all down, and for replace-one by the
            difference of two such vectors. The smallest sum is chosen as the largest of negated ones, which move apart as far.
    Tight   Cells at both ends, replaced by their opposites: test_c17_add_remove_is_reached, test_c17_replace_one_is_reached,
            test_c17_by_brute_force
    Source  Durfee and Rogers 2019 (monotone scores); Dong, Durfee and Rogers 2020 (range); the proof above.
    """
    once = shift if groups == 1 else width
    match adjacency:
        case Adjacency.ADD_REMOVE:
            return once
        case Adjacency.REPLACE_ONE:
            return 2 * once
        case _:
            assert_never(adjacency)
