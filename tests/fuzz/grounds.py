"""Small data sets that statements are put to, each with statements that are known to fit it: those of cases, attacks, documents and the grammar."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
from ruamel.yaml import YAML

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
UNSAFE: Mapping[str, Any] = {
    "unsafe_testing": True,
    "budget": {"epsilon": 1e30, "delta": 1e6},
    "per_query": {"epsilon": 1e20, "delta": 1, "max_epsilon": 1e25},
    "limits": {"timeout": 20, "memory": "1GB", "threads": 1, "timeouts_per_account": 1000},
}
ROWS = 24
VALUES = {"string": "['a', 'b', 'ab ', '', NULL]", "float": "[0.5, -1e300, 'nan'::DOUBLE, 7, NULL]", "boolean": "[true, false, NULL]"}
PHYSICAL = {"string": "VARCHAR", "float": "DOUBLE", "integer": "BIGINT", "decimal": "DECIMAL(12, 2)"}


@dataclass(frozen=True)
class Ground:
    """A data set in the making: its schema's text, what fills the database, and the statements to start from."""

    name: str
    schema: str
    fill: Callable[[duckdb.DuckDBPyConnection], None]
    statements: tuple[str, ...]


# ---- data ----------------------------------------------------------------------------------------------------------------------------


def unsafe(schema: str, *without: str) -> dict[str, Any]:
    """A schema file's content with the limits lifted, and without some of its views."""
    plain = {**YAML(typ="safe").load(schema), **UNSAFE}
    plain.pop("analysts", None)
    plain["views"] = {name: text for name, text in plain.get("views", {}).items() if name not in without}
    return plain


def filled(schema: Mapping[str, Any]) -> Callable[[duckdb.DuckDBPyConnection], None]:
    """Some rows in each declared table, of the declared types."""

    def fill(con: duckdb.DuckDBPyConnection) -> None:
        for name, table in schema["tables"].items():
            items = [f'{_cell(column, table, spec)} AS "{column}"' for column, spec in table["columns"].items()]
            con.execute(f'CREATE TABLE "{table.get("table", name)}" AS SELECT {", ".join(items)} FROM range({ROWS}) t(i)')

    return fill


