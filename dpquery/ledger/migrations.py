"""The tables of a ledger in PostgreSQL: numbered SQL files, each run once and in order; and whether tables are as those made them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from psycopg import Connection

RUN: Final = "CREATE TABLE migrations (number integer PRIMARY KEY, name text NOT NULL, sha256 text NOT NULL)"
# What else is in the schema does not matter. Constraints show as their indexes and as attnotnull.
INTACT: Final = """
    SELECT 'column', c.relname, a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, l.collname)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_collation l ON l.oid = a.attcollation
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped AND c.relname = ANY(%(tables)s)
    UNION ALL
    SELECT 'index', c.relname, i.relname, concat_ws(' ', x.indisunique, x.indisvalid, x.indkey::text, pg_get_expr(x.indpred, x.indrelid))
    FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%(tables)s)
    UNION ALL
    SELECT 'trigger', c.relname, t.tgname, concat_ws(' ', t.tgenabled, t.tgtype, p.prosrc)
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
    WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal AND c.relname = ANY(%(tables)s)
    UNION ALL
    SELECT 'rule', c.relname, r.rulename, r.ev_type::text FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%(tables)s)
    ORDER BY 1, 2, 3
"""
SHAPE: Final = "4cdb25f29a9a6e72acdf2b435a51a2bec6f37f8092c03e7d044917e8f06b7c06"  # SHA-256 of `shape` after all files were run
TABLES: Final = ("entries", "accounts", "secret", "seen", "stored", "shown", "turn")


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file."""

    number: int
    name: str
    sql: str

    @property
    def digest(self) -> str:
        """What tells it from a file of another content."""
        return sha256(self.sql.encode()).hexdigest()


@cache
def known() -> tuple[Migration, ...]:
    """The files in order, numbered from 1 without a gap."""
    folder = files("dpquery.ledger").joinpath("migrations")
    found = sorted((one.name, one.read_text(encoding="utf-8")) for one in folder.iterdir() if one.name.endswith(".sql"))
    return tuple(Migration(int(name.split("_")[0]), name, sql) for name, sql in found)


def ran(connection: Connection[Any]) -> list[tuple[int, str]] | None:
    """The numbers and digests of those that the ledger was made by; None where there is no ledger."""
    if connection.execute("SELECT to_regclass('migrations')").fetchone() == (None,):
        return None
    return [(number, digest) for number, digest in connection.execute("SELECT number, sha256 FROM migrations ORDER BY number")]


def run(connection: Connection[Any], after: int = 0) -> None:
    """Those after that number are run, in the transaction that is open."""
    if after == 0:
        connection.execute(RUN)
    for one in known()[after:]:
        connection.execute(one.sql.encode())
        connection.execute("INSERT INTO migrations VALUES (%s, %s, %s)", (one.number, one.name, one.digest))


def shape(connection: Connection[Any]) -> tuple[str, ...]:
    """Columns, indexes, triggers and rules of the ledger's tables."""
    return tuple(" ".join(map(str, row)) for row in connection.execute(INTACT, {"tables": list(TABLES)}))


def intact(connection: Connection[Any]) -> bool:
    """Whether the tables are as the files made them: none of their guards is gone, nothing else happens when a line is written."""
    return sha256("\n".join(shape(connection)).encode()).hexdigest() == SHAPE
