"""The checks can fail: each mutant of the product is noticed by the layer that is there for it; the product itself passes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import audit_mutants
import pytest
from audit_mutants import MUTANTS, Mutant
from audit_plugin import NOTICED

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
Record = Callable[[str, object], None]
Forks = subprocess.Popen[str]


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    """The process that makes mutants, for as long as the module's tests run."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | {"PYTHONPATH": str(HERE)}
    command = [sys.executable, str(HERE / "audit_forks.py")]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def met(forks: Forks, name: str, test: str) -> tuple[int, str]:
    """The status and the output of the test that meets the mutant."""
    assert forks.stdin is not None
    assert forks.stdout is not None
    forks.stdin.write(json.dumps([name, test]) + "\n")
    forks.stdin.flush()
    status, said = json.loads(forks.stdout.readline())
    return status, said


def noticed(forks: Forks, name: str, record: Record) -> None:
    mutant, start = MUTANTS[name], monotonic()
    status, said = met(forks, name, mutant.test)
    found = [line.removeprefix(NOTICED) for line in said.splitlines() if line.startswith(NOTICED)]
    record("mutant", json.dumps(line(name, mutant, found, monotonic() - start)))
    assert status == 1, f"{name} survives {mutant.test}:\n{said[-4000:]}"
    assert found, "the tests broke, but none of them failed"


def line(name: str, mutant: Mutant, found: list[str], seconds: float) -> dict[str, object]:
    """A line of the report."""
    changed = [f"{function.__module__}.{function.__qualname__}" for function, _, _ in mutant.changes]
    return {
        "mutant": name,
        "changed": list(dict.fromkeys(changed)),
        "layer": mutant.layer,
        "test": mutant.test,
        "noticed": bool(found),
        "seconds": round(seconds, 1),
    }


CHEAP = [name for name, mutant in MUTANTS.items() if mutant.cheap]


@pytest.mark.parametrize("name", [name if i % 3 == 0 else pytest.param(name, marks=pytest.mark.audit) for i, name in enumerate(CHEAP)])
def test_a_mutant_is_noticed(name: str, forks: Forks, record_property: Record) -> None:
    noticed(forks, name, record_property)


@pytest.mark.audit
@pytest.mark.parametrize("name", [name for name, mutant in MUTANTS.items() if not mutant.cheap])
def test_a_mutant_that_takes_longer_is_noticed(name: str, forks: Forks, record_property: Record) -> None:
    noticed(forks, name, record_property)


@pytest.mark.audit
def test_the_product_passes_the_same_checks() -> None:
    there = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-s", *sorted({mutant.test for mutant in MUTANTS.values()})]
    done = subprocess.run(command, cwd=ROOT, env=there, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def test_words_that_are_not_there_make_no_mutant() -> None:
    """Otherwise a mutant would be the product itself, once its source has changed."""
    with pytest.raises(ValueError, match="0 times"):
        audit_mutants.rewritten(audit_mutants.noise._noised, "no such words", "")


def test_every_mutant_can_still_be_made() -> None:
    code = "import audit_mutants as m\nfor one in m.MUTANTS.values(): m._SOURCES.clear(); [m.made(*change) for change in one.changes]"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(HERE)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-1000:]
