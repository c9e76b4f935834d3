"""The data that all systems answer from, made anew from fixed seeds.

    python benchmarks/suite/data.py FOLDER [--rows 1e6] [--seed 0]

events.parquet  user_id int64, category c00..c29 (zipf-like), amount float64 in [0, 500], key int64 (zipf over 100,000), day DATE over two years.
                rows / 10 users with zipf-like activity: a few are very heavy.
users.parquet   one row per user: user_id, country (25 values), age, segment (5 values).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 20240501
CATEGORIES = tuple(f"c{i:02d}" for i in range(30))
COUNTRIES = tuple(f"n{i:02d}" for i in range(25))
SEGMENTS = tuple(f"s{i}" for i in range(5))
KEYS = 100_000
MONTHS = tuple(f"{year}-{month:02d}-01" for year in (2023, 2024) for month in range(1, 13))


def zipf(rng: np.random.Generator, n: int, size: int, s: float) -> Any:
    weight = 1.0 / np.arange(1, n + 1) ** s
    return rng.choice(n, size=size, p=weight / weight.sum())


def make(folder: Path, rows: int, seed: int = 0) -> None:
    """The two tables, where they are not there yet. The order of draws is part of the data: the same seed gives the same tables."""
    if (folder / "made").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng, users = np.random.default_rng(SEED + seed), max(rows // 10, 10)
    user = np.concatenate([np.arange(users), zipf(rng, users, rows - users, 0.8)])
    category, key = zipf(rng, len(CATEGORIES), rows, 0.7), zipf(rng, KEYS, rows, 1.1)
    amount = np.clip(rng.gamma(1.5, 60.0, rows) * (1 + category / 30.0), 0, 500).round(2)
    day = np.datetime64("2023-01-01") + rng.integers(0, 730, rows).astype("timedelta64[D]")
    p = rng.permutation(rows)
    events = {"user_id": user[p], "category": np.array(CATEGORIES)[category[p]], "amount": amount[p], "key": key[p]}
    pq.write_table(pa.table({**events, "day": pa.array(day[p].astype("datetime64[D]"))}), folder / "events.parquet", compression="zstd")
    country, age = np.array(COUNTRIES)[zipf(rng, len(COUNTRIES), users, 0.8)], rng.integers(18, 90, users)
    people = {"user_id": np.arange(users), "country": country, "age": age, "segment": np.array(SEGMENTS)[rng.integers(0, len(SEGMENTS), users)]}
    pq.write_table(pa.table(people), folder / "users.parquet", compression="zstd")
    (folder / "made").touch()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    make(given.folder, given.rows, given.seed)


if __name__ == "__main__":
    main()
