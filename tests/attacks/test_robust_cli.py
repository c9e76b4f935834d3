"""The command line in bad surroundings: streams that are closed or full, files that must not be written over, text in no encoding."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from attack_lab import ORDINARY, made

from dpquery.cli.main import run

COUNT = "SELECT count(*) AS n FROM people"
Told = subprocess.CompletedProcess[bytes]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("cli"), more=ORDINARY)


def shell(line: str, **more: str) -> Told:
    """What a shell makes of a command line, in which `dpquery` stands for the program."""
    program = f"{sys.executable} -c 'from dpquery.cli import main; main()'"
    done = subprocess.run(["bash", "-c", line.replace("dpquery ", program + " ")], capture_output=True, env={**os.environ, **more}, check=False)
    assert b"Traceback" not in done.stdout + done.stderr
    return done


STREAMS: Mapping[str, tuple[str, int]] = {
    "standard error is full": ("dpquery query '{q}' --schema {s} --epsilon 0.1 --format csv 2>/dev/full", 0),
    "nobody reads standard error": ("(trap '' PIPE; exec 2> >(true); sleep 0.2; dpquery query '{q}' --schema {s} --epsilon 0.1 --format csv)", 0),
    "both are full": ("dpquery query 'SELECT age FROM people' --schema {s} --format json >/dev/full 2>&1", 2),
    "all are closed": ("dpquery query '{q}' --schema {s} --epsilon 0.1 <&- >&- 2>&-", 0),
    "no standard input": ("dpquery query - --schema {s} <&-", 2),
    "input without end": ("dpquery query -f /dev/zero --schema {s}", 2),
    "no text": ("dpquery query $'SELECT \\xff' --schema {s}", 2),
    "no current folder": ("cd $(mktemp -d) && rmdir $PWD && dpquery init {d}", 0),
}


@pytest.mark.parametrize(("line", "status"), STREAMS.values(), ids=STREAMS)
def test_streams_decide_neither_answer_nor_status(line: str, status: int, file: Path) -> None:
    done = shell(line.format(q=COUNT, s=file, d=file.with_suffix(".duckdb")))
    assert done.returncode == status
    assert b"INTERNAL" not in done.stderr


def test_text_is_utf_8_whatever_the_locale(file: Path) -> None:
    """Under LC_ALL=C an argument with an umlaut broke something inside."""
    done = shell(
        f"dpquery query 'SELECT count(*) AS \"zähl\" FROM people' --schema {file} --epsilon 0.1 --format csv",
        LC_ALL="C",
        PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
        PYTHONIOENCODING="utf-8",
    )
    assert done.returncode == 0
    assert done.stdout.startswith("zähl\n".encode())


KEPT = ("lab.yaml", "lab.ledger", "lab.duckdb", "lab.duckdb.ledger-id", "lab.ledger-wal", "link", "twin", "folder/../lab.ledger")


@pytest.mark.parametrize("name", KEPT)
def test_an_answer_is_never_written_over_what_is_asked(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--out shop.ledger` replaced the ledger by the answer: everything that was spent was forgotten."""
    file = made(tmp_path, more=ORDINARY)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("lab.ledger")
    (tmp_path / "twin").hardlink_to(tmp_path / "lab.duckdb")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert run(["query", COUNT, "--schema", str(file), "--epsilon", "0.1", "--format", "csv", "--out", str(tmp_path / name)]) == 2
    assert "NO_FILE" in capsys.readouterr().err
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}


def test_an_answer_replaces_files_only(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As root `--out /dev/null` made a file of the device; a symbolic link became a file beside the one it led to."""
    os.mkfifo(tmp_path / "fifo")
    ask = ["query", COUNT, "--schema", str(file), "--epsilon", "0.1", "--format", "csv", "--out"]
    assert run([*ask, str(tmp_path / "fifo")]) == 2
    assert (tmp_path / "fifo").is_fifo()
    assert run([*ask, "/dev/null"]) == 2
    (tmp_path / "old.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("old.csv")
    assert run([*ask, str(tmp_path / "link.csv")]) == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "old.csv").read_text().startswith("n\n")
    (tmp_path / "loop").symlink_to("loop")
    assert run([*ask, str(tmp_path / "loop")]) in (0, 2)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []
    capsys.readouterr()


def test_an_interrupt_at_the_very_start_is_no_traceback() -> None:
    script = "import dpquery.cli as c; start = c.main; import dpquery.cli.main as m\ndef run(): raise KeyboardInterrupt\nm.run = run; start()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 5
    assert done.stderr.startswith(b"Error: INTERRUPTED")
    assert b"Traceback" not in done.stderr
