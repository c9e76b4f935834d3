"""Checkpoints are signed notes as C2SP and Go's sumdb write them, and no other text passes for one."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

import pytest

from dpquery.ledger import checkpoint
from dpquery.ledger.checkpoint import Checkpoint, Unsound, key, opened, origin, read_key, signed

SEED, OTHER = b"s" * 32, b"o" * 32
HEAD = Checkpoint(origin("a shop+", "ab12"), 7, sha256(b"root").digest())
NOTE = signed(HEAD, SEED)
OWNER = key(SEED, HEAD.origin)

# The example in the documentation of Go's golang.org/x/mod/sumdb/note.
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
SAID = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
BY_PETER = "\u2014 PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="


def test_published_signature() -> None:
    peter = read_key(PETER)
    assert peter.written() == PETER
    assert checkpoint._verifies(BY_PETER, SAID, peter)
    assert not checkpoint._verifies(BY_PETER, SAID.replace("think", "thank"), peter)


def test_text_form() -> None:
    lines = NOTE.split("\n")
    assert lines[:4] == ["a-shop-.dpquery/ab12", "7", b64encode(sha256(b"root").digest()).decode(), ""]
    assert lines[4].startswith("\u2014 a-shop-.dpquery/ab12 ")
    assert lines[5:] == [""]


def test_a_checkpoint_comes_back() -> None:
    assert opened(NOTE, read_key(OWNER.written())) == HEAD


def test_every_changed_character_is_noticed() -> None:
    for place in range(len(NOTE)):
        for other in "1A\n ":
            changed = NOTE[:place] + other + NOTE[place + 1 :]
            if changed != NOTE:
                with pytest.raises(Unsound):
                    opened(changed, OWNER)


def test_another_key_or_name_is_no_signature() -> None:
    for stranger in (key(OTHER, HEAD.origin), key(SEED, "another")):
        with pytest.raises(Unsound, match="no signature of this key"):
            opened(NOTE, stranger)


def test_witnesses_may_sign_too() -> None:
    witness = signed(HEAD, OTHER).splitlines()[-1].replace(HEAD.origin, "witness.example")
    assert opened(NOTE + witness + "\n", OWNER) == HEAD


@pytest.mark.parametrize(
    "note",
    [
        "",
        "\n\n",
        "x",
        NOTE.rstrip("\n"),
        NOTE + "\n",
        "\x00" + NOTE,
        NOTE.replace("\n\n", "\n"),
        NOTE * 2000,
        "a\n1\n\n\u2014 a AAAA\n",
        "\u2014" * 9,
    ],
)
def test_what_is_no_checkpoint(note: str) -> None:
    with pytest.raises(Unsound):
        opened(note, OWNER)


@pytest.mark.parametrize("body", ["a\n01\nAAAA\n", "a\n7\nAAAA\n", "a\n7\n", "\n7\nx\n", "a\n-1\nx\n", "a\n7\n!\n", "a\n99999999999999999999\nx\n"])
def test_a_signed_text_that_is_no_checkpoint(body: str) -> None:
    with pytest.raises(Unsound):
        checkpoint._parsed(body)


@pytest.mark.parametrize("written", ["", "a", "a+b", "a+b+!", "a+00000000+" + OWNER.written().split("+", 2)[2], OWNER.written()[:-4], "a b+1+AAAA"])
def test_what_is_no_key(written: str) -> None:
    with pytest.raises(Unsound):
        read_key(written)


def test_an_origin_is_a_name() -> None:
    for wrong in ("", "a b", "a+b", "a\nb"):
        with pytest.raises(Unsound, match="origin"):
            signed(Checkpoint(wrong, 1, HEAD.root), SEED)
