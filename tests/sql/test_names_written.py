"""Names in refusals as they can be pasted: in quotation marks where they are not plain words."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpquery.errors import Refused
from dpquery.schema.model import Schema
from dpquery.schema.read import loads
from dpquery.sql import read
from dpquery.sql.binnable import hints

SCHEMA = """
dataset: school
source: {path: school.duckdb}
privacy_unit: pupils.Pupil-ID
budget: {epsilon: 9}
contribution: {max_groups_contributed: 4, max_rows_per_group: 9}
tables:
  pupils:
    unit: Pupil-ID
    columns:
      "Pupil-ID": {type: string}
      "School name": {type: string}
      grade: {type: integer, lower: 5, upper: 10}
      "math score": {type: float, lower: 0, upper: 100}
  absences: {unit: Pupil-ID, columns: {"Pupil-ID": {type: string}, from: {type: date}, days: {type: integer, lower: 0, upper: 9}}}
"""
REFUSED = [
    # dialect, statement, part of what is told, the statement that is offered
    ("duckdb", 'SELECT avg("math scor") FROM pupils', 'did you mean "math score"?', 'SELECT avg("math score") FROM pupils'),
    ("duckdb", "SELECT avg(math score) FROM pupils", "", None),
    ("duckdb", "SELECT count(Pupil-ID) FROM pupils", 'did you mean "Pupil-ID"?', 'SELECT count("Pupil-ID") FROM pupils'),
    ("bigquery", "SELECT count(Pupil-ID) FROM pupils", "did you mean `Pupil-ID`?", "SELECT count(`Pupil-ID`) FROM pupils"),
    (
        "duckdb",
        'SELECT "Pupil-ID", grade, count(*) FROM pupils GROUP BY "Pupil-ID", grade',
        'COUNT(DISTINCT "Pupil-ID")',
        'SELECT COUNT(DISTINCT "Pupil-ID"), grade, count(*) FROM pupils GROUP BY grade',
    ),
    (
        "duckdb",
        'SELECT "School name", "math score", count(*) FROM pupils GROUP BY 1',
        '"math score" in GROUP BY, or AVG("math score")',
        'SELECT "School name", AVG("math score"), count(*) FROM pupils GROUP BY 1',
    ),
    (
        "duckdb",
        "SELECT count(*) FROM pupils p JOIN absences a ON p.grade = a.days",
        'AND p."Pupil-ID" = a."Pupil-ID" in ON',
        'SELECT count(*) FROM pupils p JOIN absences a ON p."Pupil-ID" = a."Pupil-ID" AND p.grade = a.days',
    ),
    (
        "duckdb",
        'SELECT sum(days) FROM (SELECT days, row_number() OVER (ORDER BY "from") AS k FROM absences) x WHERE k = 1',
        'absences."Pupil-ID" in PARTITION BY',
        'SELECT sum(days) FROM (SELECT days, row_number() OVER (PARTITION BY absences."Pupil-ID" ORDER BY "from") AS k FROM absences) x WHERE k = 1',
    ),
    ("duckdb", "SELECT count(*) FROM pupils WHERE 'math score' > 50", '"math score", if the column is meant', None),
    ("duckdb", "SELECT date_trunc('month', from), count(*) FROM absences GROUP BY 1", '"from", if the column is meant', None),
    ("duckdb", "SELECT TOP 3 grade, count(*) FROM pupils GROUP BY grade", "LIMIT 3 at the end", None),
    ("spark", "SELECT date_trunc('month', from), count(*) FROM absences GROUP BY 1", "`from`, if the column is meant", None),
]


@pytest.fixture(scope="module")
def school() -> Schema:
    return loads(SCHEMA, Path("/data/school.yaml"))


@pytest.mark.parametrize(("dialect", "sql", "part", "rewritten"), REFUSED)
def test_names_are_written_so_that_they_can_be_pasted(dialect: str, sql: str, part: str, rewritten: str | None, school: Schema) -> None:
    with pytest.raises(Refused) as caught:
        read(sql, school, dialect=dialect)
    assert part in f"{caught.value.message} {caught.value.instead}"
    assert caught.value.rewritten == rewritten
    if rewritten is not None:
        read(rewritten, school, dialect=dialect)


@pytest.mark.parametrize(
    ("key", "hinted"),
    [("grade", ["With floor(grade) in place of grade the key is public"]), ("floor(grade)", []), ('"School name"', []), ('"Pupil-ID" || grade', [])],
)
def test_a_whole_number_within_bounds_is_told_to_be_a_public_key_as_bins(key: str, hinted: list[str], school: Schema) -> None:
    draft = read(f"SELECT {key}, count(*) FROM pupils GROUP BY {key}", school).blocks[0].draft
    assert [one.partition(";")[0] for one in hints(draft)] == hinted
    if hinted:
        assert read("SELECT floor(grade), count(*) FROM pupils GROUP BY 1", school).blocks[0].draft.sources
