"""Paths that lead nowhere, round in circles, or further than a file system goes: an error of dpquery's own, with its exit status."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from attack_lab import ORDINARY, code, made, opened

from dpquery.cli.main import run
from dpquery.engine import create_ledger
from dpquery.errors import Error

LONG = "x" * 300
COUNT = "SELECT count(*) AS n FROM people"
Command = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("paths"), more=ORDINARY)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*words: object) -> tuple[int, str]:
        status = run([str(word) for word in words])
        told = capsys.readouterr().err
        assert "INTERNAL" not in told
        return status, told

    return call


def test_paths_on_the_command_line(file: Path, tmp_path: Path, command: Command) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for odd in (LONG, tmp_path / "loop", tmp_path / LONG, file / "below", "/"):
        assert command("query", COUNT, "--schema", odd)[0] == 4
        assert command("query", COUNT, "--schema", file, "--ledger", odd)[0] == 5
        assert command("query", COUNT, "--schema", file, "-f", odd)[0] == 2
        assert command("init", f"{odd}.csv")[0] in (2, 5)
        assert command("init", odd)[0] in (2, 5)
    for odd in (LONG, tmp_path / "loop" / "x", file / "below", "/sys/kernel", "/proc/1"):
        assert command("demo", odd)[0] == 2
    for odd in (LONG, file / "below", "/", "/proc/x", "/sys/kernel/x"):
        assert command("query", COUNT, "--schema", file, "--epsilon", "0.1", "--out", odd)[0] == 2
    assert command("budget", "--schema", file)[0] == 0
    with opened(file) as session:
        assert session.budget().entries == 0


@pytest.mark.parametrize("odd", [LONG, "loop", "lab.yaml/below", ".", "/dev/null"])
def test_a_source_that_leads_nowhere(odd: str, tmp_path: Path) -> None:
    file = made(tmp_path, more=ORDINARY)
    (tmp_path / "loop").symlink_to("loop")
    file.write_text(file.read_text().replace("path: lab.duckdb", f'path: "{odd}"'))
    with opened(file) as session:
        assert code(session, COUNT) in ("DATA_MISSING", "LEDGER_FOREIGN", "DATA_UNREADABLE")
    with pytest.raises(Error):
        create_ledger(file, tmp_path / "other.ledger")
    assert not (tmp_path / "other.ledger").exists()


def test_a_demo_leaves_a_bound_source_alone(tmp_path: Path, command: Command) -> None:
    """It wrote data and schema, and then could not make the ledger."""
    (tmp_path / "shop.duckdb.ledger-id").write_text("dpquery ledger 00000000000000000000000000000000\n")
    assert command("demo", tmp_path)[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["shop.duckdb.ledger-id"]


def test_a_log_beside_the_database_is_found_in_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = made(tmp_path, more=ORDINARY)
    shutil.copy(file, tmp_path / "lab.duckdb.wal")
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    with opened(file) as session:
        assert code(session, COUNT) == "DATA_WAL"
