"""The reference interpreter is what it is said to be: short, and without a line of the product that computes anything."""

from __future__ import annotations

import ast
import importlib
import inspect
import tokenize
from collections.abc import Iterator
from enum import Enum
from fractions import Fraction
from pathlib import Path
from types import UnionType

import pytest

HERE = Path(__file__).parent
FILES = [HERE / name for name in ("interpreter.py", "within.py", "evaluated.py")]
MOST = 300
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code(path: Path) -> set[int]:
    """The numbers of the lines that hold code: no blank lines, comments, docstrings or imports."""
    tree = ast.parse(path.read_text())
    said = {line for node in ast.walk(tree) if _says(node) for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    with path.open("rb") as file:
        tokens = [token for token in tokenize.tokenize(file.readline) if token.type not in {*NO_CODE, tokenize.ENCODING}]
    return {line for token in tokens for line in range(token.start[0], token.end[0] + 1)} - said


def _says(node: ast.AST) -> bool:
    return isinstance(node, (ast.Import, ast.ImportFrom)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )


def taken(path: Path) -> Iterator[tuple[str, object]]:
    """What the file has of dpquery; a module as such, by which anything could be reached, is one of these."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((one.name, importlib.import_module(one.name)) for one in node.names if one.name.partition(".")[0] == "dpquery")
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "dpquery":
            module = importlib.import_module(node.module or "")
            yield from ((f"{node.module}.{one.name}", getattr(module, one.name)) for one in node.names)


def plain(one: object) -> bool:
    """A class, a union of classes, or a constant."""
    if isinstance(one, tuple | frozenset):
        return all(map(plain, one))
    return inspect.isclass(one) or isinstance(one, UnionType | int | str | Fraction | Enum)


def test_it_is_short() -> None:
    assert sum(len(code(path)) for path in FILES) <= MOST


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_takes_no_function_from_dpquery(path: Path) -> None:
    found = dict(taken(path))
    assert found
    assert [name for name, one in found.items() if not plain(one)] == []


def test_it_reads_only_itself_besides() -> None:
    """No other file of the tests stands between it and the product."""
    known, own = {"dpquery", *(path.stem for path in FILES)}, {path.stem for path in HERE.parent.rglob("*.py")}
    for path in FILES:
        tree = ast.walk(ast.parse(path.read_text()))
        modules = [name for node in tree if isinstance(node, ast.Import | ast.ImportFrom) for name in _modules(node)]
        assert not ({name.partition(".")[0] for name in modules} - known) & own


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]


def test_what_is_counted_and_what_is_refused(tmp_path: Path) -> None:
    made = tmp_path / "made.py"
    made.write_text(
        '"""Says."""\n\nimport dpquery.plan.rel\nfrom dpquery.plan.rel import (\n    output,\n)\n\n# why\nx = (  # one\n    1,\n\n)\ny = """a\nb"""\n'
    )
    assert len(code(made)) == 5
    assert [name for name, one in taken(made) if not plain(one)] == ["dpquery.plan.rel", "dpquery.plan.rel.output"]
