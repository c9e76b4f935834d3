"""`dpquery profile` and con.profile: caps chosen once, charged, written into the schema with where they come from."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest
from command_line import Command
from ruamel.yaml import YAML

import dpquery
from dpquery.errors import Refused

SCHEMA = """\
dataset: profiled
source: {engine: duckdb, path: profiled.duckdb}
privacy_unit: users.user_id
budget: {epsilon: 40, delta: 1e-6}
per_query: {epsilon: 1, delta: 1e-9}
contribution: {max_groups_contributed: 4}   # a comment that stays
tables:
  users: {unit: user_id, max_rows_per_unit: 1, columns: {user_id: {type: integer, unique: true}}}
  orders:
    unit: user_id
    columns:
      user_id: {type: integer}
      amount: {type: float, lower: 0, upper: 500}
      k: {type: integer}
      item: {type: string, values: [a, b, c]}
  items: {unit: {via: user_id, references: users.user_id}, columns: {user_id: {type: integer}}}
  kinds: {public: true, columns: {k: {type: integer}}}
"""


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "profiled.duckdb")) as con:
        con.execute("CREATE TABLE users AS SELECT i AS user_id FROM range(1, 2001) t(i)")
        con.execute("CREATE TABLE items AS SELECT user_id FROM users; CREATE TABLE kinds AS SELECT 1 AS k")
        orders = "SELECT i % 2000 + 1 AS user_id, i % 400 + 0.5 AS amount, i % 90 AS k, ['a', 'b', 'c'][1 + i % 3] AS item FROM range(0, 20000) t(i)"
        con.execute(f"CREATE TABLE orders AS {orders}")
    path = tmp_path / "profiled.yaml"
    path.write_text(SCHEMA)
    dpquery.create_ledger(path)
    return path


def test_a_profile_is_charged_and_written_with_its_origin(schema: Path, command: Command) -> None:
    told = command("profile", "orders", "--schema", schema, "--epsilon", "8")
    assert told.status == 0
    said = " ".join(told.out.split())
    assert re.search(r"orders\.k upper [\d.]+ not known orders\.k lower -[\d.]+ not known", said)
    assert "(most_per_unit) takes a second profile, once these bounds are written; it is paid again." in said
    assert "Paid: epsilon 8, delta 0, by default. Left: epsilon 32, " in said
    assert "a comment that stays" in schema.read_text()
    written = YAML(typ="safe").load(schema.read_text())["tables"]["orders"]
    limits, columns = written["contribution"], written["columns"]
    assert 10 <= limits["max_rows_per_group"] <= 20
    assert limits["max_groups_contributed"] == 3
    assert 4_000 / 2 <= columns["amount"]["most_per_unit"] <= 8_000
    assert columns["k"]["lower"] == -columns["k"]["upper"]
    assert 89 <= columns["k"]["upper"] <= 200
    with dpquery.connect(schema) as con:
        assert con.budget().entries == 1
        assert str(con.budget().as_dict()["spent"]["epsilon"]) == "8"
        assert limits["origin"] == columns["amount"]["origin"]
        assert limits["origin"].startswith("profile, epsilon 8, entry ")
        found = con.query("SELECT count(*) AS n, sum(amount) AS s FROM orders", epsilon=8)
        assert any("(most_per_unit)" in one for one in found.warnings)
        assert abs(found.fetchall()[0][0] - 20_000) < 200


def test_printing_is_charged_and_says_so(schema: Path, command: Command) -> None:
    before = schema.read_text()
    said = " ".join(command("profile", "orders", "--schema", schema, "--epsilon", "2", "--print").out.split())
    assert "written nowhere: the price was charged all the same" in said
    assert "Paid: epsilon 2" in said
    assert "are not found again" not in said
    assert schema.read_text() == before


def test_without_writing_the_schema_stays_and_asking_again_is_free(schema: Path) -> None:
    before = schema.read_text()
    with dpquery.connect(schema) as con:
        first, second = (con.profile("orders", epsilon=2, write=False) for _ in range(2))
        assert con.budget().entries == 1
    assert schema.read_text() == before
    assert first["chosen"] == second["chosen"]
    assert [one["key"] for one in first["chosen"]] == ["max_rows_per_group", "max_groups_contributed", "most_per_unit", "upper"]


def test_what_cannot_be_profiled_is_refused(schema: Path) -> None:
    with dpquery.connect(schema) as con:
        for table, code in (("users", "PROFILE_TABLE"), ("items", "PROFILE_TABLE"), ("kinds", "PROFILE_TABLE"), ("none", "UNKNOWN_TABLE")):
            with pytest.raises(Refused) as caught:
                con.profile(table, epsilon=1)
            assert caught.value.code == code
        assert con.budget().entries == 0
