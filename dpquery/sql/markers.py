"""IN, EXISTS, ANY and ALL within expressions of private rows: whether a subquery's rows hold a partner becomes columns of the rows, three-valued.

Partners are looked for by equal values: each row then meets one row at most of those that hold each combination of values once. What IN leaves open
(a NULL on either side, where nothing equals) hangs on whether there are rows at all, and whether one of them is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.coerce import Mismatch
from dpquery.plan.functions import call, choose
from dpquery.plan.inside import Reduce, Reduction
from dpquery.plan.intervals import interval
from dpquery.plan.rel import Compute, Group, Join, Lookup, Match, Private, Public, output
from dpquery.plan.scalar import Cast, Column, Literal, Scalar, columns
from dpquery.sql.correlated import Below
from dpquery.sql.names import Scope, Statement
from dpquery.sql.partners import Pair, conjoined, never_null, pair_of, tied, untied
from dpquery.sql.public import cast_to
from dpquery.sql.rowwise import ALONE, expression
from dpquery.sql.semi import Inner, Read, Test, conditions_across, equal_to, no_tie, null_left, reads_outside
from dpquery.sql.sides import Bound, Open
from dpquery.values.types import BOOLEAN, NULL, Type

ENDS = {"lt": ("max",), "le": ("max",), "gt": ("min",), "ge": ("min",), "ne": ("min", "max")}
TRUE, FALSE, UNKNOWN = Literal(True, BOOLEAN), Literal(False, BOOLEAN), Literal(None, NULL)


class Looked(NamedTuple):
    """What the subquery's rows are compared by: equalities, conditions on the row outside alone, and what IN asks for."""

    ties: tuple[Pair, ...]
    others: tuple[Scalar, ...]
    value: Pair | None

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return self.ties if self.value is None else (*self.ties, self.value)


def marked(statement: Statement, side: Bound, test: Test, scope: Scope, read: Read, query: Callable[[exp.Expr], object]) -> tuple[Bound, Scalar]:
    """The rows with columns for the condition, and the condition over them."""
    inner = read(test.query, scope)
    if isinstance(inner.side, Bound):
        return _private(statement, side, inner, inner.side, test, scope)
    if inner.side.released is not None:
        raise _alone(statement, test, "with released rows")
    if not inner.across:
        again = query(test.query)
        if not isinstance(again, Open):
            raise AssertionError("a query over public tables is public")
        inner = Inner(again, tuple(f.value for f in again.frame.fields()), (), Scope(again.frame, statement))
    return _public(statement, side, inner, test, scope)


def ranked(statement: Statement, side: Bound, test: Test, value: exp.Expr, scope: Scope, below: Below) -> tuple[Bound, Scalar]:
    """The same of a comparison with ANY row: with the least or the greatest of them."""
    right = None if reads_outside(test.query) else below.query(test.query)
    if isinstance(right, Open) and len(right.frame.fields()) == 1:
        (shown,) = right.frame.fields()
        text, kind = _text(statement, right, shown.value, test.node), shown.value.type
        items = [
            ("count(*) > 0", BOOLEAN),
            (f"coalesce(bool_or({text} IS NULL), FALSE)", BOOLEAN),
            *((f"{end}({text})", kind) for end in ENDS[test.sign]),
        ]
        given = expression(value, scope, "ANY")
        _check_read(statement, side, test.node, given)
        side, (some, nulls, *found) = _one_row(statement, side, right, items)
        return side, _ranks(statement, test, given, some, nulls, found)
    inner = below.inner(test.query, scope)
    if not isinstance(inner.side, Bound):
        message = "ANY and ALL within another condition compare with public rows that read nothing of the rows around them"
        raise statement.refuse("SUBQUERY_HERE", message, test.node, f"ANY or ALL {ALONE}")
    return _ranked_privately(statement, side, inner, inner.side, test, value, scope)


def _ranks(statement: Statement, test: Test, value: Scalar, some: Scalar, nulls: Scalar, ends: Sequence[Scalar]) -> Scalar:
    """Whether the value compares so with the least or the greatest of the rows, three-valued."""
    try:
        hits = [call(test.sign, value, end) for end in ends]
    except Mismatch as wrong:
        raise statement.refuse(wrong.code, wrong.message, test.node, wrong.instead) from None
    return _truth(hits[0] if len(hits) == 1 else call("or", *hits), some, (call("is_null", value), nulls), test.negated)


def _truth(hit: Scalar, some: Scalar | None, unknown: Sequence[Scalar], negated: bool) -> Scalar:
    """True where there is a partner; unknown where there are rows and a NULL on either side; else false."""
    yes, no = (FALSE, TRUE) if negated else (TRUE, FALSE)
    branches: list[tuple[Scalar, Scalar]] = [(hit, yes)]
    if some is not None:
        branches.append((call("and", some, call("or", *unknown) if len(unknown) > 1 else unknown[0]), UNKNOWN))
    return choose(branches, no)


# ---- what is compared ----------------------------------------------------------------------------------------------------------------


