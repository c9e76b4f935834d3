"""All relations of FROM joined: in which order inner joins are made, and which conditions each of them has.

Inner joins commute, so that each is made where its conditions are there: first those that multiply no rows, then those on equal values, then those
on the unit alone. The columns stay in the order of the text. Outer joins, USING and NATURAL stay where they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from sqlglot import exp

from dpquery.plan.scalar import Scalar
from dpquery.sql.joinconditions import joined_frame
from dpquery.sql.joinkinds import HALVES, Chain, How, Step, at, sources
from dpquery.sql.joins import combined, met, unit_missing
from dpquery.sql.names import Frame, Scope, Source, Statement, fold
from dpquery.sql.partners import tied, untied
from dpquery.sql.rowwise import condition
from dpquery.sql.sides import Bound, Open, Side, equality, one_each
from dpquery.sql.terms import Term, between, in_on, in_where, kept_back, passed, places, read


def chained(statement: Statement, whole: Chain, where: exp.Expr | None) -> Side:
    """All relations of FROM joined. JOIN binds tighter than a comma, so each chain of JOINs is one relation of those between commas."""
    _check_aliases(statement, whole, set())
    return _joined(statement, whole, in_where(statement, where, tuple(sources(whole))))


def grouped(first: Side | Chain, steps: Sequence[Step]) -> Chain:
    """The relations between commas, each with its JOINs."""
    ends = [i for i, one in enumerate(steps) if one.bare and not one.crossed]
    if not ends:
        return Chain(first, tuple(steps))
    parts = [(i, steps[i + 1 : end]) for i, end in zip(ends, (*ends[1:], len(steps)), strict=True)]
    commas = tuple(replace(steps[i], right=Chain(steps[i].right, tuple(more)) if more else steps[i].right) for i, more in parts)
    return Chain(Chain(first, tuple(steps[: ends[0]])) if ends[0] else first, commas)


def _check_aliases(statement: Statement, chain: Chain, known: set[str]) -> None:
    """Refuses two relations of one name. The partners of a SEMI JOIN are not seen by later ones."""
    if isinstance(chain.first, Chain):
        _check_aliases(statement, chain.first, known)
    else:
        known |= {fold(s.alias) for s in chain.first.frame.sources}
    for one in chain.steps:
        own = list(sources(one.right))
        for source in own:
            if source.alias and fold(source.alias) in known:
                message = f"two relations are called {source.alias!r}"
                raise statement.refuse("DUPLICATE_ALIAS", message, at(one.node), "an alias of its own for each")
        if isinstance(one.right, Chain):
            _check_aliases(statement, one.right, set())
        if one.how not in HALVES:
            known |= {fold(s.alias) for s in own}


# ---- runs of inner joins -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Piece:
    """A relation not joined yet: the join that it is written in, and conditions of ON that read it alone."""

    side: Side
    step: Step | None
    owed: tuple[Term, ...] = ()


@dataclass(slots=True)
class _Run:
    """Relations that inner joins put together in any order, and the conditions of their ON."""

    pieces: list[_Piece] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)


def _joined(statement: Statement, chain: Chain, where: Sequence[Term]) -> Side:
    """The relations of a chain joined. `where` are conditions of WHERE that mean the same below all that is joined to it."""
    run = _Run()
    _add(statement, run, chain.first, None, passed(where, chain.steps))
    for i, one in enumerate(chain.steps):
        later = passed(where, chain.steps[i + 1 :])
        if one.plain:
            _add(statement, run, one.right, one, later)
            _note(statement, run, one, chain, i)
            continue
        left = _merged(statement, run, passed(where, chain.steps[i:]))
        right = _side(statement, one.right, later if one.how in (How.INNER, How.RIGHT) else kept_back(later))
        run = _Run([_Piece(combined(statement, left, right, one, later), None)])
    return _merged(statement, run, where)


def _side(statement: Statement, right: Side | Chain, where: Sequence[Term]) -> Side:
    return _joined(statement, right, where) if isinstance(right, Chain) else right


def _add(statement: Statement, run: _Run, right: Side | Chain, step: Step | None, where: Sequence[Term]) -> None:
    """Notes a relation; of a chain of inner joins each of its relations."""
    if not isinstance(right, Chain) or not all(one.plain for one in right.steps):
        run.pieces.append(_Piece(_side(statement, right, where), step))
        return
    _add(statement, run, right.first, step, where)
    for i, one in enumerate(right.steps):
        _add(statement, run, one.right, one, where)
        _note(statement, run, one, right, i)


def _note(statement: Statement, run: _Run, one: Step, chain: Chain, i: int) -> None:
    """Notes the conditions of ON, which sees the relations of its own chain up to its own."""
    if one.on is None:
        return
    seen = tuple(sources(Chain(chain.first, chain.steps[: i + 1])))
    condition(one.on, Scope(_frame(run, seen), statement), "ON")
    for term in in_on(statement, one.on, seen):
        own = next((i for i, piece in enumerate(run.pieces) if term.places <= places(piece.side)), None)
        if not term.places:
            own = len(run.pieces) - 1
        if own is None:
            run.terms.append(term)
        else:
            run.pieces[own] = replace(run.pieces[own], owed=(*run.pieces[own].owed, term))


def _frame(run: _Run, seen: Sequence[Source]) -> Frame:
    """What is visible of the run's relations to a condition that sees these."""
    whole = Frame(())
    for piece in run.pieces:
        whole = joined_frame(whole, piece.side.frame)
    own = {source.place for source in seen}
    return Frame(tuple(s for s in whole.sources if s.place in own), tuple(m for m in whole.merged if m.places <= own))


