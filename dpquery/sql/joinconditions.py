"""The conditions of a join: ON, USING, NATURAL; and what is visible above it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpquery.plan import functions
from dpquery.plan.coerce import Mismatch
from dpquery.plan.scalar import Column, Scalar, conjuncts
from dpquery.sql.fulljoins import either
from dpquery.sql.joinkinds import How, Step, at
from dpquery.sql.names import Field, Frame, Merged, Scope, Statement, fold, identifier
from dpquery.sql.quoting import written
from dpquery.sql.refuse import near
from dpquery.sql.rowwise import condition, conjunct_nodes
from dpquery.sql.sides import equality


def joined_frame(left: Frame, right: Frame, merged: Sequence[Merged] = ()) -> Frame:
    """What is visible above a join."""
    sources = sorted((*left.sources, *right.sources), key=lambda s: s.place)
    replaced = {fold(m.name) for m in merged}
    kept = [m for m in (*left.merged, *right.merged) if fold(m.name) not in replaced]
    return Frame(tuple(sources), (*kept, *merged))


def conditions(statement: Statement, left: Frame, right: Frame, one: Step) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...], Frame]:
    """The equalities of USING, the conditions of ON, and what is visible above the join. `left` and `right` are as written."""
    names = _natural(left, right) if one.natural else tuple(one.using)
    if one.natural and not names:
        raise statement.refuse("JOIN_CONDITION", "NATURAL JOIN of relations without a common column", at(one.node), "ON .. with the condition")
    equal, merged = [], []
    for node in names:
        name = identifier(node)
        a, b = _only(statement, left, right, name, node), _only(statement, right, left, name, node)
        try:
            equal.append(functions.call("eq", a.value, b.value))
            merged.append(Merged(a.name, _value(a.value, b.value, one.how), _places(left, name) | _places(right, name)))
        except Mismatch as wrong:
            raise statement.refuse(wrong.code, f"column {name!r} of both sides: {wrong.message}", at(one.node), wrong.instead) from None
    frame = joined_frame(left, right, merged)
    scope = Scope(frame, statement)
    on = tuple(part for node in conjunct_nodes(one.on) for part in conjuncts(condition(node, scope, "ON")))
    return tuple(equal), on, frame


def _natural(left: Frame, right: Frame) -> tuple[exp.Identifier, ...]:
    known = {fold(name) for name in right.names()}
    return tuple(exp.to_identifier(name) for name in left.names() if fold(name) in known)


def _only(statement: Statement, frame: Frame, other: Frame, name: str, node: exp.Identifier) -> Field:
    found = frame.find(name)
    if not found:
        shared = [one.name for one in _natural(frame, other)]
        meant = near(name, shared) or (f" (did you mean {shared[0]!r}?)" if len(shared) == 1 else "")
        where = "either side" if not other.find(name) else " and ".join(s.alias for s in frame.sources[:3] if s.alias) or "one side"
        instead = f"{' or '.join(map(written, shared[:5]))}, which both sides have" if shared else "ON with the condition: no column is on both sides"
        raise statement.refuse("UNKNOWN_COLUMN", f"USING: no column {name!r} on {where}{meant}", node, instead)
    if len(found) > 1:
        message = f"USING: several columns {name!r} on one side"
        raise statement.refuse("AMBIGUOUS_COLUMN", message, node, "ON with the tables' names in front of the columns")
    return found[0]


def _value(left: Scalar, right: Scalar, how: How) -> Scalar:
    """What a merged column stands for: of an inner join the public column, where there is one of the same type; equal rows hold equal values."""
    if how is How.INNER and isinstance(right, Column) and right.public is not None and right.type == left.type:
        return right
    if how is How.FULL:
        return either(left, right)
    return right if how is How.RIGHT else left


def _places(frame: Frame, name: str) -> frozenset[int]:
    return frozenset(s.place for s in frame.sources if any(fold(f.name) == fold(name) for f in s.fields))


def across(condition_: Scalar, public_columns: Sequence[Column]) -> bool:
    """Whether an equality has one column of the public relation and one of the other."""
    pair, own = equality(condition_), {c.id for c in public_columns}
    return pair is not None and (pair[0].id in own) != (pair[1].id in own)
