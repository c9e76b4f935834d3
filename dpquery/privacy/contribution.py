"""How far one unit moves the exact sums: the C-lemmas, over integers.

By L8 the sums of D and D + u differ by u's own cells, those of two versions of u by the difference of u's cells. So all that is left is how
many cells a unit has (the bounding) and how large they are (the clamps): `Enforced` holds both, and nothing else is read here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from dpquery.plan.leading import led
from dpquery.plan.release import (
    WEIGHT_BITS,
    Additive,
    Bins,
    CellBound,
    Clamp,
    Element,
    Elements,
    Enforced,
    GroupCap,
    HeavyMean,
    Idle,
    ListedKeys,
    One,
    Part,
    Present,
    PrivateKeys,
    Product,
    Release,
    Row,
    RowWeights,
    UnitMean,
    Units,
)
from dpquery.privacy.compared import compared
from dpquery.values.types import Adjacency


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far neighbouring data sets move one part, in its integer units.

    `moves` are the extreme patterns (coordinates, shift of each): the worst of them bounds the norms below, and every sum over coordinates of a
    function of the shift's magnitude that is rising, superadditive and 0 at 0. `l0` counts coordinates that can change at once. `spreads` is, where a
    group has several integers, the extreme pattern (groups, spread of each) of how far these move apart (C11); (0, 0) elsewhere.
    """

    l0: int
    linf: int
    l1: int
    l2_squared: int
    lemma: str
    moves: tuple[tuple[int, int], ...]
    spreads: tuple[int, int] = (0, 0)


def enforced(release: Release) -> Enforced:
    """C1. The bounds that the plan enforces on a unit's cells.

    Given   a release; listed keys are a set to the engine, too (canonical values of their types), so that no row has two of them.
    Claim   every cell of a unit in part j lies in cells[j] or is 0; if `keyed` is false there is one group, else a unit has cells in at most as
            many groups as the cap says; under RowWeights rows lie in cells[j] and their weights add up to at most rows * 2^20.
    Proof   The cells: C2. The cap keeps that many groups of each unit, or is idle: no GROUP BY, one group; a key that depends on the unit (L10,
            L11), one group for each unit; all listed keys, as rows of others are dropped first (or their sums last, where a unit has one group
            at most: its only row's, L9, or that of its key), few enough for the cap or with none wanted (C17).
            Weights: n (min(R, n) 2^20 // n) <= R 2^20.
    Tight   test_c1_group_cap_is_reached, test_c7_row_weights_are_reached
    Source  Wilson et al. 2020, section 3; docs/pitfalls.md A2, A3, C2, W1.
    """
    table, keys = release.table, release.keys
    selecting = keys.count if isinstance(keys, PrivateKeys) else None
    listed = len(keys.rows) if isinstance(keys, ListedKeys) else None
    chosen = led(release)
    cells = tuple(replace(cell_bound(part), led=i in chosen) for i, part in enumerate(table.parts))
    return Enforced(table.bounding, cells, selecting, keyed=bool(table.keys), listed=listed)


