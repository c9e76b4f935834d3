"""How many groups of private keys are shown, by the cap on groups and the aggregate asked for, at epsilon 1 and delta 1e-6.

    python benchmarks/selection.py FOLDER [--draws 20]

FOLDER holds orders.parquet and buyers.parquet. Prints a Markdown table: groups shown, on average over draws of noise; the error of their values. Each
draw is the product's own path from exact sums to noise; exact sums are read once.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import fresh
import numpy as np

from dpquery.engine import asking
from dpquery.mechanisms import SystemBits, deviation
from dpquery.release import noise

SCHEMA = """
dataset: selection
privacy_unit: buyers.id
unsafe_testing: true
budget: {epsilon: 1e9, delta: 1e-3}
per_query: {epsilon: 1, delta: 1e-6}
tables:
  buyers: {path: buyers.parquet, unit: id, max_rows_per_unit: 1, columns: {id: {type: integer}}}
  orders: {path: orders.parquet, unit: user_id, columns: {user_id: {type: integer}, zip: {type: integer}}}
"""
ASKED = {"keys alone": "", "COUNT(DISTINCT unit)": ", count(DISTINCT user_id) AS n", "COUNT(*)": ", count(*) AS n"}
CAPS = (1, 2, 3, 4, 6, 8, 10, 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=20)
    args = parser.parse_args()
    session = fresh.session(args.folder / "selection.yaml", SCHEMA)
    print("| max_groups_contributed | asked | noise | groups shown, mean (least to most) | deviation of a value's noise |")
    print("|---|---|---|---|---|", flush=True)
    for cap in CAPS:
        for name, column in ASKED.items():
            options = f"WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed={cap}, max_rows_per_group=2)"
            (block,) = session._prepare(f"SELECT {options} zip{column} FROM orders GROUP BY zip", asking.call(), "duckdb").blocks
            exact = session.backend.run(block.lowered, block.key_types, len(block.release.table.parts))
            shown = [len(noise.add(exact, block.release, block.priced, SystemBits()).keys) for _ in range(args.draws)]
            own = block.release.aggregates[0].parts[0] if block.release.aggregates else None
            error = "" if own is None else f"{deviation(block.priced.noises[own]):.1f}"
            drawn = ", ".join(dict.fromkeys(str(one.mechanism) for one in block.priced.noises))
            print(f"| {cap} | {name} | {drawn} | {np.mean(shown):.0f} ({min(shown)} to {max(shown)}) | {error} |", flush=True)
    session.close()


if __name__ == "__main__":
    main()
