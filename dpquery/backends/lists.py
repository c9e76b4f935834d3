"""Lists of values written into SQL."""

from __future__ import annotations

from collections.abc import Sequence

from dpquery.backends.scalar import literal
from dpquery.values.types import INTEGER, Type, Value

SHORT = 200  # rows; their places fit into 8 bits


def numbered(rows: Sequence[tuple[Value, ...]], types: Sequence[Type]) -> str:
    """A subquery with the places `k` of the rows and their values `v0`, `v1`, ... Long lists are written by column, which the engine reads faster.

    Places are as narrow as they can be, as rows are grouped and sorted by them.
    """
    names = [f"v{i}" for i in range(len(types))]
    if not rows:
        return f"SELECT 0 AS k, {', '.join(f'{literal(None, t)} AS {v}' for v, t in zip(names, types, strict=True))} WHERE FALSE"
    if len(rows) <= SHORT:
        values = ", ".join(f"({i}, {', '.join(literal(v, t) for v, t in zip(row, types, strict=True))})" for i, row in enumerate(rows))
        return f"SELECT k::UTINYINT AS k, {', '.join(names)} FROM (VALUES {values}) AS v(k, {', '.join(names)})"
    lists = [f"unnest({_literals([row[i] for row in rows], t)}) AS {v}" for i, (v, t) in enumerate(zip(names, types, strict=True))]
    return f"SELECT unnest(range({len(rows)})){'::USMALLINT' if len(rows) <= 2**16 else ''} AS k, {', '.join(lists)}"


def _literals(values: Sequence[Value], kind: Type) -> str:
    if kind == INTEGER:
        return f"[{', '.join('NULL' if v is None else str(v) for v in values)}]::BIGINT[]"
    return f"[{', '.join(literal(v, kind) for v in values)}]"
