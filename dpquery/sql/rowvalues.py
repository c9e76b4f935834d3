"""Comparisons of rows of values, written out: `(a, b) = (c, d)` is `a = c AND b = d`, `(a, b) < (c, d)` is `a < c OR (a = c AND b < d)`.

DuckDB's rows are values of one kind: NULLs within them are equal to each other and greater than anything else, and a comparison is never NULL.
To the other dialects it is as if it were written out. Which row is the lesser one is asked where the dialect has such an order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import islice, pairwise

from sqlglot import Token, TokenType, exp

from dpquery.errors import Refused
from dpquery.sql.fields import argument
from dpquery.sql.refuse import place

ORDERED = ("duckdb", "postgres", "trino")
STRICT: dict[type[exp.Expr], type[exp.Binary]] = {exp.LT: exp.LT, exp.LTE: exp.LT, exp.GT: exp.GT, exp.GTE: exp.GT}
NULL_SAFE = (exp.NullSafeEQ, exp.NullSafeNEQ)
COPIES = 4  # how often the order of two rows reads each value
MOST_COPIED = 2_000  # parts that writing a list out may make
MOST = 200  # comparisons that a list is written out as
OWN = "__row"  # of a subquery that rows of values are compared with

Pairs = list[tuple[exp.Expr, exp.Expr]]


def called(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with ROW of `ROW(a, b)` as a name: the parser takes it for a type, and what follows for its parts."""
    found = list(tokens)
    for i, (one, after) in enumerate(pairwise(tokens)):
        typed = i > 0 and tokens[i - 1].token_type in (TokenType.ALIAS, TokenType.DCOLON)
        if one.text.upper() == "ROW" and one.token_type in (TokenType.ROW, TokenType.STRUCT) and after.token_type is TokenType.L_PAREN and not typed:
            found[i] = Token(TokenType.VAR, one.text, one.line, one.col, one.start, one.end, one.comments)
    return found


def compares(node: exp.Expr) -> bool:
    """Whether a comparison is of rows of values."""
    return _row(node.this) is not None


def spelled_out(node: exp.Expr, dialect: str) -> None:
    """Changes the comparison to one of values; leaves what is none, or has no such meaning in the dialect, for the readers to refuse."""
    distinct, found = dialect == "duckdb", None
    match node:
        case exp.In():
            _listed(node, distinct)
        case exp.EQ() | exp.NEQ() | exp.NullSafeEQ() | exp.NullSafeNEQ():
            if pairs := _pairs(node.this, node.expression):
                found = _all(pairs, distinct or isinstance(node, NULL_SAFE))
                found = exp.Not(this=found) if isinstance(node, exp.NEQ | exp.NullSafeNEQ) else found
        case exp.LT() | exp.LTE() | exp.GT() | exp.GTE() if dialect in ORDERED:
            found = _ordered(node.this, node.expression, type(node), distinct)
        case exp.Between(this=value) if dialect in ORDERED and not argument(node, "symmetric"):
            ends = [_ordered(value, argument(node, name), kind, distinct) for name, kind in (("low", exp.GTE), ("high", exp.LTE))]
            found = None if None in ends else _joined(exp.And, [one for one in ends if one is not None])
        case _:
            pass
    if found is not None:
        node.replace(found)


