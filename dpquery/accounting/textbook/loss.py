"""Privacy loss distributions: batches of releases whose noise is fixed before the first answer, composed on a grid of losses.

Rounding is towards more loss. A mechanism is a pair of laws (P, Q). The mass of the losses between two grid points a < b is split between them so
that both the sum of P and the sum of Q stay as they are: the pair itself is then what a random map makes of the grid's pair (the map takes each point
back to the losses that its mass came from, in proportion), so the grid's pair loses at least as much, and so does any composition of such
pairs. P's mass above the grid becomes an infinite loss, below it the least one. Sums are cyclic convolutions of masses tilted by
e^(s loss), so that what matters is not small; what the tilted law has outside the cycle is bounded by Chernoff and added to delta. Float errors, some
10^-9 of the masses, are covered by enlarging all of delta's masses by a millionth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpquery.accounting.textbook.hockeystick import Floats, loss_epsilon

_SLACK = 1e-6
_FINE = 100  # grid steps in one standard deviation of the loss
_WIDEST = 1 << 15  # grid steps that one mechanism's losses may span
_LONGEST = 1 << 18  # of a cycle
_STEEPEST = 1e8  # s times the largest sum: e^(s loss) keeps eight digits
_OUTSIDE = 40.0  # the tilted law has e^-40 of its mass outside the cycle, at either end


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair of laws (P, Q): `masses` gives those of P and Q between rising losses, -inf and inf included, each interval closed above.

    Nearly all of P's and Q's losses lie in [low, high]; `deviation` is about the standard deviation of P's.
    """

    masses: Callable[[Floats], tuple[Floats, Floats]]
    low: float
    high: float
    deviation: float


Batch = Sequence[tuple[Pair, int]]


def pure_pair(epsilon: float) -> Pair:
    """The pair of randomised response, which loses as much as any epsilon-DP mechanism. Discrete Laplace noise at a shift of one step has it too.

    Formula  loss epsilon of mass 1 / (1 + e^-epsilon), -epsilon of the rest
    Units    natural.
    Errors   ValueError unless epsilon > 0 and finite.
    Source   Kairouz, Oh and Viswanath 2015, Theorem 2.
    Ledger   no: prices must be fixed in advance.
    """
    _check_size(epsilon)
    more, less = 1 / (1 + math.exp(-epsilon)), math.exp(-epsilon) / (1 + math.exp(-epsilon))

    def masses(edges: Floats) -> tuple[Floats, Floats]:
        top, bottom = _holds(edges, epsilon), _holds(edges, -epsilon)
        return top * more + bottom * less, top * less + bottom * more

    return Pair(masses, -epsilon, epsilon, epsilon)


def laplace_pair(epsilon: float) -> Pair:
    """The pair of continuous Laplace noise: by symmetry in either direction.

    Formula  losses +-epsilon of mass 1/2 and e^-epsilon / 2; between them P's density is e^(-(epsilon - x)/2) / 4
    Units    epsilon = L1 sensitivity / scale.
    Errors   ValueError unless epsilon > 0 and finite.
    Source   Dwork et al. 2006; Sommer, Meiser and Mohammadi 2019 (as a loss).
    Ledger   no: prices must be fixed in advance, and the noise here is discrete.
    """
    _check_size(epsilon)

    def masses(edges: Floats) -> tuple[Floats, Floats]:
        inner = np.clip(edges, -epsilon, epsilon)
        low, width = inner[:-1], -np.expm1((inner[:-1] - inner[1:]) / 2) / 2
        high, rare = inner[1:], math.exp(-epsilon)
        top, bottom = _holds(edges, epsilon), _holds(edges, -epsilon)
        p = np.exp((high - epsilon) / 2) * width + (top + bottom * rare) / 2
        return p, np.exp((-low - epsilon) / 2) * width + (top * rare + bottom) / 2

    return Pair(masses, -epsilon, epsilon, min(epsilon, 2.0))


def gaussian_pair(mu: float, rare: float) -> Pair:
    """The pair of continuous Gaussian noise: by symmetry in either direction.

    Formula  under P the loss is normal of mean mu^2/2 and variance mu^2, under Q of mean -mu^2/2
    Units    mu = L2 sensitivity / sigma; `rare` is how much of the mass may count as an infinite loss.
    Errors   ValueError unless mu > 0 is finite and 0 < rare < 1.
    Source   Sommer, Meiser and Mohammadi 2019.
    Ledger   no: prices must be fixed in advance, and the noise here is discrete.
    """
    _check_size(mu)
    if not 0 < rare < 1:
        raise ValueError("rare is above 0 and below 1")

    def masses(edges: Floats) -> tuple[Floats, Floats]:
        return _normal(edges / mu - mu / 2), _normal(edges / mu + mu / 2)

    reach = mu * math.sqrt(2 * math.log(1 / rare))
    return Pair(masses, -mu * mu / 2 - reach, mu * mu / 2 + reach, mu)


