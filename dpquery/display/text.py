"""Answers for people: tables with error bars that fit a terminal, and never a control character from the data."""

from __future__ import annotations

import io
import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from dpquery.display import wire

if TYPE_CHECKING:
    from dpquery.engine import Answer

WIDTH = 80
NARROWEST = 12  # a column of text is not folded below this; then each row becomes a block of its own
NUMERIC = ("BIGINT", "INTEGER", "HUGEINT", "DECIMAL", "DOUBLE", "FLOAT", "SMALLINT", "TINYINT")
BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def safe(text: str) -> str:
    """The text with everything that could steer a terminal written out as an escape: controls, line breaks, direction marks, lone surrogates."""
    return "".join(_escaped(c) if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in BIDI else c for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


# ---- cells -------------------------------------------------------------------------------------------------------------------------------


def cell(value: object, bar: tuple[Any, Any] | list[Any] | None = None) -> str:
    """A value as people read it, its error bar after it: `1204 ± 12` where the bar is symmetric but for rounding, else `37.4 [36.9, 38.1]`.

    The values of a list stand in brackets, each with its own bar.
    """
    if isinstance(value, list):
        return f"[{', '.join(map(cell, value, bar if isinstance(bar, list) else [None] * len(value)))}]"
    if bar is None or value is None:
        return _value(value)
    low, high = bar
    if isinstance(value, date):
        low, high = _as_days([low, high])
        return f"{_value(value)} [{_value(low)}, {_value(high)}]"
    middle, half = _fraction(value), (Fraction(high) - Fraction(low)) / 2
    digits = _digits(half)
    if abs(Fraction(low) + Fraction(high) - 2 * middle) <= max(_last_digit(value), half / 10**6):
        half = max(Fraction(high) - middle, middle - Fraction(low))
        return f"{_value(value, digits)} ± {_half(half, value, digits)}"
    return f"{_value(value, digits)} [{_value(low, digits)}, {_value(high, digits)}]"


def _fraction(value: object) -> Fraction:
    """A number exactly; something far from every error bar where it is none."""
    match value:
        case int() | Decimal():
            return Fraction(value)
        case float() if math.isfinite(value):
            return Fraction(value)
        case _:
            return Fraction(10**400)


def _last_digit(value: object) -> Fraction:
    """What the last digit of a value without rounding errors is worth; 0 for others."""
    match value:
        case int():
            return Fraction(1)
        case Decimal():
            return Fraction(10) ** int(value.as_tuple().exponent)
        case _:
            return Fraction(0)


def _half(half: Fraction, value: object, digits: int | None) -> str:
    """Half an error bar, in the form of the value beside it."""
    if half.denominator == 1 and isinstance(value, int):
        return str(int(half))
    if isinstance(value, Decimal):
        return f"{float(half):.{max(0, -int(value.as_tuple().exponent))}f}"
    return _value(float(half), digits)


def _digits(half: Fraction) -> int | None:
    """Digits after the point that an error bar of this half width leaves meaning to: two significant ones of its own."""
    return max(0, min(12, 1 - math.floor(math.log10(half)))) if half > 0 else None


def _value(value: object, digits: int | None = None) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case float() if not math.isfinite(value):
            return str(value)
        case float() if digits is not None and abs(value) < 1e15:
            return f"{value:.{digits}f}"
        case float():
            return f"{value:.6g}"
        case str():
            return safe(value)
        case _:
            return safe(str(wire.plain(value)))


def amount(written: object, rounding: str = ROUND_UP) -> str:
    """An amount of privacy in at most four digits: 2.5e-7 for 0.00000025. What was spent is rounded up, what is left down."""
    try:
        rounded = Context(prec=4, rounding=rounding).plus(Decimal(str(written))).normalize()
    except InvalidOperation:
        return safe(str(written))
    if not rounded or not rounded.is_finite() or -4 <= rounded.adjusted() < 7:
        return f"{rounded:f}"
    return f"{rounded.scaleb(-rounded.adjusted()).normalize():f}e{rounded.adjusted()}"


# ---- tables ------------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A column for people: its heading, its cells, and whether they are numbers (set to the right, never folded)."""

    name: str
    cells: tuple[str, ...]
    number: bool = False

    @property
    def width(self) -> int:
        """The width that this column cannot do without."""
        full = max((Text(text).cell_len for text in (self.name, *self.cells)), default=0)
        return full if self.number else min(full, max(NARROWEST, Text(self.name).cell_len))


def columns(answer: Answer, limit: int | None = None) -> list[Column]:
    """The first `limit` rows of an answer, column by column."""
    found = []
    for place, name in enumerate(answer.table.column_names):
        values = _as_days(answer.table.column(place).slice(0, limit).to_pylist())
        bars = answer.intervals[place]
        if bars is None:
            cells = tuple(map(cell, values))
        else:
            cells = tuple(cell(value, bar) if bar or value is None else f"{cell(value)} ± ?" for value, bar in zip(values, bars, strict=False))
        found.append(Column(safe(name), cells, answer.types[place].startswith(NUMERIC) and not answer.types[place].endswith("[]")))
    return found


def _as_days(values: list[Any]) -> list[Any]:
    """Moments that are all the first of their day, as date_trunc makes them of dates, without their time."""
    moments = [value for value in values if value is not None]
    whole = all(isinstance(value, datetime) and value == datetime.combine(value.date(), time()) for value in moments)
    return [value and value.date() for value in values] if moments and whole else values


def grid(found: Sequence[Column], width: int = WIDTH) -> RenderableType:
    """A table of the columns, or, where they do not fit the width, a block of lines for each row."""
    if sum(column.width + 3 for column in found) - 1 > width:
        return _blocks(found)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in found:
        table.add_column(Text(column.name), justify="right" if column.number else "left", no_wrap=column.number, overflow="fold")
    for row in zip(*(column.cells for column in found), strict=True):
        table.add_row(*map(Text, row))
    return table


def _blocks(found: Sequence[Column]) -> Text:
    margin = max(Text(column.name).cell_len for column in found)
    rows = zip(*(column.cells for column in found), strict=True)
    return Text(
        "\n\n".join("\n".join(f"{column.name:>{margin}}  {text}" for column, text in zip(found, row, strict=True)) for row in rows),
        overflow="fold",
    )


def facts(pairs: Iterable[tuple[str, str]]) -> RenderableType:
    """Names and values, a line each, the values one under the other."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(Text(name), Text(safe(value)))
    return table


# ---- an answer ---------------------------------------------------------------------------------------------------------------------------


def answer_lines(answer: Answer, limit: int | None = None, *, width: int = WIDTH) -> list[RenderableType]:
    """An answer for people: the table, what its error bars mean, the warnings, and what was paid."""
    lines: list[RenderableType] = [grid(columns(answer, limit), width), Text("")]
    left_out = answer.table.num_rows - (limit if limit is not None else answer.table.num_rows)
    if left_out > 0:
        lines.append(Text(f"... and {left_out} more rows"))
    if answer.table.num_rows and any(bars is not None for bars in answer.intervals):
        lines.append(Text(f"Error bars are for noise alone: {percent(answer.confidence)}% of them hold the value before noise."))
    lines += [Text(f"Note: {safe(note)}.") for note in bounds(answer.receipt)]
    lines += [Text(f"Warning: {safe(warning)}") for warning in answer.warnings]
    lines.append(Text(receipt_line(answer.receipt)))
    return lines


def percent(confidence: Fraction) -> str:
    """A confidence in percent, with all its digits: 99.9999 is not 100."""
    return f"{(Decimal(confidence.numerator) / confidence.denominator * 100).normalize():f}"


def bounds(receipt: Mapping[str, Any]) -> list[str]:
    """What the statement enforced beyond what was asked, each said once, with the aggregates for which it holds."""
    said: dict[str, list[str]] = {}
    for release in receipt.get("releases", ()):
        for note in release.get("notes", ()):
            said.setdefault(note, []).append(release["aggregate"])
    return [f"{note} ({', '.join(dict.fromkeys(aggregates))})" for note, aggregates in said.items()]


def receipt_line(receipt: Mapping[str, Any]) -> str:
    """What was paid by whom, what is left, and the ledger entry."""
    if "entry" not in receipt:
        return "Nothing was charged, and no private row was read."
    paid = f"Paid: {priced(receipt['price'])}, by {safe(str(receipt['analyst']))}."
    if receipt.get("stored", {}).get("charged") is False:
        paid = f"Paid nothing now: stored, and seen before by {safe(str(receipt['analyst']))} for {priced(receipt['price'])}."
    return f"{paid} Left: {remaining(receipt)}{_period(receipt.get('period'))}. Entry {receipt['entry']}."


def _period(period: Mapping[str, Any] | None) -> str:
    """Of a cap that renews, what the promise is about."""
    if period is None:
        return ""
    until = "the budget has no room for the next" if period["lapsed"] else f"until {period['ends']}"
    return f", in this period of {period['days']} days, {until} (the cap is promised for each period)"


def remaining(account: Mapping[str, Any]) -> str:
    """What is left of an account. Once it has Gaussian noise, epsilons add up no longer: it has a rho, and epsilon is what one statement may cost."""
    epsilon, rho, delta = (amount(account["left"][name], ROUND_DOWN) for name in ("epsilon", "rho", "delta"))
    if account["spent"]["epsilon"] == "infinite":
        return f"rho {rho} (at most epsilon {epsilon} in one statement), delta {delta}"
    return f"epsilon {epsilon}, delta {delta}"


def priced(price: Mapping[str, Any]) -> str:
    """A price in one phrase: its guarantee standing alone, and rho where that is what the ledger adds up."""
    said = f"epsilon {amount(price['epsilon'])}, delta {amount(price['delta'])}"
    return f"{said} (rho {amount(price['rho'])})" if price["charged_epsilon"] == "infinite" else said


def as_text(lines: Iterable[RenderableType], width: int = WIDTH) -> str:
    """The lines as one plain text; what is a string already is not folded."""
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False, highlight=False, markup=False, emoji=False)
    for line in lines:
        if isinstance(line, str):
            console.file.write(line + "\n")
        else:
            console.print(line)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"
