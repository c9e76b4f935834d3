"""Private tables as FROM reads them: declared columns, and the way to each row's unit."""

from __future__ import annotations

from dpquery.plan.rel import Hop, Scan, ScanColumn, UnitPath
from dpquery.schema.model import Table, ViaUnit
from dpquery.sql.names import Field, Frame, Source, Statement, column, note_origins
from dpquery.sql.sides import Bound


def scanned(statement: Statement, table: Table) -> Bound:
    """A private table: its declared columns under fresh ids, and the way to its unit."""
    made = tuple(column(statement, c) for c in table.columns.values())
    note_origins(statement, table, made)
    by_name = {c.name: c for c in made}
    unit = frozenset({by_name[table.unit].id}) if isinstance(table.unit, str) and table.unit in by_name else frozenset[int]()
    scan = Scan(
        table=table.name,
        physical=table.physical,
        columns=tuple(ScanColumn(c, c.name) for c in made),
        unit=_path(statement, table),
        max_rows_per_unit=table.max_rows_per_unit,
        unique=frozenset(by_name[c.name].id for c in table.columns.values() if c.unique),
        unit_columns=unit,
    )
    return Bound(scan, Frame((Source(table.name, tuple(Field(c.name, c) for c in made)),)))


def _path(statement: Statement, table: Table) -> UnitPath:
    schema, hops = statement.schema, list[Hop]()
    kind = schema.tables[schema.privacy_unit_table].columns[schema.privacy_unit_column].type
    while isinstance(table.unit, ViaUnit):
        parent = schema.tables[table.unit.table]
        hops.append(Hop(table.unit.via, parent.physical, table.unit.key))
        table = parent
    return UnitPath(str(table.unit), kind, tuple(hops))
