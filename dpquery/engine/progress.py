"""Signs of progress while a statement runs: elapsed time only, never the engine's own measure of how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from dpquery.engine.pace import Pace

Progress = Callable[[float], None]

TICK = 1.0  # seconds between two signs of progress


@contextmanager
def ticking(progress: Progress | None, grid: Pace) -> Iterator[None]:
    """Elapsed seconds to `progress` each second, or each quantum, until the reply leaves: never the engine's own measure of how far it is."""
    if progress is None:
        yield
        return
    now, done = grid.clock.now, Event()
    start = now()

    def tick() -> None:
        while not done.wait(grid.quantum or TICK):
            progress(now() - start)

    thread = Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
