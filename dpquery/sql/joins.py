"""Two relations of FROM joined, public or private.

Private ones join within the privacy unit only, shown by lineage and never by names; the plan adds the equality of units itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan import functions
from dpquery.plan.draft import Product
from dpquery.plan.rel import Join, Keep, Lookup, Match, output
from dpquery.plan.scalar import Column, Scalar, columns, conjuncts
from dpquery.privacy.rows import rows_per_unit
from dpquery.sql import public
from dpquery.sql.fed import fed_keys
from dpquery.sql.fulljoins import MOST_NODES, full, size
from dpquery.sql.joinconditions import across, conditions, joined_frame
from dpquery.sql.joinkinds import HALVES, MIRRORED, How, Step, at
from dpquery.sql.names import Field, Frame, Scope, Statement, fold
from dpquery.sql.partners import conjoined, partnered, tied, untied
from dpquery.sql.quoting import written
from dpquery.sql.refuse import place
from dpquery.sql.sides import MOST_PAIRS, Bound, Open, Side, check_product, closed, computed, equality, firm, fixes_unit, one_each, substituted
from dpquery.sql.terms import Term, between, holds, kept_back, read, scope_of, within


def combined(statement: Statement, left: Side, right: Side, one: Step, where: Sequence[Term]) -> Side:
    """Two relations joined as written. `where` are conditions of WHERE that mean the same below all later joins."""
    if one.on is not None and one.seat is not None:
        left, right, on = one.seat(left, right, one.on)
        one = replace(one, on=on)
    if one.how in HALVES:
        return _half(statement, left, right, one)
    match left, right:
        case Open(), Open():
            _check_read(statement, left, right, one)
            return _public(statement, left, right, one)
        case Bound(), Open():
            return _lookup(statement, left, right, one, one.how, where, True)
        case Open(), Bound():
            return _lookup(statement, right, left, one, MIRRORED[one.how], where, False)
        case Bound(), Bound():
            return _match(statement, left, right, one, where)
        case _:
            raise AssertionError("a relation is public or private")


def met(statement: Statement, left: Side, right: Side, one: Step, tests: Sequence[Term], where: Sequence[Term]) -> Side | None:
    """Two relations in an inner join on these conditions, all columns apart; None where nothing ties the units of two private ones."""
    frame = joined_frame(left.frame, right.frame)
    match left, right:
        case Open(), Open():
            _check_read(statement, left, right, one)
            check_product(statement, left.most, right.most, at(one.node))
            names = public.places(left, right)
            note_product(statement, left, right, read(statement, tests, frame), at(one.node))
            texts = [public.text_of(t.node, scope_of(statement, t, frame), names) for t in tests]
            return public.joined(left, right, "INNER", texts, frame)
        case (Bound() as bound, Open() as side) | (Open() as side, Bound() as bound):
            _check_kept(statement, bound, False, one)
            made, shown = closed(statement, side)
            frame = joined_frame(bound.frame, shown)
            on = read(statement, tests, frame)
            if side.released is not None:
                said = read(statement, [t for t in tests if t.clause == "ON"], frame)
                on = tuple(c for c in on if c in said or across(c, made.columns))
                made, frame = fed_keys(statement, side.released, made, frame, on, at(one.node))
            return Bound(Lookup(applied(statement, bound, where).rel, made, Join.INNER, conjoined(on)), frame, bound.kept)
        case Bound(), Bound():
            on = read(statement, tests, frame)
            if not any(tied(statement, c, left, right) for c in on):
                return None
            _check_kept(statement, left, False, one)
            _check_kept(statement, right, False, one)
            return _inner(statement, left, right, on, frame, where)
        case _:
            raise AssertionError("a relation is public or private")


def _inner(statement: Statement, left: Bound, right: Bound, tests: Sequence[Scalar], frame: Frame, where: Sequence[Term]) -> Bound:
    """Two private relations in an inner join. Where a cap may cut their rows, what reads one side alone is applied below it."""
    single = one_each(left.rel, tests) or one_each(right.rel, tests)
    on = untied(statement, tests, left, right)
    if not single and _several(left, right):
        left, right = applied(statement, left, where), applied(statement, right, where)
        left, on = _filtered(left, on)
        right, on = _filtered(right, on)
    return Bound(Match(left.rel, right.rel, Join.INNER, conjoined(on), single), frame, left.kept | right.kept)


def _several(left: Bound, right: Bound) -> bool:
    return rows_per_unit(left.rel) != 1 and rows_per_unit(right.rel) != 1


def applied(statement: Statement, side: Bound, where: Sequence[Term]) -> Bound:
    """The rows for which those conditions hold that read this relation alone. One that keeps public rows stays as it is."""
    found = () if side.kept else within(where, side)
    if not found:
        return side
    true = holds(side.rel, side.kept)
    predicate = conjoined([test for test in read(statement, found, side.frame) if not true(test)])
    return side if predicate is None else replace(side, rel=Keep(side.rel, predicate))


def _filtered(side: Bound, tests: Sequence[Scalar]) -> tuple[Bound, tuple[Scalar, ...]]:
    """The relation with those conditions applied that read it alone, and the others."""
    own = frozenset(output(side.rel))
    found = [test for test in tests if columns(test) and columns(test) <= own]
    rest = tuple(test for test in tests if test not in found)
    predicate = conjoined(found)
    return (side if predicate is None else replace(side, rel=Keep(side.rel, predicate))), rest


def _check_read(statement: Statement, left: Open, right: Open, one: Step) -> None:
    """Refuses a join of released rows with a public table, or with other released ones, below the noise."""
    if left.released is not None or right.released is not None:
        message = "released rows join private ones directly, one list at a time"
        instead = "the private table first; or both joined in a subquery of their own, (SELECT .. FROM released JOIN ..)"
        raise statement.refuse("RELEASED_JOIN", message, at(one.node), instead)


# ---- public with public, private with public -----------------------------------------------------------------------------------------


def note_product(statement: Statement, left: Open, right: Open, on: Sequence[Scalar], node: exp.Expr) -> None:
    """Notes a join without an equality of columns: how many pairs of rows it has is looked up before it is worked out."""
    if not any(across(each, right.columns) for each in on) and left.tables and right.tables:
        most = MOST_PAIRS if not on else 10 * MOST_PAIRS  # all are kept, or few
        statement.products.append(Product((left.sql, right.sql), (*left.tables, *right.tables), most, place(node)))


def _public(statement: Statement, left: Open, right: Open, one: Step) -> Open:
    check_product(statement, left.most, right.most, at(one.node))
    names = public.places(left, right)
    equal, on, frame = conditions(statement, left.frame, right.frame, one)
    note_product(statement, left, right, (*equal, *on), at(one.node))
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


def _lookup(statement: Statement, bound: Bound, side: Open, one: Step, how: How, where: Sequence[Term], first: bool) -> Bound:
    """A private relation with a public one; `how` is seen from the private side, `first`: it is the left one."""
    if how is How.FULL:
        message = "FULL JOIN would keep rows of a public table, which belong to nobody, beside private ones without a partner"
        raise statement.refuse("FULL_JOIN", message, at(one.node), "a LEFT JOIN from the side whose rows are to be kept")
    _check_kept(statement, bound, how is How.LEFT, one)
    made, shown = closed(statement, side)
    left, right = (bound.frame, shown) if first else (shown, bound.frame)
    equal, others, frame = conditions(statement, left, right, one)
    if how is How.INNER:
        found = read(statement, between(where, bound, side), frame)
        others = (*others, *(c for c in found if c not in (*equal, *others) and (side.released is None or across(c, made.columns))))
    on = conjoined((*equal, *others))
    if side.released is not None:
        made, frame = fed_keys(statement, side.released, made, frame, conjuncts(on), at(one.node))
    rel = applied(statement, bound, kept_back(where) if how is How.RIGHT else where).rel
    if how is How.LEFT:
        return Bound(Lookup(rel, made, Join.LEFT, on), frame, bound.kept)
    kept = bound.kept | {made.name} if how is How.RIGHT else bound.kept
    return Bound(Lookup(rel, made, Join.INNER, on), frame, kept)


def _check_kept(statement: Statement, bound: Bound, keeps: bool, one: Step) -> None:
    """Refuses a join that would drop rows of a public relation which an outer join below keeps."""
    if bound.kept and not keeps:
        message = "rows of a public table that an outer join keeps would be dropped again by this join"
        raise statement.refuse("KEPT_PUBLIC", message, at(one.node), "the outer join with the public table as the last join")


# ---- private with private ------------------------------------------------------------------------------------------------------------


def _half(statement: Statement, left: Side, right: Side, one: Step) -> Side:
    """SEMI and ANTI JOIN: left rows with a partner, or without one. Only the left side is visible above."""
    match left, right:
        case Open(), Open():
            _check_read(statement, left, right, one)
            return replace(_public(statement, left, right, one), frame=left.frame)
        case Open(), Bound():
            message = f"{one.how.name} JOIN would keep rows of a public table by what is private"
            raise statement.refuse("SEMI_PUBLIC", message, at(one.node), "the private table on the left")
        case Bound(), Open():
            made, shown = closed(statement, right)
            equal, others, _ = conditions(statement, left.frame, shown, one)
            found = partnered(statement, left, made, (*equal, *others), one.how is How.ANTI)
        case Bound(), Bound():
            equal, others, _ = conditions(statement, left.frame, right.frame, one)
            found = partnered(statement, left, right, (*equal, *others), one.how is How.ANTI)
        case _:
            raise AssertionError("a relation is public or private")
    _check_kept(statement, left, False, one)
    if found is None:
        raise unit_missing(statement, left, right, one)
    return found


def _match(statement: Statement, left: Bound, right: Bound, one: Step, where: Sequence[Term]) -> Bound:
    """Two private relations within the unit. RIGHT is LEFT with the sides exchanged."""
    _check_kept(statement, left, one.how is How.LEFT, one)
    _check_kept(statement, right, one.how is How.RIGHT, one)
    if one.how in (How.LEFT, How.FULL):
        right = computed(statement, right)
    if one.how in (How.RIGHT, How.FULL):
        left = computed(statement, left)
    equal, others, frame = conditions(statement, left.frame, right.frame, one)
    tests = (*equal, *others)
    shown = tests if one.how is not How.INNER else (*tests, *read(statement, between(where, left, right), frame))
    if not any(tied(statement, c, left, right) for c in shown):
        raise unit_missing(statement, left, right, one)
    if one.how is How.INNER:
        return _inner(statement, left, right, tuple(dict.fromkeys(shown)), frame, where)
    on = untied(statement, tests, left, right)
    single = one_each(left.rel, tests) or one_each(right.rel, tests)
    if one.how is How.FULL:
        if 2 * size(left.rel) + 2 * size(right.rel) > MOST_NODES:
            raise statement.refuse("TOO_COMPLEX", "so many FULL JOINs on one another are not supported", at(one.node), "fewer, or LEFT JOINs")
        return full(statement, left, right, on, frame, single)
    first, second = (right, left) if one.how is How.RIGHT else (left, right)
    if not single and _several(left, right):
        first, second = applied(statement, first, where), applied(statement, second, kept_back(where))
        second, on = _filtered(second, on)
    return Bound(Match(first.rel, second.rel, Join.LEFT, conjoined(on), single), frame, left.kept | right.kept)


PLAIN = "the unit's column in both relations and its equality in ON, or the tables of the path joined directly, in a subquery if need be"


def unit_missing(statement: Statement, left: Side, right: Side, one: Step) -> Refused:
    """The refusal of a join of two private relations whose units nothing ties, with the condition that would."""
    message = "two private relations join on their privacy unit only, as a condition of its own (not under OR, not computed, not the null side)"
    text = suggestion(statement, left, right)
    if text is None:
        return statement.refuse("JOIN_ON_UNIT", message, at(one.node), PLAIN)
    place = "WHERE" if one.bare else "ON"
    if one.how is not How.INNER:
        message += "; of an outer join in ON, not in WHERE"
    if isinstance(one.on, exp.Or):
        return statement.refuse("JOIN_ON_UNIT", message, at(one.node), f"ON (.. OR ..) AND {text}, with parentheses around the OR")
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
    return [(("unit",) in tokens, f"{written(a)}.{written(f.name)} = {written(b)}.{written(g.name)}")] if tokens else []
