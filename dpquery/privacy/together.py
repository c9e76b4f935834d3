"""Several releases of one statement: one price, split over them before any is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from dpquery.accounting.convert import epsilon_up, rho_down
from dpquery.accounting.event import Price
from dpquery.errors import Refused
from dpquery.plan.release import Ask, Enforced, Mechanism, PrivateKeys, Release
from dpquery.privacy.cost import BY_RHO, HALF, Priced, calibrate, delta_split, reprice, within
from dpquery.values.types import Adjacency


@dataclass(frozen=True, slots=True)
class Bill:
    """What a statement costs: the noise and price of each release, and their sum, `price`.

    `epsilon` and `delta` are the statement's guarantee standing alone; of delta, `conversion` goes from rho to epsilon, and selection has the rest,
    or by P11, of one release, up to half of it all.
    """

    releases: tuple[Priced, ...]
    price: Price
    epsilon: Fraction | None
    delta: Fraction
    conversion: Fraction


def bill(releases: Sequence[Release], asks: Sequence[Ask], whole: Ask, adjacency: Adjacency) -> Bill:
    """P8. The noises of least error that meet a statement's price, over all its releases.

    Given   releases, each with an ask whose epsilon (or rho) is its part of the statement's, and the statement's own ask, `whole`.
    Claim   the releases together are (epsilon, delta)-DP standing alone, for the asked epsilon (or the conversion of the asked rho) and delta, also
            where a later release reads values, rows or a key list that an earlier one released; or Refused where no noise does that.
    Proof   Noise, threshold, bounds and caps of each are fixed here, before any is made, by the plans and the asks alone. Given all that earlier
            ones released, each is the mechanism of P6 on a plan whose public relations hold those values, which its sensitivities do not read:
            they see columns without bounds, which multiply no row (L25), and no number of keys (C15). So it has its own price whatever they were.
            (Levels of groups, of ROLLUP and its kin, are such releases, of which none reads another.)
            Losses of such a sequence add up: epsilons, rhos (zCDP composes adaptively) and deltas. Where nothing is charged in rho alone the
            epsilons add up to the asked one; else the rhos add up to at most what converts to it with conversion's part of delta (P2), once for the
            statement; selection's part is split equally among the releases that select. What stands above them is a function of what they released.
    Tight   test_p8_the_whole_price_is_spent, test_p8_prices_of_releases_add_up
    Source  Dwork and Roth 2014, theorem 3.16; Bun and Steinke 2016, lemma 2.3; Whitehouse et al. 2023 (adaptive composition).
    """
    if len(releases) == 1:
        (priced,) = (calibrate(releases[0], asks[0], adjacency),)
        return Bill((priced,), priced.price, priced.epsilon, priced.delta, priced.conversion)
    found = [one for one in (_pure(releases, asks, whole, adjacency), _converted(releases, asks, whole, adjacency)) if one is not None]
    if not found:
        raise Refused("GAUSSIAN_NEEDS_DELTA", "Gaussian noise needs a delta above 0", instead="give a delta, or noise => LAPLACE")
    return min(found, key=_worth)


def _worth(billed: Bill) -> tuple[int, Fraction]:
    """What the choice makes small: thresholds of private keys first, then errors."""
    return prod(one.threshold or 1 for one in billed.releases), prod((one.error for one in billed.releases), start=Fraction(1))


def price(bounds: Sequence[Enforced], billed: Bill, adjacency: Adjacency) -> Price:
    """P9. What the given noises and thresholds cost under the given bounds of each release.

    Given   the bounds that the lowered statements enforce; no price in `billed` is read.
    Claim   the releases together are (epsilon, delta)-DP where epsilon is finite, and delta-approximate rho-zCDP.
    Proof   Each has the price of P6; losses of a sequence add up, as in P8.
    Tight   test_p8_prices_of_releases_add_up
    Source  Dwork and Roth 2014, theorem 3.16; Bun and Steinke 2016, lemma 2.3.
    """
    return _total([reprice(one, priced, adjacency) for one, priced in zip(bounds, billed.releases, strict=True)])


def _total(prices: Sequence[Price]) -> Price:
    """The sum of prices; its epsilon is infinite (None) where one's is."""
    finite = [one.epsilon for one in prices if one.epsilon is not None]
    return Price(
        epsilon=sum(finite, Fraction(0)) if len(finite) == len(prices) else None,
        rho=sum((one.rho for one in prices), Fraction(0)),
        delta=sum((one.delta for one in prices), Fraction(0)),
    )


def _selections(releases: Sequence[Release], selection: Fraction) -> list[Fraction]:
    """Each release's part of selection's delta: equal among those that select."""
    selecting = [isinstance(one.keys, PrivateKeys) for one in releases]
    return [selection / sum(selecting) if one else Fraction(0) for one in selecting]


def _pure(releases: Sequence[Release], asks: Sequence[Ask], whole: Ask, adjacency: Adjacency) -> Bill | None:
    """Laplace noise, and choices by permute and flip, everywhere; None where the price is in rho or Gaussian noise was asked for."""
    if whole.epsilon is None or any(Mechanism.GAUSSIAN in (ask.noise, ask.selection) for ask in asks):
        return None
    _, selection = delta_split(whole.delta, conversion=False, selection=any(isinstance(one.keys, PrivateKeys) for one in releases))
    parts = zip(releases, asks, _selections(releases, selection), strict=True)
    found = tuple(within(release, ask, adjacency, None, delta) for release, ask, delta in parts)
    spent = _total([one.price for one in found])
    return Bill(found, spent, spent.epsilon, spent.delta, Fraction(0))


def _converted(releases: Sequence[Release], asks: Sequence[Ask], whole: Ask, adjacency: Adjacency) -> Bill | None:
    """Noise priced in rho, each release's mechanism the one that errs less; None without a delta, or where an epsilon buys no Gaussian noise."""
    if whole.delta == 0:
        return None
    selecting = any(isinstance(one.keys, PrivateKeys) for one in releases)
    conversion, selection = delta_split(whole.delta, conversion=True, selection=selecting)
    conversion = min(conversion, HALF)
    rho = whole.rho if whole.rho is not None else rho_down(whole.epsilon or Fraction(0), conversion)
    parts = zip(releases, asks, _selections(releases, selection), strict=True)
    found = tuple(within(release, ask, adjacency, rho * _share(ask, whole), delta) for release, ask, delta in parts)
    if whole.epsilon is not None and not any(noise.mechanism in BY_RHO for one in found for noise in one.noises):
        return None  # an account in epsilons would be charged more than was asked
    spent = _total([one.price for one in found])
    full = all(sum(one.shares) == 1 for one in found if one.shares)
    epsilon = whole.epsilon if full and whole.epsilon is not None else epsilon_up(spent.rho, conversion)
    return Bill(found, spent, epsilon, conversion + spent.delta, conversion)


def _share(ask: Ask, whole: Ask) -> Fraction:
    """A release's share of the statement's price."""
    if ask.epsilon is not None and whole.epsilon is not None:
        return ask.epsilon / whole.epsilon
    if ask.rho is not None and whole.rho is not None:
        return ask.rho / whole.rho
    raise AssertionError("a release is priced as its statement is")
