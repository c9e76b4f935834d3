"""One source, one ledger, for life: whatever the files are called."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from dpquery.engine import create_ledger, door, open_session
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


def test_other_files_of_the_folder_are_free(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("a", "b"):
        duckdb.sql("SELECT range AS uid FROM range(5)").write_parquet(str(tmp_path / "data" / f"{name}.parquet"))
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
