"""What is audited: statements of each shape that a release can have, over data sets that one adversarial unit makes as unlike as it can."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import duckdb

from dpquery.backends.lower import lower
from dpquery.engine import asking, create_ledger, open_session
from dpquery.engine.session import Prepared
from dpquery.mechanisms import Noise
from dpquery.plan.release import ListedKeys, Mechanism, PrivateKeys
from dpquery.values.exact import Exact

SCHEMA = """
dataset: audited
source: {engine: duckdb, path: audited.duckdb}
privacy_unit: people.pid
adjacency: {adjacency}
budget: {epsilon: 100000, delta: 0.1}
per_query: {epsilon: 1, delta: 1e-6}
contribution: {max_groups_contributed: 2, max_rows_per_group: 2}
tables:
  people:
    unit: pid
    max_rows_per_unit: 1
    columns: {pid: {type: integer}, c: {type: string, values: [a, b, c]}, age: {type: integer, lower: 1, upper: 5}}
  orders:
    unit: pid
    columns:
      oid: {type: integer, unique: true}
      pid: {type: integer}
      k: {type: string}
      signed: {type: integer, lower: -2, upper: 3}
      plus: {type: integer, lower: 2, upper: 4}
      real: {type: float, lower: -1, upper: 1}
  items: {unit: {via: oid, references: orders.oid}, columns: {oid: {type: integer}, price: {type: integer, lower: 2, upper: 7}}}
  places: {public: true, columns: {k: {type: string}, r: {type: string}}}
