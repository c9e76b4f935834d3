"""The fingerprint of what a schema says, however it is laid out."""

from __future__ import annotations

import datetime
import hashlib
import json
import uuid
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

from dpquery.schema.model import Model, Schema, Table
from dpquery.values.types import Type


def digest(schema: Schema) -> str:
    """The SHA-256 of the schema's canonical JSON: comments, layout, spelling of numbers the file's own path and the ledger's left out."""
    text = json.dumps(_canonical(schema), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: object) -> Any:
    """The value in JSON: exact numbers as fractions, columns as a list, because their order is what `SELECT *` shows."""
    match value:
        case Schema():
            return {key: _canonical(part) for key, part in value if key not in ("file", "digest", "ledger")}
        case Table():
            return {key: _canonical(tuple(part.values()) if key == "columns" else part) for key, part in value}
        case Model():
            return {key: _canonical(part) for key, part in value}
        case dict():
            return {str(key): _canonical(part) for key, part in value.items()}
        case tuple() | list():
            return [_canonical(part) for part in value]
        case Enum():
            return value.value
        case Type():
            return str(value)
        case None | bool() | str():
            return value
        case int() | Decimal():
            return str(Fraction(value))
        case float():
            return value.hex()
        case datetime.date() | uuid.UUID():
            return str(value)
        case _:
            raise TypeError(type(value).__name__)


def promises(schema: Schema) -> str:
    """The SHA-256 of what only a look at the data can confirm: tables, whose their rows are, columns and types, unique keys, one row per unit.

    Bounds, listed values and limits on contributions are left out: statements enforce them.
    """
    text = json.dumps([_promised(schema.tables[name]) for name in sorted(schema.tables)], separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _promised(table: Table) -> Any:
    columns = [(c.name, str(c.type), c.unique) for c in table.columns.values()]
    one_row = table.max_rows_per_unit == 1
    return [table.name, table.physical, table.public, _canonical(table.unit), one_row, _canonical(table.files), sorted(columns)]
