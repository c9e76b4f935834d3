"""What a statement says briefly, said at length: lists after ANY and ALL; MATERIALIZED, which changes no answer, is left out.

`x = ANY(['a', 'b'])` is `x IN ('a', 'b')`, `x LIKE ANY ('a%', 'b%')` one LIKE or the other. Nothing else of the statement is touched, and what cannot
be said at length stays for the readers to refuse.
"""

from __future__ import annotations

from functools import reduce
from itertools import islice

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.sql.fields import argument
from dpquery.sql.refuse import place

COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
PATTERNS = (exp.Like, exp.ILike)
MOST_COPIED = 2_000  # parts that writing a list out may make
OWN = "__row"  # of a subquery that rows of values are compared with
MOST = 200  # comparisons that a list is written out as; a list of equal values stays one


CALLED = "called"  # the mark of a function that has several names: the one that the text has


def spelled_out(tree: exp.Expr, text: str, distinct: bool = False) -> None:
    """Changes the tree. `distinct`: rows of values are compared as DuckDB does, to which NULLs within them are equal."""
    for function in tree.find_all(exp.Variance):
        start, end = function.meta.get("start"), function.meta.get("end")
        if isinstance(start, int) and isinstance(end, int):
            function.meta[CALLED] = text[start : end + 1].lower()
    for node in reversed([one for one in tree.walk() if isinstance(one, (*COMPARED, *PATTERNS, exp.In, exp.CTE, exp.Anonymous))]):
        match node:
            case exp.CTE():
                node.set("materialized", None)  # how the engine is to work, not what the answer is
            case exp.In():
                _unnested(node)
                _rows(node, distinct)
            case exp.EQ() | exp.NEQ() if isinstance(node.expression, exp.Tuple) and isinstance(node.this, exp.Tuple):
                _row(node, distinct)
            case exp.Anonymous():
                _indexed(node)
            case _:
                _compared(node)


# ---- lists ---------------------------------------------------------------------------------------------------------------------------


def _items(node: exp.Expr | None) -> list[exp.Expr]:
    """The items of a list or row of values in brackets; none for anything else."""
    while isinstance(node, exp.Paren):
        node = node.this
    return list(node.expressions) if isinstance(node, exp.Array | exp.Tuple) else []


def _quantified(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """ANY or ALL with its list."""
    match node:
        case exp.Any() | exp.All():
            return ("ANY" if isinstance(node, exp.Any) else "ALL"), _items(node.this)
        case exp.Anonymous() if node.name.upper() in ("SOME", "ANY", "ALL") and len(node.expressions) == 1:
            return ("ALL" if node.name.upper() == "ALL" else "ANY"), _items(node.expressions[0])
        case _:
            return "", []


def _compared(node: exp.Expr) -> None:
    """A comparison with each item: one must hold for ANY, all for ALL."""
    word, items = _quantified(node.expression)
    negated = argument(node, "negate") or (isinstance(node, PATTERNS) and isinstance(node.parent, exp.Not))
    if not items or negated:  # dialects differ in what x NOT LIKE ANY (..) denies
        return
    if (type(node), word) in ((exp.EQ, "ANY"), (exp.NEQ, "ALL")):
        found: exp.Expr = exp.In(this=node.this, expressions=items)
        found = exp.Not(this=found) if word == "ALL" else found
    elif len(items) <= MOST:
        _check_copied(node.this, len(items))
        kind = exp.Or if word == "ANY" else exp.And
        each = [type(node)(this=node.this.copy(), expression=item) for item in items]
        found = exp.paren(reduce(lambda left, right: kind(this=left, expression=right), each[1:], each[0]), copy=False)
    else:
        return
    node.replace(found)


def _check_copied(node: exp.Expr, times: int) -> None:
    """Refused where writing the node out so often would make more of it than any expression may have: within each other, copies multiply."""
    if any(islice(node.walk(), MOST_COPIED // times, None)):
        message = f"a comparison with a list is written out for each of its items, here to more than {MOST_COPIED:,} parts"
        raise Refused("TOO_COMPLEX", message, position=place(node), instead="= ANY, IN, or fewer items")


def _unnested(node: exp.In) -> None:
    """x IN UNNEST([..])."""
    unnest = argument(node, "unnest")
    lists = unnest.expressions if isinstance(unnest, exp.Unnest) and not argument(unnest, "alias") else []
    items = _items(lists[0]) if len(lists) == 1 else []
    if items:
        node.set("unnest", None)
        node.set("expressions", items)


# ---- rows of values ------------------------------------------------------------------------------------------------------------------


def _row(node: exp.EQ | exp.NEQ, distinct: bool) -> None:
    """(a, b) = (c, d) is a = c AND b = d."""
    pairs = _pairs(node.this, node.expression)
    if pairs:
        found = _all(pairs, distinct)
        node.replace(found if isinstance(node, exp.EQ) else exp.Not(this=found))


def _rows(node: exp.In, distinct: bool) -> None:
    """(a, b) IN ((1, 2), (3, 4)), and as a condition of its own (a, b) IN (SELECT x, y ..), which is a row with equal values."""
    query = argument(node, "query")
    if not isinstance(node.this, exp.Tuple) or argument(node, "unnest") or argument(node, "field"):
        return
    if query is not None:
        if _alone(node) and _columns(query) == len(node.this.expressions):
            node.replace(_partner(node.this.expressions, query))
        return
    rows = [_pairs(node.this, item) if isinstance(item, exp.Tuple) else [] for item in node.expressions]
    if rows and all(rows) and len(rows) <= MOST:
        _check_copied(node.this, len(rows))
        each = [_all(pairs, distinct) for pairs in rows]
        node.replace(exp.paren(reduce(lambda left, right: exp.Or(this=left, expression=right), each[1:], each[0]), copy=False))


def _pairs(left: exp.Expr, right: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    """The values of two rows side by side; none where they differ in length, or hold rows."""
    one, other = left.expressions, right.expressions
    if len(one) != len(other) or any(isinstance(part, exp.Tuple) for part in (*one, *other)):
        return []
    return [(a.copy(), b) for a, b in zip(one, other, strict=True)]


def _all(pairs: list[tuple[exp.Expr, exp.Expr]], distinct: bool) -> exp.Expr:
    """Whether all of them are equal."""
    kind = exp.NullSafeEQ if distinct else exp.EQ
    each: list[exp.Expr] = [kind(this=exp.paren(one, copy=False), expression=exp.paren(other, copy=False)) for one, other in pairs]
    return exp.paren(reduce(lambda left, right: exp.And(this=left, expression=right), each[1:], each[0]), copy=False)


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


# ---- values of lists -----------------------------------------------------------------------------------------------------------------


def _indexed(node: exp.Anonymous) -> None:
    """list_extract(q, 2) is q[2]."""
    if node.name.lower() in ("list_extract", "list_element", "array_extract") and len(node.expressions) == 2:
        of, at = node.expressions
        node.replace(exp.Bracket(this=of, expressions=[at], offset=1))
