"""What tables and columns are called in lowered SQL.

The engine's catalogue `data` holds the private and public tables of the source, read-only; `memory` holds the public relations made for a statement;
`shown`, where names without a catalogue are looked up, holds the declared public tables. Every table of a lowered statement is named in full, so that
none can stand in for another.
"""

from __future__ import annotations

SOURCE = "data"
SHOWN = "shown"
SCRATCH = "memory.main"


def quoted(name: str) -> str:
    """The name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """The value as an SQL string."""
    return "'" + value.replace("'", "''") + "'"


def table(physical: str) -> str:
    """A table of the source, in full: `table` or `schema.table` as the schema file names it."""
    schema, _, name = physical.rpartition(".")
    return f"{SOURCE}.{quoted(schema or 'main')}.{quoted(name)}"


def public(name: str) -> str:
    """A public relation made for the statement, in full."""
    return f"{SCRATCH}.{quoted(name)}"


def column(identity: int) -> str:
    """A plan column by its id."""
    return f"c{identity}"
