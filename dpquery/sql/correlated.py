"""Values of public tables that read the private row around them: aggregates of the public rows that equal it, looked up by what is equal.

`(SELECT max(c.tax) FROM countries c WHERE c.country = u.country)` is a column of `SELECT country, max(tax) FROM countries GROUP BY country`,
LEFT JOINed on the equality: each private row meets one row at most, and where it meets none a count is 0 and all else NULL, as of no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.coerce import Mismatch
from dpquery.plan.functions import call
from dpquery.plan.rel import Join, Lookup, Public
from dpquery.plan.scalar import Column, Literal, Scalar
from dpquery.sql.fields import peek
from dpquery.sql.names import MADE, Scope, Statement
from dpquery.sql.partners import conjoined
from dpquery.sql.peruser import outermost
from dpquery.sql.refuse import place
from dpquery.sql.rowwise import conjunct_nodes, expression
from dpquery.sql.semi import Read, plain, split
from dpquery.sql.sides import Bound, Open, Side
from dpquery.sql.unanswered import is_aggregate
from dpquery.values.types import INTEGER

From = Callable[[exp.Select], Side]  # reads FROM
Query = Callable[[exp.Expr], Side]  # reads a query


class Below(NamedTuple):
    """Who reads what a subquery holds."""

    tables: From
    query: Query
    inner: Read
    apart: Callable[[Statement], From]  # the first, of a copy of the statement


WHERE = "with equal values alone in WHERE, inner.x = outer.y"
INSTEAD = "one aggregate of public rows that equal the row outside, WHERE inner.x = outer.y; or a join with the public table"


def correlated(statement: Statement, side: Bound, node: exp.Expr, scope: Scope, read: From, query: Query) -> tuple[Bound, Scalar] | None:
    """The rows with the columns that the subquery's value comes of, and that value; None where it reads nothing of them."""
    inner = unwrapped(node)
    where = peek(inner, "where") if isinstance(inner, exp.Select) and plain(inner) else None
    if not isinstance(inner, exp.Select) or where is None:
        return None
    bare = inner.copy()
    bare.set("where", None)
    if len(bare.expressions) != 1 or bare.args.get("with_") is not None or not outermost(bare.expressions[0], is_aggregate):
        return None
    rows = read(bare)
    if not isinstance(rows, Open):
        return None
    inside = Scope(rows.frame, statement)
    own, across = split(conjunct_nodes(where.this), inside)
    if not across or not any(known(scope, one) for condition in across for one in condition.find_all(exp.Column) if not inside.inside(one)):
        return None  # what is known nowhere is refused as such
    pairs = [_sides(statement, one, inside) for one in across]
    item = bare.expressions[0].this if isinstance(bare.expressions[0], exp.Alias) else bare.expressions[0]
    made = _grouped(statement, bare, own, [key for key, _ in pairs], outermost(item, is_aggregate), query)
    on = [_equal(statement, expression(outside, scope, "a subquery"), key, outside) for (_, outside), key in zip(pairs, made.columns, strict=False)]
    values = [
        call("coalesce", column, Literal(0, INTEGER)) if isinstance(below, exp.Count) else column
        for below, column in zip(outermost(item, is_aggregate), made.columns[len(pairs) :], strict=True)
    ]
    found = expression(over(statement, item, inside, values, is_aggregate), scope, "a subquery's SELECT")
    return replace(side, rel=Lookup(side.rel, made, Join.LEFT, conjoined(on))), found


def around(statement: Statement, node: exp.Expr, scope: Scope, wrong: Refused) -> Refused:
    """The refusal of a subquery over public tables: where the name that is not found in it is one of the row around it, as such."""
    read = _read_outside(node, scope, wrong)
    if read is None:
        return wrong
    message = f"the subquery reads {read.name!r} of the row around it, for which several public rows may be found"
    items = [one for one in peek(unwrapped(node), "expressions") or () if not one.find(exp.Star, exp.AggFunc)]
    text = "" if len(items) != 1 else items[0].unalias().sql(dialect="duckdb", comments=False)[:100]
    return statement.refuse("CORRELATED_VALUE", message, read, f"SELECT max({text}) in the subquery, {WHERE}" if text else INSTEAD)