def sampled_pairs(pair: Pair, rate: float) -> tuple[Pair, Pair]:
    """Both pairs of a query on a Poisson sample: a unit removed, and a unit added. The price is the larger of theirs.

    Formula  ((1-q) Q + q P, Q) and (Q, (1-q) Q + q P): the losses are +-ln(1 + q (e^x - 1))
    Units    q is the probability of a unit to be in the sample.
    Errors   ValueError unless 0 < q <= 1.
    Source   Zhu, Dong and Wang 2022.
    Ledger   no: no credit is given for sampling.
    """
    if not 0 < rate <= 1:
        raise ValueError("a sampling rate is above 0 and at most 1")

    def back(losses: Floats) -> Floats:
        """The losses of the whole query behind those of the sampled one."""
        with np.errstate(over="ignore"):
            inner = np.maximum(np.expm1(losses) / rate, -1.0)
        with np.errstate(divide="ignore"):
            return np.where(losses > 500, losses - math.log(rate), np.log1p(inner))

    def removed(edges: Floats) -> tuple[Floats, Floats]:
        p, q = pair.masses(back(edges))
        return (1 - rate) * q + rate * p, q

    def added(edges: Floats) -> tuple[Floats, Floats]:
        p, q = pair.masses(back(-edges[::-1]))
        return q[::-1], ((1 - rate) * q + rate * p)[::-1]

    low, high = _forth(pair.low, rate), _forth(pair.high, rate)
    whole = np.linspace(pair.low, pair.high, 2001)
    p, q = pair.masses(whole)
    mixed, losses = (1 - rate) * q + rate * p, np.array([_forth(x, rate) for x in whole[1:]])
    deviation = math.sqrt(float(np.sum(mixed * losses * losses)))
    return Pair(removed, low, high, deviation), Pair(added, -high, -low, deviation)


def batch_epsilon_up(batch: Batch, delta: float) -> float:
    """The epsilon at delta of a batch, each pair so many times; rounded up, by less than a thousandth where a loss spans up to 100 deviations.

    Formula  the least t >= 0 with E (1 - e^(t - L))_+ <= delta, L the sum of all losses
    Units    natural. A pair stands for one direction: where directions differ, the price is the larger.
    Errors   ValueError unless 0 < delta < 1 and there is a release; infinite where infinite losses alone have more mass than delta.
    Source   Koskela, Jalko and Honkela 2020; Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022 (the grid); Zhu, Dong and Wang 2022.
    Ledger   no: prices must be fixed in advance.
    """
    if not (0 < delta < 1 and batch and all(count >= 1 for _, count in batch)):
        raise ValueError("delta is above 0 and below 1, and a batch has a release")
    return _epsilon(batch, delta, _step(batch))


# ---- one mechanism on the grid -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Grid:
    """P's masses at the losses step * (first, first + 1, ..), and what is infinite, of a mechanism that takes part `count` times."""

    first: int
    losses: Floats
    masses: Floats
    infinite: float
    count: int


def _on_grid(pair: Pair, step: float, count: int) -> _Grid:
    first = math.floor(pair.low / step)
    points: Floats = step * np.arange(first, math.ceil(pair.high / step) + 2, dtype=np.float64)
    p, q = pair.masses(np.concatenate(([-np.inf], points, [np.inf])))
    inner = p[1:-1]
    with np.errstate(over="ignore", invalid="ignore"):
        upper = (inner - np.exp(points[:-1]) * q[1:-1]) / -math.expm1(-step)
    upper = np.clip(np.nan_to_num(upper, nan=np.inf), 0.0, inner)
    masses = np.zeros(len(points))
    masses[0] = p[0]
    masses[:-1] += inner - upper
    masses[1:] += upper
    held = np.flatnonzero(masses)
    start, stop = int(held[0]), int(held[-1]) + 1
    return _Grid(first + start, points[start:stop], masses[start:stop], float(p[-1]), count)


def _holds(edges: Floats, atom: float) -> Floats:
    return ((edges[:-1] < atom) & (atom <= edges[1:])).astype(np.float64)


def _normal(z: Floats) -> Floats:
    """The standard normal masses between points: differences of the tail that is small there."""
    tails = np.array([math.erfc(x / math.sqrt(2)) for x in np.abs(z)]) / 2
    return np.where(z[:-1] >= 0, tails[:-1] - tails[1:], np.where(z[1:] <= 0, tails[1:] - tails[:-1], 1 - tails[:-1] - tails[1:]))


