from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from dpquery.backends import duckdb as door
from dpquery.backends.duckdb import DuckDB
from dpquery.schema.model import Schema
from dpquery.schema.read import read

TABLES = """
tables:
  users:
    unit: uid
    max_rows_per_unit: 1
    columns: {uid: {type: integer}, country: {type: string}}
  orders:
    unit: uid
    columns: {oid: {type: integer, unique: true}, uid: {type: integer}, amount: {type: float, lower: 0, upper: 100}}
  regions: {public: true, columns: {country: {type: string}, region: {type: string}}}
"""
HEAD = "dataset: shop\nprivacy_unit: users.uid\nbudget: {epsilon: 1, delta: 1e-6}\n"
DATA = """
CREATE TABLE users AS SELECT i AS uid, ['US', 'DE', 'FR'][1 + i % 3] AS country FROM range(1, 31) t(i);
CREATE TABLE orders AS SELECT i AS oid, 1 + i % 30 AS uid, (i * 7 % 100)::DOUBLE AS amount FROM range(300) t(i);
CREATE TABLE regions(country VARCHAR, region VARCHAR);
INSERT INTO regions VALUES ('US', 'AM'), ('DE', 'EU'), ('FR', 'EU');
"""


def write(folder: Path, limits: str = "{timeout: 20, memory: 512MB, threads: 2}", data: str = DATA) -> Schema:
    """A schema with its DuckDB file beside it."""
    with duckdb.connect(str(folder / "shop.duckdb")) as con:
        con.execute(data)
    (folder / "shop.yaml").write_text(f"{HEAD}source: {{engine: duckdb, path: shop.duckdb}}\nlimits: {limits}\n{TABLES}")
    return read(folder / "shop.yaml")


@pytest.fixture
def shop(tmp_path: Path) -> Schema:
    return write(tmp_path)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDB]:
    """One backend for all tests of a module that leave it as it is."""
    backend = DuckDB(write(tmp_path_factory.mktemp("kept")))
    yield backend
    backend.close()


@pytest.fixture
def opened() -> Iterator[Callable[[Schema], DuckDB]]:
    """Opens backends and closes them at the end."""
    made: list[DuckDB] = []

    def open_one(schema: Schema) -> DuckDB:
        backend = door.open(schema)
        assert isinstance(backend, DuckDB)
        made.append(backend)
        return backend

    yield open_one
    for backend in made:
        backend.close()
