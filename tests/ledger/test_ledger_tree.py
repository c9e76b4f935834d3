"""The Merkle tree of the log against the definitions of RFC 6962, written down once more, and against its published vectors."""

from __future__ import annotations

from hashlib import sha256

import pytest

from dpquery.ledger import tree

MOST = 40
LEAVES = [tree.leaf(sha256(bytes([n])).digest()) for n in range(MOST)]

# The eight entries, and the roots of their first 1, 2, .., 8, by which implementations of Certificate Transparency are tested.
ENTRIES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def defined(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, over hashes of leaves."""
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256(b"").digest()
    k = max(2**i for i in range(len(leaves).bit_length()) if 2**i < len(leaves))
    return sha256(b"\x01" + defined(leaves[:k]) + defined(leaves[k:])).digest()


def test_published_roots() -> None:
    leaves = [tree.leaf(bytes.fromhex(entry)) for entry in ENTRIES]
    assert [tree.root(leaves[: n + 1]).hex() for n in range(8)] == ROOTS
    assert tree.root([]).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_roots_are_as_defined() -> None:
    assert [tree.root(LEAVES[:n]) for n in range(MOST)] == [defined(LEAVES[:n]) for n in range(MOST)]


@pytest.mark.parametrize("size", range(1, MOST))
def test_each_leaf_has_a_proof_and_no_other_place_has_it(size: int) -> None:
    top = tree.root(LEAVES[:size])
    for index in range(size):
        proof = tree.inclusion(LEAVES[:size], index)
        assert len(proof) <= (size - 1).bit_length()
        assert tree.included(LEAVES[index], index, size, proof, top)
        others = [i for i in range(size + 2) if i != index]
        assert not any(tree.included(LEAVES[index], i, size, proof, top) for i in others)
        assert not tree.included(tree.leaf(b"another"), index, size, proof, top)
        assert not tree.included(LEAVES[index], index, size, (*proof, top), top)
        assert not any(tree.included(LEAVES[index], index, size, proof[:i], top) for i in range(len(proof)))


@pytest.mark.parametrize("size", range(1, MOST))
def test_each_beginning_has_a_proof_and_no_other_log_has_it(size: int) -> None:
    after = tree.root(LEAVES[:size])
    for first in range(1, size + 1):
        before, proof = tree.root(LEAVES[:first]), tree.consistency(LEAVES[:size], first)
        assert tree.consistent(first, before, size, after, proof)
        changed = [*LEAVES[: first - 1], tree.leaf(b"edited"), *LEAVES[first:size]]
        assert not tree.consistent(first, before, size, tree.root(changed), tree.consistency(changed, first))
        assert not any(tree.consistent(other, before, size, after, proof) for other in range(size + 2) if other != first)
        assert not tree.consistent(first, before, size, after, (*proof, after))
        assert not any(tree.consistent(first, before, size, after, proof[:i]) for i in range(len(proof)))


def test_a_leaf_is_no_node() -> None:
    """Two leaves joined do not pass for one leaf (second preimages), which is what the first byte is for."""
    joined = sha256(b"\x01" + LEAVES[0] + LEAVES[1]).digest()
    assert tree.root(LEAVES[:2]) == joined != tree.leaf(LEAVES[0] + LEAVES[1])


def test_what_is_not_there_has_no_proof() -> None:
    for wrong in (-1, 3):
        with pytest.raises(IndexError):
            tree.inclusion(LEAVES[:3], wrong)
    for wrong in (0, 4):
        with pytest.raises(IndexError):
            tree.consistency(LEAVES[:3], wrong)
