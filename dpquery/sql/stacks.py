"""UNION [ALL], INTERSECT and EXCEPT of relations: of private ones unit by unit, of public ones as they are.

UNION ALL carries the unit along unseen. The others compare rows, so that both branches must select their unit in the same place: otherwise equal rows
of two units would be one.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.coerce import Mismatch, common, convert
from dpquery.plan.intervals import interval
from dpquery.plan.rel import Merge, Stack
from dpquery.plan.scalar import Column, Interval, Literal, Scalar
from dpquery.privacy.locality import owning
from dpquery.sql.names import Field, Frame, Origin, Source, Statement
from dpquery.sql.sides import Bound, Open, Side
from dpquery.values.types import INTEGER, NULL, Value

WORDS: dict[type[exp.SetOperation], Merge] = {exp.Union: Merge.UNION, exp.Intersect: Merge.INTERSECT, exp.Except: Merge.EXCEPT}


def stacked(statement: Statement, node: exp.SetOperation, left: Side, right: Side, distinct: bool) -> Side:
    """The rows of both branches, as the operation says, under the names of the first."""
    how = WORDS[type(node)]
    if not distinct:
        if how is not Merge.UNION:
            raise statement.refuse("SET_OPERATION", f"{how.upper()} ALL is not supported", node, f"{how.upper()}, which keeps each row once")
        how = Merge.UNION_ALL
    match left, right:
        case Open(), Open():
            return _public(statement, node, left, right, how)
        case Bound(), Bound():
            return _private(statement, node, left, right, how)
        case _:
            message = f"{how.upper()} of private rows with public ones: rows of a public table belong to nobody"
            raise statement.refuse("SET_PUBLIC", message, node, "private tables in both branches, or a JOIN with the public table")


def _pairs(statement: Statement, node: exp.SetOperation, left: Side, right: Side) -> list[tuple[str, Scalar, Scalar]]:
    """The columns of both branches by their places, in their common types."""
    ours, theirs = left.frame.fields(), right.frame.fields()
    if len(ours) != len(theirs):
        message = f"the branches have {len(ours)} and {len(theirs)} columns"
        raise statement.refuse("SET_OPERATION", message, node, "as many columns in each branch")
    found = []
    for one, other in zip(ours, theirs, strict=True):
        try:
            kind = common([one.value, other.value])
            kind = INTEGER if kind == NULL else kind
            found.append((one.name, convert(one.value, kind), convert(other.value, kind)))
        except Mismatch as wrong:
            raise statement.refuse(wrong.code, f"column {one.name!r} of both branches: {wrong.message}", node, wrong.instead) from None
    return found


def _public(statement: Statement, node: exp.SetOperation, left: Open, right: Open, how: Merge) -> Open:
    pairs = _pairs(statement, node, left, right)
    if any(a.type != b.type for a, b in zip(left.columns, right.columns, strict=False)):
        raise statement.refuse("TYPE_MISMATCH", "the branches have columns of unlike types", node, "CAST(x AS ..) in one of them")
    made = tuple(Column(next(statement.ids), name, ours.type) for name, ours, _ in pairs)
    frame = Frame((Source("", tuple(Field(c.name, c) for c in made)),))
    return Open(f"({left.sql}) {how.upper()} ({right.sql})", made, frame, (*left.tables, *right.tables), most=left.most + right.most)


def _private(statement: Statement, node: exp.SetOperation, left: Bound, right: Bound, how: Merge) -> Bound:
    for side in (left, right):
        if side.kept:
            message = "an outer join that keeps a public table's rows cannot stand in a branch"
            raise statement.refuse("KEPT_PUBLIC", message, node, "an INNER JOIN in the branch")
    pairs = _pairs(statement, node, left, right)
    units = owning(left.rel), owning(right.rel)
    if how is not Merge.UNION_ALL and not any(_is_of(ours, units[0]) and _is_of(theirs, units[1]) for _, ours, theirs in pairs):
        raise _unit_missing(statement, node, how)
    made = tuple(of_both(statement, *pair) for pair in pairs)
    rel = Stack(left.rel, right.rel, made, tuple(p[1] for p in pairs), tuple(p[2] for p in pairs), how)
    return Bound(rel, Frame((Source("", tuple(Field(c.name, c) for c in made)),)))


def _is_of(value: Scalar, known: frozenset[int]) -> bool:
    return isinstance(value, Column) and value.id in known


def _unit_missing(statement: Statement, node: exp.SetOperation, how: Merge) -> Refused:
    message = f"{how.upper()} takes equal rows of two privacy units for one, unless both branches select their unit's own column in the same place"
    return statement.refuse("SET_UNIT", message, node, "the column of the privacy unit in each branch's SELECT, in the same place; or UNION ALL")


def of_both(statement: Statement, name: str, ours: Scalar, theirs: Scalar) -> Column:
    """A column of the stack: its bounds hold those of both branches, its declared values are those of both."""
    known = [value for value in (ours, theirs) if not (isinstance(value, Literal) and value.value is None)]  # a NULL is beyond no bounds
    made = Column(next(statement.ids), name, ours.type, _hull(known), _values(ours, theirs), step=_step(known))
    origins = [statement.origins.get(v.id) if isinstance(v, Column) else None for v in (ours, theirs)]
    fixes = [frozenset[tuple[str, ...]]() if origin is None else origin.fixes for origin in origins]
    if fixes[0] & fixes[1]:
        statement.origins[made.id] = Origin("", "", fixes[0] & fixes[1])
    return made


def _hull(known: Sequence[Scalar]) -> Interval | None:
    spans = [interval(value) if value.type.numeric else None for value in known]
    lows, highs = [span.low for span in spans if span is not None], [span.high for span in spans if span is not None]
    return Interval(min(lows), max(highs)) if lows and len(lows) == len(known) else None


def _values(ours: Scalar, theirs: Scalar) -> tuple[Value, ...] | None:
    if not isinstance(ours, Column) or not isinstance(theirs, Column) or ours.values is None or theirs.values is None:
        return None
    return tuple(dict.fromkeys((*ours.values, *theirs.values)))


def _step(known: Sequence[Scalar]) -> Fraction | None:
    steps = {value.step if isinstance(value, Column) else None for value in known}
    return steps.pop() if len(steps) == 1 else None
