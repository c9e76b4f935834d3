"""The Python door."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import dpquery
from dpquery import engine
from dpquery.plan.coerce import Mismatch

STATUS = "SELECT status, count(*) AS n, sum(amount) AS revenue, avg(amount) AS mean FROM orders GROUP BY status"


@pytest.fixture(scope="module")
def schema(shop: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shop(tmp_path_factory.mktemp("client") / "demo")


@pytest.fixture(scope="module")
def con(schema: Path) -> Iterator[dpquery.Connection]:
    with dpquery.connect(schema, analyst="alice") as connection:
        yield connection


@pytest.fixture(scope="module")
def result(con: dpquery.Connection) -> dpquery.Result:
    return con.query(STATUS, epsilon="0.5")


def test_result(result: dpquery.Result) -> None:
    assert result.columns == ["status", "n", "revenue", "mean"]
    assert result.types == ["VARCHAR", "BIGINT", "DECIMAL(38,2)", "DOUBLE"]
    assert len(result) == 4
    assert set(result.intervals) == {"n", "revenue", "mean"}
    assert all(len(bars) == 4 for bars in result.intervals.values())
    assert result.confidence == 0.95
    assert result.receipt["price"]["epsilon"] == "0.5"
    assert result.receipt["analyst"] == "alice"


def test_frames(result: dpquery.Result) -> None:
    frame = result.df()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == result.columns
    assert frame["n"].dtype == "int64"
    table = result.arrow()
    assert isinstance(table, pa.Table)
    assert table.schema.field("revenue").type == pa.decimal128(38, 2)
    assert list(frame["status"]) == ["cancelled", "paid", "returned", "shipped"]


def test_fetching(con: dpquery.Connection) -> None:
    fetched = con.query("SELECT status, count(*) AS n FROM orders GROUP BY status", epsilon=0.01)
    first = fetched.fetchone()
    assert first is not None
    assert first[0] == "cancelled"
    assert len(fetched.fetchall()) == 3
    assert fetched.fetchone() is None
    assert fetched.fetchall() == []
    assert len(fetched.df()) == 4


def test_counts_with_null_keep_their_type() -> None:
    from dpquery.release.answer import Answer

    table = pa.table({"n": pa.array([1, None]), "b": pa.array([True, None])})
    frame = dpquery.Result(Answer(table, ("BIGINT", "BOOLEAN"), (None, None), Fraction(19, 20), (), {})).df()
    assert frame["n"].dtype == "Int64"
    assert frame["n"][0] == 1
    assert frame["b"].dtype == "boolean"


def test_result_as_text_and_html(result: dpquery.Result) -> None:
    shown = repr(result)
    assert max(map(len, shown.splitlines())) <= 80
    assert "shipped" in shown
    assert "±" in shown
    assert "Paid: epsilon 0.5" in shown
    assert result._repr_html_().startswith("<table>")


def test_as_dict_is_the_json_contract(result: dpquery.Result) -> None:
    assert list(result.as_dict()) == ["columns", "rows", "intervals", "confidence", "warnings", "receipt"]


def test_explain(con: dpquery.Connection) -> None:
    before = con.budget().spent
    plan = con.explain(STATUS, epsilon="0.5")
    assert plan.price["epsilon"] == "0.5"
    assert len(plan.releases) == 3
    assert isinstance(plan, engine.Explanation)
    people = repr(plan).split("What would run")[0]
    assert "Expected error of avg(amount)" in people
    assert max(map(len, people.splitlines())) <= 80
    assert con.budget().spent == before


def test_budget(schema: Path) -> None:
    with dpquery.connect(schema) as con:
        before = con.budget()
        con.query("SELECT count(*) AS n FROM users", epsilon=Decimal("0.25"), delta=0, fresh=True)
        after = con.budget()
    assert (after.spent.epsilon or 0) - (before.spent.epsilon or 0) == Decimal("0.25")
    assert after.entries == before.entries + 1
    assert after.fits["0.5"] < before.fits["0.5"]
    assert after.as_dict()["fits"] == after.fits
    assert "account   default" in repr(after)


@pytest.mark.parametrize("amount", [0.1, "0.1", Decimal("0.1"), Fraction(1, 10), "1e-1"])
def test_amounts_are_read_as_people_write_them(con: dpquery.Connection, amount: float | str | Decimal | Fraction) -> None:
    assert con.explain("SELECT count(*) FROM users", epsilon=amount).price["epsilon"] == "0.1"


@pytest.mark.parametrize("amount", [0, -1, float("nan"), float("inf"), "", "0.1 ", "a", True, [0.1], b"0.1"])
def test_bad_amounts(con: dpquery.Connection, amount: object) -> None:
    before = con.budget().spent
    with pytest.raises(dpquery.errors.Refused):
        con.query("SELECT count(*) FROM users", epsilon=amount)  # type: ignore[arg-type]
    assert con.budget().spent == before


def test_tables(con: dpquery.Connection) -> None:
    tables = con.tables()
    assert [table.name for table in tables] == ["users", "orders", "order_items", "countries", "categories", "kept_orders"]
    assert "0 to 500, step 0.01" in repr(tables)


def test_refusal_has_fields(con: dpquery.Connection) -> None:
    with pytest.raises(dpquery.errors.Refused) as caught:
        con.query("SELECT status,\n max(amount) FROM orders GROUP BY status")
    refusal = caught.value
    assert refusal.code == "MIN_MAX"
    assert refusal.position is not None
    assert refusal.position.line == 2
    assert refusal.instead
    assert "^" in str(refusal)
    assert isinstance(refusal, dpquery.Error)


@pytest.mark.parametrize("sql", [None, 5, b"SELECT 1"])
def test_a_statement_is_text(con: dpquery.Connection, sql: object) -> None:
    with pytest.raises(dpquery.Error, match="NOT_A_TEXT: a statement is text"):
        con.query(sql)  # type: ignore[arg-type]


def test_over_budget(shop: Callable[[Path], Path], tmp_path: Path) -> None:
    with dpquery.connect(shop(tmp_path / "demo")) as con:
        con.query("SELECT count(*) FROM users", epsilon=2, delta=0)
        spent = con.budget().spent
        with pytest.raises(dpquery.errors.OverBudget) as caught:
            con.query("SELECT count(*) FROM users", epsilon=0.1, delta=0, fresh=True)
        assert caught.value.code == "OVER_BUDGET"
        assert con.budget().spent == spent


def test_unknown_analyst_shares_the_default_account(schema: Path) -> None:
    with dpquery.connect(schema, analyst="nobody in particular") as con:
        assert con.budget().account == "default"


def test_closed(schema: Path) -> None:
    con = dpquery.connect(schema)
    con.close()
    con.close()
    with pytest.raises(dpquery.errors.Refused, match="closed"):
        con.query("SELECT count(*) FROM users")


def test_create_ledger_once(schema: Path, tmp_path: Path) -> None:
    with pytest.raises(dpquery.Error):
        dpquery.create_ledger(schema)
    with pytest.raises(dpquery.Error):
        dpquery.create_ledger(schema, tmp_path / "second.ledger")
    assert not (tmp_path / "second.ledger").exists()


def test_a_ledger_elsewhere(shop: Callable[[Path], Path], tmp_path: Path) -> None:
    schema = shop(tmp_path / "demo")
    elsewhere = schema.with_suffix(".ledger").rename(tmp_path / "kept.ledger")
    with dpquery.connect(schema) as con, pytest.raises(dpquery.errors.Fault, match="ledger"):
        con.query("SELECT count(*) FROM users", epsilon=0.1)
    with dpquery.connect(schema, ledger=elsewhere) as con:
        assert len(con.query("SELECT count(*) FROM users", epsilon=0.1)) == 1


@pytest.mark.parametrize(
    "kind", [NameError, NotImplementedError, RuntimeError, OSError, ImportError, StopIteration, EOFError, Mismatch, duckdb.Error]
)
@pytest.mark.parametrize(("place", "code"), [("dpquery.sql.question", "UNREADABLE"), ("dpquery.engine.session.check_products", "UNANSWERABLE")])
def test_no_foreign_error_leaves_before_the_charge(
    place: str, code: str, kind: type[Exception], con: dpquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise kind("SECRET", "of a library")

    module, _, name = place.rpartition(".")
    monkeypatch.setattr(sys.modules[module], name, broken)
    before = con.budget().entries
    for ask in (con.explain, con.query):
        with pytest.raises(dpquery.errors.Refused) as refused:
            ask(STATUS)
        assert refused.value.code == code
        assert "SECRET" not in f"{refused.value} {refused.value.as_dict()}"
        assert refused.value.__suppress_context__
    assert con.budget().entries == before
