"""Lower bounds on epsilon and delta from what two neighbouring data sets release: a hockey-stick tester.

Each release is a vector of numbers, NaN where a group does not show. A score says how much likelier a release is under one data set than under
the other. Testers differ in how they score: the one by likelihood knows the law of the noise and the exact sums; the one by histogram knows neither
and learns the score from the first half of the releases, and so does the one by principal components, which sees noise that columns share. An event
is "the score is at least t"; t too is chosen on the first half. On the second half Clopper-Pearson bounds hold for the probability of the event under
either data set, each with probability 1 - ALPHA.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, log
from typing import Any, TypeVar

import numpy as np

from dpquery.accounting.convert import epsilon_up
from dpquery.plan.release import Mechanism
from dpquery.privacy.cost import Priced

T = TypeVar("T")
Array = np.ndarray[Any, Any]
FALSE_ALARM = 1e-6
MOST_BOUNDS = 16_000  # Clopper-Pearson bounds that one run of the audits computes for what is claimed, at most
ALPHA = FALSE_ALARM / MOST_BOUNDS
SIGMAS = 6.4  # a normal deviation of about that chance: to choose events by, nothing rests on it
CANDIDATES = 60
BINS = 48


@dataclass(frozen=True)
class Claim:
    """What is promised: (epsilon, delta)-DP."""

    name: str
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Found:
    """The largest epsilon that the claim's delta leaves, and the largest delta that its epsilon leaves, as far as the releases show."""

    claim: Claim
    epsilon: float
    delta: float

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted."""
        return self.epsilon > self.claim.epsilon or self.delta > self.claim.delta


def claims(priced: Priced) -> list[Claim]:
    """What is claimed of a release: the statement's own guarantee, the pure epsilon, and what its rho converts to at a large and a small delta."""
    found = [] if priced.epsilon is None else [Claim("stated", float(priced.epsilon), float(priced.delta))]
    if priced.price.epsilon is not None and (priced.price.epsilon, priced.price.delta) != (priced.epsilon, priced.delta):
        found.append(Claim("pure", float(priced.price.epsilon), float(priced.price.delta)))
    for delta in (Fraction(1, 20), Fraction(1, 1000)):
        converted = epsilon_up(priced.price.rho, delta)
        if converted is not None:
            found.append(Claim(f"rho at delta {float(delta)}", float(converted), float(delta + priced.price.delta)))
    return found


# ---- bounds --------------------------------------------------------------------------------------------------------------------------


def upper(hits: int, count: int, alpha: float) -> float:
    """Clopper-Pearson: the p at which so few hits have probability alpha."""
    if hits >= count:
        return 1.0
    k = np.arange(1, hits + 1)
    ways = np.concatenate([[0.0], np.cumsum(np.log((count - k + 1) / k))])
    successes = np.arange(hits + 1)
    low, high = hits / count, 1.0
    for _ in range(30):  # after any number of steps the upper end is a bound; after so many it is the best to 9 digits
        p = (low + high) / 2
        if not 0 < p < 1:
            break
        terms = ways + successes * log(p) + (count - successes) * np.log1p(-p)
        likely = terms.max() + log(np.exp(terms - terms.max()).sum()) > log(alpha)
        low, high = (p, high) if likely else (low, p)
    return high


def lower(hits: int, count: int, alpha: float) -> float:
    """Clopper-Pearson: the p at which so many hits have probability alpha."""
    return 1 - upper(count - hits, count, alpha)


def found(one: Array, two: Array, claim: Claim) -> Found:
    """What the scores of the releases of two data sets show of a claim, an event being a score that is high."""
    half = len(one) // 2
    tried = np.append(np.unique(np.quantile(np.concatenate([one[:half], two[:half]]), np.linspace(0.002, 0.9995, CANDIDATES), method="higher")), inf)
    p, q = ((side[:half, None] >= tried).mean(axis=0) for side in (one, two))
    p, q = p - SIGMAS * np.sqrt(p / half), q + SIGMAS * np.sqrt(q / half) + 20 / half
    gain = np.where(p > claim.delta, np.log(np.maximum(p - claim.delta, 1e-300) / q), -inf)
    by_epsilon = _bounds(one[half:], two[half:], tried[np.argmax(gain)])
    by_delta = _bounds(one[half:], two[half:], tried[np.argmax(p - exp(claim.epsilon) * q)])
    epsilon = log((by_epsilon[0] - claim.delta) / by_epsilon[1]) if by_epsilon[0] > claim.delta else -inf
    return Found(claim, epsilon, by_delta[0] - exp(claim.epsilon) * by_delta[1])


