"""How a price is split over the parts of a release.

In plain SQL, where noise counts. Let V_j be the variance of part j's noise in units of its own bound: parts of the same share have the same V_j. Let
w_j be its weight: each aggregate counts once, all of its parts alike. The sum of w_j V_j is least where shares of rho (V_j in proportion to
1 / share) are as the square roots of the weights, shares of epsilon (1 / share^2) as their cube roots. Of private keys a group that is left out
takes all its B aggregates along: the count that selects weighs B, against B aggregates of weight 1. Its share is never smaller than an equal one.
Of the DIFFERENTIAL_PRIVACY clause, and beside explicit shares, they are equal ones.
"""

from __future__ import annotations

from fractions import Fraction

from dpquery.errors import Refused
from dpquery.plan.release import Aggregate, Ask, PrivateKeys, Release

FINE = 10  # bits after the point of the roots: what they lack changes an error by less than one part in 10^6


def shares(release: Release, ask: Ask, *, in_rho: bool) -> tuple[Fraction, ...]:
    """P7. The share of the price that each part takes.

    Given   a release and an ask; whether noise is scaled by shares of rho, or of epsilon.
    Claim   shares are positive and add up to 1, or to less where explicit shares leave a rest that nobody takes.
    Proof   In plain SQL without explicit shares: positive whole numbers over their sum (a weight is 2^-20 or more, as no aggregate has a million
            parts, and its root no 0), of what a positive share of selection's leaves. Else
            each aggregate takes its explicit epsilon over the whole, or an equal part of what these leave; so does the count that selects groups,
            where no aggregate shows it (an explicit selection epsilon is its share in any case). An aggregate's share is split equally among
            its parts; a part of several aggregates takes the sum. More than the whole is refused.
    Tight   Nothing to reach: shares are numbers that add up. test_shares_add_up, test_shares_of_plain_sql_err_least
    Source  Dwork and Roth 2014, section 3.5 (a statement is one vector); docs/pitfalls.md B11, C12.
    """
    if ask.plain and ask.selection_epsilon is None and all(one.share is None for one in release.aggregates):
        return _weighed(release, 2 if in_rho else 3)
    takers = [(aggregate.parts, _explicit(aggregate, ask)) for aggregate in release.aggregates]
    selecting = release.keys.count if isinstance(release.keys, PrivateKeys) else None
    if selecting is not None and (ask.selection_epsilon is not None or all(selecting not in parts for parts, _ in takers)):
        takers.append(((selecting,), _of_whole(ask.selection_epsilon, ask)))
    if selecting is None and ask.selection_epsilon is not None:
        raise Refused("NO_SELECTION", "group_selection_epsilon pays for private keys, and this statement has none", instead="leave it out")
    rest = _rest(takers)
    found = [Fraction(0)] * len(release.table.parts)
    for parts, share in takers:
        for part in parts:
            found[part] += (rest if share is None else share) / len(parts)
    return tuple(found)


def _explicit(aggregate: Aggregate, ask: Ask) -> Fraction | None:
    return _of_whole(aggregate.share, ask)


def _of_whole(epsilon: Fraction | None, ask: Ask) -> Fraction | None:
    """An explicit epsilon as a share of the whole."""
    if epsilon is None:
        return None
    if ask.epsilon is None:
        raise Refused(
            "SHARE_NEEDS_EPSILON",
            "an epsilon for one aggregate is a share of the statement's epsilon, which is priced in rho",
            instead="price the statement in epsilon",
        )
    if epsilon <= 0:
        raise Refused("BAD_PRICE", "an aggregate's epsilon must be above 0: no answer is free", instead="give a positive epsilon, or none")
    return epsilon / ask.epsilon


def _rest(takers: list[tuple[tuple[int, ...], Fraction | None]]) -> Fraction:
    """What explicit shares leave to each of the others."""
    taken = sum((share for _, share in takers if share is not None), Fraction(0))
    others = sum(1 for _, share in takers if share is None)
    if taken > 1 or (taken == 1 and others):
        raise Refused(
            "SHARES_EXCEED_PRICE",
            "the epsilons of single aggregates and of group selection leave less than nothing of the statement's epsilon",
            instead="give shares that add up to at most the statement's epsilon, with something left for aggregates without one",
        )
    return (1 - taken) / others if others else Fraction(0)


def _weighed(release: Release, power: int) -> tuple[Fraction, ...]:
    """Shares by roots of weights; the first part of them to the count that selects."""
    selecting = release.keys.count if isinstance(release.keys, PrivateKeys) else None
    own = [[part for part in one.parts if part != selecting] for one in release.aggregates]
    weights = [Fraction(0)] * len(release.table.parts)
    for parts in own:
        for part in parts:
            weights[part] += Fraction(1, len(parts))
    roots, others = [_root(weight, power) for weight in weights], sum(map(bool, own))
    if selecting is None:
        return tuple(Fraction(root, sum(roots)) for root in roots)
    if not others:
        return (Fraction(1),)  # the count that selects is the only part
    first, rest = _root(Fraction(others), power), others << FINE
    return tuple(
        Fraction(first, rest + first) if part == selecting else Fraction(root * rest, sum(roots) * (rest + first)) for part, root in enumerate(roots)
    )


def _root(weight: Fraction, power: int) -> int:
    """The root of a weight in units of 2^-FINE, rounded down: exact, so that shares are the same everywhere."""
    found = 0
    for bit in range(2 * FINE, -1, -1):
        more = found | 1 << bit
        found = more if more**power * weight.denominator <= weight.numerator << FINE * power else found
    return found
