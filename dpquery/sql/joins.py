"""FROM: joins of public and private relations.

Private ones join within the privacy unit only, shown by lineage and never by names; the plan adds the equality of units itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan import functions
from dpquery.plan.rel import Join, Lookup, Match
from dpquery.plan.scalar import Column, Scalar, columns, conjuncts
from dpquery.sql import public
from dpquery.sql.fed import fed_keys
from dpquery.sql.fulljoins import MOST_NODES, full, size
from dpquery.sql.joinconditions import across, conditions, equalities_of, visible
from dpquery.sql.joinkinds import HALVES, MIRRORED, How, Step, at
from dpquery.sql.names import Field, Frame, Scope, Statement, fold
from dpquery.sql.partners import conjoined, partnered, tied, untied
from dpquery.sql.sides import Bound, Open, Side, closed, computed, equality, firm, fixes_unit, one_each, substituted


def chained(statement: Statement, first: Side, steps: Sequence[Step], where: exp.Expr | None) -> Side:
    """All relations of FROM joined. JOIN binds tighter than a comma, so each chain of JOINs is joined first, the chains after that."""
    equalities, chains = equalities_of(where), [_Chain(first, [])]
    for one in steps:
        if one.bare and not one.crossed:
            chains.append(_Chain(one.right, [], one))
        else:
            chains[-1].steps.append(one)
    sides = [_left_to_right(statement, chain.first, chain.steps, equalities) for chain in chains]
    rest = [replace(chain.step, right=side) for chain, side in zip(chains, sides, strict=True) if chain.step is not None]
    return _left_to_right(statement, sides[0], rest, equalities)


@dataclass(frozen=True, slots=True)
class _Chain:
    """What stands between two commas; `step` is the comma."""

    first: Side
    steps: list[Step]
    step: Step | None = None


def _left_to_right(statement: Statement, side: Side, steps: Sequence[Step], equalities: Sequence[exp.Expr]) -> Side:
    """The joins in turn. A condition-less one waits until WHERE connects it to what is there already, a public one until the next condition."""
    waiting: list[Step] = []
    for one in steps:
        _check_aliases(statement, side.frame, one)
        if one.bare and _unconnected(statement, side, one.right, equalities):
            waiting.append(one)
            continue
        if not one.bare:
            side, waiting = _crossed(statement, side, waiting, equalities)
        if waiting and not one.bare:
            break
        side, waiting = _settled(statement, combined(statement, side, one, equalities), waiting, equalities)
    side, waiting = _crossed(statement, side, waiting, equalities)
    if waiting:
        raise _unit_missing(statement, side, waiting[0].right, waiting[0])
    return side


def _crossed(statement: Statement, side: Side, waiting: list[Step], equalities: Sequence[exp.Expr]) -> tuple[Side, list[Step]]:
    """The relation with the public ones joined that nothing connects, and the private ones that still wait."""
    for one in waiting:
        if isinstance(side, Open) or isinstance(one.right, Open):
            rest = [w for w in waiting if w is not one]
            return _crossed(statement, *_settled(statement, combined(statement, side, one, equalities), rest, equalities), equalities)
    return side, waiting


def _settled(statement: Statement, side: Side, waiting: list[Step], equalities: Sequence[exp.Expr]) -> tuple[Side, list[Step]]:
    """The relation with all those joined that are connected by now, and those that still wait."""
    for one in waiting:
        if not _unconnected(statement, side, one.right, equalities):
            rest = [w for w in waiting if w is not one]
            return _settled(statement, combined(statement, side, one, equalities), rest, equalities)
    return side, waiting


def combined(statement: Statement, left: Side, one: Step, equalities: Sequence[exp.Expr] = ()) -> Side:
    """Two relations joined."""
    _check_aliases(statement, left.frame, one)
    if one.how in HALVES:
        return _half(statement, left, one)
    match left, one.right:
        case Open(), Open():
            _check_read(statement, left, one.right, one)
            return _public(statement, left, one.right, one)
        case Bound(), Open():
            return _lookup(statement, left, one.right, one, one.how, equalities)
        case Open(), Bound():
            return _lookup(statement, one.right, left, one, MIRRORED[one.how], equalities)
        case Bound(), Bound():
            return _match(statement, left, one.right, one, equalities)
        case _:
            raise AssertionError("a relation is public or private")


def _check_read(statement: Statement, left: Open, right: Open, one: Step) -> None:
    """Refuses a join of released rows with a public table, or with other released ones, below the noise."""
    if left.released is not None or right.released is not None:
        message = "released rows join private ones directly, one list at a time"
        instead = "the private table first; or both joined in a subquery of their own, (SELECT .. FROM released JOIN ..)"
        raise statement.refuse("RELEASED_JOIN", message, at(one.node), instead)


def _check_aliases(statement: Statement, frame: Frame, one: Step) -> None:
    known = {fold(s.alias) for s in frame.sources if s.alias}
    for source in one.right.frame.sources:
        if fold(source.alias) in known:
            raise statement.refuse("DUPLICATE_ALIAS", f"two relations are called {source.alias!r}", at(one.node), "an alias of its own for each")


# ---- public with public, private with public -----------------------------------------------------------------------------------------


def _public(statement: Statement, left: Open, right: Open, one: Step) -> Open:
    names = public.places(left, right)
    equal, _, frame = conditions(statement, left.frame, right.frame, one)
    texts = [] if one.on is None else [public.text_of(one.on, Scope(frame, statement), names)]
    for each in equal:
        pair = equality(each)
        if pair is None:
            raise statement.refuse("TYPE_MISMATCH", "USING of columns of two types", at(one.node), "ON .. with an explicit CAST")
        texts.append(f"{names[pair[0].id]} = {names[pair[1].id]}")
    if one.how is not How.FULL:
        return public.joined(left, right, one.how.name, texts, frame)
    found: dict[Scalar, Column] = {}
    for merged in frame.merged:
        if not isinstance(merged.value, Column):
            found[merged.value] = Column(next(statement.ids), merged.name, merged.value.type)
    made = [(column, f"coalesce({', '.join(names[c.id] for c in sorted(columns(value), key=lambda c: c.id))})") for value, column in found.items()]
    return public.joined(left, right, "FULL", texts, substituted(frame, {**found}), made)


def _lookup(statement: Statement, bound: Bound, side: Open, one: Step, how: How, equalities: Sequence[exp.Expr]) -> Bound:
    """A private relation with a public one; `how` is seen from the private side.

    Equalities of WHERE between the two sides of an inner join count in ON as well: they stay in WHERE, and so mean the same there.
    """
    if how is How.FULL:
        message = "FULL JOIN would keep rows of a public table, which belong to nobody, beside private ones without a partner"
        raise statement.refuse("FULL_JOIN", message, at(one.node), "a LEFT JOIN from the side whose rows are to be kept")
    _check_kept(statement, bound, how is How.LEFT, one)
    made, shown = closed(statement, side)
    left, right = (shown, bound.frame) if isinstance(one.right, Bound) else (bound.frame, shown)
    equal, others, frame = conditions(statement, left, right, one)
    if how is How.INNER:
        others = (*others, *(c for c in visible(statement, frame, equalities) if across(c, made.columns) and c not in (*equal, *others)))
    on = conjoined((*equal, *others))
    if side.released is not None:
        made, frame = fed_keys(statement, side.released, made, frame, conjuncts(on), at(one.node))
    if how is How.LEFT:
        return Bound(Lookup(bound.rel, made, Join.LEFT, on), frame, bound.kept)
    kept = bound.kept | {made.name} if how is How.RIGHT else bound.kept
    return Bound(Lookup(bound.rel, made, Join.INNER, on), frame, kept)


def _check_kept(statement: Statement, bound: Bound, keeps: bool, one: Step) -> None:
    """Refuses a join that would drop rows of a public relation which an outer join below keeps."""
    if bound.kept and not keeps:
        message = "rows of a public table that an outer join keeps would be dropped again by this join"
        raise statement.refuse("KEPT_PUBLIC", message, at(one.node), "the outer join with the public table as the last join")


# ---- private with private ------------------------------------------------------------------------------------------------------------


def _half(statement: Statement, left: Side, one: Step) -> Side:
    """SEMI and ANTI JOIN: left rows with a partner, or without one. Only the left side is visible above."""
    match left, one.right:
        case Open(), Open():
            _check_read(statement, left, one.right, one)
            return replace(_public(statement, left, one.right, one), frame=left.frame)
        case Open(), Bound():
            message = f"{one.how.name} JOIN would keep rows of a public table by what is private"
            raise statement.refuse("SEMI_PUBLIC", message, at(one.node), "the private table on the left")
        case Bound(), Open():
            right, shown = closed(statement, one.right)
            equal, others, _ = conditions(statement, left.frame, shown, one)
            found = partnered(statement, left, right, (*equal, *others), one.how is How.ANTI)
        case Bound(), Bound():
            equal, others, _ = conditions(statement, left.frame, one.right.frame, one)
            found = partnered(statement, left, one.right, (*equal, *others), one.how is How.ANTI)
        case _:
            raise AssertionError("a relation is public or private")
    _check_kept(statement, left, False, one)
    if found is None:
        raise _unit_missing(statement, left, one.right, one)
    return found


def _match(statement: Statement, left: Bound, right: Bound, one: Step, equalities: Sequence[exp.Expr]) -> Bound:
    """Two private relations within the unit. RIGHT is LEFT with the sides exchanged."""
    _check_kept(statement, left, one.how is How.LEFT, one)
    _check_kept(statement, right, one.how is How.RIGHT, one)
    if one.how in (How.LEFT, How.FULL):
        right = computed(statement, right)
    if one.how in (How.RIGHT, How.FULL):
        left = computed(statement, left)
    equal, others, frame = conditions(statement, left.frame, right.frame, one)
    tests = (*equal, *others)
    shown = tests if one.how is not How.INNER else (*tests, *visible(statement, frame, equalities))
    if not any(tied(statement, c, left, right) for c in shown):
        raise _unit_missing(statement, left, right, one)
    on = untied(statement, tests, left, right)
    single = one_each(left.rel, tests) or one_each(right.rel, tests)
    if one.how is How.FULL:
        if 2 * size(left.rel) + 2 * size(right.rel) > MOST_NODES:
            raise statement.refuse("TOO_COMPLEX", "so many FULL JOINs on one another are not supported", at(one.node), "fewer, or LEFT JOINs")
        return full(statement, left, right, on, frame, single)
    join = Join.INNER if one.how is How.INNER else Join.LEFT
    first, second = (right, left) if one.how is How.RIGHT else (left, right)
    return Bound(Match(first.rel, second.rel, join, conjoined(on), single), frame, left.kept | right.kept)


def _unconnected(statement: Statement, left: Side, right: Side, equalities: Sequence[exp.Expr]) -> bool:
    """Whether no equality in WHERE, nor a condition that holds already, ties the units of two private relations, or columns of other ones."""
    frame = Frame((*left.frame.sources, *right.frame.sources), (*left.frame.merged, *right.frame.merged))
    found = visible(statement, frame, equalities)
    if isinstance(left, Bound) and isinstance(right, Bound):
        return not any(tied(statement, c, left, right) for c in found)
    one, other = ({c.id for s in each.frame.sources for f in s.fields for c in columns(f.value)} for each in (left, right))
    return not any({c.id for c in columns(test)} & one and {c.id for c in columns(test)} & other for test in found)


PLAIN = "the unit's column in both relations and its equality in ON, or the tables of the path joined directly, in a subquery if need be"


def _unit_missing(statement: Statement, left: Side, right: Side, one: Step) -> Refused:
    message = "two private relations join on their privacy unit only, as a condition of its own (not under OR, not computed, not the null side)"
    text = suggestion(statement, left, right)
    if text is None:
        return statement.refuse("JOIN_ON_UNIT", message, at(one.node), PLAIN)
    place = "WHERE" if one.bare else "ON"
    if one.how is not How.INNER:
        message += "; of an outer join in ON, not in WHERE"
    return statement.refuse("JOIN_ON_UNIT", message, at(one.node), f"AND {text} in {place}")


def suggestion(statement: Statement, left: Side, right: Side) -> str | None:
    """An equality that would tie the units: `a.user_id = b.user_id`, in the statement's own names."""
    if not isinstance(left, Bound) or not isinstance(right, Bound):
        return None
    found: list[tuple[bool, str]] = []
    for a in left.frame.sources:
        for b in (b for b in right.frame.sources if fold(b.alias) != fold(a.alias)):
            found += [(unit, text) for f in a.fields for g in b.fields for unit, text in _tied(statement, left, right, (a.alias, f), (b.alias, g))]
    return next((text for unit, text in sorted(found, key=lambda x: not x[0])), None)


def _tied(statement: Statement, left: Bound, right: Bound, one: tuple[str, Field], other: tuple[str, Field]) -> list[tuple[bool, str]]:
    (a, f), (b, g) = one, other
    if not isinstance(f.value, Column) or not isinstance(g.value, Column) or f.value.type != g.value.type:
        return []
    tokens = fixes_unit(statement, functions.call("eq", f.value, g.value), firm(left.rel), firm(right.rel))
    return [(("unit",) in tokens, f"{a}.{f.name} = {b}.{g.name}")] if tokens else []
