"""What `/` means above the noise in a dialect that divides integers into integers: it hangs on the types that the dialect gives to both sides.

PostgreSQL's sum of 32-bit integers is a bigint, that of bigints a numeric, whose quotient has a fraction; a column that is declared an integer is
one of 32 bits, as the word says there, and a count is a bigint. Trino's sum of integers is a bigint always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import Any, Protocol

from sqlglot import exp

from dpquery.errors import Position
from dpquery.plan.scalar import Column
from dpquery.sql.abroad import bigint_sums
from dpquery.sql.fields import argument, take
from dpquery.sql.names import Scope, Statement, column_name, fold
from dpquery.sql.unanswered import WRAPPERS, is_aggregate
from dpquery.values.types import INTEGER, Kind, Type


class Lifts(Protocol):
    """What reads expressions above the noise."""

    statement: Statement
    aliases: Mapping[str, exp.Expr]

    def lift(self, node: exp.Expr, where: Any) -> exp.Expr:
        """The expression over released values."""

    def kind(self, name: str) -> Type | None:
        """The type of a column that it made."""

    def below_sums(self) -> Lifts | Scope:
        """How what an aggregate reads is read: over released values, or over private rows."""


class Width(Enum):
    """What is known of a number's type in the dialect."""

    FRACTION = auto()
    NARROW = auto()  # at most 32 bits
    WIDE = auto()  # 64 bits
    WHOLE = auto()  # an integer of either width
    UNKNOWN = auto()


INTEGERS = (Width.NARROW, Width.WIDE, Width.WHOLE)
CASTS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT"), Width.NARROW),
    "BIGINT": Width.WIDE,
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL"), Width.FRACTION),
}
COUNTS = (exp.Count, exp.CountIf, exp.RowNumber, exp.Rank, exp.DenseRank, exp.ApproxDistinct)
SHARES = (exp.Avg, exp.PercentRank, exp.CumeDist, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Corr)
SAME = (exp.Min, exp.Max, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Paren, exp.Neg, exp.Abs, exp.Nullif)
MIXED = (exp.Add, exp.Sub, exp.Mul, exp.Mod)
LONGEST = 9  # digits of a literal that surely has 32 bits

Leaf = Callable[[exp.Expr], Width]  # of a column or whatever else is no operator


def divided(lifter: Lifts, node: exp.Div, left: exp.Expr, right: exp.Expr, where: Any) -> exp.Expr:
    """The division as the dialect would do it, of sides that are lifted already; refused where their types are not known."""
    above = _Above(lifter, where, bigint_sums(node))
    kinds = above.width(node.this), above.width(node.expression)
    if Width.FRACTION in kinds:
        return exp.Div(this=left, expression=right, typed=False, safe=False)
    if all(kind in INTEGERS for kind in kinds):
        return exp.IntDiv(this=left, expression=right)
    side = "left" if kinds[0] not in INTEGERS else "right"
    message = f"this dialect drops the fraction of a quotient of integers, and whether the {side} side is one there is not known"
    instead = "CAST(x AS DOUBLE PRECISION) / y with the fraction, CAST(x AS BIGINT) / CAST(y AS BIGINT) without"
    statement = lifter.statement
    found = _sign(node, statement.source)
    raise (
        statement.refuse("DIVISION_TYPE", message, node, instead) if found is None else statement.refuse_at("DIVISION_TYPE", message, found, instead)
    )


class _Above:
    """Widths of expressions above the noise, and of what the aggregates in them read."""

    def __init__(self, lifter: Lifts, where: Any, bigint: bool) -> None:
        self.lifter, self.where, self.bigint = lifter, where, bigint

    def width(self, node: exp.Expr) -> Width:
        return _width(node, self._leaf, self._sum)

    def _leaf(self, node: exp.Expr) -> Width:
        alias = _alias(self.lifter, node)
        lifted = self.lifter.lift(node, self.where) if isinstance(node, exp.Column | exp.Query | exp.Subquery) or is_aggregate(node) else None
        if alias is not None and isinstance(lifted, exp.Paren):
            return self.width(alias)
        return _of(self.lifter.kind(lifted.name)) if isinstance(lifted, exp.Column) else Width.UNKNOWN

    def _sum(self, node: exp.Expr, over: bool) -> Width:
        """A sum, `over` a window or of rows below."""
        if over:
            return self._added(self.width(node))
        below = self.lifter.below_sums()
        if isinstance(below, Scope):
            return self._added(_below(node, below))
        return self._added(_Above(below, self.where, self.bigint).width(node))

    def _added(self, width: Width) -> Width:
        if self.bigint and width in INTEGERS:
            return Width.WIDE
        return {Width.NARROW: Width.WIDE, Width.WIDE: Width.FRACTION, Width.FRACTION: Width.FRACTION}.get(width, Width.UNKNOWN)


