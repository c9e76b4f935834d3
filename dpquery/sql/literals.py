"""Relations made of literals: VALUES, UNNEST of a list, range() and generate_series(). They are public, and hold 10,000 rows at most."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import NoReturn

from sqlglot import exp

from dpquery.plan.coerce import Mismatch, common, convert
from dpquery.plan.scalar import Column, Scalar
from dpquery.sql.fields import argument, take
from dpquery.sql.names import Field, Frame, Scope, Source, Statement
from dpquery.sql.public import cast_to, text_of
from dpquery.sql.rowwise import expression
from dpquery.sql.sides import Open
from dpquery.values.types import DATE, INTEGER, NULL, TIMESTAMP, Kind, Type

MOST = 10_000
DAYS = {"DAY": 1, "WEEK": 7, "MONTH": 28, "QUARTER": 84, "YEAR": 365}  # at least


def nothing(statement: Statement) -> Open:
    """The one row, without a visible column, of a SELECT without FROM."""
    return Open("SELECT 0 AS c0", (Column(next(statement.ids), "", INTEGER),), Frame((Source("", ()),)), ())


def values(statement: Statement, node: exp.Values) -> Open:
    """VALUES (..), (..): columns col0, col1, .."""
    rows = [take(row, "expressions")[0] if isinstance(row, exp.Tuple) else [row] for row in take(node, "expressions", "alias")[0]]
    if len({len(row) for row in rows}) != 1:
        raise statement.refuse("VALUES", "the rows of VALUES differ in their numbers of columns", node, "as many values in each row")
    return _listed(statement, node, rows, [f"col{i}" for i in range(len(rows[0]))])


def unnested(statement: Statement, node: exp.Unnest) -> Open:
    """UNNEST([..]), UNNEST(generate_series(1, 3)): one column."""
    lists = take(node, "expressions", "alias")[0]
    if len(lists) == 1 and isinstance(lists[0], exp.GenerateSeries | exp.GenerateDateArray):
        return _spread(statement, lists[0])
    if len(lists) != 1 or not isinstance(lists[0], exp.Array):
        raise statement.refuse("UNNEST", "UNNEST in FROM takes one list of literals", node, "(SELECT 1 AS x UNION ALL SELECT 2) AS t")
    items = argument(lists[0], "expressions") or []
    if not items:
        raise statement.refuse("UNNEST", "UNNEST of an empty list has no rows and no type", node, "(SELECT 1 AS x UNION ALL SELECT 2) AS t")
    return _listed(statement, node, [[item] for item in items], ["unnest"])


def _spread(statement: Statement, node: exp.GenerateSeries | exp.GenerateDateArray) -> Open:
    """A series as UNNEST has it; one of dates is GENERATE_DATE_ARRAY's."""
    if isinstance(node, exp.GenerateSeries):
        return series(statement, node, "unnest")
    start, end, step = take(node, "start", "end", "step")
    ends = tuple(exp.cast(one, "DATE") if isinstance(one, exp.Literal) and one.is_string else one for one in (start, end))
    by = exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this="DAY")) if step is None else step
    return _moments(statement, node, "generate_series", (ends[0], ends[1]), by, DATE)


def _listed(statement: Statement, node: exp.Expr, rows: Sequence[Sequence[exp.Expr]], names: Sequence[str]) -> Open:
    """The rows, each column in the one type of its values."""
    if len(rows) * len(names) > MOST:
        raise statement.refuse("TOO_COMPLEX", f"more than {MOST:,} values in a list", node, "a public table of the values")
    scope, made, texts = Scope(Frame(()), statement), list[Column](), list[list[str]]()
    for i, name in enumerate(names):
        cells = [row[i] for row in rows]
        kind = _common(statement, node, scope, cells)
        made.append(Column(next(statement.ids), name, kind))
        texts.append([cast_to(text_of(cell, scope, {}), kind) for cell in cells])
    listed = ", ".join(f"({', '.join(row)})" for row in zip(*texts, strict=True))
    return _open(f"SELECT * FROM (VALUES {listed}) AS v({', '.join(f'c{i}' for i in range(len(names)))})", made, len(rows))


def _cell(statement: Statement, node: exp.Expr, scope: Scope) -> Scalar:
    """What is written in a list of values: literals, and what is computed of them alone."""
    below = node.find(exp.Query, exp.Subquery)
    if below is not None:
        message = "a list of values takes literals and what is computed of them, and no subquery"
        raise statement.refuse(
            "SCALAR_SUBQUERY", message, below, "the value itself; or the query in FROM in place of VALUES, (SELECT MAX(x) AS x FROM t)"
        )
    return expression(node, scope, "a list of values")


