"""Answers for machines: the JSON contract, CSV and Parquet."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dpquery.errors import Error

if TYPE_CHECKING:
    from dpquery.engine import Answer

EXACT_INTEGERS = 2**53  # what a JSON reader that knows only doubles still tells apart


def plain(value: object) -> Any:
    """The JSON form of a value: integers beyond 2^53 and decimals as strings, dates in ISO format, never NaN or an infinity."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= EXACT_INTEGERS else str(value)
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return f"{value:f}"
        case datetime.date() | datetime.time():
            return value.isoformat()
        case uuid.UUID():
            return str(value)
        case dict():
            return {str(key): plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case _:
            return str(value)


def document(answer: Answer) -> dict[str, Any]:
    """The JSON contract of an answer: columns, rows, intervals parallel to rows, confidence, warnings, receipt. The warnings are said once."""
    names = answer.table.column_names
    return {
        "columns": [{"name": name, "type": kind} for name, kind in zip(names, answer.types, strict=True)],
        "rows": [[plain(value) for value in row] for row in rows(answer)],
        "intervals": {name: plain(bars) for name, bars in named_intervals(answer).items()},
        "confidence": float(answer.confidence),
        "warnings": list(answer.warnings),
        "receipt": plain({name: value for name, value in answer.receipt.items() if name != "warnings"}),
    }


def named_intervals(answer: Answer) -> dict[str, tuple[tuple[Any, Any] | list[Any] | None, ...]]:
    """The error bars by column name, parallel to the rows, of a list one for each of its values; columns without any are left out."""
    return {name: bars for name, bars in zip(answer.table.column_names, answer.intervals, strict=True) if bars is not None}


def rows(answer: Answer) -> list[tuple[Any, ...]]:
    """The answer's rows as Python values."""
    columns = [column.to_pylist() for column in answer.table.columns]
    return list(zip(*columns, strict=True))


def dump(content: object) -> str:
    """One JSON text, in ASCII, so that no terminal and no locale can stumble over it; NaN cannot occur."""
    return json.dumps(content, allow_nan=False) + "\n"


def error(failure: Error) -> dict[str, Any]:
    """The JSON contract of an error; `entry` is there where the charge had been made already."""
    entry = getattr(failure, "entry", None)
    return {"error": failure.as_dict() | ({} if entry is None else {"entry": entry})}


def csv_text(answer: Answer) -> str:
    """The answer's columns as CSV, with a header; NULL is empty, a list is JSON. Intervals, warnings and the receipt are not in it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(answer.table.column_names)
    writer.writerows([_cell(value) for value in row] for row in rows(answer))
    return text.getvalue()


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value) if math.isfinite(value) else ""
        case list():
            return json.dumps(plain(value), allow_nan=False)
        case _:
            return str(plain(value))


def parquet_bytes(answer: Answer) -> bytes:
    """The answer's columns as a Parquet file; everything else of the JSON contract is the value of its metadata key `dpquery`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    beside = {key: value for key, value in document(answer).items() if key != "rows"}
    sink = pa.BufferOutputStream()
    pq.write_table(answer.table.replace_schema_metadata({"dpquery": json.dumps(beside, allow_nan=False)}), sink)
    return bytes(sink.getvalue())
