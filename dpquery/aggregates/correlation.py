"""Error bars of correlations: the test that a correlation is r, turned round.

Let C, V_x, V_y be what the noisy sums make of n times the covariance and the variances, and k the ratio of the deviations of y and x. If r is the
correlation, then

    F = C - r W,   W = (k V_x + V_y / k) / 2,

is noise alone, as c = r sqrt(v_x v_y): a linear form of the noises of all sums, whose coefficients follow from r, k and the means. For a known k
the r with |F| within its quantile are a Fieller set, of the ratio C / W. The k is not known. As W >= sqrt(V_x V_y) for each, the triples of
correlation r or more are a convex cone and the planes F = 0 touch it, one for each k, so that the nearest of its points is the best k for r: of the
forms of all k that one counts which puts F / deviation highest, for r > 0, or lowest, for r < 0. So the ends of the bar are the largest of Fieller's
ends over k (the smallest, where they are negative).

What is left of squares of noise: those of means are taken off C, V_x and V_y on average; how much the cone bends within the noise is little where V_x
and V_y are clear of 0, and elsewhere the bar is all of [-1, 1]. At 1 and -1 nothing can be missed on one side, so that the other takes the doubt of
both there: the doubt is shared as by the ratio of likelihoods (Feldman and Cousins 1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from dpquery.aggregates.combined import ONE, quantile_up
from dpquery.mechanisms import Noise, deviation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CLEAR = 10  # the part of the doubt, one in so many, with which number and variances are said to be clear of 0
KNOTS = 33  # ratios of deviations that are tried, and shares of doubt in the table
PASSES = 3  # of the noise's quantile, which varies little along the bar


class Moments(NamedTuple):
    """Of each group: the covariance and the variances times the noisy number of rows, the means and that number."""

    covariance: Floats
    variances: Floats
    means: Floats
    number: Floats


def moments(groups: Sequence[Sequence[int]], less: Sequence[int]) -> Moments:
    """From the noisy sums of x, y, xy, x^2 and y^2, the last two less `less` a row, and of rows; in exact integers up to the division."""
    import numpy as np

    found = [
        ((p * n - s * t) / n, ((q + less[0] * n) * n - s * s) / n, ((r + less[1] * n) * n - t * t) / n, s / n, t / n, float(n))
        for s, t, p, q, r, n in groups
    ]
    table = np.array(found, dtype=float).reshape(-1, 6).T
    return Moments(table[0], table[1:3], table[3:5], table[5])


class Forms(NamedTuple):
    """What covariance and variances are made of: coefficients by sum and group, in the order of the noises."""

    covariance: Floats
    variances: tuple[Floats, Floats]

    @staticmethod
    def of(means: Floats, less: Sequence[int]) -> Forms:
        import numpy as np

        x, y = means
        one, none = np.ones_like(x), np.zeros_like(x)
        return Forms(
            np.array([-y, -x, one, none, none, x * y]),
            (np.array([-2 * x, none, none, one, none, x * x + less[0]]), np.array([none, -2 * y, none, none, one, y * y + less[1]])),
        )

    def of_ratio(self, ratio: Floats) -> Floats:
        """Those of W."""
        found: Floats = (self.variances[0] * ratio + self.variances[1] / ratio) / 2
        return found


def ends(groups: Sequence[Sequence[int]], less: Sequence[int], noises: Sequence[Noise], confidence: Fraction) -> list[tuple[float, float]]:
    """Per group where the correlation may be, from the noisy sums and the laws of their noises."""
    import numpy as np

    doubt = 1 - confidence
    spans = np.tile([-1.0, 1.0], (len(groups), 1))
    some = np.array([i for i, own in enumerate(groups) if own[-1] > 0], dtype=int)
    seen = moments([groups[i] for i in some], less)
    known = _clear(seen, Forms.of(seen.means, less), noises, doubt / CLEAR)
    if known.any():
        spans[some[known]] = _ends(Moments(*(one[..., known] for one in seen)), less, noises, float(doubt))
    return [(low, high) for low, high in spans.tolist()]


def _ends(seen: Moments, less: Sequence[int], noises: Sequence[Noise], doubt: float) -> Floats:
    """Of groups whose number and variances are clear of 0. All is in units of the root of the variances' product, and upright."""
    import numpy as np

    squares = np.array([deviation(noise) ** 2 for noise in noises])
    unit = np.sqrt(seen.variances[0]) * np.sqrt(seen.variances[1])
    forms = Forms.of(seen.means, less)
    sign = np.where(seen.covariance < 0, -1.0, 1.0)
    covariance = sign * (seen.covariance + seen.means[0] * seen.means[1] * squares[-1] / seen.number) / unit
    variances = (seen.variances + (squares[:2, None] + seen.means**2 * squares[-1]) / seen.number) / unit
    scaled = Forms(forms.covariance * sign / unit, (forms.variances[0] / unit, forms.variances[1] / unit))
    low, high = _upright(covariance, variances, scaled, noises, squares, doubt)
    value = np.clip(abs(seen.covariance) / unit, 0, 1)  # as released
    found: Floats = np.sort(np.array([np.minimum(low, value), np.maximum(high, value)]) * sign, axis=0).T
    return found


def _clear(seen: Moments, forms: Forms, noises: Sequence[Noise], doubt: Fraction) -> Floats:
    """Whether number and variances are beyond the reach of their noises, each with a third of the doubt."""
    import numpy as np

    number = np.zeros_like(forms.covariance)
    number[-1] = 1
    known = np.ones(len(seen.number), dtype=bool)
    for value, form in ((seen.number, number), *zip(seen.variances, forms.variances, strict=True)):
        known &= value > _quantile(form, noises, float(doubt / 3))
    return known


