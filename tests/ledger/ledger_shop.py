"""A data set whose ledger the tests use, and prices to charge."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest

from dpquery import ledger
from dpquery.accounting.event import Price
from dpquery.accounting.zcdp import laplace_rho_up
from dpquery.ledger import Ledger
from dpquery.schema.model import Caps, Group, Limits, Schema, Source
from dpquery.values.types import Adjacency


def laplace(epsilon: str, delta: str = "0") -> Price:
    exact = Fraction(epsilon)
    return Price(exact, laplace_rho_up(exact), Fraction(delta))


def gaussian(rho: str, delta: str = "0") -> Price:
    return Price(None, Fraction(rho), Fraction(delta))


def caps(epsilon: str, delta: str = "0", period: int | None = None) -> Caps:
    return Caps(epsilon=Decimal(epsilon), delta=Decimal(delta), period=period)


class Clock:
    """The clock that the log reads, in days since the tests' first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.day = 0.0
        monkeypatch.setattr("dpquery.ledger.log._now", self.now)

    def now(self) -> str:
        return (datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=self.day)).isoformat(timespec="microseconds").replace("+00:00", "Z")


class Shop:
    """A data set in a folder: makes schemas of it and opens its ledger, a file there, or the database that a file beside the folder names."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.folder = folder
        named = folder.with_name(folder.name + ".url")
        if url is not None:
            named.write_text(url)
        folder.mkdir(exist_ok=True)
        self.data = folder / "shop.duckdb"
        self.data.write_bytes(b"rows")
        self.path = folder / "shop.ledger"
        self.place = named.read_text() if named.exists() else self.path
        self._open: list[Ledger] = []

    def schema(
        self,
        budget: tuple[str, str] = ("8", "1e-6"),
        analysts: Mapping[str, tuple[str, str] | tuple[str, str, int]] | None = None,
        groups: Mapping[str, tuple[tuple[str, str], tuple[str, ...]]] | None = None,
        **other: Any,
    ) -> Schema:
        fields: dict[str, Any] = {
            "file": self.folder / "shop.yaml",
            "digest": "",
            "dataset": "shop",
            "source": Source(path="shop.duckdb"),
            "privacy_unit_table": "users",
            "privacy_unit_column": "user_id",
            "budget": caps(*budget),
            "analysts": {name: caps(*cap) for name, cap in (analysts or {"default": budget}).items()},
            "groups": {name: Group(caps=caps(*cap), members=members) for name, (cap, members) in (groups or {}).items()},
            "adjacency": Adjacency.ADD_REMOVE,
            "limits": Limits(timeouts_per_account=3),
            "tables": {},
        }
        return Schema(**{**fields, **other})

    def create(self, schema: Schema) -> ledger.Place:
        return ledger.create(schema, self.place, fingerprint="f1", identity=["shop.duckdb", 4, 1])

    def open(self, schema: Schema, **options: Any) -> Ledger:
        return self.take(ledger.open(self.place, schema, **options))

    def take(self, opened: Ledger) -> Ledger:
        """The ledger, which is closed with the shop."""
        self._open.append(opened)
        return opened

    def begin(self, **fields: Any) -> Ledger:
        """A new ledger, open."""
        schema = self.schema(**fields)
        self.create(schema)
        return self.open(schema)

    def connect(self) -> Any:
        """A connection of somebody else, without a transaction."""
        if isinstance(self.place, str):
            return psycopg.connect(self.place, autocommit=True)
        return sqlite3.connect(self.path, isolation_level=None)

    def edit(self, *statements: str) -> None:
        """The ledger altered from outside, its guards as they were."""
        if isinstance(self.place, str):
            with psycopg.connect(self.place) as connection:
                for statement in ("SET session_replication_role = replica", *statements):
                    connection.execute(statement.encode())
            return
        with sqlite3.connect(self.path) as file:
            guards = file.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
            for name, _ in guards:
                file.execute(f"DROP TRIGGER {name}")
            for statement in (*statements, *(sql for _, sql in guards)):
                file.execute(statement)
        file.close()

    def remove(self) -> None:
        """No ledger is there any more."""
        if isinstance(self.place, str):
            with psycopg.connect(self.place) as connection:
                name = connection.execute("SELECT current_schema()").fetchone()
                connection.execute(f"DROP SCHEMA {name[0]} CASCADE; CREATE SCHEMA {name[0]}".encode() if name else b"")
            return
        for file in self.folder.glob("shop.ledger*"):
            file.unlink()

    def close(self) -> None:
        for opened in self._open:
            opened.close()
        self._open.clear()