"""
TABLES = """
CREATE TABLE people(pid INT, c VARCHAR, age INT);
CREATE TABLE orders(oid INT, pid INT, k VARCHAR, signed INT, plus INT, real DOUBLE);
CREATE TABLE items(oid INT, price INT);
CREATE TABLE places AS SELECT * FROM (VALUES ('a', 'x'), ('a', 'y'), ('b', 'x'), ('c', 'z'), ('e', 'y'), ('e', 'z'), ('f', 'w')) AS t(k, r);
INSERT INTO people SELECT i, ['a', 'b', 'c'][1 + i % 3], 3 FROM range(2, 122) AS r(i);
INSERT INTO orders SELECT 100 * i + j, i, ['a', 'b', 'g', 'h'][1 + j + 2 * (i % 2)], i % 4, 3, 0.25 FROM range(2, 122) AS r(i), range(2) AS s(j);
INSERT INTO items SELECT oid, 3 FROM orders;
"""
HIGH, LOW = (99, 99, 9.0, 99), (-99, -99, -9.0, -99)  # signed, plus, real, price: far beyond the bounds


@dataclass(frozen=True)
class Unit:
    """Unit 1: its row of people, the groups of its orders, how many it has in each, and their values. It is alone in groups c to f."""

    country: str
    age: int
    groups: str
    each: int
    values: tuple[float, ...]


# The other units are in groups a, b, g and h.
UNITS: Mapping[str, Unit | None] = {
    "gone": None,
    "idle": Unit("a", 3, "", 0, HIGH),
    "high": Unit("a", 5, "ef", 3, HIGH),
    "low": Unit("a", 1, "ef", 3, LOW),
    "elsewhere": Unit("b", 5, "cd", 3, HIGH),
    "shared": Unit("a", 5, "ab", 3, HIGH),
    "shared elsewhere": Unit("b", 5, "gh", 3, HIGH),
    "both": Unit("a", 5, "ae", 3, HIGH),
    "both low": Unit("b", 1, "ae", 3, LOW),
}
VERSIONS: Mapping[str, tuple[str, ...]] = {  # add/remove has the unit there or gone, replace-one there or there with other rows
    "add_remove": ("gone", "high", "low", "shared", "both"),
    "replace_one": ("idle", "high", "elsewhere", "shared", "shared elsewhere", "both", "both low"),
}

CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
GAUSSIAN = f"{CLAUSE}(group_selection_strategy = GAUSSIAN_THRESHOLD, delta = 0.04"
LISTED = "WHERE k IN ('a', 'c', 'd', 'e', 'f') GROUP BY k"
SHAPES: Mapping[str, str] = {
    "count": "SELECT count(*) FROM orders",
    "sum of both signs": "SELECT sum(signed) FROM orders",
    "mean": "SELECT avg(plus) FROM orders",
    "three aggregates": "SELECT count(*), sum(signed), avg(plus) FROM orders",
    "epsilon 4": f"{CLAUSE}(epsilon = 4) count(*), sum(real) FROM orders",
    "explicit shares": "SELECT count(*, epsilon => 0.2), sum(signed, epsilon => 0.7) FROM orders",
    "Gaussian": f"{CLAUSE}(noise = GAUSSIAN, delta = 0.001) count(*), sum(real) FROM orders",
    "price in rho": f"{CLAUSE}(rho = 0.2, noise = GAUSSIAN) k, count(*), sum(signed) FROM orders {LISTED}",
    "Laplace priced in rho": f"{CLAUSE}(rho = 0.2, noise = LAPLACE) k, count(*), sum(signed) FROM orders {LISTED}",
    "public keys, some empty": f"SELECT k, count(*), sum(plus) FROM orders {LISTED}",
    "all of few keys": "SELECT k, sum(signed) FROM orders WHERE k IN ('a', 'e') GROUP BY k",
    "means of heavy units": f"SELECT k, avg(signed) FROM orders {LISTED}",
    "row weights": f"{CLAUSE}(max_rows_contributed = 3) count(*), sum(signed) FROM orders",
    "row weights in groups": f"{CLAUSE}(max_rows_contributed = 3) k, count(*), sum(signed) FROM orders {LISTED}",
    "key of the unit": "SELECT c, count(*), avg(age) FROM people GROUP BY c",
    "private keys, Laplace": f"{CLAUSE}(noise = LAPLACE, delta = 0.02) k, count(*), sum(plus) FROM orders GROUP BY k",
    "private keys, Gaussian": f"{GAUSSIAN}, noise = GAUSSIAN) k, count(*) FROM orders GROUP BY k",
    "private keys, both noises": f"{GAUSSIAN}, noise = LAPLACE) k, sum(plus) FROM orders GROUP BY k",
    "hidden count of the threshold": f"{CLAUSE}(delta = 0.02) k, sum(signed) FROM orders GROUP BY k",
    "keys alone": f"{CLAUSE}(delta = 0.02, epsilon = 2) DISTINCT k FROM orders",
    "distinct units": f"{CLAUSE}(delta = 0.02, epsilon = 2) k, count(DISTINCT pid) FROM orders GROUP BY k",
    "groups of three at least": f"{CLAUSE}(delta = 0.02, min_privacy_units_per_group = 3) k, count(*) FROM orders GROUP BY k",
    "join with a public table": "SELECT r, count(*), sum(plus) FROM orders JOIN places USING (k) GROUP BY r",
    "join on the unit": "SELECT c, count(*), sum(signed) FROM orders JOIN people USING (pid) GROUP BY c",
    "self-join on the unit": "SELECT a.k, count(*) FROM orders a JOIN orders b ON a.pid = b.pid WHERE a.k IN ('a', 'c', 'd', 'e', 'f') GROUP BY a.k",
    "join along the path": f"SELECT k, sum(price) FROM items JOIN orders USING (oid) {LISTED}",
    "subquery": "WITH w AS (SELECT signed * 2 - plus AS x, k FROM orders WHERE k <> 'b') SELECT sum(x), count(*) FROM w",
    "FILTER": f"SELECT k, count(*) FILTER (WHERE signed > 0), sum(signed) FILTER (WHERE plus <> 3) FROM orders {LISTED}",
    "bounds of a group": f"SELECT k, sum(signed, contribution_bounds_per_group => (-3, 5)) FROM orders {LISTED}",
}
PRIVATE = (
    "private keys, Laplace",
    "private keys, Gaussian",
    "private keys, both noises",
    "hidden count of the threshold",
    "keys alone",
    "distinct units",
    "groups of three at least",
)
ALONE = tuple(f"{shape}: alone" for shape in PRIVATE)  # the pair in which unit 1 is alone in groups, which then show by chance only
SALT = 1


@dataclass(frozen=True)
class Pair:
    """A statement and the exact sums of two neighbouring data sets."""

    shape: str
    prepared: Prepared
    names: tuple[str, str]
    sums: tuple[Exact, Exact]


def pairs(folder: Path, adjacency: str, shapes: Mapping[str, str] = SHAPES) -> dict[str, Pair]:
    """Each shape's pair of the largest loss, and for private keys, as `<shape>: alone`, the one in which most groups hold unit 1 alone."""
    exact = {unit: dict(zip(shapes, _sums(folder / adjacency / unit, adjacency, unit, shapes), strict=True)) for unit in VERSIONS[adjacency]}
    found: dict[str, Pair] = {}
    for shape in shapes:
        prepared = exact["high"][shape][0]
        assert all(sums[shape][0].blocks[0].priced == prepared.blocks[0].priced for sums in exact.values()), "the price depends on the data"
        tried = [Pair(shape, prepared, names, (exact[names[0]][shape][1], exact[names[1]][shape][1])) for names in _neighbours(adjacency)]
        found[shape] = max(tried, key=loss)
        if isinstance(prepared.blocks[0].release.keys, PrivateKeys):
            found[f"{shape}: alone"] = max(tried, key=alone)
    return found


