"""Each example of a refusal is refused with its code, at its place; what is offered in its stead is accepted; the page is current."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from plain_answers import answer
from refusals import PAGE, codes, elsewhere, examples, page, told

import dpquery
from dpquery.errors import Refused
from dpquery.sql.dialect import DIALECTS
from dpquery.sql.rewritten import EQUAL

NOWHERE = {"DIALECT"}  # what is wrong does not stand in the statement
NOWHERE |= {"BAD_ERROR", "ERROR_TOO_SMALL", "FANOUT", "OUTPUT_TYPE", "TOO_MANY_KEYS", "TOO_WIDE"}  # or is the whole of it

BESIDE = {
    "DIALECT_DIFFERS",
    "AGGREGATE",
    "DUPLICATE_ALIAS",
    "JOIN_CONDITION",
    "QUANTILE",
    "SUBQUERY_ABOVE_NOISE",
    "TYPE_MISMATCH",
    "UNKNOWN_TABLE",
    "WINDOW_FRAME",
}
"""Whose statements tests/sql/test_rewritten.py holds against plain DuckDB, or against what the dialect says."""


@pytest.fixture(scope="module")
def con(shop: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    with dpquery.connect(shop(tmp_path_factory.mktemp("refusals") / "demo")) as opened:
        yield opened


@pytest.mark.parametrize("code", examples())
def test_an_example_is_refused_and_its_rewriting_accepted(con: Any, code: str) -> None:
    example = examples()[code]
    error = told(con, example)
    assert isinstance(error, Refused)
    assert error.code == code
    assert (error.position is None) == (code in NOWHERE)
    assert error.instead
    own = example.get("dialect", "duckdb")
    whole = error.instead if error.instead.startswith(("SELECT ", "WITH ")) and ".." not in error.instead else None
    for text in (example.get("write"), error.rewritten, whole):
        if text is not None:
            con.explain(text, dialect=own if own in DIALECTS else "duckdb")


def test_a_statement_without_a_remark_has_the_answer_that_was_asked_for(con: Any, tmp_path: Path, shop: Callable[[Path], Path]) -> None:
    """As plain DuckDB tells, but where the one that was asked for has none; of each code that is said to leave it so there is one."""
    met, wrong = set(), []
    with duckdb.connect(shop(tmp_path / "demo").with_name("shop.duckdb"), read_only=True) as plain:
        for code, example in examples().items():
            error = told(con, example)
            if error is None or not error.rewritten or error.differs or code == "DIALECT_DIFFERS":
                continue
            met.add(code)
            dialect = example.get("dialect", "duckdb")
            same = answer(plain, example["sql"], dialect)
            if same is not None and same != answer(plain, error.rewritten, dialect):
                wrong.append((code, example["sql"], error.rewritten))
    assert wrong == []
    assert sorted(EQUAL - met - BESIDE) == []


def test_the_page_is_current(con: Any) -> None:
    assert PAGE.read_text() == page(con), "make docs"


def test_no_code_of_the_source_is_missing() -> None:
    text = PAGE.read_text()
    assert [code for code in codes() if f"## {code}\n" not in text and f"- `{code}`" not in text] == []
    assert sorted(codes().keys() - examples().keys() - elsewhere().keys()) == [], "neither an example nor a line on how it comes about"
    assert sorted(examples().keys() & elsewhere().keys()) == []
    assert sorted((examples().keys() | elsewhere().keys()) - codes().keys()) == [], "of codes that are no more"


def test_most_codes_have_an_example() -> None:
    assert len(examples()) > 160


def test_most_refusals_name_a_whole_statement_that_is_accepted(con: Any) -> None:
    named = [code for code, example in examples().items() if (error := told(con, example)) is not None and error.rewritten]
    assert len(named) > 100


def test_an_expression_above_the_noise_that_duckdb_refuses_has_a_place(con: Any) -> None:
    for sql, column in [
        ("SELECT status, count(*) AS n FROM orders GROUP BY status HAVING n + status > 3", 65),
        ("SELECT status, abs(status) AS a, count(*) AS n FROM orders GROUP BY status", 16),
        ("SELECT status, count(*) AS n FROM orders GROUP BY status ORDER BY abs(status)", 67),
    ]:
        error = told(con, {"sql": sql})
        assert error is not None
        assert (error.code, error.position and error.position.column) == ("POST_INVALID", column), sql
