"""What machines read."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import uuid
from decimal import ROUND_DOWN, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpquery.display import html, text, wire
from dpquery.errors import Fault, Position, Refused
from dpquery.release.answer import Answer

RECEIPT = {
    "entry": "e-1",
    "analyst": "alice",
    "price": {"epsilon": "0.25", "delta": "0", "rho": "0.03", "charged_epsilon": "0.25"},
    "spent": {"epsilon": "0.25", "rho": "0.03", "delta": "0"},
    "left": {"epsilon": "1.75", "rho": "0.1", "delta": "0.0000002"},
}


def answer(columns: dict[str, Any], types: tuple[str, ...], intervals: tuple[Any, ...] | None = None, **other: Any) -> Answer:
    table = pa.table(list(columns.values()), names=list(columns)) if columns else pa.table({})
    return Answer(table, types, intervals or (None,) * len(types), other.get("confidence", Fraction(95, 100)), other.get("warnings", ()), RECEIPT)


@pytest.fixture
def sales() -> Answer:
    return answer(
        {"kind": pa.array(["books", None]), "n": pa.array([1204, -3]), "mean": pa.array([37.41, math.nan]), "sum": pa.array([Decimal("12.50")] * 2)},
        ("VARCHAR", "BIGINT", "DOUBLE", "DECIMAL(38,2)"),
        (None, ((1192, 1216), (-15, 9)), ((36.9, 38.1), None), ((Decimal("12.00"), Decimal("13.00")),) * 2),
        warnings=("few",),
    )


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (None, None),
        (True, True),
        (2**53, 2**53),
        (2**53 + 1, "9007199254740993"),
        (-(2**60), str(-(2**60))),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.10"), "0.10"),
        (math.nan, None),
        (math.inf, None),
        (0.1, 0.1),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        (datetime.datetime(2024, 2, 29, 12, 30), "2024-02-29T12:30:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ((1, [Decimal(2)]), [1, ["2"]]),
    ],
)
def test_plain(value: object, form: object) -> None:
    assert wire.plain(value) == form
    assert type(wire.plain(value)) is type(form)


def test_json_contract(sales: Answer) -> None:
    content = json.loads(wire.dump(wire.document(sales)))
    assert list(content) == ["columns", "rows", "intervals", "confidence", "warnings", "receipt"]
    assert content["columns"][3] == {"name": "sum", "type": "DECIMAL(38,2)"}
    assert content["rows"] == [["books", 1204, 37.41, "12.50"], [None, -3, None, "12.50"]]
    assert content["intervals"] == {"n": [[1192, 1216], [-15, 9]], "mean": [[36.9, 38.1], None], "sum": [["12.00", "13.00"]] * 2}
    assert content["confidence"] == 0.95
    assert content["warnings"] == ["few"]
    assert content["receipt"]["entry"] == "e-1"


def test_json_is_ascii_whatever_the_keys() -> None:
    odd = answer({"k": pa.array(["\x1b[31m\u202e\u00e9\U0001f600"])}, ("VARCHAR",))
    written = wire.dump(wire.document(odd))
    assert written.isascii()
    assert "\x1b" not in written
    assert json.loads(written)["rows"] == [["\x1b[31m\u202e\u00e9\U0001f600"]]


def test_error_contract() -> None:
    refused = Refused("UNKNOWN_TABLE", "no such table", position=Position(2, 7, 3), instead="write another")
    assert wire.error(refused) == {
        "error": {"code": "UNKNOWN_TABLE", "message": "no such table", "position": {"line": 2, "column": 7}, "instead": "write another"}
    }
    assert wire.error(Fault("ENGINE_TIMEOUT", "too slow", entry="e-2"))["error"]["entry"] == "e-2"
    assert "entry" not in wire.error(Fault("LEDGER_MISSING", "none"))["error"]


def test_csv(sales: Answer) -> None:
    rows = list(csv.reader(io.StringIO(wire.csv_text(sales))))
    assert rows == [["kind", "n", "mean", "sum"], ["books", "1204", "37.41", "12.50"], ["", "-3", "", "12.50"]]


def test_parquet_carries_the_rest_beside_the_rows(sales: Answer) -> None:
    read = pq.read_table(pa.BufferReader(wire.parquet_bytes(sales)))
    assert read.column("n").to_pylist() == [1204, -3]
    beside = json.loads(read.schema.metadata[b"dpquery"])
    assert beside["intervals"]["n"] == [[1192, 1216], [-15, 9]]
    assert beside["receipt"]["price"]["epsilon"] == "0.25"


# ---- for people --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "bar", "shown"),
    [
        (1204, (1192, 1216), "1204 ± 12"),
        (2**60, (2**60 - 12, 2**60 + 12), "1152921504606846976 ± 12"),
        (-3, (-15, 9), "-3 ± 12"),
        (Decimal("12.50"), (Decimal("12.00"), Decimal("13.00")), "12.50 ± 0.50"),
        (37.4123, (36.9123, 37.9123), "37.41 ± 0.50"),
        (37.4123, (36.9, 38.1), "37.41 [36.90, 38.10]"),
        (60.0, (0.0, 120.0), "60 ± 60"),
        (5.0, (0, 120), "5 [0, 120]"),
        (None, (0, 1), "NULL"),
        (0.25, None, "0.25"),
        (True, None, "true"),
        ("a\nb", None, "a\\nb"),
        (77086, (74090, 80083), "77086 ± 2997"),  # rounded outwards on either side
        (Decimal("1.20"), (Decimal("1.00"), Decimal("1.41")), "1.20 ± 0.21"),
        (5, (0, 5), "5 [0, 5]"),
        (5, (5, 6), "5 ± 1"),
    ],
)
def test_cell(value: object, bar: tuple[Any, Any] | None, shown: str) -> None:
    assert text.cell(value, bar) == shown


def test_an_account_with_gaussian_noise_has_a_rho_left() -> None:
    price = {"epsilon": "0.25", "delta": "1e-9", "rho": "0.001", "charged_epsilon": "infinite"}
    told = text.receipt_line({**RECEIPT, "price": price, "spent": {"epsilon": "infinite", "rho": "0.001", "delta": "0"}})
    assert "Paid: epsilon 0.25, delta 1e-9 (rho 0.001), by alice." in told
    assert "Left: rho 0.1 (at most epsilon 1.75 in one statement), delta 2e-7." in told


def test_table_fits_eighty_columns(sales: Answer) -> None:
    shown = text.as_text(text.answer_lines(sales))
    assert max(map(len, shown.splitlines())) <= 80
    assert "1204 ± 12" in shown
    assert "Warning: few" in shown
    assert "Paid: epsilon 0.25, delta 0, by alice. Left: epsilon 1.75" in " ".join(shown.split())
    assert "95%" in shown
    assert "nan ± ?" in shown


def test_bounds_are_said_once_with_what_they_hold_for() -> None:
    noted = {"releases": [{"aggregate": "count(*)", "notes": ["few rows"]}, {"aggregate": "sum(x)", "notes": ["few rows", "clamped"]}]}
    assert text.bounds(noted) == ["few rows (count(*), sum(x))", "clamped (sum(x))"]


@pytest.mark.parametrize(("confidence", "shown"), [("0.95", "95"), ("0.9", "90"), ("0.99999999", "99.999999")])
def test_percent(confidence: str, shown: str) -> None:
    assert text.percent(Fraction(confidence)) == shown


@pytest.mark.parametrize(
    ("written", "up", "down"),
    [("0", "0", "0"), ("0.00000025", "2.5e-7", "2.5e-7"), ("0.123456", "0.1235", "0.1234"), ("4", "4", "4"), ("infinite", "infinite", "infinite")],
)
def test_amounts_are_rounded_towards_caution(written: str, up: str, down: str) -> None:
    assert (text.amount(written), text.amount(written, ROUND_DOWN)) == (up, down)


def test_many_columns_become_blocks() -> None:
    wide = answer({f"column_{i}": pa.array([123456789]) for i in range(12)}, ("BIGINT",) * 12)
    shown = text.as_text(text.answer_lines(wide))
    assert max(map(len, shown.splitlines())) <= 80
    assert "column_11  123456789" in shown


def test_long_text_is_folded_not_cut() -> None:
    long = answer({"k": pa.array(["word " * 60]), "n": pa.array([1])}, ("VARCHAR", "BIGINT"))
    shown = text.as_text(text.answer_lines(long))
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.count("word") == 60


@pytest.mark.parametrize(
    "key", ["\x1b[2J", "\r\n", "\u202egnp.exe", "\x9b31m", "[bold]x[/bold]", ":smile:", "\ud800".encode("utf-8", "replace").decode()]
)
def test_nothing_from_the_data_steers_the_terminal(key: str) -> None:
    hostile = answer({key or "k": pa.array([key])}, ("VARCHAR",), warnings=(key,))
    shown = text.as_text(text.answer_lines(hostile))
    assert not any(c in shown for c in "\x1b\r\x9b\u202e")
    if key.isprintable():
        assert key in shown


def test_a_long_result_says_how_much_is_not_shown() -> None:
    long = answer({"n": pa.array(range(1000))}, ("BIGINT",))
    assert "... and 960 more rows" in text.as_text(text.answer_lines(long, 40))
    assert "more rows" not in text.as_text(text.answer_lines(long))


def test_html_is_escaped() -> None:
    hostile = answer({"<b>": pa.array(["<script>alert(1)</script>"])}, ("VARCHAR",), warnings=("<i>",))
    shown = html.table(hostile)
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "<i>" not in shown


def test_empty_answer() -> None:
    none = answer({"k": pa.array([], pa.string())}, ("VARCHAR",), warnings=("No group passed the threshold.",))
    assert "No group passed" in text.as_text(text.answer_lines(none))
    assert wire.document(none)["rows"] == []
    assert wire.csv_text(none) == "k\n"
    assert "<table>" in html.table(none)
