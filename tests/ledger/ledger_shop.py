"""A data set whose ledger the tests use, and prices to charge."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

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


def caps(epsilon: str, delta: str = "0") -> Caps:
    return Caps(epsilon=Decimal(epsilon), delta=Decimal(delta))


class Shop:
    """A data set in a folder: makes schemas of it and opens its ledger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "shop.duckdb"
        self.data.write_bytes(b"rows")
        self.path = folder / "shop.ledger"
        self._open: list[Ledger] = []

    def schema(
        self,
        budget: tuple[str, str] = ("8", "1e-6"),
        analysts: Mapping[str, tuple[str, str]] | None = None,
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

    def create(self, schema: Schema) -> Path:
        return ledger.create(schema, fingerprint="f1", identity=["shop.duckdb", 4, 1])

    def open(self, schema: Schema, **options: Any) -> Ledger:
        opened = ledger.open(self.path, schema, **options)
        self._open.append(opened)
        return opened

    def begin(self, **fields: Any) -> Ledger:
        """A new ledger, open."""
        schema = self.schema(**fields)
        self.create(schema)
        return self.open(schema)

    def close(self) -> None:
        for opened in self._open:
            opened.close()
        self._open.clear()
