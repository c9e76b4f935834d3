"""The textbook stays apart: only what compares imports it, and each of its functions says what it is and whether the ledger may use it."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

from dpquery.accounting import textbook

ROOT = Path(__file__).parents[2]
TEXTBOOK = "dpquery.accounting.textbook"
COMPARISON = "dpquery.accounting.comparison"
COMPARING = {"dpquery/accounting/comparison.py", "dpquery/cli/account.py", "dpquery/display/together.py"}
PARTS = ("Formula", "Units", "Errors", "Source", "Ledger")


def imported(source: str, package: str) -> set[str]:
    """The dotted names that a module imports, wherever in it: those of `from x import y` as x.y."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import():
                names |= {alias.name for alias in node.names}
            case ast.ImportFrom():
                above = package.split(".")[: -(node.level - 1) or None] if node.level else []
                origin = ".".join([*above, *([node.module] if node.module else [])])
                names |= {f"{origin}.{alias.name}" for alias in node.names}
    return names


def importers() -> Iterator[str]:
    for file in sorted((ROOT / "dpquery").rglob("*.py")):
        path = file.relative_to(ROOT)
        if TEXTBOOK.replace(".", "/") in path.as_posix():
            continue
        if compares(imported(file.read_text(), ".".join(path.parent.parts))):
            yield path.as_posix()


def compares(names: set[str]) -> bool:
    return any(f"{name}.".startswith((f"{TEXTBOOK}.", f"{COMPARISON}.")) for name in names)


def test_nothing_that_answers_or_charges_imports_it() -> None:
    assert set(importers()) == COMPARING


@pytest.mark.parametrize(
    "line",
    [
        f"import {TEXTBOOK}",
        f"import {TEXTBOOK}.loss as x",
        "from dpquery.accounting import textbook",
        f"from {TEXTBOOK} import loss",
        "def f():\n    from dpquery.accounting.textbook.loss import Pair",
        "from ..accounting import textbook",
        "from ..accounting.textbook import loss",
        f"from {COMPARISON} import Batch",
    ],
)
def test_each_way_to_import_it_is_seen(line: str) -> None:
    assert compares(imported(line, "dpquery.ledger"))


def functions() -> list[FunctionType]:
    modules = [importlib.import_module(f"{TEXTBOOK}.{module.name}") for module in pkgutil.iter_modules(textbook.__path__)]
    return [f for m in modules for n, f in vars(m).items() if inspect.isfunction(f) and not n.startswith("_") and f.__module__ == m.__name__]


def parts(function: FunctionType) -> dict[str, str]:
    return dict(re.findall(r"^(\w+) {2,}(.*)$", inspect.getdoc(function) or "", re.MULTILINE))


@pytest.mark.parametrize("function", functions(), ids=lambda f: f.__name__)
def test_each_function_says_what_it_is(function: FunctionType) -> None:
    found = parts(function)
    assert tuple(found) == PARTS
    assert re.match(r"(yes|no)\b", found["Ledger"])


def listed() -> list[str]:
    """The page's table: a line a function, of the parts of its docstring."""
    found = [(f.__name__, parts(f)) for f in functions()]
    return [f"| `{name}` | {' | '.join(part[key].rstrip('.') for key in ('Formula', 'Source', 'Ledger'))} |" for name, part in found]


def test_the_page_lists_each_function() -> None:
    """If it fails, paste the lines on its left."""
    page = (ROOT / "docs/accounting.md").read_text().splitlines()
    assert listed() == [line for line in page if re.match(r"\| `\w+` \|", line)]