def _looked(statement: Statement, side: Bound, right: Bound | Open, inner: Inner, test: Test, scope: Scope) -> tuple[Looked, tuple[Scalar, ...]]:
    """What the rows are compared by, and all conditions of it as they were written."""
    own = {c.id for c in (right.columns if isinstance(right, Open) else output(right.rel))}
    equal, across = equal_to(statement, test, inner, scope) if test.sign == "eq" else None, conditions_across(inner)
    ties, others = list[Pair](), list[Scalar]()
    for one in across:
        if not {c.id for c in columns(one)} & own:
            others.append(one)
            continue
        pair = pair_of(one, own)
        if pair is None:
            raise _alone(statement, test, "by anything but equal values")
        ties.append(pair)
    value = None if equal is None else pair_of(equal[0], own)
    if equal is not None and value is None:
        raise _alone(statement, test, "with a value that is none of its own rows'")
    found = Looked(tuple(ties), tuple(others), value)
    _check_read(statement, side, test.node, *others, *(pair.outside for pair in found.pairs))
    return found, across if equal is None else (*across, equal[0])


def _check_read(statement: Statement, side: Bound, node: exp.Expr, *values: Scalar) -> None:
    """Refuses what reads rows that are further outside."""
    known = {column.id for column in output(side.rel)}
    if any(column.id not in known for value in values for column in columns(value)):
        message = "a subquery within an expression reads the rows right around it alone"
        raise statement.refuse("SUBQUERY_HERE", message, node, f"that condition {ALONE}")


def _alone(statement: Statement, test: Test, how: str) -> Refused:
    code = "EXISTS" if test.word == "EXISTS" else "IN_SUBQUERY"
    return statement.refuse(code, f"{test.word} within another condition or expression cannot compare {how}", test.node, f"{test.word} {ALONE}")


# ---- public --------------------------------------------------------------------------------------------------------------------------


def _public(statement: Statement, side: Bound, inner: Inner, test: Test, scope: Scope) -> tuple[Bound, Scalar]:
    right = inner.side
    if not isinstance(right, Open):
        raise AssertionError("the rows are public")
    looked, _ = _looked(statement, side, right, inner, test, scope)
    if looked.pairs:
        side, found = _list(statement, side, right, looked.pairs, looked.others, test.node)
        hit: Scalar = call("not", call("is_null", found[0]))
    else:
        side, found = _one_row(statement, side, right, [("count(*) > 0", BOOLEAN)])
        hit = call("and", found[0], *looked.others) if looked.others else found[0]
    if looked.value is None:
        return side, _truth(hit, None, (), test.negated)
    text = f"{_text(statement, right, looked.value.inside, test.node)} IS NULL"
    if looked.ties:
        side, found = _list(statement, side, right, looked.ties, looked.others, test.node, f"bool_or({text})")
        some: Scalar = call("not", call("is_null", found[0]))
    else:
        side, found = _one_row(statement, side, right, [("count(*) > 0", BOOLEAN), (f"coalesce(bool_or({text}), FALSE)", BOOLEAN)])
        some = call("and", found[0], *looked.others) if looked.others else found[0]
    return side, _truth(hit, some, (call("is_null", looked.value.outside), found[-1]), test.negated)


def _list(
    statement: Statement, side: Bound, right: Open, pairs: Sequence[Pair], others: Sequence[Scalar], node: exp.Expr, more: str | None = None
) -> tuple[Bound, tuple[Column, ...]]:
    """The rows, each with the one of the public combinations of values that it equals, NULL where there is none; and `more` of these."""
    name, texts = f"public_{next(statement.publics)}", [_text(statement, right, pair.inside, node) for pair in pairs]
    made = tuple(Column(next(statement.ids), "value", pair.inside.type, public=name) for pair in pairs)
    items = [f"{text} AS c{i}" for i, text in enumerate(texts)] + ([] if more is None else [f"{more} AS c{len(texts)}"])
    present = " AND ".join(f"{text} IS NOT NULL" for text in texts)
    sql = f"SELECT {', '.join(items)} FROM ({right.sql}) AS q WHERE {present} GROUP BY {', '.join(texts)}"
    whole = made if more is None else (*made, Column(next(statement.ids), "value", BOOLEAN, public=name))
    on = conjoined([*(call("eq", pair.outside, column) for pair, column in zip(pairs, made, strict=True)), *others])
    return Bound(Lookup(side.rel, Public(name, sql, whole), Join.LEFT, on), side.frame, side.kept), whole


def _one_row(statement: Statement, side: Bound, right: Open, items: Sequence[tuple[str, Type]]) -> tuple[Bound, tuple[Column, ...]]:
    """The rows, each with the aggregates of all public ones."""
    name = f"public_{next(statement.publics)}"
    made = tuple(Column(next(statement.ids), "value", kind, public=name) for _, kind in items)
    texts = ", ".join(f"{cast_to(text, kind)} AS c{i}" for i, (text, kind) in enumerate(items))
    rel = Lookup(side.rel, Public(name, f"SELECT {texts} FROM ({right.sql}) AS q", made), Join.INNER, None)
    return Bound(rel, side.frame, side.kept), made


