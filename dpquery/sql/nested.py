"""Joins in parentheses: relations that are joined to each other before the rest of FROM is joined to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from dpquery.sql.chains import grouped
from dpquery.sql.fields import peek, take, unset
from dpquery.sql.joinkinds import Chain, Seat, step
from dpquery.sql.names import Statement
from dpquery.sql.sides import Side

Read = Callable[[exp.Expr], Side]
JOIN = ("this", "on", "side", "kind", "method", "using")


def chain(statement: Statement, first: exp.Expr, joins: Sequence[exp.Join], read: Read, seat: Seat) -> Chain:
    """Relations and their joins as written; `read` reads one relation, `seat` subqueries of ON."""
    left = _one(statement, first, read, seat)
    steps = [replace(step(statement, join, _one(statement, take(join, *JOIN)[0], read, seat)), seat=seat) for join in joins]
    return grouped(left, steps)


def _one(statement: Statement, node: exp.Expr, read: Read, seat: Seat) -> Side | Chain:
    inside = within(node)
    if inside is None:
        return read(node)
    alias = take(node, "this", "alias")[1]
    if alias is not None:
        message = "joins in parentheses with a name of their own are not supported"
        raise statement.refuse("NESTED_JOIN", message, alias, "a subquery, (SELECT .. FROM a JOIN b ..) AS t, or the parentheses without a name")
    return chain(statement, *inside, read, seat)


def within(node: exp.Expr) -> tuple[exp.Expr, Sequence[exp.Join]] | None:
    """The first relation and the joins of joins in parentheses; None of anything else."""
    inner = node.args.get("this")
    if not isinstance(node, exp.Subquery) or not isinstance(inner, exp.Table | exp.Subquery) or unset(inner.args.get("joins")):
        return None
    first = inner.copy()
    first.set("joins", None)
    return first, inner.args["joins"]


def read_by(select: exp.Expr) -> Iterator[exp.Expr]:
    """The relations of a SELECT's FROM: those in parentheses one by one."""
    yield from _leaves([one.this for one in (peek(select, "from_"), *(peek(select, "joins") or ())) if one is not None])


def _leaves(nodes: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    for node in nodes:
        inside = within(node)
        yield from [node] if inside is None else _leaves((inside[0], *(join.this for join in inside[1])))


def check_flat(statement: Statement, node: exp.Expr) -> None:
    """Refuses joins in parentheses, where relations are joined one after another."""
    if within(node) is not None:
        message = "joins in parentheses above the noise are not supported"
        raise statement.refuse("NESTED_JOIN", message, node, "a subquery, (SELECT .. FROM a JOIN b ..) AS t, or the joins one after another")
