"""The types of values below the noise line: few, wide, and never taken from the data."""

from __future__ import annotations

import datetime
import uuid
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

Value = bool | int | Decimal | float | str | datetime.date | datetime.datetime | uuid.UUID | None


class Kind(StrEnum):
    """What a value is; the words of the schema file."""

    BOOLEAN = "boolean"
    INTEGER = "integer"  # 64 bits
    DECIMAL = "decimal"  # 38 digits, `scale` of them after the point
    FLOAT = "float"  # 64 bits
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"  # without zone, microseconds
    UUID = "uuid"
    INTERVAL = "interval"  # literals only, never a column or a result (equality coarser than identity)
    NULL = "null"  # the literal NULL, before it takes another type


@dataclass(frozen=True, slots=True)
class Type:
    """A kind with, for DECIMAL, its digits after the point."""

    kind: Kind
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal(38,{self.scale})" if self.kind is Kind.DECIMAL else str(self.kind)

    @property
    def numeric(self) -> bool:
        return self.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)


BOOLEAN, INTEGER, FLOAT, STRING = Type(Kind.BOOLEAN), Type(Kind.INTEGER), Type(Kind.FLOAT), Type(Kind.STRING)
DATE, TIMESTAMP, UUID, INTERVAL, NULL = Type(Kind.DATE), Type(Kind.TIMESTAMP), Type(Kind.UUID), Type(Kind.INTERVAL), Type(Kind.NULL)


class Adjacency(StrEnum):
    """What neighbouring means: one unit's rows added or removed, or replaced by others."""

    ADD_REMOVE = "add_remove"
    REPLACE_ONE = "replace_one"
