"""A release as a relation: how its table appears, and how it appears once more where it is read twice."""

from __future__ import annotations

from dataclasses import replace

from dpquery.plan.draft import Post
from dpquery.sql.above import Above
from dpquery.sql.names import Statement
from dpquery.sql.over import released
from dpquery.sql.sides import Released, moved
from dpquery.sql.statement import Clauses


def renamed(statement: Statement, above: Above, post: Post, clauses: Clauses) -> Released:
    """A release as a relation: its aggregates are known by the appearance of its table."""
    alias = post.rows[0][0] if post.rows else ""
    statement.cards.update({f"{alias}.{ask.name}": ask.card for ask in above.asks})
    single = not above.keys or (clauses.limit is not None and clauses.limit <= 1)
    found = released(above, post, single)
    cells = tuple(replace(cell, bar=moved(cell.bar, {"": alias})) for cell in found.cells)
    return replace(found, cells=cells, unsure=clauses.cut and not single)


def again(statement: Statement, found: Released) -> Released:
    """The same relation once more, its tables under other names."""
    names = {alias: f"r{next(statement.copies)}" for alias, _ in found.rows}
    statement.cards.update(
        {
            f"{names[alias]}.{rest}": card
            for known, card in tuple(statement.cards.items())
            for alias, _, rest in [known.partition(".")]
            if alias in names
        }
    )
    items = [f"c{i}" for i in range(len(found.cells))] + [f"{alias} AS {name}" for alias, name in names.items()]
    cells = tuple(replace(cell, bar=moved(cell.bar, names)) for cell in found.cells)
    rows = tuple((names[alias], table) for alias, table in found.rows)
    return replace(found, sql=f"SELECT {', '.join(items)} FROM ({found.sql})", cells=cells, rows=rows)
