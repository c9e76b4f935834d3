from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import people
import pytest

from dpquery.engine.session import Session


@pytest.fixture(scope="module")
def opened(schema: Path) -> Iterator[Session]:
    """A session over the data set that a test module makes as `schema`."""
    with people.opened(schema) as (one,):
        yield one