def _common(statement: Statement, node: exp.Expr, scope: Scope, cells: Sequence[exp.Expr]) -> Type:
    given = [_cell(statement, cell, scope) for cell in cells]
    try:
        kind = common(given)
        kind = INTEGER if kind == NULL else kind
        for value in given:
            convert(value, kind)
    except Mismatch as wrong:
        raise statement.refuse(wrong.code, f"values of one column: {wrong.message}", node, wrong.instead) from None
    if kind.kind is Kind.INTERVAL:
        raise statement.refuse("COLUMN_TYPE", "a column cannot be of type interval", node, "a number of days")
    return kind


def _open(sql: str, made: Sequence[Column], most: int) -> Open:
    return Open(sql, tuple(made), Frame((Source("", tuple(Field(c.name, c) for c in made)),)), (), most=max(1, most))


# ---- range and generate_series -------------------------------------------------------------------------------------------------------


def series(statement: Statement, node: exp.GenerateSeries, called: str | None = None) -> Open:
    """range(..) without its end, generate_series(..) with it: whole numbers, or days and months from a date on."""
    start, end, step, exclusive = take(node, "start", "end", "step", "is_end_exclusive")
    name = "range" if exclusive else "generate_series"
    if isinstance(step, exp.Interval):
        return _moments(statement, node, name, (start, end), step)
    first, last = _whole(statement, node, start), _whole(statement, node, end)
    by = 1 if step is None else _whole(statement, node, step)
    if by == 0:
        _refused(statement, node, "a step of 0 leads nowhere")
    found = range(first, last if exclusive else last + (1 if by > 0 else -1), by)
    if len(found) > MOST:
        _refused(statement, node, f"{name} of more than {MOST:,} rows")
    column = Column(next(statement.ids), called or name, INTEGER)
    return _open(f"SELECT CAST(s AS BIGINT) AS c0 FROM range({found.start}, {found.stop}, {found.step}) AS g(s)", [column], len(found))


def _moments(statement: Statement, node: exp.Expr, name: str, ends: tuple[exp.Expr, exp.Expr], step: exp.Interval, kind: Type = TIMESTAMP) -> Open:
    """Moments from a literal date or time on, by a literal interval; or dates."""
    first, last = (_moment(statement, node, end) for end in ends)
    this, unit = take(step, "this", "unit") if isinstance(step, exp.Interval) else (None, "")
    number, word = this.name if isinstance(this, exp.Literal) else "", str(unit).upper().removesuffix("S")
    if not number.isdigit() or not number.isascii() or not 0 < int(number[:7]) < 10**6 or word not in DAYS:
        _refused(statement, node, "a step of so many days, weeks, months or years is wanted")
    if (last - first).days > MOST * int(number) * DAYS[word]:
        _refused(statement, node, f"{name} of more than {MOST:,} rows")
    column = Column(next(statement.ids), name, kind)
    given = f"TIMESTAMP '{first.isoformat(' ')}', TIMESTAMP '{last.isoformat(' ')}', INTERVAL {int(number)} {word}"
    return _open(
        f"SELECT CAST(s AS {'DATE' if kind == DATE else 'TIMESTAMP'}) AS c0 FROM {name}({given}) AS g(s)",
        [column],
        (last - first).days // (int(number) * DAYS[word]) + 1,
    )


def _moment(statement: Statement, node: exp.Expr, end: exp.Expr) -> datetime.datetime:
    text = end.this if isinstance(end, exp.Cast) else None
    value = _cell(statement, end, Scope(Frame(()), statement))
    if isinstance(text, exp.Literal) and text.is_string and value.type in (DATE, TIMESTAMP):
        try:
            found = datetime.datetime.fromisoformat(text.name)
        except ValueError:
            found = None
        if found is not None and found.tzinfo is None:
            return found
    return _refused(statement, node, "literal dates or times are wanted, such as DATE '2024-01-01'")


def _whole(statement: Statement, node: exp.Expr, value: object) -> int:
    sign = 1
    while isinstance(value, exp.Neg | exp.Paren):
        sign = -sign if isinstance(value, exp.Neg) else sign
        (value,) = take(value, "this")
    text = value.name if isinstance(value, exp.Literal) and not value.is_string else ""
    if not text.isdigit() or not text.isascii() or len(text) > 18:
        _refused(statement, node, "literal whole numbers are wanted")
    return sign * int(text)


def _refused(statement: Statement, node: exp.Expr, why: str) -> NoReturn:
    raise statement.refuse("TABLE_FUNCTION", f"range and generate_series: {why}", node, "range(1, 13), or a declared public table")
