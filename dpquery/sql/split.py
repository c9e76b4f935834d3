"""The noise line: what the engine sums up below it, and above it one SELECT over the noisy table that cannot fail.

The table `noisy` has columns k0, k1, .. (keys), a0, a1, .. (aggregates) and `__row`. Windows read it through a subquery that holds their arguments;
each other expression stands inside TRY, which does not hold around windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from dpquery.plan.draft import Affine, Edge, Output, Post
from dpquery.sql import edges, indexed, nulls
from dpquery.sql.bars import ADDITIVE, error_bar, is_noisy
from dpquery.sql.fields import take
from dpquery.sql.lift import Lifter, Where, guarded
from dpquery.sql.names import column_name, fold
from dpquery.sql.public import quoted
from dpquery.sql.refuse import place
from dpquery.sql.subqueries import with_marks
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


def post(above: Lifter, parts: Parts, inner: bool = False) -> Post:
    """The statement over the table, and what its columns are; those of an inner SELECT are called c0, c1, .."""
    nodes = [node for _, node in parts.items]
    shown = [None if inner and edges.is_end(node) else edges.shown(above.statement, node) for node in nodes]
    lifted = [_item(above, node, one) for node, one in zip(nodes, shown, strict=True)]
    if inner and any(shown):
        message = "a report of an error bar is for the outermost SELECT"
        raise above.statement.refuse("DP_INTERVAL", message, next(node for node, one in zip(nodes, shown, strict=True) if one), "them there")
    having = None if parts.having is None else guarded(above.lift(parts.having, Where.HAVING))
    qualify = None if parts.qualify is None else guarded(above.lift(parts.qualify, Where.QUALIFY))
    texts = [edges.NOTHING if one is not None and one.edge is not Edge.REPORT else guarded(node) for node, one in zip(lifted, shown, strict=True)]
    terms = [] if parts.order is None else _terms(above, parts.order, parts.items, texts, lifted)
    if not inner:
        edges.check_places(above.statement, nodes, parts.distinct)
    outputs = tuple(
        _output(above, name, node, one, *nulls.missing(above, given, node))
        for (name, given), node, one in zip(parts.items, lifted, shown, strict=True)
    )
    above.types[:] = [above.typed(node) for node in lifted]
    above.unique = frozenset(range(len(outputs))) if parts.distinct else _unique(above.apart, lifted)
    called = [f"c{i}" if inner else quoted(output.name) for i, output in enumerate(outputs)]
    source = _source(above, having, qualify)
    limits = f"{'' if parts.limit is None else f' LIMIT {parts.limit}'}{'' if parts.offset is None else f' OFFSET {parts.offset}'}"
    written = [*zip(texts, nodes, strict=True), (having, parts.having), (qualify, parts.qualify), *((term.text, term.node) for term in terms)]
    places = tuple((text, place(node)) for text, node in written if text is not None and node is not None)
    if parts.distinct:
        return Post(_distinct(above, texts, called, terms, source) + limits, outputs, rows=(), places=places)
    rows = [*above.rows, *((alias, name, alias) for one in above.scalars for alias, name in one.rows)]
    names = [f"{text} AS {name}" for text, name in zip(texts, called, strict=True)]
    names += [f"t.{column} AS {column if alias == 't' else alias}" for alias, _, column in rows]
    order = [term.text + term.direction for term in terms] + [f"t.{name} NULLS LAST" for name in above.ties]
    ordered = f" ORDER BY {', '.join(order)}" if order and not (inner and not limits) else ""
    return Post(f"SELECT {', '.join(names)} FROM {source}{ordered}{limits}", outputs, tuple((alias, name) for alias, name, _ in rows), places)


def _item(above: Lifter, node: exp.Expr, shown: edges.Shown | None) -> exp.Expr:
    """An output; an end of an error bar is one of a single value."""
    if shown is None:
        return above.lift(node, Where.SELECT, lists=True)
    found = above.lift(shown.of, Where.ORDER, lists=True)
    if shown.edge is not Edge.REPORT and above.is_list(found):
        message = "a list has an error bar for each of its values"
        raise above.statement.refuse("DP_INTERVAL", message, shown.of, "DP_INTERVAL_LOW(q[1]), of one of its values")
    return found


def _unique(apart: Sequence[str] | None, lifted: Sequence[exp.Expr]) -> frozenset[int] | None:
    """The places of outputs that tell the rows apart: where they are all shown, columns of the table that do."""
    names = [node.name if isinstance(node, exp.Column) else None for node in lifted]
    return None if apart is None or not set(apart) <= set(names) else frozenset(names.index(name) for name in apart)


def _output(above: Lifter, name: str, node: exp.Expr, shown: edges.Shown | None, missing: str, bare: bool) -> Output:
    bar = error_bar(above, node)
    if shown is None:
        return Output(name, bar, is_noisy(above, node), chosen=above.chosen(node), missing=missing, bare=bare)
    if bar is None and shown.edge is not Edge.REPORT:
        raise above.statement.refuse("DP_INTERVAL", "this has no error bar", shown.of, "DP_INTERVAL_LOW(n) of an aggregate n, or of a ratio of two")
    return Output(name, bar, edge=shown.edge)


def _source(above: Lifter, having: str | None, qualify: str | None) -> str:
    """The table with the values of subqueries, then HAVING, then the windows' columns, then QUALIFY."""
    kept = f" WHERE {having}" if having else ""
    cells = "".join(f", {text} AS p{i}" for i, text in enumerate(above.cells))
    inner = f"{with_scalars(above, above.table)} AS t{kept}"
    if cells or above.windows:
        inner = f"(SELECT t.*{cells} FROM {inner}) AS t"
        kept = ""
    if above.windows:
        windows = "".join(f", {text} AS w{i}" for i, text in enumerate(above.windows))
        inner = f"(SELECT t.*{windows} FROM {inner}) AS t"
    if not qualify:
        return inner
    return f"{inner}{' AND' if kept else ' WHERE'} {qualify}"


