"""Values of public tables below the noise: subqueries of one row and one column. Exact, for nothing: in the plan public relations of one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.draft import Opened
from dpquery.plan.intervals import interval
from dpquery.plan.rel import Public
from dpquery.plan.scalar import Column
from dpquery.sql import public
from dpquery.sql.fields import peek, take
from dpquery.sql.names import Frame, Scope, Source, Statement
from dpquery.sql.peruser import lifted
from dpquery.sql.refuse import place
from dpquery.sql.rowwise import condition, expression
from dpquery.sql.semi import plain
from dpquery.sql.sides import Open, Side
from dpquery.sql.unanswered import is_aggregate
from dpquery.values.types import FLOAT, INTEGER, Kind

From = Callable[[exp.Select], Side]  # reads FROM
Query = Callable[[exp.Expr], Side]  # reads a query
WITHIN = ("avg", "median", "min", "max")  # what lies between the bounds of its argument
NUMBERS: dict[type[exp.Expr], str] = {
    exp.Avg: "avg",
    exp.Sum: "sum",
    exp.Median: "median",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
}
EXTREMES: dict[type[exp.Expr], str] = {exp.Min: "min", exp.Max: "max"}
INSTEAD = "COUNT, SUM, AVG, MIN, MAX, MEDIAN, STDDEV or VARIANCE of public rows"


def values(node: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost subqueries that stand for values."""
    for below in list(node.walk(prune=lambda one: isinstance(one, exp.Query | exp.Subquery))):
        if isinstance(below, exp.Subquery) and not isinstance(below.parent, exp.In | exp.Exists | exp.Any | exp.All):
            yield below


def value(statement: Statement, node: exp.Expr, read: From, query: Query) -> tuple[Public, Column]:
    """The value of a subquery over public tables: a public relation of one row, and its column."""
    inner = _inner(node)
    items = peek(inner, "expressions")
    if plain(inner) and not _nested(inner) and len(items) == 1 and any(is_aggregate(below) for below in items[0].walk()):
        found = _value(statement, inner, read)
        return _held(statement, node, found.sql, found.columns[0])
    side = query(inner)
    if not isinstance(side, Open):
        raise AssertionError("a query over public tables is public")
    fields = side.frame.fields()
    if len(fields) != 1 or not isinstance(fields[0].value, Column):
        raise statement.refuse("SCALAR_SUBQUERY", f"a subquery that is a value has {len(fields)} columns", node, "one column")
    column = fields[0].value
    rows = f"SELECT c{side.columns.index(column)} AS c0 FROM ({side.sql}) AS q"
    checked = Public(f"public_{next(statement.publics)}", rows, (replace(column, id=next(statement.ids)),))
    statement.opened.append(Opened(checked, side.tables, True, place(node)))  # refused before the charge where it has several rows
    return _held(statement, node, f"SELECT c0 FROM (SELECT 1 AS one) LEFT JOIN (SELECT c0 FROM ({rows}) LIMIT 1) ON TRUE", column)


def _held(statement: Statement, node: exp.Expr, sql: str, column: Column) -> tuple[Public, Column]:
    name = f"public_{next(statement.publics)}"
    made = replace(column, id=next(statement.ids), name="value", public=name)
    return Public(name, sql, (made,)), made


def _nested(node: exp.Expr) -> bool:
    """Whether WHERE of the query has subqueries of its own."""
    where = peek(node, "where")
    return where is not None and where.find(exp.Query, exp.Subquery) is not None


def _inner(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Subquery):
        (node,) = take(node, "this")
    return node


def _value(statement: Statement, node: exp.Expr, read: From) -> Open:
    """The value as a public relation of one row of one column."""
    if not isinstance(node, exp.Select):
        raise AssertionError("a value is a SELECT")
    items, _, _, where, _, distinct = take(node, "expressions", "from_", "joins", "where", "with_", "distinct")
    if distinct is not None and take(distinct, "on")[0] is not None:
        raise statement.refuse("DISTINCT_ON", "DISTINCT ON is not supported", distinct, "DISTINCT")
    side = read(node)
    if not isinstance(side, Open):
        raise AssertionError("a query over public tables is public")
    scope, called = Scope(side.frame, statement), {c.id: f"q.c{i}" for i, c in enumerate(side.columns)}
    kept = ""
    if where is not None:
        test = take(where, "this")[0]
        condition(test, scope, "WHERE")
        kept = f" WHERE {public.text_of(test, scope, called)}"
    made, texts = list[Column](), list[str]()

    def made_of(below: exp.Expr) -> Column:
        text, column = aggregate(statement, below, scope, called)
        texts.append(f"{public.cast_to(text, column.type)} AS c{len(texts)}")
        made.append(column)
        return column

    item = lifted(items[0].this if isinstance(items[0], exp.Alias) else items[0], is_aggregate, made_of)
    one = Open(f"SELECT {', '.join(texts)} FROM ({side.sql}) AS q{kept}", tuple(made), Frame((Source("", ()),)), side.tables)
    value = expression(item, Scope(one.frame, statement), "a subquery's SELECT")
    if value.type.kind in (Kind.INTERVAL, Kind.NULL):
        raise statement.refuse("COLUMN_TYPE", f"a value cannot be of type {value.type}", node, "a CAST to another type")
    return public.selected(statement, one, [("value", item, value)], None, False, 0)


def aggregate(statement: Statement, node: exp.Expr, scope: Scope, called: dict[int, str]) -> tuple[str, Column]:
    """The aggregate of public rows as text, and its column."""
    if isinstance(node, exp.Count):
        return _count(statement, node, scope, called)
    name = NUMBERS.get(type(node)) or EXTREMES.get(type(node))
    if name is None:
        raise _unknown(statement, node)
    this = take(node, "this", "expressions")[0]
    if isinstance(this, exp.Distinct):
        raise _unknown(statement, node)
    value = expression(this, scope, "an aggregate")
    if name in NUMBERS.values() and not value.type.numeric:
        raise statement.refuse("TYPE_MISMATCH", f"{name.upper()} takes numbers", node, "a CAST to a number")
    kind = value.type if name in ("sum", "min", "max") else FLOAT
    bounds = interval(value) if name in WITHIN and value.type.numeric else None
    return f"{name}({public.cast_to(public.text_of(this, scope, called), value.type)})", Column(next(statement.ids), name, kind, bounds)


def _count(statement: Statement, node: exp.Count, scope: Scope, called: dict[int, str]) -> tuple[str, Column]:
    this, more = take(node, "this", "expressions", "big_int")[:2]
    if more:
        raise _unknown(statement, node)
    column, distinct = Column(next(statement.ids), "count", INTEGER), ""
    if this is None or isinstance(this, exp.Star):
        return "count(*)", column
    if isinstance(this, exp.Distinct):
        several = take(this, "expressions")[0]
        if len(several) != 1:
            raise _unknown(statement, node)
        this, distinct = several[0], "DISTINCT "
    value = expression(this, scope, "an aggregate")
    return f"count({distinct}{public.cast_to(public.text_of(this, scope, called), value.type)})", column


def _unknown(statement: Statement, node: exp.Expr) -> Refused:
    return statement.refuse("SCALAR_SUBQUERY", f"{statement.spelled(node)} of public rows as a value is not supported", node, INSTEAD)
