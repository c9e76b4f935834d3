"""The log as a Merkle tree: one hash for all entries; short proofs that one is among them, and that a longer log begins with a shorter one.

    leaf_n = SHA-256(0x00 || commitment_n)          commitment_n: the 32 bytes of chain.commitment
    node   = SHA-256(0x01 || left || right)         left holds the largest power of two below the number of leaves
    root of no leaves = SHA-256()

RFC 6962, section 2.1 (the same tree as RFC 9162, section 2.1), with commitments for entries: proofs show nothing of what entries say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

EMPTY = sha256().digest()


def leaf(commitment: bytes) -> bytes:
    """The hash of one entry's leaf."""
    return sha256(b"\x00" + commitment).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over hashes of leaves."""
    return _folded(_peaks(leaves)) if leaves else EMPTY


def inclusion(leaves: Sequence[bytes], index: int) -> tuple[bytes, ...]:
    """The hashes beside the way from leaf `index` (0 for the first) up to the root of `leaves`, from the leaf on. IndexError where there is none."""
    if not 0 <= index < len(leaves):
        raise IndexError("no such leaf")
    if len(leaves) == 1:
        return ()
    split = _split(len(leaves))
    if index < split:
        return (*inclusion(leaves[:split], index), root(leaves[split:]))
    return (*inclusion(leaves[split:], index - split), root(leaves[:split]))


def included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether `proof` shows the leaf at place `index` of the tree of `size` leaves with that root (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    place, last, found = index, size - 1, leaf
    for beside in proof:
        if last == 0:
            return False
        if place & 1 or place == last:
            found = _node(beside, found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = _node(found, beside)
        place, last = place >> 1, last >> 1
    return last == 0 and found == root


def consistency(leaves: Sequence[bytes], first: int) -> tuple[bytes, ...]:
    """The hashes that show that the tree of the first `first` leaves is the beginning of that of all. IndexError where it has no such beginning."""
    if not 0 < first <= len(leaves):
        raise IndexError("no such beginning")
    return _consistency(leaves, first, whole=True)


def _consistency(leaves: Sequence[bytes], first: int, whole: bool) -> tuple[bytes, ...]:
    if first == len(leaves):
        return () if whole else (root(leaves),)
    split = _split(len(leaves))
    if first <= split:
        return (*_consistency(leaves[:split], first, whole), root(leaves[split:]))
    return (*_consistency(leaves[split:], first - split, whole=False), root(leaves[:split]))


def consistent(first: int, before: bytes, size: int, after: bytes, proof: Sequence[bytes]) -> bool:
    """Whether `proof` shows that the tree of `size` leaves with root `after` begins with the one of `first` leaves with root `before`.

    RFC 9162, section 2.1.4.2.
    """
    if first == size:
        return not proof and before == after
    if not 0 < first < size or not proof:
        return False
    path = [before, *proof] if first & (first - 1) == 0 else list(proof)
    place, last = first - 1, size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old = new = path[0]
    for beside in path[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            old, new = _node(beside, old), _node(beside, new)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            new = _node(new, beside)
        place, last = place >> 1, last >> 1
    return last == 0 and old == before and new == after


def _split(size: int) -> int:
    """The largest power of two below `size`, which is at least 2."""
    return 1 << (size - 1).bit_length() - 1


def _peaks(leaves: Iterable[bytes]) -> list[tuple[int, bytes]]:
    """(height, hash) of the full subtrees that the leaves fall into, the tallest first."""
    peaks: list[tuple[int, bytes]] = []
    for hashed in leaves:
        height = 0
        while peaks and peaks[-1][0] == height:
            hashed, height = _node(peaks.pop()[1], hashed), height + 1
        peaks.append((height, hashed))
    return peaks


def _folded(peaks: Sequence[tuple[int, bytes]]) -> bytes:
    found = peaks[-1][1]
    for _, peak in reversed(peaks[:-1]):
        found = _node(peak, found)
    return found


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()
