"""Functions that one engine has and others write out: DECODE, RATIO_TO_REPORT, sizes of lists of values, and lists with places."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from dpquery.sql.fields import argument
from dpquery.sql.rowvalues import check_copied
from dpquery.sql.unanswered import called

NO_NULLS = ("spark", "snowflake")  # whose lists of aggregated values hold no NULL
FROM_ZERO = ("bigquery",)


def written_out(tree: exp.Expr, dialect: str) -> None:
    """Changes the tree."""
    for node in reversed([one for one in tree.walk() if type(one) in WAYS]):
        found = WAYS[type(node)](node, dialect)
        if found is not None:
            found.meta.update(node.meta)
            node.replace(found)


def _decoded(node: exp.Expr, dialect: str) -> exp.Expr | None:
    """DECODE(x, a, b, .., other): a NULL is equal to NULL."""
    x, *rest = node.expressions
    pairs = list(zip(rest[::2], rest[1::2], strict=False))
    if not pairs:
        return None
    check_copied(x, len(pairs))
    tests = [exp.If(this=_same(x.copy(), value), true=result) for value, result in pairs]
    return exp.Case(ifs=tests, default=rest[-1] if len(rest) % 2 else None)


def _same(x: exp.Expr, value: exp.Expr) -> exp.Expr:
    if isinstance(value, exp.Null):
        return exp.Is(this=x, expression=value)
    return (exp.EQ if isinstance(value, exp.Literal) else exp.NullSafeEQ)(this=x, expression=value)


def _reported(node: exp.Expr, dialect: str) -> exp.Expr | None:
    """RATIO_TO_REPORT(x) OVER (..): x / SUM(x) OVER (..)."""
    call = node.this
    if not isinstance(call, exp.Anonymous) or called(call) != "ratio_to_report" or len(call.expressions) != 1:
        return None
    (x,) = call.expressions
    check_copied(x, 2)
    total = node.copy()
    total.set("this", exp.Sum(this=x.copy()))
    return exp.paren(exp.Div(this=exp.paren(x), expression=total, typed=False, safe=False), copy=False)


def _counted(node: exp.Expr, dialect: str) -> exp.Expr | None:
    """The size of a list of all values, or of all different ones, where lists hold no NULL: how many there are."""
    of = node.this
    if dialect not in NO_NULLS or argument(node, "expression") is not None:
        return None
    match of:
        case exp.ArrayUniqueAgg():
            return exp.Count(this=exp.Distinct(expressions=[of.this]))
        case exp.ArrayAgg() if not isinstance(of.this, exp.Order | exp.Limit):
            return exp.Count(this=of.this)
        case _:
            return None


def _placed(node: exp.Expr, dialect: str) -> exp.Expr | None:
    """UNNEST of a list of literals WITH ORDINALITY, or WITH OFFSET: rows of an item and its place."""
    place, alias, lists = argument(node, "offset"), argument(node, "alias"), node.expressions
    names = list(argument(alias, "columns") or ()) if isinstance(alias, exp.TableAlias) else []
    if not isinstance(place, exp.Identifier) or len(names) != 1 or len(lists) != 1 or not isinstance(lists[0], exp.Array):
        return None
    first = 0 if dialect in FROM_ZERO else 1
    rows = [exp.Tuple(expressions=[item, exp.Literal.number(i)]) for i, item in enumerate(lists[0].expressions, first)]
    return exp.Values(expressions=rows, alias=exp.TableAlias(this=argument(alias, "this"), columns=[*names, place])) if rows else None


def _days(node: exp.Expr, dialect: str) -> exp.Expr | None:
    """A series from one date to another in engines where that is one of dates, as DuckDB's of times is not."""
    if dialect not in ("trino", "spark") or not isinstance(argument(node, "step"), exp.Interval | None):
        return None
    ends = [argument(node, name) for name in ("start", "end")]
    dates = [one.is_type("date") if isinstance(one, exp.Cast) else isinstance(one, exp.TsOrDsToDate | exp.Date) for one in ends]
    texts = [one.this for one in ends] if all(dates) else []
    if not all(isinstance(one, exp.Literal) and one.is_string for one in texts) or not texts:
        return None
    return exp.GenerateDateArray(start=texts[0], end=texts[1], step=argument(node, "step"))


WAYS: Mapping[type[exp.Expr], Callable[[exp.Expr, str], exp.Expr | None]] = {
    exp.DecodeCase: _decoded,
    exp.Window: _reported,
    exp.ArraySize: _counted,
    exp.Unnest: _placed,
    exp.GenerateSeries: _days,
}
"""By the parser's node."""