def grouped_around(statement: Statement, node: exp.Expr, scope: Scope, wrong: Refused) -> Refused:
    """The same of a subquery of EXISTS or IN that does more than filter and show."""
    why = "as only WHERE of one without GROUP BY, HAVING, ORDER BY and LIMIT may"
    instead = "these in a subquery of its FROM: SELECT 1 FROM (SELECT .. GROUP BY ..) AS s WHERE s.x = outer.x"
    return _reading(statement, node, scope, wrong, ("SUBQUERY_HERE", why, instead))


def once_for_all(statement: Statement, node: exp.Expr, scope: Scope, wrong: Refused) -> Refused:
    """Why a subquery that is released cannot read the row around it, where it is refused for a name of that row."""
    why = "but what private rows give is released once, for all rows"
    instead = "the key and its aggregate in a subquery with GROUP BY; it is joined, or read by the row around it"
    return _reading(statement, node, scope, wrong, ("SUBQUERY_ABOVE_NOISE", why, instead))


def _reading(statement: Statement, node: exp.Expr, scope: Scope, wrong: Refused, told: tuple[str, str, str]) -> Refused:
    """The refusal that names a column of the row around the subquery (code, why, what to write instead), if it is one that was not found."""
    read, (code, why, instead) = _read_outside(node, scope, wrong), told
    return wrong if read is None else statement.refuse(code, f"the subquery reads {read.name!r} of the row around it, {why}", read, instead)


def _read_outside(node: exp.Expr, scope: Scope, wrong: Refused) -> exp.Column | None:
    """The column of the row around it that the subquery is refused for."""
    if wrong.code not in ("UNKNOWN_COLUMN", "UNKNOWN_TABLE"):
        return None
    return next((one for one in node.find_all(exp.Column) if place(one) == wrong.position and known(scope, one)), None)


def unwrapped(node: exp.Expr) -> exp.Expr:
    """The query without parentheses."""
    while isinstance(node, exp.Subquery):
        node = node.this
    return node


def known(scope: Scope, node: exp.Column) -> bool:
    """Whether the name is one there."""
    try:
        return scope.find(node) is not None
    except Refused:
        return False


def _sides(statement: Statement, node: exp.Expr, inside: Scope) -> tuple[exp.Expr, exp.Expr]:
    """The sides of an equality: that of the public rows, and that of the row outside."""
    if isinstance(node, exp.EQ):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            kinds = [{inside.inside(column) for column in part.find_all(exp.Column)} for part in (one, other)]
            if kinds == [{True}, {False}]:
                return one, other
    message = "the subquery is compared with the row around it by anything but equal values"
    raise statement.refuse("CORRELATED_VALUE", message, node, INSTEAD)


def _grouped(
    statement: Statement, bare: exp.Select, own: Sequence[exp.Expr], keys: Sequence[exp.Expr], aggregates: Sequence[exp.Expr], query: Query
) -> Public:
    """The public rows by what is equal: keys, then aggregates."""
    one = bare.copy()
    one.set("expressions", [exp.alias_(part.copy(), f"__{i}", quoted=True) for i, part in enumerate((*keys, *aggregates))])
    one.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    if own:
        one.set("where", exp.Where(this=reduce(lambda left, right: exp.And(this=left, expression=right), [test.copy() for test in own])))
    made = query(one)
    if not isinstance(made, Open):
        raise AssertionError("a query over public tables is public")
    name = f"public_{next(statement.publics)}"
    return Public(name, made.sql, tuple(replace(c, id=next(statement.ids), name="value", public=name) for c in made.columns))


def _equal(statement: Statement, outside: Scalar, key: Column, node: exp.Expr) -> Scalar:
    try:
        return call("eq", outside, key)
    except Mismatch as wrong:
        raise statement.refuse(wrong.code, wrong.message, node, wrong.instead) from None


def over(statement: Statement, item: exp.Expr, inside: Scope, values: Sequence[Scalar], wanted: Callable[[exp.Expr], bool]) -> exp.Expr:
    """The expression with values in place of its aggregates."""
    whole = exp.paren(item.copy(), copy=False)
    for below, value in zip(outermost(whole, wanted), values, strict=True):
        stands = exp.column("x")
        stands.meta.update(below.meta)
        stands.meta[MADE] = value
        below.replace(stands)
    for one in whole.find_all(exp.Column):
        if MADE not in one.meta and inside.inside(one):
            message = f"column {one.name!r} of the subquery is not inside an aggregate"
            raise statement.refuse("NOT_GROUPED", message, one, f"MAX({one.name})")
    found: exp.Expr = whole.this
    return found
