"""A data set of people and their orders for measurements of sensitivity, noise and error bars: schema and tables."""

from __future__ import annotations

from collections.abc import Sequence

SCHEMA = """
dataset: claims
source: {engine: duckdb, path: lab.duckdb}
privacy_unit: people.pid
{more}
contribution: {max_groups_contributed: 2, max_rows_per_group: 2}
tables:
  people:
    unit: pid
    max_rows_per_unit: 1
    columns: {pid: {type: integer}, c: {type: string, values: [a, b, c]}, age: {type: integer, lower: 1, upper: 5}}
  orders:
    unit: pid
    columns:
      pid: {type: integer}
      k: {type: string}
      signed: {type: integer, lower: -2, upper: 3}
      plus: {type: integer, lower: 2, upper: 4}
      real: {type: float, lower: -1, upper: 1}
      money: {type: "decimal(6,2)", lower: -1, upper: 2}
  places: {public: true, columns: {k: {type: string}, r: {type: string}}}
"""
DATA = """
CREATE TABLE people(pid INT, c VARCHAR, age INT);
CREATE TABLE orders(pid INT, k VARCHAR, signed INT, plus INT, real DOUBLE, money DECIMAL(6, 2));
CREATE TABLE places(k VARCHAR, r VARCHAR);
INSERT INTO places VALUES ('a', 'x'), ('a', 'y'), ('b', 'x'), ('c', 'z');
"""
Rows = Sequence[tuple[object, ...]]


def inserted(table: str, rows: Rows) -> str:
    """The statement that puts rows into a table."""
    return f"INSERT INTO {table} VALUES " + ", ".join("(" + ", ".join("NULL" if v is None else repr(v) for v in row) + ")" for row in rows) + ";\n"
