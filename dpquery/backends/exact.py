"""Results as they come off the wire, made into plain values."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpquery.backends.port import BoundedSQL
from dpquery.values.exact import Exact
from dpquery.values.types import Kind, Type, Value

if TYPE_CHECKING:
    import pyarrow as pa


def table(body: bytes) -> pa.Table:
    """The table of an Arrow stream."""
    import pyarrow as pa

    with pa.ipc.open_stream(body) as stream:
        return stream.read_all()


def exact(result: pa.Table, lowered: BoundedSQL, key_types: Sequence[Type], parts: int) -> Exact:
    """The result of a lowered statement: groups, and the integers of each part."""
    single = [i for i in range(parts) if not lowered.numbers or lowered.numbers[i] == 1]
    width = len(key_types) if lowered.listed is None else 1
    more = 3 if len(single) < parts else 0
    if result.num_columns != width + len(single) + more:
        raise ValueError("a result of another shape than its statement")
    if not more:
        return Exact(_keys(result, lowered, key_types), tuple(tuple(integers(result.column(width + i))) for i in range(parts)))
    import pyarrow.compute as pc

    of_bins = pc.is_valid(result.column(result.num_columns - 3))
    whole, bins = result.filter(pc.invert(of_bins)), result.filter(of_bins)
    keys, sums = _keys(whole, lowered, key_types), {part: tuple(integers(whole.column(width + i))) for i, part in enumerate(single)}
    found = {part: tuple(dict[int, int]() for _ in keys) for part in range(parts) if part not in sums}
    places = {key: i for i, key in enumerate(keys)}
    t, b, v = (integers(bins.column(result.num_columns - 3 + i)) for i in range(3))
    for key, part, bin, value in zip(_keys(bins, lowered, key_types, len(t)), t, b, v, strict=True):
        if not 0 <= bin < lowered.numbers[part]:
            raise ValueError("a bin that does not exist")
        found[part][places[key]][bin] = value
    return Exact(keys, tuple(sums.get(part, ()) for part in range(parts)), found)


def _keys(result: pa.Table, lowered: BoundedSQL, key_types: Sequence[Type], rows: int = 1) -> tuple[tuple[Value, ...], ...]:
    """The group of each row; without keys there is one, `()`."""
    if lowered.listed is not None:
        return tuple(lowered.listed[place] for place in integers(result.column(0)))
    if key_types:
        return tuple(zip(*(values(result.column(i), kind) for i, kind in enumerate(key_types)), strict=True))
    return ((),) * rows


def integers(column: pa.ChunkedArray[Any]) -> list[int]:
    """The integers of a column of 64 bits, or of 128 bits that travel as decimals without a scale."""
    import pyarrow as pa

    if column.null_count:
        raise ValueError("an integer is missing")
    if not pa.types.is_decimal128(column.type):
        found: list[Any] = column.to_pylist()
        return found
    return [value for chunk in column.chunks for value in _wide(chunk)]


def _wide(chunk: pa.Array[Any]) -> list[int]:
    data: Any = chunk.buffers()[1]
    words = np.frombuffer(data, dtype="<i8").reshape(-1, 2)[chunk.offset : chunk.offset + len(chunk)]
    low, high = words[:, 0], words[:, 1]
    if np.array_equal(low >> 63, high):
        found: list[int] = low.tolist()
        return found
    return [(int(h) << 64) + (int(w) & (2**64 - 1)) for w, h in zip(low, high, strict=True)]


def values(column: pa.ChunkedArray[Any], kind: Type) -> list[Value]:
    """The values of a column in their canonical Python types."""
    found: list[Any] = column.to_pylist()
    if kind.kind is Kind.UUID:
        return [None if v is None else uuid.UUID(v) for v in found]
    return found
