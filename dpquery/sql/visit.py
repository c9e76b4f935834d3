"""The reader of expressions, as it goes from node to node: what it may ask, where it stands, how it refuses."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sqlglot import exp

from dpquery.errors import Position, Refused
from dpquery.plan.coerce import Mismatch
from dpquery.plan.functions import FORBIDDEN, NAMES
from dpquery.plan.scalar import Scalar
from dpquery.sql.advice import shape
from dpquery.sql.fields import take
from dpquery.sql.refuse import called_before, near, position_of, refuse

DEEPEST = 200  # nodes within each other
MONTHS = "date_trunc('month', d), or year(d) and month(d): they group as the text would"
BINS = "date_trunc('hour', t), or floor(date_part('epoch', t) / 900) for bins of 900 seconds"
PATTERNS = "regexp_matches(s, 'a'), regexp_extract(s, 'a(b)', 1) or regexp_replace(s, 'a', 'b'), with a literal pattern"
PLACES = "left(s, 3), substring(s, 1, 3), replace(s, 'a', 'b') or CASE WHEN s LIKE .."
INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(("time_to_str", "strftime", "to_char", "format_date", "format_datetime", "format_timestamp", "date_format"), MONTHS),
    **dict.fromkeys(("date_bin", "time_bucket", "time_slice"), BINS),
    **dict.fromkeys(("width_bucket", "range_bucket"), "floor(x / 10) * 10, or CASE WHEN x < 10 THEN .."),
    **dict.fromkeys(("regexp", "rlike", "regexp_count", "regexp_instr", "regexp_extract_all", "regexp_match", "regexp_split_to_array"), PATTERNS),
    **dict.fromkeys(("split_part", "string_split", "split", "initcap"), PLACES),
    **dict.fromkeys(("concat_ws", "format", "printf", "lpad", "rpad", "pad"), "s || '-' || t"),
    **dict.fromkeys(("date", "make_date", "date_from_parts", "datefromparts"), "a date of literals, DATE '2024-03-01', or one moved: d + n"),
    **dict.fromkeys(
        ("datetime", "make_timestamp", "timestamp_from_parts"), "a literal, TIMESTAMP '2024-03-01 10:00:00', or a date moved: d + INTERVAL 10 HOUR"
    ),
    **dict.fromkeys(("age", "timediff", "months_between"), "date_diff('year', d, current_date), or 'month' or 'day'"),
    **dict.fromkeys(("decode", "decode_case"), "CASE x WHEN 1 THEN 'a' ELSE 'b' END"),
    **dict.fromkeys(("random", "rand", "uuid"), "a condition on a column; sampling protects nobody"),
}
LISTED = "a function that docs/functions.md lists"


class Scope(Protocol):
    """What a reader of expressions may ask: columns by name, places in the text, the text, and the time of asking (UTC)."""

    @property
    def source(self) -> str: ...

    @property
    def now(self) -> datetime.datetime: ...

    def column(self, node: exp.Column) -> Scalar: ...

    def position(self, node: exp.Expr) -> Position | None: ...


@dataclass(frozen=True, slots=True)
class At:
    """Where the reader stands: the scope, the readers by kind of node, and how deep."""

    scope: Scope
    readers: Mapping[type[exp.Expr], Reader]
    depth: int = 0

    def refuse(self, code: str, message: str, node: exp.Expr, instead: str | None = None) -> Refused:
        """The refusal of a node, with its place."""
        called = None if isinstance(node.meta.get("start"), int) else called_before(node, self.scope.source)
        position = self.scope.position(node) if called is None else position_of(called, self.scope.source)
        return refuse(code, message, node=node, instead=instead, source=self.scope.source, position=position)


Reader = Callable[[Any, At], Scalar]


def visit(node: exp.Expr, at: At) -> Scalar:
    """The typed expression of one node; a mismatch below becomes a refusal here, where the place is known."""
    while isinstance(node, exp.Paren):
        (node,) = take(node, "this")
    if at.depth >= DEEPEST:
        raise at.refuse("TOO_COMPLEX", f"the expression is nested more than {DEEPEST} deep", node)
    reader = at.readers.get(type(node))
    if reader is None:
        raise _unread(node, at)
    try:
        return reader(node, replace(at, depth=at.depth + 1))
    except Mismatch as error:
        raise at.refuse(error.code, error.message, node, error.instead) from None


def _unread(node: exp.Expr, at: At) -> Refused:
    """The refusal of a node that has no reader, by what it is."""
    match node:
        case exp.Anonymous():
            return unknown(str(take(node, "this", "expressions")[0]), node, at)
        case exp.Window():
            return at.refuse(
                "WINDOW_HERE", "a window function below the noise line is not supported", node, "windows over the aggregates of the answer"
            )
        case exp.AggFunc() | exp.Filter() | exp.WithinGroup() | exp.Distinct() | exp.IgnoreNulls() | exp.RespectNulls():
            return at.refuse("AGGREGATE_HERE", "an aggregate cannot stand inside a row's expression", node)
        case exp.Any() | exp.All() if not isinstance(node.this, exp.Query | exp.Subquery):
            word = "ANY" if isinstance(node, exp.Any) else "ALL"
            message = f"{word} takes a list that is written out, of at most 200 values unless they are compared by = ANY or <> ALL"
            return at.refuse("UNSUPPORTED_EXPRESSION", message, node, "x IN ('a', 'b'), or x LIKE 'a%' OR x LIKE 'b%'")
        case exp.Subquery() | exp.Select() | exp.SetOperation() | exp.Exists() | exp.Any() | exp.All():
            return at.refuse("SUBQUERY_HERE", "a subquery inside an expression is not supported", node, "a join on the privacy unit")
        case exp.Star() | exp.Columns():
            return at.refuse("STAR_HERE", "a star cannot stand inside a row's expression", node, "the columns by name")
        case exp.Placeholder() | exp.Parameter():
            return at.refuse("PARAMETER", "parameters are not supported", node, "the value itself")
        case exp.Lambda():
            return at.refuse("LAMBDA", "lambdas are not supported below the noise line", node)
        case exp.Collate():
            return at.refuse("COLLATION", "collations make different texts equal and are not supported below the noise line", node, "lower(s)")
        case exp.AtTimeZone():
            return at.refuse("TIME_ZONE", "time zones are not supported below the noise line: timestamps have none", node)
        case exp.Interval():
            return at.refuse("TYPE_MISMATCH", "an interval stands only beside a date or timestamp, as in d + INTERVAL 1 DAY", node)
        case exp.Func() if not isinstance(node, exp.Connector):
            return unknown(node.sql_name(), node, at)
        case _:
            name, instead = shape(node)
            return at.refuse("UNSUPPORTED_EXPRESSION", f"{name} is not supported below the noise line", node, instead)


def unknown(name: str, node: exp.Expr, at: At) -> Refused:
    """The refusal of a function: on purpose, with the reason, or because nobody knows it, with names like it."""
    name, written = name.lower(), _written(node, at)
    instead = INSTEAD.get(written, INSTEAD.get(name, LISTED))
    for known in (written, name):
        if known in FORBIDDEN:
            return at.refuse("FUNCTION_NOT_ALLOWED", f"{written or name}() {FORBIDDEN[known]}, so it is refused below the noise line", node, instead)
    said = written or name
    like = near(said, NAMES) if instead == LISTED else ""
    return at.refuse("UNKNOWN_FUNCTION", f"no function {said!r} is allowed below the noise line{like}", node, instead)


def _written(node: exp.Expr, at: At) -> str:
    """The function's name as the text has it, in small letters: the parser has names of its own. Empty where the node is not written as a call."""
    start, end = node.meta.get("start"), node.meta.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        found = called_before(node, at.scope.source)
        return "" if found is None else found.group(1).lower()
    word = at.scope.source[start : end + 1]
    return word.lower() if re.fullmatch(r"[A-Za-z_]\w{0,39}", word) else ""


def clock(scope: Scope) -> datetime.datetime:
    """The time of asking, in UTC and without a zone."""
    return scope.now.astimezone(datetime.UTC).replace(tzinfo=None) if scope.now.tzinfo else scope.now
