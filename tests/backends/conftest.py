from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from shop_files import write

from dpquery.backends import duckdb as door
from dpquery.backends.duckdb import DuckDB
from dpquery.schema.model import Schema


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
