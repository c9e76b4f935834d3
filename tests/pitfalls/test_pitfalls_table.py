"""The table of pitfalls is whole, names tests that exist, and is what the document says."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import table

TESTS = Path(__file__).parents[1]


def known() -> set[str]:
    """Every test function, as `file::name`."""
    return {
        f"{file.name}::{node.name}"
        for file in TESTS.rglob("test_*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def attacks() -> dict[int, tuple[str, tuple[str, ...], str]]:
    """The table of attacks, which lies in another folder."""
    spec = importlib.util.spec_from_file_location("attack_table", TESTS / "attacks" / "attack_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[int, tuple[str, tuple[str, ...], str]] = module.ATTACKS
    return found


def test_every_pitfall_is_in_the_table() -> None:
    assert list(table.TABLE) == table.ids()
    assert list(attacks()) == list(range(1, 29))


def test_every_entry_has_tests_that_exist() -> None:
    tests = known()
    for key, entry in table.TABLE.items():
        assert entry.tests, key
        assert [name for name in entry.tests if name not in tests] == [], key
    for number, (_, named, _later) in attacks().items():
        assert named, number
        assert [name for name in named if name not in tests] == [], number


def test_what_is_yet_to_come_is_refused_today() -> None:
    """Each feature that an entry waits for has a test that shows that it is not there; none has one that nothing waits for."""
    tests, later = known(), {entry.later for entry in table.TABLE.values()} | {later for _, _, later in attacks().values()}
    assert later - {""} == set(table.YET_TO_COME)
    assert [name for name in table.YET_TO_COME.values() if name not in tests] == []
    for key, entry in table.TABLE.items():
        assert not entry.later or table.YET_TO_COME[entry.later] in entry.tests, key


def test_no_test_of_a_pitfall_is_forgotten() -> None:
    """What is called after a pitfall here is named in the table."""
    named = {name for entry in table.TABLE.values() for name in entry.tests}
    here = {name for name in known() if re.match(r"test_pitfalls_\w+\.py::test_([abcnw]\d+|[he])_", name)}
    assert len(here) > 80
    assert here <= named


def test_the_document_is_the_table() -> None:
    assert table.DOCUMENT.read_text() == table.document(attacks()), "run `python tests/pitfalls/table.py`"
