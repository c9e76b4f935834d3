"""How far off totals are whose caps nobody declared: bounds => 'auto' inside the query's price, and caps of a profile paid for once.

    python benchmarks/auto_bounds.py [--draws 200] [--folder build/bench/auto]

Prints a Markdown table: relative errors over draws, at epsilon 1. Each draw is the product's own path from exact sums to the answer: histogram, cap,
noise; exact sums under a cap are read once, as they are the same in each draw.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import fresh
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpquery.engine import asking, capping, feeding, profile
from dpquery.engine.session import Session
from dpquery.mechanisms import SystemBits
from dpquery.release import answer, noise

SCHEMA = """
dataset: auto
privacy_unit: buyers.id
unsafe_testing: true
budget: {epsilon: 1e9, delta: 1e-6}
per_query: {epsilon: 1, delta: 1e-9}
limits: {timeout: 600}
tables:
  buyers: {path: buyers.parquet, unit: id, max_rows_per_unit: 1, columns: {id: {type: integer}}}
  orders: {path: orders.parquet, unit: user_id, columns: {user_id: {type: integer}, amount: {type: float, lower: 0, upper: 200}}}
"""
ASKED = {"COUNT(*)": "count(*{})", "SUM(amount)": "sum(amount{})"}
USERS, ROWS = 100_000, 1_000_000


def heavy(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows per person with a tail like a power: median 6, of 1 % above 73, the most about 2,200."""
    draws = np.random.default_rng(7 + seed)
    draws.choice(8, USERS, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.07, 0.05, 0.03])  # columns of the same data that are not read here
    draws.integers(18, 90, USERS)
    weight = draws.pareto(2.0, USERS) + 0.3
    user = draws.choice(USERS, ROWS, p=weight / weight.sum()) + 1
    draws.choice(12, ROWS, p=[0.2, 0.15, 0.12, 0.1, 0.1, 0.08, 0.07, 0.06, 0.05, 0.04, 0.02, 0.01])
    return user, np.clip(np.round(draws.lognormal(3.2, 0.7, ROWS), 2), 0, 200)