def _text(statement: Statement, right: Open, value: Scalar, node: exp.Expr) -> str:
    """A public column, or a cast of one, as text."""
    match value:
        case Column() if value in right.columns:
            return f"q.c{right.columns.index(value)}"
        case Cast(arg=Column() as column, type=kind) if column in right.columns:
            return cast_to(f"q.c{right.columns.index(column)}", kind)
        case _:
            message = "a subquery within an expression that reads the rows around it compares plain columns of public tables"
            raise statement.refuse("SUBQUERY_HERE", message, node, "the value as a column of a subquery in its FROM, (SELECT f(x) AS y FROM t)")


# ---- private -------------------------------------------------------------------------------------------------------------------------


def _private(statement: Statement, side: Bound, inner: Inner, right: Bound, test: Test, scope: Scope) -> tuple[Bound, Scalar]:
    looked, conditions = _looked(statement, side, right, inner, test, scope)
    if not any(tied(statement, one, side, right) for one in conditions):
        raise no_tie(statement, side, right, test)
    sure = looked.value is None or all(
        never_null(statement, each, value) for each, value in ((side, looked.value.outside), (right, looked.value.inside))
    )
    by_ties = any(tied(statement, one, side, right) for one in conditions_across(inner))
    if not sure and not by_ties:
        raise null_left(statement, side, right, test)
    asked = untied(statement, conditions, side, right)
    pairs = _compared(looked.pairs, asked)
    found, hit = _matched(statement, side, right.rel, pairs, looked.others, ())
    if sure or looked.value is None:
        return found, _truth(hit, None, (), test.negated)
    nulls = _missing(statement, looked.value.inside)
    ties = tuple(pair for pair in pairs if pair in looked.ties)
    found, some = _matched(statement, found, right.rel, ties, looked.others, (nulls,))
    return found, _truth(hit, some, (call("is_null", looked.value.outside), nulls[0]), test.negated)


def _compared(pairs: Sequence[Pair], asked: Sequence[Scalar]) -> tuple[Pair, ...]:
    """Those that are left beside the equality of units."""
    return tuple(pair for pair in pairs if call("eq", pair.outside, pair.inside) in asked or call("eq", pair.inside, pair.outside) in asked)


def _missing(statement: Statement, value: Scalar) -> tuple[Column, Reduction]:
    """Whether the value is NULL in one of the rows."""
    return Column(next(statement.ids), "missing", BOOLEAN), Reduction(Reduce.ANY, call("is_null", value), BOOLEAN)


def _ranked_privately(
    statement: Statement, side: Bound, inner: Inner, right: Bound, test: Test, value: exp.Expr, scope: Scope
) -> tuple[Bound, Scalar]:
    """A comparison with ANY of the unit's rows that equal the row."""
    looked, conditions = _looked(statement, side, right, inner, test, scope)
    if not any(tied(statement, one, side, right) for one in conditions):
        raise no_tie(statement, side, right, test)
    compared = equal_to(statement, test._replace(value=value), inner, scope)
    if compared is None or not set(columns(compared[2])) <= set(output(right.rel)):
        raise statement.refuse("SUBQUERY_HERE", "ANY and ALL compare with a value of the subquery's own rows", test.node, f"ANY or ALL {ALONE}")
    _, given, shown = compared
    _check_read(statement, side, test.node, given)
    reduces = {"min": Reduce.MIN, "max": Reduce.MAX}
    ends = [
        (
            Column(next(statement.ids), end, shown.type, declared=interval(shown) if shown.type.numeric else None),
            Reduction(reduces[end], shown, shown.type),
        )
        for end in ENDS[test.sign]
    ]
    nulls = _missing(statement, shown)
    asked = untied(statement, conditions, side, right)
    found, some = _matched(statement, side, right.rel, _compared(looked.ties, asked), looked.others, (nulls, *ends))
    return found, _ranks(statement, test, given, some, nulls[0], [column for column, _ in ends])


def _matched(
    statement: Statement, side: Bound, right: Private, pairs: Sequence[Pair], others: Sequence[Scalar], items: Sequence[tuple[Column, Reduction]]
) -> tuple[Bound, Scalar]:
    """The rows, each with the one of its unit's combinations of values that it equals, and what is told of it; and whether there is one."""
    keys = tuple(Column(next(statement.ids), "value", pair.inside.type) for pair in pairs)
    rel = Compute(right, tuple((key, pair.inside) for key, pair in zip(keys, pairs, strict=True))) if pairs else right
    there = Column(next(statement.ids), "there", BOOLEAN)
    partner = Compute(Group(rel, keys, tuple(items)), ((there, TRUE),))
    on = conjoined([*(call("eq", pair.outside, key) for pair, key in zip(pairs, keys, strict=True)), *others])
    made = Match(side.rel, partner, Join.LEFT, on, single=True)  # all that tells the unit's partners apart is compared
    return Bound(made, side.frame, side.kept), call("not", call("is_null", there))
