"""Draft -> Release: caps put in, idle ones proven idle, cards asked for their parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import assert_never

from dpquery.aggregates import CARDS, Planned, scaled
from dpquery.aggregates.leading import how
from dpquery.errors import Fault, Refused
from dpquery.plan.draft import AggregateAsk, Contributions, Draft
from dpquery.plan.extent import numbers
from dpquery.plan.leading import Lead, Leading
from dpquery.plan.rel import CapRows, Compute, Group, Keep, Lookup, Match, Private, Public, Scan, Semi, Stack, Windowed, output, walk
from dpquery.plan.release import (
    Aggregate,
    Bounding,
    GroupCap,
    Idle,
    Key,
    Keys,
    ListedKeys,
    NoKeys,
    One,
    Part,
    Present,
    PrivateKeys,
    Release,
    ReleasedKeys,
    RowWeights,
    UnitTable,
)
from dpquery.plan.scalar import Call, Column, columns, conjuncts
from dpquery.privacy.contribution import enforced, sensitivities
from dpquery.privacy.early import early
from dpquery.privacy.later import any_cap, any_list
from dpquery.privacy.locality import cells, depends_on, fixed, local, owning
from dpquery.privacy.raced import best_of
from dpquery.privacy.rows import rows_per_unit
from dpquery.values.types import INTEGER, Adjacency, Value

LARGEST_FANOUT = 10_000  # public rows that one private row may meet in all
FREE_FANOUT = 100  # beyond which the private input is capped
MOST_KEYS = 10_000
MOST_NUMBERS = 2**24  # noisy integers of a release: they are drawn and kept in the memory of who asks
COUNT_OF_UNITS = Part(One(), Present())


@dataclass(frozen=True, slots=True)
class Facts:
    """What was looked up in the public tables before the charge: the fan-out of each lookup by its public relation's name, and the key list.

    `keys` is None where keys are private or absent, or a draft's own list is filled later. `key_origin` says where the list comes from, `partial`
    beyond which of that rows may have keys. `beside` is how many groups each key of a list that is filled later has, by the other keys.
    """

    fanouts: Mapping[str, int]
    keys: tuple[tuple[Value, ...], ...] | None = None
    key_origin: str = ""
    partial: str = ""
    beside: int = 1


def bound(draft: Draft, facts: Facts) -> Release:
    """R1. The draft with every bound in its plan; or Refused where one is missing.

    Given   a draft, and facts that are functions of public tables.
    Claim   the release meets the preconditions of L1, L8, C1 and P5; it is a function of the draft and the facts alone.
    Proof   Each is checked on the result before it is returned; a plan that breaks one is a Fault.
    Tight   Nothing to reach: a check. That it fails where a plan breaks a lemma: test_a_plan_that_breaks_a_lemma_is_a_fault,
            test_a_bound_that_is_not_enforced_is_caught
    Source  The lemmas that it names.
    """
    facts = _comparable(draft, facts)
    rel = capped(filled(draft.input, facts), draft.contributions.join_rows)
    limits = replace(_limits(draft.contributions, rows_per_unit(rel)), listed=_listed(draft, facts))
    planned = [(ask, _planned(ask, limits, rel)) for ask in draft.asks]
    private = bool(draft.keys) and facts.keys is None and draft.listed is None
    parts = tuple(dict.fromkeys([*([COUNT_OF_UNITS] if private else []), *(part for _, found in planned for part in found.parts)]))
    places = {part: i for i, part in enumerate(parts)}
    keys = _keys(draft, facts, parts)
    aggregates = tuple(_leading(_aggregate(ask, found, places), draft.lead, keys) for ask, found in planned)
    table = UnitTable(rel, draft.keys, parts, _bounding(draft, limits, keys, rel))
    release = Release(table, keys, aggregates)
    if (many := numbers(release, facts.beside)) > MOST_NUMBERS:
        instead = "fewer or coarser groups, fewer quantiles, or several statements"
        raise Refused("TOO_MANY_NUMBERS", f"the answer is made of {many:,} noisy numbers, more than {MOST_NUMBERS:,}", instead=instead)
    lemmas(release)
    return replace(release, warnings=_warnings(release, draft.contributions, facts.partial))


def lemmas(release: Release) -> tuple[str, ...]:
    """R2. The ids of the lemmas that the release's argument uses; a Fault where its plan does not meet one.

    Given   a release.
    Claim   its cells are functions of their unit's rows (L), and neighbouring data sets move its sums by what the returned C-lemmas say.
    Proof   L1 over the relation, L8 over the cells (made before a join where L26 shows that it is the same), C1 to C3 over the bounds. Not named
            is what these rest on in turn: L9 and, under it, L10, for rows that are cells and for L26; L12, for counts of units that are of rows.
    Tight   Nothing to reach: a list. That it names what is used: test_lemmas_name_what_is_used,
            test_statements_cite_every_lemma_that_a_plan_can_use
    Source  The lemmas that it names.
    """
    found = {*local(release.table.input), cells(release.table), "C1", "C2", "C3"}
    bounds = enforced(release)
    of_unions = replace(bounds, cells=tuple(replace(cell, led=False) for cell in bounds.cells))  # on which what is said of comparisons rests
    sums = replace(bounds, cells=tuple(replace(cell, led=False, united=False) for cell in bounds.cells))  # and what is said of unions
    found.update(s.lemma for each in (bounds, of_unions, sums) for s in sensitivities(each, Adjacency.ADD_REMOVE))
    if release.modal:
        found.add("C11")
    found.update((*any_cap(release), *best_of(release)))
    match release.keys:
        case PrivateKeys():
            found.update(("C8", "P5"))
        case ReleasedKeys():
            found.add(any_list(release))
        case NoKeys() | ListedKeys():
            pass
        case _:
            assert_never(release.keys)
    if isinstance(release.table.bounding, GroupCap) and release.table.bounding.idle is Idle.UNIT_KEY:
        found.update(("L10", "L11"))
    if early(release.table) is not None:
        found.add("L26")
    return tuple(sorted(found, key=lambda lemma: (lemma[0], int(lemma[1:]))))


def warnings(release: Release) -> tuple[str, ...]:
    """R3. What the bounding gives reason to say: rows and groups that are left out.

    Given   a release made by `bound`.
    Claim   the sentences are a function of the draft and of the facts of public tables.
    Proof   R1 made them from the plan, the limits of the draft, and which sources of keys may lack some (a fact). The plan is such a function.
    Tight   Nothing to reach: words. test_warnings_of_the_plan
    Source  docs/pitfalls.md W3 and E13.
    """
    return release.warnings


# ---- relations -----------------------------------------------------------------------------------------------------------------------


def filled(rel: Private, facts: Facts) -> Private:
    """R4. The relation with the fan-out of each lookup; Refused where one private row could meet more than 10,000 public rows in all.

    Given   the fan-out of each public relation.
    Claim   one combination of rows, of the scans that a row comes from, gives at most 10,000 rows. (A table that is read twice is two scans.)
    Proof   Each lookup multiplies rows by at most its fan-out; the product over the statement is tested, partners' lookups included. Semi joins,
            groups and windows multiply none; a stack's row comes from one of its branches.
    Tight   test_n9_fan_out_is_refused_beyond_ten_thousand
    Source  docs/pitfalls.md N9, A5.
    """
    full = _fill(rel, facts)
    lookups = [below for below in walk(full) if isinstance(below, Lookup)]
    if prod(_fanout(lookup) for lookup in lookups) > LARGEST_FANOUT:
        names = ", ".join(sorted(lookup.public.name for lookup in lookups if _fanout(lookup) > 1))
        raise Refused(
            "FANOUT",
            f"one private row could meet more than {LARGEST_FANOUT:,} rows of the public tables it is joined with ({names})",
            instead="join on a unique column of the public table, or on fewer tables",
        )
    return full


def _fill(rel: Private, facts: Facts) -> Private:
    match rel:
        case Scan():
            return rel
        case Keep(input=below) | Compute(input=below) | CapRows(input=below) | Group(input=below) | Windowed(input=below):
            return replace(rel, input=_fill(below, facts))
        case Lookup(input=below, public=public):
            if public.name not in facts.fanouts:
                raise Fault("PLAN_BROKEN", "the fan-out of a public table is not known")
            return replace(rel, input=_fill(below, facts), fanout=facts.fanouts[public.name])
        case Match(left=left, right=right) | Stack(left=left, right=right):
            return replace(rel, left=_fill(left, facts), right=_fill(right, facts))
        case Semi(left=left, right=partners):
            return replace(rel, left=_fill(left, facts), right=partners if isinstance(partners, Public) else _fill(partners, facts))
        case _:
            assert_never(rel)


def _fanout(lookup: Lookup) -> int:
    return lookup.fanout or 1  # LEFT keeps the row that meets none


def _multiplied(rel: Private) -> int:
    """The public fan-out of one private row up to here."""
    return prod(_fanout(below) for below in walk(rel) if isinstance(below, Lookup))


def capped(rel: Private, rows: int) -> Private:
    """R5. The relation with a cap on each unit's rows where a join could run away.

    Given   a relation whose fan-outs are filled in.
    Claim   no join multiplies more than `rows` rows of a unit with several rows each, or with a public fan-out above 100 in all.
    Proof   A match whose inputs both may have several rows per unit (L9) has each capped, above that input's own filters, unless it is proven
            to have no more rows than the cap; a match on a column whose values differ in a unit, with a one-row side, or with groups that ON
            compares in all keys, cannot multiply (`single`, as given in L9). A lookup that takes the fan-out of the statement so far beyond 100
            has its private input capped. Caps keep locality (L7); where a relation stands in the plan twice, one of them may be cut and the
            other not, and each is local by itself. Semi joins, stacks, groups and windows multiply nothing.
    Tight   test_a5_caps_hold_on_data, test_a5_joins_of_several_rows_are_capped, test_n9_wide_lookups_are_capped
    Source  docs/pitfalls.md A5, W3, N9.
    """
    match rel:
        case Scan():
            return rel
        case Keep(input=below) | Compute(input=below) | CapRows(input=below) | Group(input=below) | Windowed(input=below):
            return replace(rel, input=capped(below, rows))
        case Lookup(input=below):
            inner = capped(below, rows)
            return replace(rel, input=_cap(inner, rows) if _fanout(rel) > 1 and _multiplied(rel) > FREE_FANOUT else inner)
        case Match(left=left, right=right, single=single):
            left, right = capped(left, rows), capped(right, rows)
            if not single and rows_per_unit(left) != 1 and rows_per_unit(right) != 1:
                left, right = _cap(left, rows), _cap(right, rows)
            return replace(rel, left=left, right=right)
        case Stack(left=left, right=right):
            return replace(rel, left=capped(left, rows), right=capped(right, rows))
        case Semi(left=left, right=partners):  # multiplies nothing
            return replace(rel, left=capped(left, rows), right=partners if isinstance(partners, Public) else capped(partners, rows))
        case _:
            assert_never(rel)


def _cap(rel: Private, rows: int) -> Private:
    most = rows_per_unit(rel)
    return rel if most is not None and most <= rows else CapRows(rel, rows)


# ---- aggregates ----------------------------------------------------------------------------------------------------------------------


def _limits(given: Contributions, most: int | None) -> Contributions:
    """The limits in force, with no more row weight than the rows that a unit can have."""
    return given if given.weights is None or most is None else replace(given, weights=max(1, min(given.weights, most)))


def _planned(ask: AggregateAsk, contributions: Contributions, rel: Private) -> Planned:
    """What the ask's card makes of it; a count of distinct units is one of all rows, where the column that it names is the unit of each."""
    if ask.card == "units" and isinstance(ask.argument, Column) and ask.argument.id in owning(rel):
        ask = replace(ask, argument=None)
    if ask.cap is not None:
        return scaled.plan(ask, ask.cap, contributions, rows_per_unit(rel))
    return CARDS[ask.card].plan(ask, contributions, rows_per_unit(rel))


