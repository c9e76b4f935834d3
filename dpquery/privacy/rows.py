"""How many rows a unit can have in a relation: what the plan itself bounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from dpquery.plan.inside import Place, Placing
from dpquery.plan.rel import CapRows, Compute, Group, Join, Keep, Lookup, Match, Merge, Private, Scan, Semi, Stack, Windowed
from dpquery.plan.scalar import Call, Column, Literal, Scalar, conjuncts
from dpquery.privacy.locality import fixed


def rows_per_unit(rel: Private) -> int | None:
    """L9. The most rows that a unit can have here; None where the plan bounds nothing.

    Given   a table declared with one row per unit has it (registered); the fan-out of each lookup was computed from its public table; of a
            match that is `single`, each row of one of the sides meets at most one of the other: by a column whose values differ in all rows of a
            unit (a registered unique key; of groups the only key that is not the unit's), a side with one row of each unit, or groups (L21) of
            which ON compares every key.
    Claim   every R[u] has at most the returned number of rows.
    Proof   Scan: one, if registered. Keep, Compute and Semi add no row, CapRows keeps at most its number. Lookup: each row becomes at most `fanout`
            rows (LEFT: at least one). Match: at most the product (LEFT: each left row gives at least one). `single`: of an INNER match each
            row of one of the sides occurs once, so there are at most as many as the larger side has; LEFT adds at most the left side's.
            Stack: the sum for UNION, the smaller one for INTERSECT, the left one for EXCEPT.
            Group: no more than there are rows; one where all rows of a unit agree on the keys (L10). Windowed: as many as there are; a filter
            that keeps ROW_NUMBER, over partitions that are whole units (L10), at or below k leaves k of them.
            What rests on it: where the result is 1 and no cap on groups is lowered, each row is taken for a cell, and cells may be made before a
            join (L26): there the price rests on it. `single` has no part in that: it makes the least of the product and of max(l, r), or l + r,
            which is 1 or less only where the product is. All else that reads the number sets limits that are enforced.
    Tight   test_l9_rows_per_unit_is_reached, test_l9_matches_are_reached, test_l9_groups_are_reached,
            test_l9_first_rows_are_reached
    Source  docs/pitfalls.md A5, N9.
    """
    match rel:
        case Scan(max_rows_per_unit=declared):
            return 1 if declared == 1 else None
        case Keep():
            return _first_rows(rel)
        case Compute(input=below) | Semi(left=below) | Windowed(input=below):
            return rows_per_unit(below)
        case CapRows(input=below, rows=rows):
            most = rows_per_unit(below)
            return rows if most is None else min(rows, most)
        case Lookup(input=below, join=join, fanout=fanout):
            most = rows_per_unit(below)
            return None if most is None or fanout is None else most * _met(fanout, join)
        case Match():
            return _matched(rel)
        case Group(input=below, keys=keys):
            return 1 if _ids(keys) <= fixed(below) else rows_per_unit(below)
        case Stack():
            return _stacked(rel)
        case _:
            assert_never(rel)


def _met(count: int, join: Join) -> int:
    """The most rows that a row becomes which meets so many: LEFT keeps one that meets none."""
    return count if join is Join.INNER else max(1, count)


def _first_rows(rel: Keep) -> int | None:
    """The rows that a filter leaves of a unit: no more than it lets ROW_NUMBER count, where each unit is one partition."""
    found, below = rows_per_unit(rel.input), rel.input
    limits = {c.id: most for c, most in map(_at_most, conjuncts(rel.predicate)) if c is not None}
    while isinstance(below, Keep | Compute | Windowed):
        if isinstance(below, Windowed) and below.column.id in limits and _numbers(below):
            most = limits[below.column.id]
            found = most if found is None else min(found, most)
        below = below.input
    return found


def _numbers(rel: Windowed) -> bool:
    """Whether it numbers all rows of each unit."""
    return isinstance(rel.item, Placing) and rel.item.function is Place.ROW_NUMBER and _ids(rel.partition) <= fixed(rel.input)


def _at_most(condition: Scalar) -> tuple[Column | None, int]:
    """A column of numbers that count rows, and how many of these the condition can keep."""
    match condition:
        case Call(function="eq", args=(Column() as column, Literal(value=int()))):
            return column, 1
        case Call(function="le", args=(Column() as column, Literal(value=int(most)))) if not isinstance(most, bool):
            return column, max(0, most)
        case Call(function="lt", args=(Column() as column, Literal(value=int(most)))) if not isinstance(most, bool):
            return column, max(0, most - 1)
        case _:
            return None, 0


def _matched(rel: Match) -> int | None:
    left, right = rows_per_unit(rel.left), rows_per_unit(rel.right)
    if left is None or right is None:
        return None
    product = left * _met(right, rel.join)
    if not rel.single:
        return product
    return min(product, max(left, right) if rel.join is Join.INNER else left + right)


def _stacked(rel: Stack) -> int | None:
    left, right = rows_per_unit(rel.left), rows_per_unit(rel.right)
    match rel.how:
        case Merge.UNION_ALL | Merge.UNION:
            return None if left is None or right is None else left + right
        case Merge.INTERSECT:
            return min((most for most in (left, right) if most is not None), default=None)
        case Merge.EXCEPT:
            return left
        case _:
            assert_never(rel.how)


def _ids(columns_: Iterable[Column]) -> frozenset[int]:
    return frozenset(c.id for c in columns_)
