"""Which files stand behind a schema, whether they are still the same, and that nothing about them is sniffed."""

from __future__ import annotations

import datetime
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from dpquery.backends import csvlines, source
from dpquery.backends.duckdb import DuckDB, fingerprint, identity
from dpquery.errors import Fault
from dpquery.schema.model import CsvFormat, Schema
from dpquery.schema.read import read

Opened = Callable[[Schema], DuckDB]
HEAD = "dataset: files\nprivacy_unit: users.uid\nbudget: {epsilon: 1, delta: 1e-6}\ntables:\n"
USERS = "  users: {path: users.csv, unit: uid, columns: {uid: {type: integer}, born: {type: date}, seen: {type: timestamp}, name: {type: string}}}\n"
CSV = 'uid,born,seen,name\n1,03/01/2020,2020-01-02 03:04:05,"a, ""b"""\n2,03/01/2020,,\n'


def written(folder: Path, tables: str, **files: str) -> Schema:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", "/")).parent.mkdir(exist_ok=True)
        (folder / f"{name.replace('__', '/')}.csv").write_text(text, encoding="utf-8")
    (folder / "files.yaml").write_text(HEAD + tables)
    return read(folder / "files.yaml")


def parquet(path: Path, sql: str) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    duckdb.execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet)")


def test_csv_columns_have_their_declared_types_and_formats(tmp_path: Path, opened: Opened) -> None:
    tables = USERS.replace("path: users.csv", 'path: users.csv, csv: {date: "%d/%m/%Y"}')
    backend = opened(written(tmp_path, tables, users=CSV))
    assert backend.owner_rows("SELECT uid, born, seen, name FROM data.main.users ORDER BY uid") == [
        (1, datetime.date(2020, 1, 3), datetime.datetime(2020, 1, 2, 3, 4, 5), 'a, "b"'),
        (2, datetime.date(2020, 1, 3), None, None),
    ]


def test_n5_one_persons_line_does_not_change_how_others_are_read(tmp_path: Path, opened: Opened) -> None:
    tables = USERS.replace("path: users.csv", 'path: users.csv, csv: {date: "%d/%m/%Y"}')
    more = CSV + "3,02/25/2020,x,\nx,03/01/2020,,\n"
    sql = "SELECT uid, born, seen FROM data.main.users WHERE uid < 3 ORDER BY uid"
    with_it = opened(written(tmp_path / "more", tables, users=more))
    assert with_it.owner_rows(sql) == opened(written(tmp_path / "less", tables, users=CSV)).owner_rows(sql)
    assert with_it.owner_rows("SELECT uid, born, seen FROM data.main.users WHERE uid = 3 OR uid IS NULL ORDER BY uid") == [
        (3, None, None),
        (None, datetime.date(2020, 1, 3), None),
    ]


def test_another_dialect_is_read_as_declared(tmp_path: Path, opened: Opened) -> None:
    tables = USERS.replace("path: users.csv", "path: users.csv, csv: {delimiter: ';', quote: \"'\", escape: '\\', header: false, 'null': NA}")
    backend = opened(written(tmp_path, tables, users="7;2020-01-02;NA;'it\\'s; it'\n8;NA;NA;\n"))
    assert backend.owner_rows("SELECT * FROM data.main.users ORDER BY uid") == [(7, datetime.date(2020, 1, 2), None, "it's; it"), (8, None, None, "")]


def test_undeclared_columns_and_a_byte_order_mark_do_no_harm(tmp_path: Path, opened: Opened) -> None:
    text = "\ufeffuid,extra,born,seen,name\n1,x,2020-01-02,,n\n"
    backend = opened(written(tmp_path, USERS, users=text))
    assert backend.owner_rows("SELECT uid, name FROM data.main.users") == [(1, "n")]


def test_a_glob_is_a_fixed_sorted_list_whose_files_must_agree(tmp_path: Path, opened: Opened) -> None:
    tables = USERS.replace("path: users.csv", "path: parts/*.csv")
    schema = written(tmp_path, tables, parts__b=CSV, parts__a="uid,born,seen,name\n9,,,\n")
    assert [p.name for p in source.find(schema).files] == ["a.csv", "b.csv"]
    assert opened(schema).owner_rows("SELECT count(*) FROM data.main.users") == [(3,)]
    (tmp_path / "parts" / "c.csv").write_text("born,uid,seen,name\n,9,,\n")
    with pytest.raises(Fault) as broken:
        opened(schema)
    assert broken.value.code == "DATA_UNREADABLE"


def test_file_names_hold_no_patterns(tmp_path: Path, opened: Opened) -> None:
    folder = tmp_path / "odd [x] *"
    for name in ("u[1].parquet", "u1.parquet", "it's.parquet"):
        parquet(tmp_path / "plain.parquet", "SELECT 1 AS uid")
        folder.mkdir(exist_ok=True)
        shutil.move(tmp_path / "plain.parquet", folder / name)
    tables = "  users: {path: ['u[[]1].parquet', \"it's.parquet\"], unit: uid, columns: {uid: {type: integer}}}\n"
    backend = opened(written(folder, tables))
    assert backend.owner_rows("SELECT count(*) FROM data.main.users") == [(2,)]