def _aggregate(ask: AggregateAsk, found: Planned, places: Mapping[Part, int]) -> Aggregate:
    """The aggregate, with its parts numbered as the release has them."""
    own = tuple(places[part] for part in found.parts)
    more = found.notes, found.cuts, found.less, found.quantile, found.values
    cap = None if ask.cap is None else ask.cap.public
    return Aggregate(ask.name, ask.label, ask.card, own, found.type, found.step, found.bounds, ask.epsilon, *more, cap)


def _comparable(draft: Draft, facts: Facts) -> Facts:
    """The facts, without the keys that take no part where one group is chosen."""
    if draft.lead is None or facts.keys is None:
        return facts
    return replace(facts, keys=tuple(row for row in facts.keys if row[draft.lead.key] is not None))


def _leading(aggregate: Aggregate, lead: Lead | None, keys: Keys) -> Aggregate:
    """The aggregate, of which nothing is shown but the key of one group, where that is what is wanted."""
    if lead is None:
        return aggregate
    if not isinstance(keys, ListedKeys):
        raise Fault("PLAN_BROKEN", "groups are compared where their keys are listed")
    chosen = Leading(lead.most, len(keys.rows))
    return replace(aggregate, label=lead.label, type=INTEGER, leading=chosen, notes=(how(chosen), *aggregate.notes))


