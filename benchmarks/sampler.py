"""CPU time per draw of exact integer noise, beside OpenDP's exact samplers and numpy's inexact ones.

    python benchmarks/sampler.py [--draws 1000000]

The bar for dpquery is 300 ns a draw at a million draws. `one` and `hundred` are whole calls with the table of the scale in the cache, `first` is the
first call for a scale, which computes its table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from dpquery.mechanisms import Noise, SystemBits, half_width, sample, threshold
from dpquery.mechanisms.sampler import _table
from dpquery.plan.release import Mechanism

SCALES = (Fraction(1, 3), Fraction(1), Fraction(15, 2), Fraction(1000), Fraction(10**6), Fraction(2**60))
OPENDP_DRAWS = 10_000
WIDTHS = (10, 10, 10, 10, 10, 10, 12, 12)


def cpu(call: Callable[[], object], repeats: int = 3) -> float:
    """The least CPU seconds of a few calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def opendp(mechanism: Mechanism, scale: float) -> Callable[[int], object] | None:
    """OpenDP's vector measurement of so many zeros, where OpenDP is installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if mechanism is Mechanism.LAPLACE:
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)
    else:
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=int), scale=scale)
    return lambda count: measurement([0] * count)


def inexact(mechanism: Mechanism, scale: float) -> Callable[[int], object]:
    """numpy's float generators: fast, and not private."""
    generator = np.random.default_rng()
    if mechanism is Mechanism.LAPLACE:
        p = -np.expm1(-1 / scale)
        return lambda count: generator.geometric(p, count) - generator.geometric(p, count)
    return lambda count: np.rint(generator.normal(0, scale, count)).astype(np.int64)


def row(mechanism: Mechanism, scale: Fraction, draws: int, bits: SystemBits) -> list[float | None]:
    """Seconds: a draw of dpquery, OpenDP and numpy (None: not there), then whole calls."""
    noise = Noise(mechanism, scale if mechanism is Mechanism.LAPLACE else scale * scale)
    _table.cache_clear()
    first = cpu(partial(sample, noise, 1, bits), 1)
    one, hundred = (cpu(partial(sample, noise, count, bits), 50) for count in (1, 100))
    ours = cpu(partial(sample, noise, draws, bits)) / draws
    other, fast = opendp(mechanism, float(scale)), inexact(mechanism, float(scale))
    theirs = cpu(partial(other, OPENDP_DRAWS), 1) / OPENDP_DRAWS if other else None
    floats = cpu(partial(fast, draws)) / draws if scale < 2**50 else None
    width, least = cpu(partial(half_width, noise, Fraction(95, 100))), cpu(partial(threshold, noise, Fraction(1, 10**9), 4))
    return [ours, theirs, floats, first, one, hundred, width, least]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1_000_000)
    draws = parser.parse_args().draws
    print(f"{'':22}{'ns of CPU per draw':>30}{'microseconds of CPU per call':>55}")
    names = ("dpquery", "opendp", "numpy", "first", "one", "hundred", "half width", "threshold")
    print(f"{'mechanism':12}{'scale':>10}" + "".join(f"{name:>{width}}" for name, width in zip(names, WIDTHS, strict=True)))
    for mechanism in Mechanism:
        for scale in SCALES:
            seconds = row(mechanism, scale, draws, SystemBits())
            units = [1e9] * 3 + [1e6] * 5
            cells = ("-" if s is None else f"{s * unit:.0f}" for s, unit in zip(seconds, units, strict=True))
            print(f"{mechanism.value:12}{float(scale):>10.4g}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True)))


if __name__ == "__main__":
    main()
