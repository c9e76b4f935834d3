"""What the columns of an answer are called: as DuckDB calls them."""

from __future__ import annotations

from sqlglot import ErrorLevel, exp

from dpquery.sql.fields import take
from dpquery.sql.indexed import PLACE
from dpquery.sql.names import identifier

LONGEST = 1_000

OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.Pow: "**",
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "AND",
    exp.Or: "OR",
    exp.DPipe: "||",
}


def label(node: exp.Expr) -> str:
    """The expression as text for people."""
    node = node.transform(_spelled)
    return node.sql(dialect="duckdb", normalize_functions="lower", comments=False, unsupported_level=ErrorLevel.IGNORE)[:LONGEST]


def _spelled(node: exp.Expr) -> exp.Expr:
    """APPROX_QUANTILES under its own name, for the printer writes all its fractions out; places in lists as DuckDB counts them."""
    match node:
        case exp.ApproxQuantiles():
            return exp.Anonymous(this="approx_quantiles", expressions=[one for one in take(node, "this", "expression") if one is not None])
        case exp.Bracket() if PLACE in node.meta:
            return exp.Bracket(this=node.this, expressions=[exp.Literal.number(node.meta[PLACE] + 1)], offset=1)
        case _:
            return node


def title(node: exp.Expr) -> str:
    """The name of an output without alias: the column's, else the expression's text."""
    while isinstance(node, exp.Paren):
        (node,) = take(node, "this")
    match node:
        case exp.Column() if isinstance(node.this, exp.Identifier):
            return identifier(node.this)
        case exp.Count() if isinstance(node.this, exp.Star) or node.this is None:
            return "count_star()"
        case _:
            return _text(node)


def _text(node: exp.Expr) -> str:
    sign = OPERATORS.get(type(node))
    if sign is not None and isinstance(node, exp.Binary):
        return f"({_inner(node.left)} {sign} {_inner(node.right)})"
    return label(node)


def _inner(node: exp.Expr) -> str:
    while isinstance(node, exp.Paren):
        (node,) = take(node, "this")
    return title(node) if isinstance(node, exp.Count) else _text(node)
