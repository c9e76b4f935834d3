"""FULL JOIN: the rows of a LEFT JOIN, and beside them the right rows without a partner.

Each visible column becomes one of both kinds of rows: NULL where a row has no such side. A column of USING is that of the side that there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpquery.plan.functions import call
from dpquery.plan.rel import Join, Match, Merge, Private, Semi, Stack, output, walk
from dpquery.plan.scalar import Call, Column, Literal, Scalar
from dpquery.sql.names import Frame, Statement
from dpquery.sql.partners import conjoined
from dpquery.sql.sides import Bound, substituted
from dpquery.sql.stacks import of_both

MOST_NODES = 400  # of a plan with a full join in it, whose both sides stand in it twice
Row = tuple[Column, Scalar, Scalar]  # the new column, and its values in rows with a left side and in those without one


def either(left: Scalar, right: Scalar) -> Scalar:
    """What a column of USING stands for: the value of the side that there is."""
    return call("coalesce", left, right)


def size(rel: Private) -> int:
    """How many nodes a relation has."""
    return sum(1 for _ in walk(rel))


def full(statement: Statement, left: Bound, right: Bound, on: Sequence[Scalar], frame: Frame, single: bool) -> Bound:
    """Two private relations within the unit, none of whose rows is lost. All visible expressions of both are columns already."""
    condition, theirs = conjoined(on), {column.id for column in output(right.rel)}
    visible = dict.fromkeys([f.value for s in frame.sources for f in s.fields] + [m.value for m in frame.merged])
    made = {value: row for value in visible if (row := _row(statement, value, theirs)) is not None}
    rows = tuple(made.values())
    kept = Match(left.rel, right.rel, Join.LEFT, condition, single)
    alone = Semi(right.rel, left.rel, condition, negated=True)
    columns, ours, others = tuple(r[0] for r in rows), tuple(r[1] for r in rows), tuple(r[2] for r in rows)
    return Bound(Stack(kept, alone, columns, ours, others, Merge.UNION_ALL), substituted(frame, {value: row[0] for value, row in made.items()}))


def _row(statement: Statement, value: Scalar, theirs: set[int]) -> Row | None:
    """None for what is NULL on both sides."""
    match value:
        case Column() if value.id in theirs:
            return _renewed(statement, value), value, value
        case Column():
            return _renewed(statement, value), value, Literal(None, value.type)
        case Call(function="coalesce", args=(ours, other)):
            return of_both(statement, ours.name if isinstance(ours, Column) else "x", ours, other), ours, other
        case _:
            return None


def _renewed(statement: Statement, value: Column) -> Column:
    """The column with all that is known of it; where it is not NULL it still says whose row it is."""
    made = replace(value, id=next(statement.ids), public=None)
    if value.id in statement.origins:
        statement.origins[made.id] = statement.origins[value.id]
    return made
