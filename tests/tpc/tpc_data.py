"""The data that the questions are asked of, made at any scale."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb

TPCH = ("customer", "orders", "lineitem", "part", "supplier", "partsupp", "nation", "region")


def tpch(folder: Path, scale: float) -> None:
    """tpch.duckdb, with what the package tpchgen-cli makes: 150,000 customers at scale 1, two thirds of them with orders."""
    generator = Path(sys.executable).with_name("tpchgen-cli")
    subprocess.run([generator, "parquet", "--scale-factor", str(scale), "--output-dir", folder / "parquet", "--quiet"], check=True)
    with duckdb.connect(str(folder / "tpch.duckdb")) as con:
        for table in TPCH:
            con.execute(f"CREATE TABLE {table} AS FROM read_parquet('{folder}/parquet/{table}.parquet')")
