"""SystemBits: fresh words at each call, in each process."""

from __future__ import annotations

import inspect
import os
import threading

import numpy as np
import pytest

from dpquery.mechanisms import SystemBits, sample


def words_in_child(bits: SystemBits, count: int) -> list[int]:
    """The words that a forked child draws from the same instance."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, bits.uint64(count).tobytes())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return np.frombuffer(data, dtype=np.uint64).tolist()


@pytest.mark.parametrize("count", [0, 1, 64, 65, 5000])
def test_shape_and_type(count: int) -> None:
    words = SystemBits().uint64(count)
    assert words.dtype == np.uint64
    assert words.shape == (count,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.parametrize("count", [32, 1000])
def test_fork_shares_nothing(count: int) -> None:
    bits = SystemBits()
    bits.uint64(1000)
    first, second, here = words_in_child(bits, count), words_in_child(bits, count), bits.uint64(count).tolist()
    assert len({*first, *second, *here}) == 3 * count


@pytest.mark.parametrize("count", [16, 1000])
def test_calls_instances_and_threads_share_nothing(count: int) -> None:
    bits, drawn = SystemBits(), []
    drawn += [bits.uint64(count), bits.uint64(count), SystemBits().uint64(count)]
    threads = [threading.Thread(target=lambda: drawn.append(bits.uint64(count))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(np.unique(np.concatenate(drawn))) == 7 * count


def test_there_is_no_seed() -> None:
    assert not inspect.signature(SystemBits).parameters
    assert "seed" not in inspect.signature(sample).parameters
    with pytest.raises(AttributeError):
        SystemBits().key = b""  # type: ignore[attr-defined]


def test_words_are_balanced() -> None:
    """Each of 64 bits of 200,000 words: within 7 standard deviations of half (false alarm below 64 * 3e-12)."""
    words = SystemBits().uint64(200_000)
    for bit in range(64):
        ones = int(((words >> np.uint64(bit)) & np.uint64(1)).sum())
        assert abs(ones - 100_000) < 7 * 200_000**0.5 / 2
