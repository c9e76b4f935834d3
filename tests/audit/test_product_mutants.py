"""The checks can fail: each mutant of the product is noticed by the layer that is there for it; the product itself passes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import audit_mutants
import pytest
from audit_mutants import MUTANTS, Mutant
from audit_plugin import NOTICED

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
Record = Callable[[str, object], None]


def run(tests: list[str], mutant: str | None) -> subprocess.CompletedProcess[str]:
    """The tests, met by the mutant or by the product as it is."""
    there = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    plugin = [] if mutant is None else ["-p", "audit_plugin"]
    with_mutant = {} if mutant is None else {"DPQUERY_MUTANT": mutant, "PYTHONPATH": str(HERE)}
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-s", *plugin, *tests]
    return subprocess.run(command, cwd=ROOT, env=there | with_mutant, capture_output=True, text=True, check=False)


def noticed(name: str, record: Record) -> None:
    mutant, start = MUTANTS[name], monotonic()
    done = run([mutant.test], name)
    found = [line.removeprefix(NOTICED) for line in done.stdout.splitlines() if line.startswith(NOTICED)]
    record("mutant", json.dumps(line(name, mutant, found, monotonic() - start)))
    assert done.returncode == 1, f"{name} survives {mutant.test}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
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


@pytest.mark.parametrize("name", [name for name, mutant in MUTANTS.items() if mutant.cheap])
def test_a_mutant_is_noticed(name: str, record_property: Record) -> None:
    noticed(name, record_property)


@pytest.mark.audit
@pytest.mark.parametrize("name", [name for name, mutant in MUTANTS.items() if not mutant.cheap])
def test_a_mutant_that_takes_longer_is_noticed(name: str, record_property: Record) -> None:
    noticed(name, record_property)


@pytest.mark.audit
def test_the_product_passes_the_same_checks() -> None:
    done = run(sorted({mutant.test for mutant in MUTANTS.values()}), None)
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
