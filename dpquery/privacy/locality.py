"""Whose rows are whose: the L-lemmas. What stands below the noise is, unit by unit, a function of that unit's rows and public tables.

Written R[u] for the rows of relation R whose unit is u. R is *local* if R[u] is a function of u's base rows and public tables alone, and is
empty where u has none: then adding, removing or replacing u leaves R[v] as it is for every other unit v.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from dpquery.errors import Fault
from dpquery.plan.inside import Placing, parts
from dpquery.plan.rel import CapRows, Compute, Group, Join, Keep, Lookup, Match, Merge, Private, Public, Scan, Semi, Stack, Windowed, inputs, output
from dpquery.plan.release import UnitTable
from dpquery.plan.scalar import Column, Scalar, columns
from dpquery.privacy.later import met_once


def local(rel: Private) -> tuple[str, ...]:
    """L1. The relation is local. Returns the ids of the lemmas that its nodes use, in order; a Fault where a node does not meet its lemma.

    Given   the relation is built from the operators below and no others.
    Claim   it is local.
    Proof   By induction over the tree: each leaf is local (L2), each operator keeps it so (L3 to L7, L13, L14, L21, L22). The match is exhaustive:
            the type checker names an operator that has no lemma. A public relation that is filled between releases is a constant, given what was
            released before (P8).
    Tight   Nothing to reach: the rows of others stay equal, not near. That an operator which looks at others is seen:
            test_l1_what_looks_at_other_units_is_caught.
    Source  Wilson et al. 2020, section 3 (user-level queries over owned rows); docs/pitfalls.md N7.
    """
    found = {"L1", _lemma(rel)}
    if isinstance(rel, Lookup) and rel.public.filled is not None:
        found.add(met_once(rel))
    for below in inputs(rel):
        found.update(local(below))
    return tuple(sorted(found))


def _lemma(rel: Private) -> str:
    match rel:
        case Scan():
            return scan(rel)
        case Keep():
            return keep(rel)
        case Compute():
            return compute(rel)
        case Lookup():
            return lookup(rel)
        case Match():
            return match_units(rel)
        case Semi():
            return semi(rel)
        case Stack():
            return stack(rel)
        case CapRows():
            return cap_rows(rel)
        case Group():
            return group(rel)
        case Windowed():
            return windowed(rel)
        case _:
            assert_never(rel)


def scan(rel: Scan) -> str:
    """L2. A scan is local.

    Given   each row's unit is found in the row itself or along a path of registered unique, not-NULL keys; rows without one are dropped.
    Claim   the scan is local.
    Proof   u's base rows are, by definition of the neighbouring relation, all rows that reach u by their paths. A row is kept or dropped, and
            its columns are cast one by one, by itself and its own path. A row of u stays u's whichever other units are there.
    Tight   As L1, with a scan that keeps one row of each kind: test_l1_what_looks_at_other_units_is_caught
    Source  McSherry 2009 (stable transformations, here unit by unit); docs/pitfalls.md A1, C6, N5.
    """
    return _reads("L2", (), {c.column.id for c in rel.columns})


def keep(rel: Keep) -> str:
    """L3. A filter keeps locality.

    Given   the input is local, the predicate reads the input's columns alone and is a total, deterministic function of one row.
    Claim   the kept rows are local.
    Proof   R[u] is filtered row by row; nothing of another unit is read, and no rows come from none.
    Tight   As L1, with a predicate that counts all rows: test_l1_what_looks_at_other_units_is_caught
    Source  McSherry 2009.
    """
    return _reads("L3", (rel.predicate,), _ids(output(rel.input)))


def compute(rel: Compute) -> str:
    """L4. Row-wise columns keep locality.

    Given   the input is local, each new column is a total, deterministic function of the input's columns of the same row.
    Claim   the extended rows are local.
    Proof   R[u] is mapped row by row, one row to one.
    Tight   As L1, with a column that counts all rows: test_l1_what_looks_at_other_units_is_caught
    Source  McSherry 2009.
    """
    return _reads("L4", (value for _, value in rel.items), _ids(output(rel.input)))


def lookup(rel: Lookup) -> str:
    """L5. A join with a public relation keeps locality.

    Given   the input is local; ON reads the input's and the public relation's columns alone; every output row holds one private row (INNER or
            LEFT: no public row is kept by itself).
    Claim   the joined rows, owned by the private row's unit, are local.
    Proof   R[u] is joined with a table that is the same for all data sets; each private row gives rows that depend on it and that table.
    Tight   As L1, with a public row that is kept by itself: test_l1_what_looks_at_other_units_is_caught
    Source  Wilson et al. 2020, section 3; docs/pitfalls.md A1 (a kept public row would exist because of no unit at all).
    """
    return _reads("L5", () if rel.on is None else (rel.on,), _ids(output(rel.input)) | _ids(rel.public.columns))


def match_units(rel: Match) -> str:
    """L6. A join of two private relations within the unit keeps locality.

    Given   both inputs are local; the join condition is the equality of the two units and `on`, which reads both inputs' columns alone.
    Claim   the joined rows, owned by the left (and equal right) unit, are local. LEFT keeps rows of the left unit alone.
    Proof   A pair of rows of different units never joins, so R[u] is a function of left[u] and right[u]; a left row without a partner is
            null-extended by looking at right[u] alone. Empty where left[u] is.
    Tight   As L1, with pairs of different units: test_l1_what_looks_at_other_units_is_caught
    Source  Wilson et al. 2020, section 3 (joins on the owner); docs/pitfalls.md A8, W2.
    """
    return _reads("L6", () if rel.on is None else (rel.on,), _ids(output(rel.left)) | _ids(output(rel.right)))


def cap_rows(rel: CapRows) -> str:
    """L7. A cap on each unit's rows keeps locality.

    Given   the input is local; the kept rows of a unit are its first ones by a salted hash of the row, ties by all columns.
    Claim   the kept rows are local, at most `rows` of each unit.
    Proof   For a fixed salt the order is a function of the row, equal rows being interchangeable; the choice reads R[u] alone.
    Tight   As L1, with a cap over all units: test_l1_what_looks_at_other_units_is_caught. So many rows are kept: test_a5_caps_hold_on_data.
    Source  Wilson et al. 2020, section 3; docs/pitfalls.md A4, W3.
    """
    if rel.rows < 1:
        raise Fault("PLAN_BROKEN", "a row cap lies below 1")
    return _reads("L7", (), set())


def semi(rel: Semi) -> str:
    """L13. Keeping the rows with a partner, or those without one, keeps locality.

    Given   the left input is local; the right one is public, or local and compared within the unit: the condition is the equality of the two
            units and `on`, which reads both inputs' columns alone.
    Claim   the kept rows, owned by the left unit, are local; so are those left out.
    Proof   Whether a row of left[u] stays depends on that row and on right[u], or on a table that is the same for all data sets. Each left row
            is kept once or not at all, and none comes from the right: empty where left[u] is.
    Tight   As L1, with partners of other units: test_l1_what_looks_at_other_units_is_caught
    Source  Wilson et al. 2020, section 3; docs/pitfalls.md A8.
    """
    right = rel.right.columns if isinstance(rel.right, Public) else output(rel.right)
    return _reads("L13", () if rel.on is None else (rel.on,), _ids(output(rel.left)) | _ids(right))


def group(rel: Group) -> str:
    """L21. Aggregates within the unit keep locality.

    Given   the input is local; rows are grouped by their unit and the keys, which are columns of the input; aggregates read its columns alone, and
            each is a total, deterministic function of the bag of its values.
    Claim   the groups, owned by their unit, are local.
    Proof   A group holds rows of one unit, so R[u] is a function of input[u], whatever the order in which rows come; a unit without rows has no
            group. (Without the unit among the keys, and without any key, there would be groups of all units and of none.)
    Tight   As L1, with groups of all units: test_l1_what_looks_at_other_units_is_caught
    Source  Wilson et al. 2020, section 3; docs/pitfalls.md A4 and H (a ROLLUP's grand total is everybody's).
    """
    known = _ids(output(rel.input))
    if not _ids(rel.keys) <= known:
        raise Fault("PLAN_BROKEN", "a key is no column of the relation that is grouped")
    return _reads("L21", (scalar for _, item in rel.items for scalar in parts(item)), known)


def windowed(rel: Windowed) -> str:
    """L22. Windows within the unit keep locality.

    Given   the input is local; partitions are of one unit; partition, order and function read the input's columns alone; a function that tells
            equal rows of the order apart has all columns of the input as further terms, so that rows it takes for equal are equal; frames of RANGE
            begin at the first row and end with the current one's equals; those of ROWS count rows of the partition in that order.
    Claim   the rows with their new column are local.
    Proof   A partition holds rows of one unit, so the new value is a function of input[u]: of the bag of its rows, as equal rows are
            interchangeable, in whatever part of the order a frame lies. No row comes or goes.
    Tight   As L1, with partitions of all units: test_l1_what_looks_at_other_units_is_caught
    Source  Wilson et al. 2020, section 3; docs/pitfalls.md A4 and H (ties that leave out a column moved thousands of other units).
    """
    if rel.frame is not None and not rel.frame.rows and (rel.frame.preceding is not None or rel.frame.following):
        raise Fault("PLAN_BROKEN", "a frame of RANGE counts rows")
    read = [*rel.partition, *(term.column for term in rel.order)]
    if isinstance(rel.item, Placing):
        read += [] if rel.item.value is None else [rel.item.value]
        return _reads("L22", read, _ids(output(rel.input)))
    return _reads("L22", (*read, *parts(rel.item)), _ids(output(rel.input)))


def stack(rel: Stack) -> str:
    """L14. Merging two private relations unit by unit keeps locality.

    Given   both inputs are local; the values of each branch read its own columns alone. Rows are the same only where unit and all columns are.
    Claim   the merged rows, each owned by the unit of the row that it comes from, are local.
    Proof   R[u] is the bag sum, union, intersection or difference of left[u] and right[u], their rows mapped one by one: rows of two units are
            never the same. Empty where both are.
    Tight   As L1, with a union of rows whatever their units: test_l1_what_looks_at_other_units_is_caught
    Source  McSherry 2009 (partition by the unit); docs/pitfalls.md A8.
    """
    if not len(rel.columns) == len(rel.ours) == len(rel.theirs):
        raise Fault("PLAN_BROKEN", "the branches of a stack differ in their numbers of columns")
    _reads("L14", rel.ours, _ids(output(rel.left)))
    return _reads("L14", rel.theirs, _ids(output(rel.right)))


def cells(table: UnitTable) -> str:
    """L8. Cells are functions of their unit's rows.

    Given   a local input; keys, values and filters read its columns alone.
    Claim   for a fixed salt, the cells of a unit (its integers per group and part), before and after the clamps and the group cap, are a
            function of that unit's rows and public tables, and there are none where it has no rows.
    Proof   Rows fall into groups and add their integers one by one; clamps act on one cell; a set of values (C9) keeps those that come first by a
            salted hash of (unit, key, value), ties by the value; the cap ranks a unit's groups by a salted hash of
            (unit, key), which ties to nothing of others. A cell exists only where a row of the unit fell into the group.
    Tight   As L1, with groups ranked by how many units they have: test_l8_groups_ranked_by_all_units_are_caught
    Source  Wilson et al. 2020, section 3; docs/pitfalls.md A3, N4.
    """
    return _reads("L8", _scalars(table), _ids(output(table.input)))


def _scalars(table: UnitTable) -> Iterable[Scalar]:
    yield from (key.value for key in table.keys)
    for part in table.parts:
        yield from part.reads


def fixed(rel: Private) -> frozenset[int]:
    """L10. Ids of the columns that depend on the unit alone: all rows of a unit agree on each of them.

    Given   one-row-per-unit tables are registered; the fan-out of each lookup was computed from its public table.
    Claim   for every u, all rows of R[u] hold the same value in each returned column.
    Proof   Scan of one row per unit: there is one row. Any scan: the unit's own columns hold u. Keep, Semi, CapRows: fewer rows, same values.
            Windowed: the input's. Compute: a function of fixed columns. INNER Match: a row holds a left row's and a right row's values, each fixed.
            LEFT Match: the left row's; the right side's may be NULL in some rows and not in others. Lookup: the private row's values; the public
            row's too if at most one public row can meet a private one and ON reads fixed columns alone, for then ON selects the same public rows for
            all of R[u], at most one: that row for all, or none for all (LEFT: NULL for all). Group: keys hold values of input[u]; where all rows of a
            unit agree on all keys there is one row. Stack: what holds the unit (L12); of
            EXCEPT what comes of fixed columns of the left, as its rows are left ones.
    Tight   One column more would be wrong: test_a3_outer_join_is_not_fixed, test_a3_lookup_with_fan_out_is_not_fixed,
            test_a3_lookup_by_a_row_column_is_not_fixed
    Source  docs/pitfalls.md A3 and E12.
    """
    match rel:
        case Scan(columns=cols, max_rows_per_unit=1):
            return frozenset(c.column.id for c in cols)
        case Scan(unit_columns=own):
            return own
        case Keep(input=below) | CapRows(input=below) | Semi(left=below) | Windowed(input=below):
            return fixed(below)
        case Compute(input=below, items=items):
            known = fixed(below)
            return known | {column.id for column, value in items if depends_on(value, known)}
        case Lookup():
            return _fixed_lookup(rel)
        case Match(left=left, right=right, join=join):
            return fixed(left) | fixed(right) if join is Join.INNER else fixed(left)
        case Group(input=below, keys=keys):
            known = fixed(below)
            return _ids(output(rel)) if _ids(keys) <= known else _ids(keys) & known
        case Stack(left=left, columns=made, ours=ours, how=Merge.EXCEPT):
            known = fixed(left)
            return owning(rel) | {column.id for column, value in zip(made, ours, strict=True) if depends_on(value, known)}
        case Stack():
            return owning(rel)
        case _:
            assert_never(rel)


def _fixed_lookup(rel: Lookup) -> frozenset[int]:
    known = fixed(rel.input)
    public = _ids(rel.public.columns)
    single = rel.fanout is not None and rel.fanout <= 1
    read = frozenset() if rel.on is None else _ids(columns(rel.on))
    return known | public if single and read - public <= known else known


def depends_on(value: Scalar, known: frozenset[int]) -> bool:
    """L11. Whether an expression reads the known columns alone; literals read none.

    Given   all rows of a unit agree on the known columns.
    Claim   if true, they agree on the expression.
    Proof   Expressions are deterministic functions of the columns they read, all of which are known.
    Tight   One column more would be wrong: test_h_case_over_a_row_column_is_not_a_unit_key
    Source  docs/pitfalls.md A3 (GROUP BY CASE WHEN v.amount > 10 THEN u.country ..).
    """
    return _ids(columns(value)) <= known


def owning(rel: Private) -> frozenset[int]:
    """L12. Ids of the columns that hold the row's own unit in every row, never NULL.

    Given   each scan names the columns that carry its unit unmodified; its rows have a unit.
    Claim   in every row the returned columns equal the row's unit, a text so far as a column holds it (4096 characters). No privacy rests on that
            equality: plans compare and group the units themselves, and L10 needs but a function of them.
    Proof   As L10: true at the scan; kept by filters, semi joins, computed columns, windows, caps, lookups (the private row stays whole) and
            INNER matches (both units are equal); of a LEFT match on the left side alone, as the right side's may be NULL. Of a group its keys,
            whose rows are one unit's; of a stack what both branches give so.
    Tight   One column more would be wrong: test_distinct_units_from_a_null_side, test_count_distinct_of_the_null_side_counts_units_with_rows
    Source  docs/pitfalls.md C6.
    """
    match rel:
        case Scan(unit_columns=own):
            return own
        case Keep(input=below) | CapRows(input=below) | Compute(input=below) | Lookup(input=below) | Semi(left=below) | Windowed(input=below):
            return owning(below)
        case Match(left=left, right=right, join=join):
            return owning(left) | owning(right) if join is Join.INNER else owning(left)
        case Group(input=below, keys=keys):
            return owning(below) & _ids(keys)
        case Stack(left=left, right=right, columns=made, ours=ours, theirs=theirs):
            first, second = owning(left), owning(right)
            return frozenset(c.id for c, one, other in zip(made, ours, theirs, strict=True) if _is_of(one, first) and _is_of(other, second))
        case _:
            assert_never(rel)


def _is_of(value: Scalar, known: frozenset[int]) -> bool:
    return isinstance(value, Column) and value.id in known


def _ids(found: Iterable[Column]) -> frozenset[int]:
    return frozenset(column.id for column in found)


def _reads(lemma: str, scalars: Iterable[Scalar], given: Iterable[int]) -> str:
    """The lemma's id, if the expressions read nothing but the given columns."""
    known = frozenset(given)
    if not all(_ids(columns(scalar)) <= known for scalar in scalars):
        raise Fault("PLAN_BROKEN", f"an expression reads what its relation does not hold ({lemma})")
    return lemma
