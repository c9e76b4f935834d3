"""FIRST and LAST with ORDER BY, and STRING_AGG, within a unit: in an order that values complete, so that equal rows are equal in all that is seen."""

from __future__ import annotations

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.inside import Reduce, Reduction, Sort
from dpquery.plan.scalar import Cast, Scalar
from dpquery.sql.fields import take
from dpquery.sql.names import Scope, Statement
from dpquery.sql.rowwise import expression
from dpquery.values.types import STRING, Kind

LONGEST_SEPARATOR = 100


def in_order(node: exp.Expr) -> bool:
    """Whether the node is one of these. FIRST and LAST without an order are not."""
    return isinstance(node, exp.GroupConcat) or (isinstance(node, exp.First | exp.Last) and isinstance(node.this, exp.Order))


def ordered(statement: Statement, node: exp.Expr, scope: Scope) -> Reduction:
    """The aggregate that the node spells. LAST is FIRST from the other end."""
    if isinstance(node, exp.GroupConcat):
        this, separator = take(node, "this", "separator")
        return _texts(statement, node, this, _separator(statement, node, separator), scope)
    value, by, sort = _sorted(statement, node, take(node, "this")[0], None, scope)
    if isinstance(node, exp.Last):
        sort = Sort(not sort.descending, not sort.nulls_first)
    return Reduction(Reduce.FIRST, value, value.type, by=by, sort=sort)


def _texts(statement: Statement, node: exp.Expr, this: exp.Expr, separator: str, scope: Scope) -> Reduction:
    """Texts in the order of other values, or of their own; what is no text is ordered before it becomes one."""
    value, by, sort = _sorted(statement, node, this, separator, scope)
    distinct = isinstance(this.this if isinstance(this, exp.Order) else this, exp.Distinct)
    if value.type != STRING:
        by, value = by or value, Cast(value, STRING)
    elif by == value:
        by = None
    if distinct and by is not None:
        message = "DISTINCT leaves each text once, which is to be ordered by itself"
        raise statement.refuse("AGGREGATE_ORDER_BY", message, node, "STRING_AGG(DISTINCT x, ',' ORDER BY x), with x cast to VARCHAR if it is no text")
    return Reduction(Reduce.TEXTS, value, STRING, distinct=distinct, by=by, sort=sort)


def _separator(statement: Statement, node: exp.Expr, separator: exp.Expr | None) -> str:
    if separator is None:
        return ","
    text, is_string = take(separator, "this", "is_string") if isinstance(separator, exp.Literal) else ("", False)
    if not is_string or len(str(text)) > LONGEST_SEPARATOR:
        message = f"the separator is a literal text of at most {LONGEST_SEPARATOR} characters"
        raise statement.refuse("LITERAL_NEEDED", message, node, "STRING_AGG(x, ',')")
    return str(text)


def _sorted(statement: Statement, node: exp.Expr, this: exp.Expr, separator: str | None, scope: Scope) -> tuple[Scalar, Scalar | None, Sort]:
    """The value, what rows are ordered by besides, and how."""
    inner, terms = take(this, "this", "expressions") if isinstance(this, exp.Order) else (this, [])
    value = expression(_bare(statement, node, inner), scope, "an aggregate")
    if value.type.kind in (Kind.NULL, Kind.INTERVAL):
        raise statement.refuse("TYPE_MISMATCH", f"an aggregate of type {value.type} is not supported", node, "a CAST to another type")
    if not terms:
        return value, None, Sort(descending=False, nulls_first=False, separator=separator)
    (by, down, first), *more = (take(term, "this", "desc", "nulls_first") for term in terms)
    found = expression(by, scope, "an aggregate")
    if (more and isinstance(node, exp.Last)) or any(expression(one, scope, "an aggregate") != value or desc or nulls for one, desc, nulls in more):
        raise _terms(statement, node)
    return value, found, Sort(bool(down), bool(first), separator)


def _bare(statement: Statement, node: exp.Expr, inner: exp.Expr) -> exp.Expr:
    """The argument without DISTINCT."""
    match inner:
        case exp.Distinct():
            listed, on = take(inner, "expressions", "on")
            if on is not None or len(listed) != 1:
                raise statement.refuse("DISTINCT_AGGREGATE", "DISTINCT takes one column here", node, "STRING_AGG(DISTINCT x, ',')")
            found: exp.Expr = listed[0]
            return found
        case exp.Limit() | exp.HavingMax():
            raise statement.refuse("AGGREGATE_CLAUSE", "LIMIT and HAVING inside an aggregate are not supported", node, "the aggregate without it")
        case _:
            return inner


def _terms(statement: Statement, node: exp.Expr) -> Refused:
    name = statement.spelled(node)
    message = f"{name} is ordered by one column here, equals by the value itself"
    return statement.refuse("AGGREGATE_ORDER_BY", message, node, f"{name}(x ORDER BY y)")
