"""What a source really holds, from its catalogue: names, types, constraints, collations. For the owner; no row's value is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpquery.backends import names
from dpquery.backends.csvlines import delimiter, trouble
from dpquery.backends.process import fault
from dpquery.backends.scalar import scan
from dpquery.backends.source import Source, kind, misread, reading
from dpquery.errors import Fault
from dpquery.schema.model import CsvFormat, FileKind, Files, Schema
from dpquery.schema.physical import PhysicalColumn, PhysicalKind, PhysicalTable, folded
from dpquery.values.types import Type

Rows = Callable[[str], Sequence[tuple[Any, ...]]]
Place = tuple[str, str]  # schema and name, as the engine compares them

_ENUM = re.compile(r"ENUM\((?:[^()']|'(?:[^']|'')*')*\)")
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[A-Za-z_]\w*|.""", re.DOTALL)
_BINARY = frozenset({"binary", "c", "posix"})


@dataclass(slots=True)
class _Entry:
    """One table of the catalogue."""

    name: Place
    kind: PhysicalKind
    columns: list[tuple[str, str, bool]] = field(default_factory=list)  # name, type, generated
    collations: Mapping[str, str] = field(default_factory=dict)
    not_null: set[str] = field(default_factory=set)
    unique: set[str] = field(default_factory=set)


def describe(schema: Schema, source: Source, rows: Rows) -> dict[str, PhysicalTable]:
    """What stands behind each declared table, by its declared name; what is not there is left out.

    Files are read through once, so that what is registered can be read: a Fault where it cannot.
    """
    found, described = _catalogue(rows), {}
    for table in schema.tables.values():
        entry = found.get(_place(table.physical))
        if entry is None:
            continue
        types = {folded(c.name): c.type for c in table.columns.values()}
        paths = (source.database,) if source.database is not None else source.tables[table.name]
        if table.files is not None:
            entry.kind = kind(table.files)
            _read_through(table.physical, table.files, paths, rows)
        described[table.name] = _table(table.name, entry, names.table(table.physical), types, paths)
        if table.files is not None and entry.kind is PhysicalKind.CSV:
            lost = misread(table.files, paths, {c.name: c.type for c in table.columns.values()})
            described[table.name] = replace(described[table.name], misread=lost)
    return described


def files(paths: Sequence[Path]) -> list[PhysicalTable]:
    """The base tables of a DuckDB file, or one table for each Parquet or CSV file, with nothing declared about them."""
    found: list[PhysicalTable] = []
    for path in (Path(os.path.realpath(p)) for p in paths):
        if os.path.isdir(path):
            raise Fault("DATA_MISSING", f"{path.name} is a folder, not a data file", instead=f"name the files in it, such as {path.name}/*.csv")
        if not os.path.isfile(path):
            raise Fault("DATA_MISSING", f"the data file {path.name} is missing", instead="mend the path")
        found += _file(path)
    return found


def _file(path: Path) -> list[PhysicalTable]:
    import duckdb

    from dpquery.backends.seal import Allowance, connect, unopened

    try:
        with connect(Allowance(memory=2**30, threads=1)) as con:

            def rows(sql: str) -> Sequence[tuple[Any, ...]]:
                return con.execute(sql).fetchall()

            ending = path.suffix.lower()[1:]
            if ending in tuple(FileKind):
                written = CsvFormat(delimiter=delimiter(path)) if ending == "csv" else CsvFormat()
                how = Files(kind=FileKind(ending), pattern=path.name, csv=written)
                con.execute(f"ATTACH ':memory:' AS {names.SOURCE}")
                con.execute(f"CREATE VIEW {names.table('t')} AS {reading(how, (path,), {})}")
                entry = _catalogue(rows)["main", "t"]
                entry.kind = kind(how)
                return [replace(_table(path.stem, entry, names.table("t"), {}, (path,)), delimiter=how.csv.delimiter)]
            con.execute(f"ATTACH {names.text(str(path))} AS {names.SOURCE} (TYPE duckdb, READ_ONLY)")
            return [_table(*_called(e), {}, (path,)) for e in _catalogue(rows).values() if e.kind is PhysicalKind.TABLE]
    except duckdb.Error as error:
        code = unopened(error)
        raise fault(code) if code == "DATA_LOCKED" else _foreign(path) from None


FOREIGN: Mapping[str, tuple[str, str]] = {
    "csv": ("cannot be read as CSV", "mend the file: UTF-8, a first line with the columns' names, as many fields in each line"),
    "parquet": ("is not whole Parquet", "write the file anew"),
    **dict.fromkeys(("gz", "zip", "zst", "bz2", "xz"), ("is compressed", "unpack it first, as with gunzip; Parquet files are compressed within")),
    **dict.fromkeys(("xlsx", "xls", "ods"), ("is a spreadsheet", "save the sheet as CSV with the ending .csv")),
    **dict.fromkeys(("txt", "tsv", "dat", "tab"), ("is not a DuckDB file", "if it is a table of text, give it the ending .csv")),
}
"""What files that cannot be opened seem to be, by their ending, and what to do."""


def _foreign(path: Path) -> Fault:
    message, instead = FOREIGN.get(
        path.suffix.lower()[1:], ("is not a DuckDB file that can be read", "name DuckDB files, or files that end in .parquet or .csv")
    )
    return Fault("DATA_UNREADABLE", f"{path.name} {message}", instead=instead)


