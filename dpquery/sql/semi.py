"""[NOT] EXISTS and [NOT] IN with a subquery, as conditions of their own in WHERE.

The subquery's private rows are partners within the unit only; public ones are partners of any row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.coerce import Mismatch
from dpquery.plan.functions import call
from dpquery.plan.rel import Join, Lookup, Public, Semi
from dpquery.plan.scalar import Scalar, conjuncts, replaced
from dpquery.sql.fields import peek, take, unset
from dpquery.sql.joins import suggestion
from dpquery.sql.names import Frame, Scope, Statement, fold
from dpquery.sql.nested import read_by
from dpquery.sql.partners import conjoined, never_null, partnered, tied
from dpquery.sql.rowwise import condition, expression
from dpquery.sql.sides import Bound, Open, Side, closed, distinct, equality

SIGNS: dict[type[exp.Expr], str] = {exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge"}
OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


class Test(NamedTuple):
    """A condition on a subquery's rows: some exist (`value` is None), or `value sign one of them`, which IN says of equal ones; or the opposite."""

    node: exp.Expr
    query: exp.Expr
    value: exp.Expr | None
    negated: bool
    sign: str = "eq"

    @property
    def word(self) -> str:
        """The condition's name in the text."""
        compares = self.node.args.get("expression")
        return "EXISTS" if self.value is None else "ALL" if isinstance(compares, exp.All) else "ANY" if isinstance(compares, exp.Any) else "IN"


@dataclass(frozen=True, slots=True)
class Inner:
    """A subquery as read: its rows, the values of its SELECT, and its conditions that read the rows outside as well."""

    side: Side
    values: tuple[Scalar, ...]
    across: tuple[exp.Expr, ...]
    scope: Scope


Read = Callable[[exp.Expr, Scope], Inner]  # reads a subquery within the scope of the rows outside


def test_of(node: exp.Expr) -> Test | None:
    """The condition as one on a subquery's rows; None where it is another."""
    inner, negated = node, False
    while isinstance(inner, exp.Not | exp.Paren):
        negated ^= isinstance(inner, exp.Not)
        (inner,) = take(inner, "this")
    match inner:
        case exp.Exists():
            return Test(inner, take(inner, "this")[0], None, negated)
        case exp.In() if (query := inner.args.get("query")) is not None:
            take(inner, "this", "query")
            return Test(inner, query, inner.this, negated)
        case exp.In(expressions=[exp.Values() as query]):
            take(inner, "this", "expressions")
            return Test(inner, query, inner.this, negated)
        case _:
            found = compared(inner)
            return None if found is None or found.sign != "eq" else found._replace(negated=found.negated ^ negated)


def compared(node: exp.Expr) -> Test | None:
    """A comparison with ANY or ALL rows of a subquery; ALL is the opposite of the opposite sign with ANY."""
    inner, negated = node, False
    while isinstance(inner, exp.Not | exp.Paren):
        negated ^= isinstance(inner, exp.Not)
        (inner,) = take(inner, "this")
    other = inner.args.get("expression") if type(inner) in SIGNS else None
    if not isinstance(other, exp.Any | exp.All) or not isinstance(other.this, exp.Query | exp.Subquery):
        return None
    sign, opposite = SIGNS[type(inner)], isinstance(other, exp.All)
    return Test(inner, other.this, inner.this, negated ^ opposite, OPPOSITE[sign] if opposite else sign)


def condition_of(node: exp.Expr) -> Test | None:
    """The condition as one on a subquery's rows, whatever compares with them."""
    return test_of(node) or compared(node)


def plain(node: exp.Expr) -> bool:
    """Whether a query filters and projects only, so that its WHERE may read the rows outside."""
    known = ("expressions", "with_", "distinct", "from_", "joins", "where")
    return isinstance(node, exp.Select) and all(name in known or unset(value) for name, value in node.args.items())


def reads_outside(node: exp.Expr) -> bool:
    """Whether a query's WHERE names a table that is not in its own FROM."""
    while isinstance(node, exp.Subquery):
        node = node.this
    where = peek(node, "where")
    own = {fold(one.alias_or_name) for one in read_by(node)}
    read = () if where is None else where.find_all(exp.Column)
    return any(column.table and fold(column.table) not in own for column in read)


def split(nodes: Sequence[exp.Expr], scope: Scope) -> tuple[tuple[exp.Expr, ...], tuple[exp.Expr, ...]]:
    """Those of the conditions that read the subquery's own rows alone, and the others."""
    own, across = list[exp.Expr](), list[exp.Expr]()
    for node in nodes:
        inside = condition_of(node) is not None or all(scope.inside(column) for column in node.find_all(exp.Column))
        (own if inside else across).append(node)
    return tuple(own), tuple(across)


def kept_by(statement: Statement, side: Bound, tests: Sequence[Test], scope: Scope, read: Read) -> Bound:
    """The rows for which all of the conditions hold."""
    for test in tests:
        if side.kept:
            message = "rows of a public table that an outer join keeps would be dropped again by this condition"
            raise statement.refuse("KEPT_PUBLIC", message, test.node, "the condition in a subquery of its own, below the outer join")
        inner = read(test.query, scope)
        if isinstance(inner.side, Open):
            side = _public(statement, side, inner, inner.side, test, scope)
        else:
            side = _private(statement, side, inner, inner.side, test, scope)
    return side


# ---- conditions ----------------------------------------------------------------------------------------------------------------------


