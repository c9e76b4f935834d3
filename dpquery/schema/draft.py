"""A schema file drafted from names and physical types alone: no value, no minimum and no maximum is read. What only the owner can promise is a TODO,
and a file that holds one is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from dpquery.errors import SchemaError
from dpquery.schema.fit import WIDE, suggested
from dpquery.schema.physical import PhysicalColumn, PhysicalKind, PhysicalTable
from dpquery.schema.tables import MAX_NAME, RESERVED

FILES: Final = (PhysicalKind.PARQUET, PhysicalKind.CSV)
WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})  # quoted, lest another reader of YAML takes them otherwise

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PATH = re.compile(r"[A-Za-z0-9_./-]+", re.ASCII)

HEAD: Final = """\
# Drafted from names and types alone; no value was read. Each TODO is the owner's to decide: the file is refused while one is left.
# What is declared here is public: analysts see tables, columns, types, bounds and listed values. Leave out what they need not know.
"""
UNIT: Final = """\
privacy_unit: TODO              # whose privacy is protected: table.column, the key of the table that has one row for each of them
adjacency: add_remove           # or replace_one
budget: {epsilon: TODO, delta: TODO}    # for the life of the data; delta far below 1 / number of units, such as {epsilon: 4, delta: 1e-6}
per_query: {epsilon: 0.1, max_epsilon: 1, delta: 0}     # the price of a statement that names none; groups without public keys need a delta
contribution: {max_groups_contributed: 4, max_rows_per_group: 20}   # what most units stay within; more is left out of answers
tables:
"""


def draft(tables: Sequence[PhysicalTable], folder: Path | None = None) -> str:
    """The text of a schema file. Paths are written relative to `folder` (the current one), where the draft is to be saved.

    SchemaError where the tables are neither all of one database nor all files of their own.
    """
    folder = _here() if folder is None else folder
    if not tables:
        raise SchemaError("BAD_SOURCE", "there is no table to draft a schema from", instead="name a DuckDB file, or Parquet and CSV files")
    databases = {t.files for t in tables if t.kind not in FILES}
    if len(databases) > 1 or (databases and any(t.kind in FILES for t in tables)):
        message = "a schema has its tables in one DuckDB file, or in Parquet and CSV files of their own"
        raise SchemaError("BAD_SOURCE", message, instead="draft one schema for each")
    place = next(iter(databases), None)
    return "".join(_lines(tables, folder, place))


def _here() -> Path:
    """The current folder; where it is gone, one that nothing lies in, so that paths are written in full."""
    try:
        return Path.cwd()
    except OSError:
        return Path("/nowhere")


def _lines(tables: Sequence[PhysicalTable], folder: Path, database: tuple[str, ...] | None) -> Iterator[str]:
    first = (database or tables[0].files or ("data",))[0]
    yield HEAD
    yield f"dataset: {plain_word(Path(first).stem)}\n"
    yield "version: 1\n"
    if database is not None:
        path = _path(database[0], folder) if database else "TODO"
        yield f"source: {{engine: duckdb, path: {path}}}   # relative to this file\n"
    yield UNIT
    taken: set[str] = set()
    for table in tables:
        yield from _table(table, folder, taken)


def _table(table: PhysicalTable, folder: Path, taken: set[str]) -> Iterator[str]:
    if table.kind in (PhysicalKind.VIEW, PhysicalKind.OTHER):
        yield f"  # {comment(table.name)} is left out: not a base table\n"
        return
    if table.kind is PhysicalKind.TABLE and (not all(map(_fits, table.name.split("."))) or table.name.count(".") > 1):
        yield f"  # {comment(table.name)} is left out: an odd name\n"
        return
    name = _name(table.name, taken)
    yield f"  {plain_word(name)}:\n"
    if name != table.name and table.kind is PhysicalKind.TABLE:
        yield f"    table: {plain_word(table.name)}\n"
    if table.kind in FILES:
        paths = [_path(f, folder) for f in table.files]
        yield f"    path: {paths[0] if len(paths) == 1 else '[' + ', '.join(paths) + ']'}   # relative to this file\n"
    if table.kind is PhysicalKind.CSV and table.delimiter != ",":
        yield f"    csv: {{delimiter: {quoted_text(table.delimiter)}}}   # as in the first line; header, quote, date where they differ\n"
    elif table.kind is PhysicalKind.CSV:
        yield "    # csv: {delimiter: ';', header: true, date: '%d.%m.%Y'}   # how the file is written, where it differs from RFC 4180\n"
    yield "    unit: TODO      # whose a row is: a column, or {via: column, references: table.column}; nobody's: write `public: true` instead\n"
    yield "    # max_rows_per_unit: 1      # if every unit has one row at most, and who promises it\n"
    lines = [_column(c, table.kind) for c in table.columns]
    yield "    columns: TODO\n" if all(line.lstrip().startswith("#") for line in lines) else "    columns:\n"
    yield from lines


def _column(column: PhysicalColumn, kind: PhysicalKind) -> str:
    word = suggested(column.type)
    if word is None or column.generated or column.collation is not None or not _fits(column.name):
        why = (
            "generated"
            if column.generated
            else "collated"
            if column.collation is not None
            else "no type of this format"
            if word is None
            else "an odd name"
        )
        return f"      # {comment(column.name)} is left out: {why} ({comment(column.type)})\n"
    written = word if _PLAIN.fullmatch(word) else f'"{word}"'
    return f"      {plain_word(column.name)}: {{type: {written}}}{_note(column, kind, word)}\n"


def _note(column: PhysicalColumn, kind: PhysicalKind, word: str) -> str:
    if kind is PhysicalKind.CSV:
        return '   # or integer, "decimal(10,2)", float, boolean, date, timestamp, uuid'
    if column.type in WIDE:
        return "   # values beyond 64 bits become NULL"
    if word.startswith(("integer", "decimal", "float")):
        return "   # for sums and averages add lower, upper and who promises them"
    if word == "string":
        return "   # for public keys add values: [...]"
    return ""


def _name(name: str, taken: set[str]) -> str:
    """A name that the format allows and that no table before has; `schema.table` turns into `schema_table`."""
    plain = re.sub(r"[^\w -]", "_", name).strip().lstrip("_")[: MAX_NAME - 8] or "table"
    if plain.casefold() in RESERVED:
        plain += "_table"
    chosen, count = plain, 1
    while chosen.casefold() in taken:
        count += 1
        chosen = f"{plain}_{count}"
    taken.add(chosen.casefold())
    return chosen


def _fits(name: str) -> bool:
    return name == name.strip() and name.isprintable() and 0 < len(name) <= MAX_NAME and '"' not in name and not name.startswith("__")


def plain_word(text: str) -> str:
    """A name as YAML text, in quotes where another reader would take it for something else."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in WORDS and text != "TODO" else quoted_text(text)


def quoted_text(text: str) -> str:
    """Text in quotation marks, as YAML reads it: what is not printable by its number, so that no line ends within."""
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" if c not in '"\\' else f"\\{c}" for c in text) + '"'


def _path(text: str, folder: Path) -> str:
    path = Path(text)
    near = path.relative_to(folder) if path.is_relative_to(folder) else path
    return near.as_posix() if _PATH.fullmatch(near.as_posix()) else quoted_text(near.as_posix())


def comment(text: str) -> str:
    """Text as it may stand in a comment of one line."""
    return "".join(c if c.isprintable() else "?" for c in text)[:200]
