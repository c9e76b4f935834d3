"""Whose each row is: units and the foreign-key paths that lead to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dpquery.schema.model import Table, ViaUnit
from dpquery.schema.where import Where, near
from dpquery.values.types import Kind, Type

KINDS: Final = (Kind.INTEGER, Kind.UUID, Kind.STRING)
MAX_HOPS: Final = 8


def unit_column(table: Table, tables: Mapping[str, Table]) -> tuple[Table, str]:
    """The table and column in which the unit of a private table's rows is found: its own, or the last one of its path."""
    for _ in range(MAX_HOPS + 1):
        match table.unit:
            case ViaUnit(table=parent):
                table = tables[parent]
            case str(name):
                return table, name
            case None:
                break
    raise ValueError("a path that leads to no unit")


def privacy_unit(text: str, tables: Mapping[str, Table], where: Where) -> tuple[str, str]:
    """The table and the column of `privacy_unit`; SchemaError unless it is the own unit column of a private table."""
    name, dot, key = text.partition(".")
    if not dot or not name or not key:
        raise where.error("BAD_UNIT", f"must be `table.column`, not `{text}`", "privacy_unit")
    table = tables.get(name)
    if table is None:
        raise where.error("BAD_UNIT", f"no table `{name}` is declared", "privacy_unit", instead=_hint(name, tables))
    if table.public:
        raise where.error(
            "BAD_UNIT", f"`{name}` is public, and nobody's data", "privacy_unit", instead="name the private table of the people to protect"
        )
    if key not in table.columns:
        raise where.error("BAD_UNIT", f"`{name}` has no column `{key}`", "privacy_unit", instead=_hint(key, table.columns))
    if table.unit != key:
        raise where.error("BAD_UNIT", f"`{key}` is not the unit of `{name}`", "privacy_unit", instead=f"write `unit: {key}` in `{name}`")
    return name, key


def owned(tables: Mapping[str, Table], where: Where) -> None:
    """Refuses private tables that do not say whose their rows are, and public ones that do."""
    for table in tables.values():
        _shape(table, where)


def check(tables: Mapping[str, Table], unit_type: Type, where: Where) -> None:
    """Refuses paths that lead nowhere, and units of another type than the data set's."""
    if unit_type.kind not in KINDS:
        raise where.error("BAD_UNIT", f"a unit is an integer, a uuid or a string, not a {unit_type.kind}", "privacy_unit")
    for table in tables.values():
        if isinstance(table.unit, ViaUnit):
            _hop(table, table.unit, tables, where)
    for table in tables.values():
        if not table.public:
            _lead(table, tables, where)
            holder, column = unit_column(table, tables)
            kind = holder.columns[column].type
            if kind != unit_type:
                message = f"`{holder.name}.{column}` is a {kind}, but the privacy unit a {unit_type.kind}; equal units could look different"
                raise where.error("BAD_UNIT", message, "tables", table.name, "unit", instead="give all unit columns one type, in the data too")


def _shape(table: Table, where: Where) -> None:
    path = ("tables", table.name)
    if table.public:
        if table.unit is not None:
            raise where.error("BAD_UNIT", "a public table has no unit", *path, "unit", instead="leave out `unit`, or `public: true`")
        return
    if table.unit is None:
        raise where.error(
            "BAD_UNIT",
            "says neither whose its rows are nor that it is public",
            *path,
            instead="write `unit: column`, or `public: true` where it is nobody's data",
        )
    if isinstance(table.unit, str) and table.unit not in table.columns:
        raise where.error("BAD_UNIT", f"no column `{table.unit}` is declared here", *path, "unit", instead=_hint(table.unit, table.columns))


def _hop(table: Table, unit: ViaUnit, tables: Mapping[str, Table], where: Where) -> None:
    path = ("tables", table.name, "unit")
    via = table.columns.get(unit.via)
    if via is None:
        raise where.error("BAD_PATH", f"no column `{unit.via}` is declared here", *path, "via", instead=_hint(unit.via, table.columns))
    parent = tables.get(unit.table)
    if parent is None:
        raise where.error("BAD_PATH", f"no table `{unit.table}` is declared", *path, "references", instead=_hint(unit.table, tables))
    if parent.public:
        raise where.error("BAD_PATH", f"`{unit.table}` is public: it has no unit", *path, "references", instead="refer to a private table")
    key = parent.columns.get(unit.key)
    if key is None:
        raise where.error("BAD_PATH", f"`{unit.table}` has no column `{unit.key}`", *path, "references", instead=_hint(unit.key, parent.columns))
    if not key.unique:
        raise where.error(
            "BAD_PATH",
            f"`{unit.table}.{unit.key}` is not unique",
            *path,
            "references",
            instead=f"write `unique: true` at `{unit.table}.{unit.key}`, if that is so",
        )
    if key.type != via.type:
        message = f"`{unit.via}` is a {via.type}, but `{unit.table}.{unit.key}` a {key.type}; nothing is cast along a path"
        raise where.error("BAD_PATH", message, *path, "via", instead="give both one type, in the data too")
    if key.type.kind not in KINDS:
        raise where.error("BAD_PATH", f"the key of a path is an integer, a uuid or a string, not a {key.type.kind}", *path, "references")


def _lead(table: Table, tables: Mapping[str, Table], where: Where) -> None:
    """Refuses a path that runs in a circle or over too many tables."""
    names, at = [table.name], table
    while isinstance(at.unit, ViaUnit):
        at = tables[at.unit.table]
        if at.name in names:
            circle = " -> ".join([*names[names.index(at.name) :], at.name])
            raise where.error("BAD_PATH", f"the path runs in a circle: {circle}", "tables", table.name, "unit")
        names.append(at.name)
    if len(names) > MAX_HOPS + 1:
        raise where.error("BAD_PATH", f"the path is longer than {MAX_HOPS} steps", "tables", table.name, "unit")


def _hint(name: str, known: Mapping[str, object]) -> str:
    close = near(name, known)
    return f"did you mean `{close}`?" if close else f"declared here: {', '.join(list(known)[:20])}"
