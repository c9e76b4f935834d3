"""MODE(x): of what, and which values may be the most frequent one: a list that the text and the schema alone give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from dpquery.aggregates.mode import ELSEWHERE
from dpquery.plan.rel import Private
from dpquery.plan.scalar import Scalar
from dpquery.sql.fields import take
from dpquery.sql.listed import listed
from dpquery.sql.sides import facts
from dpquery.values.types import Value

if TYPE_CHECKING:
    from dpquery.sql.names import Statement

MODE = "mode"  # the card


def node(given: exp.Expr) -> exp.Mode | None:
    """The MODE of an aggregate, inside WITHIN GROUP too; None where it is another one."""
    inner = given.this if isinstance(given, exp.WithinGroup) else given
    return inner if isinstance(inner, exp.Mode) else None


def is_mode(given: exp.Expr) -> bool:
    """Whether the aggregate is a MODE, with FILTER or without."""
    return node(given.this if isinstance(given, exp.Filter) else given) is not None


def of(statement: Statement, given: exp.Expr) -> exp.Expr:
    """The argument: MODE(x), or MODE() WITHIN GROUP (ORDER BY x), where the order does not matter as ties go by the list."""
    if not isinstance(given, exp.WithinGroup):
        this, more = take(given, "this", "deterministic")
        if this is None or more is not None:
            raise _form(statement, given)
        return this if isinstance(this, exp.Expr) else given
    inner, order = take(given, "this", "expression")
    terms: list[exp.Expr] = take(order, "expressions")[0] if isinstance(order, exp.Order) else []
    if len(terms) != 1 or any(one is not None for one in take(inner, "this", "deterministic")):
        raise _form(statement, given)
    found, _, _ = take(terms[0], "this", "desc", "nulls_first")
    return found if isinstance(found, exp.Expr) else given


def values(statement: Statement, value: Scalar, given: exp.Expr, rel: Private) -> tuple[Value, ...]:
    """The list, NULL and NaN left out; refused where there is none."""
    found = listed(value, facts(rel))
    if found is None:
        message = "MODE is chosen from a public list of values, and nothing lists those of its argument"
        raise statement.refuse("MODE", message, given, ELSEWHERE)
    return tuple(one for one in found if one == one)  # NaN differs from itself


def _form(statement: Statement, given: exp.Expr) -> Exception:
    return statement.refuse("MODE", "this form of MODE is not supported", given, "MODE(x)")
