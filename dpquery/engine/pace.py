"""When replies leave: on a time grid, so that run time over private rows shows only coarsely; or at once, where the schema has no grid."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dpquery.schema.model import Limits


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds since some fixed moment, which nobody can set back; and how to let them pass."""

    now: Callable[[], float]
    sleep: Callable[[float], None]


SYSTEM: Final = Clock(time.monotonic, time.sleep)


@dataclass(frozen=True, slots=True)
class Pace:
    """The grid of one statement: whole multiples of `quantum` seconds after it was asked. Without a quantum every moment is on it."""

    clock: Clock
    start: float
    quantum: float | None

    def wait(self, least: float = 0.0) -> None:
        """Returns at the next grid point, the first or a later one, that is no earlier than `least` on the clock."""
        if self.quantum is None:
            return
        points = max(1, math.ceil((max(self.clock.now(), least) - self.start) / self.quantum))
        deadline = self.start + points * self.quantum
        while (rest := deadline - self.clock.now()) > 0:
            self.clock.sleep(rest)

    @property
    def silent(self) -> bool:
        """Whether no reply to any statement asked at `start` could have left by now, so that having none says nothing."""
        return self.quantum is not None and self.clock.now() - self.start < self.quantum


def begin(limits: Limits, clock: Clock) -> Pace:
    """The grid of a statement that is asked now."""
    return Pace(clock, clock.now(), None if limits.response_quantum is None else float(limits.response_quantum))