def _called(entry: _Entry) -> tuple[str, _Entry, str]:
    schema, name = entry.name
    return (name if schema == "main" else f"{schema}.{name}"), entry, names.table(f"{schema}.{name}")


def _place(physical: str) -> Place:
    schema, _, name = physical.rpartition(".")
    return folded(schema or "main"), folded(name)


def _read_through(physical: str, files: Files, paths: Sequence[Path], rows: Rows) -> None:
    try:
        rows(f"SELECT max(hash(COLUMNS(*))) FROM {names.table(physical)}")
    except Fault as broken:
        if broken.code == "ENGINE_FAILED":
            raise _unreadable(physical, files, paths) from None
        raise


def _unreadable(name: str, files: Files, paths: Sequence[Path]) -> Fault:
    """What is wrong with a table's files, as far as it can be told without saying a value."""
    if files.kind is FileKind.PARQUET:
        message = f"a file of `{name}` is not whole Parquet, or the files of the table differ in their columns"
        return Fault("DATA_UNREADABLE", message, instead="write the files anew")
    found = next(filter(None, (trouble(files.csv, path) for path in paths)), f"a file of `{name}` is not written as its `csv:` says")
    return Fault("DATA_UNREADABLE", found, instead="mend the file, or say under `csv:` how it is written: delimiter, quote, header")


# ---- the catalogue -------------------------------------------------------------------------------------------------------------------


def _catalogue(rows: Rows) -> dict[Place, _Entry]:
    """All tables and views of the source."""
    here = f"database_name = '{names.SOURCE}' AND NOT internal"
    found: dict[Place, _Entry] = {}
    for schema, name, temporary, text in rows(f"SELECT schema_name, table_name, temporary, sql FROM duckdb_tables() WHERE {here}"):
        entry = _Entry((schema, name), PhysicalKind.OTHER if temporary else PhysicalKind.TABLE, collations=collations(text))
        found[folded(schema), folded(name)] = entry
    for schema, name in rows(f"SELECT schema_name, view_name FROM duckdb_views() WHERE {here}"):
        found[folded(schema), folded(name)] = _Entry((schema, name), PhysicalKind.VIEW)
    listed = "schema_name, table_name, column_name, data_type, is_generated"
    for schema, name, column, kind_, generated in rows(f"SELECT {listed} FROM duckdb_columns() WHERE {here} ORDER BY column_index"):
        found[folded(schema), folded(name)].columns.append((column, kind_, generated))
    _constraints(found, rows)
    return found


def _constraints(found: Mapping[Place, _Entry], rows: Rows) -> None:
    listed = "schema_name, table_name, constraint_type, constraint_column_names"
    for schema, name, sort, columns in rows(f"SELECT {listed} FROM duckdb_constraints() WHERE database_name = '{names.SOURCE}'"):
        entry = found.get((folded(schema), folded(name)))
        if entry is None:
            continue
        if sort in ("NOT NULL", "PRIMARY KEY"):
            entry.not_null.update(columns)
        if sort in ("UNIQUE", "PRIMARY KEY") and len(columns) == 1:
            entry.unique.update(columns)


def _table(name: str, entry: _Entry, relation: str, types: Mapping[str, Type], paths: Sequence[Path]) -> PhysicalTable:
    csv = entry.kind is PhysicalKind.CSV
    columns = tuple(
        PhysicalColumn(
            name=column,
            type="VARCHAR" if csv else _ENUM.sub("ENUM", type_),
            sql=scan(names.quoted(column), types[folded(column)]) if folded(column) in types else names.quoted(column),
            not_null=column in entry.not_null,
            generated=generated,
            collation=entry.collations.get(column),
        )
        for column, type_, generated in entry.columns
    )
    return PhysicalTable(name, entry.kind, relation, columns, frozenset(entry.unique), tuple(str(p) for p in paths))


# ---- collations ----------------------------------------------------------------------------------------------------------------------


def collations(create: str) -> dict[str, str]:
    """The collation of each column of a CREATE TABLE statement that has one other than plain bytes. The catalogue shows them nowhere else."""
    found = {}
    for tokens in _definitions(create):
        words = [t.casefold() for t in tokens]
        if "collate" in words[1:]:
            collation = _collation(tokens[words.index("collate", 1) + 1 :])
            if collation not in _BINARY:
                found[_plain(tokens[0])] = collation
    return found


def _collation(tokens: Sequence[str]) -> str:
    """The collation's name at the front of the tokens: words joined by dots."""
    words = [_plain(t).casefold() for t in tokens[:1]]
    for dot, word in zip(tokens[1::2], tokens[2::2], strict=False):
        if dot != ".":
            break
        words.append(_plain(word).casefold())
    return ".".join(words)


def _plain(token: str) -> str:
    return token[1:-1].replace('""', '"') if token.startswith('"') else token


def _definitions(create: str) -> Iterator[list[str]]:
    """The tokens of each definition between the statement's outermost brackets."""
    depth, tokens = 0, list[str]()
    for match in _TOKEN.finditer(create):
        token = match[0]
        depth -= token == ")"
        if (depth == 0 and token == ")") or (depth == 1 and token == ","):
            if tokens:
                yield tokens
            tokens = []
        elif depth >= 1 and not token.isspace():
            tokens.append(token)
        depth += token == "("