def equal_to(statement: Statement, test: Test, inner: Inner, scope: Scope) -> tuple[Scalar, Scalar, Scalar] | None:
    """`value sign the subquery's column`, and both sides of it; None for EXISTS."""
    if test.value is None:
        return None
    if isinstance(inner.side, Open) and inner.side.released is not None and not inner.values:
        message = "the type of the released values is not known"
        raise statement.refuse("IN_SUBQUERY", message, test.node, "a subquery of one key, or of one aggregate")
    if len(inner.values) != 1:
        message = f"{test.word} compares one value with a subquery of {len(inner.values)} columns"
        raise statement.refuse("IN_SUBQUERY", message, test.node, "a subquery of one column")
    value, other = expression(test.value, scope, "WHERE"), inner.values[0]
    try:
        return call(test.sign, value, other), value, other
    except Mismatch as wrong:
        raise statement.refuse(wrong.code, wrong.message, test.node, wrong.instead) from None


def conditions_across(inner: Inner) -> tuple[Scalar, ...]:
    """The conditions that read the rows outside."""
    return tuple(part for node in inner.across for part in conjuncts(condition(node, inner.scope, "WHERE")))


def _null(*values: Scalar) -> tuple[Scalar, ...]:
    return tuple(call("is_null", value) for value in values)


# ---- private -------------------------------------------------------------------------------------------------------------------------


def _private(statement: Statement, left: Bound, inner: Inner, right: Bound, test: Test, scope: Scope) -> Bound:
    across, equal = conditions_across(inner), equal_to(statement, test, inner, scope)
    if equal is None:
        conditions = across
    elif not test.negated or all(never_null(statement, *each) for each in ((left, equal[1]), (right, equal[2]))):
        conditions = (*across, equal[0])
    elif any(tied(statement, c, left, right) for c in across):  # what is NULL on either side leaves NOT IN undecided
        conditions = (*across, call("or", equal[0], *_null(*equal[1:])))
    else:
        raise null_left(statement, left, right, test)
    found = partnered(statement, left, right, conditions, test.negated)
    if found is None:
        raise no_tie(statement, left, right, test)
    return found


def null_left(statement: Statement, left: Bound, right: Bound, test: Test) -> Refused:
    """The refusal of what a NULL of anybody's leaves undecided."""
    word = "NOT IN" if test.negated and test.word == "IN" else test.word
    message = f"{word} is undecided for every row once the other side holds a NULL, whosever it is"
    return statement.refuse(
        "NOT_IN_NULLABLE", message, test.node, _instead(statement, left, right, "AND {} in the subquery's WHERE: a person's own rows alone decide")
    )


def _instead(statement: Statement, left: Bound, right: Bound, text: str) -> str:
    tie = suggestion(statement, left, right) or _tied_by_alias(statement, left, right)
    return text.format(tie or "an equality of the privacy unit's columns, inner.user_id = outer.user_id")


def _tied_by_alias(statement: Statement, left: Bound, right: Bound) -> str | None:
    """The equality that ties a table to itself, under an alias of its own."""
    names = {fold(s.alias) for s in left.frame.sources} & {fold(s.alias) for s in right.frame.sources}
    if len(names) != 1 or len(right.frame.sources) != 1:
        return None
    (own,) = right.frame.sources
    renamed = replace(right, frame=Frame((replace(own, alias=f"inner_{own.alias}"),)))
    tie = suggestion(statement, left, renamed)
    return None if tie is None else f"{tie}, of FROM {own.alias} AS inner_{own.alias},"


def no_tie(statement: Statement, left: Bound, right: Bound, test: Test) -> Refused:
    """The refusal of private rows that nothing compares within the unit."""
    code = "EXISTS" if test.value is None else "IN_SUBQUERY"
    message = f"{test.word} with private rows compares them within the privacy unit only, as a condition of its own (not under OR, not computed)"
    return statement.refuse(code, message, test.node, _instead(statement, left, right, "AND {} in the subquery's WHERE"))


# ---- public --------------------------------------------------------------------------------------------------------------------------


def _public(statement: Statement, side: Bound, inner: Inner, right: Open, test: Test, scope: Scope) -> Bound:
    """A public list that a plain column is in joins once, and so can list keys; other conditions only look for a partner."""
    made, shown = closed(statement, right)
    seen = Inner(right, tuple(_renamed(right, made, value) for value in inner.values), inner.across, inner.scope.over(shown))
    across, equal = conditions_across(seen), equal_to(statement, test, seen, scope)
    if equal is None:
        return _partnered(side, made, across, test.negated)
    if not test.negated:
        if not across and equality(equal[0]) is not None and equal[2] in made.columns:
            once = distinct(statement, made, [made.columns.index(equal[2])])
            return Bound(Lookup(side.rel, once, Join.INNER, equal[0]), side.frame, side.kept)
        return _partnered(side, made, (*across, equal[0]), False)
    for one in (equal[0], *_null(*equal[1:])):  # any of them leaves NOT IN false or undecided
        side = _partnered(side, made, (*across, one), True)
    return side


def _partnered(side: Bound, made: Public, conditions: Sequence[Scalar], negated: bool) -> Bound:
    return Bound(Semi(side.rel, made, conjoined(conditions), negated), side.frame, side.kept)


def _renamed(right: Open, made: Public, value: Scalar) -> Scalar:
    return replaced(value, dict(zip(right.columns, made.columns, strict=True)))
