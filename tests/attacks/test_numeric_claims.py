"""True worst cases, measured through SQL on small domains, against the claims: more is a hole, less is noise paid for nothing.

One statement of DuckDB holds every unit that can be: each bag of up to four rows over three groups and extreme values. A unit's own cells are what
it adds to the exact sums (L8), so their magnitudes are add/remove, and their differences over all pairs of bags replace-one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import attack_lab
import duckdb
import numpy as np
import pytest
from numeric_lab import DATA, SCHEMA, inserted

from dpquery.backends import relation
from dpquery.backends.lower import lower
from dpquery.engine import asking
from dpquery.engine.session import Session
from dpquery.plan.rel import Lookup, walk
from dpquery.privacy import sensitivities
from dpquery.privacy.contribution import Sensitivity
from dpquery.values.types import Adjacency

ROWS = [(key, value) for key in "abc" for value in (-9, 9, None)]
BAGS = [bag for size in range(5) for bag in combinations_with_replacement(ROWS, size)]
ALL = "count(*), sum(signed), sum(plus), avg(signed), avg(real), sum(money), count(plus)"
WEIGHED = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed = 2)"
EXACT = [
    f"SELECT {ALL}, count(DISTINCT pid) FROM orders",
    "SELECT count(*), sum(age), avg(age), count(age) FROM people",
    f"SELECT c, {ALL} FROM people JOIN orders USING (pid) GROUP BY c",
    f"SELECT k, {ALL}, count(DISTINCT pid) FROM orders WHERE k IN ('a', 'b') GROUP BY k",
    "SELECT k, count(*), sum(plus), count(plus), count(DISTINCT pid) FROM orders WHERE k IN ('a', 'b', 'c') GROUP BY k",
    "SELECT c, count(*), sum(age), avg(age) FROM people WHERE c = 'a' GROUP BY c",
    f"{WEIGHED} {ALL} FROM orders",
    f"{WEIGHED} k, {ALL} FROM orders WHERE k IN ('a', 'b', 'c') GROUP BY k",
    "SELECT sum(signed, contribution_bounds_per_group => (1, 2)), count(*, contribution_bounds_per_group => (2, 3)) FROM orders",
    "SELECT sum(real, contribution_bounds_per_group => (0.3, 0.4)), count(*, contribution_bounds_per_group => (0.5, 1.9)) FROM orders",
]
WITHIN = [  # the true worst case needs a fourth group, which these bags do not have
    f"SELECT k, {ALL}, count(DISTINCT pid) FROM orders GROUP BY k",
    "SELECT r, count(*), sum(signed), avg(plus) FROM orders JOIN places USING (k) GROUP BY r",
    "SELECT CASE WHEN signed > 0 THEN 'x' ELSE 'y' END AS z, k, count(*), sum(signed) FROM orders WHERE k IN ('a', 'b') GROUP BY 1, 2",
    "SELECT count(*) FILTER (signed > 0), sum(signed) FILTER (plus > 0), avg(signed) FILTER (k = 'a') FROM orders",
]


@pytest.fixture(scope="module", params=list(Adjacency))
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    more = f"{attack_lab.ORDINARY}\nadjacency: {request.param}"
    with attack_lab.opened(attack_lab.made(tmp_path_factory.mktemp("claims"), DATA, more, SCHEMA)) as found:
        yield found


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """Every bag is a unit."""
    with duckdb.connect(":memory:") as con:
        con.execute("ATTACH ':memory:' AS data; USE data")
        con.execute(DATA)
        people = [(unit, "abc"[unit % 3], [0, 9, None][unit // 3 % 3]) for unit in range(len(BAGS))]
        orders = [(unit, key, value, value, value, value) for unit, bag in enumerate(BAGS) for key, value in bag]
        for table, rows in (("people", people), ("orders", orders)):
            con.execute(inserted(f"data.{table}", rows))
        con.execute("USE memory; CREATE TABLE places AS FROM data.places")
        yield con


def worst(session: Session, con: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Sensitivity, dict[str, int], float]]:
    """For each part the claim, the largest norms that any unit reaches, and the share of Laplace noise's claimed rho that is reached."""
    release = session._prepare(sql, asking.call(epsilon=1, delta="1e-6"), "duckdb").blocks[0].release
    lowered = lower(release, 1)
    for rel in walk(release.table.input):
        if isinstance(rel, Lookup):
            con.execute(f"DROP TABLE IF EXISTS {rel.public.name}")
            con.execute(relation.made(rel.public))
    cells = by_unit(con, lowered.text, len(release.table.parts))
    adjacency = session.schema.adjacency
    return [(claim, *reached(part, claim, adjacency)) for part, claim in zip(cells, sensitivities(lowered.enforced, adjacency), strict=True)]


