"""Columns that show error bars: an end of a bar, or a value with its bar and its noise as a JSON report."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, assert_never

from dpquery.aggregates.values import released
from dpquery.mechanisms import deviation
from dpquery.plan.draft import Affine, Edge, Either, Output
from dpquery.release.bars import Bar, Tables, named
from dpquery.release.bars import Bars as Cell
from dpquery.values.types import DATE, TIMESTAMP, Kind, Type

if TYPE_CHECKING:
    import pyarrow as pa

Bars = tuple[tuple[Cell, ...] | None, ...]
ENDS = ("lower_bound", "upper_bound")
SINGLE = ("count", "units", "total")  # cards whose value is one noisy number in steps of its grid


def filled(outputs: Sequence[Output], table: pa.Table, bars: Bars, tables: Tables, confidence: Fraction) -> tuple[pa.Table, Bars]:
    """The table with its columns of error bars filled in, which have no bars of their own."""
    import pyarrow as pa

    left = list(bars)
    for place, output in enumerate(outputs):
        if output.edge is None:
            continue
        column = left[place] or (None,) * table.num_rows
        match output.edge:
            case Edge.LOW | Edge.HIGH:
                end = 0 if output.edge is Edge.LOW else 1
                ends = [None if bar is None or isinstance(bar, list) else bar[end] for bar in column]
                made: pa.Array[Any] = _moments(output, ends, tables) or pa.array([None if one is None else float(one) for one in ends], pa.float64())
            case Edge.REPORT:
                known, rows = _known(output, tables), zip(table.column(place).to_pylist(), column, strict=True)
                made = pa.array([_report(value, bar, known, confidence) for value, bar in rows], pa.string())
            case _:
                assert_never(output.edge)
        table = table.set_column(place, table.column_names[place], made)
        left[place] = None
    return table, tuple(left)


def _moments(output: Output, ends: Sequence[Any], tables: Tables) -> pa.Array[Any] | None:
    """The ends of bars of a date or timestamp in its own type; None where they are numbers."""
    import pyarrow as pa

    how = next(iter(output.interval.branches), None) if isinstance(output.interval, Either) else output.interval
    kind = named(how.aggregate, tables)[1].type.element.kind if isinstance(how, Affine) and tables else None
    types = {Kind.DATE: pa.date32(), Kind.TIMESTAMP: pa.timestamp("us")}
    return pa.array(ends, types[kind]) if kind in types else None


def _known(output: Output, tables: Tables) -> Mapping[str, Any]:
    """What is known of an aggregate whatever its value: its bounds, and the noise's standard deviation where its value is one noisy number."""
    if not isinstance(output.interval, Affine):
        return {}
    released, aggregate = named(output.interval.aggregate, tables)
    found: dict[str, Any] = {}
    if aggregate.card in SINGLE and len(aggregate.parts) == 1:
        found["standard_deviation"] = _finite(deviation(released.priced.noises[aggregate.parts[0]]) * float(aggregate.step))
    if aggregate.bounds is not None:
        found["bounds"] = {name: _bound(end, aggregate.type) for name, end in zip(ENDS, (aggregate.bounds.low, aggregate.bounds.high), strict=True)}
    return found


def _report(value: Any, bar: Cell, known: Mapping[str, Any], confidence: Fraction) -> str | None:
    """The value and what is known of its noise, in the words of BigQuery's report; of a list all values, and all ends."""
    if value is None:
        return None
    report: dict[str, Any] = {"result": {"value": _number(value)}}
    if "standard_deviation" in known:
        report["result"]["standard_deviation"] = known["standard_deviation"]
    if bar is not None:
        ends = dict(zip(ENDS, _both(bar), strict=True))
        report["noise_confidence_interval"] = {**ends, "confidence_level": float(confidence)}
    if "bounds" in known:
        report["bounding_report"] = known["bounds"]
    return json.dumps(report)


def _both(bar: tuple[Any, Any] | list[Bar]) -> tuple[Any, Any]:
    """The lower and the upper end."""
    if isinstance(bar, list):
        pairs = [(None, None) if one is None else _both(one) for one in bar]
        return [low for low, _ in pairs], [high for _, high in pairs]
    return _number(bar[0]), _number(bar[1])


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(one) for one in value]
    if isinstance(value, date):
        return value.isoformat()
    return _finite(float(value)) if isinstance(value, float | Decimal) else value


def _bound(value: Fraction, type: Type) -> Any:
    return _number(released(value, type.element)) if type.element in (DATE, TIMESTAMP) else _finite(float(value))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
