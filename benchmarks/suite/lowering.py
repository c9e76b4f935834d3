"""What a question costs before anything runs: from its text to the lowered statement, price and bounds included."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpquery.engine.session import Session


def seconds(sql: str, session: Session) -> float:
    """CPU seconds of one reading, without the engine's look-ups in public tables."""
    from dpquery.backends.lower import lower
    from dpquery.backends.public import facts
    from dpquery.engine import asking
    from dpquery.privacy import bound, calibrate
    from dpquery.sql import read

    start = time.process_time()
    question = read(sql, session.schema)
    read_done = time.process_time()
    (found,) = facts([question.blocks[0].draft], session.backend)
    resumed = time.process_time()
    release = bound(question.blocks[0].draft, found)
    calibrate(release, asking.asks(question, asking.Call(), session.schema)[0], session.schema.adjacency)
    lower(release, 1)
    return read_done - start + time.process_time() - resumed
