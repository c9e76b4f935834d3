"""How far off a single quantile is, by rank and from a tree of noisy counts, in bins (of 4,096) and in rows.

    python benchmarks/quantiles.py [--reps 60]

Mean absolute errors of the released bin over draws of the mechanism, for one set of made-up values of each kind, at epsilon 1 (Laplace noise, permute
and flip) and at rho 0.02 (Gaussian noise, the exponential mechanism). One row a unit.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpquery.aggregates.counted import Counted
from dpquery.mechanisms import Noise, SystemBits, choose, sample
from dpquery.numbers import sqrt_up
from dpquery.plan.release import Choosing, Mechanism, Quantile
from dpquery.release.noise import _scores

BINS, WIDTHS, ONE = 4096, (256, 16, 1), 1 << 20
RHO = Fraction(1, 50)
FRACTIONS = (Fraction(1, 2), Fraction(9, 10))
Ints = NDArray[np.int64]
KINDS: Mapping[str, Callable[[np.random.Generator, int], NDArray[Any]]] = {
    "even": lambda g, n: g.uniform(0, 1, n),
    "lognormal": lambda g, n: np.exp(g.normal(0, 1, n)) / 20,
    "narrow": lambda g, n: g.normal(0.3, 0.01, n),
    "two humps": lambda g, n: np.where(g.random(n) < 0.5, g.normal(0.2, 0.03, n), g.normal(0.8, 0.03, n)),
}


def by_tree(counts: Ints, q: Fraction, pure: bool, reps: int) -> list[float]:
    """Three levels share the price."""
    noise = Noise(Mechanism.LAPLACE, Fraction(3 * ONE)) if pure else Noise(Mechanism.GAUSSIAN, 3 * ONE**2 / (2 * RHO))
    sums = []
    for width in WIDTHS:
        exact = np.tile(counts.reshape(-1, width).sum(axis=1), reps).tolist()
        sums.append([n * ONE + int(z) for n, z in zip(exact, sample(noise, len(exact), SystemBits()), strict=True)])
    return [float(found) for (found,) in Counted.of(BINS, WIDTHS, sums).quantiles(Quantile((q,), 0, BINS - 1, WIDTHS, discrete=True))]


def by_rank(counts: Ints, q: Fraction, pure: bool, reps: int) -> list[float]:
    """One choice has all of it."""
    apart = Fraction(2 * max(q.numerator, q.denominator - q.numerator) * ONE)
    noise = Noise(Choosing.PERMUTE_AND_FLIP, apart) if pure else Noise(Choosing.EXPONENTIAL, sqrt_up(apart**2 / (8 * RHO)))
    scores = _scores([int(n) * ONE for n in counts], BINS, q)
    ones = np.array(choose(noise, scores * reps, BINS, SystemBits())).reshape(reps, BINS)
    return [float(place) for place in ones.argmax(axis=1)]


def main() -> None:
    """The table, for docs/sql.md."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--reps", type=int, default=60)
    reps, generator = reader.parse_args().reps, np.random.default_rng(1)
    print(f"{'price':8} {'values':10} {'n':>6} {'q':>4}  {'tree: bins':>11} {'rows':>6}   {'rank: bins':>11} {'rows':>6}")
    for pure in (True, False):
        for kind, made in KINDS.items():
            for n in (300, 3_000, 30_000):
                values = np.clip((made(generator, n) * BINS).astype(np.int64), 0, BINS - 1)
                counts = np.bincount(values, minlength=BINS)
                below = np.concatenate([[0], np.cumsum(counts)])
                for q in FRACTIONS:
                    true, wanted = int(np.sort(values)[int(q * (n - 1))]), float(q) * n
                    cells = []
                    for how in (by_tree, by_rank):
                        found = np.array(how(counts, q, pure, reps))
                        places = found.astype(np.int64)
                        rows = np.maximum(0, np.maximum(below[places] - wanted, wanted - below[places + 1]))
                        cells.append(f"{np.abs(found - true).mean():11.1f} {rows.mean():6.1f}")
                    price = "eps 1" if pure else "rho 0.02"
                    print(f"{price:8} {kind:10} {n:6} {float(q):4}  {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
