"""Values of private rows that read the row around them: of the rows of its unit that meet it, an aggregate, or the only one.

`(SELECT COUNT(*) FROM orders o WHERE o.user_id = u.user_id)` is a column of `SELECT user_id, COUNT(*) FROM orders GROUP BY user_id`, LEFT JOINed on
the unit: each row meets one group at most, and where it meets none a count is 0 and all else NULL, as of no rows. Where rows are compared by more
than equal values, the groups are those of the pairs of rows that meet, by the row outside: by a key of its, or by its number in the unit. Of one row
for each unit or key, `(SELECT country FROM users u WHERE u.user_id = o.user_id)` is a column of the join itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.functions import call, choose
from dpquery.plan.inside import Place, Placing, Reduce
from dpquery.plan.rel import Compute, Group, Join, Match, Private, Windowed, output
from dpquery.plan.scalar import Column, Literal, Scalar, columns, replaced
from dpquery.sql.correlated import Below, known, over, unwrapped
from dpquery.sql.fields import peek
from dpquery.sql.fulljoins import MOST_NODES, size
from dpquery.sql.joins import suggestion
from dpquery.sql.names import Scope, Statement, fold, scratch
from dpquery.sql.nested import read_by
from dpquery.sql.partners import conjoined, never_null, pair_of, tied, untied
from dpquery.sql.peruser import Level, is_reduction, outermost
from dpquery.sql.rowwise import expression
from dpquery.sql.semi import Inner, conditions_across
from dpquery.sql.sides import Bound, as_column, one_each, unique
from dpquery.values.types import BOOLEAN, INTEGER

CLAUSES = frozenset(("expressions", "distinct", "from_", "joins", "where", "group", "having"))
ONE = "one aggregate of the rows that belong to the row outside, WHERE inner.unit = outer.unit"


def unit_value(statement: Statement, side: Bound, node: exp.Expr, scope: Scope, below: Below) -> tuple[Bound, Scalar] | None:
    """The rows with the columns that the subquery's value comes of, and that value; None where it reads nothing of them, or is no such value."""
    inner = unwrapped(node)
    if not isinstance(inner, exp.Select) or any(value and name not in CLAUSES for name, value in inner.args.items()):
        return None
    if len(inner.expressions) != 1 or not _reads_row(statement, inner, scope, below):
        return None
    item, having = inner.expressions[0].unalias(), peek(inner, "having")
    parts = [item] if having is None else [item, having.this]
    rows = _rows(inner, any(outermost(exp.paren(part), is_reduction) for part in parts))
    if rows is not inner and any(part.find(exp.Query) for part in parts):
        return None
    found = below.inner(rows, scope)
    right, tests = found.side, conditions_across(found)
    if not isinstance(right, Bound) or right.kept:
        return None
    if {c for test in tests for c in columns(test)} - {*output(side.rel), *output(right.rel)}:
        raise _refused(statement, "a subquery that is a value reads the rows right around it alone", node, ONE)
    if not any(tied(statement, one, side, right) for one in tests):
        raise _not_own(statement, side, right, found)
    if rows is not inner:
        return _aggregate(statement, side, Asked(inner, parts, found, right, tests), scope)
    return _only(statement, side, right, found.values, tests)


def _rows(inner: exp.Select, aggregates: bool) -> exp.Select:
    """The rows that are aggregated, if they are."""
    if not aggregates and peek(inner, "group") is None:
        return inner
    rows = inner.copy()
    for name in ("group", "having", "distinct"):
        rows.set(name, None)
    rows.set("expressions", [exp.Literal.number(1)])
    return rows


def _reads_row(statement: Statement, inner: exp.Select, scope: Scope, below: Below) -> bool:
    """Whether WHERE reads the row around the subquery, whose rows are private."""
    where, own = peek(inner, "where"), {fold(one.alias_or_name) for one in read_by(inner)}
    if where is None or not any((not one.table or fold(one.table) not in own) and known(scope, one) for one in where.find_all(exp.Column)):
        return False
    trial = replace(scratch(statement), relations=statement.relations)  # what FROM reads is read again where it counts
    rows = below.apart(trial)(_rows(inner, True))
    if not isinstance(rows, Bound):
        return False
    inside = Scope(rows.frame, trial)
    outside = [one for one in where.walk(prune=lambda node: isinstance(node, exp.Query)) if isinstance(one, exp.Column) and not inside.inside(one)]
    return bool(outside) and all(known(scope, one) for one in outside)


# ---- one row -------------------------------------------------------------------------------------------------------------------------


def _only(statement: Statement, side: Bound, right: Bound, values: Sequence[Scalar], tests: Sequence[Scalar]) -> tuple[Bound, Scalar] | None:
    """The value of the only row that there may be; None where there may be several."""
    (value,) = values
    if not one_each(right.rel, tests) or not set(columns(value)) <= set(output(right.rel)):
        return None
    made = value if isinstance(value, Column) else as_column(statement, "value", value)
    rel = right.rel if made is value else Compute(right.rel, ((made, value),))
    return replace(side, rel=Match(side.rel, rel, Join.LEFT, conjoined(untied(statement, tests, side, right)), single=True)), made


