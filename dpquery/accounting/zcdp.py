"""Prices in zero-concentrated differential privacy: rho bounds the Renyi divergence of each order a by a * rho."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

from dpquery.numbers import context, exp_down, significant_down, significant_up, sqrt_down

_SMALL = Fraction(1, 10**20)  # below it e^2 / 2 is e tanh(e/2) to 40 digits
_LARGE = 300  # above it tanh(e/2) is 1 to 120 digits


def gaussian_rho(l2_squared: int, variance: Fraction) -> Fraction:
    """Z1. The rho of discrete Gaussian noise: l2_squared / (2 variance), exactly.

    Given   a vector of integers that one unit moves by at most l2_squared in squared L2, and independent discrete Gaussian noise of variance
            parameter v on each.
    Claim   the noisy vector is l2_squared / (2 v)-zCDP. (Parts with noises of their own add up.)
    Proof   For a shift d, the sum of g(z)^a g(z - d)^(1-a) over z is exp(a (a-1) d^2 / 2v) times the sum of g(z - (1-a) d), and a shifted sum of g
            is at most the unshifted one (Poisson summation: all Fourier coefficients are positive). So D_a <= a d^2 / 2v; D_a adds up over
            independent coordinates.
    Tight   Orders a with an integer (1-a) d reach it: test_discrete_gaussian_costs_at_most_its_rho_and_reaches_it
    Source  Canonne, Kamath and Steinke 2020, Theorem 4 and Proposition 5.
    """
    return Fraction(l2_squared) / (2 * variance)


def laplace_rho_up(epsilon: Fraction) -> Fraction:
    """Z2. The rho of what is epsilon-DP, discrete Laplace noise on one coordinate included: epsilon * tanh(epsilon / 2), rounded up.

    Given   a mechanism that is epsilon-DP. For discrete Laplace of scale b on a coordinate of shift at most D, epsilon = D / b; where only the L1 of
            the vector is bounded, epsilon = L1 / b for all coordinates together.
    Claim   it is (epsilon tanh(epsilon / 2))-zCDP. Independent coordinates add up.
    Proof   Its pair of output laws is a post-processing of randomised response with P(1) = e^epsilon P(0), so D_a is at most that pair's,
            (c(a - 1/2) - c(1/2)) / (a - 1) with c(x) = ln cosh(x epsilon), the mean of c' over [1/2, a - 1/2]. c'(x) = epsilon tanh(x epsilon) is
            concave on x >= 0: its mean is at most its value at the middle, epsilon tanh(a epsilon / 2) <= a epsilon tanh(epsilon / 2).
    Tight   At shift 1 discrete Laplace is randomised response, and a -> 1 reaches it: test_discrete_laplace_reaches_its_rho_at_shift_one
    Source  Kairouz, Oh and Viswanath 2015, Theorem 2 (the reduction). The continuous Laplace law has a lower rho, which does not hold here.
    """
    if epsilon < 0:
        raise ValueError("epsilon is not negative")
    if epsilon < _SMALL:
        return significant_up(epsilon * epsilon / 2)
    if epsilon > _LARGE:
        return significant_up(epsilon)
    q = exp_down(-epsilon)
    return significant_up(epsilon * (1 - q) / (1 + q))


def exponential_rho(spreads_squared: int, scale: Fraction) -> Fraction:
    """Z5. The rho of choices by the exponential mechanism (M7): spreads_squared / (8 scale^2), exactly.

    Given   scores of several groups, which one unit moves by d_i each; in each group the largest d_i less the smallest is at most r, and the r^2 add
            up to at most `spreads_squared`. In each group score i is chosen with probability proportional to exp(q_i / s).
    Claim   the choices together are (spreads_squared / (8 s^2))-zCDP. (Not those by permute and flip, which have Z2 of their epsilon.)
    Proof   One group: the laws P and Q of two neighbours have ln P(i)/Q(i) = d_i / s + c with the same c for all i, so this loss L lies in an
            interval of length h = r / s. k(x) = ln E_Q exp(x L) is 0 at 0 and at 1, and its second derivative is a variance of L, under a tilted
            law, so at most h^2 / 4. Hence k(x) - x (x - 1) h^2 / 8 is concave and 0 at 0 and at 1, so at most 0 for x = a > 1:
            D_a = k(a) / (a - 1) <= a h^2 / 8. Groups' choices are independent, and D_a adds up.
    Tight   Small r on two scores that are equal: test_exponential_rho_is_nearly_reached
    Source  Cesar and Rogers 2021, Lemma 3.2; Dong, Durfee and Rogers 2020 (bounded range).
    """
    return Fraction(spreads_squared) / (8 * scale * scale)


def laplace_epsilon_down(rho: Fraction) -> Fraction:
    """Z3. The largest epsilon with epsilon * tanh(epsilon / 2) <= rho, rounded down.

    Given   rho >= 0.
    Claim   laplace_rho_up(result) <= rho, and the result is within one part in 10^20 of the largest such epsilon.
    Proof   The claim is checked on the result, which is lowered until it holds. The start is Newton's on the increasing e tanh(e/2).
    Tight   One part in 10^20 more costs more than rho: test_laplace_epsilon_down_is_the_inverse
    Source  Z2.
    """
    if rho < 0:
        raise ValueError("rho is not negative")
    epsilon, less = _newton(rho), Fraction(1, 10**36)
    while laplace_rho_up(epsilon) > rho:
        epsilon, less = significant_down(epsilon * (1 - less)), less * 8
    return epsilon


def _newton(rho: Fraction) -> Fraction:
    """About the root of e tanh(e/2) = rho, to some 40 digits: from below (tanh x <= min(1, x)) it is reached within a few steps."""
    start = max(rho, sqrt_down(2 * rho))
    if rho < _SMALL**2 or start > _LARGE:
        return significant_down(start)
    near = context(60)
    wanted, epsilon = _decimal(rho, near), _decimal(start, near)
    for _ in range(8):
        q = near.exp(near.minus(epsilon))
        tanh = near.divide(near.subtract(Decimal(1), q), near.add(Decimal(1), q))
        slope = near.add(tanh, near.divide(near.multiply(epsilon, near.subtract(Decimal(1), near.multiply(tanh, tanh))), Decimal(2)))
        epsilon = near.add(epsilon, near.divide(near.subtract(wanted, near.multiply(epsilon, tanh)), slope))
    return significant_down(Fraction(epsilon))


def _decimal(x: Fraction, near: Context) -> Decimal:
    return near.divide(Decimal(x.numerator), Decimal(x.denominator))
