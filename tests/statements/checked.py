"""The checks that every random statement passes.

1. neighbours: removing or replacing one unit moves the exact sums by at most what is claimed; sums over all units are those over one and over the
   others, added up; neither the order of rows nor more threads change them.
2. noise off: the answer is what plain SQL says.
3. independence: price, text, types, key list and success do not depend on the data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import calls
import plain
import pyarrow as pa
from grammar import Statement
from inside import Inside
from worlds import FUZZED, MAIN, SHUFFLED, World

from dpquery.backends.lower import lower
from dpquery.backends.port import BoundedSQL
from dpquery.backends.public import facts
from dpquery.engine import asking
from dpquery.errors import Refused
from dpquery.mechanisms import Noise, SystemBits
from dpquery.plan.draft import FIRST, Question
from dpquery.plan.rel import CapRows, walk
from dpquery.plan.release import Choosing, Elements, Enforced, GroupCap, ListedKeys, Mechanism, PrivateKeys, Release
from dpquery.privacy import Sensitivity, calibrate, reprice, sensitivities, settled
from dpquery.privacy.contribution import groups_of_a_unit
from dpquery.privacy.cost import Priced
from dpquery.release import answer, noise
from dpquery.release.ranks import aim
from dpquery.sql import read
from dpquery.values.exact import Exact
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, STRING, TIMESTAMP, UUID, Adjacency, Kind, Type

NOW = datetime.fromisoformat(f"{calls.NOW}+00:00")
SILENT = Noise(Mechanism.LAPLACE, Fraction(1, 1000))
CERTAIN = Noise(Choosing.PERMUTE_AND_FLIP, Fraction(1, 1000))
Row = tuple[Any, ...]
Lower = Callable[[Release, int], BoundedSQL]
REFUSALS = frozenset({"MISSING_BOUNDS", "BAD_BOUNDS", "TOO_MANY_KEYS", "TOO_WIDE", "FANOUT", "TOO_COMPLEX", "MODE"})
"""What a statement of the grammar may be refused for; all of it by the schema, the public tables and the text."""


@dataclass(frozen=True)
class Ready:
    """A statement on its way down, up to the point where private rows are read."""

    question: Question
    release: Release
    priced: Priced
    lowered: BoundedSQL


def prepared(made: World, backend: Inside, text: str, salt: int, down: Lower = lower) -> Ready:
    """What the engine does before it reads a private row."""
    question = read(text, made.schema, now=NOW)
    (draft,) = [block.draft for block in question.blocks]
    ask, _ = asking.asks(question, asking.call(), made.schema)
    release = settled(draft, facts([draft], backend)[0], ask, made.schema.adjacency)
    priced = calibrate(release, ask, made.schema.adjacency)
    lowered = down(release, salt)
    assert reprice(lowered.enforced, priced, made.schema.adjacency) == priced.price
    return Ready(question, release, priced, lowered)


def check(made: World, statement: Statement, salt: int, down: Lower = lower, wholly: bool = False) -> str:
    """Passes, or an AssertionError that says what is wrong. Returns "answered", "capped" where plain SQL is no reference, or a code of refusal."""
    ready = _tried(made, MAIN, statement, salt, down)
    if isinstance(ready, Refused):
        unit = ready.code == "UNIT_AS_OUTPUT" and any(key.value.reads <= statement.units for key in statement.keys)
        assert unit or ready.code in REFUSALS, f"{ready.code}: {ready.message}"
        _same_refusal(made, statement, ready)
        return ready.code
    results = {name: _exact(made, name, ready) for name in (made.variants if wholly else made.in_turn(salt))}
    neighbours(made, ready.lowered.enforced, {name: exact for name, (exact, _) in results.items()})
    assert len({types for _, types in results.values()}) == 1, "the engine's types depend on the data"
    if wholly:
        independent(made, statement, salt, ready, down)
    return noise_off(made, statement, ready, results[MAIN][0])


def _tried(made: World, name: str, statement: Statement, salt: int, down: Lower) -> Ready | Refused:
    try:
        return prepared(made, Inside(made, name), statement.dp, salt, down)
    except Refused as refused:
        return refused


def _exact(made: World, name: str, ready: Ready) -> tuple[Exact, tuple[str, ...]]:
    try:
        return Inside(made, name).typed(ready.lowered, [key.type for key in ready.release.table.keys], len(ready.release.table.parts))
    except Exception as error:  # whatever the engine says, no statement may fail
        raise AssertionError(f"fails on {name}: {str(error)[:300]}") from None


# ---- 1. neighbours -------------------------------------------------------------------------------------------------------------------


def neighbours(made: World, enforced: Enforced, results: Mapping[str, Exact]) -> None:
    """The sums move within the claims, and few groups stand for one unit alone."""
    for adjacency, names in ((Adjacency.ADD_REMOVE, made.removed), (Adjacency.REPLACE_ONE, made.replaced)):
        claims = sensitivities(enforced, adjacency)
        for name in set(names) & results.keys():
            for part, claim in enumerate(claims):
                within(results[MAIN], results[name], part, claim, name)
            if enforced.selecting is not None:
                _few_groups(results[MAIN], results[name], groups_of_a_unit(enforced), name)
    for part, cell in enumerate(enforced.cells):
        adds_up(results[MAIN], results[made.removed[0]], results[made.alone], part, cell.united)
    same(results[MAIN], results[SHUFFLED], len(enforced.cells))


def adds_up(whole: Exact, rest: Exact, alone: Exact, part: int, united: bool) -> None:
    """What a unit and all others bring to a group adds up to what all bring together; of sets, to no less, and no more than is in either."""
    found, others, own = (_by_group(exact, part) for exact in (whole, rest, alone))
    for key in {*found, *others, *own}:
        a, b, both = others.get(key, 0), own.get(key, 0), found.get(key, 0)
        right = max(a, b) <= both <= a + b if united else both == a + b
        assert right, f"part {part} of {key}: {both} for all units, {a} without one of them and {b} for that one alone"


def same(one: Exact, other: Exact, parts: int) -> None:
    """Nothing hangs on the order of rows, nor on how many threads read them."""
    assert set(one.keys) == set(other.keys), "the groups depend on the order of rows"
    for part in range(parts):
        assert _by_group(one, part) == _by_group(other, part), f"part {part} depends on the order of rows"


def _few_groups(one: Exact, other: Exact, most: int, name: str) -> None:
    for a, b in ((one, other), (other, one)):
        alone = set(a.keys) - set(b.keys)
        assert len(alone) <= most, f"{name}: {len(alone)} groups for one unit's sake, at most {most} claimed"


def shifts(one: Exact, other: Exact, part: int) -> list[int]:
    """How far each group's sum differs; a group that is absent is 0."""
    a, b = _by_group(one, part), _by_group(other, part)
    return [abs(d) for key in {*a, *b} if (d := a.get(key, 0) - b.get(key, 0))]


