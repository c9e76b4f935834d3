#!/usr/bin/env python3
"""The Python door: ask, look at the error bars, see what was paid. Needs `dpquery demo demo`.

python examples/01_python.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import dpquery


def main(folder: Path) -> None:
    with dpquery.connect(folder / "shop.yaml") as con:
        sql = "SELECT country, count(*) AS customers, avg(age) AS mean FROM users GROUP BY country ORDER BY customers DESC"

        plan = con.explain(sql, epsilon="1")
        print("It would cost", plan.price["epsilon"], "and be noised with", {release["noise"] for release in plan.releases}, "noise.\n")

        answer = con.query(sql, epsilon="1")
        print(answer, "\n")
        for (country, customers, _), bar in zip(answer.fetchall(), answer.intervals["customers"], strict=True):
            print(f"{country}: {customers} customers, between {bar[0]} and {bar[1]} before noise")

        frame = answer.df()
        print("\nA pandas data frame:", frame.shape, list(frame.columns))
        print("Left on the account:", con.budget().as_dict()["left"])

        try:
            con.query("SELECT user_id, amount FROM orders")
        except dpquery.errors.Refused as refusal:
            print(f"\nRefused:\n{refusal}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo"))