def _neighbours(adjacency: str) -> Iterator[tuple[str, str]]:
    """Each test looks at both directions of a pair."""
    first, *others = VERSIONS[adjacency]
    yield from ((one, first) for one in others) if adjacency == "add_remove" else permutations((first, *others), 2)


def loss(pair: Pair) -> float:
    """The largest privacy loss of the sums under the noise that is charged, over groups that both data sets have."""
    one, two = (groups(pair, side) for side in (0, 1))
    private = isinstance(pair.prepared.blocks[0].release.keys, PrivateKeys)
    both = one.keys() & two.keys() if private else one.keys() | two.keys()
    noises = pair.prepared.blocks[0].priced.noises
    nothing = (0,) * len(noises)
    return sum(_loss(abs(one.get(key, nothing)[i] - two.get(key, nothing)[i]), drawn) for key in both for i, drawn in enumerate(noises))


def _loss(shift: int, drawn: Noise) -> float:
    return float(shift / drawn.parameter if drawn.mechanism is Mechanism.LAPLACE else Fraction(shift**2) / (2 * drawn.parameter))


def alone(pair: Pair) -> int:
    """How many groups the first data set has and the second has not."""
    return len(groups(pair, 0).keys() - groups(pair, 1).keys())


def groups(pair: Pair, side: int) -> dict[tuple[object, ...], tuple[int, ...]]:
    """The exact sums of one side by group."""
    exact, table = pair.sums[side], pair.prepared.blocks[0].release.table
    return dict(zip(exact.keys if table.keys else [()], zip(*exact.sums, strict=True), strict=True))


def laid_out(pair: Pair) -> list[tuple[object, ...]]:
    """All groups that either data set can show."""
    keys = pair.prepared.blocks[0].release.keys
    return list(keys.rows) if isinstance(keys, ListedKeys) else sorted(groups(pair, 0).keys() | groups(pair, 1).keys(), key=repr)


def made(folder: Path, adjacency: str, unit: str, more: str = "") -> Path:
    """The schema file of a data set with this version of unit 1."""
    folder.mkdir(parents=True)
    with duckdb.connect(str(folder / "audited.duckdb")) as con:
        con.execute(TABLES)
        rows = UNITS[unit]
        if rows is not None:
            con.execute("INSERT INTO people VALUES (1, ?, ?)", [rows.country, rows.age])
            for i, group in enumerate(rows.groups * rows.each):
                con.execute("INSERT INTO orders VALUES (?, 1, ?, ?, ?, ?)", [i, group, *rows.values[:3]])
                con.execute("INSERT INTO items VALUES (?, ?)", [i, rows.values[3]])
    file = folder / "audited.yaml"
    file.write_text(SCHEMA.replace("{adjacency}", adjacency) + more)
    create_ledger(file)
    return file


def _sums(folder: Path, adjacency: str, unit: str, shapes: Mapping[str, str]) -> Iterator[tuple[Prepared, Exact]]:
    """Each statement as the engine prepares it over this data, and its exact sums, the choice of groups being the same everywhere."""
    session = open_session(made(folder, adjacency, unit))
    try:
        for sql in shapes.values():
            prepared = session._prepare(sql, asking.call(), "duckdb")
            table = prepared.blocks[0].release.table
            yield prepared, session.backend.run(lower(prepared.blocks[0].release, SALT), tuple(key.type for key in table.keys), len(table.parts))
    finally:
        session.close()
