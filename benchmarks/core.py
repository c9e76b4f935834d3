"""The core figures, beside plain DuckDB in one interleaved run: python benchmarks/core.py [--rows 1e6] [--runs 7]

CPU seconds (user + system, engine worker included), medians; the engine is warm. Ratios are to plain DuckDB in the same round.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from suite.lowering import seconds

from dpquery.engine import create_ledger, open_session
from dpquery.engine.session import Session

SCHEMA = """
dataset: events
privacy_unit: users.user_id
budget: {epsilon: 1000000, delta: 0.5}
per_query: {epsilon: 1, delta: 1e-9}
contribution: {max_groups_contributed: 4, max_rows_per_group: 20}
limits: {threads: 2}
tables:
  users:
    path: users.parquet
    unit: user_id
    max_rows_per_unit: 1
    columns: {user_id: {type: integer}, country: {type: string}}
  events:
    path: events.parquet
    unit: user_id
    columns:
      user_id: {type: integer}
      category: {type: string, values: [%s]}
      amount: {type: float, lower: 0, upper: 500, step: 0.01}
"""

QUERIES = {
    "count by 30 keys, group cap 4": "SELECT category, count(*) AS n FROM events GROUP BY category",
    "count and sum by 30 keys": "SELECT category, count(*) AS n, sum(amount) AS s FROM events GROUP BY category",
    "total count": "SELECT count(*) AS n FROM events",
    "users by country": "SELECT country, count(DISTINCT user_id) AS n FROM users GROUP BY country",
}
FLOOR = "SELECT count(*) FROM (SELECT user_id, category FROM events GROUP BY user_id, category)"


def make(folder: Path, rows: int) -> None:
    """A seeded event log: rows / 10 users, a few of them very heavy; 30 categories."""
    rng = np.random.default_rng(20240501)
    users = max(rows // 10, 10)

    def zipf(n: int, size: int, s: float) -> np.ndarray:
        weight = np.arange(1, n + 1, dtype=float) ** -s
        return rng.choice(n, size=size, p=weight / weight.sum())

    user = np.concatenate([np.arange(users), zipf(users, rows - users, 0.8)])
    category, shuffled = zipf(30, rows, 0.7), rng.permutation(rows)
    amount = np.clip(rng.gamma(1.5, 60.0, rows) * (1 + category / 30.0), 0, 500).round(2)
    names = np.array([f"c{i:02d}" for i in range(30)])
    events = pa.table({"user_id": user[shuffled], "category": names[category[shuffled]], "amount": amount[shuffled]})
    pq.write_table(events, folder / "events.parquet", compression="zstd")
    country = np.array([f"n{i:02d}" for i in range(25)])[zipf(25, users, 0.8)]
    pq.write_table(pa.table({"user_id": np.arange(users), "country": country}), folder / "users.parquet", compression="zstd")
    (folder / "events.yaml").write_text(SCHEMA % ", ".join(f"c{i:02d}" for i in range(30)))


def cpu() -> float:
    """CPU seconds so far of this process and its living children."""
    tick, total = os.sysconf("SC_CLK_TCK"), time.process_time()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            total += (int(fields[11]) + int(fields[12])) / tick
    return total


def timed(run: Callable[[], object]) -> tuple[float, float]:
    start, wall = cpu(), time.perf_counter()
    run()
    return cpu() - start, time.perf_counter() - wall


def queries(folder: Path, session: Session, runs: int) -> None:
    con = duckdb.connect(config={"threads": 2})
    for name in ("events", "users"):
        con.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{folder / name}.parquet')")
    print(f"{'query':34} {'plain cpu':>10} {'floor F':>9} {'dpquery cpu':>12} {'wall':>7} {'x plain':>8} {'x F':>6}")
    for label, sql in QUERIES.items():
        rows = []
        for _ in range(runs + 1):
            plain = timed(lambda sql=sql: con.execute(sql).fetchall())
            floor = timed(lambda: con.execute(FLOOR).fetchall())
            ours = timed(lambda sql=sql: session.query(sql, fresh=True))
            rows.append((plain[0], floor[0], ours[0], ours[1], ours[0] / max(plain[0], 0.01), ours[0] / max(floor[0], 0.01)))
        medians = [statistics.median(column) for column in zip(*rows[1:], strict=True)]
        print(f"{label:34} {medians[0]:9.3f}s {medians[1]:8.3f}s {medians[2]:11.3f}s {medians[3]:6.3f}s {medians[4]:8.1f} {medians[5]:6.1f}")


def lowering(session: Session, runs: int) -> None:
    """Parse to lowered statement, without the engine: what a query costs before anything runs."""
    for label, sql in QUERIES.items():
        spent = [seconds(sql, session) for _ in range(runs * 3)]
        print(f"parse to lowered statement, {label:34} {1000 * statistics.median(spent):6.1f} ms")


def help_text(runs: int) -> None:
    spent = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", "from dpquery.cli import main; main()", "--help"], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"dpquery --help {statistics.median(spent):.3f} s CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make(folder, args.rows)
        create_ledger(folder / "events.yaml")
        session = open_session(folder / "events.yaml")
        print(f"{args.rows:,} rows, {args.rows // 10:,} users, Parquet; medians of {args.runs} runs, CPU seconds")
        queries(folder, session, args.runs)
        lowering(session, args.runs)
        session.close()
    help_text(args.runs)


if __name__ == "__main__":
    main()
