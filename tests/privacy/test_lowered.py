"""The lowered statement, run by DuckDB: it computes what the interpreter computes, and stays within the same claims."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice

import duckdb
import pytest
import random_plans as rp
from interpreter import Data, Groups, run
from neighbours import Sample, alone, moved, sample

from dpquery.backends import exact, relation
from dpquery.backends.lower import EARLY, ONE_ROW, lower
from dpquery.plan.draft import Draft
from dpquery.plan.rel import publics
from dpquery.plan.release import Release, ReleasedKeys
from dpquery.privacy import bound, enforced, sensitivities
from dpquery.privacy.contribution import groups_of_a_unit
from dpquery.values.types import FLOAT, INTEGER, STRING, Adjacency, Type

SALT = 4_711
PAIRS, MORE, BLOCKS, FIRST = 800, 10_000, 10, 2_000_000
PHYSICAL_TYPES = {INTEGER: "BIGINT", STRING: "VARCHAR", FLOAT: "DOUBLE"}


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as con:
        con.execute("SET threads = 1")
        con.execute("ATTACH ':memory:' AS data")
        yield con


def fill(con: duckdb.DuckDBPyConnection, release: Release, data: Data) -> None:
    texts = list[str]()
    for table, columns in rp.PHYSICAL.items():
        texts += _table(table, [(name, type) for name, type, _ in columns], [tuple(row[c[0]] for c in columns) for row in data.tables[table]])
    for public in (*publics(release.table.input), *([release.keys.public] if isinstance(release.keys, ReleasedKeys) else [])):
        texts += _table(public.name, [(f"c{i}", c.type) for i, c in enumerate(public.columns)], list(data.publics[public.name]))
        texts += [f"DROP TABLE IF EXISTS {public.name}", relation.made(public)]
    con.execute("; ".join(texts))


def _table(name: str, columns: list[tuple[str, Type]], rows: list[tuple[object, ...]]) -> Iterator[str]:
    typed = ", ".join(f"{c} {PHYSICAL_TYPES[type]}" for c, type in columns)
    yield f"CREATE OR REPLACE TABLE data.main.{name} ({typed})"
    if rows:
        values = ", ".join("(" + ", ".join(_literal(v) for v in row) + ")" for row in rows)
        yield f"INSERT INTO data.main.{name} VALUES {values}"


def _literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'::DOUBLE" if isinstance(value, float) else repr(value)


def run_sql(con: duckdb.DuckDBPyConnection, release: Release, data: Data) -> Groups:
    """The exact sums by DuckDB, laid out as the interpreter's."""
    fill(con, release, data)
    return asked(con, release, data)


def asked(con: duckdb.DuckDBPyConnection, release: Release, data: Data) -> Groups:
    """The exact sums of the data that stand in the engine."""
    lowered = lower(release, SALT)
    parts = release.table.parts
    if isinstance(release.keys, ReleasedKeys):
        lowered = replace(lowered, listed=tuple(row[1:] for row in data.publics[release.keys.public.name]))
    with warnings.catch_warnings():  # the engine prefers `sql()`, which binds a statement twice
        warnings.simplefilter("ignore", UserWarning)
        result = con.execute(lowered.text).to_arrow_table()
    made = exact.exact(result, lowered, [key.type for key in release.table.keys], len(parts))
    columns = [made.bins[i] if i in made.bins else made.sums[i] for i in range(len(parts))]
    found = dict(zip(made.keys, zip(*columns, strict=True) if parts else ((),) * len(made.keys), strict=True))
    if lowered.listed is not None:
        nothing = tuple({} if i in made.bins else 0 for i in range(len(parts)))
        return {key: found.get(key, nothing) for key in lowered.listed}
    return found


def uncapped(s: Sample) -> Release:
    """The sample's release with caps that do not bite, so that the two choices by hash cannot differ."""
    sets = any(ask.card == "distinct" for ask in s.plan.asks)
    given = replace(s.plan.contributions, groups=1000, join_rows=100_000, **({"rows": 1000} if sets else {}))
    plan: Draft = replace(s.plan, contributions=given)
    return bound(plan, s.facts)


@pytest.mark.parametrize("seed", range(100))
def test_the_lowered_statement_agrees_with_the_interpreter(engine: duckdb.DuckDBPyConnection, seed: int) -> None:
    s = sample(seed)
    release = uncapped(s)
    assert run_sql(engine, release, s.data) == run(release, s.data)


@pytest.mark.lemma("L26")
def test_what_is_added_up_before_a_join_agrees_with_the_interpreter(engine: duckdb.DuckDBPyConnection) -> None:
    """Rows beside one row of their unit, and units of one row: with caps that do not bite, and bound for bound with those that do."""
    ways = Counter[str]()
    for seed in range(60):
        s = sample(f"attributed {seed}", made=lambda world: world.scan("users"), attribute=seed % 4 > 0)
        release, lowered = uncapped(s), lower(s.release, SALT)
        assert run_sql(engine, release, s.data) == run(release, s.data), seed
        for adjacency in Adjacency:
            assert sensitivities(lowered.enforced, adjacency) == sensitivities(enforced(s.release), adjacency)
        ways[lowered.way] += 1
    assert ways[EARLY] >= 5
    assert ways[ONE_ROW] >= 10


def pairs(con: duckdb.DuckDBPyConnection, seed: int, step: int) -> Iterator[Adjacency]:
    """Pairs of neighbours without end: with caps DuckDB's exact sums move within the claims; without them they are the interpreter's."""
    for at in count(seed, step):
        s = sample(at)
        limits, open_ = enforced(s.release), uncapped(s)
        before = run_sql(con, s.release, s.data)
        for unit in s.units:
            for adjacency, neighbour in ((Adjacency.ADD_REMOVE, rp.removed), (Adjacency.REPLACE_ONE, rp.replaced)):
                data = rp.together(neighbour(s.units, unit, s.random), s.public)
                after = run_sql(con, s.release, data)
                for part, claim in enumerate(sensitivities(limits, adjacency)):
                    assert moved(before, after, part).within(claim), (at, unit, adjacency, part)
                assert limits.selecting is None or alone(before, after) <= groups_of_a_unit(limits), (at, unit, adjacency)
                if unit == 1:
                    assert asked(con, open_, data) == run(open_, data), (at, unit, adjacency)
                yield adjacency


@pytest.mark.parametrize("block", range(BLOCKS))
def test_lowered_statements_stay_within_their_claims(engine: duckdb.DuckDBPyConnection, block: int) -> None:
    """A sample of the neighbour machine's pairs through DuckDB."""
    assert len(list(islice(pairs(engine, block, BLOCKS), PAIRS // BLOCKS))) == PAIRS // BLOCKS == 80


@pytest.mark.audit
@pytest.mark.parametrize("part", range(BLOCKS))
def test_many_more_lowered_statements(engine: duckdb.DuckDBPyConnection, part: int, record_property: Callable[[str, object], None]) -> None:
    assert len(list(islice(pairs(engine, FIRST + part, BLOCKS), MORE // BLOCKS))) == MORE // BLOCKS == 1000
    record_property("pairs", MORE // BLOCKS)


@pytest.mark.parametrize("seed", range(150))
def test_what_the_lowering_enforced_costs_the_same(seed: int) -> None:
    """The bounds re-derived from the statement and those of the plan have the same sensitivities, for both adjacencies."""
    s = sample(seed)
    lowered = lower(s.release, SALT)
    for adjacency in Adjacency:
        assert sensitivities(lowered.enforced, adjacency) == sensitivities(enforced(s.release), adjacency)
    assert lowered.enforced.selecting == enforced(s.release).selecting
