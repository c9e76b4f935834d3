"""Every fenced block of the documents runs as it stands: sh and python in order, in one folder; each sql block is explained."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Fence(NamedTuple):
    words: tuple[str, ...]
    text: str
    line: int

    @property
    def language(self) -> str:
        return self.words[0] if self.words else ""


def fences(document: Path) -> Iterator[Fence]:
    text = document.read_text()
    for found in FENCE.finditer(text):
        yield Fence(tuple(found[1].split()), found[2], text.count("\n", 0, found.start()) + 1)


def runnable(document: Path) -> list[Fence]:
    return [fence for fence in fences(document) if fence.language in ("sh", "python")]


def clone(folder: Path) -> None:
    """What a fresh clone holds after `make install`: the sources, and an environment that is this one."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "examples", "schemas"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").mkdir()
    (folder / ".venv/bin").symlink_to(Path(sys.executable).parent)
    for mark in (".runs", ".ready"):
        (folder / ".venv" / mark).touch()


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if runnable(d)], ids=lambda d: d.name)
def test_blocks_run(document: Path, tmp_path: Path, shop: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    if document.name == "README.md":
        clone(tmp_path)
    else:
        shop(tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    names: dict[str, Any] = {}
    for fence in runnable(document):
        if fence.language == "python":
            exec(compile("\n" * fence.line + fence.text, document.name, "exec"), names)
        else:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", fence.text], env=environment, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, f"{document.name}:{fence.line}\n{done.stdout}\n{done.stderr}"


def test_statements(tmp_path: Path, shop: Callable[[Path], Path]) -> None:
    """A block marked `sql` is accepted; one marked `sql refused CODE` is refused with that code."""
    import dpquery

    with dpquery.connect(shop(tmp_path / "demo")) as con:
        for document in DOCUMENTS:
            for fence in fences(document):
                if fence.language != "sql":
                    continue
                for statement in fence.text.split(";\n"):
                    if statement.strip():
                        outcome = explained(con, statement)
                        wanted = fence.words[2] if "refused" in fence.words else "accepted"
                        assert outcome == wanted, f"{document.name}:{fence.line}: {statement}: {outcome}"


def test_the_table_of_refusals(tmp_path: Path, shop: Callable[[Path], Path]) -> None:
    import dpquery

    told = re.findall(r"^\| `([^`]+)` \| `([A-Z_]+)` \|", (ROOT / "docs/sql.md").read_text(), re.MULTILINE)
    assert len(told) > 20
    with dpquery.connect(shop(tmp_path / "demo")) as con:
        assert [(statement, explained(con, statement)) for statement, _ in told] == told


def explained(con: Any, statement: str) -> str:
    import dpquery

    try:
        con.explain(statement)
    except dpquery.Error as error:
        return error.code
    return "accepted"


def test_no_block_escapes() -> None:
    known = {"sh", "python", "sql", "yaml", "text"}
    unknown = [(d.name, f.line, f.language) for d in DOCUMENTS for f in fences(d) if f.language not in known]
    assert not unknown


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
        assert "://" in target or (document.parent / target).exists(), target


@pytest.mark.skipif(shutil.which("make") is None, reason="make is missing")
def test_make_lists_its_targets() -> None:
    listed = subprocess.run(["make", "-C", ROOT, "--no-print-directory"], capture_output=True, text=True, check=True).stdout
    targets = set(re.findall(r"^make (\S+)", listed, re.MULTILINE))
    assert {"demo", "test", "test-all", "lint", "types", "imports", "bench"} <= targets
    assert targets == set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_list_of_functions_is_the_list_of_functions() -> None:
    """`make docs` writes it anew."""
    from dpquery.plan.functions import reference

    assert (ROOT / "docs/functions.md").read_text() == reference()
