"""How far off quantiles are, chosen by rank and read off a tree of noisy counts, and how wide their error bars: in rows.

    python benchmarks/quantiles.py [--reps 60]

For each price and number of quantiles of the same values, over made-up values of four kinds, by their number n: the distance of the released value's
rank from the quantile's (root of the mean square, over draws, quantiles and kinds), half the error bar's rows (median), and how often the bar holds
the quantile, where 0.95 is asked for. `expected` is what the rule reckons with, which reads no data; `default` is what it chooses. One row a unit, up
to 4,096 bins; epsilon 1 (Laplace noise, permute and flip) or rho 0.02 (Gaussian noise, the exponential mechanism).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpquery.aggregates import CARDS, byrank, quantile
from dpquery.mechanisms import Noise, SystemBits, choose, sample
from dpquery.numbers import sqrt_up
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import WEIGHT_BITS, Aggregate, Bins, Choosing, Mechanism, Part
from dpquery.plan.scalar import Column, Interval
from dpquery.release.ranks import aim, scores
from dpquery.values.types import INTEGER

BINS, ONE = 4096, 1 << WEIGHT_BITS
RHO, C95 = Fraction(1, 50), Fraction(95, 100)
SIZES = (100, 1_000, 10_000, 100_000)
Ints = NDArray[np.int64]
KINDS: Mapping[str, Callable[[np.random.Generator, int], NDArray[Any]]] = {
    "even": lambda g, n: g.uniform(0, 1, n),
    "lognormal": lambda g, n: np.exp(g.normal(0, 1, n)) / 20,
    "narrow": lambda g, n: g.normal(0.3, 0.01, n),
    "two humps": lambda g, n: np.where(g.random(n) < 0.5, g.normal(0.2, 0.03, n), g.normal(0.8, 0.03, n)),
}
ASKED: Mapping[str, tuple[Fraction, ...]] = {
    "1/2": (Fraction(1, 2),),
    "1/4": (Fraction(1, 4),),
    "9/10": (Fraction(9, 10),),
    **{str(k): tuple(Fraction(i, k + 1) for i in range(1, k + 1)) for k in (2, 3, 5, 9, 19)},
}


@dataclass(frozen=True, slots=True)
class Way:
    """A card, and the noise that its parts get for a price."""

    card: str
    fractions: tuple[Fraction, ...]
    pure: bool

    @property
    def planned(self) -> tuple[Aggregate, tuple[Part, ...]]:
        bounds = Interval(Fraction(0), Fraction(BINS - 1))
        ask = AggregateAsk("a0", "q", self.card, Column(0, "x", INTEGER), None, None, bounds, fractions=self.fractions, listed=True, discrete=True)
        made = CARDS[self.card].plan(ask, Contributions(1, 1, 1, listed=1), None)
        found = Aggregate("a0", "q", self.card, tuple(range(len(made.parts))), made.type, made.step, made.bounds, quantile=made.quantile)
        return found, made.parts

    def noise(self, part: Part, parts: int) -> Noise:
        """What the part's share buys."""
        share, rank = Fraction(1, parts), part.cell.rank if isinstance(part.cell, Bins) else None
        if rank is None:
            return Noise(Mechanism.LAPLACE, ONE / share) if self.pure else Noise(Mechanism.GAUSSIAN, ONE**2 / (2 * RHO * share))
        apart = Fraction(2 * max(rank.numerator, rank.denominator - rank.numerator) * ONE)
        return Noise(Choosing.PERMUTE_AND_FLIP, apart / share) if self.pure else Noise(Choosing.EXPONENTIAL, sqrt_up(apart**2 / (8 * RHO * share)))

    def expected(self) -> quantile.Reach:
        aggregate, parts = self.planned
        noises = [self.noise(part, len(parts)) for part in parts]
        return byrank.reach(aggregate, noises) if self.card == byrank.BY_RANK else quantile.reach(aggregate, noises, 1 - C95)

    def answers(self, counts: Ints, reps: int) -> tuple[Ints, Ints]:
        """The released values of so many draws, and the ends of their error bars."""
        aggregate, parts = self.planned
        noises = [self.noise(part, len(parts)) for part in parts]
        sums = [_drawn(counts, part, noise, reps) for part, noise in zip(parts, noises, strict=True)]
        card = CARDS[self.card]
        return np.array(card.finish(aggregate, sums)), np.array(card.interval(aggregate, sums, noises, C95))


def _drawn(counts: Ints, part: Part, noise: Noise, reps: int) -> list[int]:
    if not isinstance(part.cell, Bins):
        raise AssertionError("a quantile is counted in bins")
    exact = [int(n) * ONE for n in counts.reshape(-1, part.cell.width).sum(axis=1)]
    sought = aim(part.cell, noise)
    if sought is not None:
        return choose(noise, scores(exact, part.cell.count, sought) * reps, part.cell.count, SystemBits())
    return [value + int(z) for value, z in zip(exact * reps, sample(noise, len(exact) * reps, SystemBits()), strict=True)]


def measured(way: Way, size: int, reps: int) -> tuple[float, float, float]:
    """How far off the values are, half the rows of the bars, how often these hold the quantile."""
    generator, off, half, held = np.random.default_rng(1), [], [], []
    for made in KINDS.values():
        values = np.sort(np.clip((made(generator, size) * BINS).astype(np.int64), 0, BINS - 1))
        counts = np.bincount(values, minlength=BINS)
        below = np.concatenate([[0], np.cumsum(counts)])
        shown, bars = way.answers(counts, reps)
        for i, q in enumerate(way.fractions):
            wanted, true, at, low, high = float(q) * size, values[-(-q * size // 1) - 1], shown[:, i], bars[:, i, 0], bars[:, i, 1]
            off.append(np.maximum(0, np.maximum(below[at] - wanted, wanted - below[at + 1])))
            half.append((below[high + 1] - below[low]) / 2)
            held.append((low <= true) & (true <= high))
    return float(np.sqrt(np.mean(np.square(off)))), float(np.median(half)), float(np.mean(held))


def rows(reps: int) -> Iterator[Sequence[str]]:
    """The table, line by line."""
    for pure in (True, False):
        for name, fractions in ASKED.items():
            ways = Way(byrank.BY_RANK, fractions, pure), Way("quantile", fractions, pure)
            nearer = quantile.loss([ways[0].expected()]) < quantile.loss([ways[1].expected()])
            for way in ways:
                off, half = max(way.expected())
                cells = [f"{off:5.1f} ±{half:4.0f}"]
                for size in SIZES:
                    found = measured(way, size, reps)
                    cells.append(f"{found[0]:6.1f} ±{found[1]:5.0f} {found[2]:5.3f}")
                chosen = "default" if nearer == (way.card == byrank.BY_RANK) else ""
                yield "eps 1" if pure else "rho 0.02", name, "rank" if way.card == byrank.BY_RANK else "tree", chosen, *cells


def main() -> None:
    """The table, for docs/sql.md."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--reps", type=int, default=60)
    print(f"{'price':8} {'asked':5} {'way':5} {'':8} {'expected':12} " + " ".join(f"{f'n={n}':20}" for n in SIZES))
    for price, name, way, chosen, expected, *cells in rows(reader.parse_args().reps):
        print(f"{price:8} {name:5} {way:5} {chosen:8} {expected:12} " + " ".join(f"{cell:20}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
