"""Caps chosen from noisy histograms: right without noise, near the best with it, and something in any case."""

from __future__ import annotations

import numpy as np
import pytest

from dpquery.release.caps import OCTAVE, Chosen, chosen

BINS = 24 * OCTAVE + 1


def histogram(values: np.ndarray) -> np.ndarray:
    return np.bincount(np.ceil(np.log2(values) * OCTAVE - 1e-9).astype(int), minlength=BINS)


def end(place: int) -> float:
    return float(2.0 ** (place / OCTAVE))


def test_without_noise_nothing_is_cut_off() -> None:
    for values in (np.full(100, 7.0), np.arange(1.0, 300), np.asarray([1.0, 1.0, 900.0])):
        made = chosen(histogram(values).tolist(), 1e-20, 1e-20)
        assert end(made.bin) >= values.max() - 1e-6
        assert end(made.bin) <= 8 * values.max()


@pytest.mark.parametrize("heavy", [True, False])
def test_with_noise_the_error_is_near_the_least(heavy: bool) -> None:
    """Median over draws, of tails that fall like a power and of such that fall faster: within 2.5 times the best cap's."""
    draws = np.random.default_rng(5)
    values = np.ceil(1 + 8 * draws.pareto(2.0, 50_000)) if heavy else np.ceil(draws.lognormal(1.2, 1.2, 50_000))
    seen, total = histogram(values), values.sum()
    caps = [end(chosen((seen + draws.laplace(0, 10, BINS)).tolist(), 10.0, 1.1).bin) for _ in range(40)]

    def error(cap: float) -> float:
        return float(np.median(np.abs(np.minimum(values, cap).sum() + draws.laplace(0, cap / 0.9, 400) - total)))

    assert np.median([error(cap) for cap in caps]) <= 2.5 * min(error(end(k)) for k in range(4, 60))


def test_a_histogram_without_units_has_some_cap() -> None:
    for counts in ([0] * BINS, [-5] * BINS, [1] + [0] * (BINS - 1)):
        assert 0 <= chosen(counts, 10.0, 1.0).bin < BINS


def test_units_that_clearly_lie_higher_are_not_cut_off() -> None:
    seen = histogram(np.concatenate([np.full(10_000, 3.0), np.full(400, 5_000.0)]))
    assert end(chosen(seen.tolist(), 10.0, 1.0).bin) >= 5_000


def test_of_a_single_bin_nothing_is_cut_off() -> None:
    assert chosen([1_000], 10.0, 1.0) == Chosen(0, 0.0, False)


DAYS = np.minimum(97, np.ceil(np.random.default_rng(3).lognormal(1.8, 0.8, 5_000)))
FEW = np.ceil(np.random.default_rng(3).lognormal(1.2, 1.0, 400))


@pytest.mark.parametrize(("values", "noise", "known"), [(DAYS, 10.0, 20), (DAYS, 100.0, 0), (FEW, 20.0, 0), (FEW, 100.0, 0)])
def test_a_loss_is_told_within_a_tenth_or_not_at_all(values: np.ndarray, noise: float, known: int) -> None:
    """Of 20 draws so many at least know it; where it is mostly noise, none says that most of a total is lost of which nothing was."""
    draws = np.random.default_rng(11)
    made = [chosen((histogram(values) + draws.laplace(0, noise, BINS)).tolist(), noise, 1.1) for _ in range(20)]
    lost = [1 - np.minimum(values, end(one.bin)).sum() / values.sum() for one in made]
    told = [(one.lost, share) for one, share in zip(made, lost, strict=True) if one.lost is not None]
    assert all(abs(said - share) <= 0.1 for said, share in told)
    assert len(told) >= known
    assert all(one.likely for one, share in zip(made, lost, strict=True) if share > 0.2)


def test_a_histogram_of_noise_alone_knows_nothing() -> None:
    made = chosen(np.random.default_rng(2).laplace(0, 100, BINS).tolist(), 100.0, 1.0)
    assert (made.lost, made.likely) == (None, True)
