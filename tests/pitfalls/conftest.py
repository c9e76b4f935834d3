from __future__ import annotations

from collections.abc import Iterator

import people
import pytest

from dpquery.engine.session import Session

Pair = tuple[Session, Session]


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two neighbours, noise off: everybody, and everybody but one person."""
    folder = tmp_path_factory.mktemp("pair")
    with people.opened(people.made(folder / "all"), people.made(folder / "without", people.DATA + people.WITHOUT)) as (whole, without):
        yield whole, without


@pytest.fixture(scope="session")
def whole(pair: Pair) -> Session:
    """Everybody, noise off."""
    return pair[0]
