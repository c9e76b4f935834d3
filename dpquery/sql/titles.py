"""What the columns of an answer are called: as DuckDB calls them."""

from __future__ import annotations

from sqlglot import ErrorLevel, exp

from dpquery.sql.fields import take
from dpquery.sql.indexed import PLACE
from dpquery.sql.names import identifier
from dpquery.sql.shorthand import CALLED

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
    shown = node.copy().transform(_as_duckdb)
    return shown.sql(dialect="duckdb", normalize_functions="lower", comments=False, unsupported_level=ErrorLevel.IGNORE)[:LONGEST]


def _spelled(node: exp.Expr) -> exp.Expr:
    """APPROX_QUANTILES under its own name, for the printer writes all its fractions out; places in lists as DuckDB counts them."""
    match node:
        case exp.ApproxQuantiles():
            return exp.Anonymous(this="approx_quantiles", expressions=[one for one in take(node, "this", "expression") if one is not None])
        case exp.Bracket() if PLACE in node.meta:
            return exp.Bracket(this=node.this, expressions=[exp.Literal.number(node.meta[PLACE] + 1)], offset=1)
        case _:
            return node


def _as_duckdb(node: exp.Expr) -> exp.Expr:
    """What DuckDB calls in other words than the parser writes for it."""
    match node:
        case exp.WithinGroup() if isinstance(node.this, exp.PercentileCont | exp.PercentileDisc) and isinstance(node.expression, exp.Order):
            word = "quantile_cont" if isinstance(node.this, exp.PercentileCont) else "quantile_disc"
            at, terms = (
                label(node.this.this),
                ", ".join(label(term.this) + (" DESC" if term.args.get("desc") else "") for term in node.expression.expressions),
            )
            return exp.Var(this=f"{word}({at} ORDER BY {terms})")
        case exp.Corr():
            return exp.Corr(this=node.this, expression=node.expression)
        case exp.Variance() if CALLED in node.meta:
            return exp.Anonymous(this=node.meta[CALLED], expressions=[node.this])
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
