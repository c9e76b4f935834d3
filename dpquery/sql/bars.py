"""Error bars of outputs: how each follows from those of the aggregates it is computed from.

One aggregate moved and stretched keeps its own bar, a ratio of two has Fieller's; all other arithmetic is left to interval arithmetic over these.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import islice

from sqlglot import exp

from dpquery.plan.draft import Affine, Combined, Constant, Either, Operation, Ratio
from dpquery.sql.fields import take
from dpquery.sql.indexed import extracted
from dpquery.sql.lift import Lifter
from dpquery.sql.sides import Bar
from dpquery.values.types import DATE, TIMESTAMP

DIGITS = 400  # before and after the point of a factor: beyond them a double is infinite or 0
MOST_NODES = 200  # of an output that interval arithmetic looks at
ADDITIVE = ("count", "units", "distinct", "total")  # cards whose ratio has an error bar
INTEGERS = ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "INT128")
ARITHMETIC: dict[type[exp.Expr], Operation] = {
    exp.Add: Operation.ADD,
    exp.Sub: Operation.SUBTRACT,
    exp.Mul: Operation.MULTIPLY,
    exp.Greatest: Operation.GREATEST,
    exp.Least: Operation.LEAST,
}
OF_ONE: dict[type[exp.Expr], Operation] = {
    exp.Abs: Operation.ABS,
    exp.Sqrt: Operation.SQRT,
    exp.Floor: Operation.FLOOR,
    exp.Ceil: Operation.CEIL,
    exp.Round: Operation.ROUND,
}


def error_bar(above: Lifter, node: exp.Expr) -> Affine | Ratio | Combined | Either | None:
    """How an output's error bar follows from those of the aggregates; None where it has none."""
    if _is_moment(above, node):
        return None
    found = _affine(above, node) or _ratio(above, node)
    if found is None and not any(islice(node.walk(), MOST_NODES, None)):
        combined = _combined(above, node)
        return None if isinstance(combined, Constant) else combined
    return found


def _is_moment(above: Lifter, node: exp.Expr) -> bool:
    """Whether an output is computed from a date or timestamp that is noisy, and shows more than that itself: no number is added to it."""
    if isinstance(node, exp.Column | exp.Paren | exp.Coalesce) or extracted(node) is not None:
        return False
    kinds = (above.typed(column) for column in node.find_all(exp.Column) if above.is_noisy(column))
    return any(kind is not None and kind.element in (DATE, TIMESTAMP) for kind in kinds)


def is_noisy(above: Lifter, node: exp.Expr) -> bool:
    """Whether an output is computed from aggregates or windows: from columns of the noisy table that are no keys."""
    return any(above.is_noisy(column) for column in node.find_all(exp.Column))


def _combined(above: Lifter, node: exp.Expr) -> Bar:
    """The output of interval arithmetic, as far as it reaches; None where a part has no error bar."""
    simple = _affine(above, node) or _ratio(above, node) or _literal(node)
    if simple is not None:
        return simple
    match node:
        case exp.Column():
            return above.bar(node)
        case exp.Paren():
            return _combined(above, node.this)
        case exp.Coalesce():
            return _combined(above, node.this)  # where it is NULL it has no bar, nor then what stands for it
        case exp.Neg():
            return _of(Operation.SUBTRACT, Constant(Fraction(0)), _combined(above, node.this))
        case exp.Cast() | exp.TryCast():
            return _cast(above, node)
        case exp.Div() if not take(node, "this", "expression", "typed", "safe")[2]:
            return _of(Operation.DIVIDE, _combined(above, node.left), _combined(above, _nonzero(node.right)))
        case exp.Add() | exp.Sub() | exp.Mul():
            return _of(ARITHMETIC[type(node)], _combined(above, node.left), _combined(above, node.right))
        case exp.Greatest() | exp.Least():
            first, others, _ = take(node, "this", "expressions", "ignore_nulls")
            return _of(ARITHMETIC[type(node)], *(_combined(above, part) for part in (first, *others)))
        case exp.Round():
            this, decimals = take(node, "this", "decimals")
            return _rounded(_combined(above, this), Fraction(0) if decimals is None else _constant(decimals))
        case exp.Abs() | exp.Sqrt() | exp.Floor() | exp.Ceil():
            return _of(OF_ONE[type(node)], _combined(above, node.this))
        case _:
            return None


def _of(operation: Operation, *parts: Bar) -> Combined | None:
    known = tuple(part for part in parts if part is not None)
    return Combined(operation, known) if len(known) == len(parts) else None


def _rounded(part: Bar, digits: Fraction | None) -> Combined | None:
    if part is None or digits is None or digits.denominator != 1 or abs(digits) > DIGITS:
        return None
    return Combined(Operation.ROUND, (part,), int(digits))


def _literal(node: exp.Expr) -> Constant | None:
    value = _constant(node)
    return None if value is None else Constant(value)


def _cast(above: Lifter, node: exp.Expr) -> Bar:
    """A cast that keeps the value, or rounds it to the digits of its type."""
    this, to, _ = take(node, "this", "to", "safe")
    name = str(getattr(to.this, "name", ""))
    if name == "DOUBLE":
        return _combined(above, this)
    if name in INTEGERS:
        return _rounded(_combined(above, this), Fraction(0))
    if name != "DECIMAL":
        return None
    scale = to.expressions[1].this if len(to.expressions) > 1 else None
    return _rounded(_combined(above, this), Fraction(3) if not to.expressions else Fraction(0) if scale is None else _constant(scale))


def _affine(above: Lifter, node: exp.Expr) -> Affine | None:
    """factor * aggregate + offset."""
    match node:
        case exp.Column():
            found = above.bar(node)
            return found if isinstance(found, Affine) else None
        case exp.Paren():
            return _affine(above, node.this)
        case exp.Anonymous() if (value := extracted(node)) is not None:
            found = above.bar(value[0])
            return replace(found, place=value[1]) if isinstance(found, Affine) else None
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


def _arithmetic(above: Lifter, node: exp.Binary) -> Affine | None:
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
    return replace(found, factor=found.factor * factor, offset=found.offset * factor)


def _long(factor: Fraction) -> bool:
    """Whether a factor has grown beyond any double's reach, so that no error bar is worth its digits."""
    return factor.numerator.bit_length() + factor.denominator.bit_length() > 8 * DIGITS


def _moved(found: Affine | None, by: Fraction | None) -> Affine | None:
    return None if found is None or by is None else replace(found, offset=found.offset + by)


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


def _ratio(above: Lifter, node: exp.Expr) -> Ratio | None:
    """factor * top / bottom of two additive aggregates."""
    match node:
        case exp.Column():
            found = above.bar(node)
            return found if isinstance(found, Ratio) else None
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


def _quotient(above: Lifter, top: Affine | None, bottom: Affine | None) -> Ratio | None:
    if top is None or bottom is None or top.offset or bottom.offset or top.aggregate == bottom.aggregate:
        return None
    if above.card(top.aggregate) not in ADDITIVE or above.card(bottom.aggregate) not in ADDITIVE:
        return None
    return Ratio(top.aggregate, bottom.aggregate, top.factor / bottom.factor)


def _times(found: Ratio | None, factor: Fraction | None) -> Ratio | None:
    if found is None or not factor or _long(found.factor):
        return None
    return Ratio(found.top, found.bottom, found.factor * factor)
