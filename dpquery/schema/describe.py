"""What an analyst may ask of, from the schema alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from dpquery.schema.model import Column, Schema, Table, ViaUnit
from dpquery.values.types import Value

SHOWN = 12  # keys that a summary lists


class ColumnInfo(NamedTuple):
    """One column in words: its type, its bounds and step, its public keys; empty where there are none."""

    name: str
    type: str
    bounds: str
    keys: str


@dataclass(frozen=True, slots=True)
class TableInfo:
    """One table. `unit` is the column, or the path, that says whose a row is; None for a public table. A view has no columns here, but its SELECT."""

    name: str
    public: bool
    unit: str | None
    columns: tuple[ColumnInfo, ...]
    declared: Table | None = field(repr=False)
    view: str | None = None

    def __str__(self) -> str:
        """The table on one line, with its columns and their types."""
        if self.view is not None:
            return f"{self.name}: view, {self.view}"
        whose = "public" if self.public else f"unit {self.unit}"
        return f"{self.name} ({whose}): {', '.join(f'{column.name} {column.type}' for column in self.columns)}"

    def as_dict(self) -> dict[str, object]:
        """The table for a machine; exact numbers as text."""
        if self.declared is None:
            return {"name": self.name, "public": False, "unit": None, "max_rows_per_unit": None, "columns": [], "view": self.view}
        columns = [_column(c) for c in self.declared.columns.values()]
        return {"name": self.name, "public": self.public, "unit": self.unit, "max_rows_per_unit": self.declared.max_rows_per_unit, "columns": columns}


def tables_info(schema: Schema) -> tuple[TableInfo, ...]:
    """The declared tables, in the order of the file, then the views."""
    views = (TableInfo(name, False, None, (), None, text) for name, text in schema.views.items())
    return (*(_table(table) for table in schema.tables.values()), *views)


def bounds_text(column: Column) -> str:
    """Bounds and step in words: `0 to 500, step 0.01`."""
    parts = []
    if column.lower is not None and column.upper is not None:
        parts.append(f"{column.lower:f} to {column.upper:f}")
    if column.step is not None:
        parts.append(f"step {column.step:f}")
    return ", ".join(parts)


def _table(table: Table) -> TableInfo:
    columns = tuple(ColumnInfo(c.name, str(c.type), bounds_text(c), _keys(c)) for c in table.columns.values())
    return TableInfo(table.name, table.public, _unit(table.unit), columns, table)


def _unit(unit: str | ViaUnit | None) -> str | None:
    return f"{unit.via} -> {unit.table}.{unit.key}" if isinstance(unit, ViaUnit) else unit


def _keys(column: Column) -> str:
    values = [_shown(v) for v in column.values or ()]
    return ", ".join(values[:SHOWN]) + (f", ... ({len(values):,} in all)" if len(values) > SHOWN else "")


def _shown(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)


def _column(column: Column) -> dict[str, object]:
    number = {key: None if (bound := getattr(column, key)) is None else f"{bound:f}" for key in ("lower", "upper", "step")}
    values = None if column.values is None else [None if v is None else _shown(v) for v in column.values]
    return {"name": column.name, "type": str(column.type), **number, "values": values, "unique": column.unique}
