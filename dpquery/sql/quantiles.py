"""Quantiles as each dialect writes them: which values, which fraction, one of the values or between two."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import Token, TokenType, exp

from dpquery.aggregates.byrank import BY_RANK
from dpquery.plan.draft import AggregateAsk
from dpquery.sql.fields import argument, take
from dpquery.sql.indexed import PLACE
from dpquery.sql.refuse import SEARCHED

if TYPE_CHECKING:
    from dpquery.sql.names import Statement

QUANTILES = (exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.ApproxQuantile, exp.ApproxQuantiles)
LONGEST = 18  # digits of a fraction
FINEST = 10**18  # the largest denominator of a fraction: as many as a double's digits need, and no more
MOST = 101  # quantiles of one list
NUMBER = re.compile(r"(?=.{1,24}\Z)(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?", re.ASCII)
EXACT = "fraction"  # the mark of a literal that stands for a fraction of whole numbers


class Asked(NamedTuple):
    """The values, the fractions of them that lie below, whether they are asked for as a list, whether each quantile is one of the values, and of two
    the greater. An `approximate` one of dates is one of them."""

    of: exp.Expr
    fractions: tuple[Fraction, ...]
    listed: bool
    discrete: bool
    upper: bool = False
    approximate: bool = False


NAMES = (
    "quantile_cont",
    "quantile_disc",
    "quantile",
    "approx_quantile",
    "approx_quantiles",
    "approx_percentile",
    "percentile",
    "percentile_approx",
    "percentile_cont",
    "percentile_disc",
)


def by_rank(ask: AggregateAsk) -> AggregateAsk:
    """The ask, a quantile's with its bin chosen by rank instead of read off noisy counts."""
    return replace(ask, card=BY_RANK) if ask.card == "quantile" else ask


def located(tree: exp.Expr, tokens: Sequence[Token]) -> exp.Expr:
    """The tree, where quantiles whose place the parser did not note have that of their name, the last one before what they are of.

    APPROX_QUANTILES(x, n)[OFFSET(k)] is read as the quantile k / n.
    """
    for bracket in list(tree.find_all(exp.Bracket)):
        found = _boundary(bracket) if isinstance(bracket.this, exp.ApproxQuantiles) else None
        if found is not None:
            bracket.replace(found)
    for node in tree.find_all(*QUANTILES):
        if "start" not in node.meta:
            first = min((below.meta["start"] for below in islice(node.walk(), SEARCHED) if "start" in below.meta), default=0)
            pairs = [(a, b) for a, b in pairwise(tokens) if a.start < first and a.text.lower() in NAMES and b.token_type is TokenType.L_PAREN]
            if pairs:
                token = pairs[-1][0]
                node.meta.update(line=token.line, col=token.col, start=token.start, end=token.end)
    return tree


def _boundary(bracket: exp.Bracket) -> exp.Expr | None:
    """One of the n + 1 boundaries between n quantiles; None where it is no literal place of them."""
    array, k = bracket.this, bracket.meta.get(PLACE)
    of, number = take(array, "this", "expression")
    n = _number(number)
    if k is None or not 0 <= k <= n or n == 0:
        return None
    at = exp.Literal.number(f"{k / n:.6g}")
    at.meta[EXACT] = Fraction(k, n)
    found = exp.PercentileCont(this=of, expression=at)
    found.meta.update(array.meta)
    return found


def _number(node: exp.Expr | None) -> int:
    """The literal number of quantiles; 0 where it is none."""
    text = node.name if isinstance(node, exp.Literal) and not node.is_string else ""
    return int(text) if text.isdigit() and text.isascii() and len(text) < LONGEST else 0


def asked(statement: Statement, node: exp.Expr) -> Asked | None:
    """What the node asks for, WITHIN GROUP included; None where it is no quantile."""
    match node:
        case exp.WithinGroup():
            return _ordered(statement, node)
        case exp.Median():
            return Asked(take(node, "this")[0], (Fraction(1, 2),), listed=False, discrete=False)
        case exp.PercentileCont() | exp.PercentileDisc():
            of, at = take(node, "this", "expression")
            if at is None:
                raise _form(statement, node)
            approximate = at.meta.get(EXACT) is not None
            return Asked(of, *_fractions(statement, node, at), isinstance(node, exp.PercentileDisc), approximate=approximate)
        case exp.ApproxQuantile():  # the parser takes it for a Quantile, too
            of, at, *_ = take(node, "this", "quantile", "accuracy", "weight", "error_tolerance")
            if any(node.args.get(name) is not None for name in ("weight", "error_tolerance")):
                raise _form(statement, node)
            return Asked(of, *_fractions(statement, node, at), discrete=False, approximate=True)
        case exp.Quantile():  # the PERCENTILE of other dialects lies between two values
            of, at = take(node, "this", "quantile")
            return Asked(of, *_fractions(statement, node, at), statement.spelled(node) == "QUANTILE")
        case exp.ApproxQuantiles():
            of, number = take(node, "this", "expression")
            distinct = isinstance(of, exp.Distinct)  # which holds the number too, and is refused
            return Asked(of, () if distinct else _boundaries(statement, node, _number(number)), listed=True, discrete=False, approximate=True)
        case _:
            return None