def _by_group(exact: Exact, part: int) -> dict[Row, int]:
    """A part's sum of each group; one of several integers has one for each bin, as if that were a group."""
    if part not in exact.bins:
        return dict(zip(exact.keys, exact.sums[part], strict=True))
    return {(*key, bin): value for key, bins in zip(exact.keys, exact.bins[part], strict=True) for bin, value in bins.items()}


def spreads(one: Exact, other: Exact, part: int) -> list[int]:
    """How far the integers of each group move apart; of groups of one integer, which are compared, those of all groups."""
    if part not in one.bins:
        ours, theirs = _by_group(one, part), _by_group(other, part)
        shifted = [ours.get(key, 0) - theirs.get(key, 0) for key in {*ours, *theirs}]
        return [max(0, *shifted) - min(0, *shifted)] if any(shifted) else []
    a, b = (dict(zip(exact.keys, exact.bins[part], strict=True)) for exact in (one, other))
    signed = [[a.get(key, {}).get(bin, 0) - b.get(key, {}).get(bin, 0) for bin in {*a.get(key, {}), *b.get(key, {})}] for key in {*a, *b}]
    return [max(0, *group) - min(0, *group) for group in signed if any(group)]


def norms(moved: Sequence[int]) -> tuple[int, int, int, int]:
    """L0, Linf, L1, squared L2."""
    return len(moved), max(moved, default=0), sum(moved), sum(s * s for s in moved)


def within(one: Exact, other: Exact, part: int, claim: Sensitivity, name: str) -> None:
    found = norms(shifts(one, other, part))
    claimed = (claim.l0, claim.linf, claim.l1, claim.l2_squared)
    assert all(f <= c for f, c in zip(found, claimed, strict=True)), f"{name}: part {part} moves by {found}, claimed {claimed}"
    groups, apart = claim.spreads
    if groups:
        away = spreads(one, other, part)
        assert sum(away) <= groups * apart, f"{name}: part {part} moves apart by {away}, claimed {claim.spreads}"
        assert sum(s * s for s in away) <= groups * apart**2, f"{name}: part {part} moves apart by {away}, claimed {claim.spreads}"


# ---- 2. noise off --------------------------------------------------------------------------------------------------------------------


