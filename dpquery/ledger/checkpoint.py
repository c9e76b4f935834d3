"""Checkpoints: the head of the log as text that its owner signs, to be kept where whoever could change the ledger cannot.

    shop.dpquery/3f0c..          the origin: data set and ledger
    1234                         how many entries
    qINS1GRFWEDBXU7DfFFuLZ0j...  the root of their tree (ledger.tree), base64

    — shop.dpquery/3f0c.. Az3g..   who signs, and base64 of key id and Ed25519 signature

The text form of C2SP: tlog-checkpoint over signed-note, so that tools of transparency logs read it. Ed25519: RFC 8032.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ED25519: Final = b"\x01"  # of signed-note's signature types
SEED: Final = 32  # bytes of a signing key
LONGEST: Final = 100_000  # characters of a checkpoint that are read
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")  # all but the ends of lines
_NAME = re.compile(r"[^\s+]{1,300}")


class Unsound(ValueError):
    """A text that is no checkpoint, or that the key did not sign. Its words are for people."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The head of a log: its origin, the number of its entries, and the root of the tree over them."""

    origin: str
    size: int
    root: bytes

    @property
    def body(self) -> str:
        """What is signed."""
        return f"{self.origin}\n{self.size}\n{_text(self.root)}\n"


@dataclass(frozen=True, slots=True)
class Key:
    """A key that checks signatures: the name that signs, and 32 bytes of Ed25519. Public."""

    name: str
    public: bytes

    @property
    def id(self) -> bytes:
        """Four bytes that tell keys apart; no security rests on them."""
        return sha256(self.name.encode() + b"\n" + ED25519 + self.public).digest()[:4]

    def written(self) -> str:
        """`name+id+key`, as signed-note writes the key of a verifier."""
        return f"{self.name}+{self.id.hex()}+{_text(ED25519 + self.public)}"


def origin(dataset: str, ledger: str) -> str:
    """The origin line of a ledger: its data set, with what may not stand in a name replaced, and its id."""
    named = re.sub(r"[\s+]", "-", dataset)
    return f"{named}.dpquery/{ledger}"


def key(seed: bytes, name: str) -> Key:
    """The public half of a signing key."""
    return Key(name, _private(seed).public_key().public_bytes_raw())


def read_key(written: str) -> Key:
    """The key behind `Key.written`. Unsound where it is none, or where id and key differ."""
    parts = written.strip().split("+", 2)
    if len(parts) != 3 or not _NAME.fullmatch(parts[0]):
        raise Unsound("no key: it is written name+id+base64")
    content = _bytes(parts[2], "the key")
    if len(content) != 1 + SEED or content[:1] != ED25519:
        raise Unsound("no Ed25519 key")
    found = Key(parts[0], content[1:])
    if found.id.hex() != parts[1]:
        raise Unsound("the key's id is another one's: a character of it was lost or changed")
    return found


def signed(checkpoint: Checkpoint, seed: bytes) -> str:
    """The checkpoint as its owner keeps and shows it. The origin is the name that signs."""
    if not _NAME.fullmatch(checkpoint.origin):
        raise Unsound("the origin is empty, or has a space or a plus sign in it")
    signature = key(seed, checkpoint.origin).id + _private(seed).sign(checkpoint.body.encode())
    return f"{checkpoint.body}\n\u2014 {checkpoint.origin} {_text(signature)}\n"


def opened(note: str, by: Key) -> Checkpoint:
    """The checkpoint in a signed note. Unsound where it is none, or bears no signature of that key over exactly this text.

    Signatures of others, as of witnesses, are passed over, and so are lines beyond the third; both are covered as signed-note says.
    """
    if len(note) > LONGEST or _CONTROL.search(note):
        raise Unsound("no checkpoint: it is too long, or holds characters that belong in no text")
    text, separator, signatures = note.rpartition("\n\n")
    if not separator or not signatures.endswith("\n"):
        raise Unsound("no checkpoint: text, an empty line, and lines of signatures, each ended")
    body = text + "\n"
    if not any(_verifies(line, body, by) for line in signatures.splitlines()):
        raise Unsound("it bears no signature of this key over this text: it was changed, or another key signed it")
    return _parsed(body)


def _parsed(body: str) -> Checkpoint:
    lines = body[:-1].split("\n")
    if len(lines) < 3 or not all(lines) or not _SIZE.fullmatch(lines[1]):
        raise Unsound("no checkpoint: origin, number of entries and root, each on a line of its own")
    root = _bytes(lines[2], "the root")
    if len(root) != sha256().digest_size:
        raise Unsound("no checkpoint: its root is no SHA-256")
    return Checkpoint(lines[0], int(lines[1]), root)


def _verifies(line: str, body: str, by: Key) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    parts = line.split(" ")
    if len(parts) != 3 or parts[0] != "\u2014" or parts[1] != by.name:
        return False
    content = _bytes(parts[2], "a signature")
    if content[:4] != by.id:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(by.public).verify(content[4:], body.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def _private(seed: bytes) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed)


def _text(content: bytes) -> str:
    return b64encode(content).decode()


def _bytes(written: str, what: str) -> bytes:
    try:
        return b64decode(written, validate=True)
    except ValueError:
        raise Unsound(f"{what} is not base64") from None
