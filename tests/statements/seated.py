"""Conditions on a subquery's rows, values of public tables and of a unit's own rows, within expressions of rows: in keys, FILTER, CASE, under OR."""

from __future__ import annotations

from expressions import NUMERIC, Scope, condition, number
from grammar import Expr, Grammar, both
from relations import equal, in_, outer, pair_of, public, query_of, relation, tie

from dpquery.values.types import BOOLEAN, INTEGER, Kind

AROUND = ("{0}", "{0}", "NOT {0}", "({0}) IS NULL", "coalesce({0}, TRUE)", "({0}) OR {1}", "{1} AND NOT ({0})", "({0}) = {1}")


def tested(g: Grammar, scope: Scope, depth: int) -> Expr:
    """A condition of a row; one in six looks at a subquery."""
    if not g.chance(0.17):
        return condition(g, scope, depth)
    made = g.random.choice([_private, _private, _public, _public, _ranked, _ranked_own, _valued, _looked_up, _own_value, _rows])(g, scope)
    if made is None:
        return condition(g, scope, depth)
    return both(g.random.choice(AROUND), BOOLEAN, made, condition(g, scope, 0).whole)


def _private(g: Grammar, scope: Scope) -> Expr | None:
    """[NOT] EXISTS and [NOT] IN of rows of the same unit, on equal values alone."""
    cols, right = outer(scope), relation(g, g.random.choice([0, 0, 1]))
    pair, like = tie(g, cols, right), pair_of(g, cols, right)
    if pair is None or like is None:
        return None
    negated = g.chance(0.4)
    more = [condition(g, right.cols if g.chance(0.7) else cols, 0)] if g.chance(0.4) else []
    if g.chance(0.4):
        return both(f"{'NOT ' if negated else ''}EXISTS {{0}}", BOOLEAN, query_of(g, right, None, [equal(g, pair), *more]))
    if pair[0].firm and pair[1].firm and g.chance(0.4):
        return in_(g, pair[0], negated, query_of(g, right, g.read(pair[1]), more))
    return in_(g, like[0], negated, query_of(g, right, g.read(like[1]), [equal(g, pair), *more]))


def _public(g: Grammar, scope: Scope) -> Expr | None:
    """The same of public rows, tied to the row or not."""
    cols, right = outer(scope), public(g)
    pair, negated = pair_of(g, cols, right), g.chance(0.4)
    if pair is None:
        return None
    more = [condition(g, right.cols, 0)] if g.chance(0.4) else []
    if g.chance(0.4):
        ties = [equal(g, pair)] if g.chance(0.7) else []
        return both(f"{'NOT ' if negated else ''}EXISTS {{0}}", BOOLEAN, query_of(g, right, None, [*ties, *more]))
    other = pair_of(g, cols, right) if g.chance(0.3) else None
    ties = [] if other is None or other == pair else [equal(g, other)]
    return in_(g, pair[0], negated, query_of(g, right, g.read(pair[1]), [*ties, *more]))


def _ranked(g: Grammar, scope: Scope) -> Expr | None:
    """A comparison with any public row, or with all of them."""
    right = public(g)
    pair = pair_of(g, outer(scope), right)
    if pair is None:
        return None
    more = [condition(g, right.cols, 0)] if g.chance(0.5) else []
    sign = g.random.choice(["< ANY", "<= ALL", "> ANY", ">= ALL", "<> ANY", "= ALL"])
    return both(f"{{0}} {sign} {{1}}", BOOLEAN, g.read(pair[0]), query_of(g, right, g.read(pair[1]), more))


def _ranked_own(g: Grammar, scope: Scope) -> Expr | None:
    """The same of rows of the same unit."""
    cols, right = outer(scope), relation(g, g.random.choice([0, 0, 1]))
    pair, like = tie(g, cols, right), pair_of(g, cols, right)
    if pair is None or like is None or like[0].type.kind is Kind.BOOLEAN:
        return None
    more = [condition(g, right.cols if g.chance(0.7) else cols, 0)] if g.chance(0.4) else []
    sign = g.random.choice(["< ANY", "<= ALL", "> ANY", ">= ALL", "<> ANY", "= ALL"])
    return both(f"{{0}} {sign} {{1}}", BOOLEAN, g.read(like[0]), query_of(g, right, g.read(like[1]), [equal(g, pair), *more]))


def _own_value(g: Grammar, scope: Scope) -> Expr | None:
    """A comparison with one aggregate of rows of the same unit, however they are compared besides."""
    cols, right = outer(scope), relation(g, g.random.choice([0, 0, 1]))
    pair, value = tie(g, cols, right), g.col(right.cols, *NUMERIC)
    if pair is None or value is None:
        return None
    more = [condition(g, right.cols if g.chance(0.4) else (*cols, *right.cols), 0)] if g.chance(0.6) else []
    item = both(f"{g.random.choice(['min', 'MAX', 'count'])}({{0}})", value.type, value) if g.chance(0.6) else Expr("count(*)", "count(*)", INTEGER)
    sign = g.random.choice(["<", ">=", "=", "IS DISTINCT FROM"])
    return both(f"{{0}} {sign} {{1}}", BOOLEAN, number(g, scope, 0), query_of(g, right, item, [equal(g, pair), *more]))


def _valued(g: Grammar, scope: Scope) -> Expr | None:
    """A comparison with one aggregate of public rows."""
    right = public(g)
    value = g.col(right.cols, *NUMERIC)
    if value is None:
        return None
    more = [condition(g, right.cols, 0)] if g.chance(0.3) else []
    item = both(f"{g.random.choice(['min', 'MAX'])}({{0}})", value.type, value) if g.chance(0.7) else Expr("count(*)", "count(*)", INTEGER)
    sign = g.random.choice(["<", ">=", "=", "IS DISTINCT FROM"])
    return both(f"{{0}} {sign} {{1}}", BOOLEAN, number(g, scope, 0), query_of(g, right, item, more))


def _looked_up(g: Grammar, scope: Scope) -> Expr | None:
    """A comparison with one aggregate of the public rows that equal the row."""
    cols, right = outer(scope), public(g)
    pair, value = pair_of(g, cols, right), g.col(right.cols, *NUMERIC)
    if pair is None or value is None:
        return None
    more = [condition(g, right.cols, 0)] if g.chance(0.3) else []
    item = both(f"{g.random.choice(['min', 'MAX', 'sum'])}({{0}})", value.type, value) if g.chance(0.6) else Expr("count(*)", "count(*)", INTEGER)
    sign = g.random.choice(["<", ">=", "=", "IS DISTINCT FROM"])
    return both(f"{{0}} {sign} {{1}}", BOOLEAN, number(g, scope, 0), query_of(g, right, item, [equal(g, pair), *more]))


def _rows(g: Grammar, scope: Scope) -> Expr | None:
    """Two values at once that are IN a list of such."""
    values = g.col(scope, Kind.INTEGER), g.col(scope, Kind.STRING)
    if values[0] is None or values[1] is None:
        return None
    listed = ", ".join(f"({g.random.choice(['0', '1', '-3'])}, {text})" for text in ("'a'", "'b'", "''"))
    return both(f"({{0}}, {{1}}) {'NOT ' if g.chance(0.4) else ''}IN ({listed})", BOOLEAN, *values)
