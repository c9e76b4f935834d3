"""The argument as text: every lemma of the package, read from the docstring of the function that it is about."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpquery.errors import Refused

PACKAGE = Path(__file__).parents[1]
README = PACKAGE / "privacy/README.md"  # is in the wheel too; the tests that it names are not
PARTS = ("Given", "Claim", "Proof", "Tight", "Source")
FIRST = re.compile(r"([A-Z]\d+)\. +(\S.*)", re.DOTALL)
ROW = re.compile(r"^\| ([A-Z]\d+) \|.*$", re.MULTILINE)
LINK = re.compile(r"\[(\w+)\]\((?:\.\./)*(tests/[\w/]+\.py)\)")
ROOMS = ("privacy", "accounting", "mechanisms", "release", "ledger")  # in the order of the argument; others after them
MODULES = ("locality", "rows", "later", "raced", "resolve", "contribution", "compared", "allocation", "cost", "together", "sampler", "tails")


@dataclass(frozen=True, slots=True)
class Lemma:
    """One step of the argument: what is claimed of one function, and why it holds.

    `function` is its whole name, `tests` are those that try to break the claim or reach it, as pytest names them in a clone of the project.
    """

    id: str
    title: str
    given: str
    claim: str
    proof: str
    tight: str
    source: str
    function: str
    tests: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """The module's whole name."""
        return self.function.rpartition(".")[0]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        texts = {name: getattr(self, name) for name in ("id", "title", "given", "claim", "proof", "tight", "source", "function")}
        return {**texts, "tests": list(self.tests)}


def proofs() -> tuple[Lemma, ...]:
    """All lemmas in the order of the argument, with the tests that the README of the argument names."""
    return lemmas(tests_in(README.read_text(encoding="utf-8")))


def lemmas(tests: Mapping[str, tuple[str, ...]]) -> tuple[Lemma, ...]:
    """All lemmas in the order of the argument, with the given tests by id."""
    return tuple(lemma for path in sources() for lemma in sorted(lemmas_in(path, tests), key=lambda lemma: (lemma.id[0], int(lemma.id[1:]))))


def proof(wanted: str) -> Lemma:
    """The lemma of that id; Refused where there is none."""
    found = proofs()
    for lemma in found:
        if lemma.id == wanted.strip().upper():
            return lemma
    raise Refused("UNKNOWN_LEMMA", f"there is no lemma {wanted!r}", instead="one of " + ", ".join(lemma.id for lemma in found))


def tests_in(readme: str) -> dict[str, tuple[str, ...]]:
    """The tests that each row of the README's tables links to, by the lemma's id."""
    return {row[1]: tuple(dict.fromkeys(f"{file}::{name}" for name, file in LINK.findall(row[0]))) for row in ROW.finditer(readme)}


def sources() -> list[Path]:
    """The package's modules, those that hold the argument first and in its order."""
    return sorted(PACKAGE.rglob("*.py"), key=_place)


def _place(path: Path) -> tuple[int, int, str]:
    room, name = path.relative_to(PACKAGE).parts[0], path.stem
    return (
        ROOMS.index(room) if room in ROOMS else len(ROOMS),
        MODULES.index(name) if name in MODULES else len(MODULES),
        str(path),
    )


def lemmas_in(path: Path, tests: Mapping[str, tuple[str, ...]]) -> Iterator[Lemma]:
    """The lemmas of one module, in its order: functions whose docstring begins with an id."""
    text = path.read_text(encoding="utf-8")
    if not re.search(r'"""[A-Z]\d+\. ', text):
        return
    module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            found = read(ast.get_docstring(node) or "")
            if found is not None:
                yield Lemma(**found, function=f"{module}.{node.name}", tests=tests.get(found["id"], ()))


def read(docstring: str) -> dict[str, str] | None:
    """Id, title and the five parts of a lemma's docstring, each in one line; None where it is no lemma's."""
    title, *rest = re.split(rf"^({'|'.join(PARTS)}) +", docstring, flags=re.MULTILINE)
    first = FIRST.match(title)
    if first is None:
        return None
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    return {"id": first[1], "title": _line(first[2]), **{part.lower(): _line(parts.get(part, "")) for part in PARTS}}


def _line(text: str) -> str:
    return " ".join(text.split())
