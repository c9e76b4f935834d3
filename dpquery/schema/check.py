"""The schema held against the data, for the owner's eyes only. Invariants that no query can enforce are looked up in the rows; what is found there is
said without a value or a count, and values outside declared bounds are not looked for: they are clamped. What holds, but is likely not meant, is a
warning: a large delta, values that a list leaves out, no limit on what a unit contributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from dpquery.schema.fit import INTEGERS, fit, suggested
from dpquery.schema.model import Column, Schema, Table, ViaUnit
from dpquery.schema.physical import PhysicalColumn, PhysicalKind, PhysicalTable
from dpquery.schema.units import unit_column
from dpquery.schema.where import near
from dpquery.values.types import Kind, Value

Rows = Callable[[str], Sequence[tuple[object, ...]]]

READABLE: Final = (PhysicalKind.TABLE, PhysicalKind.PARQUET, PhysicalKind.CSV)
FORMATS: Final = {
    Kind.DATE: "say how it is written: `csv: {date: '%d.%m.%Y'}`",
    Kind.TIMESTAMP: "say how it is written: `csv: {timestamp: '%d.%m.%Y %H:%M'}`",
}
UNIT_TYPES: Final = {Kind.INTEGER: INTEGERS, Kind.STRING: frozenset({"VARCHAR"}), Kind.UUID: frozenset({"UUID"})}

SPELLED: Final = {
    Kind.INTEGER: "BIGINT",
    Kind.FLOAT: "DOUBLE",
    Kind.DECIMAL: "DECIMAL(38,10)",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.UUID: "UUID",
}


class Severity(StrEnum):
    """An error keeps the data from being registered; a warning is for the owner to weigh."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not fit. `column` is None where the whole table is meant; `message` names both."""

    severity: Severity
    table: str
    column: str | None
    code: str
    message: str
    instead: str | None = None

    def as_dict(self) -> dict[str, str | None]:
        """The finding for a machine."""
        return {
            "severity": str(self.severity),
            "table": self.table,
            "column": self.column,
            "code": self.code,
            "message": self.message,
            "instead": self.instead,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, in the order of the schema. `version` is the data version's number, once it is registered."""

    dataset: str
    findings: tuple[Finding, ...]
    version: int | None = None

    @property
    def ok(self) -> bool:
        """Nothing keeps this data from being registered."""
        return all(f.severity is not Severity.ERROR for f in self.findings)

    def registered(self, version: int) -> Report:
        """The report of data that has been registered as `version`."""
        return replace(self, version=version)

    def as_dict(self) -> dict[str, object]:
        """The report for a machine."""
        return {"dataset": self.dataset, "ok": self.ok, "version": self.version, "findings": [f.as_dict() for f in self.findings]}


def check(schema: Schema, tables: Mapping[str, PhysicalTable], rows: Rows) -> Report:
    """How the data fits. `tables` holds what stands behind each declared name, as far as there is anything; `rows` runs a query of this module's own.

    Rows are looked at only where all tables fit as such. Whatever `rows` raises is passed on.
    """
    found = [f for table in schema.tables.values() for f in _table(table, tables.get(table.name))]
    found += _shared(schema, tables)
    if not any(f.severity is Severity.ERROR for f in found):
        found += _units(schema, tables)
    if not any(f.severity is Severity.ERROR for f in found):
        found += [f for table in schema.tables.values() for f in _invariants(table, schema, tables, rows)]
    if not any(f.severity is Severity.ERROR for f in found):
        found += [*_unlimited(schema), *_large_delta(schema, tables, rows), *_unlisted(schema, tables, rows)]
    return Report(schema.dataset, tuple(found))


def _error(code: str, message: str, table: Table, column: str | None = None, instead: str | None = None) -> Finding:
    return Finding(Severity.ERROR, table.name, column, code, message, instead)


def _warning(code: str, message: str, table: Table, column: str | None = None, instead: str | None = None) -> Finding:
    return Finding(Severity.WARNING, table.name, column, code, message, instead)


def _table(table: Table, physical: PhysicalTable | None) -> Iterator[Finding]:
    name = table.name
    if physical is None:
        yield _error("TABLE_MISSING", f"`{name}` is not in the data", table, instead="mend `table:` or `path:`, or leave the table out")
        return
    if physical.kind not in READABLE and table.public:
        message = f"`{name}` is not a base table: what it reads may be private, and is read anew each time"
        yield _error("NOT_A_TABLE", message, table, instead="make it a table, by CREATE TABLE .. AS SELECT")
        return
    if physical.kind not in READABLE:
        instead = "name the base table; write the SELECT under `views:`"
        yield _error("NOT_A_TABLE", f"`{name}` is not a base table: its rows may depend on other people's", table, instead=instead)
        return
    for column in table.columns.values():
        behind = physical.column(column.name)
        if behind is None:
            close = near(column.name, [c.name for c in physical.columns])
            instead = f"did you mean `{close}`?" if close else "leave the column out"
            yield _error("COLUMN_MISSING", f"`{name}.{column.name}` is not in the data", table, column.name, instead)
        else:
            yield from _column(table, column, behind, physical.kind)


def _column(table: Table, column: Column, behind: PhysicalColumn, kind: PhysicalKind) -> Iterator[Finding]:
    name = f"`{table.name}.{column.name}`"
    if behind.generated and not table.public:
        yield _error("GENERATED_COLUMN", f"{name} is generated: it may change whenever it is read", table, column.name, "store its values")
    if behind.collation is not None:
        message = f"{name} is compared by a collation, so that unlike texts count as equal"
        yield _error("COLLATION", message, table, column.name, "store it without a collation, as `lower(x)` if need be")
    if kind is PhysicalKind.CSV:
        return  # text, cast by the scan
    how = fit(column.type, behind.type)
    if not how.ok:
        word = suggested(behind.type)
        instead = f"declare it as `{word}`" if word else "leave the column out, or store it as a plain type"
        yield _error("TYPE_MISMATCH", f"{name} is {behind.type} in the data, but declared {column.type}", table, column.name, instead)
    elif how.loss is not None:
        yield _warning("LOSSY_TYPE", f"{name} is {behind.type} in the data, declared {column.type}: {how.loss}", table, column.name)


def _shared(schema: Schema, tables: Mapping[str, PhysicalTable]) -> Iterator[Finding]:
    """Files that two tables read as different people's, or as nobody's."""
    seen: dict[str, Table] = {}
    for table in schema.tables.values():
        physical = tables.get(table.name)
        if physical is None or physical.kind not in (PhysicalKind.PARQUET, PhysicalKind.CSV):
            continue
        clash = [
            first for file in physical.files if (first := seen.setdefault(file, table)) and (first.public, first.unit) != (table.public, table.unit)
        ]
        if clash:
            yield _error("SHARED_FILE", f"`{table.name}` reads a file of `{clash[0].name}`, but says otherwise whose it is", table)


def _unlimited(schema: Schema) -> Iterator[Finding]:
    """No limit on contributions anywhere: most statements would have to name their own."""
    private = [table for table in schema.tables.values() if not table.public]
    if all(one.max_groups_contributed is one.max_rows_per_group is None for one in (schema.contribution, *(t.contribution for t in private))):
        message = "there is no `contribution:`, so that statements with groups, or of several rows of a unit, are refused unless they set limits"
        instead = "`contribution: {max_groups_contributed: 4, max_rows_per_group: 20}`, what most units stay within"
        yield _warning("NO_CONTRIBUTION", message, schema.tables[schema.privacy_unit_table], None, instead)


def _large_delta(schema: Schema, tables: Mapping[str, PhysicalTable], rows: Rows) -> Iterator[Finding]:
    """A delta that lets a group of few of the units be shown outright: above a tenth of one part in their number."""
    table = schema.tables[schema.privacy_unit_table]
    behind = tables[table.name].column(schema.privacy_unit_column)
    if behind is None or not schema.budget.delta:
        return
    units = rows(f"SELECT count(DISTINCT ({behind.sql})) FROM {tables[table.name].relation}")[0][0]
    if isinstance(units, int) and schema.budget.delta * 10 * units > 1:
        message = "the budget's delta is above 1 / (10 * number of units): with such a probability nothing of some unit is protected"
        yield _warning("LARGE_DELTA", message, table, None, "a delta far below 1 / number of units, such as 1e-6")


def _unlisted(schema: Schema, tables: Mapping[str, PhysicalTable], rows: Rows) -> Iterator[Finding]:
    """Rows whose value no list of public keys has: groups by the column leave them out."""
    for table in (one for one in schema.tables.values() if not one.public):
        for column in (one for one in table.columns.values() if one.values is not None):
            behind, name = tables[table.name].column(column.name), f"`{table.name}.{column.name}`"
            if behind is None or column.values is None:
                continue
            listed = [_literal(value, column) for value in column.values if value is not None]
            tests = {"has values that `values:` does not list": f"({behind.sql}) NOT IN ({', '.join(listed)})"} if listed else {}
            if None not in column.values:
                tests["is NULL in some rows, which `values:` does not list"] = f"({behind.sql}) IS NULL"
            for how, test in tests.items():
                if rows(f"SELECT 1 FROM {tables[table.name].relation} WHERE {test} LIMIT 1"):
                    message = f"{name} {how}: groups by it leave those rows out"
                    yield _warning("UNLISTED_VALUES", message, table, column.name, "list them, `null` among them where it is meant")


def _literal(value: Value, column: Column) -> str:
    """A listed value in SQL, as the scan reads the column."""
    text = str(value).replace("'", "''")
    return f"CAST('{text}' AS {SPELLED.get(column.type.kind, 'VARCHAR')})"


def _units(schema: Schema, tables: Mapping[str, PhysicalTable]) -> Iterator[Finding]:
    """Units and path keys whose physical types differ or are cast: equal ones could look different, and different ones equal."""
    expected: str | None = None
    for table in sorted((t for t in schema.tables.values() if not t.public), key=lambda t: t.name != schema.privacy_unit_table):
        holder, name = unit_column(table, schema.tables)
        actual = _type(holder, name, tables)
        column = table.unit.via if isinstance(table.unit, ViaUnit) else table.unit
        if actual is not None and actual not in UNIT_TYPES[holder.columns[name].type.kind]:
            yield _error(
                "UNIT_TYPE", f"the unit of `{table.name}` is {actual} in the data, which has to be cast", table, column, "store it as a plain type"
            )
        elif actual is not None and expected is not None and actual != expected:
            message = f"the unit of `{table.name}` is {actual} in the data, elsewhere {expected}"
            instead = f"store it as {expected} too: in DuckDB ALTER the column, as a file write it anew with a CAST"
            yield _error("UNIT_TYPE", message, table, column, instead)
        expected = expected or actual
        if isinstance(table.unit, ViaUnit):
            via = _type(table, table.unit.via, tables)
            key = _type(schema.tables[table.unit.table], table.unit.key, tables)
            if via is not None and key is not None and via != key:
                message = f"`{table.name}.{table.unit.via}` is {via} in the data, but `{table.unit.table}.{table.unit.key}` {key}"
                yield _error("PATH_TYPE", message, table, table.unit.via, "store both in one type")


def _type(table: Table, column: str, tables: Mapping[str, PhysicalTable]) -> str | None:
    """The physical type; None in a CSV file, where the declared one is all there is."""
    physical = tables[table.name]
    behind = physical.column(column)
    return None if physical.kind is PhysicalKind.CSV or behind is None else behind.type


def _misread(table: Table, physical: PhysicalTable, rows: Rows) -> Iterator[Finding]:
    """Columns of CSV files whose texts are not what the schema declares: answers would take them for NULL without a word."""
    if physical.misread is None:
        return
    told = rows(physical.misread)[0]
    for column, everything, some in zip(table.columns.values(), told[::2], told[1::2], strict=True):
        name, kind = f"`{table.name}.{column.name}`", column.type.kind
        how = FORMATS.get(kind, "declare it as what it is, `string` if need be")
        if everything:
            yield _error("MISREAD", f"no text of {name} can be read as {column.type}: every answer would take it for NULL", table, column.name, how)
        elif some:
            message = f"some texts of {name} cannot be read as {column.type}: answers take them for NULL"
            yield _warning("MISREAD", message, table, column.name, f"mend them, say under `csv:` how NULL is written, or {how}")


def _invariants(table: Table, schema: Schema, tables: Mapping[str, PhysicalTable], rows: Rows) -> Iterator[Finding]:
    physical = tables[table.name]
    yield from _misread(table, physical, rows)
    for column in table.columns.values():
        if column.unique:
            yield from _unique(table, column, physical, rows)
    if table.max_rows_per_unit == 1 and not table.public and not _one_row_enforced(table, physical):
        chain = "".join(_chain(table, schema, tables))
        if rows(f"SELECT 1 {chain} GROUP BY u HAVING count(*) > 1 LIMIT 1"):
            message = f"in `{table.name}` some unit has several rows, but `max_rows_per_unit: 1` is declared"
            yield _error("ROWS_PER_UNIT", message, table, None, "mend the data, or leave `max_rows_per_unit` out")


def _unique(table: Table, column: Column, physical: PhysicalTable, rows: Rows) -> Iterator[Finding]:
    behind = physical.column(column.name)
    assert behind is not None
    name = f"`{table.name}.{column.name}`"
    plain = physical.kind is not PhysicalKind.CSV and fit(column.type, behind.type).loss is None
    if not (plain and behind.not_null) and rows(f"SELECT 1 FROM {physical.relation} WHERE ({behind.sql}) IS NULL LIMIT 1"):
        yield _error("NOT_UNIQUE", f"{name} is NULL in some row, but declared unique", table, column.name, "mend the data, or leave `unique` out")
    grouped = f"(SELECT {behind.sql} AS k FROM {physical.relation}) WHERE k IS NOT NULL GROUP BY k HAVING count(*) > 1"
    if not (plain and behind.name in physical.unique) and rows(f"SELECT 1 FROM {grouped} LIMIT 1"):
        message = f"{name} has a value in several rows, but is declared unique"
        yield _error("NOT_UNIQUE", message, table, column.name, "mend the data, or leave `unique` out")


def _one_row_enforced(table: Table, physical: PhysicalTable) -> bool:
    if not isinstance(table.unit, str) or physical.kind is PhysicalKind.CSV:
        return False
    behind = physical.column(table.unit)
    return behind is not None and behind.name in physical.unique


def _chain(table: Table, schema: Schema, tables: Mapping[str, PhysicalTable]) -> Iterator[str]:
    """FROM and WHERE of a relation with one column `u`: the unit of each row of the table, followed along its path."""

    def reads(at: Table, column: str) -> str:
        behind = tables[at.name].column(column)
        assert behind is not None
        return behind.sql

    at, step = table, 0
    yield "FROM "
    keys: list[str] = []
    while isinstance(at.unit, ViaUnit):
        entry = f"{reads(at, keys[-1])} AS j, " if keys else ""
        yield f"(SELECT {entry}{reads(at, at.unit.via)} AS k FROM {tables[at.name].relation}) AS t{step}"
        yield f" ON t{step - 1}.k = t{step}.j JOIN " if keys else " JOIN "
        keys.append(at.unit.key)
        at, step = schema.tables[at.unit.table], step + 1
    assert isinstance(at.unit, str)
    entry = f"{reads(at, keys[-1])} AS j, " if keys else ""
    yield f"(SELECT {entry}{reads(at, at.unit)} AS u FROM {tables[at.name].relation}) AS t{step}"
    yield f" ON t{step - 1}.k = t{step}.j WHERE u IS NOT NULL" if keys else " WHERE u IS NOT NULL"
