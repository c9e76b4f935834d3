"""One data-driven file per construct: what a statement is read as, or the code, place and advice with which it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from sql_shop import HERE, ask, schema, summary

from dpquery.errors import Refused
from dpquery.sql.advice import ADVICE

FILES = sorted((HERE / "cases").glob("*.yaml"))
CASES = HERE.parent / "cases"


def listed() -> list[Any]:
    return [pytest.param(case, id=f"{path.stem}-{i}") for path in FILES for i, case in enumerate(YAML(typ="safe").load(path))]


@pytest.mark.parametrize("case", listed())
def test_statement(case: dict[str, Any]) -> None:
    if "code" not in case:
        found = summary(ask(case["sql"]))
        assert {name: found.get(name, []) for name in case if name not in ("sql", "bounds", "options")} == {
            name: value for name, value in case.items() if name not in ("sql", "bounds", "options")
        }
        return
    with pytest.raises(Refused) as caught:
        ask(case["sql"])
    refused = caught.value
    place = refused.position and f"{refused.position.line}:{refused.position.column}"
    instead = case.get("instead") or ADVICE[case["code"]]
    assert (refused.code, place, refused.message, refused.instead) == (case["code"], case["at"], case["says"], instead)
    assert refused.source == case["sql"]


@pytest.mark.parametrize("case", [c for c in listed() if "bounds" in c.values[0] or "options" in c.values[0]])
def test_bounds_and_options(case: dict[str, Any]) -> None:
    question = ask(case["sql"])
    if "bounds" in case:
        bounded = [one for one in question.blocks[0].draft.asks if one.per_group or one.per_row or one.epsilon]
        assert [f"{one.name}: {one.per_group} {one.per_row} {one.epsilon}" for one in bounded] == case["bounds"]
    if "options" in case:
        given = {name: getattr(question.blocks[0].options, name) for name in question.blocks[0].options.__dataclass_fields__}
        assert str({name: str(value) for name, value in given.items() if value not in (None, False) and name != "levels"}) == case["options"]


def test_every_refusal_has_a_place_and_says_what_to_write() -> None:
    """But for syntax errors, and places that only the parser's reader of expressions knows."""
    for path in FILES:
        for case in YAML(typ="safe").load(path):
            if "code" in case:
                assert case["at"] is not None, case
                assert case["code"] != "UNREADABLE", case


SHARED = json.loads((CASES / "cases.json").read_text())


@pytest.mark.parametrize("case", SHARED, ids=lambda case: case["id"])
def test_shared_case(case: dict[str, Any]) -> None:
    """Read or refused as the project's cases say."""
    if case["kind"] == "reject":
        with pytest.raises(Refused) as caught:
            ask(case["sql"], case["fixture"])
        assert caught.value.position is not None
        assert caught.value.code != "UNREADABLE"
    else:
        ask(case["sql"], case["fixture"])


def clauses() -> list[str]:
    lines = (CASES / "silent_clauses.sql").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("--")]


ANSWERED = {"QUALIFY row_number()", "CUBE", "GROUP BY ALL", "FILTER (WHERE y)", "FROM t SELECT"}
CODES = {
    "TABLESAMPLE": "TABLESAMPLE",
    "DISTINCT ON": "DISTINCT_ON",
    "LATERAL": "LATERAL",
    "ORDER BY y": "AGGREGATE_ORDER_BY",
    "USING SAMPLE": "TABLESAMPLE",
    "PIVOT": "PIVOT",
    "ANTI": "JOIN_ON_UNIT",
    "ASOF": "ASOF_JOIN",
    "POSITIONAL": "POSITIONAL_JOIN",
    "LIMIT 10%": "LIMIT_PERCENT",
    "COLUMNS": "COLUMNS",
    "EXCLUDE": "UNKNOWN_COLUMN",
}


@pytest.mark.parametrize("sql", clauses())
def test_no_clause_is_silent(sql: str) -> None:
    if any(words in sql for words in ANSWERED):
        ask(sql, "silent")
        return
    (code,) = [code for words, code in CODES.items() if words in sql]
    with pytest.raises(Refused) as caught:
        ask(sql, "silent")
    assert caught.value.code == code


def test_without_the_clauses_the_statements_are_answered() -> None:
    for sql in ("SELECT a, COUNT(*) FROM t GROUP BY a", "SELECT a, SUM(x) FROM t GROUP BY a"):
        ask(sql, "silent")


def test_views_are_read_once_and_with_their_own_places() -> None:
    assert schema().views["broken"] == "SELECT nope FROM orders"
    with pytest.raises(Refused) as caught:
        ask("SELECT COUNT(*)\nFROM\n  broken")
    assert str(caught.value.position) == "line 3, column 3"


def test_the_files_are_all_there() -> None:
    assert {Path(path).stem for path in FILES} == {
        "above",
        "aliases",
        "perunit",
        "aggregates",
        "clauses",
        "joins",
        "literals",
        "publicvalues",
        "keys",
        "names",
        "options",
        "partners",
        "stacks",
        "subqueries",
        "unit_aggregates",
    }
