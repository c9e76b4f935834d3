"""The files behind a schema: which they are, whether they are still the same, and how the engine opens them.

Nothing is sniffed: types and dialect are the schema's.
"""

from __future__ import annotations

import csv
import glob
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dpquery.backends import csvlines, names
from dpquery.backends.process import fault
from dpquery.backends.scalar import scan
from dpquery.errors import Fault
from dpquery.schema.model import CsvFormat, FileKind, Files, Schema, Table
from dpquery.schema.physical import PhysicalKind, folded
from dpquery.values.types import Kind, Type

MOST = 1000  # files of which a ledger keeps a commitment
Identity = list[tuple[str, int, int, int, int, int]]  # path, size, mtime_ns, ctime_ns, inode, device


@dataclass(frozen=True, slots=True)
class Source:
    """A schema's files, as found: `database`, or for each declared table its own, absolute and in a fixed order."""

    database: Path | None
    tables: Mapping[str, tuple[Path, ...]]

    @property
    def files(self) -> tuple[Path, ...]:
        """All of them, each once, sorted."""
        return tuple(sorted({p for paths in self.tables.values() for p in paths} | ({self.database} if self.database else set())))


def find(schema: Schema) -> Source:
    """The files behind the schema. A Fault where one is missing, or where the database has a write-ahead log beside it."""
    database = schema.database
    if database is not None:
        _whole(database)
    tables = {t.name: _files(t, t.files, schema.file.parent) for t in schema.tables.values() if t.files is not None}
    return Source(database, tables)


def _whole(database: Path) -> None:
    if not os.path.isfile(database):
        raise _missing(str(database.name))
    logs = database.parent.glob(glob.escape(database.name) + ".wal*")
    if os.path.lexists(f"{database}.wal") or any(logs):  # by its name too: not every folder that can be entered can be listed
        raise Fault(
            "DATA_WAL",
            f"the database {database.name} has a write-ahead log beside it: its file is not all of it",
            instead="close the program that writes to it, or open it once in DuckDB and run CHECKPOINT; then register it again",
        )


def _files(table: Table, files: Files, folder: Path) -> tuple[Path, ...]:
    found: set[Path] = set()
    for pattern in files.patterns:
        matches = {Path(os.path.realpath(p)) for p in glob.glob(os.path.join(glob.escape(str(folder)), pattern), recursive=True) if os.path.isfile(p)}
        if not matches:
            raise _missing(pattern)
        found |= matches
    return tuple(sorted(found))


def _missing(name: str) -> Fault:
    return Fault("DATA_MISSING", f"the data file {name} is missing", instead="mend the path in the schema file, or put the file there")


def identity(schema: Schema) -> Identity:
    """What tells at a glance that a file is another one, for each file behind the schema, sorted by path."""
    found = []
    for path in find(schema).files:
        try:
            stat = path.stat()
        except OSError:
            raise _missing(path.name) from None
        found.append((str(path), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev))
    return found


def fingerprint(schema: Schema) -> str:
    """SHA-256 over which files stand behind which table, and all they hold. The folder in which the schema lies does not count."""
    source, seen, whole = find(schema), dict[Path, bytes](), hashlib.sha256()
    for table, path in _places(source):
        if path not in seen:
            try:
                with path.open("rb") as file:
                    seen[path] = hashlib.file_digest(file, "sha256").digest()
            except FileNotFoundError:
                raise _missing(path.name) from None
            except OSError:
                raise fault("DATA_UNREADABLE") from None
        for item in (table.encode(), os.path.relpath(path, schema.file.parent).encode(errors="surrogateescape"), seen[path]):
            whole.update(len(item).to_bytes(8, "big") + item)
    return whole.hexdigest()


def contents(schema: Schema) -> tuple[str, ...]:
    """SHA-256 of each private file that holds anything, whatever it is called; the least of them where there are many."""
    source, found = find(schema), set[str]()
    private = {name for name, table in schema.tables.items() if not table.public}
    for path in {path for table, path in _places(source) if not table or table in private}:
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size:
                    found.add(hashlib.file_digest(file, "sha256").hexdigest())
        except OSError:
            raise fault("DATA_UNREADABLE") from None
    return tuple(sorted(found)[:MOST])


def _places(source: Source) -> Iterator[tuple[str, Path]]:
    if source.database is not None:
        yield "", source.database
    for table in sorted(source.tables):
        for path in source.tables[table]:
            yield table, path


# ---- how the engine opens them -------------------------------------------------------------------------------------------------------


def opening(schema: Schema, source: Source) -> list[str]:
    """The statements after which catalogue `data` holds the schema's tables under their physical names."""
    if source.database is not None:
        return [f"ATTACH {names.text(str(source.database))} AS {names.SOURCE} (TYPE duckdb, READ_ONLY)"]
    made = [f"ATTACH ':memory:' AS {names.SOURCE}"]
    for table in schema.tables.values():
        if table.files is not None:
            types = {c.name: c.type for c in table.columns.values()}
            made.append(f"CREATE VIEW {names.table(table.physical)} AS {reading(table.files, source.tables[table.name], types)}")
    return made


