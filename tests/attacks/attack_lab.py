"""A small data set that is made afresh for each attack: people, what they ordered, what was in it, and two public tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from dpquery.engine import create_ledger, open_session
from dpquery.engine.session import Session
from dpquery.errors import Error

EXACT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1)"
SCHEMA = """
dataset: lab
source: {engine: duckdb, path: lab.duckdb}
privacy_unit: people.pid
{more}
contribution: {max_groups_contributed: 1000, max_rows_per_group: 1000}
tables:
  people:
    unit: pid
    max_rows_per_unit: 1
    columns:
      pid: {type: integer}
      age: {type: integer, lower: 0, upper: 120}
      country: {type: string}
      score: {type: float, lower: -1000, upper: 1000}
      born: {type: date}
      vip: {type: boolean}
  orders:
    unit: pid
    columns:
      oid: {type: integer, unique: true}
      pid: {type: integer}
      qty: {type: integer, lower: -100, upper: 100}
      note: {type: string}
      day: {type: date}
      price: {type: "decimal(10,2)", lower: -1000, upper: 1000}
  items:
    unit: {via: oid, references: orders.oid}
    columns:
      iid: {type: integer, unique: true}
      oid: {type: integer}
      weight: {type: integer, lower: 0, upper: 10}
  places: {public: true, columns: {country: {type: string}, region: {type: string}}}
  moments: {public: true, columns: {day: {type: date}, n: {type: integer}}}
"""
UNSAFE = "unsafe_testing: true\nbudget: {epsilon: 1e30, delta: 1000}\nper_query: {epsilon: 1e20, delta: 1, max_epsilon: 1e25}"
ORDINARY = "budget: {epsilon: 100, delta: 1e-3}\nper_query: {epsilon: 1, delta: 1e-6}"
DATA = """
CREATE TABLE people(pid INT, age INT, country VARCHAR, score DOUBLE, born DATE, vip BOOLEAN);
INSERT INTO people SELECT i, (i * 7) % 90, ['US', 'DE', 'FR', NULL][1 + i % 4], (i - 10) * 1.25, DATE '1950-01-01' + (i * 501)::INT,
  [true, false, NULL][1 + i % 3] FROM range(1, 25) t(i);
CREATE TABLE orders(oid INT, pid INT, qty INT, note VARCHAR, day DATE, price DECIMAL(10, 2));
INSERT INTO orders SELECT 100 + i, 1 + (i * 5) % 28, (i * 7) % 23 - 11, ['a', 'b', 'ab ', '', NULL][1 + i % 5], DATE '2023-12-20' + i::INT,
  (i * 13.37)::DECIMAL(10, 2) - 200 FROM range(60) t(i);
CREATE TABLE items(iid INT, oid INT, weight INT);
INSERT INTO items SELECT i, 95 + (i * 3) % 70, i % 11 FROM range(120) t(i);
CREATE TABLE places(country VARCHAR, region VARCHAR);
INSERT INTO places VALUES ('US', 'AM'), ('DE', 'EU'), ('FR', 'EU'), ('JP', 'AS');
CREATE TABLE moments(day DATE, n INT);
INSERT INTO moments SELECT DATE '2023-12-20' + i::INT, i FROM range(10) t(i);
"""


def made(folder: Path, data: str = DATA, more: str = UNSAFE, schema: str = SCHEMA, ledger: bool = True) -> Path:
    """The schema file of a data set in a folder of its own: a copy of the first one that is the same."""
    return Path(shutil.copytree(_first(data, schema.replace("{more}", more), ledger).name, folder, dirs_exist_ok=True)) / "lab.yaml"


@cache
def _first(data: str, schema: str, ledger: bool) -> TemporaryDirectory[str]:
    made = TemporaryDirectory()
    with duckdb.connect(f"{made.name}/lab.duckdb") as con:
        con.execute(data)
    file = Path(made.name, "lab.yaml")
    file.write_text(schema)
    if ledger:
        create_ledger(file)
    return made


@contextmanager
def opened(file: Path) -> Iterator[Session]:
    """A session on it."""
    session = open_session(file)
    try:
        yield session
    finally:
        session.close()


def rows(session: Session, sql: str, **how: Any) -> list[tuple[Any, ...]]:
    """The rows of an answer."""
    table = session.query(sql, **how).table
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def code(session: Session, sql: Any, **how: Any) -> str:
    """How a statement ends: the code of its error, or `answered`."""
    try:
        session.query(sql, **how)
    except Error as error:
        return error.code
    return "answered"


def explained(session: Session, sql: str, **how: Any) -> Mapping[str, Any]:
    """What EXPLAIN says."""
    return session.explain(sql, **how).as_dict()
