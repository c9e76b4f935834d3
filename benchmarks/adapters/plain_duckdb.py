"""Plain DuckDB, without any privacy; the floor is asked of it too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
from lines import Ask, Rows, serve


def opened(folder: Path, told: dict[str, Any]) -> tuple[str, Callable[[str, Any], Ask]]:
    con = duckdb.connect(config={"threads": told["threads"], **told.get("config", {})})
    for name in ("events", "users"):
        con.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{folder / name}.parquet')")

    def rows(keys: int, sql: str) -> Rows:
        return [([_text(k) for k in row[:keys]], row[keys:]) for row in con.execute(sql).fetchall()]

    return f"DuckDB {duckdb.__version__}", lambda name, asked: lambda: rows(asked["keys"], asked["sql"])


def _text(key: Any) -> str:
    return str(key)[:10] if hasattr(key, "year") else str(key)


if __name__ == "__main__":
    serve(opened)
