"""What a release costs and which noise buys it: shares, scales, threshold, price.

`calibrate` chooses the noise, `reprice` says what a given noise costs; the price charged is always that of `reprice`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import assert_never

from dpquery.accounting.convert import delta_line_up, epsilon_up, rho_down
from dpquery.accounting.event import Price
from dpquery.accounting.pure import choice_epsilon, laplace_epsilon
from dpquery.accounting.zcdp import exponential_rho, gaussian_rho, laplace_epsilon_down, laplace_rho_up
from dpquery.aggregates import mode
from dpquery.errors import Refused
from dpquery.mechanisms import Noise, Randomness, selection_delta_up, threshold
from dpquery.numbers import exp_up, significant_up, sqrt_up
from dpquery.plan.leading import led
from dpquery.plan.release import Ask, Choosing, Enforced, Mechanism, PrivateKeys, Release
from dpquery.privacy.allocation import shares
from dpquery.privacy.contribution import Sensitivity, enforced, groups_of_a_unit, sensitivities
from dpquery.values.types import Adjacency

HALF = Fraction(1, 2)
NEARLY = 1 - Fraction(1, 1 << 30)  # of delta: what a release converts at whose selection is paid from the same delta (P11)
USUAL = Fraction(95, 100)  # the confidence at which ways to choose are compared, whatever that of the error bars
BY_RHO: frozenset[Randomness] = frozenset({Mechanism.GAUSSIAN, Choosing.EXPONENTIAL})  # what is charged in rho alone


@dataclass(frozen=True, slots=True)
class Priced:
    """Noise for each part, the threshold of private keys, and what that costs.

    `shares` are the parts' shares of the whole price (they add up to 1, or less where explicit shares leave a rest). `epsilon` and `delta` are
    the statement's guarantee standing alone; `conversion` is the delta at which rho becomes that epsilon, and `price.delta` is selection's: delta is
    their sum, or less (P11). `error` is what the choice among noises makes small.
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
            split between conversion and selection (P2), or paying for both (P11); the choice among candidates reads the plan and the ask alone.
    Tight   test_p1_laplace_spends_exactly_what_was_asked, test_p1_gaussian_spends_nearly_what_was_asked, test_p1_rho_asks_are_met
    Source  Bun and Steinke 2016 (composition and conversion of rho); docs/pitfalls.md B11, C12, C16.
    """
    bounds = enforced(release)
    _possible(release, ask)
    plan = _planned(release, ask, bounds, adjacency)
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
    plan = _planned(release, ask, bounds, adjacency)
    choices = [choice for choice in _choices(release, ask) if rho is not None or not BY_RHO & {*choice}]
    return min((_noised(plan, choice, adjacency, rho, selection) for choice in choices), key=_worth)


@dataclass(frozen=True, slots=True)
class _Plan:
    """`shares` are the parts' of an epsilon, `in_rho` those of a rho."""

    bounds: Enforced
    sensitivities: tuple[Sensitivity, ...]
    shares: tuple[Fraction, ...]
    in_rho: tuple[Fraction, ...]
    ask: Ask
    chosen: tuple[int, ...]


