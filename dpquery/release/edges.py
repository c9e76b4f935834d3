"""Columns that show error bars: an end of a bar, or a value with its bar and its noise as a JSON report."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, assert_never

from dpquery.mechanisms import deviation
from dpquery.plan.draft import Affine, Edge, Output
from dpquery.release.bars import Bar, Tables, named
from dpquery.release.bars import Bars as Cell

if TYPE_CHECKING:
    import pyarrow as pa

Bars = tuple[tuple[Cell, ...] | None, ...]
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
                made: pa.Array[Any] = pa.array([None if bar is None or isinstance(bar, list) else float(bar[end]) for bar in column], pa.float64())
            case Edge.REPORT:
                known, rows = _known(output, tables), zip(table.column(place).to_pylist(), column, strict=True)
                made = pa.array([_report(value, bar, known, confidence) for value, bar in rows], pa.string())
            case _:
                assert_never(output.edge)
        table = table.set_column(place, table.column_names[place], made)
        left[place] = None
    return table, tuple(left)


def _known(output: Output, tables: Tables) -> Mapping[str, Any]:
    """What is known of an aggregate whatever its value: its bounds, and the noise's standard deviation where its value is one noisy number."""
    if not isinstance(output.interval, Affine):
        return {}
    released, aggregate = named(output.interval.aggregate, tables)
    found: dict[str, Any] = {}
    if aggregate.card in SINGLE and len(aggregate.parts) == 1:
        found["standard_deviation"] = _finite(deviation(released.priced.noises[aggregate.parts[0]]) * float(aggregate.step))
    if aggregate.bounds is not None:
        found["bounds"] = {"lower_bound": _finite(float(aggregate.bounds.low)), "upper_bound": _finite(float(aggregate.bounds.high))}
    return found


def _report(value: Any, bar: Cell, known: Mapping[str, Any], confidence: Fraction) -> str | None:
    """The value and what is known of its noise, in the words of BigQuery's report; of a list all values, and all ends."""
    if value is None:
        return None
    report: dict[str, Any] = {"result": {"value": _number(value)}}
    if "standard_deviation" in known:
        report["result"]["standard_deviation"] = known["standard_deviation"]
    if bar is not None:
        ends = dict(zip(("lower_bound", "upper_bound"), _both(bar), strict=True))
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
    return _finite(float(value)) if isinstance(value, float | Decimal) else value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
