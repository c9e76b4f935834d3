"""Discrete Gaussian: P(Z = z) = g(z) / sum of all g, g(z) = exp(-z^2 / 2v). Its variance is at most v, and equals it but for tiny v."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from statistics import NormalDist

from dpquery.mechanisms.series import terms
from dpquery.numbers import context, exp_down, exp_up, float_near, floor_log2

_WIDE = 1024  # v from which sums are integrals with corrections
_FAR = 6400  # t^2 / v beyond which a geometric series is bound enough: P is below 1e-1390
_PAIRS = 8  # Bernoulli numbers used
_BERNOULLI = tuple(Fraction(x) for x in ("1/6", "-1/30", "1/42", "-1/30", "5/66", "-691/2730", "7/6", "-3617/510"))  # B_2 ... B_16
_TWO_PI = Decimal("6.283185307179586476925286766559005768394338798750211641949889184615632812572417997256069650684234136")
_DIGITS = 60
_SLACK = Fraction(1, 10**30)  # of a result; decimals at work lose less than 10^-40 of it
_SUM_BITS, _SUM_ENOUGH = 160, 1 << 40


@dataclass(frozen=True, slots=True)
class Gaussian:
    """The discrete Gaussian law of variance parameter v > 0, in squared grid units."""

    variance: Fraction

    @property
    def linear(self) -> Fraction:
        """f is a square."""
        return Fraction(0)

    @property
    def quadratic(self) -> Fraction:
        """f(m) = m^2 / 2v."""
        return 1 / (2 * self.variance)

    def block_bits(self) -> int:
        """Blocks of at most sigma/16 and more than sigma/32 integers: f moves by less than 0.75 inside each that starts below 11 sigma."""
        return max(0, (floor_log2(self.variance) - 8) // 2)

    def tail(self, t: int, floor_bits: int) -> tuple[Fraction, Fraction]:
        """Around P(Z >= t) = g(t) N(t) / (sum of all g), t >= 1, where N(t) is the sum of g(z) / g(t) over z >= t."""
        low, high = self._following(t)
        all_low, all_high = self._everything()
        x = -t * t * self.quadratic
        return exp_down(x, floor_bits) * low / all_high, exp_up(x, floor_bits) * high / all_low

    def near(self, p: float) -> float:
        """About the t with P(Z >= t) = p."""
        sigma = math.sqrt(float_near(self.variance))
        return sigma * (-NormalDist().inv_cdf(p) if 1e-300 < p < 1 else math.sqrt(-2 * math.log(min(p, 1.0))))

    def deviation(self) -> float:
        """The root of the sum of z^2 g(z) over the sum of g(z); for v > 16 that is sqrt(v) to 15 digits."""
        v = float_near(self.variance)
        if v > 16:
            return math.sqrt(v)
        g = [math.exp(-z * z / (2 * v)) for z in range(50)]
        return math.sqrt(2 * sum(z * z * x for z, x in enumerate(g)) / (2 * sum(g) - 1))

    def _everything(self) -> tuple[Fraction, Fraction]:
        """Around the sum of all g: sqrt(2 pi v) times 1 + 2 (sum of exp(-2 pi^2 v n^2) over n >= 1), by Poisson summation.

        For v >= 1024 the second factor is 1 to 8000 digits.
        """
        if self.variance >= _WIDE:
            near = context(_DIGITS)
            root = Fraction(near.sqrt(near.multiply(_TWO_PI, self._v(near))))
            return root * (1 - _SLACK), root * (1 + _SLACK)
        low, high = self._following(1)
        return 1 + 2 * exp_down(-self.quadratic) * low, 1 + 2 * exp_up(-self.quadratic) * high

    def _following(self, t: int) -> tuple[Fraction, Fraction]:
        """Around N(t)."""
        if self.variance < _WIDE:
            lows, error, rest = terms(Fraction(0), (2 * t + 1) * self.quadratic, 2 * self.quadratic, _SUM_BITS, _SUM_ENOUGH)
            one = 1 << _SUM_BITS
            return Fraction(sum(lows), one), Fraction(sum(lows) + error + rest, one)
        if t * t > _FAR * self.variance:
            return Fraction(1), 1 / (1 - exp_up(-(2 * t + 1) * self.quadratic))
        return self._corrected(t)

    def _corrected(self, t: int) -> tuple[Fraction, Fraction]:
        """Around N(t) for v >= 1024 and t^2 <= 6400 v, by Euler-Maclaurin.

        N(t) = I + 1/2 - sum over k = 1..8 of B_2k / (2k)! D_(2k-1) + R, where I = integral of g(u) / g(t) over u >= t, D_n = g^(n)(t) / g(t) and
        |R| <= |B_16| / 16! times the integral of |g^(16)(u)| / g(t) over u >= t.
        D_0 = 1, D_1 = -t/v, D_(n+1) = -(t D_n + n D_(n-1)) / v. With y = u / sqrt(v), g^(16) = He_16(y) g / v^8, and |He_16(y)| is at most the sum of
        16! / (2^j j! (16-2j)!) y^(16-2j), whose integrals m_k of u^k g(u) / g(t) are m_0 = I, m_k = v t^(k-1) + (k-1) v m_(k-2).

        All D, m / v^((k+1)/2) and their sums stay below 10^13, each is made by fewer than 100 operations of 60 digits, and N > 1.
        """
        near = context(_DIGITS)
        v, at = self._v(near), Decimal(t)
        low, high = _integral(at, v, near)
        total, factorial = Decimal("0.5"), 1
        before, derivative = Decimal(1), near.divide(Decimal(-t), v)
        for n in range(1, 2 * _PAIRS):
            factorial *= n
            if n % 2:
                bernoulli = _BERNOULLI[n // 2] / (factorial * (n + 1))
                total = near.subtract(total, near.multiply(near.divide(Decimal(bernoulli.numerator), Decimal(bernoulli.denominator)), derivative))
            before, derivative = derivative, near.minus(near.divide(near.add(near.multiply(at, derivative), near.multiply(Decimal(n), before)), v))
        rest = _remainder(at, v, high, near)
        return Fraction(near.subtract(near.add(low, total), rest)) * (1 - _SLACK), Fraction(near.add(near.add(high, total), rest)) * (1 + _SLACK)

    def _v(self, near: Context) -> Decimal:
        return near.divide(Decimal(self.variance.numerator), Decimal(self.variance.denominator))


def _remainder(t: Decimal, v: Decimal, integral: Decimal, near: Context) -> Decimal:
    """|B_16| / 16! times the bound of the integral of |g^(16)| / g(t)."""
    order = 2 * _PAIRS
    moment, total = integral, Decimal(0)
    for k in range(0, order + 1, 2):
        if k:
            moment = near.multiply(v, near.add(near.power(t, k - 1), near.multiply(Decimal(k - 1), moment)))
        j = (order - k) // 2
        coefficient = Fraction(math.factorial(order), 2**j * math.factorial(j) * math.factorial(k))
        total = near.add(total, near.divide(near.multiply(Decimal(int(coefficient)), moment), near.power(v, (order + k) // 2)))
    bernoulli = abs(_BERNOULLI[-1]) / math.factorial(order)
    return near.multiply(total, near.divide(Decimal(bernoulli.numerator), Decimal(bernoulli.denominator)))


def _integral(t: Decimal, v: Decimal, near: Context) -> tuple[Decimal, Decimal]:
    """Around the integral of exp((t^2 - u^2) / 2v) over u >= t, t > 0, but for what rounding loses (below 10^-50 of it)."""
    return _fraction(t, v, near) if near.multiply(t, t) > near.multiply(Decimal(16), v) else _series(t, v, near)


def _fraction(t: Decimal, v: Decimal, near: Context) -> tuple[Decimal, Decimal]:
    """Laplace's continued fraction v / (t + v / (t + 2v / (t + 3v / ...))), all terms positive: its convergents lie above and below in turn."""
    ends = []
    for depth in (40, 41):
        value = Decimal(0)
        for n in range(depth, 0, -1):
            value = near.divide(near.multiply(Decimal(n), v), near.add(t, value))
        ends.append(near.divide(v, near.add(t, value)))
    return min(ends), max(ends)


def _series(t: Decimal, v: Decimal, near: Context) -> tuple[Decimal, Decimal]:
    """For t^2 <= 16 v: sqrt(pi v / 2) e^(t^2 / 2v) less the sum over k of t^(2k+1) / (v^k (2k+1)!!), whose ratios t^2 / (v (2k+3)) shrink.

    The difference is at least a 10,000th of either.
    """
    square = near.divide(near.multiply(t, t), v)
    whole = near.multiply(near.sqrt(near.divide(near.multiply(_TWO_PI, v), Decimal(4))), near.exp(near.divide(square, Decimal(2))))
    term, total, k = t, Decimal(0), 0
    while k < 20 or term > near.multiply(total, Decimal("1e-30")):
        total = near.add(total, term)
        k += 1
        term = near.divide(near.multiply(term, square), Decimal(2 * k + 1))
    return near.subtract(whole, near.add(total, near.multiply(term, Decimal(4)))), near.subtract(whole, total)
