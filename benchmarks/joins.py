"""How far off counts and sums over joins of TPC-H are whose caps nobody declared, the unit being a customer: bounds => 'auto' and 'race' at epsilon
0.8, and what they take beside the plain query.

    python benchmarks/joins.py [--draws 50] [--runs 5] [--scale 1] [--folder build/bench/joins]

Prints a Markdown table: relative errors over draws, as auto_bounds.py makes them; the median wall time of whole answers, ledger and noise included,
over that of the plain query in an engine of as many threads, taken in turns.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import duckdb
import fresh
import numpy as np
from auto_bounds import drawn, errors

from dpquery.engine.session import Session

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests/tpc"))
JOINED = "FROM customer, orders, lineitem WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey"
ASKED = {
    "Q3: lines of orders before 1995-03-15": ("count(*{})", f"{JOINED} AND o_orderdate < DATE '1995-03-15'", 1_000),
    "Q3 without a date": ("count(*{})", JOINED, 1_000),
    "Q10: orders": ("count(*{})", "FROM orders, customer, nation WHERE c_custkey = o_custkey AND c_nationkey = n_nationkey", 1_000),
    "Q18: quantity": ("sum(l_quantity{})", JOINED, 50_000),
}
"""What is asked, and a public ceiling for it that caps race up to: a thousand rows of a customer, of 50 pieces at most."""
BOUNDS = {"auto": ", bounds => 'auto'", "race": ", contribution_bounds_per_group => (0, {}), bounds => 'race'"}
THREADS = 2  # as in the schema
BUDGET = ("budget: {epsilon: 100, delta: 1e-5}", "unsafe_testing: true\nbudget: {epsilon: 1e9, delta: 1e-5}")


def times(session: Session, con: duckdb.DuckDBPyConnection, asked: str, plain: str, runs: int) -> tuple[float, float]:
    """The median seconds of the private answer and of the plain one."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs + 1):  # the first of each warms up
        start = perf_counter()
        session.query(asked, fresh=True, epsilon="0.8")
        middle = perf_counter()
        con.execute(plain).fetchall()
        for found, seconds in zip(taken, (middle - start, perf_counter() - middle), strict=True):
            found.append(seconds)
    return median(taken[0][1:]), median(taken[1][1:])


def main() -> None:
    from tpc_data import tpch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/bench/joins"))
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    if not (args.folder / "tpch.duckdb").exists():
        tpch(args.folder, args.scale)
    schema = (ROOT / "schemas/tpch.yaml").read_text().replace(*BUDGET).replace("timeout: 60", "timeout: 900")
    session = fresh.session(args.folder / "joins.yaml", schema)
    print("| question | bounds | true answer | median error | 95th percentile | RMSE | bias | caps in 90 % of draws | seconds | plain | times |")
    print("|---" * 11 + "|", flush=True)
    with duckdb.connect(str(args.folder / "tpch.duckdb"), read_only=True, config={"threads": THREADS}) as con:
        for name, (call, rest, ceiling) in ASKED.items():
            plain = f"SELECT {call.format('')} {rest}"
            ((true,),) = con.execute(plain).fetchall()
            for bounds, written in BOUNDS.items():
                sql = f"SELECT {call.format(written.format(ceiling))} AS n {rest}"
                values, caps = drawn(session, sql, args.draws, "0.8")
                ends = " to ".join(f"{end:,.0f}" for end in np.percentile(caps, [5, 95])) if caps else f"race to {ceiling:,}"
                ours, theirs = times(session, con, sql, plain, args.runs)
                row = f"| {name} | {bounds} | {float(true):,.0f} | {errors(values, float(true))} | {ends} "
                print(f"{row}| {ours:.2f} | {theirs:.2f} | {ours / theirs:.1f} |", flush=True)
    session.close()


if __name__ == "__main__":
    main()
