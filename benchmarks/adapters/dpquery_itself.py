"""dpquery: a warm session, as a notebook or a server has one. Each question draws new noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lines import Ask, Rows, serve

import dpquery
from dpquery.engine import create_ledger, open_session

SCHEMA = """
dataset: events
privacy_unit: users.user_id
budget: {{epsilon: 1000000, delta: 0.9}}
per_query: {{epsilon: {epsilon}, max_epsilon: 50, delta: {delta}}}
contribution: {{max_groups_contributed: {groups}, max_rows_per_group: {rows_per_group}}}
limits: {{threads: {threads}, timeout: 3600, memory: {memory}}}
tables:
  users:
    path: users.parquet
    unit: user_id
    max_rows_per_unit: 1
    columns:
      user_id: {{type: integer}}
      country: {{type: string, values: [{countries}]}}
      age: {{type: integer, lower: {age[0]}, upper: {age[1]}}}
      segment: {{type: string}}
  events:
    path: events.parquet
    unit: user_id
    columns:
      user_id: {{type: integer}}
      category: {{type: string, values: [{categories}]}}
      amount: {{type: float, lower: {amount[0]}, upper: {amount[1]}, step: 0.01}}
      key: {{type: integer}}
      day: {{type: date}}
"""


def schema(told: dict[str, Any]) -> str:
    return SCHEMA.format(**{"memory": "8GB", **told, "categories": ", ".join(told["categories"]), "countries": ", ".join(told["countries"])})


def opened(folder: Path, told: dict[str, Any]) -> tuple[str, Callable[[str, Any], Ask]]:
    file = folder / "dpquery" / "events.yaml"
    file.parent.mkdir(exist_ok=True)
    for old in file.parent.iterdir():
        old.unlink()
    for name in ("events", "users"):
        (file.parent / f"{name}.parquet").hardlink_to(folder / f"{name}.parquet")
    file.write_text(schema(told))
    create_ledger(file)
    session = open_session(file)

    def rows(keys: int, sql: str) -> Rows:
        table = session.query(sql, fresh=True).table
        columns = [table.column(i).to_pylist() for i in range(table.num_columns)]
        return [([_text(k) for k in row[:keys]], row[keys:]) for row in zip(*columns, strict=True)]

    return f"dpquery {dpquery.__version__}", lambda name, asked: lambda: rows(asked["keys"], asked["sql"])


def _text(key: Any) -> str:
    return str(key)[:10] if hasattr(key, "year") else str(key)


if __name__ == "__main__":
    serve(opened)
