"""Values of public tables in WHERE: a subquery that is one aggregate of public rows. Exact, for nothing: in the plan a public relation of one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.rel import Join, Lookup, Public
from dpquery.plan.scalar import Column
from dpquery.sql import public
from dpquery.sql.dialect import parse_view
from dpquery.sql.env import Env
from dpquery.sql.fields import take
from dpquery.sql.names import Field, Frame, Scope, Source, Statement, declared, fold, identifier, view
from dpquery.sql.peruser import lifted
from dpquery.sql.rowwise import condition, expression
from dpquery.sql.sides import Bound, Open, Side
from dpquery.sql.unanswered import is_aggregate
from dpquery.values.types import FLOAT, INTEGER, Kind

From = Callable[[exp.Select], Side]  # reads FROM
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


def seated(statement: Statement, side: Bound, where: exp.Expr | None, env: Env, read: From) -> tuple[Bound, exp.Expr | None]:
    """The relation with a column for each such value, and WHERE with these columns in their places."""
    if where is None or not any(_is_public(statement, one, env) for one in values(where)):
        return side, where
    holder = exp.paren(where)  # a copy
    for old, new in list(zip(values(where), values(holder.this), strict=True)):
        if not _is_public(statement, old, env):
            continue
        found = _value(statement, _inner(old), read)
        name = f"public_{next(statement.publics)}"
        column = replace(found.columns[0], public=name)
        spelled = f"\0{name}"  # which no statement can spell
        frame = Frame((*side.frame.sources, Source("", (Field(spelled, column),), -1000 - column.id)), side.frame.merged)
        side = replace(side, rel=Lookup(side.rel, Public(name, found.sql, (column,)), Join.INNER, None), frame=frame)
        made = exp.column(spelled, quoted=True)
        made.meta.update(old.meta)
        new.replace(made)
    return side, holder.this


def values(node: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost subqueries that stand for values."""
    for below in list(node.walk(prune=lambda one: isinstance(one, exp.Query | exp.Subquery))):
        if isinstance(below, exp.Subquery) and not isinstance(below.parent, exp.In | exp.Exists | exp.Any | exp.All):
            yield below


def _inner(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Subquery):
        (node,) = take(node, "this")
    return node


def _is_public(statement: Statement, node: exp.Expr, env: Env) -> bool:
    """Whether all that a subquery reads are public tables, itself or through WITH queries and views."""
    while isinstance(node, exp.Subquery):
        node = node.this
    return isinstance(node, exp.Select) and _reads_public(statement, node, env)


def _reads_public(statement: Statement, node: exp.Expr, env: Env) -> bool:
    tables = [below.this for below in node.find_all(exp.Table)]
    return bool(tables) and all(isinstance(one, exp.Identifier) and _is_public_name(statement, identifier(one), env) for one in tables)


def _is_public_name(statement: Statement, name: str, env: Env) -> bool:
    if fold(name) in env.queries:
        query, inside = env.queries[fold(name)]
        return _reads_public(statement, query.this, inside)
    table, text = declared(statement, name), view(statement, name)
    if table is not None or text is None or fold(name) in env.views:
        return table is not None and table.public
    return _reads_public(statement, parse_view(text), Env(views=env.views | {fold(name)}))


def _value(statement: Statement, node: exp.Expr, read: From) -> Open:
    """The value as a public relation of one row of one column."""
    if not isinstance(node, exp.Select):
        raise AssertionError("a value is a SELECT")
    items, _, _, where = take(node, "expressions", "from_", "joins", "where")
    side = read(node)
    if len(items) != 1 or not isinstance(side, Open) or not any(is_aggregate(below) for below in items[0].walk()):
        message = "a subquery over public tables that is a value must be one aggregate: else it might have several rows, or none"
        raise statement.refuse("SCALAR_SUBQUERY", message, node, "MAX(x), or another aggregate, without GROUP BY")
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
    return f"{name}({public.cast_to(public.text_of(this, scope, called), value.type)})", Column(next(statement.ids), name, kind)


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
