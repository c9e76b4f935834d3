"""The questions of TPC-H and TPC-DS, restated for customers, from tpch.yaml and tpcds.yaml."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from ruamel.yaml import YAML

HERE = Path(__file__).parent
SCHEMAS = HERE.parents[1] / "schemas"
SETS = {"tpch": "TPC-H", "tpcds": "TPC-DS"}
BUDGETS = re.compile(r"^(budget|per_query):.*\n", re.MULTILINE)
LIMITS = re.compile(r"^  (max_groups_contributed|max_rows_per_group): \d+", re.MULTILINE)
SALES = {
    "store_sales": ("ss_customer_sk", "ss_ext_sales_price"),
    "store_returns": ("sr_customer_sk", "sr_return_amt"),
    "catalog_sales": ("cs_bill_customer_sk", "cs_ext_sales_price"),
    "web_sales": ("ws_bill_customer_sk", "ws_ext_sales_price"),
}
"""Whose a row is, and what lies beyond its bounds now and then."""
CLAMP = 8_000
CLAUSE = re.compile(r"WITH DIFFERENTIAL_PRIVACY OPTIONS\([^)]*\) ")
UNSAFE = "unsafe_testing: true\nbudget: {epsilon: 1e30, delta: 1000}\nper_query: {epsilon: 1e20, delta: 1, max_epsilon: 1e25}\n"
"""Noise off."""


@dataclass(frozen=True)
class Question:
    """One statement, for plain SQL and, with its contribution limits, for customers. The first `keys` columns are keys."""

    id: str
    title: str
    sql: str  # an inner SELECT has its limits written in
    keys: int
    options: str  # the limits of the outermost SELECT
    asks: str  # how the question was restated, where it was
    refused: tuple[str, str] | None  # the code and the text of a form that is refused, for which `sql` is the rewrite
    capped: str  # what plain SQL asks with the limits written out, for some

    @property
    def plain(self) -> str:
        """What plain SQL asks."""
        return CLAUSE.sub("", self.sql)

    @property
    def private(self) -> str:
        """With limits. Those of the outermost SELECT stand in the first WITH query, where there is one."""
        return self.sql.replace("SELECT", f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({self.options})", 1) if self.options else self.sql


def questions(name: str) -> tuple[Question, ...]:
    """All of one set."""
    return tuple(_question(one) for one in YAML(typ="safe").load((HERE / f"{name}.yaml").read_text()))


def _question(given: dict[str, Any]) -> Question:
    fields = {"keys": 0, "options": "", "asks": "", "capped": ""} | given
    refused = fields.pop("refused", None)
    return Question(refused=(refused["code"], refused["sql"]) if refused else None, **fields)


def schema(name: str, folder: Path, budgets: str = "") -> Path:
    """The schema file beside the data, with other budgets where they are given."""
    text = (SCHEMAS / f"{name}.yaml").read_text()
    file = folder / f"{name}.yaml"
    file.write_text(budgets + BUDGETS.sub("", text) if budgets else text)
    return file


def silent(name: str, folder: Path) -> Path:
    """The schema file with noise off, and limits that nobody reaches where a statement has none."""
    file = schema(name, folder, UNSAFE)
    file.write_text(LIMITS.sub(r"  \1: 1000", file.read_text()))
    return file


def plain(name: str, folder: Path, bounded: bool = False) -> duckdb.DuckDBPyConnection:
    """The data for plain SQL: of TPC-DS without the rows that are nobody's, and on demand within the schema's bounds."""
    con = duckdb.connect(str(folder / f"{name}.duckdb"), read_only=True)
    for table, (unit, priced) in SALES.items() if name == "tpcds" else ():
        clamped = f" REPLACE (least({priced}, {CLAMP}) AS {priced})" if bounded else ""
        con.execute(f"CREATE TEMP VIEW {table} AS SELECT *{clamped} FROM {name}.main.{table} WHERE {unit} IS NOT NULL")
    return con
