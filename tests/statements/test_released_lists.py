"""Random data sets, with a released list on the private side of a later release: neighbours of each, whatever the list, and what plain SQL says."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from checked import NOW, SILENT, neighbours
from inside import Inside
from released import COUNTED, FORMS, adaptive, keyed
from worlds import MAIN, World, quoted, world

from dpquery.backends.lower import lower
from dpquery.backends.public import facts
from dpquery.engine import asking
from dpquery.engine.feeding import Fed, fed
from dpquery.engine.session import Prepared, Ready
from dpquery.mechanisms import SystemBits
from dpquery.plan.release import GroupCap, Idle, PrivateKeys, ReleasedKeys
from dpquery.privacy import bill, bound, enforced, price
from dpquery.release import answer, noise
from dpquery.sql import read
from dpquery.values.noisy import Noisy

WORLDS = 4


@cache
def data_set(seed: int) -> World:
    return world(seed)


def prepared(made: World, backend: Inside, text: str, salt: int) -> Prepared:
    """What the engine does before it reads a private row."""
    question = read(text, made.schema, now=NOW)
    whole, asks = asking.asks(question, asking.call(), made.schema)
    drafts = [block.draft for block in question.blocks]
    releases = [bound(d, f) for d, f in zip(drafts, facts(drafts, backend), strict=True)]
    billed = bill(releases, asks, whole, made.schema.adjacency)
    parts = zip(question.blocks, asks, releases, billed.releases, strict=True)
    blocks = tuple(Ready(b.name, ask, release, priced, lower(release, salt), b.feeds) for b, ask, release, priced in parts)
    assert price([one.lowered.enforced for one in blocks], billed, made.schema.adjacency) == billed.price
    return Prepared(text, question, whole, blocks, billed)


def noisy(made: World, ready: Ready, one: Fed) -> Noisy:
    """A release without noise; of private keys all groups."""
    exact = Inside(made, MAIN).run(one.lowered, ready.key_types, len(one.release.table.parts))
    threshold = 1 if isinstance(one.release.keys, PrivateKeys) else None
    return noise.add(exact, one.release, replace(ready.priced, noises=(SILENT,) * len(ready.priced.noises), threshold=threshold), SystemBits())


def stands(made: World, ready: Ready, one: Fed) -> None:
    """With the list as it turned out to be, the sums of all neighbours move within what was claimed before it was known."""
    catalogue = {name: Inside(made, name) for name in made.variants}
    results = {name: backend.run(one.lowered, ready.key_types, len(one.release.table.parts)) for name, backend in catalogue.items()}
    neighbours(made, ready.lowered.enforced, results)


def answered(made: World, text: str, salt: int) -> pa.Table:
    backend = Inside(made, MAIN)
    one, tables = prepared(made, backend, text, salt), dict[str, Noisy]()
    for ready in one.blocks:
        now = fed(one, ready, tables, backend, made.schema.limits)
        assert now.lowered.text == ready.lowered.text, "the statement that runs is not the one that was priced"
        if isinstance(ready.release.keys, ReleasedKeys):
            assert enforced(ready.release).listed is None
            assert getattr(ready.release.table.bounding, "idle", None) is not Idle.ALL_KEYS
        stands(made, ready, now)
        tables[ready.name] = noisy(made, ready, now)
    columns = {ready.name: answer.columns(tables[ready.name], ready.release) for ready in one.blocks}
    how, table, lost = answer.finished(one.question.post, columns, one.releases, made.schema.limits)
    assert not lost
    return table.select(range(len(how.outputs)))


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.lemma("C15", "L25", "P8")
@pytest.mark.parametrize("few", [0, pytest.param(2, marks=pytest.mark.slow), 10_000])
@pytest.mark.parametrize("form", range(len(FORMS)))
def test_a_released_list_is_what_the_same_list_is_as_a_table(form: int, few: int) -> None:
    """Neighbours move within what was claimed before the list was known; the groups are its keys, each once, and never NULL."""
    tried = equal = 0
    for seed in range(WORLDS):
        made = data_set(seed)
        for table, key in keyed(made)[:2]:
            text = adaptive(FORMS[form], table, key, few)
            got = rows(answered(made, text, seed))
            listed = answered(made, f'SELECT "{key}", count(*) AS how_many FROM "{table}" GROUP BY "{key}" HAVING count(*) > {few}', seed)
            _is_right(form, got, [value for value, _ in rows(listed)], few)
            wanted = counted(made, COUNTED[form], table, key, listed)
            if wanted is not None:
                single, found = "NULL AS key" in COUNTED[form], {row[:-1]: row[-1] for row in got if row[-1]}
                assert found == ({(): sum(wanted.values())} if single and wanted else wanted), text
                equal += 1
            tried += 1
    assert tried >= WORLDS
    assert equal >= WORLDS


def counted(made: World, text: str, table: str, key: str, listed: pa.Table) -> dict[tuple[Any, ...], int] | None:
    """How many rows plain SQL counts in each group that has some, of a unit no more than the limit; None where the cap on groups would bite."""
    spec = made.tables[table]
    groups, most = spec.limits or (3, 2)
    name = made.con.execute("USE clean").execute(f'DESCRIBE SELECT "{key}" FROM "{table}"').fetchall()[0][1]
    values = ", ".join(f"(CAST({'NULL' if value is None else quoted(str(value))} AS {name}))" for value, _ in rows(listed))
    source = f"VALUES {values}" if values else f"SELECT CAST(NULL AS {name}) WHERE FALSE"
    cells = f'WITH listed("{key}") AS ({source}) SELECT __u, key, least(count(*), {most}) FROM ({text}) GROUP BY ALL'
    found = made.con.execute(cells.format(t=f'"{table}"', k=f'"{key}"')).fetchall()
    if max(Counter(unit for unit, _, _ in found).values(), default=0) > groups:
        return None
    sums = Counter[tuple[Any, ...]]()
    for _, value, number in found:
        sums[(value,)] += number
    return dict(sums)


def _is_right(form: int, got: list[tuple[Any, ...]], listed: list[Any], few: int) -> None:
    """What can be told of the answer from the list alone."""
    known = [value for value in listed if value is not None]
    if "GROUP BY {k}" in FORMS[form] or "GROUP BY r.{k}" in FORMS[form] or "GROUP BY a.{k}" in FORMS[form]:
        keys = [row[0] for row in got]
        assert len(keys) == len(set(keys))
        assert set(keys) <= set(known) if "SEMI" in FORMS[form] else keys == sorted(known)
    if few == 10_000:
        assert not listed


def test_the_plan_does_not_depend_on_the_data() -> None:
    """Price, texts and plan before anything was released are those of every neighbour."""
    for seed in range(WORLDS):
        made = data_set(seed)
        for i, (table, key) in enumerate(keyed(made)[: len(FORMS)]):
            text = adaptive(FORMS[i % len(FORMS)], table, key, 1)
            first, *others = (prepared(made, Inside(made, name), text, seed) for name in (MAIN, made.removed[0], made.replaced[0]))
            assert all(other == first for other in others)


def test_a_cap_is_lowered_for_a_list_of_any_length() -> None:
    made = data_set(0)
    table, key = keyed(made)[0]
    one = prepared(made, Inside(made), adaptive(FORMS[0], table, key, 0), 1)
    bounding = one.blocks[-1].release.table.bounding
    assert isinstance(bounding, GroupCap)
    assert isinstance(one.blocks[-1].release.keys, ReleasedKeys)
    assert bounding.idle in (None, Idle.UNIT_KEY)