def _listed(draft: Draft, facts: Facts) -> int | None:
    """How many groups there are in all; of a list that is not known yet the most that it can have; None where private rows say."""
    if draft.listed is not None:
        return MOST_KEYS
    return 1 if not draft.keys else None if facts.keys is None else len(facts.keys)


# ---- keys and bounding ---------------------------------------------------------------------------------------------------------------


def _keys(draft: Draft, facts: Facts, parts: tuple[Part, ...]) -> Keys:
    if not draft.keys:
        return NoKeys()
    if draft.listed is not None:
        return ReleasedKeys(draft.listed, facts.key_origin)
    if facts.keys is None:
        return PrivateKeys(parts.index(COUNT_OF_UNITS), max(1, draft.minimum))
    rows = _key_set(facts.keys)
    if len(rows) > MOST_KEYS:
        raise Refused("TOO_MANY_KEYS", f"the key list has {len(rows):,} keys, more than {MOST_KEYS:,}", instead="group by fewer or coarser keys")
    return ListedKeys(rows, facts.key_origin)


def _key_set(rows: Iterable[tuple[Value, ...]]) -> tuple[tuple[Value, ...], ...]:
    """The keys as a set, sorted, NULLs last; NaN is no key."""
    found = dict.fromkeys(row for row in rows if all(value == value for value in row))  # NaN differs from itself
    return tuple(sorted(found, key=lambda row: tuple((value is None, value) for value in row)))


