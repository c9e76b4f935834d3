"""Conditions of WHERE and ON, each AND-ed part by itself, and the relations that each reads: so it is known at which join all of these are there.

WHERE is read again above all joins, so that a condition that no join applies is applied there. Inner joins commute, and a condition on what an
inner join joins, or on what an outer one keeps, means the same below it: there a cap on rows cuts none that the condition would have kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.rel import Private
from dpquery.plan.scalar import Scalar, conjuncts
from dpquery.privacy.locality import owning
from dpquery.sql.fields import argument
from dpquery.sql.joinkinds import How, Step
from dpquery.sql.names import Frame, Scope, Source, Statement, column_name, fold
from dpquery.sql.partners import conjoined
from dpquery.sql.rowwise import condition, conjunct_nodes
from dpquery.sql.sides import Bound, Side, equality, facts


@dataclass(frozen=True, slots=True)
class Term:
    """A condition: the places of the relations that it reads, and of all whose names it can mean. `strict`: it is not true of a NULL."""

    node: exp.Expr
    places: frozenset[int]
    seen: frozenset[int]
    clause: str
    strict: bool = False


def in_where(statement: Statement, where: exp.Expr | None, visible: Sequence[Source]) -> tuple[Term, ...]:
    """Those conditions of WHERE that read columns of FROM alone. Refuses (+), by which WHERE would say that a join is an outer one."""
    for column in () if where is None else where.find_all(exp.Column):
        if argument(column, "join_mark"):
            message = "(+), which makes a join of WHERE an outer one, is not supported"
            raise statement.refuse("JOIN_CONDITION", message, column, "a LEFT JOIN .. ON .., from the side whose rows are to be kept")
    return tuple(term for node in conjunct_nodes(where) if (term := _term(statement, node, visible, "WHERE")) is not None and term.places)


def in_on(statement: Statement, node: exp.Expr | None, visible: Sequence[Source]) -> tuple[Term, ...]:
    """The conditions of ON, which were read already; without TRUE."""
    found = (_term(statement, one, visible, "ON") for one in conjunct_nodes(node) if not _true(one))
    return tuple(term for term in found if term is not None)


def _true(node: exp.Expr) -> bool:
    return isinstance(node, exp.Boolean) and bool(node.this)


def _term(statement: Statement, node: exp.Expr, visible: Sequence[Source], clause: str) -> Term | None:
    if node.find(exp.Query, exp.Subquery, exp.Values) is not None:
        return None
    found: set[int] = set()
    try:
        for column in node.find_all(exp.Column):
            places = _places(statement, column, visible)
            if not places:
                return None  # not of this FROM; whoever reads the whole condition says so
            found |= places
    except Refused:
        return None
    strict = isinstance(node, exp.EQ) and isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column)
    return Term(node, frozenset(found), frozenset(source.place for source in visible), clause, strict)


def _places(statement: Statement, node: exp.Column, visible: Sequence[Source]) -> frozenset[int]:
    """The places of the relations that a name may mean: of several where USING makes one column of theirs."""
    name, table = column_name(node, statement.source)
    named = [s for s in visible if table is None or fold(s.alias) == fold(table)]
    return frozenset(s.place for s in named if any(fold(f.name) == fold(name) for f in s.fields))


def passed(terms: Sequence[Term], steps: Sequence[Step]) -> tuple[Term, ...]:
    """Those that mean the same below these joins, if they are applied above them as well: beneath a null side only what is not true of a NULL."""
    return kept_back(terms) if any(one.how in (How.RIGHT, How.FULL) for one in steps) else tuple(terms)


def kept_back(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Those that mean the same on the null side of an outer join."""
    return tuple(term for term in terms if term.strict)


def within(terms: Sequence[Term], side: Side) -> tuple[Term, ...]:
    """Those that read columns of the relation alone."""
    own = places(side)
    return tuple(term for term in terms if term.places <= own)


def between(terms: Sequence[Term], left: Side, right: Side) -> tuple[Term, ...]:
    """Those that read columns of both relations and of no other."""
    one, other = places(left), places(right)
    return tuple(t for t in terms if t.places <= one | other and not t.places <= one and not t.places <= other)


def places(side: Side) -> frozenset[int]:
    """Where the relations that a side consists of stand in FROM."""
    return frozenset(source.place for source in side.frame.sources)


def scope_of(statement: Statement, term: Term, frame: Frame) -> Scope:
    """How the names of a condition are read: of relations that stand further right in the text ON sees nothing."""
    sources = tuple(source for source in frame.sources if source.place in term.seen)
    return Scope(Frame(sources, tuple(m for m in frame.merged if m.places <= term.seen)), statement)


def read(statement: Statement, terms: Sequence[Term], frame: Frame) -> tuple[Scalar, ...]:
    """The conditions as read where all that they name is visible. What is wrong in WHERE is refused when all of it is read."""
    found: list[Scalar] = []
    for term in terms:
        try:
            found += conjuncts(condition(term.node, scope_of(statement, term, frame), term.clause))
        except Refused:
            if term.clause == "ON":
                raise
    return tuple(found)


def holds(rel: Private, kept: frozenset[str]) -> Callable[[Scalar], bool]:
    """Tells of a condition whether it is true in every row: it was applied, or says that the row's unit is the row's unit."""
    known, own = frozenset(facts(rel, kept)), owning(rel)

    def true(test: Scalar) -> bool:
        pair = equality(test)
        return test in known or (pair is not None and pair[0].id in own and pair[1].id in own)

    return true


def unapplied(side: Bound, tests: Sequence[Scalar]) -> Scalar | None:
    """The conditions as one, without those that a join has applied already."""
    true = holds(side.rel, side.kept)
    return conjoined([part for test in tests for part in conjuncts(test) if not true(part)])