def cell_bound(part: Part) -> CellBound:
    """C2. The interval in which a part's cells lie, where they are not 0 for want of a counted row.

    Given   a part.
    Claim   Clamp: [low, high]. Present: [0, 1]. Elements: [0, most], the size of a set. UnitMean: [-w, w] with w = high - low. HeavyMean of rows
            in [-w, w]: [-Cw, Cw]. Additive: rows lie in it before their weight. Bins: no integer is below 0, and they add up to at most C 2^20.
    Proof   Clamp, Present, Elements: by construction. UnitMean: a number in [2 low, 2 high], less low + high. HeavyMean: n <= C rows add up to at
            most nw <= Cw in magnitude; for n > C the sum s has |s| <= nw, and |s C / n| <= Cw, truncation towards zero not increasing it. It is
            clamped to that as well. Additive: rows add 1, or are clamped; half units of values in [l, u] lie in [-v, v] with v = u - l, so that
            products of two lie in [-v1 v2, v1 v2] and squares in [0, v^2], less what is taken off. Bins: each of the n counted rows falls into
            one bin and brings (min(C, n) 2^20) // n to it, n times which is at most C 2^20.
    Tight   test_c2_cells_reach_their_bounds, test_c2_a_heavy_unit_keeps_its_mean, test_c7_row_weights_are_reached,
            test_c10_bins_of_a_group_are_reached
    Source  Wilson et al. 2020, section 3; docs/pitfalls.md N1, C3.
    """
    match part.cell:
        case Clamp(low=low, high=high):
            return CellBound(low, high)
        case Present():
            return CellBound(0, 1)
        case HeavyMean(rows=rows, width=width):
            return CellBound(-rows * width, rows * width)
        case UnitMean(low=low, high=high):
            return CellBound(low - high, high - low)
        case Additive(width=width):
            return _row_bound(part.row, width)
        case Elements(most=most):
            return CellBound(0, most, united=True)
        case Bins(rows=rows, count=count, rank=rank):
            return CellBound(0, rows << WEIGHT_BITS, bins=count, ranked=rank)
        case _:
            assert_never(part.cell)


def _row_bound(row: Row, width: int) -> CellBound:
    """The interval in which weighed rows lie."""
    match row:
        case One():
            return CellBound(0, width, weighted=True)
        case Units(low=low, high=high, centred=False):
            return CellBound(low, high, weighted=True)
        case Units():
            return CellBound(-width, width, weighted=True)
        case Product(left=left, right=right, less=less):
            most = (left.high - left.low) * (right.high - right.low)
            return CellBound(-less if left == right else -most - less, most - less, weighted=True)
        case Element():
            raise AssertionError("a set of values has no weights")
        case _:
            assert_never(row)


def sensitivities(bounds: Enforced, adjacency: Adjacency) -> tuple[Sensitivity, ...]:
    """C3. The sensitivity of each part.

    Given   what the release enforces.
    Claim   neighbouring data sets move the exact sums of part j, over all groups, by no more than the j-th result says.
    Proof   By L8 only the unit's own cells change. Which lemma bounds them follows from the bounding: C4 without GROUP BY, C5 where all keys are
            listed and none is capped away, C6 under a group cap, C7 under row weights; C9 where the sum is the size of a union, C10 where cells
            are several integers, C12 where one of these is chosen by rank; C17 beside them where one group is chosen.
    Tight   Each of C4 to C7 is reached, in the interpreter and from SQL text down: test_a_unit_reaches_the_claim,
            test_claims_are_the_true_worst_case
    Source  Dwork et al. 2006 (sensitivity); Wilson et al. 2020, section 3.
    """
    match bounds.bounding:
        case RowWeights(rows=rows):
            found = [row_weights(cell, rows, bounds.keyed, adjacency) for cell in bounds.cells]
        case GroupCap(groups=groups, idle=idle):
            found = [_capped(cell, groups, idle, bounds, adjacency) for cell in bounds.cells]
        case _:
            assert_never(bounds.bounding)
    return tuple(_led(one, cell, bounds, adjacency) if cell.led else one for one, cell in zip(found, bounds.cells, strict=True))


def _led(of_sums: Sensitivity, cell: CellBound, bounds: Enforced, adjacency: Adjacency) -> Sensitivity:
    """Sums that are compared between the listed groups: what moves them apart besides what moves them."""
    if bounds.listed is None or cell.bins:
        raise AssertionError("groups are compared by one integer each, and listed")
    groups, weight = (1, bounds.bounding.rows << WEIGHT_BITS) if isinstance(bounds.bounding, RowWeights) else (bounds.bounding.groups, 1)
    shift, width = (weight * _shift(cell, one) for one in (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE))
    return replace(of_sums, lemma="C17", spreads=(1, compared(shift, width, groups, adjacency)))


