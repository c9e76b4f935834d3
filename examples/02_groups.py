#!/usr/bin/env python3
"""Which groups appear, and how contribution limits trade bias for noise. Needs `dpquery demo demo`.

python examples/02_groups.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import dpquery


def main(folder: Path) -> None:
    with dpquery.connect(folder / "shop.yaml", analyst="alice") as con:
        print("A listed key: every group appears, empty ones too, and nothing is spent on finding them.\n")
        print(con.query("SELECT country, count(*) AS customers FROM users GROUP BY country", epsilon="0.2"), "\n")

        print("A private key: a group appears when its noisy number of customers passes a threshold.\n")
        sql = "SELECT product, count(*) AS sold FROM order_items GROUP BY product HAVING sold > 2000 ORDER BY sold DESC"
        print(con.query(sql, epsilon="0.5", delta="1e-8"), "\n")

        print("Fewer groups per customer: less noise, but heavy customers lose some of theirs. EXPLAIN shows the scale for each choice.")
        for groups in (1, 4, 12):
            sql = f"""SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.2, max_groups_contributed={groups})
                category, count(*) AS orders FROM orders JOIN categories USING (category) GROUP BY category"""
            for release in con.explain(sql).releases:
                print(f"  at most {groups} categories a customer: {release['noise']} noise of scale {release['scale']:.0f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo"))