def _quantile(coefficients: Floats, noises: Sequence[Noise], outside: float | Floats) -> Floats:
    """What a form's noise passes on one side with that probability."""
    import numpy as np

    made = np.ones_like(coefficients), range(len(noises)), noises
    return quantile_up(coefficients * ONE, *made, outside)


class Law(NamedTuple):
    """Variances and covariance of C and W."""

    top: Floats
    both: Floats
    bottom: Floats

    @staticmethod
    def of(top: Floats, bottom: Floats, squares: Floats) -> Law:
        return Law(squares @ (top * top), squares @ (top * bottom), squares @ (bottom * bottom))

    def of_form(self, r: Floats) -> Floats:
        """The deviation of C - r W."""
        import numpy as np

        return np.sqrt(self.top - 2 * r * self.both + r * r * self.bottom)


def _upright(covariance: Floats, variances: Floats, forms: Forms, noises: Sequence[Noise], squares: Floats, doubt: float) -> tuple[Floats, Floats]:
    """Both ends, of covariances that are not negative."""
    import numpy as np

    ratios, laws = _ratios(variances, forms, squares)
    bottoms = (ratios * variances[0] + variances[1] / ratios) / 2
    z = np.full_like(covariance, _normal(doubt / 2))
    each = [_fieller(covariance, bottoms, laws, z, side) for side in (-1, 1)]
    positive = covariance > z * np.sqrt(laws.top[0])
    places = [np.where(positive, each[0].argmax(axis=0), each[0].argmin(axis=0)), each[1].argmax(axis=0)]
    above = np.max((covariance - bottoms) / laws.of_form(np.ones_like(bottoms)), axis=0)
    shares, found = _shares(doubt), []
    for side, place, own in zip((-1, 1), places, each, strict=True):
        at = place, np.arange(len(covariance))
        end, bottom, law, form = own[at], bottoms[at], Law(*(one[at] for one in laws)), forms.of_ratio(ratios[at])
        of = np.full_like(end, doubt / 2)
        for _ in range(PASSES):
            end = np.clip(end, -1, 1)
            width = _quantile(forms.covariance - end * form, noises, of) / law.of_form(end)
            of = np.interp(above * z / width, *shares[side])
            width = _quantile(forms.covariance - end * form, noises, of) / law.of_form(end)
            end = _fieller(covariance, bottom, law, width, side)
        found.append(np.clip(end, -1, 1))
    return found[0], found[1]


def _ratios(variances: Floats, forms: Forms, squares: Floats) -> tuple[Floats, Law]:
    """Ratios of the deviations of y and x, as far as noise may have put them off, and the laws of C and W with each."""
    import numpy as np

    off = [np.sqrt(squares @ (form * form)) / value for form, value in zip(forms.variances, variances, strict=True)]
    steps = np.linspace(-1, 1, KNOTS)[:, None]
    logs = (np.log(variances[1] / variances[0]) + steps * sum(np.log1p(4 * one) for one in off)) / 2
    ratios = np.exp(logs)
    x, y = forms.variances
    (top, with_x, x_x), (_, with_y, y_y) = Law.of(forms.covariance, x, squares), Law.of(forms.covariance, y, squares)
    x_y = squares @ (x * y)
    law = Law(np.broadcast_to(top, ratios.shape), (ratios * with_x + with_y / ratios) / 2, (ratios**2 * x_x + 2 * x_y + y_y / ratios**2) / 4)
    return ratios, law


def _fieller(top: Floats, bottom: Floats, law: Law, z: Floats, side: int) -> Floats:
    """The least or the greatest r with |C - r W| within z deviations; -1 or 1 where W is not clear of 0."""
    import numpy as np

    square, middle, least = bottom**2 - z**2 * law.bottom, top * bottom - z**2 * law.both, top**2 - z**2 * law.top
    clear = square > 0
    root = np.sqrt(np.maximum(middle**2 - square * least, 0))
    return np.where(clear, (middle + side * root) / np.where(clear, square, 1.0), side)


@lru_cache(maxsize=16)
def _shares(doubt: float) -> dict[int, tuple[Floats, Floats]]:
    """The doubt of each side, by how many deviations what was seen lies above 1 (below, where negative).

    Of a normal value whose mean is d below its largest, those at most a above and b below the mean are accepted, with b^2 / 2 = d a - d^2 / 2 (the
    same ratio of likelihoods to the best mean) or a = b for a < d. So d = a - sqrt(a^2 - b^2), from b that has all doubt, at d = 0, to half of it.
    """
    import numpy as np

    below = doubt * (1 - np.linspace(0, 1, KNOTS)[1:-1] / 2)
    b, a = (np.array([_normal(one) for one in own.tolist()]) for own in (below, doubt - below))
    d = a - np.sqrt(a * a - b * b)
    half = _normal(doubt / 2)
    lower = np.array([0.0, *(a - d)[::-1]]), np.array([doubt / 2, *(doubt - below)[::-1]])
    upper = np.array([-2 * half, *(-b - d)[::-1], -_normal(doubt)]), np.array([doubt / 2, *below[::-1], doubt])
    return {-1: lower, 1: upper}


def _normal(outside: float) -> float:
    return -NormalDist().inv_cdf(outside)
