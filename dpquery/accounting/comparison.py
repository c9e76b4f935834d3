"""What the methods of accounting say of k equal releases, beside each other, and which of them the ledger may use.

For comparison only, as the textbook's functions are: the two that the ledger uses, basic and zCDP, come from the exact ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Final, assert_never

from dpquery.accounting.convert import epsilon_up
from dpquery.accounting.textbook.composition import adaptive_epsilon, advanced_epsilon, basic, optimal_epsilon
from dpquery.accounting.textbook.concentrated import continuous_laplace_rho
from dpquery.accounting.textbook.gaussian import gaussian_epsilon
from dpquery.accounting.textbook.loss import Pair, batch_epsilon_up, gaussian_pair, laplace_pair, pure_pair, sampled_pairs
from dpquery.accounting.textbook.renyi import ORDERS, laplace_renyi, pure_renyi, renyi_epsilon
from dpquery.accounting.textbook.sampling import amplified, sampled_gaussian_renyi
from dpquery.accounting.zcdp import gaussian_rho, laplace_rho_up

LEAST, MOST = Fraction(1, 10**9), Fraction(100)  # of a strength
RARE: Final = 1e-6  # of delta, that Gaussian tails may cost
CLOSE: Final = Fraction(1, 10**7)  # how near the strongest is looked for


class Kind(StrEnum):
    """What is known of one release."""

    PURE = "pure"
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True, slots=True)
class Batch:
    """`queries` releases of one kind, each with the same noise.

    `strength` is the epsilon of one release, or 1 / sigma of Gaussian noise (sigma in units of the sensitivity); for a group of g units g times
    that. `delta` is that of all together; `rate` is the probability of a unit to be in a query's sample, 1 where there is none.
    """

    kind: Kind
    queries: int
    strength: Fraction
    delta: Fraction
    rate: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Method:
    """One way to account: the epsilon it gives, infinite where it gives none; whether the ledger may use it, and why, in a few words.

    `continuous` is true where the epsilon holds for continuous noise only.
    """

    key: str
    name: str
    epsilon: Callable[[Batch], float]
    ledger: bool
    why: str
    continuous: bool = False


def methods(batch: Batch) -> tuple[Method, ...]:
    """The methods that say something of a batch. With sampling the ledger uses none of them: it gives no credit for it."""
    found = _methods(batch.kind)
    if batch.rate == 1:
        return found
    return tuple(_sampled(m, batch.kind) for m in found if m.key not in (LAPLACE_ZCDP.key, GAUSSIAN.key))


def _methods(kind: Kind) -> tuple[Method, ...]:
    match kind:
        case Kind.PURE:
            return BASIC, *COMPOSED, RENYI, ZCDP, ADAPTIVE, LOSS
        case Kind.LAPLACE:
            return BASIC, *COMPOSED, _of_continuous(RENYI), ZCDP, LAPLACE_ZCDP, ADAPTIVE, _of_continuous(LOSS)
        case Kind.GAUSSIAN:
            composed = (_of_continuous(m) for m in (_by_rho(BASIC), *COMPOSED))
            return *composed, RENYI, ZCDP, _of_continuous(_by_rho(ADAPTIVE)), GAUSSIAN, _of_continuous(LOSS)
        case _:
            assert_never(kind)


def _of_continuous(method: Method) -> Method:
    """The method where what it says of one release holds for continuous noise only."""
    return replace(method, continuous=True)


def _by_rho(method: Method) -> Method:
    """A filter over epsilons, where the noise is Gaussian: the ledger has no epsilon of it."""
    return replace(method, ledger=False, why="Gaussian noise goes by rho")


def _sampled(method: Method, kind: Kind) -> Method:
    """The method of sampled releases: of Laplace noise only the loss distribution knows more than the amplified epsilon."""
    continuous = kind is Kind.GAUSSIAN or (kind is Kind.LAPLACE and method.key == LOSS.key)
    return replace(method, ledger=False, why="no credit is given for sampling", continuous=continuous)


def ledger_epsilon(batch: Batch) -> float:
    """The least cap on epsilon with which an account with a cap of `delta` takes all of the batch, whatever is asked in between.

    An account keeps half of its delta for private groups, and takes a charge by epsilons or by rho, whichever goes further. Sampling counts for
    nothing.
    """
    converted = _float_up(epsilon_up(_rho(batch), batch.delta / 2))
    return converted if batch.kind is Kind.GAUSSIAN else min(converted, _float_up(batch.queries * batch.strength))


def strongest(epsilon: Callable[[Batch], float], batch: Batch, budget: Fraction) -> Fraction | None:
    """The largest strength with which a method gives at most `budget` for a batch, within a ten-millionth and not above; None where none does.

    Strengths lie between 10^-9 and 100.
    """

    def at(strength: Fraction) -> float:
        return epsilon(replace(batch, strength=strength))

    low, high = _bracket(at, budget)
    if low is None or high is None:
        return low
    short = Fraction(f"{float(high):.6g}")
    return short if low < short < high and _log(at(short), budget) <= 0 else low


def _bracket(at: Callable[[Fraction], float], budget: Fraction) -> tuple[Fraction | None, Fraction | None]:
    """(a strength that fits, one hardly larger that does not): the Illinois method on logarithms, bisection where they are infinite."""
    low, high = LEAST, MOST
    below, above = (_log(at(x), budget) for x in (low, high))
    if below > 0:
        return None, None
    if above <= 0:
        return high, None
    stayed = 0  # which end did, of the last bracket: 1 the high one, -1 the low one
    while high > low * (1 + CLOSE):
        part = below / (below - above) if math.isfinite(below - above) else 0.5
        middle = Fraction(float(low) * math.exp(min(max(part, 0.01), 0.99) * math.log(high / low)))
        found = _log(at(middle), budget)
        if found <= 0:
            low, below, above, stayed = middle, found, above / 2 if stayed > 0 else above, 1
        else:
            high, above, below, stayed = middle, found, below / 2 if stayed < 0 else below, -1
    return low, high


def _log(epsilon: float, budget: Fraction) -> float:
    """ln of epsilon in units of the budget."""
    return math.log(epsilon / _float_up(budget)) if epsilon > 0 else -math.inf


# ---- one release -------------------------------------------------------------------------------------------------------------------------


def _each(batch: Batch, delta: float = 0.0) -> float:
    """The epsilon of one release at a delta of its own."""
    rate = float(batch.rate)
    if batch.kind is not Kind.GAUSSIAN:
        return amplified(float(batch.strength), 0.0, rate)[0]
    if delta >= rate:
        return 0.0
    return amplified(gaussian_epsilon(float(batch.strength), delta / rate), 0.0, rate)[0] if delta > 0 else math.inf


def _split(batch: Batch) -> tuple[float, float, float]:
    """(epsilon, delta) of one release, and the delta that is left: half of all for Gaussian noise, which needs some for each release."""
    delta = float(batch.delta)
    if batch.kind is not Kind.GAUSSIAN:
        return _each(batch), 0.0, delta
    each = delta / 2 / batch.queries
    return _each(batch, each), each, delta / 2


def _rho(batch: Batch) -> Fraction:
    """The rho of all releases, not sampled, as the ledger charges it."""
    if batch.kind is Kind.GAUSSIAN:
        return batch.queries * gaussian_rho(1, 1 / (batch.strength * batch.strength))
    return batch.queries * laplace_rho_up(batch.strength)


# ---- the methods -------------------------------------------------------------------------------------------------------------------------


def _basic(batch: Batch) -> float:
    if batch.kind is Kind.GAUSSIAN or batch.rate < 1:
        return batch.queries * _each(batch, float(batch.delta) / batch.queries)
    return _float_up(basic(batch.strength, Fraction(0), batch.queries)[0])


def _advanced(batch: Batch) -> float:
    epsilon, _, slack = _split(batch)
    return advanced_epsilon(epsilon, batch.queries, slack) if slack else math.inf


def _optimal(batch: Batch) -> float:
    epsilon, each, slack = _split(batch)
    if not slack:
        return batch.queries * epsilon
    return optimal_epsilon(epsilon, batch.queries, float(batch.delta), each)


def _adaptive(batch: Batch) -> float:
    epsilon, _, slack = _split(batch)
    return adaptive_epsilon(batch.queries * epsilon * epsilon, slack) if slack else math.inf


def _renyi(batch: Batch) -> float:
    if not batch.delta:
        return math.inf
    return renyi_epsilon([batch.queries * _divergence(batch, order) for order in ORDERS], float(batch.delta))


def _divergence(batch: Batch, order: float) -> float:
    strength, rate = float(batch.strength), float(batch.rate)
    match batch.kind:
        case Kind.GAUSSIAN:
            return sampled_gaussian_renyi(rate, 1 / strength, order)
        case Kind.LAPLACE if rate == 1:
            return laplace_renyi(strength, order)
        case Kind.LAPLACE | Kind.PURE:
            return pure_renyi(_each(batch), order)
        case _:
            assert_never(batch.kind)


def _zcdp(batch: Batch) -> float:
    if batch.rate == 1:
        return _float_up(epsilon_up(_rho(batch), batch.delta))
    epsilon, _, slack = _split(batch)
    if epsilon == math.inf:
        return math.inf
    return _float_up(epsilon_up(batch.queries * laplace_rho_up(Fraction(epsilon)), Fraction(slack)))


def _continuous_laplace(batch: Batch) -> float:
    return _float_up(epsilon_up(batch.queries * Fraction(continuous_laplace_rho(float(batch.strength))), batch.delta))


def _gaussian(batch: Batch) -> float:
    return gaussian_epsilon(float(batch.strength) * math.sqrt(batch.queries), float(batch.delta)) if batch.delta else math.inf


def _loss(batch: Batch) -> float:
    if not batch.delta:
        return math.inf
    pair = _pair(batch)
    pairs = (pair,) if batch.rate == 1 else sampled_pairs(pair, float(batch.rate))
    return max(batch_epsilon_up([(one, batch.queries)], float(batch.delta)) for one in pairs)


def _pair(batch: Batch) -> Pair:
    strength = float(batch.strength)
    match batch.kind:
        case Kind.PURE:
            return pure_pair(strength)
        case Kind.LAPLACE:
            return laplace_pair(strength)
        case Kind.GAUSSIAN:
            return gaussian_pair(strength, RARE * float(batch.delta) / batch.queries)
        case _:
            assert_never(batch.kind)


def _float_up(epsilon: Fraction | None) -> float:
    """The least float that is not below epsilon; infinite for None."""
    if epsilon is None:
        return math.inf
    near = float(epsilon)
    return near if near >= epsilon else math.nextafter(near, math.inf)


_FIXED = "prices are fixed in advance"
_CONTINUOUS = "the noise is discrete"
BASIC: Final = Method("basic", "basic", _basic, True, "a filter: epsilons add up")
COMPOSED: Final = (
    Method("advanced", "advanced (DRV 2010)", _advanced, False, _FIXED),
    Method("optimal", "optimal (KOV 2015)", _optimal, False, _FIXED),
)
RENYI: Final = Method("renyi", "Renyi, best order", _renyi, False, "one order, fixed in advance")
ZCDP: Final = Method("zcdp", "zCDP filter", _zcdp, True, "a filter: rhos add up")
LAPLACE_ZCDP: Final = Method("zcdp_laplace", "zCDP of Laplace noise", _continuous_laplace, False, _CONTINUOUS, continuous=True)
ADAPTIVE: Final = Method("adaptive", "adaptive (WRRW 2023)", _adaptive, True, "a filter, above zCDP's")
GAUSSIAN: Final = Method("gdp", "Gaussian, exactly", _gaussian, False, _CONTINUOUS, continuous=True)
LOSS: Final = Method("pld", "loss distribution (PLD)", _loss, False, _FIXED)
