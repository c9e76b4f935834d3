"""The sample shop: invented customers and their orders, the same for everybody, so that examples can be tried and compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

SEED = 20_240_229
USERS, ORDERS, DAYS = 20_000, 300_000, 730
FIRST_DAY = np.datetime64("2023-01-01")
COUNTRIES = {
    "US": "Americas", "CA": "Americas", "MX": "Americas", "BR": "Americas", "AR": "Americas", "DE": "Europe", "FR": "Europe",
    "GB": "Europe", "ES": "Europe", "JP": "Asia Pacific", "IN": "Asia Pacific", "AU": "Asia Pacific",
}  # fmt: skip
COUNTRY_SHARES = (0.3, 0.05, 0.04, 0.06, 0.03, 0.14, 0.1, 0.11, 0.04, 0.06, 0.04, 0.03)
CATEGORIES = {
    "books": "media", "music": "media", "films": "media", "games": "media", "kitchen": "home", "garden": "home", "tools": "home",
    "furniture": "home", "shoes": "fashion", "coats": "fashion", "toys": "family", "sports": "family",
}  # fmt: skip
CATEGORY_SHARES = (0.2, 0.08, 0.06, 0.1, 0.12, 0.07, 0.06, 0.03, 0.1, 0.05, 0.07, 0.06)
STATUS = ("shipped", "paid", "returned", "cancelled")
STATUS_SHARES = (0.7, 0.2, 0.07, 0.03)
TABLES = {  # name: (columns, how each is made from what numpy drew); prices are drawn in whole cents
    "users": ("user_id BIGINT PRIMARY KEY, age INTEGER, country VARCHAR, signup_day DATE", "user_id, age, country, signup_day"),
    "orders": (
        "order_id BIGINT PRIMARY KEY, user_id BIGINT, amount DECIMAL(10, 2), day DATE, category VARCHAR, status VARCHAR",
        "order_id, user_id, cents * 0.01, day, category, status",
    ),
    "order_items": (
        "order_id BIGINT, product VARCHAR, price DECIMAL(10, 2), quantity INTEGER",
        "order_id, product, cents * 0.01, quantity",
    ),
    "countries": ("country VARCHAR, region VARCHAR", "country, region"),
    "categories": ("category VARCHAR, department VARCHAR", "category, department"),
}


def write(path: Path) -> None:
    """A DuckDB file with the shop's five tables at `path`, which must not exist yet; seeded, so always the same rows."""
    random = np.random.default_rng(SEED)
    drawn = {"users": _users(random)}
    drawn["orders"], drawn["order_items"] = _orders_and_items(random)
    drawn["countries"] = pa.table({"country": list(COUNTRIES), "region": list(COUNTRIES.values())})
    drawn["categories"] = pa.table({"category": list(CATEGORIES), "department": list(CATEGORIES.values())})
    with duckdb.connect(str(path)) as connection:
        for name, (columns, expressions) in TABLES.items():
            connection.register("drawn", drawn[name])
            connection.execute(f"CREATE TABLE {name} ({columns})")
            connection.execute(f"INSERT INTO {name} SELECT {expressions} FROM drawn")
            connection.unregister("drawn")


def _users(random: np.random.Generator) -> pa.Table:
    """One row a customer; one in fifty did not tell the age."""
    age = np.clip(np.round(random.gamma(4.0, 6.5, USERS) + 16), 18, 99).astype(int)
    return _table(
        {
            "user_id": np.arange(1, USERS + 1),
            "age": pa.array(age, mask=random.random(USERS) < 0.02),
            "country": _choice(random, list(COUNTRIES), USERS, COUNTRY_SHARES),
            "signup_day": FIRST_DAY - random.integers(0, 1500, USERS).astype("timedelta64[D]"),
        }
    )


def _orders_and_items(random: np.random.Generator) -> tuple[pa.Table, pa.Table]:
    """Orders per customer are heavy-tailed (median 12, the largest above 300); one order in a hundred is a guest's, without a customer.

    An order's amount is the sum of its items, but for a discount, up to 500.
    """
    eagerness = random.pareto(3.0, USERS) + 0.5
    user = random.choice(USERS, ORDERS, p=eagerness / eagerness.sum()) + 1
    items = 1 + random.poisson(1.0, ORDERS)
    order = np.repeat(np.arange(ORDERS), items)
    cents = np.clip(np.round(random.lognormal(7.3, 0.8, len(order))), 50, 50_000).astype(np.int64)
    quantity = np.clip(random.geometric(0.7, len(order)), 1, 10)
    total = np.bincount(order, weights=cents * quantity, minlength=ORDERS)
    category = random.choice(len(CATEGORIES), ORDERS, p=CATEGORY_SHARES)
    product = random.zipf(1.6, len(order)) % 40
    names = [f"{name} {number:02d}" for name in CATEGORIES for number in range(40)]
    shuffled = random.permutation(ORDERS)
    orders = _table(
        {
            "order_id": np.arange(1, ORDERS + 1),
            "user_id": pa.array(user, mask=random.random(ORDERS) < 0.01),
            "cents": np.clip(np.round(total * random.choice((1.0, 0.9), ORDERS, p=(0.8, 0.2))), 50, 50_000).astype(np.int64),
            "day": FIRST_DAY + np.sort(random.integers(0, DAYS, ORDERS)).astype("timedelta64[D]"),
            "category": np.array(list(CATEGORIES))[category],
            "status": _choice(random, STATUS, ORDERS, STATUS_SHARES),
        }
    )
    sold = _table({"order_id": order + 1, "product": np.array(names)[category[order] * 40 + product], "cents": cents, "quantity": quantity})
    return orders.take(shuffled), sold


def _table(columns: dict[str, Any]) -> pa.Table:
    return pa.table(columns)


def _choice(random: np.random.Generator, values: Sequence[str], size: int, shares: Sequence[float]) -> Any:
    return np.array(values)[random.choice(len(values), size, p=shares)]
