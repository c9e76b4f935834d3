"""Draws tell nothing of each other: within a call, between calls, columns, threads, forks and processes; and no word of a keystream comes twice."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from draw_statistics import LEAST_P, dependence, repeated
from exact_laws import GAUSSIAN, LAPLACE, NOISES, Seeded, name, noise
from numpy.typing import NDArray

from dpquery.mechanisms import BitSource, Noise, SystemBits, sample
from dpquery.mechanisms.bits import Words
from dpquery.plan.release import ListedKeys, Release
from dpquery.privacy.cost import Priced
from dpquery.release import noise as released
from dpquery.values.exact import Exact

PAIRS = 100_000
WORDS = 1 << 17  # of each worker: eight of them repeat one by chance with probability below 3e-8
PLAIN = noise(GAUSSIAN, 1000)
Draws = NDArray[Any]


def independent(samples: Sequence[Draws]) -> float:
    """The least p value of all pairs of samples, and of each sample with itself one place on."""
    pairs = [*combinations(samples, 2), *((one[:-1], one[1:]) for one in samples)]
    return min(dependence(a, b) for a, b in pairs)


# ---- within a call and between calls -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", NOISES, ids=name)
def test_draws_of_a_call_and_of_two_calls(law: Noise) -> None:
    bits = SystemBits()
    first, second = sample(law, PAIRS, bits), sample(law, PAIRS, bits)
    assert independent([first, second]) > LEAST_P
    assert dependence(first[: PAIRS // 2], first[PAIRS // 2 :]) > LEAST_P


def test_single_draws_of_many_calls() -> None:
    """As a statement without groups takes them."""
    bits = SystemBits()
    values = np.concatenate([sample(PLAIN, 1, bits) for _ in range(10_000)])
    assert independent([values]) > LEAST_P


def repeating(values: Draws) -> Draws:
    """A block of a 20th of the draws, used again later."""
    values = values.copy()
    values[len(values) // 2 : len(values) // 2 + len(values) // 20] = values[: len(values) // 20]
    return values


def leaning(values: Draws) -> Draws:
    """Each 30th draw has the sign of the one before."""
    values = values.copy()
    places = np.arange(1, len(values), 30)
    values[places] = np.abs(values[places]) * np.sign(values[places - 1])
    return values


@pytest.mark.parametrize("law", [law for law in NOISES if law.parameter >= 1], ids=name)
def test_dependence_is_seen(law: Noise) -> None:
    values = sample(law, PAIRS, Seeded(4))
    assert dependence(repeating(values)[: PAIRS // 2], repeating(values)[PAIRS // 2 :]) < LEAST_P
    leant = leaning(values)
    assert dependence(leant[:-1], leant[1:]) < LEAST_P


# ---- columns of one release ----------------------------------------------------------------------------------------------------------


def columns(releases: int, groups: int = 10_000, parts: int = 3) -> list[Draws]:
    """The noise on each column of some releases of one statement, one after the other."""
    keys = tuple((i,) for i in range(groups))
    exact = Exact(keys, ((0,) * groups,) * parts)
    table = SimpleNamespace(parts=(SimpleNamespace(numbers=1, cell=None),) * parts)
    release = cast(Release, SimpleNamespace(keys=ListedKeys(keys, ""), table=table, aggregates=()))
    priced = cast(Priced, SimpleNamespace(noises=(PLAIN, noise(LAPLACE, 1000), PLAIN)[:parts], threshold=None))
    answers = [released.add(exact, release, priced, SystemBits()) for _ in range(releases)]
    return [np.array(column) for answer in answers for column in answer.sums]


def test_columns_of_a_release_and_of_two() -> None:
    assert independent(columns(2)) > LEAST_P


def test_noise_that_two_columns_share_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(released, "sample", lambda law, count, bits: sample(law, count, Seeded(9)))
    assert independent(columns(1)) < LEAST_P


# ---- threads, forks, processes -------------------------------------------------------------------------------------------------------

BITS: BitSource = SystemBits()  # one instance, which forks and threads share


def words(_: int = 0) -> Words:
    """Words of the shared source, in calls of many and of few."""
    return np.concatenate([BITS.uint64(WORDS // 2), *(BITS.uint64(64) for _ in range(WORDS // 128))])


def draws(_: int = 0) -> Draws:
    return sample(PLAIN, 20_000, BITS)


def forked(work: Callable[[], NDArray[Any]], children: int) -> list[NDArray[Any]]:
    """What as many children made, each forked from this process and nothing else in between."""
    pipes, found = [], []
    for _ in range(children):
        read, write = os.pipe()
        if os.fork() == 0:
            os.close(read)
            with os.fdopen(write, "wb") as pipe:
                pipe.write(work().tobytes())
            os._exit(0)
        os.close(write)
        pipes.append(read)
    for read in pipes:
        with os.fdopen(read, "rb") as pipe:
            found.append(pipe.read())
        os.wait()
    kind = work().dtype
    return [np.frombuffer(data, dtype=kind) for data in found]


def workers(how: str, work: Callable[[int], NDArray[Any]]) -> list[NDArray[Any]]:
    """What two workers and this process made, from a source that was in use before."""
    before = work(0)
    match how:
        case "os.fork":
            made = forked(cast("Callable[[], NDArray[Any]]", work), 2)
        case "threads":
            with ThreadPoolExecutor(2) as pool:
                made = list(pool.map(work, range(2)))
        case _:
            with multiprocessing.get_context(how).Pool(2, maxtasksperchild=1) as processes:
                made = processes.map(work, range(2), chunksize=1)
    return [before, *made, work(0)]


FORKS = ["os.fork", "fork"] if hasattr(os, "fork") else []


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
@pytest.mark.parametrize("how", ["threads", *FORKS, "spawn"])
def test_no_word_comes_twice(how: str) -> None:
    assert repeated(np.concatenate(workers(how, words))) == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
@pytest.mark.parametrize("how", ["threads", *FORKS, "spawn"])
def test_draws_of_workers(how: str) -> None:
    assert independent(workers(how, draws)) > LEAST_P


@pytest.mark.audit
def test_no_word_comes_twice_at_length() -> None:
    """2^25 words: one comes twice by chance with probability below 4e-5, so that two do with one below 1e-9."""
    assert repeated(np.concatenate([SystemBits().uint64(1 << 16) for _ in range(1 << 9)])) <= 1


@pytest.mark.skipif(not FORKS, reason="no fork on this platform")
def test_a_stream_that_is_kept_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source with a state of its own, as a seeded generator: its forks go on alike."""
    monkeypatch.setitem(globals(), "BITS", Seeded(3))
    assert repeated(np.concatenate(workers("os.fork", words))) >= WORDS
    assert independent(workers("os.fork", draws)) < LEAST_P


def test_one_word_that_comes_twice_is_seen() -> None:
    fresh = SystemBits().uint64(WORDS)
    assert repeated(fresh) == 0
    assert repeated(np.append(fresh, fresh[77])) == 1


def test_the_smallest_of_laws_still_takes_bits_of_its_own() -> None:
    """Each draw takes its own words: as many as draws at least, whatever the law."""
    for law in (noise(LAPLACE, Fraction(1, 10**20)), PLAIN, noise(GAUSSIAN, 2**70)):
        taken: list[int] = []
        sample(law, 1000, cast(BitSource, SimpleNamespace(uint64=lambda count, taken=taken: (taken.append(count), SystemBits().uint64(count))[1])))
        assert sum(taken) >= 1000
