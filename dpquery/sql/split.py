"""The noise line: what the engine sums up below it, and above it one SELECT over the noisy table that cannot fail.

The table `noisy` has columns k0, k1, .. (keys), a0, a1, .. (aggregates) and `__row`. Windows read it through a subquery that holds their arguments;
each other expression stands inside TRY, which does not hold around windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from dpquery.plan.draft import Edge, Output, Post
from dpquery.sql import edges
from dpquery.sql.above import Above, Where, guarded
from dpquery.sql.bars import error_bar, is_noisy
from dpquery.sql.fields import take
from dpquery.sql.names import column_name, fold
from dpquery.sql.public import quoted
from dpquery.sql.windows import direction


@dataclass(frozen=True, slots=True)
class Parts:
    """The clauses of a SELECT that stand above the noise; `items` are its outputs, named, their stars and aliases resolved."""

    items: Sequence[tuple[str, exp.Expr]]
    having: exp.Expr | None
    qualify: exp.Expr | None
    order: exp.Order | None
    limit: int | None
    offset: int | None
    distinct: bool


@dataclass(frozen=True, slots=True)
class Term:
    """One term of ORDER BY: an output by its place, or another expression; and its direction, spelled out."""

    output: int | None
    text: str
    direction: str
    node: exp.Expr


def post(above: Above, parts: Parts) -> Post:
    """The statement over the noisy table, and what its columns are."""
    nodes = [node for _, node in parts.items]
    shown = [edges.shown(above.statement, node) for node in nodes]
    lifted = [
        above.lift(node if one is None else one.of, Where.SELECT if one is None else Where.ORDER) for node, one in zip(nodes, shown, strict=True)
    ]
    having = None if parts.having is None else guarded(above.lift(parts.having, Where.HAVING))
    qualify = None if parts.qualify is None else guarded(above.lift(parts.qualify, Where.QUALIFY))
    texts = [edges.NOTHING if one is not None and one.edge is not Edge.REPORT else guarded(node) for node, one in zip(lifted, shown, strict=True)]
    terms = [] if parts.order is None else _terms(above, parts.order, parts.items, texts)
    edges.check_places(above.statement, nodes, parts.distinct)
    outputs = tuple(_output(above, name, node, one) for (name, _), node, one in zip(parts.items, lifted, shown, strict=True))
    source = _source(above, having, qualify)
    limits = f"{'' if parts.limit is None else f' LIMIT {parts.limit}'}{'' if parts.offset is None else f' OFFSET {parts.offset}'}"
    if parts.distinct:
        return Post(_distinct(above, texts, outputs, terms, source) + limits, outputs, rows=())
    names = [f"{text} AS {quoted(output.name)}" for text, output in zip(texts, outputs, strict=True)]
    order = [term.text + term.direction for term in terms] + [f"t.k{i} NULLS LAST" for i in range(len(above.keys))]
    ordered = f" ORDER BY {', '.join(order)}" if order else ""
    return Post(f"SELECT {', '.join([*names, 't.__row AS __row'])} FROM {source}{ordered}{limits}", outputs)


def _output(above: Above, name: str, node: exp.Expr, shown: edges.Shown | None) -> Output:
    bar = error_bar(above, node)
    if shown is None:
        return Output(name, bar, is_noisy(node))
    if bar is None and shown.edge is not Edge.REPORT:
        raise above.statement.refuse("DP_INTERVAL", "this has no error bar", shown.of, "DP_INTERVAL_LOW(n) of an aggregate n, or of a ratio of two")
    return Output(name, bar, edge=shown.edge)


def _source(above: Above, having: str | None, qualify: str | None) -> str:
    """The noisy table with HAVING, then the windows' columns, then QUALIFY."""
    kept = f" WHERE {having}" if having else ""
    cells = "".join(f", {text} AS p{i}" for i, text in enumerate(above.cells))
    inner = f"noisy AS t{kept}"
    if cells or above.windows:
        inner = f"(SELECT t.*{cells} FROM noisy AS t{kept}) AS t"
        kept = ""
    if above.windows:
        windows = "".join(f", {text} AS w{i}" for i, text in enumerate(above.windows))
        inner = f"(SELECT t.*{windows} FROM {inner}) AS t"
    if not qualify:
        return inner
    return f"{inner}{' AND' if kept else ' WHERE'} {qualify}"


def _distinct(above: Above, texts: Sequence[str], outputs: Sequence[Output], terms: Sequence[Term], source: str) -> str:
    """SELECT DISTINCT: ordered by its own columns only."""
    inner = ", ".join(f"{text} AS o{i}" for i, text in enumerate(texts))
    names = ", ".join(f"t.o{i} AS {quoted(output.name)}" for i, output in enumerate(outputs))
    found = []
    for term in terms:
        if term.output is None:
            message = "with SELECT DISTINCT, ORDER BY takes columns of SELECT only"
            raise above.statement.refuse("ORDER_BY_DISTINCT", message, term.node, "the expression in SELECT, too")
        found.append(f"t.o{term.output}{term.direction}")
    order = ", ".join(found + [f"t.o{i} NULLS LAST" for i in range(len(texts))])
    return f"SELECT {names} FROM (SELECT DISTINCT {inner} FROM {source}) AS t ORDER BY {order}"


def _terms(above: Above, order: exp.Order, items: Sequence[tuple[str, exp.Expr]], texts: Sequence[str]) -> list[Term]:
    """ORDER BY: ordinals, then aliases of SELECT, then expressions."""
    found = []
    for node in take(order, "expressions")[0]:
        this, desc, first = take(node, "this", "desc", "nulls_first")
        way = direction(desc, first)
        place = _ordinal(above, this, items) if isinstance(this, exp.Literal) else _alias(above, this, items)
        if isinstance(this, exp.Var):
            raise above.statement.refuse("ORDER_BY_ALL", "ORDER BY ALL is not supported", node, "ORDER BY with the columns' names")
        text = guarded(above.lift(this, Where.ORDER)) if place is None else texts[place]
        if text == edges.NOTHING:
            raise edges.misplaced(above.statement, this)
        if place is None and text in texts:
            place = texts.index(text)
        found.append(Term(place, text, way, this))
    return found


def _ordinal(above: Above, node: exp.Literal, items: Sequence[tuple[str, exp.Expr]]) -> int:
    text = node.name
    if node.is_string or not text.isdigit() or not 1 <= int(text[:9]) <= len(items):
        raise above.statement.refuse("ORDINAL", f"ORDER BY {text[:20]}: SELECT has {len(items)} columns", node, "a column by name")
    return int(text) - 1


def _alias(above: Above, node: exp.Expr, items: Sequence[tuple[str, exp.Expr]]) -> int | None:
    """The place of the output that a bare name names."""
    if not isinstance(node, exp.Column):
        return None
    wanted, table = column_name(node, above.statement.source)
    return None if table is not None else next((i for i, (name, _) in enumerate(items) if fold(name) == fold(wanted)), None)
