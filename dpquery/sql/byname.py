"""UNION BY NAME: both branches with their columns side by side by their names, NULL in the place of one that a branch lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlglot import exp

from dpquery.plan.scalar import Column, Literal
from dpquery.sql.names import Field, Frame, Source, Statement, fold
from dpquery.sql.public import cast_to, renewed
from dpquery.sql.sides import Bound, Cell, Open, Released, Side
from dpquery.values.types import INTEGER, NULL

Places = list[tuple[str, int | None, int | None]]  # a column's name, and where it stands in each branch
MATCHED = ("by_name", "side", "kind")
"""What the parser notes of a set operation on how columns are matched."""
ABSENT = "a branch of BY NAME has no such column"


class ByName(NamedTuple):
    """How a set operation says that columns are matched: BY NAME at all, and FULL, LEFT or INNER, which columns there are."""

    asked: bool
    side: str
    kind: str


def by_name(given: Sequence[Any]) -> ByName:
    """From what the parser noted, as in `MATCHED`."""
    asked, side, kind = given
    return ByName(bool(asked), str(side or "").upper(), str(kind or "").upper())


def _places(statement: Statement, node: exp.Expr, how: ByName, ours: Sequence[str], theirs: Sequence[str]) -> Places:
    """The columns of the first branch in their order, then those that the second has alone."""
    if not how.asked or how.side not in ("", "FULL", "LEFT") or how.kind not in ("", "OUTER", "INNER"):
        words = " ".join(filter(None, (how.side, how.kind)))
        raise statement.refuse("SET_OPERATION", f"{words} of a set operation belongs to BY NAME", node, "BY NAME behind it")
    places: list[dict[str, int]] = []
    for names in (ours, theirs):
        twice = next((name for i, name in enumerate(names) if fold(name) in map(fold, names[:i])), None)
        if twice is not None:
            raise statement.refuse("SET_OPERATION", f"BY NAME: a branch has two columns {twice!r}", node, "another alias for one of them")
        places.append({fold(name): i for i, name in enumerate(names)})
    shown = {fold(name): name for name in (*theirs, *ours)}
    left, right = places
    if not isinstance(node, exp.Union) and left.keys() != right.keys():
        message = "INTERSECT and EXCEPT BY NAME compare rows of the same columns"
        raise statement.refuse("SET_OPERATION", message, node, "the same names of columns in each branch")
    both = [name for name in left if name in right]
    kept = both if how.kind == "INNER" else list(left) if how.side == "LEFT" else list(dict.fromkeys((*left, *right)))
    if not kept:
        raise statement.refuse("SET_OPERATION", "BY NAME: the branches have no column in common", node, "an alias, so that names are alike")
    return [(shown[name], left.get(name), right.get(name)) for name in kept]


def sides(statement: Statement, node: exp.Expr, how: ByName, left: Side, right: Side) -> tuple[Side, Side]:
    """Two relations below the noise; those that are not matched by name are left as they are."""
    if not any(how):
        return left, right
    ours, theirs = left.frame.fields(), right.frame.fields()
    places = _places(statement, node, how, [f.name for f in ours], [f.name for f in theirs])
    return (
        _side(statement, left, [(name, a, None if b is None else theirs[b]) for name, a, b in places]),
        _side(statement, right, [(name, b, None if a is None else ours[a]) for name, a, b in places]),
    )


def _side(statement: Statement, side: Side, places: Sequence[tuple[str, int | None, Field | None]]) -> Side:
    fields = side.frame.fields()
    if isinstance(side, Bound):
        made = tuple(Field(name, Literal(None, NULL) if at is None else fields[at].value) for name, at, _ in places)
        return replace(side, frame=Frame((Source("", made),)))
    texts, columns = list[str](), list[Column]()
    for i, (name, at, other) in enumerate(places):
        value = Literal(None, INTEGER if other is None else other.value.type) if at is None else fields[at].value
        text = f"c{side.columns.index(value)}" if isinstance(value, Column) else cast_to("NULL", value.type)
        texts.append(f"{text} AS c{i}")
        columns.append(renewed(statement, name, value))
    frame = Frame((Source("", tuple(Field(c.name, c) for c in columns)),))
    return Open(f"SELECT {', '.join(texts)} FROM ({side.sql}) AS q", tuple(columns), frame, side.tables, most=side.most)


def branches(statement: Statement, node: exp.Expr, how: ByName, left: Released, right: Released) -> tuple[Released, Released]:
    """Two released relations; those that are not matched by name are left as they are."""
    if not any(how):
        return left, right
    places = _places(statement, node, how, [c.name for c in left.cells], [c.name for c in right.cells])
    return (
        _branch(left, [(name, a, None if b is None else right.cells[b]) for name, a, b in places]),
        _branch(right, [(name, b, None if a is None else left.cells[a]) for name, a, b in places]),
    )


def _branch(released: Released, places: Sequence[tuple[str, int | None, Cell | None]]) -> Released:
    cells = tuple(
        replace(released.cells[at], name=name) if at is not None else Cell(name, None if other is None else other.type, missing=ABSENT)
        for name, at, other in places
    )
    texts = [f"{'NULL' if at is None else f'c{at}'} AS c{i}" for i, (_, at, _) in enumerate(places)]
    items = ", ".join([*texts, *(alias for alias, _ in released.rows)])
    return replace(released, sql=f"SELECT {items} FROM ({released.sql}) AS q", cells=cells, unique=None)
