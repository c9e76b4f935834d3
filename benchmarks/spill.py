"""Whether questions over more rows than fit into memory are answered: python benchmarks/spill.py [--rows 5e7] [--memory 2GB]

The engine has the memory limit that the schema sets, and spills beyond it. Prints CPU seconds, wall time and the peak of memory of all processes.
"""

from __future__ import annotations

import argparse
import sys

from suite import data
from suite.bars import BARS, Bar
from suite.systems import PLACE, SYSTEMS, Running
from suite.workloads import told

MORE = (
    Bar("count distinct values, 30 keys", "SELECT category, count(DISTINCT key) AS n FROM events GROUP BY category", "", "", 0.0),
    Bar("median of all rows", "SELECT median(amount) AS q FROM events", "", "", 0.0, keys=0),
    Bar("median, 30 keys", "SELECT category, median(amount) AS q FROM events GROUP BY category", "", "", 0.0),
)
"""Kinds of plans that are held to no ratio."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=50_000_000)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    folder = PLACE / "data" / str(args.rows)
    data.make(folder, args.rows)
    dpquery = next(one for one in SYSTEMS if one.name == "dpquery")
    running = Running(dpquery, sys.executable, folder, {**told(args.rows, args.threads), "memory": args.memory}, 3600.0)
    print(f"{args.rows:,} rows, a limit of {args.memory}\n\n| what | CPU, s | wall, s | peak, MB |\n|---|---|---|---|", flush=True)
    missed = False
    try:
        for bar in (*BARS, *MORE):
            said = running.ask("bar", bar.sql, bar.keys)
            missed |= "cannot" in said
            found = said["cannot"] if "cannot" in said else f"{said['cpu']:.1f} | {said['wall']:.1f} | {said['peak']:.0f}"
            print(f"| {bar.title} | {found} |", flush=True)
    finally:
        running.end()
    if missed:
        raise SystemExit("a question was not answered")


if __name__ == "__main__":
    main()
