from __future__ import annotations

from collections.abc import Iterator

import attack_lab
import pytest

from dpquery.engine.session import Session


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The data set with noise off."""
    with attack_lab.opened(attack_lab.made(tmp_path_factory.mktemp("lab"))) as session:
        yield session


@pytest.fixture(scope="session")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The data set under an ordinary budget."""
    with attack_lab.opened(attack_lab.made(tmp_path_factory.mktemp("ordinary"), more=attack_lab.ORDINARY)) as session:
        yield session