def _capped(cell: CellBound, groups: int, idle: Idle | None, bounds: Enforced, adjacency: Adjacency) -> Sensitivity:
    if cell.ranked is not None:
        return ranked(cell, groups, bounds.listed if bounds.keyed else 1, adjacency)
    if cell.bins:
        return binned(cell, groups, bounds.listed, adjacency) if bounds.keyed else binned(cell, 1, 1, adjacency)
    if cell.united:
        return united(_capped(replace(cell, united=False), groups, idle, bounds, adjacency))
    if not bounds.keyed:
        return one_group(cell, adjacency)
    all_listed = idle in (Idle.ALL_KEYS, Idle.COMPARED)
    return listed_groups(cell, groups, adjacency) if all_listed else capped_groups(cell, groups, bounds.listed, adjacency)


def one_group(cell: CellBound, adjacency: Adjacency) -> Sensitivity:
    """C4. Without GROUP BY one integer moves.

    Given   a unit's only cell lies in [lo, hi] or is 0; m = max(|lo|, |hi|).
    Claim   add/remove moves the sum by at most m; replace-one by at most max(hi, 0) - min(lo, 0).
    Proof   Add/remove: the difference is the cell. Replace-one: both cells lie in [min(lo, 0), max(hi, 0)], 0 standing for no counted row.
    Tight   test_c4_one_group_is_reached
    Source  Dwork et al. 2006; docs/pitfalls.md A18 (never 0: an exact answer would be free).
    """
    return _worst("C4", ((1, _shift(cell, adjacency)),))


def listed_groups(cell: CellBound, groups: int, adjacency: Adjacency) -> Sensitivity:
    """C5. Where a unit may be in every listed group.

    Given   there are `groups` groups in all; cells as in C4.
    Claim   at most `groups` coordinates move, each as far as in C4; for replace-one too.
    Proof   There are no other coordinates, and each is a sum to which C4 applies.
    Tight   test_c5_all_listed_groups_are_reached
    Source  Dwork et al. 2006.
    """
    return _worst("C5", ((groups, _shift(cell, adjacency)),))


def capped_groups(cell: CellBound, groups: int, listed: int | None, adjacency: Adjacency) -> Sensitivity:
    """C6. Sums of clamped cells of a unit in few groups.

    Given   a unit has cells in at most l0 groups, each in [lo, hi] or 0; m = max(|lo|, |hi|), s = max(hi, 0) - min(lo, 0). Where keys are
            listed there are K groups in all.
    Claim   add/remove: at most l0 coordinates move, each by at most m. Replace-one: L1 <= 2 l0 m, L2^2 <= l0 max(s^2, 2 m^2), Linf <= s. Of K
            listed groups at most K move: by m each where cells have one sign (s = m), by s each where K <= l0.
    Proof   Add/remove: the difference is the unit's cells. Replace-one: let a groups be the unit's in both data sets, and b and c in one only;
            a + b <= l0 and a + c <= l0. The a move by at most s each, the b + c <= 2 (l0 - a) others by at most m. For rising f with f(0) = 0
            the sum of f over coordinates is at most a f(s) + 2 (l0 - a) f(m), linear in a: at most the larger of l0 f(s) and 2 l0 f(m), the
            two patterns returned. As s <= 2m, L1 is 2 l0 m. Listed: there are no other coordinates, and each moves by at most s.
    Tight   test_c6_add_remove_is_reached, test_c6_replace_one_is_reached, test_c6_few_listed_groups_are_reached,
            test_c6_a_cell_appears_within_a_group, test_d_replace_one_by_brute_force
    Source  Wilson et al. 2020, section 3 (add/remove); replace-one by the proof above and by brute force; docs/pitfalls.md A18.
    """
    m, s = _shift(cell, Adjacency.ADD_REMOVE), _shift(cell, Adjacency.REPLACE_ONE)
    match adjacency:
        case Adjacency.ADD_REMOVE:
            return _worst("C6", ((groups, m),))
        case Adjacency.REPLACE_ONE:
            return _worst("C6", _replaced(groups, listed, m, s))
        case _:
            assert_never(adjacency)