def shown(schema: Schema) -> list[str]:
    """The statements after which catalogue `shown` holds the declared public tables; one fails where its table is missing.

    Names without a catalogue are looked up there, those of functions too: never in `data`, where a macro of the database could stand in for a
    function of the engine, a clamp's or a sum's included.
    """
    made = [f"ATTACH ':memory:' AS {names.SHOWN}"]
    for table in schema.tables.values():
        if table.public:
            place, _, name = table.physical.rpartition(".")
            full = f"{names.SHOWN}.{names.quoted(place or 'main')}"
            made.append(f"CREATE SCHEMA IF NOT EXISTS {full}")
            made.append(f"CREATE VIEW {full}.{names.quoted(name)} AS SELECT * FROM {names.table(table.physical)}")
    return made


def kind(files: Files) -> PhysicalKind:
    """What stands behind a table's name."""
    return PhysicalKind.PARQUET if files.kind is FileKind.PARQUET else PhysicalKind.CSV


def reading(files: Files, paths: tuple[Path, ...], types: Mapping[str, Type]) -> str:
    """SELECT over the files. CSV columns come out in their declared types; undeclared ones stay text."""
    if files.kind is FileKind.PARQUET:
        return f"SELECT * FROM read_parquet({_list(paths)}, hive_partitioning = false, union_by_name = false)"
    header = _header(files.csv, paths, tuple(types))
    declared = {folded(name): kind for name, kind in types.items()}
    items = [f"{_typed(c, declared[folded(c)], files.csv)} AS {names.quoted(c)}" if folded(c) in declared else names.quoted(c) for c in header]
    return f"SELECT {', '.join(items)} FROM {_read_csv(files.csv, paths, header)}"


def misread(files: Files, paths: tuple[Path, ...], types: Mapping[str, Type]) -> str:
    """SELECT of two BOOLEANs for each column of CSV files: whether all its texts, and whether some, cannot be read as the declared type."""
    header = {folded(c): c for c in _header(files.csv, paths, tuple(types))}
    items = []
    for name, type_ in types.items():
        column = header.get(folded(name))
        if column is None:
            items.append("NULL, NULL")
        else:
            lost = f"({_typed(column, type_, files.csv)}) IS NULL"
            items.append(f"bool_and({lost}) FILTER ({names.quoted(column)} IS NOT NULL), bool_or({lost}) FILTER ({names.quoted(column)} IS NOT NULL)")
    return f"SELECT {', '.join(items)} FROM {_read_csv(files.csv, paths, tuple(header.values()))}"


def allowed(source: Source) -> str:
    """The files that the sealed engine may open, each by its name and by the pattern that means it alone: both are held against the list."""
    files = () if source.database is not None else source.files
    return "[" + ", ".join(names.text(name) for p in files for name in dict.fromkeys((str(p), glob.escape(str(p))))) + "]"


def _list(paths: tuple[Path, ...]) -> str:
    """The files as a list of patterns that mean one file each."""
    return "[" + ", ".join(names.text(glob.escape(str(p))) for p in paths) + "]"


def _read_csv(how: CsvFormat, paths: tuple[Path, ...], header: tuple[str, ...]) -> str:
    columns = ", ".join(f"{names.text(c)}: 'VARCHAR'" for c in header)
    options = {
        "auto_detect": "false",
        "columns": f"{{{columns}}}",
        "delim": names.text(how.delimiter),
        "quote": names.text(how.quote),
        "escape": names.text(how.escape),
        "header": str(how.header).lower(),
        "nullstr": names.text(how.null),
        "strict_mode": "true",
        "ignore_errors": "false",
        "null_padding": "false",
        "union_by_name": "false",
        "hive_partitioning": "false",
    }
    return f"read_csv({_list(paths)}, {', '.join(f'{k} = {v}' for k, v in options.items())})"


def _header(how: CsvFormat, paths: tuple[Path, ...], declared: tuple[str, ...]) -> tuple[str, ...]:
    """The columns' names: the first line of every file, the same in all; without a header the declared ones in their order."""
    if not how.header:
        return declared
    found = {_first_line(how, path) for path in paths}
    if len(found) != 1:
        message = f"the first lines of {paths[0].name} and other files of its table differ"
        raise Fault("DATA_UNREADABLE", message, instead="give all files of a table the same columns, in one order")
    return found.pop()


def _first_line(how: CsvFormat, path: Path) -> tuple[str, ...]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            found = tuple(next(csvlines.rows(how, file)))
    except (OSError, UnicodeDecodeError, csv.Error, StopIteration):
        instead = "the data owner mends it: it is UTF-8, and its first line names the columns (`csv: {header: false}` if none does)"
        raise Fault("DATA_UNREADABLE", f"{path.name} cannot be read as CSV", instead=instead) from None
    wrong = csvlines.unnamed(found)
    if wrong is not None:
        raise Fault("DATA_UNREADABLE", f"{path.name}: {wrong[0]}", instead=wrong[1])
    return found


def _typed(column: str, type_: Type, how: CsvFormat) -> str:
    """The text of a CSV column in its declared type, NULL where it does not fit."""
    name = names.quoted(column)
    match type_.kind:
        case Kind.DATE:
            return f"CAST(try_strptime({name}, {names.text(how.date)}) AS DATE)"
        case Kind.TIMESTAMP:
            return f"try_strptime({name}, {names.text(how.timestamp)})"
        case _:
            return scan(name, type_)
