from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ledger_shop import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.close()


@pytest.fixture
def shops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Shop]]:
    """Any number of data sets, each in a folder of its own."""
    made: list[Shop] = []

    def make() -> Shop:
        made.append(Shop(tmp_path_factory.mktemp("shop")))
        return made[-1]

    yield make
    for one in made:
        one.close()