def _bounds(one: Array, two: Array, least: float) -> tuple[float, float]:
    """(low, high): the event has at least probability low under the first data set, at most high under the second."""
    return lower(int((one >= least).sum()), len(one), ALPHA), upper(int((two >= least).sum()), len(two), ALPHA)


def judged(score: Array, other: Array, promised: list[Claim]) -> list[Found]:
    """Of each claim the direction that shows more. `score` and `other` are the scores of the two data sets' releases, high for the first."""
    return [max((found(score, other, c), found(-other, -score, c)), key=lambda f: (f.broken, f.epsilon)) for c in promised]


# ---- scores --------------------------------------------------------------------------------------------------------------------------


def by_likelihood(out: Array, one: Array, two: Array, priced: Priced) -> Array:
    """The log-likelihood ratio of each release (releases by groups by parts), infinite where a group shows that one data set alone has."""
    total = np.zeros(len(out))
    shown = ~np.isnan(out[:, :, 0])
    for part, drawn in enumerate(priced.noises):
        v = float(drawn.parameter)
        for sums, sign in ((two, 1), (one, -1)):
            away = out[:, :, part] - sums[:, part]
            total += sign * np.nansum(abs(away) / v if drawn.mechanism is Mechanism.LAPLACE else away**2 / (2 * v), axis=1)
    total[(shown & np.isnan(two[:, 0])).any(axis=1)] = inf
    total[(shown & np.isnan(one[:, 0])).any(axis=1)] = -inf
    return total


def by_histogram(one: Array, two: Array) -> tuple[Array, Array]:
    """Scores of both data sets' releases (releases by columns), learned from the first halves: log-ratios of histograms, added up."""
    half = len(one) // 2
    total = np.zeros(len(one)), np.zeros(len(two))
    for column in range(one.shape[1]):
        pooled = np.concatenate([one[:half, column], two[:half, column]])
        seen = pooled[~np.isnan(pooled)]
        edges = np.unique(np.quantile(seen, np.linspace(0, 1, BINS + 1)[1:-1], method="higher")) if len(seen) else np.array([])
        places = [np.where(np.isnan(side[:, column]), len(edges) + 1, np.searchsorted(edges, side[:, column], side="right")) for side in (one, two)]
        first, second = (np.bincount(place[:half], minlength=len(edges) + 2) for place in places)
        score = np.log((first + 0.5) / (second + 0.5))
        for side in (0, 1):
            total[side][:] += score[places[side]]
    return total


def by_components(one: Array, two: Array) -> tuple[Array, Array]:
    """Scores by histograms of principal components: noise that columns share leaves a direction in which there is hardly any."""
    half = len(one) // 2
    known = np.nan_to_num(np.nanmean(one[:half], axis=0))
    first, second = (np.where(np.isnan(side), known, side) for side in (one, two))
    spread = np.maximum(first[:half].std(axis=0), 1e-9)
    first, second = (first - known) / spread, (second - known) / spread
    turned = np.linalg.eigh(first[:half].T @ first[:half] / half)[1]
    return by_histogram(np.round(first @ turned, 6), np.round(second @ turned, 6))


# ---- what is recorded ----------------------------------------------------------------------------------------------------------------


def hardest(changes: Sequence[T], noticed: Callable[[T], bool]) -> T | None:
    """The last of changes, ever harder to notice, that is noticed, by bisection; None where the first is not."""
    known, unknown = -1, len(changes)
    while unknown - known > 1:
        middle = (known + unknown) // 2
        known, unknown = (middle, unknown) if noticed(changes[middle]) else (known, middle)
    return changes[known] if known >= 0 else None


def line(
    shape: str, adjacency: str, pair: Sequence[str], found: Mapping[str, Sequence[Found]], releases: int, power: str | None, seconds: float
) -> dict[str, object]:
    """A line of the report: per claim what each tester found, and the least change that the same audit notices."""
    told: list[dict[str, object]] = [{"name": f.claim.name, "epsilon": f.claim.epsilon, "delta": f.claim.delta} for f in next(iter(found.values()))]
    for how, by_tester in found.items():
        for one, by in zip(told, by_tester, strict=True):
            one[how] = [by.epsilon, by.delta]
    said = {"shape": shape, "adjacency": adjacency, "pair": pair, "claims": told, "releases": releases, "power": power}
    return {**said, "seconds": round(seconds, 1)}
