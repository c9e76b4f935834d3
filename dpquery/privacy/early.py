"""Which cells may be made before a join: those whose join only says to which group a unit belongs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from dpquery.plan.rel import CapRows, Compute, Group, Join, Keep, Lookup, Match, Private, Scan, Semi, Stack, Windowed, output, walk
from dpquery.plan.release import Bins, Elements, GroupCap, Idle, UnitTable
from dpquery.plan.scalar import Column, Scalar, columns
from dpquery.privacy.rows import rows_per_unit

Ids = frozenset[int]


@dataclass(frozen=True, slots=True)
class Early:
    """A unit's cell is made of its rows in `rows`; its keys are those of its row in `beside`, without which it has no cell."""

    rows: Private
    beside: Private


def early(table: UnitTable) -> Early | None:
    """L26. Cells may be made before a join that adds to all rows of a unit one and the same row.

    Given   a table whose keys depend on the unit alone (idle for UNIT_KEY), of parts that are sums; its input is an INNER match within the unit (on
            nothing else) of rows with a side that has at most one row of each unit (L9), below filters and columns that read the rows alone, and
            columns and lookups of one public row at most that read that side alone. (Columns of neither are the same on both sides; what reads
            columns of both is no key, no part, and no condition.) Keys read that side alone, parts the rows alone.
    Claim   the cells of each unit are those of `rows`, grouped by the unit alone, with the keys of its row in `beside`; there is none where the
            unit has no row in one of them. None: that is not shown.
    Proof   All of R[u] is rows[u] beside the one row of beside[u], or nothing where either is empty. A filter or a column that reads the rows alone
            acts on a pair as on its row; a column or a lookup that reads the other row alone gives all pairs one and the same, or (an INNER lookup)
            drops all of them. So all of R[u] has the keys of beside[u] and makes one cell, of the integers that rows[u] adds.
    Tight   One condition less would be wrong: test_l26_what_reads_both_sides_is_joined_first
    Source  The proof above; Yan and Larson 1995 (eager aggregation); docs/pitfalls.md A3.
    """
    if not isinstance(table.bounding, GroupCap) or table.bounding.idle is not Idle.UNIT_KEY:
        return None
    if any(isinstance(part.cell, Bins | Elements) for part in table.parts):
        return None
    found = _split(table.input)
    if found is None or any(isinstance(rel, Keep | Semi) for rel in walk(found.beside)):  # a filter on units leaves few rows to add up: join first
        return None
    rows, beside = _ids(output(found.rows)), _ids(output(found.beside))
    keys, parts = _read(key.value for key in table.keys), _read(value for part in table.parts for value in part.reads)
    return found if keys <= beside and parts <= rows else None


def _split(rel: Private) -> Early | None:
    """What stands above the match, moved to the side that it reads; columns of both sides are on neither, those of neither on both."""
    match rel:
        case Match(left=left, right=right, join=Join.INNER, on=None):
            if rows_per_unit(right) == 1:
                return Early(left, right)
            return Early(right, left) if rows_per_unit(left) == 1 else None
        case Keep(input=below, predicate=predicate):
            found = _split(below)
            kept = found is not None and _read([predicate]) <= _ids(output(found.rows))
            return replace(found, rows=Keep(found.rows, predicate)) if found is not None and kept else None
        case Compute(input=below, items=items):
            found = _split(below)
            return None if found is None else Early(_computed(found.rows, items), _computed(found.beside, items))
        case Lookup(input=below, on=on, public=public, fanout=fanout):
            found = _split(below)
            single = found is not None and fanout is not None and fanout <= 1
            read = _read([on]) - _ids(public.columns)
            if found is None or not single or not read <= _ids(output(found.beside)):
                return None
            return replace(found, beside=replace(rel, input=found.beside))
        case Match() | Scan() | Semi() | Stack() | CapRows() | Group() | Windowed():
            return None
        case _:
            assert_never(rel)


def _computed(side: Private, items: tuple[tuple[Column, Scalar], ...]) -> Private:
    """The side with those of the columns that read it alone."""
    known = _ids(output(side))
    own = tuple((column, value) for column, value in items if _read([value]) <= known)
    return Compute(side, own) if own else side


def _read(scalars: Iterable[Scalar | None]) -> Ids:
    return _ids(column for scalar in scalars if scalar is not None for column in columns(scalar))


def _ids(found: Iterable[Column]) -> Ids:
    return frozenset(column.id for column in found)
