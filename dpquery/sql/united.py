"""UNION, INTERSECT and EXCEPT above the noise."""

from __future__ import annotations

from sqlglot import exp

from dpquery.plan.draft import Either
from dpquery.sql.names import Statement
from dpquery.sql.sides import Cell, Released
from dpquery.values.types import NULL, Kind, Type

SETS: dict[type[exp.Expr], str] = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}


def united(statement: Statement, node: exp.SetOperation, left: Released, right: Released, distinct: bool) -> Released:
    """UNION, INTERSECT and EXCEPT. The rows of UNION ALL keep their error bars."""
    if len(left.cells) != len(right.cells):
        message = f"the branches have {len(left.cells)} and {len(right.cells)} columns"
        raise statement.refuse("SET_OPERATION", message, node, "as many columns in each branch")
    for a, b in zip(left.cells, right.cells, strict=True):
        if a.type != b.type and any(cell.type is not None and cell.type.kind is Kind.LIST for cell in (a, b)):
            message = f"column {a.name!r} is a list in one branch only, or of other values"
            raise statement.refuse("SET_OPERATION", message, node, "lists of the same quantiles' type in each branch, or q[1]")
    word = SETS[type(node)]
    keep = word == "UNION" and not distinct
    names = [f"c{i}" for i in range(len(left.cells))]
    mine = [*names, *(alias for alias, _ in left.rows), *(f"NULL::BIGINT AS {alias}" for alias, _ in right.rows)]
    theirs = [*names, *(f"NULL::BIGINT AS {alias}" for alias, _ in left.rows), *(alias for alias, _ in right.rows)]
    cells = tuple(
        Cell(
            a.name,
            _common(a.type, b.type),
            a.noisy or b.noisy,
            Either((a.bar, b.bar)) if keep and (a.bar is not None or b.bar is not None) else None,
        )
        for a, b in zip(left.cells, right.cells, strict=True)
    )
    unsure = left.unsure or right.unsure or (not keep and any(cell.noisy for cell in cells))
    if not keep:
        sql = f"SELECT {', '.join(names)} FROM ({left.sql}) {word}{'' if distinct else ' ALL'} SELECT {', '.join(names)} FROM ({right.sql})"
        return Released(sql, cells, unique=frozenset(range(len(cells))) if distinct else None, unsure=unsure)
    sql = f"SELECT {', '.join(mine)} FROM ({left.sql}) UNION ALL SELECT {', '.join(theirs)} FROM ({right.sql})"
    return Released(sql, cells, (*left.rows, *right.rows), unsure=unsure)


def _common(a: Type | None, b: Type | None) -> Type | None:
    """The type of a column of both branches, where they are of one: NULL is of each."""
    return b if a == NULL else a if b in (a, NULL) else None
