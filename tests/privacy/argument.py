"""The argument as a page: each lemma with its tests. `python tests/privacy/argument.py` writes dpquery/privacy/README.md anew.

A test is a lemma's where the lemma's part Tight names it (it reaches the claim, or shows what the claim rests on), or where the test says so by
`@pytest.mark.lemma("C6")` (it tries to break the claim). `--tests` lists them all, as pytest takes them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path

from dpquery.engine.proofs import PACKAGE, README, Lemma, lemmas

ROOT = PACKAGE.parent
TESTS = Path(__file__).parents[1]
WORDS = (Path(__file__).parent / "argument.md").read_text()

Found = dict[str, set[str]]  # by a test's name the files that have it; by a lemma's id the tests that are marked with it


@cache
def known() -> tuple[Found, Found]:
    """(files by test, marked tests by lemma), read from the tests as they are written."""
    files, marked = Found(), Found()
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                files.setdefault(node.name, set()).add(str(path.relative_to(ROOT)))
                for lemma in _marks(node):
                    marked.setdefault(lemma, set()).add(f"{path.relative_to(ROOT)}::{node.name}")
    return files, marked


def _marks(test: ast.FunctionDef) -> Iterator[str]:
    for decorator in test.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.lemma":
            yield from (str(ast.literal_eval(argument)) for argument in decorator.args)


def reached(lemma: Lemma) -> list[str]:
    """The tests that Tight names. Each is the name of one test: a KeyError or a ValueError where it is of none or of several."""
    found = []
    for name in re.findall(r"\btest_\w+", lemma.tight):
        (file,) = known()[0][name]
        found.append(f"{file}::{name}")
    return found


def held(lemma: Lemma) -> list[str]:
    """The tests that are marked with the lemma."""
    return sorted(known()[1].get(lemma.id, ()))


def page() -> str:
    """The text of the README."""
    before, after = WORDS.split("{lemmas}\n")
    lines = [before]
    for module, own in groupby(lemmas({}), lambda lemma: lemma.module):
        path = Path(*module.split(".")).with_suffix(".py")
        about = (ast.get_docstring(ast.parse((ROOT / path).read_text())) or "").split("\n\n")[0]
        lines += [f"### {path}\n", f"{_cell(' '.join(about.split()))}\n", "| id | claim | function | source | tests |", "|---|---|---|---|---|"]
        lines += [_row(lemma, path) for lemma in own]
        lines.append("")
    return "\n".join(lines) + "\n" + after


def _row(lemma: Lemma, path: Path) -> str:
    tests = f"tried: {_links(held(lemma))}; reached: {_links(reached(lemma))}"
    function = f"[{lemma.function.rpartition('.')[2]}]({_up(path)})"
    return f"| {lemma.id} | {_cell(f'{lemma.title} **Claim.** {lemma.claim}')} | {function} | {_cell(lemma.source)} | {tests} |"


def _links(tests: list[str]) -> str:
    return ", ".join(f"[{name}]({_up(Path(file))})" for file, _, name in (test.partition("::") for test in tests))


def _up(path: Path) -> str:
    """The path as seen from the README."""
    return f"../../{path}"


def _cell(text: str) -> str:
    return re.sub(r"([|<])", r"\\\1", text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--tests"]:
        print("\n".join(sorted({test for lemma in lemmas({}) for test in (*held(lemma), *reached(lemma))})))
    else:
        README.write_text(page())
