"""Where random bits come from."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_DIRECT = 64  # up to this many words, asking the operating system is as cheap as keying a stream
_NONCE = bytes(16)


class BitSource(Protocol):
    """A source of independent, uniform 64-bit words."""

    def uint64(self, count: int) -> Words:
        """`count` fresh words."""


class SystemBits:
    """Words from the operating system's generator, stretched by ChaCha20.

    Each call takes a fresh 256-bit key from os.urandom, uses one keystream of it and forgets it. Nothing is kept between calls, so there is
    nothing that a fork, a thread or a second instance could use again, and no seed to set.
    """

    __slots__ = ()

    def uint64(self, count: int) -> Words:
        """`count` fresh words."""
        if count <= _DIRECT:
            return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
        stream = Cipher(algorithms.ChaCha20(os.urandom(32), _NONCE), mode=None).encryptor()
        return np.frombuffer(stream.update(bytes(8 * count)), dtype=np.uint64)
