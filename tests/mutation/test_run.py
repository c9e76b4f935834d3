"""That the run of mutants can fail: on a small project, whose mutants' fates are known, it finds each."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

PROJECT = """
[tool.mutmut]
source_paths = ["small"]
only_mutate = ["small/room/*"]
timeout_multiplier = 1.0
timeout_constant = 0.5
pytest_add_cli_args = ["-p", "no:cacheprovider"]
pytest_add_cli_args_test_selection = ["tests"]
"""

RULES = """
def noticed():
    return 1

def unnoticed():
    return 1

def endless(number):
    while number:
        number -= 1
    return number

def untested():
    return 1

def early_noticed():
    return 1

def early_unnoticed():
    return 1

def elsewhere():
    return 1

EARLY = early_noticed(), early_unnoticed()
"""

TESTS = """
import socket
from small.room import rules

def test_noticed(tmp_path):
    (tmp_path / "file").write_text(str(rules.noticed()))
    assert (tmp_path / "file").read_text() == "1"

def test_unnoticed():
    rules.unnoticed()

def test_endless():
    with socket.create_server(("127.0.0.1", 0)):
        assert rules.endless(3) == 0

def test_early():
    assert rules.EARLY[0] == 1
"""

OF_ANOTHER_ROOM = """
from small.room import rules

def test_elsewhere():
    assert rules.elsewhere() == 1
"""

FATES = {  # exit codes as mutmut writes them
    "noticed": {1},
    "unnoticed": {0},
    "endless": {-24},  # both changes of `number -= 1` never end
    "untested": {33},
    "early_noticed": {1},
    "early_unnoticed": {0},
    "elsewhere": {33},
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "pyproject.toml": PROJECT,
        "small/__init__.py": "",
        "small/room/__init__.py": "",
        "small/room/rules.py": RULES,
        "tests/room/test_rules.py": TESTS,
        "tests/other/test_others.py": OF_ANOTHER_ROOM,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(__file__).parent / "run.py"
    return subprocess.run([sys.executable, str(program), *arguments], cwd=project, capture_output=True, text=True, check=False)


def fates(project: Path) -> dict[str, set[int | None]]:
    found: dict[str, set[int | None]] = defaultdict(set)
    for mutant, code in json.loads((project / "mutants/small/room/rules.py.meta").read_text())["exit_code_by_key"].items():
        found[mutant.rpartition("__mutmut_")[0].removeprefix("small.room.rules.x_")].add(code)
    return found


@pytest.mark.slow
def test_each_mutant_meets_its_fate(project: Path) -> None:
    done = run(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert fates(project) == FATES


@pytest.mark.slow
def test_a_test_that_fails_without_a_change_stops_the_run(project: Path) -> None:
    (project / "tests/room/test_wrong.py").write_text("def test_wrong():\n    assert False, 'on its own'\n")
    done = run(project)
    assert done.returncode == 1
    assert "test_wrong" in done.stdout
    assert "on its own" in done.stdout
    assert set().union(*fates(project).values()) == {None}


@pytest.mark.slow
def test_what_lived_is_tried_again_only_when_asked(project: Path) -> None:
    run(project, "*x_unnoticed*")
    assert fates(project)["unnoticed"] == {0}
    assert fates(project)["noticed"] == {None}
    path = project / "tests/room/test_rules.py"
    path.write_text(TESTS.replace("    rules.unnoticed()", "    assert rules.unnoticed() == 1"))
    run(project, "*x_unnoticed*")
    assert fates(project)["unnoticed"] == {0}
    run(project, "--again", "*x_unnoticed*")
    assert fates(project)["unnoticed"] == {1}