def _bounding(draft: Draft, limits: Contributions, keys: Keys, rel: Private) -> Bounding:
    if limits.weights is None:
        cap = _group_cap(draft.keys, keys, max(1, limits.groups), fixed(rel))
        free = draft.lead is not None and cap.idle is None and not limits.groups_given
        return GroupCap(len(keys.rows), Idle.COMPARED) if free and isinstance(keys, ListedKeys) else cap
    if isinstance(keys, PrivateKeys):
        raise Refused(
            "ROW_WEIGHTS",
            "max_rows_contributed bounds rows, not groups, so that it does not go with private keys",
            instead="use max_groups_contributed and max_rows_per_group, or list the keys",
        )
    return RowWeights(limits.weights)


def _group_cap(columns: tuple[Key, ...], keys: Keys, groups: int, known: frozenset[int]) -> GroupCap:
    """The cap; idle where the plan proves that it cannot bite, and nowhere else."""
    if not columns:
        return GroupCap(1, Idle.NO_KEYS)
    if all(depends_on(key.value, known) for key in columns):
        return GroupCap(1, Idle.UNIT_KEY)
    if isinstance(keys, ListedKeys) and len(keys.rows) <= groups:
        return GroupCap(max(1, len(keys.rows)), Idle.ALL_KEYS)
    return GroupCap(groups)


# ---- warnings ------------------------------------------------------------------------------------------------------------------------


def _warnings(release: Release, contributions: Contributions, partial: str) -> tuple[str, ...]:
    said = []
    bounding, keys = release.table.bounding, release.keys
    if any(isinstance(rel, CapRows) for rel in walk(release.table.input)):
        said.append(f"A join keeps at most {contributions.join_rows} rows of each unit on either side (join_rows_per_unit); others are left out.")
    said += [_product(rel, contributions.join_rows) for rel in walk(release.table.input) if isinstance(rel, Match) and _on_the_unit_alone(rel)]
    if isinstance(keys, ListedKeys | ReleasedKeys) and partial:
        null = isinstance(keys, ListedKeys) and not any(None in row for row in keys.rows)
        said.append(f"Rows whose key is not in the key list ({partial}) are left out{', NULL among them' if null else ''}.")
    if isinstance(bounding, GroupCap) and bounding.idle is None and not contributions.groups_given:
        said.append(f"Each unit counts in at most {bounding.groups} groups (max_groups_contributed); its other groups are left out.")
    cuts: dict[str, list[str]] = {}
    for aggregate in release.aggregates:
        for cut in aggregate.cuts:
            cuts.setdefault(cut, []).append(aggregate.label)
    said += [f"{', '.join(dict.fromkeys(labels))}: {cut}." for cut, labels in cuts.items()]
    return tuple(said)


def _on_the_unit_alone(rel: Match) -> bool:
    """Whether a join with a cap compares nothing for equality but what all rows of a unit agree on."""
    if not isinstance(rel.left, CapRows) and not isinstance(rel.right, CapRows):
        return False
    sides = {column.id for column in output(rel.left)}, {column.id for column in output(rel.right)}
    known = fixed(rel.left) | fixed(rel.right)
    for test in conjuncts(rel.on):
        if isinstance(test, Call) and test.function == "eq":
            read = {column.id for column in columns(test)}
            if read & sides[0] and read & sides[1] and not read <= known:
                return False
    return True


def _product(rel: Match, rows: int) -> str:
    left, right = (" with ".join(dict.fromkeys(below.table for below in walk(side) if isinstance(below, Scan))) for side in (rel.left, rel.right))
    what = f"Each row of {left} meets each row of {right} of the same unit, as their join has no other equality"
    return f"{what}: a product, of at most {rows} rows of each unit on either side."