def noise_off(made: World, statement: Statement, ready: Ready, exact: Exact) -> str:
    """The answer without noise equals plain SQL's; "capped" where a cap left something out, which plain SQL does not know."""
    release = ready.release
    silent = replace(ready.priced, noises=(SILENT,) * len(ready.priced.noises))  # at any epsilon, units finer than the grid still get some noise
    noisy = noise.add(exact, release, silent, SystemBits())
    bars = answer.bars_read(noisy, release, silent, ready.question.ends_of(FIRST), Fraction(19, 20))
    columns = answer.columns(noisy, release, bars, silent.noises)
    chosen(release, exact, ready)
    _, table, lost = answer.finished(ready.question.post, {FIRST: columns}, {FIRST: release}, made.schema.limits)
    assert not lost
    width = len(statement.keys)
    types = [_key_type(release, statement, table, i) for i in range(width)]
    got = _rows(table, statement)
    binned = isinstance(release.keys, ListedKeys) and not all(key.listed for key in statement.keys)
    only = _listed(statement, release, [key for key, _ in got]) if binned else None
    if binned and only is None:
        return "merged"
    wanted = plain.expected(made, statement, release, types, ready.priced.threshold, only)
    if wanted is None:
        return "merged"
    if any(isinstance(rel, CapRows) for rel in walk(release.table.input)) and made.joined_rows < 1000:
        return "capped"
    bounding = release.table.bounding
    if isinstance(bounding, GroupCap):
        if bounding.idle is not None:
            assert wanted.busiest <= bounding.groups, "a cap said to be idle would bite"
        elif wanted.busiest > bounding.groups:
            return "capped"
    if wanted.fullest > min((part.cell.most for part in release.table.parts if isinstance(part.cell, Elements)), default=0):
        return "capped"
    rows = dict(wanted.rows)
    if isinstance(release.keys, ListedKeys):
        listed = _listed(statement, release, [key for key, _ in got])
        if listed is None:
            return "merged"
        _check_list(made, statement, types, rows, listed, wanted.empty)
    elif isinstance(release.keys, PrivateKeys):
        assert statement.threshold or not all(key.listed for key in statement.keys), "keys with a public list are taken for private ones"
    left = plain.upper(made, statement, rows, types, _group_order(statement))
    assert [key for key, _ in got] == list(left), f"keys {[key for key, _ in got]} instead of {list(left)}"
    _check_more(statement, table, list(left.values()))
    for key, values in got:
        for j, (have, want) in enumerate(zip(values, rows[key], strict=True)):
            assert _equal(have, want, statement.aggs[j].card), f"{statement.aggs[j].dp} of {key}: {have!r} instead of {want!r}"
    return "answered"


def chosen(release: Release, exact: Exact, ready: Ready) -> None:
    """What modes read is chosen where no noise is named; at any epsilon, one of the largest integers of each group."""
    parts = (*release.modal, *release.ranked)
    sure = replace(ready.priced, noises=tuple(CERTAIN if i in parts else SILENT for i in range(len(ready.priced.noises))))
    noisy = noise.add(exact, release, sure, SystemBits())
    for part in parts:
        own = dict(zip(exact.keys, exact.bins[part], strict=True))
        count = release.table.parts[part].numbers
        for i, key in enumerate(noisy.keys):
            ones = noisy.sums[part][i * count : (i + 1) * count]
            place, sums = ones.index(1), own.get(key, {})
            assert sum(ones) == 1
            if part in release.modal:
                assert sums.get(place, 0) == max(sums.values(), default=0), f"{key}: {place} is chosen, of {sums}"
            else:
                sought = aim(release.table.parts[part].cell, CERTAIN)  # type: ignore[arg-type]
                assert sought is not None
                below = sum(value for bin, value in sums.items() if bin < place)
                wanted = sought.rank * sum(sums.values()) + Fraction(sought.aside, sought.rank.denominator)
                early, late = sought.side < 0 and place == 0, sought.side > 0 and place == count - 1  # for which there is no place too far off
                assert early or below <= wanted, f"{key}: {place} is chosen for {wanted}, of {sums}"
                assert late or wanted <= below + sums.get(place, 0), f"{key}: {place} is chosen for {wanted}, of {sums}"


def _equal(have: Any, want: Any, card: str) -> bool:
    if card in plain.SPREADS + plain.PAIRS:
        return abs(have - want) <= plain.NEAR * max(1.0, abs(want))
    if have is None:
        return False
    if isinstance(want, list):
        return len(have) == len(want) and all(_equal(a, b, card) for a, b in zip(have, want, strict=True))
    if isinstance(want, plain.Near):
        return want.low - 1e-9 <= plain.counted(have, want.unit) <= want.high + 1e-9
    if card == "mean":
        return abs(have - want) <= 1e-9 * max(1.0, abs(want))
    return bool(have == want) and isinstance(have, Decimal) == isinstance(want, Decimal)


