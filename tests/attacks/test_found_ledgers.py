"""One source, one ledger, for life: whatever the files are called."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from dpquery.engine import check, create_ledger, door, open_session
from dpquery.errors import Error

SCHEMA = """
dataset: visits
privacy_unit: visits.uid
budget: {epsilon: 1, delta: 0}
contribution: {max_groups_contributed: 1, max_rows_per_group: 1}
tables:
  visits:
    path: PATH
    unit: uid
    columns: {uid: {type: integer}}
"""
SPELLINGS = ("data/*.parquet", "[data/a.parquet, data/b.parquet]", "data/[ab].parquet", "'**/*.parquet'", "data/../data/?.parquet", "data/a.parquet")


def written(folder: Path, name: str, path: str) -> Path:
    file = folder / name
    file.write_text(SCHEMA.replace("PATH", path))
    return file


@pytest.mark.parametrize("first", SPELLINGS)
def test_other_spellings_of_the_same_files_start_no_new_budget(first: str, tmp_path: Path) -> None:
    """A glob bound one hidden file, a list one file each: naming the files the other way gave the same people a second budget."""
    (tmp_path / "data").mkdir()
    for name in ("a", "b"):
        duckdb.sql("SELECT range AS uid FROM range(5)").write_parquet(str(tmp_path / "data" / f"{name}.parquet"))
    schema = written(tmp_path, "one.yaml", first)
    create_ledger(schema)
    session = open_session(schema)
    assert session.query("SELECT count(*) FROM visits", epsilon=1).table.num_rows == 1
    session.close()
    for i, path in enumerate(SPELLINGS):
        with pytest.raises(Error) as caught:
            create_ledger(written(tmp_path, f"other{i}.yaml", path))
        assert caught.value.code == "SOURCE_BOUND", path


def moved(data: Path) -> None:
    data.rename(data.with_name("b.parquet"))


def linked(data: Path) -> None:
    os.link(data, data.with_name("b.parquet"))


def doubled(data: Path) -> None:
    shutil.copy(data, data.with_name("b.parquet"))


def unmarked(data: Path) -> None:
    moved(data)
    data.with_name("a.parquet.ledger-id").unlink()


def elsewhere(data: Path) -> None:
    """Out of sight of its ledger: the folder of neither schema nor data has it."""
    (data.parents[1] / "one.ledger").rename(data.parents[2] / f"{data.parents[1].name}.ledger")
    unmarked(data)


def one_row_more(data: Path) -> None:
    duckdb.sql("SELECT range AS uid FROM range(6)").write_parquet(str(data.with_name("b.parquet")))


@pytest.mark.parametrize(
    ("way", "noticed"), [(moved, True), (linked, True), (doubled, True), (unmarked, True), (elsewhere, False), (one_row_more, False)]
)
def test_what_is_noticed_of_data_under_another_name(way: Callable[[Path], None], noticed: bool, tmp_path: Path) -> None:
    """With a schema of another name: while the ledger lies beside schema or data, and a file is as it was. What else is the owner's care."""
    (tmp_path / "data").mkdir()
    data = tmp_path / "data" / "a.parquet"
    duckdb.sql("SELECT range AS uid FROM range(5)").write_parquet(str(data))
    create_ledger(written(tmp_path, "one.yaml", "data/a.parquet"))
    way(data)
    other = written(tmp_path, "two.yaml", "data/b.parquet")
    other.write_text(other.read_text().replace("dataset: visits", "dataset: others"))
    try:
        create_ledger(other)
        found = ""
    except Error as error:
        found = error.code
    assert found == ("SOURCE_BOUND" if noticed else "")


def test_a_hard_link_is_known_without_its_ledger(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    data = tmp_path / "data" / "a.parquet"
    duckdb.sql("SELECT range AS uid FROM range(5)").write_parquet(str(data))
    create_ledger(written(tmp_path, "one.yaml", "data/a.parquet"), tmp_path / "kept")
    linked(data)
    with pytest.raises(Error) as caught:
        create_ledger(written(tmp_path, "two.yaml", "data/b.parquet"))
    assert caught.value.code == "SOURCE_BOUND"


def test_a_later_version_is_known_too(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    data = tmp_path / "data" / "a.parquet"
    duckdb.sql("SELECT range AS uid FROM range(5)").write_parquet(str(data))
    schema = written(tmp_path, "one.yaml", "data/a.parquet")
    create_ledger(schema)
    duckdb.sql("SELECT range AS uid FROM range(7)").write_parquet(str(data))
    check(schema, register=True)
    unmarked(data)
    with pytest.raises(Error) as caught:
        create_ledger(written(tmp_path, "two.yaml", "data/b.parquet"))
    assert caught.value.code == "SOURCE_BOUND"
    assert "one.ledger knows it" in caught.value.message


def test_a_ledger_that_cannot_be_read_knows_nothing(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    duckdb.sql("SELECT range AS uid FROM range(5)").write_parquet(str(tmp_path / "data" / "a.parquet"))
    (tmp_path / "junk.ledger").write_bytes(b"junk")
    create_ledger(written(tmp_path, "one.yaml", "data/a.parquet"))


def test_other_files_of_the_folder_are_free(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name, rows in (("a", 5), ("b", 6)):
        duckdb.sql(f"SELECT range AS uid FROM range({rows})").write_parquet(str(tmp_path / "data" / f"{name}.parquet"))
    create_ledger(written(tmp_path, "one.yaml", "data/[a].parquet"))
    create_ledger(written(tmp_path, "two.yaml", "data/b.parquet"))


def test_data_that_has_a_ledger_is_not_read_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    duckdb.sql("SELECT range AS uid FROM range(5)").write_parquet(str(tmp_path / "data" / "a.parquet"))
    schema = written(tmp_path, "one.yaml", "data/a.parquet")
    create_ledger(schema)
    monkeypatch.setattr(door, "_checked", None)
    for path, said in ((None, "LEDGER_EXISTS"), (tmp_path / "two.ledger", "SOURCE_BOUND")):
        with pytest.raises(Error) as caught:
            create_ledger(schema, path)
        assert caught.value.code == said