def with_scalars(above: Lifter, table: str) -> str:
    """The table, each row with the values of subqueries y0, y1, .. and their row numbers, and with those that read the row."""
    if not above.scalars:
        return with_marks(above, table)
    items = [f", x{i}.c0 AS y{i}" + "".join(f", x{i}.{alias}" for alias, _ in one.rows) for i, one in enumerate(above.scalars)]
    joins = [f" LEFT JOIN ({one.sql}) AS x{i} ON TRUE" for i, one in enumerate(above.scalars)]
    return with_marks(above, f"(SELECT t.*{''.join(items)} FROM {table} AS t{''.join(joins)})")


def _distinct(above: Lifter, texts: Sequence[str], called: Sequence[str], terms: Sequence[Term], source: str) -> str:
    """SELECT DISTINCT: ordered by its own columns only."""
    inner = ", ".join(f"{text} AS o{i}" for i, text in enumerate(texts))
    names = ", ".join(f"t.o{i} AS {name}" for i, name in enumerate(called))
    found = []
    for term in terms:
        if term.output is None:
            message = "with SELECT DISTINCT, ORDER BY takes columns of SELECT only"
            raise above.statement.refuse("ORDER_BY_DISTINCT", message, term.node, "the expression in SELECT, too")
        found.append(f"t.o{term.output}{term.direction}")
    order = ", ".join(found + [f"t.o{i} NULLS LAST" for i in range(len(texts))])
    return f"SELECT {names} FROM (SELECT DISTINCT {inner} FROM {source}) AS t ORDER BY {order}"


def _terms(above: Lifter, order: exp.Order, items: Sequence[tuple[str, exp.Expr]], texts: Sequence[str], lifted: Sequence[exp.Expr]) -> list[Term]:
    """ORDER BY: ordinals, then aliases of SELECT, then expressions."""
    found = []
    for node in take(order, "expressions")[0]:
        this, desc, first = take(node, "this", "desc", "nulls_first")
        way = direction(desc, first)
        if isinstance(this, exp.Var):
            found += _everything(above, order, this, items, texts, lifted, way)
            continue
        place = _ordinal(above, this, items) if isinstance(this, exp.Literal) else _alias(above, this, items)
        if place is not None and above.is_list(lifted[place]):
            raise indexed.misplaced(above.statement, this)
        end = edges.shown(above.statement, this if place is None else items[place][1])
        if end is not None and end.edge is not Edge.REPORT:
            place, text = None, _ended(above, end, this)
        else:
            text = guarded(above.lift(this, Where.ORDER)) if place is None else texts[place]
        if text == edges.NOTHING:
            raise edges.misplaced(above.statement, this)
        if place is None and text in texts:
            place = texts.index(text)
        found.append(Term(place, text, way, this))
    return found


def _ended(above: Lifter, end: edges.Shown, node: exp.Expr) -> str:
    """What orders rows as the ends of these error bars do: the value itself, where all of its bars are of one width."""
    of = above.lift(end.of, Where.ORDER)
    bar = error_bar(above, of)
    if not isinstance(bar, Affine) or bar.place is not None or above.card(bar.aggregate) not in ADDITIVE:
        message = "rows are ordered by the end of an error bar where it is as wide in every row, as that of a count or sum"
        raise above.statement.refuse("DP_INTERVAL", message, node, "ORDER BY n itself, or the end of the error bar of COUNT or SUM")
    return guarded(of)


def _everything(
    above: Lifter,
    order: exp.Order,
    node: exp.Var,
    items: Sequence[tuple[str, exp.Expr]],
    texts: Sequence[str],
    lifted: Sequence[exp.Expr],
    way: str,
) -> list[Term]:
    """ORDER BY ALL: the outputs from left to right, but those that only show an error bar."""
    if node.name.upper() != "ALL" or len(order.expressions) != 1:
        raise above.statement.refuse("ORDER_BY_ALL", "ORDER BY ALL beside other columns is not supported", node, "ORDER BY with the columns' names")
    if any(map(above.is_list, lifted)):
        raise indexed.misplaced(above.statement, node)
    return [Term(i, text, way, item) for i, (text, (_, item)) in enumerate(zip(texts, items, strict=True)) if text != edges.NOTHING]


def _ordinal(above: Lifter, node: exp.Literal, items: Sequence[tuple[str, exp.Expr]]) -> int:
    text = node.name
    if node.is_string or not text.isdigit() or not 1 <= int(text[:9]) <= len(items):
        raise above.statement.refuse("ORDINAL", f"ORDER BY {text[:20]}: SELECT has {len(items)} columns", node, "a column by name")
    return int(text) - 1


def _alias(above: Lifter, node: exp.Expr, items: Sequence[tuple[str, exp.Expr]]) -> int | None:
    """The place of the output that a bare name names."""
    if not isinstance(node, exp.Column):
        return None
    wanted, table = column_name(node, above.statement.source)
    return None if table is not None else next((i for i, (name, _) in enumerate(items) if fold(name) == fold(wanted)), None)