def _check_more(statement: Statement, table: pa.Table, wanted: Sequence[Row]) -> None:
    """What the statement computes from its aggregates is what plain SQL computes from them."""
    for i, one in enumerate(statement.more):
        for have, want in zip(table.column(len(statement.shown) + i).to_pylist(), (row[i] for row in wanted), strict=True):
            assert _alike(have, want), f"{one.dp}: {have!r} instead of {want!r}"


def _alike(have: Any, want: Any) -> bool:
    numbers = all(isinstance(one, int | float | Decimal) and not isinstance(one, bool) for one in (have, want))
    return abs(float(have) - float(want)) <= 1e-9 * max(1.0, abs(float(want))) if numbers else bool(have == want)


def _rows(table: pa.Table, statement: Statement) -> list[tuple[Row, Row]]:
    columns = [table.column(place).to_pylist() for place in statement.shown]
    width = len(statement.keys)
    return [(tuple(c[i] for c in columns[:width]), tuple(c[i] for c in columns[width:])) for i in range(table.num_rows)]


ARROW = {"int64": INTEGER, "double": FLOAT, "string": STRING, "bool": BOOLEAN, "date32[day]": DATE, "timestamp[us]": TIMESTAMP}


def _key_type(release: Release, statement: Statement, table: pa.Table, place: int) -> Type:
    found = table.schema.field(statement.shown[place]).type
    if pa.types.is_decimal128(found):
        return Type(Kind.DECIMAL, found.scale)
    return ARROW.get(str(found), UUID)


def _group_order(statement: Statement) -> tuple[int, ...]:
    width = len(statement.keys)
    return tuple(sorted(range(width), key=lambda i: statement.shown[i])) if statement.in_order else tuple(range(width))


def _listed(statement: Statement, release: Release, shown: Sequence[Row]) -> set[Row] | None:
    """The listed keys as the statement writes them. Where the plan has merged equal ones, those that are shown; None if some are not."""
    assert isinstance(release.keys, ListedKeys)
    order = _group_order(statement)
    if len(release.table.keys) == len(order):
        return {tuple(row[order.index(i)] for i in range(len(order))) for row in release.keys.rows}
    return set(shown) if statement.having is None and statement.limit is None and statement.qualify is None else None


def _check_list(made: World, statement: Statement, types: Sequence[Type], rows: dict[Row, Row], listed: set[Row], empty: Row) -> None:
    """Every group of plain SQL is listed; a listed key without rows is one that WHERE allows, and is shown empty. Adds these to `rows`."""
    assert set(rows) <= listed, f"groups {set(rows) - listed} are not in the list"
    for key in listed - set(rows):
        assert _allowed(made, statement, types, key), f"key {key} is listed although WHERE excludes it"
        rows[key] = empty


def _allowed(made: World, statement: Statement, types: Sequence[Type], key: Row) -> bool:
    """Whether the conditions that read one key's column and nothing else are true for it."""
    for place, one in enumerate(statement.keys):
        col = one.value.bare
        if col is None:
            continue
        for test in statement.where:
            name = re.compile(rf"(?<![\w.]){re.escape(col.text)}\b")
            alone = test.reads == {col.text} and "(SELECT " not in test.plain  # a subquery reads other rows
            if alone and name.search(test.plain):  # a production may drop what it was given
                value = "NULL" if key[place] is None else plain.quoted(str(key[place]))
                literal = f"CAST({value} AS {plain.name_of(types[place])})"
                text = name.sub(literal, test.plain)
                if made.con.execute(f"SELECT ({text})").fetchall() != [(True,)]:
                    return False
    return True


# ---- 3. independence -----------------------------------------------------------------------------------------------------------------


def independent(made: World, statement: Statement, salt: int, ready: Ready, down: Lower) -> None:
    """All that is said before private rows are read is the same on every neighbour."""
    for name in (made.removed[0], made.replaced[0], FUZZED):
        backend = Inside(made, name)
        other = prepared(made, backend, statement.dp, salt, down)
        assert other == ready, f"the plan depends on the data ({name})"


def _same_refusal(made: World, statement: Statement, refused: Refused) -> None:
    for name in (made.removed[0], FUZZED):
        other = _tried(made, name, statement, 1, lower)
        assert isinstance(other, Refused), f"refused on {MAIN} but not on {name}"
        assert (other.code, other.message, other.position) == (refused.code, refused.message, refused.position)
