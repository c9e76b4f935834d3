"""Every case of tests/cases/cases.json, end to end on a real DuckDB file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpquery.engine.session import Session
from dpquery.errors import Refused

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "cases" / "cases.json").read_text())
CLAUSES = [line for line in (Path(__file__).parent / "cases" / "silent_clauses.sql").read_text().splitlines() if line and not line.startswith("--")]


def ids(kind: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES if case["kind"] == kind and "check" not in case]


def normal(value: Any) -> Any:
    return float(value) if hasattr(value, "as_integer_ratio") and not isinstance(value, bool) else value


def ordered(rows: list[Any]) -> list[tuple[Any, ...]]:
    return sorted((tuple(normal(v) for v in row) for row in rows), key=lambda row: tuple((v is None, str(type(v)), v) for v in row))


def test_the_cases_are_all_read() -> None:
    assert {case["kind"] for case in CASES} == {"accept", "reject", "semantics"}


def test_semantics_of_lists_of_quantiles(session: Callable[[str], Session]) -> None:
    """The one case with a check instead of rows."""
    (case,) = (case for case in CASES if "check" in case)
    assert case["check"] == "array of 5 non-decreasing DOUBLE values inside [0, 100]"
    answer = session(case["fixture"]).query(case["sql"])
    assert answer.types == ("DOUBLE[]",)
    ((values,),) = (tuple(row.values()) for row in _rows(answer.table))
    assert len(values) == 5
    assert values == sorted(values)
    assert 0 <= values[0] <= values[-1] <= 100


@pytest.mark.parametrize("case", ids("semantics"))
def test_semantics_with_noise_off(case: dict[str, Any], session: Callable[[str], Session]) -> None:
    answer = session(case["fixture"]).query(case["sql"])
    rows = [tuple(row.values()) for row in _rows(answer.table)]
    got, expected = ordered(rows), ordered(case["expected_rows"])
    assert len(got) == len(expected)
    for have, want in zip(got, expected, strict=True):
        for a, b in zip(have, want, strict=True):
            if isinstance(b, float):
                assert a == pytest.approx(b, rel=case["tolerance"], abs=case["tolerance"])
            else:
                assert a == b


def _rows(table: Any) -> list[dict[int, Any]]:
    columns = [table.column(i).to_pylist() for i in range(table.num_columns)]
    return [dict(enumerate(row)) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("case", ids("accept"))
def test_accepted(case: dict[str, Any], session: Callable[[str], Session]) -> None:
    answer = session(case["fixture"]).query(case["sql"])
    assert answer.table.num_columns >= 1
    assert answer.receipt["price"]["epsilon"] == ("2" if case["sql"].count("epsilon=1") == 2 else "1")


@pytest.mark.parametrize("case", ids("reject"))
def test_refused_with_its_reason(case: dict[str, Any], session: Callable[[str], Session]) -> None:
    one = session(case["fixture"])
    before = one.budget().entries
    with pytest.raises(Refused) as refused:
        one.query(case["sql"])
    assert refused.value.code
    assert refused.value.message
    assert one.budget().entries == before, "a refusal is never charged"


@pytest.mark.parametrize("clause", CLAUSES)
def test_no_clause_is_dropped_silently(clause: str, session: Callable[[str], Session]) -> None:
    """Supported, or refused by its own code: see tests/sql for the codes."""
    supported = clause.startswith("FROM t SELECT") or any(word in clause for word in ("FILTER", "QUALIFY", "GROUP BY ALL", "CUBE"))
    if supported:
        assert session("silent").query(clause).table.num_columns == 2
        return
    with pytest.raises(Refused) as refused:
        session("silent").query(clause)
    assert refused.value.code not in ("UNSUPPORTED", "SYNTAX")


@pytest.mark.parametrize("plain", ["SELECT a, COUNT(*) FROM t GROUP BY a", "SELECT a, SUM(x) FROM t GROUP BY a"])
def test_the_statements_without_their_clause_are_answered(plain: str, session: Callable[[str], Session]) -> None:
    assert session("silent").query(plain).table.num_columns == 2
