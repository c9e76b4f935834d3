"""A session over a folder's data under a schema and a ledger that are made anew: what benchmarks that draw releases begin with."""

from __future__ import annotations

from pathlib import Path

from dpquery.engine import create_ledger, open_session
from dpquery.engine.session import Session


def session(schema: Path, text: str) -> Session:
    """The session; the folder's older ledgers are gone."""
    schema.write_text(text)
    for old in schema.parent.glob("*.ledger*"):
        old.unlink()
    create_ledger(schema)
    return open_session(schema)
