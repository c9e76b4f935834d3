"""The threat model names tests that exist, and no risk without one or a word that there is none."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/threat-model.md").read_text()
UNTESTED = {
    "One person under several units": "no test: the owner's choice",
    "A large budget": "no test: the owner's choice",
}


def known() -> set[str]:
    return {
        f"{path.stem.removeprefix('test_')}::{node.name.removeprefix('test_')}"
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading."""
    part = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [row[2:-2].split(" | ") for row in part.splitlines() if row.startswith("| ")][1:]


def test_every_test_that_is_named_exists() -> None:
    named = set(re.findall(r"`(\w+::\w+)`", TEXT)) - {"file::test"}
    assert len(named) > 60
    assert sorted(named - known()) == []


def test_every_promise_and_every_risk_has_its_tests() -> None:
    promises, risks = table("What is promised"), table("What is left")
    assert (len(promises), {len(row) for row in promises}) == (8, {2})
    assert len(risks) > 18
    assert {len(row) for row in risks} == {3}
    for row in (*promises, *risks):
        assert re.search(r"`\w+::\w+`", row[-1]) or any(row[-1] == said and name in row[0] for name, said in UNTESTED.items()), row[0]


def test_risks_name_settings_that_exist() -> None:
    from dpquery.schema.model import Limits

    named = set(re.findall(r"`limits\.(\w+)`", TEXT))
    assert {"response_quantum", "timeouts_per_account"} <= named <= set(Limits.model_fields)


def test_the_readme_leads_to_it() -> None:
    assert "(docs/threat-model.md)" in (ROOT / "README.md").read_text()
