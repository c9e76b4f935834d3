"""Fingerprints of the lemmas: a body or a claim that changes has to be read again, beside its proof. `python tests/privacy/fingerprints.py` writes
them anew.

A fingerprint is that of the function without its docstring, of what is given and claimed, and of all that the function names in its own module:
private functions, classes and constants, and what these name; up to other lemmas, which have fingerprints of their own. It is one of the syntax tree,
so that neither comments nor layout count.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from dpquery.engine.proofs import PACKAGE, Lemma, lemmas, read

KEPT = Path(__file__).parent / "fingerprints.json"
SILENT = frozenset({"type_comment", "type_params", "kind", "ctx"})  # what differs between versions of Python and says nothing
Defined = Mapping[str, ast.stmt]


def kept() -> dict[str, str]:
    """The fingerprints as they were when the proofs were read."""
    found: dict[str, str] = json.loads(KEPT.read_text())
    return found


def current() -> dict[str, str]:
    """The fingerprints of the lemmas as they are."""
    return {lemma.id: of(lemma, _source(lemma.module)) for lemma in lemmas({})}


@cache
def _source(module: str) -> str:
    return (PACKAGE.parent / Path(*module.split("."))).with_suffix(".py").read_text()


def of(lemma: Lemma, source: str) -> str:
    """The fingerprint of a lemma whose module has this source."""
    defined = dict(_defined(ast.parse(source)))
    name = lemma.function.rpartition(".")[2]
    bodies = [(each, _plain(defined[each])) for each in sorted(_named(name, defined))]
    return hashlib.sha256(repr((name, bodies, lemma.title, lemma.given, lemma.claim)).encode()).hexdigest()[:16]


def _defined(module: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """What a module defines itself, by name."""
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node
            case ast.Assign(targets=targets):
                yield from ((name.id, node) for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def _named(start: str, defined: Defined) -> set[str]:
    """The function, and all that it and its like name; other lemmas are left to themselves."""
    found, waiting = {start}, [start]
    while waiting:
        for node in ast.walk(defined[waiting.pop()]):
            if isinstance(node, ast.Name) and node.id in defined and node.id not in found and not _lemma(defined[node.id]):
                found.add(node.id)
                waiting.append(node.id)
    return found


def _lemma(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and read(ast.get_docstring(node) or "") is not None


def _plain(node: object) -> object:
    """A syntax tree as nested tuples, without docstrings."""
    match node:
        case ast.AST():
            fields = ((name, getattr(node, name)) for name in node._fields if name not in SILENT)
            found = tuple((name, _plain(value)) for name, value in fields if value is not None and value != [])
            return type(node).__name__, found
        case [ast.Expr(value=ast.Constant(value=str())), *rest] | list(rest):
            return tuple(map(_plain, rest))
        case _:
            return repr(node)


if __name__ == "__main__":
    KEPT.write_text(json.dumps(current(), indent=1) + "\n")