def _below(node: exp.Expr, scope: Scope) -> Width:
    """The width of an expression of private rows."""

    def leaf(one: exp.Expr) -> Width:
        if not isinstance(one, exp.Column):
            return Width.UNKNOWN
        found = scope.find(one)
        if found is None:
            name = fold(column_name(one, scope.source)[0])
            return _below(scope.aliases[name], scope.before(name)) if name in scope.aliases else Width.UNKNOWN
        declared = isinstance(found.value, Column) and found.value.id in scope.statement.origins
        return Width.NARROW if declared and found.value.type == INTEGER else _of(found.value.type)

    return _width(node, leaf, lambda one, over: Width.UNKNOWN)


def _alias(lifter: Lifts, node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Column):
        return None
    name, table = column_name(node, lifter.statement.source)
    return lifter.aliases.get(fold(name)) if table is None else None


def _of(kind: Type | None) -> Width:
    if kind is None:
        return Width.UNKNOWN
    return Width.WHOLE if kind == INTEGER else Width.FRACTION if kind.kind in (Kind.FLOAT, Kind.DECIMAL) else Width.UNKNOWN


def _width(node: exp.Expr, leaf: Leaf, total: Callable[[exp.Expr, bool], Width], over: bool = False) -> Width:
    def width(one: exp.Expr) -> Width:
        return _width(one, leaf, total)

    match node:
        case exp.Window() | exp.Filter():
            return _width(node.this, leaf, total, isinstance(node, exp.Window))
        case exp.Literal():
            return _literal(node)
        case exp.Sum():
            return total(node.this, over)
        case exp.Cast() | exp.TryCast():
            return CASTS.get(str(getattr(node.to.this, "name", "")), Width.UNKNOWN)
        case exp.Div():
            return _together((width(node.this), width(node.expression))) if argument(node, "typed") else Width.FRACTION
        case exp.IntDiv():
            return Width.WHOLE
        case exp.Case():
            _, ifs, default = take(node, "this", "ifs", "default")
            return _together(width(one) for one in (*(branch.args["true"] for branch in ifs), default) if not _is_null(one))
        case exp.If():
            return _together(width(one) for one in take(node, "this", "true", "false")[1:] if not _is_null(one))
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            return _together(width(one) for one in (node.this, *node.expressions) if not _is_null(one))
        case _ if isinstance(node, COUNTS):
            return Width.WIDE
        case _ if isinstance(node, SHARES):
            return Width.FRACTION
        case _ if isinstance(node, SAME) and (over or not is_aggregate(node)):
            return width(node.this)
        case _ if isinstance(node, MIXED):
            return _together((width(node.this), width(node.expression)))
        case _ if isinstance(node, WRAPPERS):
            return Width.UNKNOWN
        case _:
            return leaf(node)


def _is_null(node: exp.Expr | None) -> bool:
    return node is None or isinstance(node, exp.Null)


def _literal(node: exp.Literal) -> Width:
    if node.is_string or (node.name.isdigit() and len(node.name) > LONGEST):
        return Width.UNKNOWN
    return Width.NARROW if node.name.isdigit() else Width.FRACTION


def _together(widths: Iterable[Width]) -> Width:
    """What comes of numbers of these types."""
    found = set(widths)
    for one in (Width.FRACTION, Width.UNKNOWN, Width.WHOLE, Width.WIDE, Width.NARROW):
        if one in found:
            return one
    return Width.UNKNOWN


def _sign(node: exp.Div, source: str) -> Position | None:
    """Where the division's sign stands: between the last token of its left side and the first of its right one."""
    ends = [one.meta["end"] for one in node.this.walk() if isinstance(one.meta.get("end"), int)]
    starts = [one.meta["start"] for one in node.expression.walk() if isinstance(one.meta.get("start"), int)]
    between = source[max(ends) + 1 : min(starts)] if ends and starts else ""
    if between.count("/") != 1:
        return None
    offset = max(ends) + 1 + between.index("/")
    before = source[:offset]
    return Position(before.count("\n") + 1, offset - before.rfind("\n"))
