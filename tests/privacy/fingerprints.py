"""Fingerprints of the lemmas: a body or a claim that changes has to be read again, beside its proof. `python tests/privacy/fingerprints.py` writes
them anew.

A fingerprint is that of the function without its docstring, of what is given and claimed, and of all that the function names in dpquery: functions,
classes and constants of its own module and of those that it imports from, and what these name; with a protocol comes all of its module, for what
meets it; up to other lemmas, which have fingerprints of their own. It is one of the syntax tree, so that neither comments nor layout count.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path

from dpquery.engine.proofs import PACKAGE, Lemma, lemmas, read

KEPT = Path(__file__).parent / "fingerprints.json"
SILENT = frozenset({"type_comment", "type_params", "kind", "ctx"})  # what differs between versions of Python and says nothing
Place = tuple[str, str]  # a module, and a name in it


@dataclass(frozen=True)
class Module:
    """What a module defines itself, and what it imports: each name with the module it comes from and its name there."""

    defined: Mapping[str, ast.stmt]
    imported: Mapping[str, Place]


def kept() -> dict[str, str]:
    """The fingerprints as they were when the proofs were read."""
    found: dict[str, str] = json.loads(KEPT.read_text())
    return found


def current() -> dict[str, str]:
    """The fingerprints of the lemmas as they are."""
    return {lemma.id: of(lemma, module) for lemma in lemmas({})}


def of(lemma: Lemma, modules: Callable[[str], Module | None]) -> str:
    """The fingerprint of a lemma, where modules are found by name."""
    name = lemma.function.rpartition(".")[2]
    bodies = [(place, _plain(statement)) for place, statement in sorted(reached((lemma.module, name), modules).items(), key=itemgetter(0))]
    return hashlib.sha256(repr((name, bodies, lemma.title, lemma.given, lemma.claim)).encode()).hexdigest()[:16]


def reached(start: Place, modules: Callable[[str], Module | None]) -> dict[Place, ast.stmt]:
    """The function, and all that it and its like name; other lemmas are left to themselves."""
    found: dict[Place, ast.stmt] = {}
    waiting = [start]
    while waiting:
        place = _home(waiting.pop(), modules)
        inside = place and modules(place[0])
        if not place or not inside or place in found or (place != start and _lemma(inside.defined[place[1]])):
            continue
        found[place] = inside.defined[place[1]]
        if _protocol(found[place]):
            waiting += ((place[0], name) for name in inside.defined)
        for node in ast.walk(found[place]):
            match node:
                case ast.Name(id=name):
                    waiting.append((place[0], name))
                case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in inside.imported:
                    waiting.append((".".join(inside.imported[name]), attribute))
    return found


def _home(place: Place, modules: Callable[[str], Module | None]) -> Place | None:
    """Where a name is defined, through the modules that hand it on; None outside dpquery and for what is no module's."""
    while True:
        inside = modules(place[0])
        if inside is None or place[1] not in {**inside.defined, **inside.imported}:
            return None
        if place[1] in inside.defined:
            return place
        place = inside.imported[place[1]]


@cache
def module(name: str) -> Module | None:
    """A module of dpquery; None for any other."""
    path = PACKAGE.parent / Path(*name.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if name.split(".")[0] == PACKAGE.name and file.is_file():
            return parsed(file.read_text())
    return None


def parsed(source: str) -> Module:
    """The module with this source."""
    tree = ast.parse(source)
    return Module(dict(_defined(tree)), dict(_imported(tree)))


def _defined(module: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """What a module defines itself, by name."""
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node
            case ast.Assign(targets=targets):
                yield from ((name.id, node) for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def _imported(tree: ast.Module) -> Iterator[tuple[str, Place]]:
    """What a module imports by a name of its own, wherever in it."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                yield from ((each.asname or each.name, (module, each.name)) for each in names)
            case ast.Import(names=names):
                yield from ((each.asname, (each.name.rpartition(".")[0], each.name.rpartition(".")[2])) for each in names if each.asname)


def _lemma(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and read(ast.get_docstring(node) or "") is not None


def _protocol(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)


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
