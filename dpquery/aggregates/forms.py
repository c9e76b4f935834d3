"""Linear forms of noisy sums that are noise alone, whatever the data: from these the error bars of variances and covariances.

With s, t, p, q, n the sums of x', y', x'y', x'^2 and rows, and X the noisy sum of each, whose noise is Z_X:

    a variance v      Q - 2 m S + (m^2 - v) N  =  Z_Q - 2 m Z_S + (m^2 - v) Z_N,                       m = s/n the mean
    a covariance c    P - m_y S - m_x T + (m_x m_y - c) N = the same of Z

The law of the right side is fixed by its coefficients, so that its magnitude passes its quantile with no more than the probability that is left for
it. The coefficients are not known, but lie in spans while every sum lies within reach of its own noise (the box, for which a tenth of the doubt is
set aside); as the laws are symmetric and unimodal, the quantile rises with the magnitude of each (Anderson 1955). On the left stand, of a variance,

    v = V + (m - S/N)^2 - noise / N,  V = Q/N - (S/N)^2,

and of a covariance likewise: the released value, what the form's noise moves it by, and a square of what is not known of means, which the box
bounds and which is small beside the noise where there are many rows. So bars hold at least as often as asked, and hardly more often. What v may be is
then known better than from the box, so that its coefficients are looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from dpquery.aggregates.combined import ONE, quantile_up
from dpquery.aggregates.moments import Span
from dpquery.mechanisms import Noise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

TENTH = 10  # of the doubt, for the box
PASSES = 2
NEAR = Fraction(1, 10**12)  # what floats are widened by


class Term(NamedTuple):
    """A coefficient, as a span: what it is without the value, less so many values."""

    fixed: Span
    values: Span


class Way(NamedTuple):
    """From a form's noise to the value: top - noise / number. A term for each noise."""

    top: Span
    number: Fraction
    terms: tuple[Term, ...]

    def spread(self, width: Fraction) -> Span:
        """The values while the form's noise stays within its width."""
        noise = width / self.number
        return Span(self.top.low - noise, self.top.high + noise)


def apart(confidence: Fraction) -> tuple[Fraction, Fraction]:
    """At which confidence all sums lie in the box, and at which a form's noise stays within its width: both hold as often as asked."""
    doubt = 1 - confidence
    return 1 - doubt / TENTH, 1 - doubt * (TENTH - 1) / TENTH


def narrowed(ways: Sequence[Way], spans: Sequence[Span], noises: Sequence[Noise], confidence: Fraction) -> list[Span]:
    """What is left of each span while the form's noise stays within its width, as it does with that confidence."""
    found = [*spans]
    for _ in range(PASSES if ways else 0):
        coefficients = _coefficients(ways, found)
        widths = quantile_up(coefficients, _ones(*coefficients.shape), range(len(noises)), noises, (1 - confidence) / 2)
        found = [one.spread(Fraction(width)).cut(*span) for one, span, width in zip(ways, found, widths.tolist(), strict=True)]
    return found


def _ones(rows: int, columns: int) -> Floats:
    import numpy as np

    return np.ones((rows, columns))


def _coefficients(ways: Sequence[Way], values: Sequence[Span]) -> Floats:
    """The largest magnitude of each coefficient, in the units that quantiles are made for: a row for each noise, a column for each way."""
    import numpy as np

    terms = np.array([[[*term.fixed, *term.values] for term in one.terms] for one in ways], dtype=float)
    low, high, each, most = np.moveaxis(terms, 2, 0)
    ranges = np.array([[*span] for span in values], dtype=float).T
    ends = [value * times for value in ranges[:, :, None] for times in (each, most)]
    found = np.maximum(abs(low - np.max(ends, axis=0)), abs(high - np.min(ends, axis=0)))
    slack = float(NEAR) * (np.maximum(abs(low), abs(high)) + np.max(np.abs(ends), axis=0))
    scaled: Floats = (found + slack).T * ONE
    return scaled


def off(span: Span, value: Fraction) -> Fraction:
    """How far the numbers of the span are from one of them, at most."""
    return max(span.high - value, value - span.low)
