"""Relations that compute a column: an expression that is too long to be written out where it is used stands in the plan as a column of its own."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from grammar import RELATION, Expr, Grammar, Production, Rel, Statement, both
from relations import Made, closed, table, wrapped
from statements import over
from worlds import World

from dpquery.sql.select import INLINED
from dpquery.values.types import INTEGER


def computed(g: Grammar, below: Rel) -> Rel:
    """SELECT all columns and a long expression FROM the relation WHERE ..."""
    private = below.unit is not None
    made = [(g.read(c), c.name if names.count(c.name) == 1 else g.name("n"), c.firm) for names in [[c.name for c in below.cols]] for c in below.cols]
    made.append((_long(g, below), g.name("n"), True))
    texts = []
    for place, unit in ((0, ""), (1, f"{below.unit} AS __u, " if private else "")):
        items = ", ".join(f"{(e.dp, e.plain)[place]} AS {name}" for e, name, _ in made)
        tests = " AND ".join((e.whole.dp, e.whole.plain)[place] for e in below.where)
        texts.append(f"SELECT {unit}{items} FROM {(below.dp, below.plain)[place]}{f' WHERE {tests}' if tests else ''}")
    columns: Made = tuple(made)
    return wrapped(g, texts[0], texts[1], columns, private)


def _long(g: Grammar, below: Rel) -> Expr:
    """0 or 1, in more words than are written out."""
    one = g.read(g.random.choice(below.cols))
    return both("CASE WHEN {0} IS NULL THEN 0 ELSE 1 END" + " + 1 - 1" * (INLINED // 4 + 1), INTEGER, one)


def _over(g: Grammar, production: Production, below: Production | None) -> Rel | None:
    """What a production of FROM makes of relations that compute a column, or of what another production makes of tables."""
    kept = list(RELATION)
    RELATION[:] = [(1, lambda g, _: (below and below(g, 1)) or computed(g, table(g)))]
    try:
        found = production(g, 3)
        assert found is None or isinstance(found, Rel)
        return found
    finally:
        RELATION[:] = kept


def statements(world: World, production: Production, seed: str, below: Production | None = None) -> Iterator[Statement]:
    """Statements over what a production of FROM makes of such relations, now and then with a long column above it; none where it finds no columns."""
    for attempt in range(12):
        g = Grammar(Random(f"{seed}/{attempt}"), world)
        rel = _over(g, production, below)
        if rel is not None:
            yield over(g, rel if g.chance(0.4) else computed(g, rel) if g.chance(0.7) else closed(g, rel))
