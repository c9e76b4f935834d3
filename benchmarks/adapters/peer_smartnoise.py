"""SmartNoise SQL on SQLite in memory, loaded beforehand: the fastest of the documented engines that need no server. DuckDB refuses what it writes."""

from __future__ import annotations

import importlib.metadata
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from lines import Ask, Cannot, Rows, serve
from snsql import Privacy, from_connection

SQL = {
    "total": (0, "SELECT count(*) AS n FROM events"),
    "public": (1, "SELECT category, count(*) AS n, sum(amount) AS s, avg(amount) AS m FROM events GROUP BY category"),
    "private": (1, "SELECT key, count(*) AS n, sum(amount) AS s FROM events GROUP BY key"),
    "months": (2, "SELECT category, mon, count(*) AS n, sum(amount) AS s FROM events GROUP BY category, mon"),
    "users": (1, "SELECT country, count(*) AS n, avg(age) AS m FROM users GROUP BY country"),
    "distinct": (1, "SELECT category, count(DISTINCT user_id) AS n FROM events GROUP BY category"),
}
CANNOT = {
    "join": "refuses joins of two tables that have users",
    "median": "no quantiles",
}


def opened(folder: Path, told: dict[str, Any]) -> tuple[str, Callable[[str, Any], Ask]]:
    warnings.simplefilter("ignore")
    con = sqlite3.connect(":memory:")
    _load(con, folder)

    def answer(name: str) -> Rows:
        keys, sql = SQL[name]
        meta = _declared(name, told)
        cost = from_connection(con, privacy=_privacy(1.0, told), metadata=meta, engine="sqlite").get_privacy_cost(sql)[0]
        epsilon = told["epsilon"] / max(float(cost), 1.0)  # its epsilon is each column's: scaled so that the statement costs what it may
        found = from_connection(con, privacy=_privacy(epsilon, told), metadata=meta, engine="sqlite").execute(sql)[1:]
        return [(row[:keys], [float("nan") if v is None else v for v in row[keys:]]) for row in found]

    def asked(name: str, _: Any) -> Ask:
        if name not in SQL:
            raise Cannot(CANNOT[name])
        return lambda: answer(name)

    return f"SmartNoise SQL {importlib.metadata.version('smartnoise-sql')} on SQLite {sqlite3.sqlite_version}", asked


def _privacy(epsilon: float, told: dict[str, Any]) -> Privacy:
    return Privacy(epsilon=epsilon, delta=told["delta"])


def _declared(name: str, told: dict[str, Any]) -> dict[str, Any]:
    """Its limit is rows a user, in all groups together."""
    (low, high), (young, old) = told["amount"], told["age"]
    rows = told["rows_per_group"] * (1 if name == "total" else told["groups"])
    limits = {"max_ids": rows, "sample_max_ids": True, "clamp_columns": True, "censor_dims": name == "private"}
    unit = {"user_id": {"type": "int", "private_id": True}}
    amount = {"type": "float", "lower": float(low), "upper": float(high)}
    events = {**limits, **unit, "category": {"type": "string"}, "amount": amount, "key": {"type": "int"}, "mon": {"type": "string"}}
    users = {**limits, "max_ids": 1, **unit, "country": {"type": "string"}, "age": {"type": "int", "lower": young, "upper": old}}
    return {"": {"": {"users": users} if name == "users" else {"events": events}}}


def _load(con: sqlite3.Connection, folder: Path) -> None:
    con.execute("CREATE TABLE events (user_id INTEGER, category TEXT, amount REAL, key INTEGER, mon TEXT)")
    con.execute("CREATE TABLE users (user_id INTEGER, country TEXT, age INTEGER)")
    events = pq.read_table(folder / "events.parquet")
    events = events.append_column("month", pc.strftime(events["day"], "%Y-%m-01")).drop_columns(["day"])
    for batch in events.to_batches(100_000):
        con.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", zip(*(column.to_pylist() for column in batch.columns), strict=True))
    users = pq.read_table(folder / "users.parquet", columns=["user_id", "country", "age"])
    con.executemany("INSERT INTO users VALUES (?, ?, ?)", zip(*(column.to_pylist() for column in users.columns), strict=True))
    con.commit()


if __name__ == "__main__":
    serve(opened)
