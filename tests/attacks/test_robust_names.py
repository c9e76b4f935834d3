"""Names of tables, columns and files that are odd, alike, or SQL themselves."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

import dpquery
from dpquery.errors import SchemaError

SCHEMA = """
dataset: odd
{source}
privacy_unit: t.uid
budget: {{epsilon: 100}}
contribution: {{max_groups_contributed: 1, max_rows_per_group: 1}}
tables:
  t:
    unit: uid
    {where}
    columns: {{uid: {{type: integer}}, {columns}}}
"""
NAMES = ["a'b; DROP TABLE t; --", "select", "$1 {x} %s \\ `", "İﬁß", "COLUMNS(*)", "noisy", "x" * 128]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.mark.parametrize("kind", ["duckdb", "parquet", "csv"])
def test_odd_names_are_names(kind: str, tmp_path: Path) -> None:
    listed = ", ".join(f"range % 5 AS {quoted(name)}" for name in NAMES)
    rows, file, table = f"SELECT range AS uid, {listed} FROM range(50)", f"it's; x --.{kind}", NAMES[0]
    if kind == "duckdb":
        with duckdb.connect(str(tmp_path / file)) as con:
            con.execute(f"CREATE TABLE {quoted(table)} AS {rows}")
        source, where = f"source: {{path: {json.dumps(file)}}}", f"table: {json.dumps(table)}"
    else:
        form = "FORMAT parquet" if kind == "parquet" else "HEADER"
        duckdb.sql(f"COPY ({rows}) TO '{str(tmp_path / file).replace(chr(39), chr(39) * 2)}' ({form})")
        source, where = "", f"path: {json.dumps(file)}"
    columns = ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {{type: integer, lower: 0, upper: 4}}" for name in NAMES)
    schema = tmp_path / "odd.yaml"
    schema.write_text(SCHEMA.format(source=source, where=where, columns=columns))
    dpquery.create_ledger(schema)
    with dpquery.connect(schema) as con:
        result = con.query(f"SELECT {', '.join(f'sum({quoted(name)}) AS {quoted(name)}' for name in NAMES)} FROM t", epsilon=50)
        assert result.columns == NAMES
        assert all(50 < value < 150 for value in result.fetchall()[0])
        assert repr(result)


@pytest.mark.parametrize("kind", ["duckdb", "parquet"])
def test_a_promise_is_looked_up_in_the_column_that_is_read(kind: str, tmp_path: Path) -> None:
    """The sign for kelvin is a k to Python's casefold, not to the engine: one column was checked, and the other one read."""
    rows = 'SELECT range AS "\u212a", 7 AS k FROM range(50)'
    if kind == "duckdb":
        with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
            con.execute(f"CREATE TABLE t AS {rows}")
    else:
        duckdb.sql(f"COPY ({rows}) TO '{tmp_path / 't.parquet'}' (FORMAT parquet)")
    schema = tmp_path / "t.yaml"
    schema.write_text(
        "dataset: t\nprivacy_unit: t.k\nbudget: {epsilon: 8}\n"
        + ("source: {path: t.duckdb}\n" if kind == "duckdb" else "")
        + "tables:\n  t:\n    unit: k\n    max_rows_per_unit: 1\n"
        + ("" if kind == "duckdb" else "    path: t.parquet\n")
        + "    columns: {k: {type: integer, unique: true}}\n"
    )
    with pytest.raises(SchemaError) as caught:
        dpquery.create_ledger(schema)
    assert caught.value.code == "DATA_UNFIT"
