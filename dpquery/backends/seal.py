"""A sealed engine: no files, no network, no extensions, no settings, fixed semantics, bounded memory.

Imports nothing but the engine, so that a worker starts fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

# What an answer depends on never comes from an environment or an engine's default.
PINNED: Mapping[str, str] = {
    "TimeZone": "'UTC'",
    "Calendar": "'gregorian'",
    "integer_division": "false",
    "ieee_floating_point_ops": "true",
    "null_order": "'NULLS_LAST'",
    "default_order": "'ASCENDING'",
    "default_collation": "''",
    "order_by_non_integer_literal": "false",
    "scalar_subquery_error_on_multiple_rows": "true",
    "parquet_can_have_nan": "true",  # else whether a NaN passes a filter depends on other rows of its row group
    "binary_as_string": "false",
    "arrow_lossless_conversion": "false",
    "python_enable_replacements": "false",
    "python_scan_all_frames": "false",
    "enable_progress_bar": "false",
    "enable_logging": "false",
}

# Rewrites that change what a statement means. `type_pushdown` has a CSV reader cast what TRY_CAST would make NULL: one line's text then fails all.
UNSOUND = frozenset({"type_pushdown"})


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the engine may use: bytes of memory, threads, and a folder to spill to (None: none)."""

    memory: int
    threads: int
    folder: str | None = None


def connect(allowance: Allowance) -> duckdb.DuckDBPyConnection:
    """A fresh in-memory engine with fixed semantics, not sealed yet."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "allow_unsigned_extensions": "false",
        "allow_persistent_secrets": "false",
        "memory_limit": f"{allowance.memory // 1024}KiB",
        "threads": str(allowance.threads),
        "temp_directory": allowance.folder or "",
        "max_temp_directory_size": f"{allowance.memory * 4 // 1024 if allowance.folder else 0}KiB",
    }
    con = duckdb.connect(":memory:", config=config)
    for name, value in PINNED.items():
        con.execute(f"SET {name} = {value}")
    known = {name for (name,) in con.execute("SELECT name FROM duckdb_optimizers()").fetchall()}
    con.execute(f"SET disabled_optimizers = '{','.join(sorted(UNSOUND & known))}'")
    return con


def unopened(error: duckdb.Error) -> str:
    """The code of a failure to open a source."""
    locked = isinstance(error, duckdb.IOException) and "could not set lock" in str(error).lower()
    return "DATA_LOCKED" if locked else "DATA_UNREADABLE"


def seal(con: duckdb.DuckDBPyConnection) -> None:
    """Nothing; from now on the engine opens no file but those it was allowed by name, and no setting can be changed."""
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")
