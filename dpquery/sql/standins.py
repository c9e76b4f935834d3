"""Window functions within a unit that are read as others, written out: NTILE, NTH_VALUE, PERCENT_RANK and CUME_DIST."""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot import exp

from dpquery.sql.fields import peek, take
from dpquery.sql.names import Statement

MOST_PARTS = 10_000  # of NTILE, and places of NTH_VALUE
READ: tuple[type[exp.Expr], ...] = (exp.Ntile, exp.NthValue, exp.PercentRank, exp.CumeDist)
CUT = "GREATEST(LEAST({}, {}), {})"  # changes nothing; it says to those who look for bounds where the values lie
RANKED = CUT.format("CASE WHEN n = 1 THEN CAST(0 AS DOUBLE) ELSE CAST(r - 1 AS DOUBLE) / (n - 1) END", 1, 0)
BELOW = CUT.format("CAST(r AS DOUBLE) / n", 1, 0)
LONG = "n % k * (n // k + 1)"  # the first rows, in parts that have one more than the others
PARTS = CUT.format(f"CASE WHEN r - 1 < {LONG} THEN (r - 1) // (n // k + 1) ELSE n % k + (r - 1 - {LONG}) // (n // k) END + 1", "k", 1)


def stood_in(statement: Statement, node: exp.Window) -> exp.Expr | None:
    """What the window is read as, with windows of other functions in it; None where it is read by itself."""
    function, spec = node.this, peek(node, "spec")
    if not isinstance(function, READ):
        return None
    if spec is not None and not isinstance(function, exp.NthValue):
        raise statement.refuse("WINDOW_FRAME", "a frame goes with COUNT, SUM, AVG, MIN and MAX only", spec, "the window without its frame")
    count = _over(node, exp.Count(this=exp.Star()), order=False)
    match function:
        case exp.Ntile():
            number = _number(statement, function, take(function, "this")[0])
            return _filled(PARTS, node, r=_over(node, exp.RowNumber()), n=count, k=number)
        case exp.PercentRank():
            take(function)
            return _filled(RANKED, node, r=_over(node, exp.Rank()), n=count)
        case exp.CumeDist():
            take(function)
            return _filled(BELOW, node, r=_over(node, exp.Count(this=exp.Star())), n=count)
        case _:
            return _nth(statement, node, function)


def _nth(statement: Statement, node: exp.Window, function: exp.Expr) -> exp.Expr:
    """NTH_VALUE(x, k): the greatest x of the rows of the frame whose number is k, which is one row at most."""
    this, offset, _ = take(function, "this", "offset", "from_first")
    spec = peek(node, "spec")
    if spec is not None and str(peek(spec, "start")).upper() != "UNBOUNDED":
        message = "NTH_VALUE counts from the first row of the partition"
        raise statement.refuse("WINDOW_FRAME", message, spec, "a frame from UNBOUNDED PRECEDING on, or none")
    test = exp.EQ(this=_over(node, exp.RowNumber()), expression=_number(statement, function, offset))
    found = node.copy()
    found.set("this", exp.Max(this=exp.Case(ifs=[exp.If(this=test, true=this.copy())])))
    return found


def _number(statement: Statement, function: exp.Expr, node: object) -> exp.Expr:
    text = node.name if isinstance(node, exp.Literal) and not node.is_string else ""
    if not text.isdigit() or not text.isascii() or not 1 <= int(text[:9]) <= MOST_PARTS:
        message = f"a literal number from 1 to {MOST_PARTS:,} is wanted here"
        raise statement.refuse("WINDOW_ARGUMENT", message, node if isinstance(node, exp.Expr) else function, "NTILE(4), or NTH_VALUE(x, 2)")
    return exp.Literal.number(int(text))


def _over(node: exp.Window, function: exp.Expr, order: bool = True) -> exp.Window:
    """Another function over the same window, without its frame."""
    found = node.copy()
    found.set("this", function)
    found.set("spec", None)
    if not order:
        found.set("order", None)
    return found


def _filled(template: str, node: exp.Window, **parts: exp.Expr) -> exp.Expr:
    """The template with expressions in place of its names, all of it at the window's place in the text."""

    def change(below: exp.Expr) -> exp.Expr:
        return parts[below.name].copy() if isinstance(below, exp.Column) else below

    found: exp.Expr = _parsed(template).transform(change)
    found.meta.update(node.meta)
    return found


@lru_cache
def _parsed(template: str) -> exp.Expr:
    found = sqlglot.parse_one(template, read="duckdb")
    for below in found.walk():
        below.meta.clear()
    return found
