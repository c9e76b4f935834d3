"""Contribution limits in force, and schemas that say little."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpquery.errors import Refused
from dpquery.plan.draft import Contributions
from dpquery.schema.model import Schema
from dpquery.schema.read import read as read_schema
from dpquery.sql import read

BARE = """
dataset: bare
source: {engine: duckdb, path: bare.duckdb}
privacy_unit: people.id
budget: {epsilon: 1}
tables:
  people: {unit: id, max_rows_per_unit: 1, columns: {id: {type: integer}, age: {type: integer, lower: 0, upper: 120}, city: {type: string}}}
  trips: {unit: id, columns: {id: {type: integer}, km: {type: integer, lower: 0, upper: 9}, city: {type: string}}}
  rides:
    unit: id
    contribution: {max_groups_contributed: 7, max_rows_per_group: 9, join_rows_per_unit: 11}
    columns: {id: {type: integer}, city: {type: string}}
views:
  priced: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) COUNT(*) FROM people
  named: SELECT LOWER(city, epsilon => 1) AS c FROM people
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    path: Path = tmp_path_factory.mktemp("bare") / "bare.yaml"
    path.write_text(BARE)
    return read_schema(path)


@pytest.mark.parametrize(
    ("sql", "limits"),
    [
        ("SELECT city, COUNT(*) FROM people GROUP BY city", Contributions(1, 1, 1000)),
        ("SELECT city, COUNT(*) FROM rides GROUP BY city", Contributions(7, 9, 11)),
        ("SELECT COUNT(DISTINCT id) FROM trips", Contributions(1, 1, 1000)),
        ("SELECT SUM(km, contribution_bounds_per_group => (0, 9)) FROM trips", Contributions(1, 1, 1000)),
        ("SELECT r.city, COUNT(*) FROM rides r JOIN trips t ON r.id = t.id GROUP BY r.city", Contributions(7, 9, 11)),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed=2, max_rows_per_group=3) city, COUNT(*) FROM rides GROUP BY city",
            Contributions(2, 3, 11, groups_given=True, rows_given=True),
        ),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed=5) city, COUNT(*) FROM trips WHERE city = 'x' GROUP BY city",
            Contributions(1, 1, 1000, weights=5),
        ),
    ],
)
def test_limits_in_force(bare: Schema, sql: str, limits: Contributions) -> None:
    assert read(sql, bare).blocks[0].draft.contributions == limits


@pytest.mark.parametrize(
    ("sql", "missing"),
    [
        ("SELECT city, COUNT(DISTINCT id) FROM trips GROUP BY city", "max_groups_contributed"),
        ("SELECT city FROM trips GROUP BY city", "max_groups_contributed"),
        ("SELECT COUNT(*) FROM trips", "max_rows_per_group"),
        ("SELECT COUNT(DISTINCT id), AVG(km) FROM trips", "max_rows_per_group"),
    ],
)
def test_a_limit_that_nobody_set_is_asked_for(bare: Schema, sql: str, missing: str) -> None:
    with pytest.raises(Refused) as caught:
        read(sql, bare)
    assert caught.value.code == "MISSING_LIMIT"
    assert caught.value.position is not None
    assert missing in str(caught.value.instead)


@pytest.mark.parametrize("view", ["priced", "named"])
def test_views_hold_no_clause(bare: Schema, view: str) -> None:
    with pytest.raises(Refused) as caught:
        read(f"SELECT COUNT(*) FROM {view}", bare)
    assert caught.value.code == "VIEW_CLAUSE"
    assert str(caught.value.position) == "line 1, column 22"


@pytest.mark.parametrize("text", ["CURRENT_DATE > DATE '2024-01-01'", "now() > TIMESTAMP '2024-01-01'"])
def test_without_a_clock_the_time_is_not_guessed(bare: Schema, text: str) -> None:
    for sql in (f"SELECT COUNT(*) FROM people WHERE {text}", f"SELECT COUNT(*), {text} FROM people"):
        with pytest.raises(Refused) as caught:
            read(sql, bare)
        assert caught.value.code == "CLOCK"
