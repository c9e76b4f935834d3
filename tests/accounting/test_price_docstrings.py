"""Each price and each promise about a law says what is given, claimed and proved, which test reaches it, and its source."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import FunctionType

import pytest

from dpquery.accounting import convert, pure, zcdp
from dpquery.mechanisms import threshold as threshold_function
from dpquery.mechanisms.tails import half_width, selection_delta_up, tail_up

ROOT = Path(__file__).parents[2]
PARTS = ("Given", "Claim", "Proof", "Tight", "Source")


def public(module: object) -> list[FunctionType]:
    return [f for n, f in vars(module).items() if inspect.isfunction(f) and not n.startswith("_") and f.__module__ == module.__name__]  # type: ignore[attr-defined]


FUNCTIONS = [*public(convert), *public(pure), *public(zcdp), tail_up, selection_delta_up, threshold_function, half_width]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_five_parts(function: FunctionType) -> None:
    text = inspect.getdoc(function) or ""
    assert re.match(r"[A-Z]\d+\. ", text)
    found = [line.split()[0] for line in text.splitlines() if re.match(r"(Given|Claim|Proof|Tight|Source) ", line)]
    assert tuple(found) == PARTS
    path = re.search(r"Tight +(tests/\S+\.py)", text)
    assert path is not None
    identifier = text.split(".")[0]
    tests = (ROOT / path[1]).read_text()
    assert re.search(rf"\b{identifier}\b", tests.split('"""')[1]), f"{path[1]} does not say that it tests {identifier}"


def test_identifiers_are_unique() -> None:
    identifiers = [(inspect.getdoc(f) or "").split(".")[0] for f in FUNCTIONS]
    assert len(set(identifiers)) == len(identifiers)
