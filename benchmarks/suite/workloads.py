"""What is asked: of dpquery, of plain DuckDB, of the floor, and by name of the peers; and what all of them are told beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from suite.data import CATEGORIES, COUNTRIES, MONTHS

EPSILON, DELTA = 1.0, 1e-6
GROUPS, ROWS = 10, 20  # declared: a person counts in so many groups, with so many rows in each
AMOUNT, AGE = (0, 500), (0, 120)
YEARS = "day >= DATE '2023-01-01' AND day < DATE '2025-01-01'"


@dataclass(frozen=True, slots=True)
class Workload:
    """A question. `plain` is the same for an engine without privacy, `floor` groups by unit and key and does no more."""

    name: str
    title: str
    sql: str
    floor: str
    measures: tuple[str, ...]
    keys: int = 1  # columns
    public: int | None = None  # how many groups are listed beforehand; None where the keys are private
    plain: str | None = None

    @property
    def plain_sql(self) -> str:
        return self.plain or self.sql


def _floor(keys: str, source: str = "events") -> str:
    return f"SELECT count(*) FROM (SELECT {keys} FROM {source} GROUP BY {keys})"


BY_MONTH = f"""SELECT category, date_trunc('month', day) AS month, count(*) AS n, sum(amount) AS s FROM events
WHERE {YEARS} GROUP BY category, date_trunc('month', day)"""

WORKLOADS = (
    Workload("total", "total count", "SELECT count(*) AS n FROM events", _floor("user_id"), ("n",), keys=0, public=1),
    Workload(
        "public",
        "count, sum, avg by 30 public keys",
        "SELECT category, count(*) AS n, sum(amount) AS s, avg(amount) AS m FROM events GROUP BY category",
        _floor("user_id, category"),
        ("n", "s", "m"),
        public=len(CATEGORIES),
    ),
    Workload(
        "private",
        "count, sum by private keys (100,000)",
        "SELECT key, count(*) AS n, sum(amount) AS s FROM events GROUP BY key",
        _floor("user_id, key"),
        ("n", "s"),
    ),
    Workload(
        "months",
        "count, sum by category and month (720 cells)",
        BY_MONTH,
        _floor("user_id, category, month", "(SELECT user_id, category, date_trunc('month', day) AS month FROM events)"),
        ("n", "s"),
        keys=2,
        public=len(CATEGORIES) * len(MONTHS),
    ),
    Workload(
        "join",
        "count, sum by a joined user attribute (25 keys)",
        "SELECT country, count(*) AS n, sum(amount) AS s FROM events JOIN users USING (user_id) GROUP BY country",
        _floor("user_id, country", "events JOIN users USING (user_id)"),
        ("n", "s"),
        public=len(COUNTRIES),
    ),
    Workload(
        "users",
        "count, avg on one row per user (25 keys)",
        "SELECT country, count(*) AS n, avg(age) AS m FROM users GROUP BY country",
        _floor("user_id, country", "users"),
        ("n", "m"),
        public=len(COUNTRIES),
    ),
    Workload(
        "distinct",
        "count distinct users by 30 public keys",
        "SELECT category, count(DISTINCT user_id) AS n FROM events GROUP BY category",
        _floor("user_id, category"),
        ("n",),
        public=len(CATEGORIES),
    ),
    Workload(
        "median",
        "median of all rows",
        "SELECT median(amount) AS q FROM events",
        _floor("user_id"),
        ("q",),
        keys=0,
        public=1,
    ),
)


def told(rows: int, threads: int) -> dict[str, Any]:
    """What every system is told: the same price, bounds, limits and public keys."""
    return {
        "rows": rows,
        "threads": threads,
        "epsilon": EPSILON,
        "delta": DELTA,
        "groups": GROUPS,
        "rows_per_group": ROWS,
        "amount": AMOUNT,
        "age": AGE,
        "categories": CATEGORIES,
        "countries": COUNTRIES,
        "months": MONTHS,
    }
