"""Nothing but dpquery's own errors leaves the Python door, whatever is handed in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attack_lab import ORDINARY, made

import dpquery
from dpquery.errors import Error

NO_PATHS: list[Any] = [5, b"lab.yaml", ["lab.yaml"], "\0", "", "/", object()]
NO_NAMES: list[Any] = [5, b"alice", ["alice"], {"alice"}, "x" * 129, "x" * 10**6, "\ud800", "a\0b", "a\nb", "\x1b[2J"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("doors"), more=ORDINARY)


@pytest.mark.parametrize("given", [None, *NO_PATHS])
def test_a_schema_is_named_by_a_path(given: Any) -> None:
    for door in (dpquery.connect, dpquery.create_ledger):
        with pytest.raises(Error) as caught:
            door(given)
        assert caught.value.code in ("FILE_UNREADABLE", "FILE_MISSING")


@pytest.mark.parametrize("given", NO_PATHS)
def test_so_is_a_ledger(given: Any, file: Path) -> None:
    with pytest.raises(Error):
        dpquery.connect(file, ledger=given).budget()
    with pytest.raises(Error):
        dpquery.create_ledger(file, given)


@pytest.mark.parametrize("name", NO_NAMES)
def test_an_analyst_has_a_name(name: Any, file: Path) -> None:
    """Bytes ended as a corrupt ledger; a million characters went into the log with each question of whoever shares the account."""
    with pytest.raises(Error) as caught:
        dpquery.connect(file, analyst=name)
    assert caught.value.code == "UNKNOWN_ANALYST"
