"""dpquery beside plain DuckDB, the floor and peers: CPU, wall time, memory, accuracy, in benchmarks/results/.

    python benchmarks/run.py [--quick] [--rows 1e6] [--large 1e7 5e7] [--rounds 7] [--only SYSTEM ..] [--workloads NAME ..]

Peers answer for `--rows` rows, dpquery and DuckDB for `--large` ones too. `--quick`: 100,000 rows, two rounds, written to build/bench/quick/.
Each peer has an environment of its own under build/bench/peers/, made on first use; one that does not install is left out.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from suite import bars, data, plot, report
from suite.machine import machine
from suite.measure import Measured, measure, start
from suite.systems import HERE, PLACE, SYSTEMS, System, installed
from suite.workloads import WORKLOADS, Workload, told

OWN = ("dpquery", "duckdb", "floor")


def whole(text: str) -> int:
    return int(float(text))


def given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", type=whole, default=1_000_000)
    parser.add_argument("--large", type=whole, nargs="*", default=[10_000_000, 50_000_000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--patience", type=float, default=600.0, help="seconds that one question may take")
    parser.add_argument("--only", nargs="*", choices=[one.name for one in SYSTEMS], default=[one.name for one in SYSTEMS])
    parser.add_argument("--workloads", nargs="*", choices=[one.name for one in WORKLOADS], default=[one.name for one in WORKLOADS])
    parser.add_argument("--bars", type=whole, default=10_000_000, help="rows for the ratios that dpquery is held to; 0: not measured")
    parser.add_argument("--install", action="store_true", help="install the peers and measure nothing")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    args = parser.parse_args()
    if args.quick:
        args.rows, args.large, args.rounds, args.out, args.bars = 100_000, [], 2, PLACE / "quick", 100_000
        args.patience = min(args.patience, 120.0)
    return args


def size(args: argparse.Namespace, rows: int, systems: Sequence[System], workloads: Sequence[Workload]) -> Measured:
    folder = PLACE / "data" / str(rows)
    data.make(folder, rows)
    running = start(systems, folder, told(rows, args.threads), args.patience)
    try:
        return measure(running, workloads, rows, args.rounds)
    finally:
        for one in running:
            one.end()


def stored(found: Measured) -> dict[str, Any]:
    """All that was measured but the answers themselves."""
    cells = {f"{system} {work}": {k: v for k, v in asdict(cell).items() if k != "answers"} for (system, work), cell in found.cells.items()}
    return {"rows": found.rows, "versions": found.versions, "cells": cells}


def main() -> None:
    args = given()
    PLACE.mkdir(parents=True, exist_ok=True)
    args.out.mkdir(parents=True, exist_ok=True)
    on = machine()
    systems = [one for one in SYSTEMS if one.name in args.only]
    if args.install:
        ready = [installed(one) is not None for one in systems]
        sys.exit(0 if all(ready) else 1)
    workloads = [one for one in WORKLOADS if one.name in args.workloads]
    found = [size(args, args.rows, systems, workloads)]
    found += [size(args, rows, [one for one in systems if one.name in OWN], workloads) for rows in args.large]
    versions = [version for version in dict.fromkeys(found[0].versions.values()) if version]
    command = shlex.join(["python", "benchmarks/run.py", *sys.argv[1:]])
    lines = [*report.head(on, versions, command), *report.missing(found[0], args.only), ""]
    if args.bars:
        lines += bars.report(args.bars, args.rounds, args.threads)
    lines += [line for one in found for line in report.table(one, workloads)]
    drawn = plot.draw(found[0], workloads, args.out / "benchmarks.svg")
    if drawn:
        lines.insert(1, "![CPU seconds and error of each system](benchmarks.svg)\n")
    (args.out / "benchmarks.md").write_text("\n".join(lines))
    (args.out / "benchmarks.json").write_text(json.dumps({"machine": on, "sizes": [stored(one) for one in found]}, indent=1))
    print(f"written: {args.out / 'benchmarks.md'}", file=sys.stderr)


if __name__ == "__main__":
    main()
