"""What a release costs and which noise buys it: shares, scales, threshold, price.

`calibrate` chooses the noise, `reprice` says what a given noise costs; the price charged is always that of `reprice`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import assert_never

from dpquery.accounting.convert import epsilon_up, rho_down
from dpquery.accounting.event import Price
from dpquery.accounting.pure import choice_epsilon, laplace_epsilon
from dpquery.accounting.zcdp import exponential_rho, gaussian_rho, laplace_epsilon_down, laplace_rho_up
from dpquery.aggregates import mode
from dpquery.errors import Refused
from dpquery.mechanisms import Noise, Randomness, selection_delta_up, threshold
from dpquery.numbers import significant_up, sqrt_up
from dpquery.plan.release import Aggregate, Ask, Choosing, Enforced, Mechanism, PrivateKeys, Release
from dpquery.privacy.contribution import Sensitivity, enforced, groups_of_a_unit, sensitivities
from dpquery.values.types import Adjacency

HALF = Fraction(1, 2)
USUAL = Fraction(95, 100)  # the confidence at which ways to choose are compared, whatever that of the error bars
BY_RHO: frozenset[Randomness] = frozenset({Mechanism.GAUSSIAN, Choosing.EXPONENTIAL})  # what is charged in rho alone


@dataclass(frozen=True, slots=True)
class Priced:
    """Noise for each part, the threshold of private keys, and what that costs.

    `shares` are the parts' shares of the whole price (they add up to 1, or less where explicit shares leave a rest). `epsilon` and `delta` are
    the statement's guarantee standing alone; of delta, `conversion` goes from rho to epsilon and `price.delta` to selection. `error` is what the
    choice among noises makes small.
    """

    noises: tuple[Noise, ...]
    threshold: int | None
    price: Price
    shares: tuple[Fraction, ...]
    epsilon: Fraction | None
    delta: Fraction
    conversion: Fraction
    error: Fraction = Fraction(1)


def calibrate(release: Release, ask: Ask, adjacency: Adjacency) -> Priced:
    """P1. The noise that meets the price asked for and shows most groups of private keys; of equals that of least error.

    Given   a release and an ask with a positive epsilon or rho.
    Claim   the release with this noise is (epsilon, delta)-DP standing alone, for the asked epsilon (or the conversion of the asked rho) and the
            asked delta; or Refused where no noise does that.
    Proof   Every candidate's noise is scaled so that its parts' prices (P3, P4) add up to at most what was asked, with at most the asked delta
            split between conversion and selection (P2); the choice among candidates reads the plan and the ask alone.
    Tight   test_p1_laplace_spends_exactly_what_was_asked, test_p1_gaussian_spends_nearly_what_was_asked, test_p1_rho_asks_are_met
    Source  Bun and Steinke 2016 (composition and conversion of rho); docs/pitfalls.md B11, C12, C16.
    """
    bounds = enforced(release)
    _possible(release, ask)
    plan = _Plan(bounds, sensitivities(bounds, adjacency), shares(release, ask), ask, (*release.modal, *release.ranked))
    return min((_priced(plan, choice, adjacency) for choice in _choices(release, ask)), key=_worth)


def within(release: Release, ask: Ask, adjacency: Adjacency, rho: Fraction | None, selection: Fraction) -> Priced:
    """P10. The noise of lowest threshold, then least error, for one release among several, whose parts of rho and of selection's delta are given.

    Given   the release's ask, its part `rho` of the statement's (None: nothing in rho alone, all at the ask's epsilon) and of selection's delta.
    Claim   its price is at most the ask's epsilon where `rho` is None, else at most `rho`; its delta is at most `selection`.
    Proof   Noises are scaled as in P1, by shares that add up to at most 1 (P7); the threshold is taken for `selection` (P5).
    Tight   test_p8_the_whole_price_is_spent
    Source  Bun and Steinke 2016, lemma 2.3; docs/pitfalls.md B11.
    """
    bounds = enforced(release)
    _possible(release, ask)
    plan = _Plan(bounds, sensitivities(bounds, adjacency), shares(release, ask), ask, (*release.modal, *release.ranked))
    choices = [choice for choice in _choices(release, ask) if rho is not None or not BY_RHO & {*choice}]
    return min((_noised(plan, choice, adjacency, rho, selection) for choice in choices), key=_worth)


@dataclass(frozen=True, slots=True)
class _Plan:
    bounds: Enforced
    sensitivities: tuple[Sensitivity, ...]
    shares: tuple[Fraction, ...]
    ask: Ask
    chosen: tuple[int, ...]


def _possible(release: Release, ask: Ask) -> None:
    """Nothing, or Refused where the ask cannot be met by any noise."""
    private = isinstance(release.keys, PrivateKeys)
    if private and ask.delta == 0:
        raise Refused(
            "PRIVATE_KEYS_NEED_DELTA",
            "the groups come from private rows: showing them needs a delta above 0",
            instead="give a delta, or list the keys: declared values, a join with a public table, or WHERE key IN (...)",
        )
    if ask.rho is not None and ask.delta == 0:
        raise Refused("RHO_NEEDS_DELTA", "a price in rho has no epsilon at delta 0", instead="give a delta, or a price in epsilon")
    if ask.noise is Mechanism.GAUSSIAN and ask.delta == 0:
        raise Refused("GAUSSIAN_NEEDS_DELTA", "Gaussian noise needs a delta above 0", instead="give a delta, or noise => LAPLACE")


def _choices(release: Release, ask: Ask) -> list[tuple[Randomness, ...]]:
    """The mechanisms of the parts, in each way that is allowed: one for all, but for the selecting part where the statement names its own.

    Of what modes alone read, one integer is chosen instead, unless the statement names a noise; of bins by rank one is chosen in any case.
    """
    pairs: list[tuple[Mechanism, Randomness]] = [(Mechanism.LAPLACE, Choosing.PERMUTE_AND_FLIP)]
    if ask.noise is not None:
        pairs = [(ask.noise, ask.noise)]
    elif ask.delta > 0:
        pairs += [(Mechanism.GAUSSIAN, one) for one in ((Choosing.EXPONENTIAL, Mechanism.GAUSSIAN) if release.modal else (Mechanism.GAUSSIAN,))]
    selecting = release.keys.count if isinstance(release.keys, PrivateKeys) else None
    own, count = ask.selection, len(release.table.parts)
    found = []
    for added, chosen in pairs:
        by_rank = Choosing.PERMUTE_AND_FLIP if added is Mechanism.LAPLACE else Choosing.EXPONENTIAL
        each: list[Randomness] = [by_rank if i in release.ranked else chosen if i in release.modal else added for i in range(count)]
        if own and selecting is not None:
            each[selecting] = own
        found.append(tuple(each))
    return found


def _worth(priced: Priced) -> tuple[int, Fraction]:
    """What the choice makes small: the threshold of private keys first, as a group that is left out takes all its numbers along; then the error."""
    return priced.threshold or 1, priced.error


def delta_split(delta: Fraction, *, conversion: bool, selection: bool) -> tuple[Fraction, Fraction]:
    """P2. The parts of a statement's delta that conversion and selection may spend.

    Given   whether any noise is priced in rho and whether any group is selected.
    Claim   the two add up to at most delta: halves where both are needed, all of it to the one that is.
    Proof   By cases. One conversion serves the whole statement, as prices in rho add up, Laplace noise's included.
    Tight   test_n8_delta_is_split_once
    Source  Dwork and Roth 2014, section 3.5 (deltas add up); docs/pitfalls.md N8, B7.
    """
    if conversion and selection:
        return delta * HALF, delta * HALF
    return (delta if conversion else Fraction(0)), (delta if selection else Fraction(0))


def _priced(plan: _Plan, choice: tuple[Randomness, ...], adjacency: Adjacency) -> Priced:
    """One candidate: noise by share, threshold by delta, price as `reprice` finds it."""
    ask, selecting = plan.ask, plan.bounds.selecting
    pure = None if BY_RHO & {*choice} else ask.epsilon  # spent as it is, without a conversion
    conversion, selection = delta_split(ask.delta, conversion=pure is None, selection=selecting is not None)
    conversion = min(conversion, HALF)  # a delta of 1 (unsafe testing) has no conversion
    rho = None if pure is not None else ask.rho if ask.rho is not None else rho_down(ask.epsilon or Fraction(0), conversion)
    found = _noised(plan, choice, adjacency, rho, selection)
    whole = ask.epsilon if sum(plan.shares) == 1 else None
    epsilon = found.epsilon if pure is not None else whole or epsilon_up(found.price.rho, conversion)
    return replace(found, epsilon=epsilon, delta=conversion + found.price.delta, conversion=conversion)


def _noised(plan: _Plan, choice: tuple[Randomness, ...], adjacency: Adjacency, rho: Fraction | None, selection: Fraction) -> Priced:
    """Noise by share of rho, or of the ask's epsilon where that is None; the threshold by selection's delta. Nothing goes to conversion."""
    selecting = plan.bounds.selecting
    noises = _pure_noises(plan, choice) if rho is None else _rho_noises(plan, choice, rho)
    least = None if selecting is None else threshold(noises[selecting], selection, groups_of_a_unit(plan.bounds))
    price = _price(plan.bounds, noises, least, adjacency)
    error = prod((_error_of(noise, plan, part) for part, noise in enumerate(noises)), start=Fraction(1))
    return Priced(noises, least, price, plan.shares, price.epsilon, price.delta, Fraction(0), error)


def _error_of(noise: Noise, plan: _Plan, part: int) -> Fraction:
    """The variance of a part's noise, about; of what may be chosen, the square of the lead that a score needs."""
    if part in plan.chosen:
        return Fraction(mode.lead(plan.bounds.cells[part].bins - 1, noise, USUAL)) ** 2
    return 2 * noise.parameter**2 if noise.mechanism is Mechanism.LAPLACE else noise.parameter


def _pure_noises(plan: _Plan, choice: tuple[Randomness, ...]) -> tuple[Noise, ...]:
    """Noise whose epsilons are exactly the parts' shares."""
    epsilon = plan.ask.epsilon or Fraction(0)
    parts = zip(choice, plan.sensitivities, plan.shares, strict=True)
    return tuple(Noise(one, (prod(s.spreads) if isinstance(one, Choosing) else s.l1) / (epsilon * share)) for one, s, share in parts)


def _rho_noises(plan: _Plan, choice: tuple[Randomness, ...], whole: Fraction) -> tuple[Noise, ...]:
    """Noise whose rhos are at most the parts' shares of the whole rho."""
    return tuple(_rho_noise(one, s, whole * share) for one, s, share in zip(choice, plan.sensitivities, plan.shares, strict=True))


def _rho_noise(mechanism: Randomness, sensitivity: Sensitivity, rho: Fraction) -> Noise:
    match mechanism:
        case Mechanism.GAUSSIAN:
            return Noise(mechanism, significant_up(sensitivity.l2_squared / (2 * rho)))
        case Mechanism.LAPLACE:
            return Noise(mechanism, significant_up(max(shift / laplace_epsilon_down(rho / count) for count, shift in sensitivity.moves)))
        case Choosing.PERMUTE_AND_FLIP:
            groups, apart = sensitivity.spreads
            return Noise(mechanism, significant_up(apart / laplace_epsilon_down(rho / groups)))
        case Choosing.EXPONENTIAL:
            groups, apart = sensitivity.spreads
            return Noise(mechanism, sqrt_up(groups * apart**2 / (8 * rho)))
        case _:
            assert_never(mechanism)


# ---- shares --------------------------------------------------------------------------------------------------------------------------


def shares(release: Release, ask: Ask) -> tuple[Fraction, ...]:
    """P7. The share of the price that each part takes.

    Given   a release and an ask.
    Claim   shares are positive and add up to 1, or to less where explicit shares leave a rest that nobody takes.
    Proof   Each aggregate takes its explicit epsilon over the whole, or an equal part of what these leave; so does the count that selects groups,
            where no aggregate shows it (an explicit selection epsilon is its share in any case). An aggregate's share is split equally among
            its parts; a part of several aggregates takes the sum. More than the whole is refused.
    Tight   Nothing to reach: shares are numbers that add up. test_shares_add_up
    Source  Dwork and Roth 2014, section 3.5 (a statement is one vector); docs/pitfalls.md B11.
    """
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


# ---- price ---------------------------------------------------------------------------------------------------------------------------


def reprice(bounds: Enforced, priced: Priced, adjacency: Adjacency) -> Price:
    """P6. What the given noises and threshold cost under the given bounds.

    Given   bounds (from the plan, or re-derived from the lowered statement) and noises; the price in `priced` is not read.
    Claim   the release is (epsilon, delta)-DP where epsilon is finite, and delta-approximate rho-zCDP.
    Proof   Parts are independent noises on one vector, and choices from it: epsilons add up, rhos add up (P3, P4). Groups that exist for one unit's
            sake add delta (P5); given that none of them shows, what shows is a function of the noisy vector over groups common to both data sets.
    Tight   test_p6_one_unit_reaches_the_whole_price, test_p6_reprice_equals_the_price_charged
    Source  Dwork and Roth 2014, section 3.5; Bun and Steinke 2016; docs/pitfalls.md B10.
    """
    return _price(bounds, priced.noises, priced.threshold, adjacency)


def _price(bounds: Enforced, noises: tuple[Noise, ...], least: int | None, adjacency: Adjacency) -> Price:
    found = list(zip(noises, sensitivities(bounds, adjacency), strict=True))
    epsilons = [epsilon_of(noise, s) for noise, s in found]
    finite = [epsilon for epsilon in epsilons if epsilon is not None]
    return Price(
        epsilon=sum(finite, Fraction(0)) if len(finite) == len(epsilons) else None,
        rho=sum((rho_of(noise, s) for noise, s in found), Fraction(0)),
        delta=selection_delta(bounds, noises, least),
    )


def epsilon_of(noise: Noise, sensitivity: Sensitivity) -> Fraction | None:
    """P3. The epsilon of one part's noise; None for Gaussian noise, which has none, and for the exponential mechanism, which is charged in rho.

    Given   neighbouring data sets move the part by at most L1 in all, and the integers of n groups apart by r each.
    Claim   discrete Laplace noise of scale b gives epsilon = L1 / b, permute and flip of scale s gives n r / s.
    Proof   P(Z = z) is proportional to exp(-|z| / b): the ratio of two densities is at most the product over coordinates of exp(|shift| / b).
            Permute and flip: Z4, of the pattern of C11 or C12. None is infinite, and so never too little: an exponential mechanism that was scaled
            for a rho has an epsilon too, but a larger one than was asked.
    Tight   test_p3_epsilon_is_reached, test_p3_epsilon_of_a_choice_is_reached
    Source  Ghosh, Roughgarden and Sundararajan 2009; Dwork et al. 2006; McKenna and Sheldon 2020.
    """
    match noise.mechanism:
        case Mechanism.LAPLACE:
            return laplace_epsilon(sensitivity.l1, noise.parameter)
        case Choosing.PERMUTE_AND_FLIP:
            return choice_epsilon(_spread(sensitivity, 1), noise.parameter)
        case Mechanism.GAUSSIAN | Choosing.EXPONENTIAL:
            return None
        case _:
            assert_never(noise.mechanism)


def rho_of(noise: Noise, sensitivity: Sensitivity) -> Fraction:
    """P4. The rho of one part's noise.

    Given   the extreme patterns (n coordinates, each by s) of the part's change, and its L2; that of groups whose integers move apart (n, each by r).
    Claim   discrete Gaussian noise of variance parameter v: L2^2 / (2v). Discrete Laplace noise of scale b: the largest n e tanh(e/2), e = s / b.
            Choices of scale s: permute and flip n e tanh(e/2), e = r / s; the exponential mechanism n r^2 / (8 s^2).
    Proof   Gaussian: Canonne, Kamath, Steinke. Laplace: each coordinate is e-DP for its own e = shift / b, so has rho e tanh(e/2), rising and 0 at
            0; rhos of independent coordinates add up; the sum is at most that of the worst pattern (C6). Where only L1 is bounded (C7) the
            pattern is all of it in one coordinate, as tanh rises and so e tanh(e/2) is superadditive. Choices: each group's is (r / s)-DP (Z4)
            and has the rho of Z2 for that, or, exponential, that of Z5; both are superadditive in r, so that C11 or C12 has the worst pattern.
    Tight   test_a17_discrete_laplace_is_not_charged_the_continuous_rho, test_n2_row_weights_are_charged_as_one_coordinate, test_p4_rho_of_patterns,
            test_p4_rho_of_choices
    Source  Canonne, Kamath and Steinke 2020; Bun and Steinke 2016; Cesar and Rogers 2021; docs/pitfalls.md A17, N2.
    """
    match noise.mechanism:
        case Mechanism.GAUSSIAN:
            return gaussian_rho(sensitivity.l2_squared, noise.parameter)
        case Mechanism.LAPLACE:
            return max(count * laplace_rho_up(shift / noise.parameter) for count, shift in sensitivity.moves)
        case Choosing.PERMUTE_AND_FLIP:
            groups, apart = sensitivity.spreads
            return groups * laplace_rho_up(apart / noise.parameter)
        case Choosing.EXPONENTIAL:
            return exponential_rho(_spread(sensitivity, 2), noise.parameter)
        case _:
            assert_never(noise.mechanism)


def _spread(sensitivity: Sensitivity, power: int) -> int:
    """How far integers of groups move apart, to this power, over all groups."""
    groups, apart = sensitivity.spreads
    if groups < 1 or apart < 1:
        raise AssertionError("a choice is among several integers of a group")
    return groups * int(apart**power)


def selection_delta(bounds: Enforced, noises: tuple[Noise, ...], least: int | None) -> Fraction:
    """P5. The delta of showing groups of private keys; 0 where none are selected.

    Given   a group shows if its noisy count of distinct units, cells in {0, 1}, less (minimum - 1), reaches the threshold T >= 1.
    Claim   delta = 1 - (1 - p)^l0 with p = P(Z >= T - 1).
    Proof   Only groups that hold one unit alone exist in one data set and not in the other: at most l0 on each side (C8), each of true count 1,
            each shown with probability at most p (a minimum above 1 lowers it), independently. The count's own noise is priced with the parts.
    Tight   test_p5_selection_delta_is_reached
    Source  Korolova et al. 2009; Wilson et al. 2020, section 4; docs/pitfalls.md A13, A15.
    """
    if bounds.selecting is None:
        return Fraction(0)
    if least is None:
        raise AssertionError("groups are selected by a threshold alone")
    cell = bounds.cells[bounds.selecting]
    if cell.weighted or cell.united or cell.low < 0 or cell.high > 1:
        raise AssertionError("groups are selected by counts of distinct units alone")
    return selection_delta_up(noises[bounds.selecting], least, groups_of_a_unit(bounds))