def _replaced(groups: int, listed: int | None, m: int, s: int) -> tuple[tuple[int, int], ...]:
    """The patterns of C6 for replace-one."""
    most = 2 * groups if listed is None else min(2 * groups, max(1, listed))
    if most <= groups:
        return ((most, s),)
    return ((most, m),) if s == m else ((groups, s), (2 * groups, m))


def row_weights(cell: CellBound, rows: int, keyed: bool, adjacency: Adjacency) -> Sensitivity:
    """C7. Sums of weighed rows.

    Given   each row lies in [lo, hi]; the weights of a unit's rows are integers that add up to at most W = R 2^20. m = max(|lo|, |hi|),
            s = max(hi, 0) - min(lo, 0).
    Claim   add/remove: L1 <= W m, and so L2 and Linf; all of it may be in one coordinate, or spread over W of them. Replace-one: L1 <= 2 W m,
            Linf <= W s, L2^2 <= W^2 max(s^2, 2 m^2); without GROUP BY W s in all. For rising, superadditive f with f(0) = 0 the sum of f over
            coordinates is at most 2 f(W m) where rows have one sign (s = m), else f(2 W m).
    Proof   The cells of a unit are sums of weight times row over disjoint sets of rows: their magnitudes add up to at most W m, and one cell lies
            in [W min(lo, 0), W max(hi, 0)]. Replace-one: two such vectors, so L1 (triangle inequality) and Linf. The vectors lie in the hull of 0
            and of W lo and W hi on each coordinate; the square of the distance is convex, so largest at two of these: W s on one coordinate, or
            W m on two. Of one sign, a difference is at most the larger of the two cells, and f of that at most the sum of their f.
    Tight   test_c7_row_weights_are_reached, test_c7_replace_one_is_reached. (W coordinates need as many rows, one a group; no price reads that
            number.)
    Source  The proof above; docs/pitfalls.md A2, N2, C2, A18.
    """
    spread = rows << WEIGHT_BITS
    m, s = spread * _shift(cell, Adjacency.ADD_REMOVE), spread * _shift(cell, Adjacency.REPLACE_ONE)
    match adjacency:
        case Adjacency.ADD_REMOVE:
            return Sensitivity(spread, m, m, m**2, "C7", ((1, m),))
        case Adjacency.REPLACE_ONE if not keyed:
            return Sensitivity(1, s, s, s**2, "C7", ((1, s),))
        case Adjacency.REPLACE_ONE:
            return Sensitivity(2 * spread, s, 2 * m, max(s**2, 2 * m**2), "C7", ((2, m) if s == m else (1, 2 * m),))
        case _:
            assert_never(adjacency)


def _shift(cell: CellBound, adjacency: Adjacency) -> int:
    """How far one cell can move, at least 1: no released part is free."""
    match adjacency:
        case Adjacency.ADD_REMOVE:
            return max(1, abs(cell.low), abs(cell.high))
        case Adjacency.REPLACE_ONE:
            return max(1, max(cell.high, 0) - min(cell.low, 0))
        case _:
            assert_never(adjacency)


def _worst(lemma: str, moves: tuple[tuple[int, int], ...]) -> Sensitivity:
    """The norms of the worst pattern in each of them."""
    return Sensitivity(
        l0=max(count for count, _ in moves),
        linf=max(shift for _, shift in moves),
        l1=max(count * shift for count, shift in moves),
        l2_squared=max(count * shift**2 for count, shift in moves),
        lemma=lemma,
        moves=moves,
    )


def united(of_sums: Sensitivity) -> Sensitivity:
    """C9. Numbers of different values move no further than sums of their units' numbers of values.

    Given   a unit's cell in a group is a set of at most m values, a function of its own rows (L8), in as many groups as C4 to C6 suppose. What is
            released of a group is the size of the union of its cells. `of_sums` is what C4, C5 or C6 says of sums of cells in [0, m].
    Claim   neighbouring data sets move the sizes by no more than that.
    Proof   Of a group in which the unit has the cell A, where the others' union is B: |A u B| - |B| = |A - B|, between 0 and |A| <= m, and 0 where it
            has none. Add/remove: the sizes move like cells in [0, m]. Replace-one: by |A' - B| - |A - B|, the difference of two such cells,
            as those of sums do; and B is the same in both data sets.
    Tight   Values that nobody else has: test_c9_values_of_one_unit_alone_are_reached, test_a_unit_reaches_the_claim
    Source  Wilson et al. 2020, section 3 (COUNT DISTINCT is no sum over owners); the proof above; docs/pitfalls.md H, COUNT(DISTINCT x).
    """
    return replace(of_sums, lemma="C9")


