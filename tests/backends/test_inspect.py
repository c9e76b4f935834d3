"""What the owner learns of a source: its catalogue, never a row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from shop_files import write

from dpquery.backends import csvlines, inspect
from dpquery.backends.duckdb import DuckDB
from dpquery.errors import Fault
from dpquery.schema.draft import draft
from dpquery.schema.model import Schema
from dpquery.schema.physical import PhysicalKind

Opened = Callable[[Schema], DuckDB]

ODD = """
CREATE TABLE users(
    uid INTEGER PRIMARY KEY, country VARCHAR COLLATE NOCASE, "a, ) COLLATE x" VARCHAR DEFAULT 'y COLLATE z', born DATE NOT NULL,
    email VARCHAR UNIQUE NOT NULL, mood ENUM('HIV', 'it''s (Flu)'), twice INTEGER GENERATED ALWAYS AS (uid * 2), both_ DECIMAL(10, 2),
    nested STRUCT(a ENUM('HIV'), b INTEGER)[], UNIQUE (born, email));
CREATE VIEW orders AS SELECT uid AS oid, uid, 1.0 AS amount FROM users;
CREATE SCHEMA other;
CREATE TABLE other.regions(country VARCHAR COLLATE NOCASE.NOACCENT, region VARCHAR COLLATE "BINARY");
"""


def test_a_table_is_described_as_its_catalogue_says(tmp_path: Path, opened: Opened) -> None:
    found = opened(write(tmp_path, data=ODD)).describe()
    users = found["users"]
    assert users.kind is PhysicalKind.TABLE
    types = {c.name: c.type for c in users.columns}
    assert types == {
        "uid": "INTEGER",
        "country": "VARCHAR",
        "a, ) COLLATE x": "VARCHAR",
        "born": "DATE",
        "email": "VARCHAR",
        "mood": "ENUM",
        "twice": "INTEGER",
        "both_": "DECIMAL(10,2)",
        "nested": types["nested"],
    }
    assert "HIV" not in repr(found)
    assert {c.name for c in users.columns if c.generated} == {"twice"}
    assert {c.name: c.collation for c in users.columns if c.collation} == {"country": "nocase"}
    assert {c.name for c in users.columns if c.not_null} == {"uid", "born", "email"}
    assert users.unique == {"uid", "email"}


def test_n5_a_view_is_called_one(tmp_path: Path, opened: Opened) -> None:
    found = opened(write(tmp_path, data=ODD)).describe()
    assert found["orders"].kind is PhysicalKind.VIEW


def test_a_table_that_is_not_there_is_left_out(tmp_path: Path, opened: Opened) -> None:
    backend = opened(write(tmp_path, data=ODD))
    assert set(backend.describe()) == {"users", "orders"}  # `regions` is in another schema of the database


def test_a_relation_can_be_read_by_the_owner(kept: DuckDB) -> None:
    orders = kept.describe()["orders"]
    assert kept.owner_rows(f"SELECT count(*) FROM {orders.relation} WHERE {orders.columns[1].sql} IS NOT NULL") == [(300,)]


def test_a7_collations_are_found_wherever_they_stand() -> None:
    assert inspect.collations("CREATE TABLE t(a VARCHAR COLLATE nocase, b VARCHAR);") == {"a": "nocase"}
    assert inspect.collations('CREATE TABLE t(a VARCHAR COLLATE "BINARY".NOCASE NOT NULL, b VARCHAR)') == {"a": "binary.nocase"}
    assert inspect.collations('CREATE TABLE s."t, (x"("q""c" VARCHAR NOT NULL COLLATE "nfc", d INTEGER CHECK((d > 1)))') == {'q"c': "nfc"}
    assert inspect.collations("CREATE TABLE t(a VARCHAR COLLATE BINARY, \"collate\" VARCHAR, c VARCHAR DEFAULT('COLLATE nocase'))") == {}


def test_files_are_described_for_a_draft(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as con:
        con.execute(ODD)
    duckdb.execute(f"COPY (SELECT 1::SMALLINT AS uid, 'x' AS name) TO '{tmp_path / 'b.parquet'}' (FORMAT parquet)")
    (tmp_path / "c.csv").write_text("uid,date\n1,2020-01-01\n")
    tables = inspect.files([tmp_path / "a.duckdb", tmp_path / "b.parquet", tmp_path / "c.csv"])
    assert [(t.name, str(t.kind)) for t in tables] == [("users", "table"), ("other.regions", "table"), ("b", "parquet"), ("c", "csv")]
    assert [[(c.name, c.type) for c in t.columns] for t in tables[2:]] == [
        [("uid", "SMALLINT"), ("name", "VARCHAR")],
        [("uid", "VARCHAR"), ("date", "VARCHAR")],
    ]
    assert tables[0].files == (str(tmp_path / "a.duckdb"),)


def test_a_draft_of_what_is_not_there_or_no_data_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(Fault) as missing:
        inspect.files([tmp_path / "no.parquet"])
    assert missing.value.code == "DATA_MISSING"
    with pytest.raises(Fault, match="is a folder, not a data file"):
        inspect.files([tmp_path])
    (tmp_path / "bad.parquet").write_text("no parquet")
    with pytest.raises(Fault) as broken:
        inspect.files([tmp_path / "bad.parquet"])
    assert broken.value.code == "DATA_UNREADABLE"


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("a.csv", ",id,x\n0,1,2\n", "column 1 has no name in the first line"),
        ("a.csv", "id;x;\n1;2;\n", "ends with a delimiter"),
        ("a.csv", "id,x,id\n1,2,3\n", "names 'id' twice"),
        ("a.csv", "id,Id\n1,2\n", "names 'Id' twice"),
        ("a.txt", "id,x\n1,2\n", "the ending .csv"),
        ("a.csv.gz", "xyz", "is compressed"),
        ("a.xlsx", "xyz", "is a spreadsheet"),
        ("a.parquet", "xyz", "is not whole Parquet"),
        ("a.db", "xyz", "is not a DuckDB file"),
    ],
)
def test_a_draft_says_what_is_wrong_with_a_file(name: str, text: str, part: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(Fault) as broken:
        inspect.files([tmp_path / name])
    assert broken.value.code == "DATA_UNREADABLE"
    assert part in f"{broken.value.message} {broken.value.instead}"
    assert "dpquery check" not in str(broken.value)


@pytest.mark.parametrize(("first", "found"), [("a;b, c;d", ";"), ("a\tb", "\t"), ("a|b|c", "|"), ("a", ","), ('"x;y;z",b', ","), ("", ",")])
def test_the_delimiter_of_a_csv_file_is_that_of_its_first_line(tmp_path: Path, first: str, found: str) -> None:
    """Of the names alone: what stands below is not looked at."""
    (tmp_path / "c.csv").write_text(f"{first}\n1;2;3;4;5;6|7|8|9|10|11|12\n")
    assert csvlines.delimiter(tmp_path / "c.csv") == found


def test_a_draft_of_a_file_with_semicolons_has_its_columns(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("uid;date\n1;2020-01-01\n")
    (made,) = inspect.files([tmp_path / "c.csv"])
    assert [column.name for column in made.columns] == ["uid", "date"]
    assert 'csv: {delimiter: ";"}' in draft([made], tmp_path)
