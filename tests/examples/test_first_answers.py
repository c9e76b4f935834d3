"""What a newcomer asks first is answered well: each error bar is small beside the number that it stands at."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import dpquery

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r'query --schema \S+ (?:--analyst \w+ )?--epsilon (?P<epsilon>[\d.]+) "(?P<sql>[^"]*)"')
CALL = re.compile(r'con\.query\("(?P<sql>[^"]*)", epsilon="?(?P<epsilon>[\d.]+)"?\)')
SQL = re.compile(r'sql = "(?P<sql>[^"]*)"(?:.|\n)*?epsilon="(?P<epsilon>[\d.]+)"')
FIRST = [
    ("README.md", COMMAND),
    ("README.md", CALL),
    ("examples/00_demo.sh", COMMAND),
    ("examples/01_python.py", SQL),
    ("examples/02_groups.py", CALL),
]


@pytest.fixture(scope="module")
def made(shop: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shop(tmp_path_factory.mktemp("first") / "demo")


@pytest.mark.parametrize(("file", "pattern"), FIRST, ids=[f"{file} {i}" for i, (file, _) in enumerate(FIRST)])
def test_the_first_answer_is_useful(made: Path, file: str, pattern: re.Pattern[str]) -> None:
    found = pattern.search((ROOT / file).read_text())
    assert found is not None
    with duckdb.connect(str(made.with_suffix(".duckdb")), read_only=True) as plain:
        rows = plain.execute(found["sql"]).fetchall()
    with dpquery.connect(made) as con:
        releases = con.explain(found["sql"], epsilon=found["epsilon"]).releases
    least = min(row[1] for row in rows)
    for place, release in enumerate(releases, 1):
        error = release["expected_error"]
        if not isinstance(error, dict):
            assert error <= 0.05 * min(float(row[place]) for row in rows), release["aggregate"]
        elif least >= 1000:
            assert error["n=1000"] <= 0.05 * min(float(row[place]) for row in rows), release["aggregate"]
