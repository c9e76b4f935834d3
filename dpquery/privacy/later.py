"""Relations that are filled between the releases of a statement: what is claimed of a release before it is known what they hold."""

from __future__ import annotations

from dpquery.errors import Fault
from dpquery.plan.rel import Filling, Lookup, walk
from dpquery.plan.release import GroupCap, Idle, Release, ReleasedKeys
from dpquery.plan.scalar import conjuncts, equated


def met_once(rel: Lookup) -> str:
    """L25. A join with a relation that is filled later multiplies no row, whatever it will hold.

    Given   the public relation will hold one row at most (ROW), or rows that all differ (KEYS); of KEYS each column stands in an equality of ON
            with an expression of its type that reads none of its columns.
    Claim   a private row meets at most one of its rows, so that a fan-out of 1 is true (R4, L9, L10).
    Proof   ROW: there are no two. KEYS: rows that one private row meets have its values in all of their columns, and so are one row. A NULL
            equals nothing.
    Tight   A row that comes twice is met twice: test_l25_a_list_with_a_row_twice_is_caught
    Source  docs/pitfalls.md N9, A3.
    """
    if rel.public.filled is Filling.KEYS:
        own = {column.id for column in rel.public.columns}
        if equated(conjuncts(rel.on), own) != own:
            raise Fault("PLAN_BROKEN", "a released list is joined by less than all of its columns (L25)")
    return "L25"


def any_list(release: Release) -> str:
    """C15. Where the key list is released by an earlier part of the statement, claims hold for every list.

    Given   a release whose keys are a list that is filled later, of different tuples; rows of other keys are dropped.
    Claim   C6, C7 or C9 to C12 bound its sums without a number of keys, and no cap is idle because of one: l0 is the cap on groups, whatever the
            list; or 1, where keys depend on the unit alone (L10).
    Proof   Given what was released before, the list is a constant, the same for neighbours (P8). Dropping the rows of other keys keeps cells
            functions of their unit's rows (L8), and a cap that is lowered keeps a unit in so many groups whatever their number. C5, and the
            number of keys in C6 and in C10 to C12, would read the list: a cap that is idle for its sake is a Fault here, and of a list that is not
            known there is no number (C1). Nor are its groups compared (C17), for which a cap would be idle as well: R1 does that with known lists
            alone, and C3 and the lowering fail where there is none. All of its keys appear with noise of their own (M6).
    Tight   More keys than the cap: test_c15_a_unit_reaches_the_cap_on_a_released_list
    Source  Dwork and Roth 2014, theorem 3.16; docs/pitfalls.md A2, A3.
    """
    bounding = release.table.bounding
    if isinstance(release.keys, ReleasedKeys) and isinstance(bounding, GroupCap) and bounding.idle in (Idle.ALL_KEYS, Idle.NO_KEYS):
        raise Fault("PLAN_BROKEN", "a cap on groups is left out for the sake of a list that is not known (C15)")
    return "C15"


def any_cap(release: Release) -> tuple[str, ...]:
    """C16. Where aggregates are in units of a cap that an earlier part of the statement releases, claims hold for every cap.

    Given   aggregates whose cap is the one column of a relation that is filled later with one row at most (L25), a number above 0 or NULL.
    Claim   the cells of their parts lie in the bounds of C2, which no cap enters, and so C4 to C8 and the price are the same whatever it is. What is
            released times the cap is a function of released values.
    Proof   Given what was released before, the cap is a constant, the same for neighbours (P8). x / cap is then an expression of the unit's own row
            (L4), whose grid and clamps are whole numbers in the plan, fixed beforehand (C2): however small the cap is, no cell leaves them. The
            noise is of that grid. Times the cap, the noisy integer is what both noisy releases make of each other (Dwork and Roth, 2.1).
    Tight   A cap far below the values: test_c16_a_unit_reaches_the_claim_under_any_cap
    Source  Dwork and Roth 2014, proposition 2.1 and theorem 3.16; docs/pitfalls.md A3, C3.
    """
    caps = {one.cap for one in release.aggregates if one.cap is not None}
    rows = {rel.public.name: rel for rel in walk(release.table.input) if isinstance(rel, Lookup)}
    if any(name not in rows or rows[name].public.filled is not Filling.ROW or len(rows[name].public.columns) != 1 for name in caps):
        raise Fault("PLAN_BROKEN", "a cap is not one released value (C16)")
    return ("C16",) if caps else ()
