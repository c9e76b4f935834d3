"""A small shop: its schema and its DuckDB file."""

from __future__ import annotations

from pathlib import Path

import duckdb

from dpquery.schema.model import Schema
from dpquery.schema.read import read

TABLES = """
tables:
  users:
    unit: uid
    max_rows_per_unit: 1
    columns: {uid: {type: integer}, country: {type: string}}
  orders:
    unit: uid
    columns: {oid: {type: integer, unique: true}, uid: {type: integer}, amount: {type: float, lower: 0, upper: 100}}
  regions: {public: true, columns: {country: {type: string}, region: {type: string}}}
"""
HEAD = "dataset: shop\nprivacy_unit: users.uid\nbudget: {epsilon: 1, delta: 1e-6}\n"
DATA = """
CREATE TABLE users AS SELECT i AS uid, ['US', 'DE', 'FR'][1 + i % 3] AS country FROM range(1, 31) t(i);
CREATE TABLE orders AS SELECT i AS oid, 1 + i % 30 AS uid, (i * 7 % 100)::DOUBLE AS amount FROM range(300) t(i);
CREATE TABLE regions(country VARCHAR, region VARCHAR);
INSERT INTO regions VALUES ('US', 'AM'), ('DE', 'EU'), ('FR', 'EU');
"""


def write(folder: Path, limits: str = "{timeout: 20, memory: 512MB, threads: 2}", data: str = DATA) -> Schema:
    """A schema with its DuckDB file beside it."""
    with duckdb.connect(str(folder / "shop.duckdb")) as con:
        con.execute(data)
    (folder / "shop.yaml").write_text(f"{HEAD}source: {{engine: duckdb, path: shop.duckdb}}\nlimits: {limits}\n{TABLES}")
    return read(folder / "shop.yaml")
