"""What narrows a list of keys: every condition that holds in all rows and reads public relations alone, however WHERE and joins spell it.

A row of the statement holds one row of each public relation that it was joined to, so that its key is among those of the public rows joined by the
same conditions. Private columns stand for the public ones that they equal in every row. Less conditions only lengthen the list. Conditions are read
as they are written, too, not only with computed columns put in their place: a list may stand in just that spelling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple, assert_never

from dpquery.plan.beside import Beside, Near
from dpquery.plan.functions import call
from dpquery.plan.rel import CapRows, Compute, Group, Join, Keep, Lookup, Match, Private, Public, Scan, Semi, Stack, Windowed
from dpquery.plan.scalar import Column, Scalar, columns, conjuncts, replaced, walk
from dpquery.sql.sides import Bound, equality, facts, firm

MOST_NODES = 1000  # of a condition with computed columns written out: one that reads another twice is twice as long


class Narrowed(NamedTuple):
    """The conditions on a source of keys, and the public relations that they read beside it."""

    prune: tuple[Scalar, ...]
    beside: tuple[Beside, ...]


@dataclass(frozen=True, slots=True)
class Conditions:
    """All that is known of the rows: conditions, and the public relations that each row was joined to or compared with."""

    spelled: tuple[Scalar, ...]  # as they are written of the rows: among these a list is looked for
    facts: tuple[Scalar, ...]  # these and all that follows from them
    near: tuple[Beside, ...]
    crossed: frozenset[str]  # joined to each row, by no condition

    def narrowed(self, base: frozenset[int], stand: Mapping[Scalar, Scalar]) -> Narrowed:
        """What is true of the rows of a source with these columns; `stand` puts them in place of what they are values of."""
        here = [(fact, _ids(replaced(fact, stand))) for fact in self.facts]
        ids, found, waiting = set(base), list[Beside](), [one for one in self.near if one.public.filled is None and not _own(one) & base]
        while (more := next((one for one in waiting if self._joins(one, ids, here, stand)), None)) is not None:
            waiting.remove(more)
            found.append(more)
            ids |= _own(more)
        prune = tuple(fact for fact, read in here if read and read <= ids)
        for one in waiting:
            on = tuple(part for part in one.on if _ids(replaced(part, stand)) <= ids | _own(one))
            if (one.how is Near.SOME and (on or not one.on)) or (one.how is Near.NONE and on == one.on):
                found.append(Beside(one.public, one.how, on))
        return Narrowed(prune, tuple(found))

    def late(self, ids: frozenset[int]) -> bool:
        """Whether these columns are compared with what the statement releases before: that is not known when keys are listed."""
        filled = [one for one in self.near if one.public.filled is not None]
        public = frozenset(c.id for one in self.near if one.how in (Near.JOINED, Near.LEFT) for c in one.public.columns) | ids
        for one in filled:
            parts = self.facts if one.how in (Near.JOINED, Near.LEFT) else one.on
            if any(read & _own(one) and read & ids and read <= public | _own(one) for read in map(_ids, parts)):
                return True
        return False

    def _joins(self, one: Beside, ids: set[int], here: Sequence[tuple[Scalar, frozenset[int]]], stand: Mapping[Scalar, Scalar]) -> bool:
        """Whether a condition that can be read once the relation is joined tells of it."""
        own, whole = _own(one), ids | _own(one)
        match one.how:
            case Near.JOINED:
                near = whole.union(*(_own(other) for other in self.near if other.how in (Near.JOINED, Near.LEFT)))
                told = [read for _, read in here if read & own and read <= near]
                return any(read & ids for read in told) or bool(told and one.public.name in self.crossed)
            case Near.LEFT:
                known = all(_ids(replaced(part, stand)) <= whole for part in one.on)
                return known and any(read & own for _, read in here)
            case Near.SOME | Near.NONE:
                return False
            case _:
                assert_never(one.how)


def conditions(side: Bound) -> Conditions:
    """What is known of the rows. Of those that an outer join keeps of a public relation, its own columns alone (KEPT_PUBLIC)."""
    steady = firm(side.rel)
    spelled = _as_keys(facts(side.rel, side.kept), steady)
    if side.kept:
        return Conditions(spelled, _each(spelled, _in_public(spelled, _equal(spelled, steady))), (), frozenset())
    relations = list(_near(side.rel))
    made: dict[Scalar, Scalar] = {}
    for below in relations:
        if isinstance(below, Compute):
            made |= {column: value for column, value in ((column, replaced(value, made)) for column, value in below.items) if _is_small(value)}
    written = facts(side.rel, through=True)
    known = _each(written, (value for value in (replaced(fact, made) for fact in written) if _is_small(value)))
    filled = frozenset(below.public.name for below in relations if isinstance(below, Lookup) and below.public.filled is not None)
    equal = _equal(known, steady, filled)
    near = tuple(_beside(below, {**made, **equal}) for below in relations if not isinstance(below, Compute))
    crossed = frozenset(below.public.name for below in relations if isinstance(below, Lookup) and below.on is None)
    return Conditions(spelled, _each(spelled, known, _in_public(known, equal)), near, crossed)


def _as_keys(known: Sequence[Scalar], steady: frozenset[int]) -> tuple[Scalar, ...]:
    """The conditions, and each once more with public columns in place of the private ones that they equal in every row."""
    equal: dict[Scalar, Scalar] = {}
    for pair in filter(None, map(equality, known)):
        for one, other in (pair, pair[::-1]):
            if one.public is None and other.public is not None and other.id in steady:
                equal.setdefault(one, other)
    again = [replaced(fact, equal) for fact in known if equality(fact) is None and columns(fact) & equal.keys()]
    return (*known, *again)


def _each(*lists: Iterable[Scalar]) -> tuple[Scalar, ...]:
    """Each condition once, in order."""
    return tuple(dict.fromkeys(chain.from_iterable(lists)))


def _is_small(value: Scalar) -> bool:
    return not any(islice(walk(value), MOST_NODES, None))


def _beside(below: Lookup | Semi, instead: Mapping[Scalar, Scalar]) -> Beside:
    on = tuple(replaced(part, instead) for part in conjuncts(below.on))
    if isinstance(below, Lookup):
        return Beside(below.public, Near.JOINED) if below.join is Join.INNER else Beside(below.public, Near.LEFT, on)
    if not isinstance(below.right, Public):
        raise AssertionError("partners within the unit narrow no list")
    return Beside(below.right, Near.NONE if below.negated else Near.SOME, on)


def _near(rel: Private) -> Iterator[Lookup | Semi | Compute]:
    """The joins that every row went through, and what was computed of it, the lowest first."""
    match rel:
        case Scan() | Stack():
            return
        case Keep(input=below) | CapRows(input=below) | Windowed(input=below) | Group(input=below):
            yield from _near(below)
        case Compute(input=below) | Lookup(input=below):
            yield from _near(below)
            yield rel
        case Semi(left=left, right=right):
            yield from _near(left)
            if isinstance(right, Public):
                yield rel
        case Match(left=left, right=right, join=join):
            yield from _near(left)
            if join is Join.INNER:
                yield from _near(right)
        case _:
            assert_never(rel)


def _equal(known: Sequence[Scalar], steady: frozenset[int], filled: frozenset[str] = frozenset()) -> dict[Scalar, Column]:
    """The columns that equal a public one in every row, by way of others too, and the first such public column of each, best of a table."""
    classes: list[set[Column]] = []
    for pair in filter(None, map(equality, known)):
        met = [one for one in classes if one & set(pair)]
        classes = [one for one in classes if one not in met] + [set(pair).union(*met)]
    found: dict[Scalar, Column] = {}
    for one in classes:
        public = sorted((c for c in one if c.public is not None and c.id in steady), key=lambda c: (c.public in filled, c.id))
        found |= {c: public[0] for c in one if public and c != public[0] and (c.public is None or c in public)}
    return found


def _in_public(known: Sequence[Scalar], equal: Mapping[Scalar, Column]) -> tuple[Scalar, ...]:
    """The equalities of public columns, and the conditions once more with public columns in place of private ones."""
    private: dict[Scalar, Scalar] = {one: other for one, other in equal.items() if isinstance(one, Column) and one.public is None}
    same = tuple(call("eq", one, other) for one, other in equal.items() if one not in private)
    return (*same, *(replaced(fact, private) for fact in known if equality(fact) is None and columns(fact) & private.keys()))


def _ids(value: Scalar) -> frozenset[int]:
    return frozenset(column.id for column in columns(value))


def _own(one: Beside) -> frozenset[int]:
    return frozenset(c.id for c in one.public.columns)