def _ordered(statement: Statement, node: exp.WithinGroup) -> Asked | None:
    """PERCENTILE_CONT(f) WITHIN GROUP (ORDER BY x [DESC])."""
    inner, order = take(node, "this", "expression")
    if not isinstance(inner, exp.PercentileCont | exp.PercentileDisc):
        return None
    terms: list[exp.Expr] = take(order, "expressions")[0] if isinstance(order, exp.Order) else []
    at, missing = take(inner, "this", "expression")
    if missing is not None or len(terms) != 1:
        raise _form(statement, node)
    of, down, _ = take(terms[0], "this", "desc", "nulls_first")
    found, listed = _fractions(statement, inner, at)
    discrete = isinstance(inner, exp.PercentileDisc)
    return Asked(of, tuple(1 - one for one in found) if down else found, listed, discrete, upper=discrete and bool(down))


def _boundaries(statement: Statement, node: exp.Expr, number: int) -> tuple[Fraction, ...]:
    """The fractions of the n + 1 boundaries between n quantiles, the least and the greatest value included."""
    if not 1 <= number < MOST:
        message = f"APPROX_QUANTILES takes a literal number of quantiles, from 1 to {MOST - 1} as a list"
        raise statement.refuse("QUANTILE", message, node, "APPROX_QUANTILES(x, 4), or APPROX_QUANTILES(x, 1000)[OFFSET(999)] for one of them")
    return tuple(Fraction(k, number) for k in range(number + 1))


def _fractions(statement: Statement, node: exp.Expr, at: exp.Expr | None) -> tuple[tuple[Fraction, ...], bool]:
    """The literal fraction of a quantile, or those of a list; and whether they are a list."""
    if not isinstance(at, exp.Array):
        return (_fraction(statement, node, at),), False
    (items,) = take(at, "expressions")
    if not 1 <= len(items) <= MOST:
        raise statement.refuse("QUANTILE", f"a list of quantiles has from 1 to {MOST}", node, "QUANTILE_CONT(x, [0.25, 0.5, 0.75])")
    return tuple(_fraction(statement, node, one) for one in items), True


def _fraction(statement: Statement, node: exp.Expr, at: exp.Expr | None) -> Fraction:
    """The literal fraction of a quantile."""
    if at is not None and EXACT in at.meta:
        exact: Fraction = at.meta[EXACT]
        return exact
    found = _constant(at)
    if found is None or not 0 <= found <= 1:
        message = "a quantile takes a literal number from 0 to 1, or a list of such numbers"
        raise statement.refuse("QUANTILE", message, node, "QUANTILE_CONT(x, 0.5), QUANTILE_CONT(x, [0.25, 0.75])")
    if found.denominator > FINEST:
        message = "the fraction of a quantile is finer than any data: at most eighteen decimal places are read"
        raise statement.refuse("QUANTILE", message, node, "QUANTILE_CONT(x, 0.5)")
    return found


def _constant(at: exp.Expr | None) -> Fraction | None:
    """The number that a literal is, as a double too (0.5::DOUBLE, 5e-1), or the quotient of two: 1 / 3."""
    match at:
        case exp.Literal() if not at.is_string and NUMBER.fullmatch(at.name):
            return Fraction(at.name)
        case exp.Paren():
            return _constant(at.this)
        case exp.Cast() if str(getattr(at.to.this, "name", "")) == "DOUBLE":
            return _constant(at.this)
        case exp.Div():
            top, bottom = _constant(at.this), _constant(at.expression)
            whole = top is not None and bottom is not None and top.denominator == bottom.denominator == 1
            return None if top is None or not bottom or (whole and argument(at, "typed")) else top / bottom
        case _:
            return None


def _form(statement: Statement, node: exp.Expr) -> Exception:
    return statement.refuse("QUANTILE", "this form of a quantile is not supported", node, "QUANTILE_CONT(x, 0.5)")
