"""Lists of quantiles in every form of an answer, each value with its error bar."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpquery
from dpquery.display import text, wire
from dpquery.errors import Refused

LISTS = (
    "SELECT status, APPROX_QUANTILES(amount, 4) AS q, q[3] AS m, QUANTILE_DISC(amount, [0.9, 0.1]) AS d, "
    "MEDIAN(amount) AS again FROM orders GROUP BY status ORDER BY q[3]"
)


@pytest.fixture(scope="module")
def con(shop: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    with dpquery.connect(shop(tmp_path_factory.mktemp("lists") / "demo")) as opened:
        yield opened


@pytest.fixture(scope="module")
def found(con: Any) -> Any:
    return con.query(LISTS, epsilon="0.2", confidence="0.9")


def test_all_quantiles_of_the_same_values_are_of_one_tree(con: Any, found: Any) -> None:
    """One charge: the parts of all four are the same, and a value of the list is the quantile by itself."""
    assert found.types == ["VARCHAR", "DOUBLE[]", "DOUBLE", "DECIMAL(38,2)[]", "DOUBLE"]
    rows = found.fetchall()
    assert [row[2] for row in rows] == [row[1][2] for row in rows] == [row[4] for row in rows] == sorted(row[2] for row in rows)
    assert all(len(row[1]) == 5 and all(a <= b for a, b in pairwise(row[1])) for row in rows)
    assert all(row[3][0] >= row[3][1] for row in rows), "in the order in which they are asked for"
    releases = found.receipt["releases"]
    assert len({json.dumps(one.get("parts", one["scale"])) for one in releases}) == 1
    tree = f"OPTIONS(noise = {releases[0]['noise']})"  # a median alone is chosen by rank otherwise
    alone = con.explain(f"SELECT WITH DIFFERENTIAL_PRIVACY {tree} status, MEDIAN(amount) AS again FROM orders GROUP BY status", epsilon="0.2")
    assert alone.releases[0]["scale"] == releases[0]["scale"], "as exact as one of them alone"
    assert releases[0]["aggregate"] == "approx_quantiles(amount, 4)"


def test_each_value_has_its_error_bar(found: Any) -> None:
    bars, rows = found.intervals, found.as_dict()["rows"]
    for row, ends in zip(rows, bars["q"], strict=True):
        assert len(ends) == 5
        assert all(low <= value <= high for value, (low, high) in zip(row[1], ends, strict=True))
    assert bars["m"] == [ends[2] for ends in bars["q"]] == bars["again"]
    assert all(len(ends) == 2 for ends in bars["d"])


def test_in_every_form(found: Any) -> None:
    assert found.arrow().schema.field("q").type == pa.list_(pa.float64())
    assert [list(one) for one in found.df()["q"]] == found.arrow().column("q").to_pylist()
    document = json.loads(wire.dump(found.as_dict()))
    assert document["columns"][1] == {"name": "q", "type": "DOUBLE[]"}
    assert document["intervals"]["q"][0][2] == list(found.intervals["q"][0][2])
    read = pq.read_table(pa.BufferReader(wire.parquet_bytes(found._answer)))
    assert read.column("d").to_pylist() == found.arrow().column("d").to_pylist()
    (_, first, *_) = csv.reader(io.StringIO(wire.csv_text(found._answer)))
    assert json.loads(first[1]) == found.arrow().column("q")[0].as_py()
    shown, bar = text.cell([1.5, 2.0, None], [(1.0, 2.0), None, None]), found._repr_html_()
    assert shown == "[1.50 ± 0.50, 2, NULL]"
    assert all(name in repr(found) for name in found.columns)
    assert "<th>q</th>" in bar


def test_reports_and_ends(con: Any) -> None:
    sql = (
        "SELECT APPROX_QUANTILES(amount, 2) AS q, APPROX_QUANTILES(amount, 2, report_format => 'JSON') AS r, DP_INTERVAL_LOW(q[2]) AS low FROM orders"
    )
    found = con.query(sql, epsilon="0.1")
    q, report, low = found.fetchone()
    report, ends = json.loads(report), found.intervals["q"][0]
    assert report["result"] == {"value": q}
    between = report["noise_confidence_interval"]
    assert list(zip(between["lower_bound"], between["upper_bound"], strict=True)) == ends
    assert low == ends[1][0]
    assert len(found.receipt["releases"]) == 1


def test_lists_of_two_releases(con: Any) -> None:
    """As rows of a union, as a value of a subquery, and from a WITH query that is read twice."""
    one, other = ("SELECT QUANTILE_CONT(amount, [0.25, 0.75]) AS q FROM orders", "SELECT QUANTILE_CONT(age, [0.5, 0.5]) FROM users")
    found = con.query(f"{one} UNION ALL {other}", epsilon="0.2")
    assert [len(ends) for ends in found.intervals["q"]] == [2, 2]
    assert found.intervals["q"][1][0] == found.intervals["q"][1][1]
    found = con.query(f"WITH w AS ({one}) SELECT a.q, b.q[1] + 1 AS v, (SELECT q FROM w) AS again FROM w AS a, w AS b", epsilon="0.2")
    q, v, again = found.fetchone()
    assert q == again
    assert v == q[0] + 1
    assert found.intervals["v"][0] == pytest.approx([end + 1 for end in found.intervals["q"][0][0]])
    assert found.intervals["again"] == found.intervals["q"]
    assert con.query(f"SELECT q[9] AS v FROM ({one})", epsilon="0.1").fetchone() == (None,)
    assert con.query(f"SELECT DISTINCT q FROM ({one})", epsilon="0.1").intervals == {}
    assert con.query(f"SELECT COUNT(*) AS n FROM orders WHERE amount > (SELECT q[2] FROM ({one}))", epsilon="0.2").types == ["BIGINT"]


REFUSED = {
    "SELECT {q} FROM orders HAVING {q} IS NULL": "LIST_ABOVE_NOISE",
    "SELECT {q} AS q FROM orders ORDER BY q": "LIST_ABOVE_NOISE",
    "SELECT {q} AS q FROM orders ORDER BY 1": "LIST_ABOVE_NOISE",
    "SELECT status, {q} FROM orders GROUP BY status ORDER BY {q}": "LIST_ABOVE_NOISE",
    "SELECT status, LAG({q}) OVER (ORDER BY status) FROM orders GROUP BY status": "LIST_ABOVE_NOISE",
    "SELECT status, RANK() OVER (ORDER BY {q}) FROM orders GROUP BY status": "LIST_ABOVE_NOISE",
    "SELECT CAST({q} AS VARCHAR) FROM orders": "LIST_ABOVE_NOISE",
    "SELECT CASE WHEN COUNT(*) > 5 THEN {q} END FROM orders": "LIST_ABOVE_NOISE",
    "SELECT COALESCE({q}, {q}) FROM orders": "LIST_ABOVE_NOISE",
    "SELECT {q} = {q} FROM orders": "LIST_ABOVE_NOISE",
    "SELECT q, COUNT(*) FROM (SELECT {q} AS q FROM orders) GROUP BY q": "LIST_ABOVE_NOISE",
    "SELECT MAX(q) FROM (SELECT {q} AS q FROM orders)": "LIST_ABOVE_NOISE",
    "SELECT * FROM (SELECT {q} AS q FROM orders) AS a JOIN (SELECT {q} AS q FROM orders) AS b USING (q)": "LIST_ABOVE_NOISE",
    "SELECT COUNT(*) FROM (SELECT {q} AS q FROM orders) AS a JOIN (SELECT {q} AS q FROM orders) AS b ON a.q = b.q": "LIST_ABOVE_NOISE",
    "SELECT q FROM (SELECT {q} AS q FROM orders) WHERE q IS NOT NULL": "LIST_ABOVE_NOISE",
    "SELECT COUNT(*) FROM orders WHERE amount > (SELECT {q} FROM orders)": "LIST_ABOVE_NOISE",
    "SELECT COUNT(*) FROM orders WHERE amount IN (SELECT {q} FROM orders)": "IN_SUBQUERY",
    "SELECT COUNT(*) AS n FROM orders HAVING n IN (SELECT {q} FROM orders)": "LIST_ABOVE_NOISE",
    "SELECT {q} FROM orders UNION ALL SELECT COUNT(*) FROM orders": "SET_OPERATION",
    "SELECT {q} FROM orders UNION SELECT QUANTILE_DISC(amount, [0.5]) FROM orders": "SET_OPERATION",
    "SELECT DP_INTERVAL_LOW({q}) FROM orders": "DP_INTERVAL",
    "SELECT {q}[1:2] FROM orders": "LIST_INDEX",
    "SELECT {q}[0] FROM orders": "LIST_INDEX",
    "SELECT {q}[3] FROM orders": "LIST_INDEX",
    "SELECT {q}['a'] FROM orders": "LIST_INDEX",
    "SELECT list_extract({q}, 3) FROM orders": "LIST_INDEX",
    "SELECT COUNT(*)[1] FROM orders": "FUNCTION_ABOVE_NOISE",
    "SELECT len({q}) FROM orders": "LIST_ABOVE_NOISE",
    "SELECT QUANTILE_CONT(day, [0.1]) FROM orders": "MISSING_BOUNDS",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_else_is_done_with_a_list_is_refused(con: Any, sql: str) -> None:
    with pytest.raises(Refused) as refused:
        con.explain(sql.format(q="QUANTILE_CONT(amount, [0.1, 0.5])"))
    assert refused.value.code == REFUSED[sql]
    assert refused.value.position is not None
    assert refused.value.instead
