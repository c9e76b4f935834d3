"""Declared tables and where their rows are: names that can be told apart, one kind of source, no physical table in two roles."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import Final

from dpquery.schema.columns import column
from dpquery.schema.file import ContributionPart, CsvPart, PathPart, SchemaFile, SourcePart, TablePart
from dpquery.schema.model import Contribution, CsvFormat, FileKind, Files, Source, Table, ViaUnit
from dpquery.schema.where import Step, Where

MAX_NAME: Final = 128
RESERVED: Final = frozenset({"noisy"})  # the table that statements read above the noise
ENDINGS: Final = {".parquet": FileKind.PARQUET, ".csv": FileKind.CSV}


def tables(part: SchemaFile, where: Where) -> dict[str, Table]:
    """The declared tables by name; SchemaError for names or sources that clash. Units are looked at afterwards, all together."""
    _names([*part.tables], where, "tables")
    found = {name: _table(name, table, part.source is not None, where) for name, table in part.tables.items()}
    _roles(found, where)
    return found


def views(part: SchemaFile, where: Where) -> dict[str, str]:
    """The views by name; SchemaError where one is named like a table."""
    _names([*part.tables, *part.views], where, "views")
    return dict(part.views)


def source(part: SourcePart | None, where: Where) -> Source | None:
    """The database; SchemaError for an engine or a place that is not supported."""
    if part is None:
        return None
    if part.engine.lower() != "duckdb":
        raise where.error(
            "UNSUPPORTED_SOURCE",
            f"no engine `{part.engine[:60]}`",
            "source",
            "engine",
            instead="write `duckdb`; or Parquet and CSV files as `path:` of each table",
        )
    if part.path.lower().endswith(tuple(ENDINGS)):
        raise where.error(
            "UNSUPPORTED_SOURCE", "is not a DuckDB file", "source", "path", instead="leave `source` out and write `path:` in each table"
        )
    _local(part.path, where, "source", "path")
    return Source(engine="duckdb", path=part.path)


def contribution(part: ContributionPart) -> Contribution:
    """The limits as given."""
    return Contribution(**part.model_dump())


def _names(names: Iterable[str], where: Where, *path: Step) -> None:
    seen: dict[str, str] = {}
    for name in names:
        key = name.casefold()
        if key in seen:
            first = seen[key]
            other = "is there twice" if first == name else f"differs from `{first}` by case only"
            raise where.error("DUPLICATE_NAME", f"the name {other}; SQL cannot tell them apart", *path, name)
        seen[key] = name
        _name(name, where, *path, name)
        if path[-1] in ("tables", "views") and (key in RESERVED or "." in name):
            why = "is reserved" if key in RESERVED else "must not hold a dot"
            raise where.error(
                "BAD_NAME", f"the name {why}", *path, name, instead="name it otherwise here, and write its name in the data as `table:`"
            )


def _name(name: str, where: Where, *path: Step) -> None:
    if name != name.strip() or not name.isprintable() or len(name) > MAX_NAME or '"' in name:
        raise where.error("BAD_NAME", f"a name has 1 to {MAX_NAME} printable characters, no double quotes, and no spaces at the ends", *path)
    if name.startswith("__"):
        raise where.error("BAD_NAME", "names that start with `__` are reserved", *path)


def _table(name: str, part: TablePart, database: bool, where: Where) -> Table:
    path = ("tables", name)
    if part.public:
        for key in ("max_rows_per_unit", "contribution"):
            if key in part.model_fields_set:
                raise where.error(
                    "BAD_UNIT", "a public table has no units, and no limits on them", *path, key, instead="leave it out, or `public: true`"
                )
    _names([*part.columns], where, *path, "columns")
    columns = {key: column(key, col, where, (*path, "columns", key)) for key, col in part.columns.items()}
    return Table(
        name=name,
        physical=_physical(name, part, where),
        public=part.public,
        unit=_unit(part.unit, where, *path, "unit"),
        max_rows_per_unit=part.max_rows_per_unit,
        contribution=contribution(part.contribution),
        files=_files(part, database, where, *path),
        columns=columns,
    )


def _unit(part: str | PathPart | None, where: Where, *path: Step) -> str | ViaUnit | None:
    if not isinstance(part, PathPart):
        return part
    table, dot, key = part.references.partition(".")
    if not dot or not table or not key:
        raise where.error("BAD_PATH", f"must be `table.column`, not `{part.references}`", *path, "references")
    return ViaUnit(via=part.via, table=table, key=key)


def _physical(name: str, part: TablePart, where: Where) -> str:
    if part.table is None:
        return name
    for piece in part.table.split("."):
        _name(piece, where, "tables", name, "table")
        if not piece:
            raise where.error("BAD_NAME", "must be a table's name, or `schema.table`", "tables", name, "table")
    if part.table.count(".") > 1:
        raise where.error("BAD_NAME", "must be a table's name, or `schema.table`", "tables", name, "table")
    if part.path is not None:
        raise where.error("BAD_SOURCE", "files have no table names", "tables", name, "table", instead="leave out `table`, or `path`")
    return part.table


def _files(part: TablePart, database: bool, where: Where, *path: Step) -> Files | None:
    if part.path is None:
        if not database:
            raise where.error("BAD_SOURCE", "its rows are nowhere", *path, instead="write `path:` here, or a `source:` for all tables")
        if part.csv is not None:
            raise where.error("BAD_SOURCE", "is for CSV files only", *path, "csv", instead="leave it out")
        return None
    if database:
        raise where.error(
            "BAD_SOURCE", "there is a `source` for all tables already", *path, "path", instead="leave out `source`, or `path` in every table"
        )
    kinds = {_kind(pattern, where, *path, "path") for pattern in part.path}
    if len(kinds) > 1:
        raise where.error("BAD_SOURCE", "a table's files are all Parquet, or all CSV", *path, "path")
    kind = kinds.pop()
    if part.csv is not None and kind is not FileKind.CSV:
        raise where.error("BAD_SOURCE", "is for CSV files only", *path, "csv", instead="leave it out")
    return Files(kind=kind, pattern="\n".join(part.path), csv=_csv(part.csv or CsvPart(), where, *path, "csv"))


def _kind(pattern: str, where: Where, *path: Step) -> FileKind:
    _local(pattern, where, *path)
    for ending, kind in ENDINGS.items():
        if pattern.lower().endswith(ending):
            return kind
    raise where.error(
        "UNSUPPORTED_SOURCE",
        f"`{pattern[-60:]}` does not end in {' or '.join(ENDINGS)}",
        *path,
        instead="convert it: `COPY (FROM ...) TO 'file.parquet'` in DuckDB",
    )


def _local(text: str, where: Where, *path: Step) -> None:
    if "://" in text or text.startswith((":", "md:", "http:", "https:", "s3:")):
        raise where.error("UNSUPPORTED_SOURCE", "must be a file of this computer", *path, instead="write a path relative to the schema file")


def _csv(part: CsvPart, where: Where, *path: Step) -> CsvFormat:
    for key in ("delimiter", "quote", "escape"):
        text = getattr(part, key)
        if len(text) > 1 or text in ("\n", "\r", "\0") or (key == "delimiter" and not text):
            raise where.error("BAD_SOURCE", "must be one character, no line break", *path, key)
    if part.delimiter in (part.quote, part.escape):
        raise where.error("BAD_SOURCE", "must differ from quote and escape", *path, "delimiter")
    if len(part.null) > MAX_NAME or "\n" in part.null or "\r" in part.null or "\0" in part.null:
        raise where.error("BAD_SOURCE", f"must be at most {MAX_NAME} characters, no line break", *path, "null")
    for key in ("date", "timestamp"):
        if "%" not in getattr(part, key):
            raise where.error("BAD_SOURCE", "must be a format such as %Y-%m-%d", *path, key)
    return CsvFormat(**part.model_dump())


def _roles(found: Mapping[str, Table], where: Where) -> None:
    """Refuses two declared tables that read the same rows as different people's, or as nobody's."""
    seen: dict[str, Table] = {}
    for table in found.values():
        for place in _places(table):
            first = seen.setdefault(place, table)
            if (first.public, first.unit) != (table.public, table.unit):
                raise where.error("BAD_UNIT", f"reads the same data as `{first.name}`, but says otherwise whose it is", "tables", table.name)


def _places(table: Table) -> tuple[str, ...]:
    if table.files is not None:
        return tuple(posixpath.normpath(p) for p in table.files.patterns)
    return (table.physical.casefold().removeprefix("main."),)
