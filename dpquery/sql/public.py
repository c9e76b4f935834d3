"""Public relations as SQL text over the physical public tables.

Every name in it is ours; every expression was read by the same allow-list as private ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import ErrorLevel, exp

from dpquery.plan.scalar import Column, Scalar
from dpquery.schema.model import Table
from dpquery.sql import scalar
from dpquery.sql.abroad import rounding, wide
from dpquery.sql.clock import told
from dpquery.sql.fields import check_written, take
from dpquery.sql.moments import shift
from dpquery.sql.names import Field, Frame, Scope, Source, Statement, column, fold
from dpquery.sql.rowwise import conjunct_nodes
from dpquery.sql.sides import Open
from dpquery.values.types import Kind, Type

TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.FLOAT: "DOUBLE",
    Kind.STRING: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.UUID: "UUID",
}


def base(statement: Statement, table: Table, alias: str, place: int) -> Open:
    """A declared public table: its declared columns, cast to their declared types."""
    made = tuple(column(statement, c) for c in table.columns.values())
    items = ", ".join(f"{cast_to(quoted(c.name), c.type)} AS c{i}" for i, c in enumerate(made))
    physical = ".".join(quoted(part) for part in table.physical.rsplit(".", 1))
    frame = Frame((Source(alias, tuple(Field(c.name, c) for c in made), place),))
    return Open(f"SELECT {items} FROM {physical}", made, frame, (table.name,))


def joined(left: Open, right: Open, kind: str, on: Sequence[str], frame: Frame, more: Sequence[tuple[Column, str]] = ()) -> Open:
    """Two public relations joined; `on` and the texts of further columns are in terms of `l` and `r`, see `places`."""
    items = [f"l.c{i} AS c{i}" for i in range(len(left.columns))]
    half = kind in ("SEMI", "ANTI")
    items += [f"r.c{i} AS c{len(left.columns) + i}" for i in range(0 if half else len(right.columns))]
    items += [f"{text} AS c{len(items) + i}" for i, (_, text) in enumerate(more)]
    condition = " AND ".join(f"({c})" for c in on) or "TRUE"
    text = f"SELECT {', '.join(items)} FROM ({left.sql}) AS l {kind} JOIN ({right.sql}) AS r ON {condition}"
    return Open(
        text,
        left.columns if half else (*left.columns, *right.columns, *(c for c, _ in more)),
        frame,
        (*left.tables, *right.tables),
        most=left.most * right.most,
    )


def places(left: Open, right: Open) -> dict[int, str]:
    """What the columns of two relations are called in the condition that joins them."""
    return {c.id: f"l.c{i}" for i, c in enumerate(left.columns)} | {c.id: f"r.c{i}" for i, c in enumerate(right.columns)}


def selected(
    statement: Statement, side: Open, items: Sequence[tuple[str, exp.Expr | Scalar, Scalar]], where: exp.Expr | None, distinct: bool, place: int
) -> Open:
    """SELECT [DISTINCT] items FROM side [WHERE ..]. An item is its name, its text's node (or its column, for a star) and its value."""
    scope, called = Scope(side.frame, statement), {c.id: f"q.c{i}" for i, c in enumerate(side.columns)}
    made, texts, aliases = list[Column](), list[str](), dict[str, exp.Expr]()
    for name, node, value in items:
        text = text_of(node, replace(scope, aliases=dict(aliases)), called) if isinstance(node, exp.Expr) else called[_id(node)]
        if isinstance(node, exp.Expr):
            aliases.setdefault(fold(name), node)
        texts.append(f"{cast_to(text, value.type)} AS c{len(made)}")
        made.append(renewed(statement, name, value))
    condition = "" if where is None else f" WHERE {text_of(where, scope, called)}"
    sql = f"SELECT {'DISTINCT ' if distinct else ''}{', '.join(texts)} FROM ({side.sql}) AS q{condition}"
    frame = Frame((Source("", tuple(Field(c.name, c) for c in made), place),))
    return Open(sql, tuple(made), frame, side.tables, most=side.most)


def text_of(node: exp.Expr, scope: Scope, called: Mapping[int, str]) -> str:
    """The text of an expression that was read already, its columns under the names of this place. What would fail is NULL, as on private rows."""

    def rename(below: exp.Expr) -> exp.Expr:
        if not isinstance(below, exp.Column):
            return told(below, scope) or below
        if scope.find(below) is None and fold(below.name) in scope.aliases:  # an earlier item of the same SELECT
            return exp.paren(_as_read(scope.aliases[fold(below.name)], scope).transform(rename), copy=False)
        table, _, name = called[_id(scope.column(below))].partition(".")
        return exp.column(name, table=table)

    return " AND ".join(_total(_as_read(part, scope).transform(rename)) for part in conjunct_nodes(node))


