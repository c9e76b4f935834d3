"""Error bars of ratios of two noisy integers, after Fieller.

Let S = s + X and N = n + Y be the noisy values, X and Y their noises. For r = s/n the difference S - rN = X - rY is noise alone, of a law that r
and the scales fix. So {r : |S - rN| <= q(r)} holds s/n with at least the confidence if q(r) is at least that quantile of |X - rY|. Two such q
are known, the smaller may be taken at each r, and the answer is the intersection of their sets:

    box     w1 + |r| w2, with w the exact quantiles of |X| and |Y| at (1 + confidence) / 2 (Bonferroni): the corners of a box around (S, N)
    smooth  the quantile of the continuous law (two Gaussians: z * hypot; two Laplace: the law of their sum, in closed form), plus half a unit
            of each grid, (1 + |r|) / 2, for the steps of the discrete ones. Not for a Gaussian with a Laplace.

Each set is an interval where N is above the slope that its q has for large r; otherwise it is unbounded and gives no end. Coverage is at least
the confidence, and within two points of it wherever the count's noise is wider than about two units (tests/privacy/test_intervals.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from math import log
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from dpquery.aggregates.card import Floors
from dpquery.aggregates.selected import Selected, low_end
from dpquery.mechanisms import Noise, half_width
from dpquery.numbers import float_near
from dpquery.plan.release import Mechanism

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bracket = tuple[Floats, Floats, Floats, Floats]  # two places, each with the value there: one inside the set, one above its end

Ends = tuple[float, float] | None
BOXED = Fraction(1, 10)  # of the doubt, for groups near to a threshold
STEPS = 100  # halvings and doublings that reach any double's precision
PRECISION = 1e-12  # of an end, in parts of it
KNOTS = 512  # of the table of Laplace quantiles


def ratio(top: int, bottom: int, top_noise: Noise, bottom_noise: Noise, confidence: Fraction) -> Ends:
    """The error bar of one ratio, in units of the top per unit of the bottom; None where the bottom is not clear of 0."""
    return ratios((top,), (bottom,), top_noise, bottom_noise, confidence)[0]


def ratios(
    tops: Sequence[int], bottoms: Sequence[int], top_noise: Noise, bottom_noise: Noise, confidence: Fraction, floors: Floors = ()
) -> list[Ends]:
    """The error bar of each ratio of two independently noised integers; None where the bottom is not clear of 0. `floors` are as in card.py."""
    doubt = 1 - confidence
    seen = Selected.of(floors, (top_noise, bottom_noise), confidence if not floors else 1 - doubt * (1 - BOXED))
    if not seen.floors:
        return _ratios(tops, bottoms, top_noise, bottom_noise, confidence)
    far = _ratios(tops, bottoms, top_noise, bottom_noise, seen.confidence)
    reaches = [half_width(noise, 1 - doubt * BOXED / 2) for noise in (top_noise, bottom_noise)]
    pairs = list(zip(tops, bottoms, strict=True))
    return [_corners(pair, reaches, seen.floors) if seen.near(pair) else ends for pair, ends in zip(pairs, far, strict=True)]


def _corners(pair: Sequence[int], reaches: Sequence[int], floors: Floors) -> Ends:
    """The ratios of the box of both bars."""
    top, bottom = ((low_end(value, width, floor), value + width) for value, width, floor in zip(pair, reaches, floors, strict=True))
    if bottom[0] <= 0 <= bottom[1]:
        return None
    found = [float_near(Fraction(a, b)) for a in top for b in bottom]
    return min(found), max(found)


def _ratios(tops: Sequence[int], bottoms: Sequence[int], top_noise: Noise, bottom_noise: Noise, confidence: Fraction) -> list[Ends]:
    import numpy as np

    sign = np.where(np.array([b < 0 for b in bottoms], dtype=bool), -1.0, 1.0)
    top = np.array([float(t) for t in tops]) * sign
    bottom = np.array([float(b) for b in bottoms]) * sign
    low, high = _box(top, bottom, top_noise, bottom_noise, confidence)
    if top_noise.mechanism is bottom_noise.mechanism:
        inner_low, inner_high = _smooth(top, bottom, top_noise, bottom_noise, confidence)
        low, high = np.maximum(low, inner_low), np.minimum(high, inner_high)
    return [(a, b) if np.isfinite(a) and np.isfinite(b) else None for a, b in zip(low.tolist(), high.tolist(), strict=True)]


def _box(top: Floats, bottom: Floats, top_noise: Noise, bottom_noise: Noise, confidence: Fraction) -> tuple[Floats, Floats]:
    """The ratios of the box's corners."""
    import numpy as np

    both = (1 + confidence) / 2
    w1, w2 = float(half_width(top_noise, both)), float(half_width(bottom_noise, both))
    clear = bottom > w2
    near, far = np.where(clear, bottom - w2, 1.0), np.where(clear, bottom + w2, 1.0)
    high = np.where(top + w1 >= 0, (top + w1) / near, (top + w1) / far)
    low = np.where(top - w1 <= 0, (top - w1) / near, (top - w1) / far)
    return np.where(clear, low, -np.inf), np.where(clear, high, np.inf)