def binned(cell: CellBound, groups: int, listed: int | None, adjacency: Adjacency) -> Sensitivity:
    """C10. Sums of cells of several integers, none below 0, that add up to at most W: one level of a tree of bins.

    Given   a unit has cells in at most l0 groups (1 without GROUP BY), each B integers of at least 0 that add up to at most W. Where keys are
            listed there are K groups in all.
    Claim   add/remove: L1 <= l0 W, L2^2 <= l0 W^2, Linf <= W. Replace-one: twice that, but for Linf <= W. For rising, superadditive f with
            f(0) = 0 the sum of f over coordinates is at most l0 f(W), or 2 l0 f(W). At most B coordinates of each group move.
    Proof   Add/remove: the difference is the unit's cells. In a group the integers v add up to at most W, so sum f(v_i) <= f(sum v_i) <= f(W); f may
            be the identity, or the square. Replace-one: two such vectors, v and v'. |v_i - v'_i| <= max(v_i, v'_i), so the sum of f is at most
            that of v and that of v' together, each at most l0 f(W); and no coordinate moves by more than W.
            A tree's levels are parts with noises of their own: by P6 their prices add up, so that h levels cost h times as much as one.
    Tight   All rows of a unit in one bin; replaced, in another: test_c10_bins_of_a_group_are_reached, test_c10_replace_one_is_reached. (B
            coordinates need as many rows; no price reads that number.)
    Source  Dwork et al. 2010 (counts in a tree); Wilson et al. 2020, section 3 (groups); the proof above; docs/pitfalls.md A18.
    """
    match adjacency:
        case Adjacency.ADD_REMOVE:
            most, touched = groups, groups
        case Adjacency.REPLACE_ONE:
            most, touched = 2 * groups, 2 * groups if listed is None else min(2 * groups, max(1, listed))
        case _:
            assert_never(adjacency)
    apart = spread(cell, groups, listed, adjacency)
    return Sensitivity(touched * cell.bins, cell.high, most * cell.high, most * cell.high**2, "C10", ((most, cell.high),), apart)


def spread(cell: CellBound, groups: int, listed: int | None, adjacency: Adjacency) -> tuple[int, int]:
    """C11. How far the integers of a group move apart: (groups, largest shift less smallest one).

    Given   as in C10: cells of integers v_i >= 0 that add up to at most W, in at most l0 groups, of K listed ones.
    Claim   for rising, superadditive f with f(0) = 0 the sum over groups of f(max shift - min shift) is at most n f(r) for the result (n, r): n is
            l0, or K if that is less; r is W for add/remove, 2 W for replace-one.
    Proof   Add/remove: shifts of a group are v_i, all in [0, W], or all -v_i. So one way for all: counts are monotone, and r is W, not 2 W.
            Replace-one: they are v_i - v'_i, in [-W, W], of both signs at once, so that in a group of both data sets r is 2 W, and W in one of a
            single one's. a groups of both, b + c <= 2 (l0 - a) others: a f(2W) + 2 (l0 - a) f(W) <= l0 f(2W), as 2 f(W) <= f(2W); and where there
            are K < l0 groups in all, K f(2W), each of them counting once.
    Tight   All rows of a unit in one bin; replaced, in another of the same group: test_c11_add_remove_is_reached, test_c11_replace_one_is_reached
    Source  Durfee and Rogers 2019 (monotone scores); the proof above.
    """
    most = groups if listed is None else min(groups, max(1, listed))
    match adjacency:
        case Adjacency.ADD_REMOVE:
            return most, cell.high
        case Adjacency.REPLACE_ONE:
            return most, 2 * cell.high
        case _:
            assert_never(adjacency)


