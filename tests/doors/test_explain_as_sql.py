"""EXPLAIN as a statement: the same as the door's explain, as a table in every format, for nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import dpquery
from dpquery.cli.main import run
from dpquery.errors import Refused

ASKED = "SELECT status, count(*) AS n, avg(amount) AS m FROM orders WHERE amount > $least GROUP BY status"


@pytest.fixture(scope="module")
def schema(shop: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shop(tmp_path_factory.mktemp("explain") / "demo")


def test_it_is_the_explanation_and_costs_nothing(schema: Path) -> None:
    with dpquery.connect(schema) as con:
        before = con.budget().as_dict()
        found = con.query(f"-- how much?\n /* and why */ explain {ASKED}", {"least": 10}, epsilon="0.5")
        plan = con.explain(ASKED, {"least": 10}, epsilon="0.5").as_dict()
        assert con.budget().as_dict() == before
        assert con.explain(f"EXPLAIN {ASKED}", {"least": 10}, epsilon="0.5").price == plan["price"]
    assert (found.columns, found.types) == (["part", "item", "value"], ["VARCHAR"] * 3)
    listed = found.fetchall()
    rows = {(part, item): value for part, item, value in listed}
    assert rows["price", "epsilon"] == plan["price"]["epsilon"] == "0.5"
    assert rows["count(*)", "scale"] == json.dumps(plan["releases"][0]["scale"])
    assert json.loads(rows["avg(amount)", "expected_error"]) == plan["releases"][1]["expected_error"]
    assert rows["keys", "rule"] == "listed"
    assert rows["statement", "columns"] == "status, n, m"
    assert [value for part, item, value in listed if (part, item) == ("statement", "sql")] == plan["sql"].splitlines()
    assert not any("\n" in (value or "") for _, _, value in listed)
    assert {value for (part, _), value in rows.items() if part == "warning"} == set(plan["warnings"])
    assert found.receipt == {"analyst": "default", "charged": "nothing"}
    assert "Nothing was charged" in repr(found)
    assert "error bars" not in found._repr_html_()


@pytest.mark.parametrize("form", ["table", "csv", "json", "parquet"])
def test_every_format(schema: Path, form: str, tmp_path: Path) -> None:
    out = tmp_path / f"plan.{form}"
    words = ["query", "EXPLAIN SELECT count(*) AS n FROM orders", "--schema", schema, "--format", form, "--out", out]
    assert run([str(word) for word in words]) == 0
    if form == "parquet":
        assert pq.read_table(out).column_names == ["part", "item", "value"]
    else:
        assert "laplace" in out.read_text()


@pytest.mark.parametrize(
    ("sql", "code", "column"),
    [
        ("EXPLAIN ANALYZE SELECT count(*) FROM orders", "EXPLAIN_ANALYZE", 9),
        ("EXPLAIN (ANALYZE, VERBOSE) SELECT count(*) FROM orders", "EXPLAIN_ANALYZE", 9),
        ("EXPLAIN (FORMAT json) SELECT count(*) FROM orders", "EXPLAIN_OPTION", 9),
        ("EXPLAIN VERBOSE SELECT count(*) FROM orders", "EXPLAIN_OPTION", 9),
        ("EXPLAIN SELECT amount FROM orders", "RAW_ROWS", 16),
        ("EXPLAIN EXPLAIN SELECT count(*) FROM orders", "NOT_A_SELECT", 9),
        ("EXPLAIN DELETE FROM orders", "NOT_A_SELECT", 9),
        ("EXPLAIN", "SYNTAX", 1),
    ],
)
def test_what_is_refused_points_at_its_place(schema: Path, sql: str, code: str, column: int) -> None:
    with dpquery.connect(schema) as con:
        for ask in (con.query, con.explain):
            with pytest.raises(Refused) as caught:
                ask(sql)
            refused: Any = caught.value
            assert (refused.code, refused.position.column, refused.source) == (code, column, sql)


@pytest.mark.parametrize(
    ("sql", "offered", "differs"),
    [
        ("EXPLAIN ANALYZE SELECT count(*) FROM orders", "EXPLAIN SELECT count(*) FROM orders", "without run times, which private rows decide on"),
        ("explain (analyze, verbose) select count(*) from orders", "explain select count(*) from orders", None),
        ("EXPLAIN (FORMAT json) SELECT count(*) FROM orders", "EXPLAIN SELECT count(*) FROM orders", "as a table of text"),
        ("EXPLAIN ANALYZE SELECT amount FROM orders", "EXPLAIN SELECT AVG(amount) FROM orders", None),
        ("EXPLAIN ANALYZE SELECT nope(amount) FROM orders", None, None),
    ],
)
def test_options_are_left_out_of_what_is_offered(schema: Path, sql: str, offered: str | None, differs: str | None) -> None:
    with dpquery.connect(schema) as con:
        for ask in (con.query, con.explain):
            with pytest.raises(Refused) as caught:
                ask(sql)
            assert caught.value.rewritten == offered
            assert differs in (None, caught.value.differs)
        if offered is not None:
            con.query(offered)


@pytest.mark.parametrize("before", ["EXPLAIN ", "explain\n  ", "-- why?\nEXPLAIN ", "EXPLAIN /* why? */ "])
def test_what_is_offered_instead_is_explained_too(schema: Path, before: str) -> None:
    with dpquery.connect(schema) as con:
        spent = con.budget().as_dict()
        for ask in (con.query, con.explain):
            with pytest.raises(Refused) as caught:
                ask(f"{before}SELECT amount FROM orders")
            offered = caught.value.rewritten
            assert offered is not None
            assert offered.split()[0].upper() == "EXPLAIN"
            con.query(offered)
        (line,) = con.what_if(f"{before}SELECT amount FROM orders").lines
        assert line.refused is not None
        assert (line.refused.rewritten or "").split()[0].upper() == "EXPLAIN"
        assert line.refused.source == line.statement
        assert con.budget().as_dict() == spent
