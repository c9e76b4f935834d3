"""The questions of TPC-H and TPC-DS, restated for customers, from tpch.yaml and tpcds.yaml."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

HERE = Path(__file__).parent
SCHEMAS = HERE.parents[1] / "schemas"
SETS = {"tpch": "TPC-H"}
BUDGETS = re.compile(r"^(budget|per_query):.*\n", re.MULTILINE)
UNSAFE = "unsafe_testing: true\nbudget: {epsilon: 1e30, delta: 1000}\nper_query: {epsilon: 1e20, delta: 1, max_epsilon: 1e25}\n"
"""Noise off."""


@dataclass(frozen=True)
class Question:
    """`sql` is plain SQL, that of the private statement and, unless `plain` is given, of the plain answer; its first `keys` columns are keys."""

    id: str
    title: str
    sql: str
    keys: int
    options: str  # of the private statement's outermost SELECT
    asks: str  # how the question was restated, where it was
    refused: tuple[str, str] | None  # the code and the text of a form that is refused, for which `sql` is the rewrite
    plain: str  # what plain SQL asks where caps or bounds bite

    @property
    def private(self) -> str:
        """The statement with its contribution limits. A WITH query stands before the SELECT that has them."""
        if not self.options:
            return self.sql
        return self.sql.replace("SELECT", f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({self.options})", 1)


def questions(name: str) -> tuple[Question, ...]:
    """All of one set."""
    return tuple(_question(one) for one in YAML(typ="safe").load((HERE / f"{name}.yaml").read_text()))


def _question(given: dict[str, Any]) -> Question:
    fields = {"keys": 0, "options": "", "asks": "", "plain": given["sql"]} | given
    refused = fields.pop("refused", None)
    return Question(refused=(refused["code"], refused["sql"]) if refused else None, **fields)


def schema(name: str, folder: Path, budgets: str = "") -> Path:
    """The schema file beside the data, with other budgets where they are given."""
    text = (SCHEMAS / f"{name}.yaml").read_text()
    file = folder / f"{name}.yaml"
    file.write_text(budgets + BUDGETS.sub("", text) if budgets else text)
    return file
