"""How far off counts and sums over joins of TPC-H are whose caps nobody declared, the unit being a customer: bounds => 'auto' at epsilon 0.8.

    python benchmarks/joins.py [--draws 50] [--scale 1] [--folder build/bench/joins]

Prints a Markdown table: relative errors over draws, as auto_bounds.py makes them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import duckdb
import numpy as np
from auto_bounds import drawn, errors

from dpquery.engine import create_ledger, open_session

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests/tpc"))
JOINED = "FROM customer, orders, lineitem WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey"
ASKED = {
    "Q3: lines of orders before 1995-03-15": ("count(*{})", f"{JOINED} AND o_orderdate < DATE '1995-03-15'"),
    "Q3 without a date": ("count(*{})", JOINED),
    "Q10: orders": ("count(*{})", "FROM orders, customer, nation WHERE c_custkey = o_custkey AND c_nationkey = n_nationkey"),
    "Q18: quantity": ("sum(l_quantity{})", JOINED),
}
BUDGET = ("budget: {epsilon: 100, delta: 1e-5}", "unsafe_testing: true\nbudget: {epsilon: 1e9, delta: 1e-5}")


def main() -> None:
    from tpc_data import tpch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/bench/joins"))
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    if not (args.folder / "tpch.duckdb").exists():
        tpch(args.folder, args.scale)
    schema = args.folder / "joins.yaml"
    schema.write_text((ROOT / "schemas/tpch.yaml").read_text().replace(*BUDGET).replace("timeout: 60", "timeout: 900"))
    for old in args.folder.glob("*.ledger*"):
        old.unlink()
    create_ledger(schema)
    session = open_session(schema)
    print("| question | true answer | median error | 95th percentile | RMSE | bias | caps, 5th to 95th percentile |")
    print("|---" * 7 + "|", flush=True)
    for name, (call, rest) in ASKED.items():
        with duckdb.connect(str(args.folder / "tpch.duckdb"), read_only=True) as con:
            ((true,),) = con.execute(f"SELECT {call.format('')} {rest}").fetchall()
        automatic = call.format(", bounds => 'auto'")
        values, caps = drawn(session, f"SELECT {automatic} AS n {rest}", args.draws, "0.8")
        ends = " to ".join(f"{end:,.0f}" for end in np.percentile(caps, [5, 95]))
        print(f"| {name} | {float(true):,.0f} | {errors(values, float(true))} | {ends} |", flush=True)
    session.close()


if __name__ == "__main__":
    main()
