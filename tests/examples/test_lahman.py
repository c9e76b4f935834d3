"""The baseball questions against the true answers.

Every cell has an interval at a confidence of 1 - 1e-8, and there are fewer than 100 cells: a run in a million fails by chance alone.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import duckdb
import pytest

import dpquery

SCRIPT = Path(__file__).parents[2] / "examples" / "03_lahman.py"
CONFIDENCE = "0.99999999"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lahman_example", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["lahman_example"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def schema(example: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return example.prepare(tmp_path_factory.mktemp("lahman"))


def test_at_least_six_questions(example: ModuleType) -> None:
    assert len(example.QUESTIONS) >= 6


def test_private_answers_agree_with_the_true_ones(example: ModuleType, schema: Path) -> None:
    """No bound of the schema bites on this data, so noise alone separates the answers."""
    cells = 0
    with dpquery.connect(schema) as con, duckdb.connect(str(schema.with_suffix(".duckdb")), read_only=True) as plain:
        for question in example.QUESTIONS:
            answer = con.query(question.private, epsilon=question.epsilon, delta="1e-8", confidence=CONFIDENCE)
            truth = plain.sql(question.sql)
            keys = [name for name in answer.columns if name not in answer.intervals]
            known = {tuple(row[truth.columns.index(key)] for key in keys): row for row in truth.fetchall()}
            rows = answer.fetchall()
            assert rows, question.title
            for place, row in enumerate(rows):
                true = known[tuple(row[answer.columns.index(key)] for key in keys)]
                for name, bars in answer.intervals.items():
                    bar = bars[place]
                    assert bar is not None, question.title
                    assert float(bar[0]) <= float(true[truth.columns.index(name)]) <= float(bar[1]), (question.title, row, true)
                    cells += 1
    assert 20 <= cells < 100


def test_every_group_of_a_listed_key_appears(example: ModuleType, schema: Path) -> None:
    with dpquery.connect(schema) as con:
        answer = con.query("SELECT bats, count(*) AS players FROM people GROUP BY bats", epsilon="0.5")
    assert [row[0] for row in answer.fetchall()] == ["B", "L", "R"]


def test_usable(example: ModuleType, schema: Path) -> None:
    """The mean height is known to an eighth of an inch at epsilon 1: noise is no excuse for a useless answer."""
    with dpquery.connect(schema) as con:
        answer = con.query("SELECT avg(height) AS inches FROM people", epsilon="1", confidence="0.99")
    low, high = answer.intervals["inches"][0]
    assert high - low < 0.25
