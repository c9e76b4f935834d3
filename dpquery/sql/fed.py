"""Released rows that private ones are joined with: a list of keys, each of them once, or a single row of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from dpquery.plan.rel import Public
from dpquery.plan.scalar import Column, Scalar, columns, equated
from dpquery.sql.names import Frame, Statement, fold
from dpquery.sql.sides import Released, distinct


def fed_keys(statement: Statement, released: Released, made: Public, frame: Frame, on: Sequence[Scalar], node: exp.Expr) -> tuple[Public, Frame]:
    """The relation with the columns alone that the join says are equal to private ones, so that no private row meets two of its rows (L25)."""
    if released.single:
        return made, frame
    met = equated(on, {column.id for column in made.columns})
    places = [place for place, column in enumerate(made.columns) if column.id in met]
    if released.unique is None or not released.unique <= set(places) or not places:
        message = "private rows join released ones as a list of keys: on equal values of columns that tell the released rows apart"
        instead = "IN (SELECT key FROM ..), or the join with (SELECT DISTINCT key FROM ..) on all of its columns"
        raise statement.refuse("RELEASED_JOIN", message, node, instead)
    once = distinct(statement, made, places)
    statement.hidden.update(fold(column.name) for column in made.columns if column not in once.columns)
    hidden = {column.id for column in made.columns} - {column.id for column in once.columns}
    if any(column.id in hidden for part in on for column in columns(part)):
        message = "the condition of the join reads a released column that is no key of the list"
        raise statement.refuse("RELEASED_JOIN", message, node, "that condition in a subquery of its own, (SELECT key FROM released WHERE ..)")
    return once, _without(frame, hidden)


def _without(frame: Frame, hidden: set[int]) -> Frame:
    sources = (replace(s, fields=tuple(f for f in s.fields if not (isinstance(f.value, Column) and f.value.id in hidden))) for s in frame.sources)
    return replace(frame, sources=tuple(sources))