def _cell(name: str, table: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    kind = str(spec["type"]).partition("(")[0]
    physical = PHYSICAL.get(kind, kind.upper())
    if spec.get("unique") or (table.get("max_rows_per_unit") == 1 and name == table["unit"]):
        return f"i::{physical}"
    if "values" in spec:
        listed = [f"'{value}'" for value in spec["values"]]
        return f"[{', '.join(listed)}][1 + i % {len(listed)}]::{physical}"
    if kind == "date":
        return "DATE '2023-12-28' + (i % 9)::INT"
    if kind == "timestamp":
        return "TIMESTAMP '2023-12-28 23:00:00' + INTERVAL (i) HOUR"
    return f"{VALUES[kind]}[1 + i % {VALUES[kind].count(',') + 1}]::{physical}" if kind in VALUES else f"(i * 7 % 11 - 1)::{physical}"


def sql(text: str) -> Callable[[duckdb.DuckDBPyConnection], None]:
    """The data of a script."""

    def fill(con: duckdb.DuckDBPyConnection) -> None:
        con.execute(text)

    return fill


# ---- statements ----------------------------------------------------------------------------------------------------------------------


def _cases(fixture: str) -> Iterator[str]:
    for case in json.loads((TESTS / "cases/cases.json").read_text()):
        if case["fixture"] == fixture:
            yield case["sql"]


def _documents() -> Iterator[str]:
    """The blocks of the documents that are marked as SQL, and the statements of the table of refusals."""
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]):
        text = page.read_text()
        for block in re.findall(r"^```sql[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            yield from block.split(";\n")
        yield from re.findall(r"`(SELECT [^`]+)`", text)


def _sources(*folders: str) -> Iterator[str]:
    """Whatever looks like a statement in tests' sources; the places that a template leaves open hold a column."""
    for folder in folders:
        for path in sorted((TESTS / folder).glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and "select" in node.value.lower() and len(node.value) < 1000:
                    yield re.sub(r"\{\w*\}", "country", node.value)


def _files() -> Iterator[str]:
    for path in sorted((TESTS / "sql/cases").glob("*.yaml")):
        for case in YAML(typ="safe").load(path):
            yield case["sql"]


def _tidy(statements: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.strip() for text in statements if text.strip()))


@cache
def foreign() -> tuple[str, ...]:
    """Statements of all grounds that are written down, to take parts of."""
    return _tidy(chain(_documents(), _files(), _sources("attacks"), *map(_cases, ("base", "wide", "silent"))))


# ---- the grounds ---------------------------------------------------------------------------------------------------------------------


def shop() -> Ground:
    """The sample shop, small, with the statements of the documents."""
    schema = unsafe((ROOT / "schemas/shop.yaml").read_text())
    return Ground("shop", json.dumps(schema), filled(schema), _tidy(_documents()))


def files() -> Ground:
    """The schema of the case files, one file a construct."""
    schema = unsafe((TESTS / "sql/sql_shop.yaml").read_text(), "circle", "broken", "per_user")
    return Ground("files", json.dumps(schema), filled(schema), _tidy(_files()))


def cases(name: str) -> Ground:
    """A fixture of the end-to-end cases: base, wide or silent."""
    schema = unsafe((TESTS / f"cases/{name}.yaml").read_text())
    more = iter((TESTS / "cases/silent_clauses.sql").read_text().splitlines()) if name == "silent" else iter(())
    return Ground(name, json.dumps(schema), sql((TESTS / f"cases/{name}.sql").read_text()), _tidy(iter([*_cases(name), *more])))


def lab() -> Ground:
    """The data set of the attacks, with their statements and those of the pitfalls."""
    sys.path.append(str(TESTS / "attacks"))
    from attack_lab import DATA, SCHEMA, UNSAFE

    return Ground("lab", json.dumps(unsafe(SCHEMA.replace("{more}", UNSAFE))), sql(DATA), _tidy(_sources("attacks", "pitfalls")))


def random(seed: int, statements: int = 60) -> Ground:
    """A random data set full of extreme values, with random statements of the grammar."""
    sys.path.append(str(TESTS / "statements"))
    from relations import views
    from statements import statement
    from worlds import FUZZED, world

    made = world(seed)
    views(made)
    texts = tuple(statement(made, f"{seed}/{i}").dp for i in range(statements))
    shown = {name: made.schema.views[name] for name in made.schema.views}

    def fill(con: duckdb.DuckDBPyConnection) -> None:
        for table in made.tables.values():
            names = [f'"{c.name}"' for c in table.columns]
            con.execute(f'CREATE TABLE "{table.name}" ({", ".join(f"{n} {c.physical}" for n, c in zip(names, table.columns, strict=True))})')
            texts = ", ".join(f"CAST({name} AS VARCHAR)" for name in names)
            for row in made.con.sql(f'SELECT {texts} FROM {FUZZED}.main."{table.name}"').fetchall():
                con.execute(f'INSERT INTO "{table.name}" VALUES ({", ".join("?" * len(row))})', row)

    return Ground(f"world-{seed}", json.dumps({**YAML(typ="safe").load(made.text), **UNSAFE, "views": shown}), fill, texts)


NAMED: Mapping[str, Callable[[], Ground]] = {
    "shop": shop,
    "files": files,
    "lab": lab,
    **{name: lambda name=name: cases(name) for name in ("base", "wide", "silent")},
    **{f"world-{seed}": lambda seed=seed: random(seed) for seed in range(1, 9)},
}
"""Every ground by its name."""


def ground(name: str) -> Ground:
    """The ground of that name."""
    return NAMED[name]()
