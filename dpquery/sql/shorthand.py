"""What a statement says briefly, said at length: lists after ANY and ALL; MATERIALIZED, which changes no answer, is left out.

`x = ANY(['a', 'b'])` is `x IN ('a', 'b')`, `x LIKE ANY ('a%', 'b%')` one LIKE or the other, `x BETWEEN SYMMETRIC 9 AND 3` is BETWEEN 3 AND 9. Nothing
else of the statement is touched, and what cannot be said at length stays for the readers to refuse. Rows of values are `rowvalues`' part.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import reduce

from sqlglot import exp

from dpquery.sql import rowvalues
from dpquery.sql.fields import argument
from dpquery.sql.rowvalues import MOST, check_copied

COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between)
PATTERNS = (exp.Like, exp.ILike)


QUANTILES = {"quantile_cont": exp.PercentileCont, "quantile_disc": exp.PercentileDisc}
DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
NUMBER = re.compile(r"\d{1,100}(?:\.\d{1,100})?", re.ASCII)
CALLED = "called"  # the mark of a function that has several names: the one that the text has


def spelled_out(tree: exp.Expr, text: str, dialect: str) -> None:
    """Changes the tree."""
    for function in tree.find_all(exp.Variance):
        start, end = function.meta.get("start"), function.meta.get("end")
        if isinstance(start, int) and isinstance(end, int):
            function.meta[CALLED] = text[start : end + 1].lower()
    for node in reversed([one for one in tree.walk() if isinstance(one, (*COMPARED, *PATTERNS, exp.In, exp.CTE, exp.Anonymous))]):
        match node:
            case exp.CTE():
                node.set("materialized", None)  # how the engine is to work, not what the answer is
            case exp.In():
                _unnested(node)
                rowvalues.spelled_out(node, dialect)
            case exp.Anonymous():
                _indexed(node)
                _quantile(node)
            case exp.Between() if argument(node, "symmetric"):
                for one in _either_way(node):
                    rowvalues.spelled_out(one, dialect)
            case _ if rowvalues.compares(node):
                rowvalues.spelled_out(node, dialect)
            case exp.NullSafeEQ() | exp.NullSafeNEQ() | exp.Between():
                pass
            case _:
                _compared(node)


# ---- lists ---------------------------------------------------------------------------------------------------------------------------


def _items(node: exp.Expr | None) -> list[exp.Expr]:
    """The items of a list or row of values in brackets; none for anything else."""
    while isinstance(node, exp.Paren):
        node = node.this
    return list(node.expressions) if isinstance(node, exp.Array | exp.Tuple) else []


def _quantified(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """ANY or ALL with its list."""
    match node:
        case exp.Any() | exp.All():
            return ("ANY" if isinstance(node, exp.Any) else "ALL"), _items(node.this)
        case exp.Anonymous() if node.name.upper() in ("SOME", "ANY", "ALL") and len(node.expressions) == 1:
            return ("ALL" if node.name.upper() == "ALL" else "ANY"), _items(node.expressions[0])
        case _:
            return "", []


def _compared(node: exp.Expr) -> None:
    """A comparison with each item: one must hold for ANY, all for ALL."""
    word, items = _quantified(node.expression)
    negated = argument(node, "negate") or (isinstance(node, PATTERNS) and isinstance(node.parent, exp.Not))
    if not items or negated:  # dialects differ in what x NOT LIKE ANY (..) denies
        return
    if (type(node), word) in ((exp.EQ, "ANY"), (exp.NEQ, "ALL")):
        found: exp.Expr = exp.In(this=node.this, expressions=items)
        found = exp.Not(this=found) if word == "ALL" else found
    elif len(items) <= MOST:
        check_copied(node.this, len(items))
        kind = exp.Or if word == "ANY" else exp.And
        each = [type(node)(this=node.this.copy(), expression=item) for item in items]
        found = exp.paren(reduce(lambda left, right: kind(this=left, expression=right), each[1:], each[0]), copy=False)
    else:
        return
    node.replace(found)


def _either_way(node: exp.Between) -> list[exp.Expr]:
    """BETWEEN SYMMETRIC as BETWEEN its ends in either order, or in the right one where literals tell it; what stands in its place."""
    this, low, high = node.this, argument(node, "low"), argument(node, "high")
    ends = _end(low), _end(high)
    if ends[0] is not None and ends[1] is not None and ends[0][0] == ends[1][0]:
        first, last = (low, high) if ends[0] <= ends[1] else (high, low)
        found = exp.Between(this=this, low=first, high=last)
        node.replace(found)
        return [found]
    for one in (this, low, high):
        check_copied(one, 2)
    each: list[exp.Expr] = [exp.Between(this=this, low=low, high=high), exp.Between(this=this.copy(), low=high.copy(), high=low.copy())]
    node.replace(exp.paren(exp.Or(this=each[0], expression=each[1]), copy=False))
    return each


def _end(node: exp.Expr) -> tuple[str, Decimal | str] | None:
    """A literal as what tells which of two of one kind is the greater: a number, or a day written as days are."""
    match node:
        case exp.Neg() if (found := _end(node.this)) is not None and isinstance(found[1], Decimal):
            return "number", -found[1]
        case exp.Cast(this=exp.Literal(is_string=True)) if DAY.fullmatch(node.this.name) and argument(node, "to").is_type("date"):
            return "date", node.this.name
        case exp.Literal(is_string=True) if DAY.fullmatch(node.name):
            return "text", node.name
        case exp.Literal(is_string=False) if NUMBER.fullmatch(node.name):
            return "number", Decimal(node.name)
        case _:
            return None


def _unnested(node: exp.In) -> None:
    """x IN UNNEST([..])."""
    unnest = argument(node, "unnest")
    lists = unnest.expressions if isinstance(unnest, exp.Unnest) and not argument(unnest, "alias") else []
    items = _items(lists[0]) if len(lists) == 1 else []
    if items:
        node.set("unnest", None)
        node.set("expressions", items)


# ---- values of lists -----------------------------------------------------------------------------------------------------------------


def _quantile(node: exp.Anonymous) -> None:
    """quantile_cont(x, 0.5) in a dialect that has no such function: what refusals offer is read in each of them."""
    kind = QUANTILES.get(node.name.lower())
    if kind is not None and len(node.expressions) == 2:
        made = kind(this=node.expressions[0], expression=node.expressions[1])
        made.meta.update(node.meta)
        node.replace(made)


def _indexed(node: exp.Anonymous) -> None:
    """list_extract(q, 2) is q[2]."""
    if node.name.lower() in ("list_extract", "list_element", "array_extract") and len(node.expressions) == 2:
        of, at = node.expressions
        node.replace(exp.Bracket(this=of, expressions=[at], offset=1))
