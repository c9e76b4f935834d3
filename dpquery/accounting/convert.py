"""From rho and back: rho-zCDP as (epsilon, delta)-DP.

For each s > 0 (the order less 1), rho-zCDP implies (epsilon, delta)-DP whenever
    ln delta >= s ((1 + s) rho - epsilon) - s ln(1 + 1/s) - ln(1 + s).                                                              (*)
The functions here solve (*) for one of the three at a good s. A float search finds s; any s is valid, so the search decides how tight a
result is, never whether it holds. The result at that s is computed in decimals, and what rounding could have lost is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from dpquery.numbers import context, exp_up, float_near, log_up

_DIGITS = 40  # of a result
_NEARLY_ONE = 1 - Fraction(1, 1 << 64)
_LEAST, _MOST = -740.0, 700.0  # where ln s is looked for


def epsilon_up(rho: Fraction, delta: Fraction) -> Fraction | None:
    """V1. The least epsilon for which rho-zCDP implies (epsilon, delta)-DP, rounded up; None (infinite) where delta = 0 and rho > 0.

    Given   rho >= 0, delta >= 0.
    Claim   every rho-zCDP mechanism is (epsilon, delta)-DP.
    Proof   Let L be the privacy loss and a = 1 + s. delta(epsilon) = E max(0, 1 - e^(epsilon - L)), and for every x
            max(0, 1 - e^-x) <= e^(s x) s^s / (1+s)^(1+s) (the maximum of (1 - e^-x) e^(-s x) is at e^-x = s / (1+s)). With x = L - epsilon and
            E e^(s L) <= e^(s a rho): delta <= exp(s (a rho - epsilon)) s^s / (1+s)^(1+s), which is (*). Here it is solved for epsilon; the best s has
            rho s^2 + ln(1+s) = ln(1/delta).
    Tight   test_epsilon_is_the_least_that_the_proposition_gives
    Source  Canonne, Kamath and Steinke 2020, Proposition 12; Balle et al. 2020.
    """
    _check(rho, delta)
    if rho == 0 or delta >= 1:
        return Fraction(0)
    if delta == 0:
        return None
    lost = log_up(1 / delta)
    r, want = float_near(rho), float_near(lost)
    s = _root(lambda s: r * s * s + math.log1p(s) - want)
    near = _context(s)
    log1p = near.ln(near.add(Decimal(1), s))
    parts = (
        near.multiply(near.add(Decimal(1), s), _decimal(rho, near)),
        near.divide(_decimal(lost, near), s),
        near.minus(near.divide(log1p, s)),
        near.minus(_log_of_next(s, near)),
    )
    return _rounded(parts, near, up=True)


def rho_down(epsilon: Fraction, delta: Fraction) -> Fraction:
    """V2. The largest rho for which rho-zCDP implies (epsilon, delta)-DP, rounded down; 0 where delta = 0.

    Given   epsilon >= 0, delta >= 0. (With delta >= 1 any rho would do; the result is the one for 1 - 2^-64.)
    Claim   every mechanism that is (result)-zCDP is (epsilon, delta)-DP, and epsilon_up(result, delta) <= epsilon.
    Proof   (*) solved for rho at one s: rho <= (epsilon - (ln(1/delta) - ln(1+s)) / s + ln(1 + 1/s)) / (1 + s). The last claim is checked, and the
            result lowered until it holds.
    Tight   test_rho_is_the_largest_that_the_proposition_gives
    Source  V1.
    """
    _check(epsilon, delta)
    if delta == 0:
        return Fraction(0)
    delta = min(delta, _NEARLY_ONE)
    lost = log_up(1 / delta)
    e, want = float_near(epsilon), float_near(lost)
    s = _root(lambda s: e + math.log1p(1 / s) - (1 / s + 2) * ((want - math.log1p(s)) / s))
    near = _context(s)
    log1p = near.ln(near.add(Decimal(1), s))
    parts = (_decimal(epsilon, near), near.minus(near.divide(_decimal(lost, near), s)), near.divide(log1p, s), _log_of_next(s, near))
    rho = _rounded(parts, near, up=False) / (1 + Fraction(s))
    less = Fraction(1, 10**34)
    while (epsilon_up(rho, delta) or 0) > epsilon:
        rho, less = rho * (1 - less), less * 100
    return Fraction(context(_DIGITS, ROUND_FLOOR).divide(Decimal(rho.numerator), Decimal(rho.denominator)))


def delta_up(rho: Fraction, epsilon: Fraction) -> Fraction:
    """V3. The least delta for which rho-zCDP implies (epsilon, delta)-DP, rounded up (not below 2^-4096 for rho > 0).

    Given   rho >= 0, epsilon >= 0.
    Claim   every rho-zCDP mechanism is (epsilon, delta)-DP.
    Proof   (*) at one s, as in V1; the best s has (2s+1) rho - epsilon = ln(1 + 1/s).
    Tight   test_delta_is_the_least_that_the_proposition_gives
    Source  V1.
    """
    return delta_line_up(rho, epsilon)[0]


def delta_line_up(rho: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """V4. The delta of V3, and how fast it falls with rho.

    Given   rho >= 0, epsilon >= 0.
    Claim   with the result (d, k), every mechanism that is r-zCDP for an r <= rho is (epsilon, d e^(-k (rho - r)))-DP.
    Proof   At one s the right side of (*) is linear in rho, of slope k = s (1 + s): with r instead of rho it is lower by k (rho - r), and any s is
            valid for r as well. Where it is above 0, d is 1 and k is 0, and nothing is claimed.
    Tight   At r = rho it is V3; below, the least delta falls by no more than a tangent does: test_the_line_of_delta_is_above_it_and_touches_it
    Source  V1.
    """
    _check(rho, epsilon)
    if rho == 0:
        return Fraction(0), Fraction(0)
    r, e = float_near(rho), float_near(epsilon)
    s = _root(lambda s: (2 * s + 1) * r - e - math.log1p(1 / s))
    near = _context(s)
    parts = (
        near.multiply(near.multiply(s, near.add(Decimal(1), s)), _decimal(rho, near)),
        near.minus(near.multiply(s, _decimal(epsilon, near))),
        near.minus(near.multiply(s, _log_of_next(s, near))),
        near.minus(near.ln(near.add(Decimal(1), s))),
    )
    log = Fraction(near.add(*_sum(parts, near)))
    return (Fraction(1), Fraction(0)) if log >= 0 else (exp_up(log), Fraction(s) * (1 + Fraction(s)))


def _check(*numbers: Fraction) -> None:
    if any(x < 0 for x in numbers):
        raise ValueError("rho, epsilon and delta are not negative")


def _root(rising: Callable[[float], float]) -> Decimal:
    """About the s at which a function of s, negative before and positive after, changes its sign."""
    low, high = _LEAST, _MOST
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(math.exp(middle)) > 0 else (middle, high)
    return Decimal(math.exp(high))


def _context(s: Decimal) -> Context:
    """Decimals of 60 digits, and two more for each place between s and 1: ln(1 + s) / s and s ln(1 + 1/s) lose one of them."""
    return context(60 + 2 * abs(s.adjusted()))


def _decimal(x: Fraction, near: Context) -> Decimal:
    return near.divide(Decimal(x.numerator), Decimal(x.denominator))


def _log_of_next(s: Decimal, near: Context) -> Decimal:
    """ln(1 + 1/s)."""
    return near.ln(near.add(Decimal(1), near.divide(Decimal(1), s)))


def _sum(parts: tuple[Decimal, ...], near: Context) -> tuple[Decimal, Decimal]:
    """(sum, slack): where s is n places from 1, prec is 60 + 2 n. There a part is off by less than 10^(n + 3 - prec) = 10^(-27 - prec/2) of itself
    or of 1, and the sum by less than the slack.
    """
    total, size = Decimal(0), Decimal(1)
    for part in parts:
        total, size = near.add(total, part), near.add(size, near.abs(part))
    return total, near.scaleb(size, -22 - near.prec // 2)


def _rounded(parts: tuple[Decimal, ...], near: Context, *, up: bool) -> Fraction:
    """The sum of the parts, at least or at most, not negative, as 40 digits."""
    total, slack = _sum(parts, near)
    outer = near.add(total, slack) if up else near.subtract(total, slack)
    return max(Fraction(0), Fraction(context(_DIGITS, ROUND_CEILING if up else ROUND_FLOOR).plus(outer)))