def _as_read(node: exp.Expr, scope: Scope) -> exp.Expr:
    """The node with what DuckDB would take otherwise than it was read: divisions and casts of other dialects, and a number of days of 64 bits."""
    holder, dates = exp.paren(node), node.find(exp.Cast, exp.CurrentDate, exp.Date, exp.LastDay) or _dated(node, scope)
    for below in reversed(list(holder.this.walk())):  # from within outwards
        match below:
            case exp.Div() if take(below, "this", "expression", "typed", "safe")[2] and _kinds(below, scope) == (Kind.INTEGER, Kind.INTEGER):
                below.replace(exp.IntDiv(this=exp.paren(below.left), expression=exp.paren(below.right)))
            case exp.Cast() if way := rounding(below):
                if scalar.read(below.this, scope).type.kind in (Kind.FLOAT, Kind.DECIMAL):
                    below.set("this", way(this=below.this.copy()))
                if wide(below):
                    below.set("to", exp.DataType(this=exp.DType.BIGINT))
            case exp.WidthBucket():
                below.replace(_bucket(below))
            case exp.Log() | exp.Pow() if isinstance(defined := _defined(below), exp.Expr):
                below.replace(defined)
            case exp.Add() | exp.Sub() if dates and _kinds(below, scope) == (Kind.DATE, Kind.INTEGER):
                below.set("expression", exp.TryCast(this=below.right.copy(), to=exp.DataType.build("INT")))
            case exp.Add() if dates and _kinds(below, scope) == (Kind.INTEGER, Kind.DATE):
                below.set("this", exp.TryCast(this=below.left.copy(), to=exp.DataType.build("INT")))
    found: exp.Expr = holder.this
    return found


def _bucket(node: exp.WidthBucket) -> exp.Expr:
    """The bucket's number as it was read: DuckDB has no function for it."""
    of, low, high, number = (exp.paren(one) for one in take(node, "this", "min_value", "max_value", "num_buckets"))
    zero, one = exp.Literal.number(0), exp.Literal.number(1)
    steps = exp.Mul(this=exp.paren(exp.Sub(this=of, expression=low)), expression=number)
    place = exp.Floor(this=exp.Div(this=exp.paren(steps), expression=exp.paren(exp.Sub(this=high, expression=low.copy()))))
    below = exp.If(this=exp.LT(this=place, expression=zero), true=zero.copy())
    above = exp.If(this=exp.GTE(this=place.copy(), expression=number.copy()), true=exp.Add(this=number.copy(), expression=one))
    within = exp.Add(this=exp.cast(place.copy(), "BIGINT"), expression=one.copy())
    return exp.paren(exp.Case(ifs=[below, above], default=within))


def _defined(node: exp.Log | exp.Pow) -> exp.Expr | None:
    """The logarithm to a base or the power where it has a value, else NULL: DuckDB has infinities there. None where nothing is to do."""
    one, two = take(node, "this", "expression")
    if two is None:
        return None
    zero, base, other = exp.Literal.number(0), exp.paren(one), exp.paren(two)
    if isinstance(node, exp.Log):
        fits: exp.Expr = exp.and_(exp.GT(this=base, expression=zero), exp.NEQ(this=base.copy(), expression=exp.Literal.number(1)))
    else:
        fits = exp.not_(exp.and_(exp.EQ(this=base, expression=zero), exp.LT(this=other, expression=zero.copy())))
    return exp.Case(ifs=[exp.If(this=fits, true=node.copy())])


def _dated(node: exp.Expr, scope: Scope) -> bool:
    return any(scope.column(column).type.kind is Kind.DATE for column in node.find_all(exp.Column))


def _kinds(node: exp.Binary, scope: Scope) -> tuple[Kind | None, Kind | None]:
    """The kinds of both sides; None of an interval, which is no value."""
    left, right = (None if shift(side) is not None else scalar.read(side, scope).type.kind for side in (node.left, node.right))
    return left, right


NEVER_FAIL = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
)


def _total(node: exp.Expr) -> str:
    """The text; NULL where a divisor is 0, and where anything else fails. Plain comparisons stay bare, so that a join can hash them."""
    for division in reversed(list(node.find_all(exp.Div, exp.IntDiv, exp.Mod))):  # from within outwards
        divisor = take(division, "this", "expression", "typed", "safe")[1]
        if not isinstance(divisor, exp.Literal) or divisor.name in ("0", "0.0"):
            divisor.replace(exp.Nullif(this=divisor.copy(), expression=exp.Literal.number(0)))
    text = written(node)
    return text if all(isinstance(below, NEVER_FAIL) for below in node.walk()) else f"TRY({text})"


def written(node: exp.Expr) -> str:
    """The node as DuckDB's SQL; an SqlglotError where that cannot say the same, Refused where it would say more than was read."""
    check_written(node)
    return _unchained(node).sql(dialect="duckdb", comments=False, unsupported_level=ErrorLevel.RAISE)


COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def _unchained(node: exp.Expr) -> exp.Expr:
    """The node with comparisons of comparisons in parentheses, as they were read: DuckDB takes no a = b = c."""
    if not any(_in_chain(below) for below in node.walk() if below is not node):
        return node
    found: exp.Expr = node.copy()
    for below in reversed([one for one in found.walk() if one is not found and _in_chain(one)]):  # from within outwards
        below.replace(exp.paren(below.copy()))
    return found


def _in_chain(node: exp.Expr) -> bool:
    return isinstance(node, COMPARISONS) and isinstance(node.parent, COMPARISONS)


def quoted(name: str) -> str:
    """The name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _id(value: Scalar) -> int:
    if not isinstance(value, Column):
        raise AssertionError("a public relation shows columns only")
    return value.id


def renewed(statement: Statement, name: str, value: Scalar) -> Column:
    """The column that an item becomes: an unmodified one keeps what is declared about it."""
    if isinstance(value, Column):
        return replace(value, id=next(statement.ids), name=name)
    return Column(next(statement.ids), name, value.type)


def cast_to(text: str, kind: Type) -> str:
    """The text in its declared type, NULL where it does not fit; a float without NaN and without a negative zero."""
    name = f"DECIMAL(38,{kind.scale})" if kind.kind is Kind.DECIMAL else TYPES[kind.kind]
    cast = f"TRY_CAST({text} AS {name})"
    return f"NULLIF({cast} + 0.0, 'nan'::DOUBLE)" if kind.kind is Kind.FLOAT else cast
