"""House rules of the argument: each public function a lemma with its five parts and an id, no float literal, imports that look down."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from dpquery.privacy import contribution, cost, locality, resolve

MODULES: tuple[ModuleType, ...] = (locality, contribution, resolve, cost)
ALLOWED = ("plan", "accounting", "mechanisms", "aggregates", "numbers", "errors", "values.types", "privacy")
FIRST = re.compile(r"([LCRP]\d+)\. \S")
TESTS = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))


def lemmas() -> Iterator[FunctionType]:
    for module in MODULES:
        for name, value in vars(module).items():
            if isinstance(value, FunctionType) and value.__module__ == module.__name__ and not name.startswith("_"):
                yield value


@pytest.mark.parametrize("lemma", list(lemmas()), ids=lambda f: f.__name__)
def test_a_public_function_is_a_lemma_with_five_parts(lemma: FunctionType) -> None:
    text = inspect.getdoc(lemma) or ""
    assert FIRST.match(text)
    places = [text.find(f"\n{part}") for part in ("Given", "Claim", "Proof", "Tight", "Source")]
    assert places == sorted(places)
    assert min(places) > 0


@pytest.mark.parametrize("lemma", list(lemmas()), ids=lambda f: f.__name__)
def test_the_tests_that_a_lemma_names_exist(lemma: FunctionType) -> None:
    tight = re.search(r"^Tight\s+(.*?)^Source", inspect.getdoc(lemma) or "", re.S | re.M)
    assert tight
    named = re.findall(r"test_\w+", tight[1])
    assert named
    assert all(f"def {name}(" in TESTS for name in named)


def test_ids_are_unique() -> None:
    ids = [(FIRST.match(inspect.getdoc(f) or "") or [""])[0] for f in lemmas()]
    assert len(ids) == len(set(ids)) > 25


@pytest.mark.parametrize("path", sorted(Path(locality.__file__).parent.glob("*.py")), ids=lambda p: p.name)
def test_the_argument_holds_no_float_and_looks_down(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, float)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpquery"):
            assert (node.module or "").removeprefix("dpquery.").startswith(ALLOWED)
