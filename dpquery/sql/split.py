"""The noise line: what the engine sums up below it, and above it one SELECT over the noisy table that cannot fail.

The table `noisy` has columns k0, k1, .. (keys), a0, a1, .. (aggregates) and `__row`. Windows read it through a subquery that holds their arguments;
each other expression stands inside TRY, which does not hold around windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from dpquery.plan.draft import Affine, Output, Post, Ratio
from dpquery.sql.above import Above, Where, guarded
from dpquery.sql.fields import take
from dpquery.sql.names import column_name, fold
from dpquery.sql.public import quoted
from dpquery.sql.windows import direction

DIGITS = 400  # before and after the point of a factor: beyond them a double is infinite or 0
ADDITIVE = ("count", "units", "total")  # cards whose ratio has an error bar


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
    lifted = [above.lift(node, Where.SELECT) for _, node in parts.items]
    having = None if parts.having is None else guarded(above.lift(parts.having, Where.HAVING))
    qualify = None if parts.qualify is None else guarded(above.lift(parts.qualify, Where.QUALIFY))
    texts = [guarded(node) for node in lifted]
    terms = [] if parts.order is None else _terms(above, parts.order, parts.items, texts)
    outputs = tuple(Output(name, _interval(above, node)) for (name, _), node in zip(parts.items, lifted, strict=True))
    source = _source(above, having, qualify)
    limits = f"{'' if parts.limit is None else f' LIMIT {parts.limit}'}{'' if parts.offset is None else f' OFFSET {parts.offset}'}"
    if parts.distinct:
        return Post(_distinct(above, texts, outputs, terms, source) + limits, outputs, rowed=False)
    names = [f"{text} AS {quoted(output.name)}" for text, output in zip(texts, outputs, strict=True)]
    order = [term.text + term.direction for term in terms] + [f"t.k{i} NULLS LAST" for i in range(len(above.keys))]
    ordered = f" ORDER BY {', '.join(order)}" if order else ""
    return Post(f"SELECT {', '.join([*names, 't.__row AS __row'])} FROM {source}{ordered}{limits}", outputs)


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


# ---- error bars ----------------------------------------------------------------------------------------------------------------------


def _interval(above: Above, node: exp.Expr) -> Affine | Ratio | None:
    """How an output's error bar follows from those of the aggregates; None where it has none."""
    affine = _affine(above, node)
    if affine is not None:
        return affine
    return _ratio(above, node)


def _affine(above: Above, node: exp.Expr) -> Affine | None:
    """factor * aggregate + offset."""
    match node:
        case exp.Column():
            return Affine(node.name) if node.name.startswith("a") else None
        case exp.Paren():
            return _affine(above, node.this)
        case exp.Neg():
            return _scaled(_affine(above, node.this), Fraction(-1))
        case exp.Cast() | exp.TryCast():
            return _affine(above, node.this) if _widens(node) else None
        case exp.Coalesce():
            return _affine(above, node.this)  # a released aggregate is never NULL
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return _arithmetic(above, node)
        case _:
            return None


def _arithmetic(above: Above, node: exp.Binary) -> Affine | None:
    left, right = _affine(above, node.left), _affine(above, node.right)
    a, b = _constant(node.left), _constant(node.right)
    match node:
        case exp.Add():
            return _moved(left, b) or _moved(right, a)
        case exp.Sub():
            return _moved(left, None if b is None else -b) or _moved(_scaled(right, Fraction(-1)), a)
        case exp.Mul():
            return _scaled(left, b) or _scaled(right, a)
        case exp.Div() if b and not take(node, "this", "expression", "typed", "safe")[2]:
            return _scaled(left, 1 / b)
        case _:
            return None


def _scaled(found: Affine | None, factor: Fraction | None) -> Affine | None:
    if found is None or not factor or _long(found.factor):
        return None
    return Affine(found.aggregate, found.factor * factor, found.offset * factor)


def _long(factor: Fraction) -> bool:
    """Whether a factor has grown beyond any double's reach, so that no error bar is worth its digits."""
    return factor.numerator.bit_length() + factor.denominator.bit_length() > 8 * DIGITS


def _moved(found: Affine | None, by: Fraction | None) -> Affine | None:
    return None if found is None or by is None else Affine(found.aggregate, found.factor, found.offset + by)


def _widens(node: exp.Expr) -> bool:
    """Whether a cast of an aggregate keeps its value: to DOUBLE."""
    to = take(node, "this", "to", "safe")[1]
    return str(getattr(to.this, "name", "")) == "DOUBLE"


def _constant(node: exp.Expr) -> Fraction | None:
    """The number that a literal spells."""
    match node:
        case exp.Paren():
            return _constant(node.this)
        case exp.Neg():
            inner = _constant(node.this)
            return None if inner is None else -inner
        case exp.Literal() if not node.is_string and len(node.name) <= 40:
            return _number(node.name)
        case _:
            return None


def _number(text: str) -> Fraction | None:
    """The exact number; None where its exponent lies beyond any double's, which would only be written out at length."""
    try:
        number = Decimal(text)
    except ArithmeticError:
        return None
    return Fraction(number) if number.is_finite() and (not number or abs(number.adjusted()) <= DIGITS) else None


def _ratio(above: Above, node: exp.Expr) -> Ratio | None:
    """factor * top / bottom of two additive aggregates."""
    match node:
        case exp.Paren():
            return _ratio(above, node.this)
        case exp.Mul():
            left, right = _ratio(above, node.left), _ratio(above, node.right)
            return _times(left, _constant(node.right)) or _times(right, _constant(node.left))
        case exp.Div() if not take(node, "this", "expression", "typed", "safe")[2]:
            over = _constant(node.right)
            if over:
                return _times(_ratio(above, node.left), 1 / over)
            return _quotient(above, _affine(above, node.left), _affine(above, _nonzero(node.right)))
        case _:
            return None


def _nonzero(node: exp.Expr) -> exp.Expr:
    """The aggregate inside NULLIF(aggregate, 0)."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Nullif):
        return node
    this, other = take(node, "this", "expression")
    return this if isinstance(this, exp.Expr) and _constant(other) == 0 else node


def _quotient(above: Above, top: Affine | None, bottom: Affine | None) -> Ratio | None:
    if top is None or bottom is None or top.offset or bottom.offset or top.aggregate == bottom.aggregate:
        return None
    cards = {ask.name: ask.card for ask in above.asks}
    if cards[top.aggregate] not in ADDITIVE or cards[bottom.aggregate] not in ADDITIVE:
        return None
    return Ratio(top.aggregate, bottom.aggregate, top.factor / bottom.factor)


def _times(found: Ratio | None, factor: Fraction | None) -> Ratio | None:
    if found is None or not factor or _long(found.factor):
        return None
    return Ratio(found.top, found.bottom, found.factor * factor)
