"""Answers for notebooks: one escaped HTML table with error bars."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from dpquery.display import text

if TYPE_CHECKING:
    from dpquery.engine import Answer

ROWS = 100


def table(answer: Answer, limit: int = ROWS) -> str:
    """The first `limit` rows as an HTML table, with warnings and the receipt below; everything from the data is escaped."""
    found = text.columns(answer, limit)
    head = "".join(f"<th>{escape(column.name)}</th>" for column in found)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align: {"right" if column.number else "left"}">{escape(cell)}</td>' for column, cell in zip(found, row, strict=True)
        )
        + "</tr>"
        for row in zip(*(column.cells for column in found), strict=True)
    )
    below = [f"... and {answer.table.num_rows - limit} more rows"] if answer.table.num_rows > limit else []
    below += [f"Note: {text.safe(note)}." for note in text.bounds(answer.receipt)]
    below += [f"Warning: {text.safe(warning)}" for warning in answer.warnings]
    barred = f"{text.percent(answer.confidence)}% error bars. " if any(bars is not None for bars in answer.intervals) else ""
    below.append(barred + text.receipt_line(answer.receipt))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" + "".join(f"<p><small>{escape(line)}</small></p>" for line in below)
