"""Hostile schema files: an error that names the place, soon, whatever the file holds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dpquery.errors import SchemaError
from dpquery.schema.read import loads

HOSTILE = {
    "brackets": ("[" * 500_000, "TOO_LARGE"),
    "braces": ("{a: " * 240_000, "TOO_LARGE"),
    "dashes": ("- " * 400_000, "TOO_LARGE"),
    "keys of keys": ("? " * 100_000, "WRONG_TYPE"),
    "values of keys of keys": ("? - " * 60_000, "WRONG_TYPE"),
    "aliases within aliases": ("\n".join(f"a{i}: &x{i} [*x{i - 1}]" if i else "a0: &x0 [1]" for i in range(600)), "TOO_LARGE"),
    "doubling aliases": ("\n".join(f"a{i}: &x{i} [*x{i - 1}, *x{i - 1}]" if i else "a0: &x0 [1]" for i in range(40)), "TOO_LARGE"),
    "unknown keys": ("\n".join(f"k{i}: 1" for i in range(8_000)), "UNKNOWN_KEY"),
}


@pytest.mark.parametrize(("text", "code"), HOSTILE.values(), ids=HOSTILE)
def test_no_file_keeps_the_reader_busy(text: str, code: str) -> None:
    """Half a million brackets were read for hours: the scanner looks at every open one again; unknown keys took a search through all keys each."""
    start = time.process_time()
    with pytest.raises(SchemaError) as caught:
        loads(text, Path("/nowhere/schema.yaml"))
    assert caught.value.code == code
    assert caught.value.position is not None
    assert time.process_time() - start < 2