def _smooth(top: Floats, bottom: Floats, top_noise: Noise, bottom_noise: Noise, confidence: Fraction) -> tuple[Floats, Floats]:
    """The ends of Fieller's set for the continuous laws, padded by half a unit of each grid."""
    import numpy as np

    a, b = _scale(top_noise), _scale(bottom_noise)
    laplace = top_noise.mechanism is Mechanism.LAPLACE

    def reach(r: Floats) -> Floats:
        r = abs(r)
        return (_two_laplace(a, b * r, confidence) if laplace else _two_gaussian(a, b * r, confidence)) + (1 + r) / 2

    slope = b * (-log(float(1 - confidence)) if laplace else _z(confidence)) + 0.5
    low, high = np.split(_upper(np.concatenate([-top, top]), np.concatenate([bottom, bottom]), reach, slope), 2)
    return -low, high


def _upper(top: Floats, bottom: Floats, reach: Any, slope: float) -> Floats:
    """The largest r with rN - S <= q(r); infinite where there is none. rN - S - q(r) rises in r, as q is even, convex and of slope below N.

    It is concave as well: its chord over [low, high] meets 0 at or above the end that is looked for, and a line through two points above that end
    meets 0 at or below it. So both ends close in, each by several digits at a step, and are moved apart a little, past what rounding does.
    """
    import numpy as np

    clear = bottom > slope * (1 + 1e-9)
    under = np.where(clear, bottom, 2 * slope + 1)

    def above(r: Floats) -> Floats:
        value: Floats = r * under - top - reach(r)
        return value

    low = top / under
    step = (reach(low) + 1) / (under - slope)
    for _ in range(STEPS):
        short = above(low + step) <= 0
        if not short.any():
            break
        step = np.where(short, 2 * step, step)
    ends = low, above(low), low + step, above(low + step)
    for _ in range(STEPS):
        low, at_low, high, at_high = ends
        near = PRECISION * np.maximum(abs(low), abs(high))
        ends = _closer(ends, _zero(low, at_low, high, at_high) + near / 4, above)
        ends = _closer(ends, _zero(ends[2], ends[3], high, at_high) - near / 4, above)
        if np.all(ends[2] - ends[0] <= near):
            break
        ends = _closer(ends, (ends[0] + ends[2]) / 2, above)
    return np.where(clear, ends[2], np.inf)


def _zero(a: Floats, at_a: Floats, b: Floats, at_b: Floats) -> Floats:
    """Where the line through two points meets 0; the first of them where it does nowhere."""
    import numpy as np

    rise = at_b - at_a
    return np.where(rise > 0, a - at_a * (b - a) / np.where(rise > 0, rise, 1.0), a)


def _closer(ends: Bracket, r: Floats, above: Callable[[Floats], Floats]) -> Bracket:
    """Of each bracket the part that still holds the end: up to r, or from r on."""
    import numpy as np

    low, at_low, high, at_high = ends
    r = np.clip(r, low, high)
    value = above(r)
    inside = value <= 0
    return np.where(inside, r, low), np.where(inside, value, at_low), np.where(inside, high, r), np.where(inside, at_high, value)


def _scale(noise: Noise) -> float:
    """The scale b of Laplace noise, sigma of Gaussian noise."""
    value = float(noise.parameter)
    return value if noise.mechanism is Mechanism.LAPLACE else value**0.5


def _z(confidence: Fraction) -> float:
    """The quantile of the magnitude of a standard normal."""
    return -NormalDist().inv_cdf(float((1 - confidence) / 2))


def _two_gaussian(a: float, b: Floats, confidence: Fraction) -> Floats:
    import numpy as np

    return np.hypot(a, b) * _z(confidence)


def _two_laplace(a: float, b: Floats, confidence: Fraction) -> Floats:
    """The quantile of |X + Y| for independent Laplace X and Y of scales a and b: the larger scale times a function of the smaller over the larger."""
    import numpy as np

    larger = np.maximum(a, b)
    return larger * np.interp(np.minimum(a, b) / np.where(larger > 0, larger, 1.0), *_quantiles(confidence))


@lru_cache(maxsize=16)
def _quantiles(confidence: Fraction) -> tuple[Floats, Floats]:
    """The quantile g of |X + kY| for standard Laplace X and Y, at k from 0 to 1; convex in k, so that interpolation errs upwards.

    P(|X + kY| > g) = (exp(-g) - k^2 exp(-g/k)) / (1 - k^2), and (1 + g/2) exp(-g) at k = 1.
    """
    import numpy as np

    k = np.linspace(0.0, 1.0, KNOTS)
    inner = k[1:-1]

    def tail(g: Floats) -> Floats:
        middle = (np.exp(-g[1:-1]) - inner**2 * np.exp(-g[1:-1] / inner)) / (1 - inner**2)
        return np.concatenate([np.exp(-g[:1]), middle, (1 + g[-1:] / 2) * np.exp(-g[-1:])])

    rest = float(1 - confidence)
    low, high = np.zeros(KNOTS), np.full(KNOTS, 4.0 - 4.0 * log(rest))
    for _ in range(STEPS):
        middle = (low + high) / 2
        above = tail(middle) > rest
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return k, high
