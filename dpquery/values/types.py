"""The types of values below the noise line: few, wide, and never taken from the data."""

from __future__ import annotations

import datetime
import uuid
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Final

Value = bool | int | Decimal | float | str | datetime.date | datetime.datetime | uuid.UUID | None
Shown = Value | list[Value]  # what a cell of an answer holds
LEAST_AMOUNT: Final = Fraction(1, 10**100)  # no smaller epsilon, rho or delta: its noise would be beyond what a double shows


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
    LIST = "list"  # of released values only


@dataclass(frozen=True, slots=True)
class Type:
    """A kind with, for DECIMAL, its digits after the point; for LIST, the kind of its values, and their digits."""

    kind: Kind
    scale: int = 0
    of: Kind | None = None

    def __str__(self) -> str:
        if self.kind is Kind.LIST:
            return f"{self.element}[]"
        return f"decimal(38,{self.scale})" if self.kind is Kind.DECIMAL else str(self.kind)

    @property
    def numeric(self) -> bool:
        return self.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)

    @property
    def element(self) -> Type:
        """The type of a list's values; of what is no list, itself."""
        return self if self.of is None else Type(self.of, self.scale)

    @property
    def listed(self) -> Type:
        """The type of a list of such values."""
        return Type(Kind.LIST, self.scale, self.kind)


BOOLEAN, INTEGER, FLOAT, STRING = Type(Kind.BOOLEAN), Type(Kind.INTEGER), Type(Kind.FLOAT), Type(Kind.STRING)
DATE, TIMESTAMP, UUID, INTERVAL, NULL = Type(Kind.DATE), Type(Kind.TIMESTAMP), Type(Kind.UUID), Type(Kind.INTERVAL), Type(Kind.NULL)


class Adjacency(StrEnum):
    """What neighbouring means: one unit's rows added or removed, or replaced by others."""

    ADD_REMOVE = "add_remove"
    REPLACE_ONE = "replace_one"