def _planned(release: Release, ask: Ask, bounds: Enforced, adjacency: Adjacency) -> _Plan:
    of_epsilon, of_rho = (shares(release, ask, in_rho=one) for one in (False, True))
    return _Plan(bounds, sensitivities(bounds, adjacency), of_epsilon, of_rho, ask, (*release.modal, *release.ranked, *led(release)))


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

    Of what modes alone read, one integer is chosen instead, unless the statement names a noise; of bins by rank, and of groups that are
    compared, one is chosen in any case.
    """
    pairs: list[tuple[Mechanism, Randomness]] = [(Mechanism.LAPLACE, Choosing.PERMUTE_AND_FLIP)]
    if ask.noise is not None:
        pairs = [(ask.noise, ask.noise)]
    elif ask.delta > 0:
        pairs += [(Mechanism.GAUSSIAN, one) for one in ((Choosing.EXPONENTIAL, Mechanism.GAUSSIAN) if release.modal else (Mechanism.GAUSSIAN,))]
    selecting = release.keys.count if isinstance(release.keys, PrivateKeys) else None
    own, count, always = ask.selection, len(release.table.parts), {*release.ranked, *led(release)}
    found = []
    for added, chosen in pairs:
        by_rank = Choosing.PERMUTE_AND_FLIP if added is Mechanism.LAPLACE else Choosing.EXPONENTIAL
        each: list[Randomness] = [by_rank if i in always else chosen if i in release.modal else added for i in range(count)]
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


def kept(bounds: Enforced, price: Price, epsilon: Fraction, adjacency: Adjacency) -> Fraction:
    """P11. The delta at which a release priced in rho keeps an epsilon: that of conversion and that of selection are never both spent in full.

    Given   what a release enforces, its price (P6) of rho and of selection's delta q, an epsilon.
    Claim   it is (epsilon, result)-DP: the sum d + q of the two; or, for private keys, add/remove and q < 1/2, max(d, q / (1 - q) + d e^(-k rho)) if
            that is less, (d, k) being V4's of rho and epsilon.
    Proof   The sum: P2. Private keys: of the unit's groups, at most l0, let j hold it alone. None of these shows with probability 1 - q_j at least,
            q_j = 1 - (1-p)^j (P5), whatever shows of the others; given that, what shows is a function of the noisy vector over the groups that
            both data sets have, of which the unit has l0 - j at most. Every pattern of C6 and C9 to C12 is a number of groups in proportion to l0,
            each by the same, so this vector costs (1 - j / l0) rho, and keeps epsilon with d_j = d e^(-k rho j / l0) (V4). Where on the side
            without these groups a coin of its own decides nothing with probability q_j, both sides are laws given an event of the same probability:
            (epsilon, q_j + (1 - q_j) d_j)-DP both ways. As q_j <= j p that is at most j p + d e^(-k rho j / l0), convex in j, so at most the larger
            of its values at 0 and l0: d, and l0 p + d e^(-k rho). And l0 p <= (1-p)^(-l0) - 1 = q / (1 - q).
    Tight   All groups the unit's alone, or none: test_p11_both_ends_are_reached, test_p11_exact_losses_are_below_the_claim
    Source  Google, Delta for thresholding (deltas that add up over groups); Bun and Steinke 2016, section 8 (approximate zCDP); the proof above.
    """
    q = price.delta
    most, fall = delta_line_up(price.rho, epsilon)
    if bounds.selecting is None or adjacency is not Adjacency.ADD_REMOVE or q >= HALF:
        return most + q
    return min(most + q, max(most, q / (1 - q) + most * exp_up(-fall * price.rho)))


def _priced(plan: _Plan, choice: tuple[Randomness, ...], adjacency: Adjacency) -> Priced:
    """One candidate: noise by share, threshold by delta, price as `reprice` finds it. Where P11 holds one delta pays twice."""
    ask, selecting = plan.ask, plan.bounds.selecting
    pure = None if BY_RHO & {*choice} else ask.epsilon  # spent as it is, without a conversion
    conversion, selection = delta_split(ask.delta, conversion=pure is None, selection=selecting is not None)
    if conversion and selection and adjacency is Adjacency.ADD_REMOVE:
        found = _converted(plan, choice, adjacency, min(ask.delta * NEARLY, HALF), selection)
        if found.epsilon is not None and kept(plan.bounds, found.price, found.epsilon, adjacency) <= ask.delta:
            return replace(found, delta=ask.delta)
    if pure is None:
        return _converted(plan, choice, adjacency, min(conversion, HALF), selection)  # a delta of 1 (unsafe testing) has no conversion
    return _noised(plan, choice, adjacency, None, selection)


def _converted(plan: _Plan, choice: tuple[Randomness, ...], adjacency: Adjacency, conversion: Fraction, selection: Fraction) -> Priced:
    """One candidate in rho, which is converted at a delta of its own."""
    ask = plan.ask
    found = _noised(plan, choice, adjacency, ask.rho if ask.rho is not None else rho_down(ask.epsilon or Fraction(0), conversion), selection)
    whole = ask.epsilon if sum(plan.in_rho) == 1 else None
    epsilon = whole or epsilon_up(found.price.rho, conversion)
    return replace(found, epsilon=epsilon, delta=conversion + found.price.delta, conversion=conversion)


def _noised(plan: _Plan, choice: tuple[Randomness, ...], adjacency: Adjacency, rho: Fraction | None, selection: Fraction) -> Priced:
    """Noise by share of rho, or of the ask's epsilon where that is None; the threshold by selection's delta. Nothing goes to conversion."""
    selecting = plan.bounds.selecting
    noises = _pure_noises(plan, choice) if rho is None else _rho_noises(plan, choice, rho)
    least = None if selecting is None else threshold(noises[selecting], selection, groups_of_a_unit(plan.bounds))
    price = _price(plan.bounds, noises, least, adjacency)
    error = prod((_error_of(noise, plan, part) for part, noise in enumerate(noises)), start=Fraction(1))
    return Priced(noises, least, price, plan.shares if rho is None else plan.in_rho, price.epsilon, price.delta, Fraction(0), error)


def _error_of(noise: Noise, plan: _Plan, part: int) -> Fraction:
    """The variance of a part's noise, about; of what may be chosen, the square of the lead that a score needs."""
    if part in plan.chosen:
        among = plan.bounds.cells[part].bins or plan.bounds.listed or 1
        return Fraction(mode.lead(among - 1, noise, USUAL)) ** 2
    return 2 * noise.parameter**2 if noise.mechanism is Mechanism.LAPLACE else noise.parameter


def _pure_noises(plan: _Plan, choice: tuple[Randomness, ...]) -> tuple[Noise, ...]:
    """Noise whose epsilons are exactly the parts' shares."""
    epsilon = plan.ask.epsilon or Fraction(0)
    parts = zip(choice, plan.sensitivities, plan.shares, strict=True)
    return tuple(Noise(one, (prod(s.spreads) if isinstance(one, Choosing) else s.l1) / (epsilon * share)) for one, s, share in parts)


def _rho_noises(plan: _Plan, choice: tuple[Randomness, ...], whole: Fraction) -> tuple[Noise, ...]:
    """Noise whose rhos are at most the parts' shares of the whole rho."""
    return tuple(_rho_noise(one, s, whole * share) for one, s, share in zip(choice, plan.sensitivities, plan.in_rho, strict=True))


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
            Permute and flip: Z4, of the pattern of C11, C12 or C17. None is infinite, and so never too little: an exponential mechanism that was
            scaled for a rho has an epsilon too, but a larger one than was asked.
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
            and has the rho of Z2 for that, or, exponential, that of Z5; both are superadditive in r, so that C11, C12 or C17 has the worst pattern.
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
