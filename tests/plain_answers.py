"""What plain DuckDB answers, for statements that are said to have one answer."""

from __future__ import annotations

import re
from decimal import Decimal

import duckdb
import sqlglot
from sqlglot.errors import SqlglotError

CLAUSE = re.compile(r"WITH\s+(?:DIFFERENTIAL_PRIVACY|ANONYMIZATION)\s+(?:OPTIONS\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*)?", re.IGNORECASE)


def answer(con: duckdb.DuckDBPyConnection, sql: str, dialect: str = "duckdb") -> list[tuple[str, ...]] | None:
    """The rows in some order, without what is said of privacy; None where it has no answer."""
    bare = CLAUSE.sub("", sql)
    try:
        text = bare if dialect == "duckdb" else sqlglot.transpile(bare, read=dialect, write="duckdb")[0]
        return sorted(tuple(_text(value) for value in row) for row in con.execute(text).fetchall())
    except (duckdb.Error, SqlglotError):
        return None


def _text(value: object) -> str:
    return f"{float(value):.9g}" if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else str(value)
