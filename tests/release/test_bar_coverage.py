"""How often error bars of 95% hold the bounded value: every aggregate that has bars, through the product's own noise and bars.

The machinery is that of benchmarks/intervals.py, which measures 20,000 releases of each. A bar that holds with probability 0.95 falls below the
number asked for here with probability at most 1e-9 (exact binomial tail), case by case.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from math import comb
from pathlib import Path
from typing import Any

import pytest

CHANCE = Fraction(1, 10**9)
FEW, MANY = 120, 20_000
SPEC = importlib.util.spec_from_file_location("bar_coverage", Path(__file__).parents[2] / "benchmarks" / "intervals.py")
assert SPEC is not None
assert SPEC.loader is not None
lab: Any = importlib.util.module_from_spec(SPEC)
sys.modules["bar_coverage"] = lab
SPEC.loader.exec_module(lab)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    opened = lab.opened(tmp_path_factory.mktemp("bars"))
    yield opened
    opened.close()


@lru_cache
def least(number: int) -> int:
    """The most of so many that a bar of 95% holds fewer than with probability at most CHANCE."""
    total, held = Fraction(0), 0
    while True:
        total += comb(number, held) * Fraction(19) ** held / Fraction(20) ** number
        if total > CHANCE:
            return held
        held += 1


def holds(session: Any, case: Any, releases: int) -> None:
    block, exact = lab.ready(session, case)
    for group in lab.groups(block, exact):
        found = lab.measured(block, exact, group, case.output, releases)
        assert round(found.held * found.number) >= (least(found.number) if found.number else 0), (case, found)


def test_the_least_number_is_hardly_ever_missed() -> None:
    assert 90 < least(FEW) < 0.95 * FEW


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name == "MEDIAN of floats" else name for name in lab.ASKED])
def test_bars_hold_what_was_released(name: str, session: Any) -> None:
    holds(session, lab.Case(name, False, "LAPLACE", 1.0), FEW)


def test_bars_hold_among_the_groups_that_appear(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a count, and of a mean and a correlation made of the count that decides: below the threshold, at it and above."""
    monkeypatch.setattr(lab, "MOST_TRIED", 20_000)
    for name in ("COUNT(DISTINCT unit)", "AVG", "STDDEV_POP"):
        holds(session, lab.Case(name, True, "LAPLACE", 3.0), FEW)


@pytest.mark.slow
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("name", lab.ASKED)
def test_bars_hold_over_many_releases(name: str, private: bool, session: Any) -> None:
    """94% of 20,000 is 6.5 standard deviations below 95%: by chance less often than 1e-9."""
    if private and name == "SUM / COUNT":
        return
    for case in (lab.Case(name, private, noise, epsilon) for noise in ("LAPLACE", "GAUSSIAN") for epsilon in lab.PRICES[private][:2]):
        block, exact = lab.ready(session, case)
        for group in lab.groups(block, exact):
            found = lab.measured(block, exact, group, case.output, MANY)
            assert found.held >= 0.94 if found.number >= MANY else round(found.held * found.number) >= least(found.number or 1), (case, found)
