from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import postgres
import pytest
from ledger_shop import Shop


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Which tests of a shop run on PostgreSQL: of a module with BOTH_STORES all or those named, but for FILES_ALONE; with DATABASE_ALONE all."""
    said, name = vars(metafunc.module), metafunc.function.__name__
    both: Any = said.get("BOTH_STORES", ())
    for fixture in {"shop", "shops"} & set(metafunc.fixturenames):
        if said.get("DATABASE_ALONE"):
            metafunc.parametrize(fixture, ["postgres"], indirect=True)
        elif (both is True or name in both) and name not in said.get("FILES_ALONE", ()):
            metafunc.parametrize(fixture, ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path, url(request))
    yield made
    made.close()


@pytest.fixture
def shops(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Shop]]:
    """Any number of data sets, each in a folder of its own."""
    made: list[Shop] = []

    def make() -> Shop:
        made.append(Shop(tmp_path_factory.mktemp("shop"), url(request)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def url(request: pytest.FixtureRequest) -> str | None:
    return postgres.database() if getattr(request, "param", "sqlite") == "postgres" else None
