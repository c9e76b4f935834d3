"""Reads reference.csv: numbers of differential privacy from closed forms, mpmath, dp-accounting and OpenDP.

Columns: id, what is computed, inputs (JSON), the expected number, its relative tolerance (0: exact), and the source of the row.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("reference.csv")


@dataclass(frozen=True, slots=True)
class Row:
    """One number to reproduce."""

    id: str
    what: str
    inputs: Mapping[str, Any]
    expected: float
    tolerance: float
    source: str

    @property
    def family(self) -> str:
        """The words of the id before the first that holds a digit: `zcdp-eps-0.125-1e-06` is of the family `zcdp-eps`."""
        return "-".join(takewhile(lambda word: not any(c.isdigit() for c in word), self.id.split("-")))

    def is_met_by(self, value: float) -> bool:
        """Whether a value agrees within the row's tolerance."""
        return abs(value - self.expected) <= self.tolerance * abs(self.expected)


@cache
def rows() -> tuple[Row, ...]:
    """All rows, in the order of the file."""
    with PATH.open(newline="") as file:
        return tuple(
            Row(r["id"], r["what"], json.loads(r["inputs"]), float(r["expected"]), float(r["tolerance"]), r["source"]) for r in csv.DictReader(file)
        )


def rows_of(*families: str) -> tuple[Row, ...]:
    """The rows of some families."""
    return tuple(row for row in rows() if row.family in families)
