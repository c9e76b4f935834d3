"""Tumult Analytics on Spark in one process, over cached frames. A query is one aggregate: several share the price."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lines import Ask, Rows, serve
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    MaxRowsPerID,
    QueryBuilder,
    Session,
)


def opened(folder: Path, told: dict[str, Any]) -> tuple[str, Callable[[str, Any], Ask]]:
    warnings.simplefilter("ignore")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    threads = told["threads"]
    builder = SparkSession.builder.master(f"local[{threads}]").config("spark.sql.shuffle.partitions", 2 * threads).config("spark.driver.memory", "6g")
    builder = builder.config("spark.sql.warehouse.dir", tempfile.mkdtemp(prefix="warehouse-"))
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    month = f.date_format(f.trunc("day", "month"), "yyyy-MM-dd")
    events = spark.read.parquet(str(folder / "events.parquet")).withColumn("month", month).drop("day").cache()
    users = spark.read.parquet(str(folder / "users.parquet")).select("user_id", "country", "age").cache()
    print(events.count(), users.count())

    def asked(name: str, _: Any) -> Ask:
        return lambda: _answer(name, events, users, told)

    return f"Tumult Analytics {importlib.metadata.version('tmlt.analytics')} on Spark {spark.version}", asked


def _answer(name: str, events: Any, users: Any, told: dict[str, Any]) -> Rows:
    budget = ApproxDPBudget(told["epsilon"], told["delta"])
    session = Session.Builder().with_privacy_budget(budget).with_id_space("people")
    session = session.with_private_dataframe("events", events, protected_change=AddRowsWithID("user_id", "people"))
    session = session.with_private_dataframe("users", users, protected_change=AddRowsWithID("user_id", "people")).build()
    rows, groups, (low, high), (young, old) = told["rows_per_group"], told["groups"], told["amount"], told["age"]
    by: list[str] = {"public": ["category"], "distinct": ["category"], "private": ["key"], "months": ["category", "month"]}.get(name, ["country"])
    if name in ("total", "median"):
        start = QueryBuilder("events").enforce(MaxRowsPerID(rows))
        asks = [start.count(name="n") if name == "total" else start.median("amount", low, high, name="q")]
        by = []
    elif name == "users":
        start = QueryBuilder("users").enforce(MaxRowsPerID(1)).groupby(_keys(told, by))
        asks = [start.count(name="n"), start.average("age", young, old, name="m")]
    elif name == "join":
        start = QueryBuilder("events").join_private("users", join_columns=["user_id"])
        start = start.enforce(MaxGroupsPerID("country", 1)).enforce(MaxRowsPerGroupPerID("country", rows)).groupby(_keys(told, by))
        asks = [start.count(name="n"), start.sum("amount", low, high, name="s")]
    else:
        asks = _by_groups(name, by, session, told, groups, rows)
    spent = session.remaining_privacy_budget
    share = ApproxDPBudget(spent.epsilon / len(asks), spent.delta / len(asks))
    found: dict[tuple[Any, ...], list[Any]] = {}
    for query in asks:
        for row in session.evaluate(query, share).collect():
            found.setdefault(tuple(row[key] for key in by), []).append(row[len(by)])
    return list(found.items())


def _by_groups(name: str, by: list[str], session: Any, told: dict[str, Any], groups: int, rows: int) -> list[Any]:
    start = QueryBuilder("events")
    if len(by) == 1:
        start = start.enforce(MaxGroupsPerID(by[0], groups)).enforce(MaxRowsPerGroupPerID(by[0], rows))
    else:  # its limit on groups is of one column; rows in all hold for any number of them
        start = start.enforce(MaxRowsPerID(groups * rows))
    if name == "private":
        selecting = ApproxDPBudget(told["epsilon"] / 3, told["delta"])
        keys = KeySet.from_dataframe(session.evaluate(start.get_groups(by), selecting))
    else:
        keys = _keys(told, by)
    start = start.groupby(keys)
    if name == "distinct":
        return [start.count_distinct(["user_id"], name="n")]
    low, high = told["amount"]
    asks = [start.count(name="n"), start.sum("amount", low, high, name="s")]
    return [*asks, start.average("amount", low, high, name="m")] if name == "public" else asks


def _keys(told: dict[str, Any], by: list[str]) -> KeySet:
    lists = {"category": told["categories"], "month": told["months"], "country": told["countries"]}
    return KeySet.from_dict({name: list(lists[name]) for name in by})


if __name__ == "__main__":
    serve(opened)
