"""The report says what went wrong as plainly as what went well."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from xml.sax.saxutils import quoteattr

from report import cases, report

CLAIM = {"name": "stated", "epsilon": 1.0, "delta": 0.0, "likelihood": [0.9, -0.1], "histogram": [1.2, 0.01], "components": [-0.1, -0.1]}
AUDIT = {"shape": "count", "adjacency": "add_remove", "pair": ["high", "gone"], "claims": [CLAIM], "releases": 200000, "power": None, "seconds": 2.5}
MUTANT = {"mutant": "noise halved", "changed": ["dpquery.release.noise._noised"], "layer": "audits", "test": "tests/a.py::b", "seconds": 3.0}


def page(folder: Path, *tests: str) -> str:
    (folder / "results.xml").write_text(f"<testsuites><testsuite>{''.join(tests)}</testsuite></testsuites>")
    return report(cases([folder / "results.xml", folder / "missing.xml"]), datetime(2026, 1, 2, tzinfo=UTC))


def case(module: str, name: str, failed: bool = False, **recorded: object) -> str:
    properties = "".join(f"<property name={quoteattr(k)} value={quoteattr(str(v))}/>" for k, v in recorded.items())
    failure = "<failure/>" if failed else ""
    return f'<testcase classname="tests.{module}" name={quoteattr(name)} time="1.5"><properties>{properties}</properties>{failure}</testcase>'


def test_what_failed_stands_out(tmp_path: Path) -> None:
    survivor = json.dumps(MUTANT | {"noticed": False})
    said = page(
        tmp_path, case("audit.test_audits", "x", failed=True, audit=json.dumps(AUDIT)), case("audit.test_product_mutants", "y", mutant=survivor)
    )
    assert "**1 of 2 tests failed.**" in said
    assert "- FAILED: test_audits::x" in said
    assert "| 0.900 | **1.200, delta 0.01** | none | 200,000 | **nothing** | 2.5 |" in said
    assert "Claims refuted: 1." in said
    assert "0 of 1 noticed" in said
    assert "**survives**" in said


def test_what_passed_is_counted(tmp_path: Path) -> None:
    noticed = case("audit.test_product_mutants", "y", mutant=json.dumps(MUTANT | {"noticed": True}))
    other = case("privacy.test_mutants", "test_a_claim[l0]")
    said = page(tmp_path, noticed, other, case("privacy.test_machine", "p[0]", pairs=5000), case("privacy.test_machine", "p[1]", pairs=5000))
    assert "All 4 tests passed." in said
    assert "1 of 1 noticed" in said
    assert "| l0 | neighbours of plans | `test_mutants` | 1.5 |" in said
    assert "| `test_machine` | 10,000 | 3 |" in said
