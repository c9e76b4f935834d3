"""Messages between a worker and its parent: a JSON header and a body of bytes, both with their lengths in front."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

LENGTHS = struct.Struct(">IQ")
Read = Callable[[int], bytes]  # exactly that many bytes, or EOFError


def packed(header: Mapping[str, Any], body: bytes = b"") -> bytes:
    """The message as bytes."""
    head = json.dumps(header).encode()
    return LENGTHS.pack(len(head), len(body)) + head + body


def unpacked(read: Read) -> tuple[dict[str, Any], bytes]:
    """The next message; EOFError where there is none."""
    head, body = LENGTHS.unpack(read(LENGTHS.size))
    header: dict[str, Any] = json.loads(read(head))
    return header, read(body)
