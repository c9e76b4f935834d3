"""What a source really holds, as its catalogue says: filled in by a backend's inspection, read by `check` and `draft`. No row's value is in here."""

from __future__ import annotations

import string
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_LETTERS: Final = {ord(c): c.lower() for c in string.ascii_uppercase}


def folded(name: str) -> str:
    """A name as the engine compares it: the letters A to Z may have either case; no other signs are alike, such as a k and the sign for kelvin."""
    return name.translate(_LETTERS)


class PhysicalKind(StrEnum):
    """What stands behind a table's name."""

    TABLE = "table"  # a base table of the database
    VIEW = "view"  # a physical view or a table macro
    PARQUET = "parquet"
    CSV = "csv"  # every column is text until the scan casts it
    OTHER = "other"  # a temporary, system or foreign table


@dataclass(frozen=True, slots=True)
class PhysicalColumn:
    """One column. `type` is the engine's spelling in upper case: `BIGINT`, `DECIMAL(10,2)`, `TIMESTAMP WITH TIME ZONE`, `STRUCT(...)`.

    An ENUM's type is plain `ENUM`: its members may be private. `not_null` counts only where the engine enforces it. `collation` is None where
    text is compared by its bytes. `sql` reads the column as the engine's scans do, total casts included: quoted names, free of analysts' text.
    """

    name: str
    type: str
    sql: str
    not_null: bool = False
    generated: bool = False
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class PhysicalTable:
    """One table. `relation` is what may stand after FROM. `unique` names the columns that each alone bear an enforced, validated UNIQUE or
    PRIMARY KEY. `files` lists the files behind it, absolute, in a fixed order: its own, or the one of its database. `misread`, of CSV files, asks of
    each declared column in turn whether all of its texts, and whether some, cannot be read as its type; `delimiter` is what their first line has.
    """

    name: str
    kind: PhysicalKind
    relation: str
    columns: tuple[PhysicalColumn, ...]
    unique: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()
    misread: str | None = None
    delimiter: str = ","

    def column(self, name: str) -> PhysicalColumn | None:
        """The column of that name, as the engine finds it: whatever its case."""
        return next((c for c in self.columns if folded(c.name) == folded(name)), None)
