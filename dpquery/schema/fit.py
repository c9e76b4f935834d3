"""Which physical types may stand behind which declared ones, so that the scan's total cast neither merges nor loses values unannounced."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from dpquery.values.types import Kind, Type

INTEGERS: Final = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"})
WIDE: Final = frozenset({"UBIGINT", "HUGEINT", "UHUGEINT"})
FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})
TIMESTAMPS: Final = frozenset({"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"})

_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a declared type may read a physical one. `loss` says what the cast loses; None: nothing."""

    ok: bool
    loss: str | None = None


EXACT: Final = Fit(True)
NEVER: Final = Fit(False)


def fit(declared: Type, physical: str) -> Fit:
    """How the declared type fits the engine's."""
    match declared.kind:
        case Kind.BOOLEAN | Kind.DATE | Kind.UUID:
            return EXACT if physical == declared.kind.upper() else NEVER
        case Kind.INTEGER:
            return _integer(physical)
        case Kind.DECIMAL:
            return _decimal(declared.scale, physical)
        case Kind.FLOAT:
            return EXACT if physical in INTEGERS | WIDE | FLOATS or _DECIMAL.fullmatch(physical) else NEVER
        case Kind.STRING:
            return EXACT if physical in ("VARCHAR", "ENUM") else NEVER
        case Kind.TIMESTAMP:
            return (
                Fit(True, "parts of a microsecond are cut") if physical == "TIMESTAMP_NS" else EXACT if physical in TIMESTAMPS | {"DATE"} else NEVER
            )
        case Kind.INTERVAL | Kind.NULL | Kind.LIST:
            return NEVER


def suggested(physical: str) -> str | None:
    """The declared type that reads a physical one as it is; None where there is none."""
    if match := _DECIMAL.fullmatch(physical):
        return f"decimal({match[1]},{match[2]})"
    groups = {"integer": INTEGERS | WIDE, "float": FLOATS, "string": {"VARCHAR", "ENUM"}, "timestamp": TIMESTAMPS}
    alone = {"BOOLEAN": "boolean", "DATE": "date", "UUID": "uuid"}
    return alone.get(physical) or next((word for word, types in groups.items() if physical in types), None)


def _integer(physical: str) -> Fit:
    if physical in WIDE:
        return Fit(True, "values beyond 64 bits become NULL")
    return EXACT if physical in INTEGERS else NEVER


def _decimal(scale: int, physical: str) -> Fit:
    match = _DECIMAL.fullmatch(physical)
    if match:
        return EXACT if int(match[2]) <= scale else Fit(True, f"values are rounded to {scale} digits after the point")
    if physical in FLOATS:
        return Fit(True, f"values are rounded to {scale} digits after the point")
    return EXACT if physical in INTEGERS | WIDE else NEVER
