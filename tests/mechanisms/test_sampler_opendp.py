"""OpenDP's samplers, exact too, as a second witness of what the laws are: two samples, one question. LEAST_P says how sure."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from draw_statistics import LEAST_P, STATISTICS, difference
from exact_laws import LAPLACE, Seeded, name, noise
from numpy.typing import NDArray

from dpquery.mechanisms import Noise, SystemBits, sample
from dpquery.plan.release import Mechanism

SCALES = (0.5, 1.0, 7.5, 32.0, 1e3, 1e6, 1e9, 1e12)
LAWS = [noise(mechanism, Fraction(scale)) for mechanism in Mechanism for scale in SCALES]
DRAWS = 20_000
LONG = 400_000


def theirs(law: Noise, count: int) -> NDArray[np.int64]:
    dp.enable_features("contrib")
    make = dp.m.make_laplace if law.mechanism is LAPLACE else dp.m.make_gaussian
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    metric = dp.l1_distance(T="i64") if law.mechanism is LAPLACE else dp.l2_distance(T="i64")
    made: Any = make(domain, metric, scale=float(law.parameter) if law.mechanism is LAPLACE else float(law.parameter) ** 0.5)
    return np.array(made([0] * count), dtype=np.int64)


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_the_same_law(law: Noise) -> None:
    values = theirs(law, DRAWS)
    assert difference(values, sample(law, DRAWS, SystemBits())) > LEAST_P
    assert min(statistic(law, values) for statistic in STATISTICS.values()) > LEAST_P


@pytest.mark.audit
@pytest.mark.parametrize("law", LAWS, ids=name)
def test_the_same_law_at_length(law: Noise) -> None:
    values = theirs(law, LONG)
    assert difference(values, sample(law, LONG, SystemBits())) > LEAST_P
    assert min(statistic(law, values) for statistic in STATISTICS.values()) > LEAST_P


def off(law: Noise, percent: int) -> Noise:
    factor = Fraction(100 + percent, 100)
    return Noise(law.mechanism, law.parameter * (factor if law.mechanism is LAPLACE else factor**2))


@pytest.mark.parametrize("law", [law for law in LAWS if law.parameter > 1], ids=name)
@pytest.mark.parametrize(("percent", "draws"), [(12, DRAWS), (3, LONG)])
def test_another_scale_is_seen(law: Noise, percent: int, draws: int) -> None:
    """12 percent by the draws of each run, 3 percent by those of the audit."""
    assert difference(sample(law, draws, Seeded(2)), sample(off(law, percent), draws, Seeded(3))) < LEAST_P