def _forth(loss: float, rate: float) -> float:
    """ln(1 + q (e^x - 1))."""
    if loss > 1:
        return loss + math.log(rate + (1 - rate) * math.exp(-loss))
    return math.log1p(rate * math.expm1(loss)) if rate < 1 else loss


def _check_size(size: float) -> None:
    if not 0 < size < math.inf:
        raise ValueError("a positive and finite size is needed")


def _step(batch: Batch) -> float:
    """A hundredth of what the losses deviate by, or more where one spans very many of those; a part of the first pair's largest loss if it can."""
    deviation = math.sqrt(math.fsum(n * pair.deviation**2 for pair, n in batch) / sum(n for _, n in batch))
    step = max(deviation / _FINE, max(pair.high - pair.low for pair, _ in batch) / _WIDEST)
    top = batch[0][0].high
    return top / math.ceil(top / step) if top > step else step


# ---- composition -------------------------------------------------------------------------------------------------------------------------


def _epsilon(batch: Batch, delta: float, step: float) -> float:
    grids = [_on_grid(pair, step, count) for pair, count in batch]
    infinite = -math.expm1(math.fsum(grid.count * math.log1p(-grid.infinite) for grid in grids))
    left = delta / (1 + _SLACK) - infinite
    if left <= 0:
        return math.inf

    def total(s: float) -> float:
        """ln E e^(s L) over finite losses."""
        return math.fsum(grid.count * _log_moment(grid, s) for grid in grids)

    def bound(s: float) -> float:
        """An epsilon for every s > 0, as accounting.convert."""
        return (total(s) - math.log(left) + s * math.log(s) - (1 + s) * math.log1p(s)) / s

    size = math.fsum(grid.count * float(np.abs(grid.losses).max()) for grid in grids)
    s = _least(bound, _STEEPEST / size)
    if bound(s) <= 0:
        return 0.0
    tilted = [_tilted(grid, s) for grid in grids]
    middle = math.fsum(grid.count * float(np.sum(t * grid.losses)) for grid, t in zip(grids, tilted, strict=True))
    base = total(s)
    above = _reach(lambda t: total(s + t) - base - t * middle)
    below = _reach(lambda t: total(s - t) - base + t * middle)
    if (above + below) / step > _LONGEST:
        return _epsilon(batch, delta, 2 * step)
    cycle = 1 << math.ceil(math.log2((above + below) / step + 4))
    first = math.floor((middle - below) / step)
    sums = _convolved(grids, tilted, cycle, first)
    losses: Floats = step * np.arange(first, first + cycle, dtype=np.float64)
    with np.errstate(divide="ignore"):
        logs = np.log(sums) + (base - s * losses)
    outside = math.exp(min(0.0, base - s * float(losses[-1]) - _OUTSIDE))
    found = loss_epsilon(losses, logs, left - outside) if outside < left else math.inf
    return min(found, bound(s))


def _log_moment(grid: _Grid, s: float) -> float:
    exponents = s * grid.losses
    most = float(exponents.max())
    return most + math.log(float(np.sum(grid.masses * np.exp(exponents - most))))


def _tilted(grid: _Grid, s: float) -> Floats:
    exponents = s * grid.losses
    weights: Floats = grid.masses * np.exp(exponents - exponents.max())
    return weights / float(weights.sum())


def _convolved(grids: Sequence[_Grid], tilted: Sequence[Floats], size: int, first: int) -> Floats:
    """The law of the sum on a cycle of `size` steps, read from the grid point `first` on."""
    transform: np.ndarray[tuple[int], np.dtype[np.complex128]] = np.ones(size // 2 + 1, dtype=np.complex128)
    for grid, law in zip(grids, tilted, strict=True):
        cycle = np.zeros(size)
        np.add.at(cycle, np.arange(grid.first, grid.first + len(law)) % size, law)
        transform = transform * np.fft.rfft(cycle) ** grid.count
    return np.roll(np.maximum(np.fft.irfft(transform, size), 0.0), -(first % size))


def _reach(exponent: Callable[[float], float]) -> float:
    """How far from its mean the tilted law has less than e^-40, by Chernoff at the best t."""
    best = _least(lambda t: (exponent(t) + _OUTSIDE) / t, math.exp(50))
    return (max(0.0, exponent(best)) + _OUTSIDE) / best


def _least(function: Callable[[float], float], most: float) -> float:
    """The positive number up to `most` at which a function, first falling and then rising, is about least."""
    low, high = -50.0, math.log(most)
    for _ in range(44):
        third = (high - low) / 3
        low, high = (low, high - third) if function(math.exp(low + third)) <= function(math.exp(high - third)) else (low + third, high)
    return math.exp((low + high) / 2)
