"""Qrlew: it rewrites SQL for a database to run. Run on DuckDB, the fastest that its PostgreSQL dialect runs on, in tables loaded beforehand."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyqrlew
from lines import Ask, Cannot, Rows, serve
from sqlalchemy import create_engine, text

TABLES = {
    "events": "user_id bigint, category text, amount double precision, key bigint, month text",
    "users": "user_id bigint, country text, age bigint",
}
SQL = {
    "total": (0, "SELECT count(*) AS n FROM events"),
    "public": (1, "SELECT category, count(*) AS n, sum(amount) AS s, avg(amount) AS m FROM events GROUP BY category"),
    "private": (1, "SELECT key, count(*) AS n, sum(amount) AS s FROM events GROUP BY key"),
    "months": (2, "SELECT category, month, count(*) AS n, sum(amount) AS s FROM events GROUP BY category, month"),
    "join": (1, "SELECT country, count(*) AS n, sum(amount) AS s FROM events JOIN users ON events.user_id = users.user_id GROUP BY country"),
    "users": (1, "SELECT country, count(*) AS n, avg(age) AS m FROM users GROUP BY country"),
    "distinct": (1, "SELECT category, count(DISTINCT user_id) AS n FROM events GROUP BY category"),
}
UNIT = [("users", [], "user_id"), ("events", [], "user_id")]


def opened(folder: Path, told: dict[str, Any]) -> tuple[str, Callable[[str, Any], Ask]]:
    con = duckdb.connect(config={"threads": told["threads"]})
    con.execute(f"CREATE TABLE users AS SELECT user_id, country, age FROM read_parquet('{folder / 'users.parquet'}')")
    month = "strftime(day, '%Y-%m-01') AS month"
    con.execute(f"CREATE TABLE events AS SELECT user_id, category, amount, key, {month} FROM read_parquet('{folder / 'events.parquet'}')")
    sizes = {name: con.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] for name in TABLES}
    dataset = _declared(sizes, told)

    def answer(name: str) -> Rows:
        keys, sql = SQL[name]
        rows = told["rows_per_group"] * (told["groups"] if keys else 1)
        if name == "users":
            rows = 1
        rewritten = dataset.relation(sql, pyqrlew.Dialect.PostgreSql).rewrite_with_differential_privacy(
            dataset,
            UNIT,
            {"epsilon": told["epsilon"], "delta": told["delta"]},
            max_multiplicity=float(rows),
            max_multiplicity_share=1.0,
            max_privacy_unit_groups=told["groups"] if name != "users" else 1,
        )
        if "NoOp" in str(rewritten.dp_event().to_dict()):
            raise Cannot("rewrites the query to one without noise")
        found = con.execute(rewritten.relation().to_query(pyqrlew.Dialect.PostgreSql)).fetchall()
        return [(row[:keys], [float("nan") if v is None else v for v in row[keys:]]) for row in found]

    def asked(name: str, _: Any) -> Ask:
        if name not in SQL:
            raise Cannot("no quantiles")
        return lambda: _unpanicked(lambda: answer(name))

    return f"Qrlew (pyqrlew) {importlib.metadata.version('pyqrlew')} on DuckDB {duckdb.__version__}", asked


def _unpanicked(ask: Ask) -> Rows:
    """A panic of the library's Rust part is no Exception."""
    try:
        return ask()
    except Exception:
        raise
    except BaseException as panic:
        raise Cannot(f"panics: {panic}"[:200]) from None


def _declared(sizes: dict[str, int], told: dict[str, Any]) -> pyqrlew.Dataset:
    """The tables' types, and their sizes, which Qrlew takes as public; bounds and keys as declared."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        for name, columns in TABLES.items():
            connection.execute(text(f"CREATE TABLE {name} ({columns})"))
    empty = pyqrlew.Dataset.from_database("bench", engine)
    size = json.loads(empty.size)
    for field in size["statistics"]["union"]["fields"]:
        table = field["statistics"]["struct"]
        table["size"] = str(sizes[field["name"]])
        for column in table["fields"]:
            next(value for key, value in column["statistics"].items() if key != "name")["size"] = table["size"]
    inner = empty._dataset
    described = str(inner).split("\nSchema:", 1)[0].split("Dataset: ", 1)[1]
    dataset = pyqrlew.Dataset.from_str(described, inner.schema, json.dumps(size))
    dataset = dataset.with_range(None, "events", "amount", *map(float, told["amount"])).with_range(None, "users", "age", *map(float, told["age"]))
    dataset = dataset.with_possible_values(None, "events", "category", list(told["categories"]))
    dataset = dataset.with_possible_values(None, "events", "month", list(told["months"]))
    dataset = dataset.with_possible_values(None, "users", "country", list(told["countries"]))
    return dataset.with_constraint(None, "users", "user_id", "_UNIQUE_")


if __name__ == "__main__":
    serve(opened)