class _Rank(IntEnum):
    """Which joins are made first."""

    SINGLE = 0  # multiplies no rows
    EQUAL = 1  # on equal values, or with a public relation on any condition
    UNIT = 2  # of private relations on the unit alone
    CROSSED = 3  # with a public relation on no condition
    RELEASED = 4  # of a public relation with released rows, which is refused


def _merged(statement: Statement, run: _Run, where: Sequence[Term]) -> Side:
    """The relations joined, two at a time."""
    pieces, terms, known, number = dict(enumerate(run.pieces)), (*run.terms, *where), dict[tuple[int, int], _Rank | None](), len(run.pieces)
    while len(pieces) > 1:
        pairs = [(i, j) for place, j in enumerate(pieces) for i in list(pieces)[:place]]
        for i, j in pairs:
            if (i, j) not in known:
                known[i, j] = _rank(statement, pieces[i], pieces[j], terms)
        ranked = [(rank, place) for place, pair in enumerate(pairs) if (rank := known[pair]) is not None]
        if not ranked:
            left, right = list(pieces.values())[:2]
            raise unit_missing(statement, left.side, right.side, _step(right))
        i, j = pairs[min(ranked)[1]]
        made = _met(statement, pieces[i], pieces[j], terms, where)
        pieces = {number if at == i else at: made if at == i else piece for at, piece in pieces.items() if at != j}
        number += 1
    return next(iter(pieces.values())).side


def _step(piece: _Piece) -> Step:
    if piece.step is None:
        raise AssertionError("the first relation of a chain is the left one")
    return piece.step


def _tests(terms: Sequence[Term], left: _Piece, right: _Piece) -> tuple[Term, ...]:
    return (*between(terms, left.side, right.side), *left.owed, *right.owed)


def _met(statement: Statement, left: _Piece, right: _Piece, terms: Sequence[Term], where: Sequence[Term]) -> _Piece:
    made = met(statement, left.side, right.side, _step(right), _tests(terms, left, right), where)
    if made is None:
        raise AssertionError("only relations that join are joined")
    return _Piece(made, left.step)


def _rank(statement: Statement, left: _Piece, right: _Piece, terms: Sequence[Term]) -> _Rank | None:
    """How soon the two are joined; None where nothing ties the units of two private relations."""
    between_them = between(terms, left.side, right.side)
    match left.side, right.side:
        case Bound() as one, Bound() as other:
            found = between_them and _tests(terms, left, right)
            return _private(statement, one, other, read(statement, found, joined_frame(one.frame, other.frame))) if found else None
        case Open(released=None), Open(released=None):
            return _Rank.EQUAL if between_them else _Rank.CROSSED
        case Open(), Open():
            return _Rank.RELEASED
        case _:
            return _Rank.EQUAL if between_them else _Rank.CROSSED


def _private(statement: Statement, left: Bound, right: Bound, tests: Sequence[Scalar]) -> _Rank | None:
    if not any(tied(statement, test, left, right) for test in tests):
        return None
    if one_each(left.rel, tests) or one_each(right.rel, tests):
        return _Rank.SINGLE
    return _Rank.EQUAL if any(equality(test) for test in untied(statement, tests, left, right)) else _Rank.UNIT