def check_copied(node: exp.Expr, times: int) -> None:
    """Refused where writing the node out so often would make more of it than any expression may have: within each other, copies multiply."""
    if any(islice(node.walk(), MOST_COPIED // times, None)):
        message = f"a comparison with a list is written out for each of its items, here to more than {MOST_COPIED:,} parts"
        raise Refused("TOO_COMPLEX", message, position=place(node), instead="= ANY, IN, or fewer items")


# ---- two rows ------------------------------------------------------------------------------------------------------------------------


def _row(node: object) -> list[exp.Expr] | None:
    """The values of a row: `(a, b)` or `ROW(a, b)`."""
    while isinstance(node, exp.Paren):
        node = node.this
    match node:
        case exp.Tuple():
            return list(node.expressions)
        case exp.Anonymous() if node.name.upper() == "ROW" and node.expressions:
            return list(node.expressions)
        case exp.Struct() if node.expressions and not any(isinstance(one, exp.PropertyEQ) for one in node.expressions):
            return list(node.expressions)
        case _:
            return None


def _pairs(left: object, right: object) -> Pairs:
    """The values of two rows side by side; none where they differ in length, or hold rows."""
    one, other = _row(left), _row(right)
    if one is None or other is None or len(one) != len(other) or any(_row(part) is not None for part in (*one, *other)):
        return []
    return list(zip(one, other, strict=True))


def _joined(kind: type[exp.And] | type[exp.Or], each: Iterable[exp.Expr]) -> exp.Expr:
    return exp.paren(reduce(lambda left, right: kind(this=left, expression=right), each), copy=False)


def _all(pairs: Pairs, distinct: bool) -> exp.Expr:
    """Whether all of them are equal."""
    return _joined(exp.And, (_tested(exp.NullSafeEQ if distinct else exp.EQ, one, other) for one, other in pairs))


def _tested(kind: type[exp.Binary], one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return kind(this=_part(one), expression=_part(other))


def _part(node: exp.Expr) -> exp.Expr:
    return node.copy() if isinstance(node, exp.Column | exp.Literal | exp.Paren) else exp.paren(node)


def _ordered(left: object, right: object, kind: type[exp.Expr], distinct: bool) -> exp.Expr | None:
    """Whether one row stands before another: by their first values, where these are equal by the second ones, and so on."""
    pairs = _pairs(left, right)
    for value in (one for pair in pairs for one in pair):
        check_copied(value, COPIES)
    found: exp.Expr | None = None
    for one, other in reversed(pairs):
        same = _tested(exp.NullSafeEQ if distinct else exp.EQ, one, other)
        if found is not None:
            same = exp.And(this=same, expression=found)
        before = _before(one, other, STRICT[kind], distinct)
        found = before if found is None and kind in STRICT.values() else _joined(exp.Or, (before, same))
    return found


def _before(one: exp.Expr, other: exp.Expr, kind: type[exp.Binary], distinct: bool) -> exp.Expr:
    """Whether a value stands before another; with `distinct` NULL is the greatest one."""
    found = _tested(kind, one, other)
    if not distinct:
        return found
    least, greatest = (one, other) if kind is exp.LT else (other, one)
    null = exp.And(this=exp.Not(this=_null(least)), expression=_null(greatest))
    return exp.Coalesce(this=found, expressions=[null])


def _null(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=_part(node), expression=exp.Null())


# ---- lists and subqueries ------------------------------------------------------------------------------------------------------------


def _listed(node: exp.In, distinct: bool) -> None:
    """(a, b) IN ((1, 2), (3, 4)) or (VALUES (1, 2), ..), and as a condition of its own (a, b) IN (SELECT x, y ..): a row with equal values."""
    query, values = argument(node, "query"), _row(node.this)
    if values is None or argument(node, "unnest") or argument(node, "field"):
        return
    given = node.expressions
    if len(given) == 1 and isinstance(given[0], exp.Values):
        given, distinct = given[0].expressions, False  # rows of a subquery are compared value by value
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=node.expressions[0])) if len(given) > MOST else None
    if query is not None:
        if _alone(node) and (given or _columns(query) == len(values)):
            node.replace(_partner(values, query))
        return
    rows = [_pairs(node.this, item) for item in given]
    if rows and all(rows) and len(rows) <= MOST:
        check_copied(node.this, len(rows))
        node.replace(_joined(exp.Or, (_all(pairs, distinct) for pairs in rows)))


def _alone(node: exp.Expr) -> bool:
    """Whether it is a condition of WHERE by itself, or joined to others by AND: whether it is false or NULL does not matter there."""
    above = node.parent
    while isinstance(above, exp.And | exp.Paren):
        above = above.parent
    return isinstance(above, exp.Where)


def _columns(query: exp.Expr) -> int | None:
    """How many columns a subquery has; None where that is not seen at once."""
    query = query.this if isinstance(query, exp.Subquery) else query
    if not isinstance(query, exp.Select) or any(one.is_star for one in query.expressions):
        return None
    return len(query.expressions)


def _partner(values: list[exp.Expr], query: exp.Expr) -> exp.Expr:
    """EXISTS (SELECT 1 FROM (query) AS t(c0, c1) WHERE t.c0 = a AND t.c1 = b)."""
    names = [f"{OWN}{i}" for i in range(len(values))]
    inner = query.this if isinstance(query, exp.Subquery) else query
    table = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(OWN), columns=[exp.to_identifier(name) for name in names]))
    each: list[exp.Expr] = [exp.EQ(this=exp.column(name, table=OWN), expression=one.copy()) for name, one in zip(names, values, strict=True)]
    test = reduce(lambda left, right: exp.And(this=left, expression=right), each[1:], each[0])
    return exp.Exists(this=exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=table), where=exp.Where(this=test)))
