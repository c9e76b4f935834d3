from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import duckdb
import people
import pytest

import dpquery
from dpquery.engine.session import Session


@pytest.fixture(scope="module")
def opened(schema: Path) -> Iterator[Session]:
    """A session over the data set that a test module makes as `schema`."""
    with people.opened(schema) as (one,):
        yield one


@pytest.fixture(scope="module")
def free(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dpquery.Connection]:
    """A connection at prices that leave no noise, to the module's TABLES under its SCHEMA and FREE."""
    with connected(request.module, tmp_path_factory.mktemp("free"), request.module.FREE) as connection:
        yield connection


@pytest.fixture(scope="module")
def con(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dpquery.Connection]:
    """The same at its ORDINARY prices."""
    with connected(request.module, tmp_path_factory.mktemp("ordinary"), request.module.ORDINARY) as connection:
        yield connection


def connected(module: ModuleType, folder: Path, budget: str) -> dpquery.Connection:
    with duckdb.connect(str(folder / "data.duckdb")) as engine:
        engine.execute(module.TABLES)
    schema = folder / "schema.yaml"
    schema.write_text(module.SCHEMA.replace("BUDGET", budget))
    dpquery.create_ledger(schema)
    return dpquery.connect(schema)
