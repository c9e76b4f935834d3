"""`dpquery proofs`: the argument at the command line, from a clone and from an installed wheel."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from dpquery.cli.main import run
from dpquery.engine.proofs import proofs

ROOT = Path(__file__).parents[2]


def told(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capfd.readouterr()
    return run(["proofs", *words]), *capfd.readouterr()


def test_all_lemmas_fit_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, err = told(capfd)
    assert (status, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines() if line[:1].isupper()] == [lemma.id for lemma in proofs()]
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("wanted", ["C6", "c6", " B1 "])
def test_one_lemma_with_its_proof(capfd: pytest.CaptureFixture[str], wanted: str) -> None:
    status, out, _ = told(capfd, wanted)
    (lemma,) = (one for one in proofs() if one.id == wanted.strip().upper())
    assert status == 0
    text = "".join(out.split())
    for part in (lemma.title, lemma.given, lemma.claim, lemma.proof, lemma.tight, lemma.source, lemma.function, *lemma.tests):
        assert "".join(part.split()) in text


def test_for_machines(capfd: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(told(capfd, "--format", "json")[1])
    assert listed == [lemma.as_dict() for lemma in proofs()]
    assert list(listed[0]) == ["id", "title", "given", "claim", "proof", "tight", "source", "function", "tests"]
    assert json.loads(told(capfd, "P6", "--format", "json")[1]) in listed


def test_unknown_ids_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, err = told(capfd, "Q1")
    assert (status, out) == (2, "")
    assert "UNKNOWN_LEMMA" in err
    assert "L1, L2" in err


def test_a_wheel_holds_the_argument(tmp_path: Path) -> None:
    """Without the tests' folder, which no wheel has, their names are still there."""
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as packed:
        packed.extractall(tmp_path / "installed")
    asked = [sys.executable, "-P", "-c", "from dpquery.cli.main import run; run(['proofs', '--format', 'json'])"]
    environment = {"PYTHONPATH": str(tmp_path / "installed")}
    done = subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [lemma.as_dict() for lemma in proofs()]
    where = subprocess.run([*asked[:2], "-c", "import dpquery; print(dpquery.__file__)"], env=environment, capture_output=True, text=True, check=True)
    assert where.stdout.startswith(str(tmp_path))
