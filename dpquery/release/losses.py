"""Which caps were used and what they cut off, as far as released numbers say: nothing here is exact, and nothing of it costs more than these did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import log, log1p

from dpquery.aggregates import race
from dpquery.mechanisms import Noise, half_width
from dpquery.plan.release import Aggregate, Mechanism, Release
from dpquery.privacy import Priced
from dpquery.privacy.contribution import cell_bound
from dpquery.values.noisy import Noisy

GRID = [k / 64 for k in range(1, 64)]  # where the bound on sums of noises is looked for, as a part of where it ends


@dataclass(frozen=True, slots=True)
class Loss:
    """The share of a total that caps cut off, and the ends of its error bar; no share where noise leaves none."""

    share: float | None
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Total:
    """A noisy total over the groups that are shown, in the value's own units, with what its noise does not exceed."""

    value: Fraction
    width: Fraction


def raced(aggregate: Aggregate) -> bool:
    """Whether the aggregate shows the best of several caps."""
    return aggregate.card in (race.COUNTED.name, race.SUMMED.name)


def winners(aggregate: Aggregate, release: Release, noisy: Noisy, priced: Priced) -> Mapping[Fraction | None, int]:
    """In how many groups each cap won; None: in so many none assured anything above 0."""
    noises = [priced.noises[place] for place in aggregate.parts]
    ends = [cell_bound(release.table.parts[place]).high * aggregate.step for place in aggregate.parts]
    won = race.won([noisy.sums[place] for place in aggregate.parts], noises)
    found = Counter(None if one is None else ends[one] for one in won)
    return dict(sorted(found.items(), key=lambda item: (item[0] is None, item[0] or 0)))


def best(aggregate: Aggregate, noisy: Noisy, priced: Priced, doubt: Fraction) -> Total:
    """What the winning caps add up to over all groups. Which ones win depends on the noise, so that the width is that of any of them."""
    noises, sums = [priced.noises[place] for place in aggregate.parts], [noisy.sums[place] for place in aggregate.parts]
    won = [(row, one) for row, one in enumerate(race.won(sums, noises)) if one is not None]
    widths = [half_width(noise, 1 - doubt / (len(noises) * max(1, len(noisy.keys)))) for noise in noises]
    value, width = sum(sums[one][row] for row, one in won), sum(widths[one] for _, one in won)
    return Total(value * aggregate.step, width * aggregate.step)


def total(aggregate: Aggregate, noisy: Noisy, priced: Priced, doubt: Fraction) -> Total:
    """What an aggregate of one part, or of a race its ceiling's, adds up to over all groups."""
    place = aggregate.parts[-1]
    width = summed_width(priced.noises[place], len(noisy.keys), doubt)
    return Total(sum(noisy.sums[place]) * aggregate.step, width * aggregate.step)


def loss(shown: Total, whole: Total) -> Loss:
    """The share of the whole that is not shown: 1 - shown / whole, which falls in the one and rises in the other; below 0 its opposite's."""
    least, most = whole.value - whole.width, whole.value + whole.width
    if most < 0:
        return loss(Total(-shown.value, shown.width), Total(-whole.value, whole.width))
    if least <= 0:
        return Loss(None, 0.0, 1.0)
    low, high = 1 - (shown.value + shown.width) / least, 1 - (shown.value - shown.width) / most
    return Loss(_share(1 - shown.value / whole.value), _share(low), _share(high))


def _share(value: Fraction) -> float:
    return float(max(Fraction(0), min(Fraction(1), value)))


def summed_width(noise: Noise, count: int, doubt: Fraction) -> Fraction:
    """What the sum of so many noises exceeds in magnitude with probability `doubt` at most.

    Of one it is the exact quantile. Else Chernoff's bound, (log(2 / doubt) + count M(x)) / x for any x > 0, where M(x) is at least the logarithm of
    E exp(xZ): x^2 v / 2 for discrete Gaussian noise (Canonne et al. 2020), -log(1 - x^2 b^2) for discrete Laplace noise and x < 1 / b, as
    (cosh x - 1) / x^2 rises in x.
    """
    if count <= 1:
        return Fraction(half_width(noise, 1 - doubt)) * count
    wanted, scale = log(2 / float(doubt)), float(noise.parameter)
    if noise.mechanism is Mechanism.LAPLACE:
        found = min((wanted - count * log1p(-(x**2))) / x for x in GRID) * scale
    else:
        found = (2 * count * scale * wanted) ** 0.5
    return Fraction(found) * Fraction(1_000_001, 1_000_000)  # doubles err by less
