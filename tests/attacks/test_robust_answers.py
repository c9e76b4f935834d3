"""Odd answers in every form: names that are there twice, texts that are markup or steer a terminal, values that JSON does not have."""

from __future__ import annotations

import io
import json

import pyarrow.parquet as pq
import pytest
from attack_lab import UNSAFE, made

import dpquery
from dpquery.display import wire

TEXTS = ["<script>alert(1)</script>", "\x1b[31mred", "a\nb", "\u202eabc", "=1+1", 'a,"b"', "", "ü😀"]
DATA = "CREATE TABLE t AS SELECT range AS uid, [{}][1 + range % 8] AS s, (range % 4) / 3 AS x FROM range(64)"
SCHEMA = """
dataset: "<b>odd</b>"
source: {path: lab.duckdb}
privacy_unit: t.uid
{more}
contribution: {max_groups_contributed: 1, max_rows_per_group: 1}
tables:
  t:
    unit: uid
    columns: {uid: {type: integer}, s: {type: string}, x: {type: float, lower: 0, upper: 1}}
"""


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> dpquery.Connection:
    listed = ", ".join("'" + text.replace("'", "''") + "'" for text in TEXTS)
    return dpquery.connect(made(tmp_path_factory.mktemp("odd"), DATA.format(listed), UNSAFE, SCHEMA))


def forms(result: dpquery.Result) -> str:
    """All of an answer's forms, for people in one text."""
    shown = result._repr_html_()
    assert "<script>" not in shown
    assert "<b>" not in shown
    told = repr(result)
    assert not {"\x1b", "\u202e"} & set(told + shown)
    assert json.loads(json.dumps(result.as_dict(), allow_nan=False))["rows"] is not None
    assert list(result.df().columns) == result.columns
    assert pq.read_table(io.BytesIO(wire.parquet_bytes(result._answer))).column_names == result.columns
    assert wire.csv_text(result._answer).count("\n") >= len(result)
    return told


def test_texts_that_are_markup(con: dpquery.Connection) -> None:
    result = con.query("SELECT s, count(*) AS n FROM t GROUP BY s")
    assert sorted(row[0] for row in result.fetchall()) == sorted(TEXTS)
    forms(result)


def test_names_that_are_markup(con: dpquery.Connection) -> None:
    assert con.query('SELECT count(*) AS "<b>n</b>" FROM t').columns == ["<b>n</b>"]
    forms(con.query('SELECT count(*) AS "<b>n</b>" FROM t'))


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("count(*) AS n, sum(x) AS n", ["n", "n_1"]),
        ("count(*) AS n, count(*) AS n_1, sum(x) AS n, avg(x) AS n", ["n", "n_1", "n_2", "n_3"]),
        ("count(*), count(*)", ["count_star()", "count_star()_1"]),
    ],
)
def test_each_column_has_a_name_and_its_own_error_bars(listed: str, names: list[str], con: dpquery.Connection) -> None:
    """Of two columns called `n` the bars of the first were gone; the data frame and the Parquet file could not be read by name."""
    result = con.query(f"SELECT {listed} FROM t")
    assert result.columns == names
    assert list(result.intervals) == names
    for value, bars in zip(result.fetchall()[0], result.intervals.values(), strict=True):
        assert bars[0] is not None
        assert bars[0][0] <= value <= bars[0][1]
    forms(result)


def test_values_that_json_does_not_have(con: dpquery.Connection) -> None:
    result = con.query("SELECT count(*) / 0 AS a, 0.0 / 0 AS b, ln(count(*) - 10000) AS c, 1e308 * count(*) AS d, NULL AS e FROM t")
    forms(result)
    assert result.as_dict()["rows"] == [[None] * 5]