# ---- aggregates ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A subquery of aggregates: its item and the condition of HAVING, its rows, and the conditions that read the row outside."""

    node: exp.Select
    parts: Sequence[exp.Expr]
    inner: Inner
    right: Bound
    tests: Sequence[Scalar]


def _aggregate(statement: Statement, side: Bound, asked: Asked, scope: Scope) -> tuple[Bound, Scalar]:
    _check_groups(statement, asked)
    own, inside = {c.id for c in output(asked.right.rel)}, asked.inner.scope
    left = untied(statement, asked.tests, side, asked.right)
    pairs = [pair for test in left if (pair := pair_of(test, own)) is not None]
    outside = [one for part in asked.parts for one in part.find_all(exp.Column) if not inside.inside(one)]
    if len(pairs) == len(left) and not outside:
        keys = tuple(Column(next(statement.ids), "value", pair.inside.type) for pair in pairs)
        rel: Private = Compute(asked.right.rel, tuple((key, pair.inside) for key, pair in zip(keys, pairs, strict=True))) if keys else asked.right.rel
        on = [call("eq", pair.outside, key) for pair, key in zip(pairs, keys, strict=True)]
    else:
        side, row = _told_apart(statement, side, asked)
        met = Match(side.rel, asked.right.rel, Join.INNER, conjoined(left), one_each(side.rel, asked.tests) or one_each(asked.right.rel, asked.tests))
        keys = (replace(row, id=next(statement.ids)),)
        rel, on = Compute(met, ((keys[0], row),)), [call("eq", row, keys[0])]
    level = Level(statement, inside, Group(rel, keys, ()), lambda one, node: (one, node), visible={key.id for key in keys})
    values = [[level.reduced(one) for one in outermost(exp.paren(part), is_reduction)] for part in asked.parts]
    there = Column(next(statement.ids), "there", BOOLEAN)
    rows = Match(side.rel, Compute(level.rel, ((there, Literal(True, BOOLEAN)),)), Join.LEFT, conjoined(on), single=True)
    counts: dict[Scalar, Scalar] = {
        c: call("coalesce", c, Literal(0, INTEGER)) for c, item in level.group_below().items if item.function in (Reduce.COUNT, Reduce.ENTROPY)
    }
    read = [
        expression(over(statement, part, inside, [replaced(one, counts) for one in own_], is_reduction), scope, "a subquery's SELECT")
        for part, own_ in zip(asked.parts, values, strict=True)
    ]
    conditions = [*([] if peek(asked.node, "group") is None else [call("not", call("is_null", there))]), *read[1:]]
    found = choose([(call("and", *conditions) if len(conditions) > 1 else conditions[0], read[0])], None) if conditions else read[0]
    return replace(side, rel=rows), found


def _check_groups(statement: Statement, asked: Asked) -> None:
    """Refuses groups of which there may be several for a row outside."""
    group, inside = peek(asked.node, "group"), asked.inner.scope
    equal = {pair.inside for test in asked.tests if (pair := pair_of(test, {c.id for c in output(asked.right.rel)})) is not None}
    for key in () if group is None else group.expressions:
        if expression(key, inside, "GROUP BY") not in equal:
            message = "the subquery has a row for each of its groups, where one value is asked for"
            raise _refused(statement, message, key, "the subquery without GROUP BY, or grouped by what equals the row outside")


def _told_apart(statement: Statement, side: Bound, asked: Asked) -> tuple[Bound, Column]:
    """The rows, and a column that tells those of a unit apart: a key, or a number. Equal rows meet the same partners, whichever has which number."""
    if 2 * size(side.rel) + size(asked.right.rel) > MOST_NODES:
        raise statement.refuse(
            "TOO_COMPLEX", "so many values of rows that are compared are not supported", asked.node, "fewer of them in a statement"
        )
    keys = unique(side.rel)
    key = next((c for c in output(side.rel) if c.id in keys and never_null(statement, side, c)), None)
    if key is not None:
        return side, key
    made = Column(next(statement.ids), "number", INTEGER)
    return replace(side, rel=Windowed(side.rel, made, Placing(Place.ROW_NUMBER, None, INTEGER), (), ())), made


def _not_own(statement: Statement, side: Bound, right: Bound, inner: Inner) -> Refused:
    """The refusal of rows of all units, of which a value for each row would be told."""
    tie = suggestion(statement, side, right)
    read = next(one for test in inner.across for one in test.find_all(exp.Column) if not inner.scope.inside(one))
    message = f"the subquery reads {read.name!r} of the row around it, and rows of other units than that row's"
    return _refused(statement, message, read, f"AND {tie} in the subquery's WHERE: a unit's own rows alone" if tie else ONE)


def _refused(statement: Statement, message: str, node: exp.Expr, instead: str) -> Refused:
    return statement.refuse("CORRELATED_VALUE", message, node, instead)