def by_unit(con: duckdb.DuckDBPyConnection, text: str, parts: int) -> list[np.ndarray[Any, Any]]:
    """The statement's cells before its last sum over units: for each part an array of units by groups."""
    late = re.fullmatch(r"(.*),\nsummed AS \(SELECT .* FROM (\w+) GROUP BY k0\)\nSELECT l\.k, .* FROM summed AS r (JOIN .*)", text, re.S)
    if late is None:
        head, _, last = text.rpartition("\nSELECT ")
        found = re.fullmatch(r".* FROM (.*?)(?: GROUP BY (.*))?", last, re.S)
        assert found is not None
        source, groups = found[1], [] if found[2] is None else found[2].split(", ")
    else:  # groups are looked for in the list after cells are added up
        head, groups = late[1], ["k"]
        source = f"(SELECT r.*, l.k FROM {late[2]} AS r {late[3]})"
    for name in ("cells", "clamped", "capped", "weighted"):
        head = re.sub(rf"\b{name} AS \(SELECT (?!u,)", f"{name} AS (SELECT u, ", head)
    head = head.replace("joined AS (SELECT ", "joined AS (SELECT r.u, ")
    by = ", ".join(["u", *groups])
    sums = ", ".join(f"coalesce(sum(v{i}), 0)::DOUBLE" for i in range(parts))
    rows = con.execute(f"{head}\nSELECT {by}, {sums} FROM {source} GROUP BY {by}").fetchall()
    places = {key: i for i, key in enumerate(dict.fromkeys(row[1 : 1 + len(groups)] for row in rows))}
    cells = np.zeros((parts, len(BAGS), len(places)))
    for row in rows:
        cells[:, row[0], places[row[1 : 1 + len(groups)]]] = row[1 + len(groups) :]
    return list(cells)


def reached(cells: np.ndarray[Any, Any], claim: Sensitivity, adjacency: Adjacency) -> tuple[dict[str, int], float]:
    units = np.unique(np.vstack([cells, np.zeros(cells.shape[1])]), axis=0)
    moved = abs(units if adjacency is Adjacency.ADD_REMOVE else (units[:, None, :] - units[None, :, :]).reshape(-1, cells.shape[1]))
    scale = claim.l1 / 2
    share = _rho(moved / scale).sum(1).max() / max(count * _rho(np.array(shift / scale)) for count, shift in claim.moves)
    norms = {"linf": moved.max(), "l1": moved.sum(1).max(), "l2_squared": (moved**2).sum(1).max()}
    return {name: round(float(value)) for name, value in norms.items()}, float(share)


def _rho(e: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = e * np.tanh(e / 2)
    return found


@pytest.mark.parametrize("sql", EXACT)
def test_claims_are_the_true_worst_case(session: Session, engine: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Each norm is reached and never passed. (Rows of uneven signs under row weights have one pattern fewer than Laplace's rho allows for.)"""
    for claim, norms, share in worst(session, engine, sql):
        assert norms == {"linf": claim.linf, "l1": claim.l1, "l2_squared": pytest.approx(claim.l2_squared, rel=1e-9)}
        assert 0.6 < share <= 1 + 1e-9


@pytest.mark.lemma("C3", "C4", "C5", "C6", "C7", "L8")
@pytest.mark.parametrize("sql", WITHIN)
def test_claims_are_never_passed(session: Session, engine: duckdb.DuckDBPyConnection, sql: str) -> None:
    for claim, norms, share in worst(session, engine, sql):
        assert norms["linf"] <= claim.linf
        assert norms["l1"] <= claim.l1
        assert norms["l2_squared"] <= claim.l2_squared * (1 + 1e-12)
        assert share <= 1 + 1e-9
