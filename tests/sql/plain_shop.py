"""Small data of the SQL tests' schema in plain DuckDB."""

from __future__ import annotations

from functools import cache

import duckdb
from sql_shop import schema

ROWS = """
CREATE TABLE users AS SELECT i AS user_id, (i * 37) % 90 AS age, ['US', 'DE', 'FR', 'JP'][1 + i % 4] AS country, ['Ulm', 'x'][1 + i % 2] AS city
  FROM range(12) t(i);
CREATE TABLE orders AS SELECT i AS order_id, i * i % 11 AS user_id, CAST(i * 17 % 60 AS DECIMAL(18, 2)) AS amount, i * 0.5 AS weight,
  i % 3 = 0 AS paid, DATE '2024-01-06' + CAST(i * 5 AS INTEGER) AS day, ['web', 'shop', 'fax'][1 + i % 3] AS channel FROM range(40) t(i);
CREATE TABLE order_items AS SELECT i % 40 AS order_id, ['pen', 'ink'][1 + i % 2] AS product, CAST(i * 13 % 50 AS DECIMAL(18, 2)) AS price
  FROM range(60) t(i);
CREATE TABLE countries AS SELECT * FROM (VALUES ('US', 'west', 30), ('DE', 'east', 8), ('FR', 'east', 60)) t(country, region, people);
CREATE TABLE regions AS SELECT * FROM (VALUES ('west', 'Ann'), ('east', 'Bo')) t(region, boss);
CREATE TABLE days AS SELECT DATE '2024-01-01' + CAST(i AS INTEGER) AS day, i % 7 = 0 AS holiday FROM range(99) t(i);
CREATE VIEW calendar AS SELECT * FROM days;
"""


@cache
def plain_shop() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(ROWS)
    for name in ("big_orders", "places", "per_user"):
        con.execute(f"CREATE VIEW {name} AS {schema().views[name]}")
    return con
