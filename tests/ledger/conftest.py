from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import postgres
import pytest
from ledger_shop import Shop


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Modules that say BOTH_STORES run their tests of a shop on each store, but for those in FILES_ALONE."""
    both = getattr(metafunc.module, "BOTH_STORES", False)
    alone = metafunc.function.__name__ in getattr(metafunc.module, "FILES_ALONE", ())
    for name in {"shop", "shops"} & set(metafunc.fixturenames):
        if both and not alone:
            metafunc.parametrize(name, ["sqlite", "postgres"], indirect=True)


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
