"""A small data set of people and their rows, its neighbours, and what the tests ask of them end to end."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpquery import ledger as ledgers
from dpquery.engine import data as versions
from dpquery.engine import open_session
from dpquery.engine.session import Session
from dpquery.errors import Error
from dpquery.mechanisms import BitSource, Noise
from dpquery.schema.read import read

UNIT = 8  # the person who is missing from the neighbour
NOISELESS = """
unsafe_testing: true
budget: {epsilon: 1e30, delta: 1000}
per_query: {epsilon: 1e20, delta: 1, max_epsilon: 1e25}
contribution: {max_groups_contributed: 5, max_rows_per_group: 20}
"""
ROOMY = NOISELESS.replace("max_rows_per_group: 20", "max_rows_per_group: 1000").replace("max_groups_contributed: 5", "max_groups_contributed: 50")
ORDINARY = """
budget: {epsilon: 4, delta: 1e-6}
analysts: {default: {epsilon: 2, delta: 5e-7}, bob: {epsilon: 2, delta: 5e-7}}
per_query: {epsilon: 0.5, delta: 1e-9, max_epsilon: 2}
contribution: {max_groups_contributed: 4, max_rows_per_group: 10}
"""
TABLES = """
tables:
  people:
    unit: pid
    max_rows_per_unit: 1
    columns:
      pid: {type: integer}
      age: {type: integer, lower: 0, upper: 120}
      country: {type: string}
      menu: {type: string, values: [US, DE, FR, JP]}
  visits:
    unit: pid
    columns:
      vid: {type: integer, unique: true}
      pid: {type: integer}
      day: {type: date}
      x: {type: float, lower: -10, upper: 10}
      k: {type: integer}
      s: {type: string}
  calls: {unit: pid, columns: {pid: {type: integer}, k: {type: integer}, y: {type: integer, lower: 0, upper: 100}}}
  items:
    unit: {via: vid, references: visits.vid}
    columns: {vid: {type: integer}, price: {type: decimal, lower: 0, upper: 50, step: 0.01}, p: {type: string}}
  codes: {public: true, columns: {k: {type: integer}, name: {type: string}}}
  regions: {public: true, columns: {country: {type: string}, region: {type: string}}}
"""
# Rows without an owner: of nobody, and of a visit that is not there. Two regions claim US. No code is 4.
DATA = """
CREATE TABLE people AS SELECT i::INT AS pid, (20 + i % 50)::INT AS age, c AS country, c AS menu
  FROM (SELECT i, ['US', 'DE', 'FR'][1 + i % 3] AS c FROM range(1, 41) t(i));
CREATE TABLE visits AS SELECT i::INT AS vid, (1 + i % 40)::INT AS pid, DATE '2024-01-01' + (i % 90)::INT AS day, (i % 17)::DOUBLE - 8 AS x,
  ((i // 40 + i) % 5)::INT AS k, 's' || (i % 7) AS s FROM range(1, 401) t(i);
INSERT INTO visits VALUES (1001, NULL, '2024-01-01', 1, 1, 's1'), (1002, NULL, '2024-01-02', 1, 2, 's2');
CREATE TABLE calls AS SELECT (1 + i % 30)::INT AS pid, ((i // 30 + i) % 5)::INT AS k, (i % 100)::INT AS y FROM range(1, 151) t(i);
CREATE TABLE items AS SELECT (1 + i % 400)::INT AS vid, (i % 60)::DECIMAL(9,2) AS price, 'p' || (i % 4) AS p FROM range(800) t(i);
INSERT INTO items VALUES (5000, 1, 'p1'), (NULL, 1, 'p1'), (1001, 1, 'p1');
CREATE TABLE codes AS SELECT * FROM (VALUES (0, 'a'), (1, 'a'), (2, 'b'), (3, 'b'), (9, 'c')) t(k, name);
CREATE TABLE regions AS SELECT * FROM (VALUES ('US', 'AM'), ('US', 'AM2'), ('DE', 'EU'), ('FR', 'EU')) t(country, region);
"""
WITHOUT = f"""
DELETE FROM items WHERE vid IN (SELECT vid FROM visits WHERE pid = {UNIT});
DELETE FROM visits WHERE pid = {UNIT};
DELETE FROM calls WHERE pid = {UNIT};
DELETE FROM people WHERE pid = {UNIT};
"""
EMPTY = "DELETE FROM items; DELETE FROM visits; DELETE FROM calls; DELETE FROM people;"


def write(folder: Path, data: str = DATA, tables: str = TABLES, terms: str = NOISELESS, name: str = "people") -> Path:
    """A schema file with its DuckDB file beside it; no ledger yet."""
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(folder / f"{name}.duckdb")) as con:
        con.execute(data)
    unit = re.search(r"unit: (\w+)", tables)
    first = re.search(r"^  (\w+):", tables, re.MULTILINE)
    assert unit is not None
    assert first is not None
    head = f"dataset: {name}\nsource: {{engine: duckdb, path: {name}.duckdb}}\nprivacy_unit: {first[1]}.{unit[1]}\n"
    (folder / f"{name}.yaml").write_text(head + terms + tables)
    return folder / f"{name}.yaml"


def made(folder: Path, data: str = DATA, tables: str = TABLES, terms: str = NOISELESS, name: str = "people") -> Path:
    """A schema file with data and an unspent ledger. The data fits, so that no engine is started to look it up."""
    schema = write(folder, data, tables, terms, name)
    known = read(schema)
    ledgers.create(known, fingerprint=versions.fingerprint(known), identity=versions.identity(known))
    return schema


def copied(schema: Path, folder: Path) -> Path:
    """The data set, its unspent ledger with it, in a folder of its own: cheaper than making it anew."""
    return Path(shutil.copytree(schema.parent, folder)) / schema.name


@contextmanager
def opened(*schemas: Path, analyst: str | None = None) -> Iterator[tuple[Session, ...]]:
    """Sessions, closed at the end."""
    sessions = tuple(open_session(schema, analyst) for schema in schemas)
    try:
        yield sessions
    finally:
        for one in sessions:
            one.close()


def rows(session: Session, sql: str, **price: Any) -> list[tuple[Any, ...]]:
    """The rows of an answer."""
    columns = [column.to_pylist() for column in session.query(sql, **price).table.columns]
    return list(zip(*columns, strict=True))


def agrees(session: Session, schema: Path, sql: str) -> None:
    """The answer is DuckDB's own, its rows in order."""
    with duckdb.connect(str(schema.with_suffix(".duckdb")), read_only=True) as con:
        assert rows(session, sql) == con.execute(sql).fetchall()


def one(session: Session, sql: str, **price: Any) -> Any:
    """The single value of an answer."""
    ((value,),) = rows(session, sql, **price)
    return value


def code(session: Session, sql: str, **price: Any) -> str:
    """The code with which a statement fails, before anything is charged."""
    before = session.budget().entries
    with pytest.raises(Error) as failed:
        session.query(sql, **price)
    assert session.budget().entries == before, "nothing is charged"
    return failed.value.code


def shown(session: Session, sql: str, **price: Any) -> Mapping[str, Any]:
    """What EXPLAIN says, but for the salt, which is drawn anew each time."""
    found = session.explain(sql, **price).as_dict()
    return {**found, "sql": re.sub(r"\d+::UBIGINT", "SALT", found["sql"])}


def noise_of(value: int) -> Callable[[Noise, int, BitSource], list[int]]:
    """Stands in for the sampler: every draw is this value."""
    return lambda noise, count, bits: [value] * count
