"""The error that a caller is content with, as people write it: `50`, `5% of 20000`, `5% of orders.amount`, `5% of SELECT count(*) FROM orders`;
for all columns, or for one by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from dpquery.engine.numeral import Amount, amount
from dpquery.errors import Refused
from dpquery.schema.model import Schema
from dpquery.values.types import LEAST_AMOUNT

if TYPE_CHECKING:
    import pyarrow as pa

PERCENT = re.compile(r"\s*([^\s%]+)\s*%\s*(?:of\s+(\S(?:.*\S)?)\s*)?", re.IGNORECASE | re.DOTALL)
QUESTION = re.compile(r"\(?\s*(?:SELECT|WITH|FROM)\b", re.IGNORECASE)
INSTEAD = "an amount such as 50, or a part of something public such as '5% of 20000' or '5% of orders.amount'"
Error = Amount | Mapping[str, Amount]
Seen = Callable[[str], "pa.Table | None"]  # the answer to a statement that the account has seen; None where it has seen none


@dataclass(frozen=True, slots=True)
class Goal:
    """How far off a column may be: `error` in its own units, or that part of the scale `of`; of the column of that name, or of all (None)."""

    column: str | None
    error: Fraction
    of: str | None = None
    said: str = ""


@dataclass(frozen=True, slots=True)
class Allowed:
    """A goal in the column's own units, and in words what it is a part of."""

    error: Fraction
    of: str | None = None


def goals(given: Error | None) -> tuple[Goal, ...]:
    """The goals of a call; none where it names no error. Refused where they cannot be read."""
    if given is None:
        return ()
    if isinstance(given, Mapping):
        if not given:
            raise Refused("BAD_ERROR", "an error is named for no column", instead=INSTEAD)
        return tuple(_goal(_column(name), one) for name, one in given.items())
    return (_goal(None, given),)


def _column(name: object) -> str:
    if not isinstance(name, str):
        raise Refused("BAD_ERROR", "an error is named by its column's name, a text", instead="error={'n': 50}")
    return name


def _goal(column: str | None, given: Amount) -> Goal:
    name, mark, error = given.partition("=") if isinstance(given, str) else ("", "", "")
    if mark:
        instead = f"error={{{name.strip()!r}: {error.strip()!r}}}"
        raise Refused("BAD_ERROR", "the error of one column is named by a mapping, not inside a text", instead=instead)
    part = PERCENT.fullmatch(given) if isinstance(given, str) else None
    if part is None:
        return Goal(column, _positive(amount("error", given)))
    if part[2] is None:
        raise Refused("BAD_ERROR", "a part in percent is a part of what? The answer itself is not known before it is paid", instead=INSTEAD)
    return Goal(column, _positive(amount("error", part[1])) / 100, part[2], f"{part[1]}% of {part[2]}")


def _positive(error: Fraction | None) -> Fraction:
    if error is None or error <= 0:
        raise Refused("BAD_ERROR", "an error must be above 0: no price buys an exact answer", instead=INSTEAD)
    if error < LEAST_AMOUNT:
        raise Refused("BAD_ERROR", "the error is out of all proportion", instead=INSTEAD)
    return error


def allowed(goal: Goal, schema: Schema, seen: Seen) -> Allowed:
    """The goal in the column's own units. Refused where its scale is no number, no column with declared bounds, and no answer that was seen."""
    if goal.of is None:
        return Allowed(goal.error)
    if QUESTION.match(goal.of):
        return Allowed(_positive(goal.error * _released(goal.of, seen)), f"{goal.said}, as it was released to this account")
    scale = next(_scales(goal.of, schema), None)
    if scale is None:
        raise Refused("BAD_ERROR", f"`{goal.of[:100]}` is no public scale above 0", instead=INSTEAD)
    size, what = scale
    return Allowed(_positive(goal.error * size), goal.said + what)


def _released(statement: str, seen: Seen) -> Fraction:
    """The size of the one number of an answer that the account has seen already: a function of what it was shown."""
    answer = seen(statement)
    if answer is None:
        message = "the scale of the error is the answer to a question that was not answered to this account yet, or is stored no more"
        raise Refused("BAD_ERROR", message, instead="ask it first, or name a public scale")
    value = answer.column(0)[0].as_py() if (answer.num_rows, answer.num_columns) == (1, 1) else None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not value or not math.isfinite(value):
        raise Refused("BAD_ERROR", "the scale of the error is not one number other than 0", instead="a statement with one row and one column")
    return abs(Fraction(value))


def _scales(of: str, schema: Schema) -> Iterator[tuple[Fraction, str]]:
    """The size of a scale, and what it is."""
    table, _, column = of.rpartition(".")
    declared = schema.tables[table].columns.get(column) if table in schema.tables else None
    if declared is not None and declared.lower is not None and declared.upper is not None and declared.upper > declared.lower:
        yield Fraction(declared.upper) - Fraction(declared.lower), ", the width of its declared bounds"
    try:
        size = amount("error", of) or Fraction(0)
    except Refused:
        return
    if size >= LEAST_AMOUNT:
        yield size, ""
