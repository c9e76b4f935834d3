"""The chain of the log: each entry commits to itself, and its link commits to all entries before it.

    commitment_n = SHA-256(body_n)                       the body holds a random id and a random 128-bit nonce
    link_n       = SHA-256(link_{n-1} || commitment_n)   link_0 is 32 zero bytes

An analyst may be given the own entry's commitment: it says nothing of other entries, and without the nonce nobody can test guesses on it.
Links are the owner's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from dpquery.ledger.model import JSON, Row

START: Final = "00" * 32

# What reading content raises that was written by somebody else: of another format, or made to break its reader.
MALFORMED: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def canonical(value: JSON) -> str:
    """The one JSON text of a value: sorted keys, no spaces, ASCII. TypeError or ValueError for what is not JSON (NaN is not)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def commitment(body: str) -> str:
    """The hash of one entry, in hexadecimal."""
    return sha256(body.encode()).hexdigest()


def link(previous: str, committed: str) -> str:
    """The hash of an entry and everything before it, in hexadecimal."""
    return sha256(bytes.fromhex(previous) + bytes.fromhex(committed)).hexdigest()


def row(head: tuple[int, str], body: Mapping[str, JSON]) -> Row:
    """The entry that follows the last one, whose number and link are `head`."""
    seq, previous = head
    written = canonical(body)
    return Row(seq + 1, body["id"], body["event"], body.get("entry"), written, link(previous, commitment(written)))