def lighter(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows per person that are logarithmically normal, and amounts that are mostly small."""
    draws = np.random.default_rng(1_007 + seed)
    user = np.repeat(np.arange(1, USERS + 1), np.ceil(draws.lognormal(1.2, 1.3, USERS)).astype(int))
    return user, np.clip(np.round(draws.exponential(20.0, len(user)), 2), 0, 200)


DATA: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    **{f"orders, seed {seed}": partial(heavy, seed) for seed in (0, 1, 2)},
    "lognormal": partial(lighter, 0),
}


def opened(folder: Path, made: tuple[np.ndarray, np.ndarray]) -> Session:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"user_id": made[0], "amount": made[1]}), folder / "orders.parquet")
    pq.write_table(pa.table({"id": np.arange(1, USERS + 1)}), folder / "buyers.parquet")
    return fresh.session(folder / "auto.yaml", SCHEMA)


def drawn(session: Session, sql: str, draws: int, epsilon: str) -> tuple[list[float], list[float]]:
    """(answers, caps) of so many releases of one statement of one value."""
    prepared = session._prepare(sql, asking.call(epsilon=epsilon), "duckdb")
    exact: dict[Any, Any] = {}
    values, caps = [], []
    for _ in range(draws):
        noisy: dict[str, Any] = {}
        for block in prepared.blocks:
            found = [capping.cap(feed, block, prepared, noisy).value for feed in block.feeds]
            key = (block.name, *found)
            if key not in exact:
                now = feeding.fed(prepared, block, noisy, session.backend, session.schema.limits)
                exact[key] = session.backend.run(now.lowered, block.key_types, len(block.release.table.parts))
            noisy[block.name] = noise.add(exact[key], block.release, block.priced, SystemBits())
            caps += map(float, found)
        last = prepared.blocks[-1]
        told = [capping.said("", capping.cap(feed, last, prepared, noisy)) for feed in last.feeds]
        release = capping.fitted(last, prepared, noisy, told).release
        values.append(float(answer.columns(noisy[last.name], release, noises=last.priced.noises)[0][2][0]))
    return values, caps


@dataclass
class Profiled:
    """Statements under caps that a profile chose: exact sums, read once for each cap."""

    session: Session
    known: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def caps(self, draws: int, epsilon: str) -> Iterator[dict[str, Decimal]]:
        """What so many profiles of the table would write into the schema."""
        table = self.session.schema.tables["orders"]
        wanted = tuple(profile._wanted(table))
        prepared = self.session._prepare(profile._text(table, wanted), asking.call(epsilon=epsilon, noise="laplace"), "duckdb")
        exact = [self.session.backend.run(one.lowered, one.key_types, 1) for one in prepared.blocks]
        for _ in range(draws):
            found = {}
            for one, block, sums in zip(wanted, prepared.blocks, exact, strict=True):
                noisy = noise.add(sums, block.release, block.priced, SystemBits())
                counts = [0] * profile.BINS
                for (bin,), units in zip(noisy.keys, noisy.sums[0], strict=True):
                    counts[int(str(bin))] = units
                found[one.key] = profile._found(one, table, counts, float(block.priced.noises[0].parameter), 1.0).value
            yield found

    def answer(self, text: str, cap: Decimal) -> float:
        """One release at epsilon 1 under the cap."""
        sql = f"SELECT {text.format(f', contribution_bounds_per_group => (0, {cap})')} AS n FROM orders"
        if sql not in self.known:
            (block,) = self.session._prepare(sql, asking.call(epsilon="1"), "duckdb").blocks
            self.known[sql] = block, self.session.backend.run(block.lowered, block.key_types, 1)
        block, exact = self.known[sql]
        return float(answer.columns(noise.add(exact, block.release, block.priced, SystemBits()), block.release)[0][2][0])


def errors(values: list[float], true: float) -> str:
    off = np.abs(np.asarray(values) - true) / true * 100
    return (
        f"{np.median(off):.3f} % | {np.percentile(off, 95):.3f} % | {np.sqrt((off**2).mean()):.3f} % | {(np.mean(values) - true) / true * 100:+.3f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--profile", default="1", help="the epsilon of a profile, for all of its histograms together")
    parser.add_argument("--folder", type=Path, default=Path("build/bench/auto"))
    args = parser.parse_args()
    print("| data | aggregate | bounds | median error | 95th percentile | RMSE | bias | caps, 5th to 95th percentile |")
    print("|---" * 8 + "|", flush=True)
    for called, make in DATA.items():
        made = make()
        true = {"COUNT(*)": float(len(made[0])), "SUM(amount)": float(made[1].sum())}
        session = opened(args.folder / called.replace(", ", "_").replace(" ", "_"), made)
        for name, text in ASKED.items():
            values, caps = drawn(session, f"SELECT {text.format(', bounds => $$auto$$')} AS n FROM orders".replace("$$", "'"), args.draws, "1")
            ends = " to ".join(f"{end:,.0f}" for end in np.percentile(caps, [5, 95]))
            print(f"| {called} | {name} | auto | {errors(values, true[name])} | {ends} |", flush=True)
        under = Profiled(session)
        chosen = list(under.caps(args.draws, args.profile))
        for name, text in ASKED.items():
            own = [one["max_rows_per_group" if name == "COUNT(*)" else "most_per_unit"] for one in chosen]
            ends = " to ".join(f"{end:,.0f}" for end in np.percentile([float(cap) for cap in own], [5, 95]))
            values = [under.answer(text, cap) for cap in own for _ in range(5)]
            print(f"| {called} | {name} | profile, epsilon {args.profile} | {errors(values, true[name])} | {ends} |", flush=True)
        session.close()


if __name__ == "__main__":
    main()