def test_folders_named_like_columns_stay_folders(tmp_path: Path, opened: Opened) -> None:
    parquet(tmp_path / "year=2020" / "a.parquet", "SELECT 1 AS uid")
    tables = "  users: {path: 'year=*/a.parquet', unit: uid, columns: {uid: {type: integer}}}\n"
    backend = opened(written(tmp_path, tables))
    assert [c.name for c in backend.describe()["users"].columns] == ["uid"]


def test_other_files_of_the_folder_are_out_of_reach(tmp_path: Path, opened: Opened) -> None:
    parquet(tmp_path / "users.parquet", "SELECT 1 AS uid")
    parquet(tmp_path / "other.parquet", "SELECT 1 AS uid")
    backend = opened(written(tmp_path, "  users: {path: users.parquet, unit: uid, columns: {uid: {type: integer}}}\n"))
    assert backend.owner_rows("SELECT count(*) FROM data.main.users") == [(1,)]
    with pytest.raises(Fault):
        backend.owner_rows(f"SELECT * FROM read_parquet('{tmp_path / 'other.parquet'}')")


def test_a_missing_file_is_named_as_written(tmp_path: Path) -> None:
    schema = written(tmp_path, USERS)
    for ask in (identity, fingerprint, DuckDB):
        with pytest.raises(Fault) as missing:
            ask(schema)
        assert missing.value.code == "DATA_MISSING"
        assert "users.csv" in missing.value.message


def test_the_identity_changes_with_a_copy_that_keeps_size_and_time(tmp_path: Path) -> None:
    schema = written(tmp_path, USERS, users=CSV)
    before, path = identity(schema), tmp_path / "users.csv"
    assert before == identity(schema)
    assert before[0][0] == str(path)
    assert before[0][1] == path.stat().st_size
    shutil.copy2(path, tmp_path / "copy")
    os.replace(tmp_path / "copy", path)
    after = identity(schema)
    assert before[0][:3] == after[0][:3]
    assert before != after


def test_the_fingerprint_is_that_of_contents_and_places(tmp_path: Path) -> None:
    schema = written(tmp_path / "one", USERS, users=CSV)
    first = fingerprint(schema)
    assert len(first) == 64
    assert first == fingerprint(written(tmp_path / "two", USERS, users=CSV))
    assert first != fingerprint(written(tmp_path / "two", USERS, users=CSV.replace("1", "3")))
    moved = USERS.replace("path: users.csv", "path: moved.csv")
    assert first != fingerprint(written(tmp_path / "two", moved, moved=CSV))


def test_a11_the_fingerprint_of_a_database_with_a_log_beside_it_is_refused(shop: Schema) -> None:
    fingerprint(shop)
    Path(f"{shop.database}.wal").write_bytes(b"x")
    for ask in (identity, fingerprint):
        with pytest.raises(Fault) as refused:
            ask(shop)
        assert refused.value.code == "DATA_WAL"


def test_a_broken_line_is_found_at_registration(tmp_path: Path, opened: Opened) -> None:
    backend = opened(written(tmp_path, USERS, users=CSV + "1,2\n"))
    with pytest.raises(Fault) as broken:
        backend.describe()
    assert broken.value.code == "DATA_UNREADABLE"
    assert "1,2" not in str(broken.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (b"1,2\n", "users.csv, row 4: 2 fields, 4 in the first row"),
        (b"3,,,secret\r\n", "users.csv, line 4 ends with CR LF, the first one with LF"),
        (b'3,,,"secret\n4,,,x\n', "a quote out of place, or a field without end"),
        (b"3,,,secr\xe9t\n", "users.csv cannot be read as CSV"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_by_its_line_without_a_value(tmp_path: Path, opened: Opened, more: bytes, said: str) -> None:
    schema = written(tmp_path, USERS, users='uid,born,seen,name\n1,03/01/2020,2020-01-02 03:04:05,"a, ""b"""\n2,03/01/2020,,\n')
    with (tmp_path / "users.csv").open("ab") as file:
        file.write(more)
    with pytest.raises(Fault) as broken:
        opened(schema).describe()
    assert broken.value.code == "DATA_UNREADABLE"
    assert said in broken.value.message
    assert "secr" not in str(broken.value)
    assert "`dpquery check`" not in str(broken.value)


def test_what_is_not_utf8_is_found_in_its_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,x\n" * 5000 + b"2,secr\xe9t\n")
    assert csvlines.trouble(CsvFormat(), tmp_path / "t.csv") == "t.csv, line 5002: not UTF-8"
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,x\n")
    assert csvlines.trouble(CsvFormat(), tmp_path / "t.csv") is None


def test_texts_that_are_not_what_is_declared_are_found(tmp_path: Path, opened: Opened) -> None:
    """All of a column, some of it, or none; a text is never misread as a string, and no text at all is nothing misread."""
    columns = "uid: {type: integer}, born: {type: date}, seen: {type: timestamp}, name: {type: string}, empty: {type: float}, gone: {type: integer}"
    text = "uid,born,seen,name,empty\n1,03/01/2020,2020-01-02 03:04:05,x,\n2,04/01/2020,soon,y,\n"
    backend = opened(written(tmp_path, f"  users: {{path: users.csv, unit: uid, columns: {{{columns}}}}}\n", users=text))
    asked = backend.describe()["users"].misread
    assert asked is not None
    assert backend.owner_rows(asked) == [(False, False, True, True, False, True, False, False, None, None, None, None)]