def ranked(cell: CellBound, groups: int, listed: int | None, adjacency: Adjacency) -> Sensitivity:
    """C12. Scores of bins by rank: how far a fraction q = a / b of a group's weight N lies outside what is below a bin and what is up to it.

    Given   cells as in C10, in at most l0 groups (1 without GROUP BY), of K listed ones. The score of bin j is -max(0, b L_j - a N, a N - b U_j), L_j
            the weight of the group below bin j, U_j that with the bin itself. Instead of a N there may be a N + c, c decided by no data, the first
            bin's L or the last one's U left out.
    Claim   a score moves by at most m W, m = max(a, b - a) for add/remove, b for replace-one. For rising, superadditive f with f(0) = 0 the sum over
            groups of f(max shift - min shift) is at most n f(r) for the result's spread (n, r): r = 2 m W; n is l0, or K if that is less; for
            replace-one 2 l0, or K if that is less, unless 2 max(a, b - a) <= b.
    Proof   A unit's cell adds v >= 0 of sum V <= W: b L_j - a N moves by b (its part below j) - a V, between -a W and (b - a) W, and a N - b U_j
            likewise between -(b - a) W and a W, whatever c is. The largest of such numbers moves by no more than the most that one of them does,
            so a score by at most max(a, b - a) W either way, and two of them apart by twice that. Replace-one: each of the numbers moves by the
            difference of two such moves, in [-b W, b W]. In a group of one data set alone it is as for add/remove, 2 max(a, b - a) W apart; c of
            these besides g of both, c <= 2 (l0 - g): g f(2 b W) + c f(2 max(a, b - a) W) <= 2 l0 f(2 b W), and <= l0 f(2 b W) where
            2 max(a, b - a) <= b, as then 2 f(x) <= f(2 x) takes two of them to one. Of K listed groups each counts once.
    Tight   A median between rows at both ends: test_c12_add_remove_is_reached, test_c12_replace_one_is_reached. (All bins of a group move as far
            under the least of the counts; no price reads that number.) At the fractions 0 and 1 all scores move one way, and half of r is reached.
    Source  Smith 2011 (the score); Gillenwater, Joseph and Kulesza 2021; the proof above.
    """
    if cell.ranked is None:
        raise AssertionError("scores are those of a fraction")
    part, whole = cell.ranked.numerator, cell.ranked.denominator
    most = max(part, whole - part)
    both = groups if listed is None else min(groups, max(1, listed))
    match adjacency:
        case Adjacency.ADD_REMOVE:
            moved, touched = most * cell.high, both
        case Adjacency.REPLACE_ONE:
            moved, touched = whole * cell.high, 2 * groups if listed is None else min(2 * groups, max(1, listed))
            both = both if 2 * most <= whole else touched
        case _:
            assert_never(adjacency)
    return replace(_worst("C12", ((touched * cell.bins, moved),)), spreads=(both, 2 * moved))


def groups_of_a_unit(bounds: Enforced) -> int:
    """C8. The most groups that exist for a unit's sake alone, on either side of a neighbouring pair.

    Given   what a release with private keys enforces.
    Claim   at most l0 groups of D hold no unit of D' and the reverse, l0 being the group cap; for both adjacencies.
    Proof   A group that is in D and not in D' holds the differing unit's rows alone; after the cap a unit has at most l0 groups in each of them.
            Replace-one: l0 in D and, apart from them, l0 in D': each side's mass is bounded by its own l0.
    Tight   test_c8_singleton_groups_are_reached, test_a_unit_stands_alone_in_as_many_groups_as_claimed
    Source  Korolova et al. 2009; Wilson et al. 2020, section 4; docs/pitfalls.md A14.
    """
    match bounds.bounding:
        case GroupCap(groups=groups):
            return groups
        case RowWeights():
            raise AssertionError("row weights do not bound the number of groups")
        case _:
            assert_never(bounds.bounding)
