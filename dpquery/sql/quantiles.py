"""Quantiles as each dialect writes them: which values, which fraction, one of the values or between two."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import Token, TokenType, exp

from dpquery.sql.fields import take
from dpquery.sql.refuse import SEARCHED

if TYPE_CHECKING:
    from dpquery.sql.names import Statement

QUANTILES = (exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.ApproxQuantile)
LONGEST = 18  # digits of a fraction
EXACT = "fraction"  # the mark of a literal that stands for a fraction of whole numbers


class Asked(NamedTuple):
    """The values, the fraction of them that lie below, and whether the quantile is one of them."""

    of: exp.Expr
    fraction: Fraction
    discrete: bool


NAMES = ("quantile_cont", "quantile_disc", "quantile", "approx_quantile", "percentile", "percentile_cont", "percentile_disc")


def located(tree: exp.Expr, tokens: Sequence[Token]) -> exp.Expr:
    """The tree, where quantiles whose place the parser did not note have that of their name, the last one before what they are of.

    APPROX_QUANTILES(x, n)[OFFSET(k)] is read as the quantile k / n.
    """
    for bracket in list(tree.find_all(exp.Bracket)):
        if isinstance(bracket.this, exp.ApproxQuantiles):
            bracket.replace(_boundary(bracket) or bracket.this)
    for node in tree.find_all(*QUANTILES):
        if "start" not in node.meta:
            first = min((below.meta["start"] for below in islice(node.walk(), SEARCHED) if "start" in below.meta), default=0)
            pairs = [(a, b) for a, b in pairwise(tokens) if a.start < first and a.text.lower() in NAMES and b.token_type is TokenType.L_PAREN]
            if pairs:
                token = pairs[-1][0]
                node.meta.update(line=token.line, col=token.col, start=token.start, end=token.end)
    return tree


def _boundary(bracket: exp.Bracket) -> exp.Expr | None:
    """One of the n + 1 boundaries between n quantiles; None where it is no literal place of them: the array, which is refused, then stands for it."""
    array, places, shift, _, _ = take(bracket, "this", "expressions", "offset", "safe", "returns_list_for_maps")
    of, number = take(array, "this", "expression")
    digits = [one.name if isinstance(one, exp.Literal) and not one.is_string else "" for one in (number, *places)]
    if len(digits) != 2 or shift is None or not all(one.isdigit() and one.isascii() and len(one) < LONGEST for one in digits):
        return None
    n, k = int(digits[0]), int(digits[1]) - int(shift)
    if not 0 <= k <= n or n == 0:
        return None
    at = exp.Literal.number(f"{k / n:.6g}")
    at.meta[EXACT] = Fraction(k, n)
    found = exp.PercentileCont(this=of, expression=at)
    found.meta.update(array.meta)
    return found


def asked(statement: Statement, node: exp.Expr) -> Asked | None:
    """What the node asks for, WITHIN GROUP included; None where it is no quantile."""
    match node:
        case exp.WithinGroup():
            return _ordered(statement, node)
        case exp.Median():
            return Asked(take(node, "this")[0], Fraction(1, 2), discrete=False)
        case exp.PercentileCont() | exp.PercentileDisc():
            of, at = take(node, "this", "expression")
            if at is None:
                raise _form(statement, node)
            return Asked(of, fraction(statement, node, at), isinstance(node, exp.PercentileDisc))
        case exp.Quantile():  # the PERCENTILE of other dialects lies between two values
            of, at = take(node, "this", "quantile")
            return Asked(of, fraction(statement, node, at), statement.spelled(node) == "QUANTILE")
        case exp.ApproxQuantile():
            of, at, *_ = take(node, "this", "quantile", "accuracy", "weight", "error_tolerance")
            if any(node.args.get(name) is not None for name in ("weight", "error_tolerance")):
                raise _form(statement, node)
            return Asked(of, fraction(statement, node, at), discrete=False)
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
    found, discrete = fraction(statement, inner, at), isinstance(inner, exp.PercentileDisc)
    if down and discrete:
        raise _form(statement, node)
    return Asked(of, 1 - found if down else found, discrete)


def fraction(statement: Statement, node: exp.Expr, at: exp.Expr | None) -> Fraction:
    """The literal fraction of a quantile."""
    if at is not None and EXACT in at.meta:
        exact: Fraction = at.meta[EXACT]
        return exact
    text = at.name if isinstance(at, exp.Literal) and not at.is_string else ""
    digits = text.replace(".", "", 1)
    if not digits.isdigit() or not digits.isascii() or len(digits) > LONGEST or not 0 <= Fraction(text) <= 1:
        several = isinstance(at, exp.Array)
        instead = "one call for each of them: those of the same values are paid for once" if several else "QUANTILE_CONT(x, 0.5)"
        raise statement.refuse("QUANTILE", "a quantile takes a literal number from 0 to 1", node, instead)
    return Fraction(text)


def _form(statement: Statement, node: exp.Expr) -> Exception:
    return statement.refuse("QUANTILE", "this form of a quantile is not supported", node, "QUANTILE_CONT(x, 0.5)")
