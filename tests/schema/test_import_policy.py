"""Policies of other systems as drafts of schema files; a draft whose TODOs are filled in is read."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from time import process_time

import pytest
from ruamel.yaml import YAML

from dpquery.errors import SchemaError
from dpquery.schema.policy import imported
from dpquery.schema.read import read

BIGQUERY = """{"differential_privacy_policy": {"privacy_unit_column": "user_id", "max_epsilon_per_query": 2.0, "epsilon_budget": 10.5,
"delta_per_query": 1e-9, "delta_budget": 1e-6, "max_groups_contributed": 3}}"""
VIEW = f"""-- the policy
CREATE OR REPLACE VIEW `project.shop.visits` OPTIONS(privacy_policy = '{BIGQUERY.replace(chr(10), " ")}') AS SELECT * FROM t;"""
SNOWFLAKE = """
CREATE OR REPLACE PRIVACY POLICY p AS () RETURNS PRIVACY_BUDGET ->
  PRIVACY_BUDGET(BUDGET_NAME => 'analysts', BUDGET_LIMIT => 300, MAX_BUDGET_PER_AGGREGATE => 0.5, BUDGET_WINDOW => 'Weekly');
ALTER TABLE db.s.visits ADD PRIVACY POLICY p ENTITY KEY (user_id);
ALTER TABLE visits ALTER COLUMN age SET PRIVACY DOMAIN BETWEEN (0, 120), COLUMN "state" SET PRIVACY DOMAIN IN ('CA', 'it''s)');
ALTER TABLE visits MODIFY COLUMN plan SET PRIVACY DOMAIN REFERENCES plans(plan);
"""


def filled(text: str, tmp_path: Path) -> Path:
    """The draft with something in place of each TODO."""
    file = tmp_path / "schema.yaml"
    text = text.replace("type: TODO, lower", "type: integer, lower").replace("dataset: TODO", "dataset: d").replace("path: TODO", "path: d.duckdb")
    text = text.replace("type: TODO", "type: string").replace("max_epsilon: TODO", "max_epsilon: 1").replace("epsilon: TODO", "epsilon: 0.5")
    file.write_text(text.replace("max_groups_contributed: TODO", "max_groups_contributed: 1").replace("per_group: TODO", "per_group: 5"))
    return file


@pytest.mark.parametrize("text", [VIEW, VIEW.replace("'", '"""')])
def test_bigquerys_policy_of_a_view(text: str, tmp_path: Path) -> None:
    found = read(filled(imported(text), tmp_path))
    assert (found.budget.epsilon, found.budget.delta) == (Decimal("10.5"), Decimal("1e-6"))
    assert (found.per_query.max_epsilon, found.per_query.delta) == (2, Decimal("1e-9"))
    assert found.contribution.max_groups_contributed == 3
    assert found.tables["visits"].unit == "user_id"


def test_bigquerys_policy_as_json_names_no_table() -> None:
    inner = {"aggregation_threshold_policy": {"threshold": 50, "privacy_unit_columns": "id"}}
    text = imported(json.dumps({"privacy_policy": json.dumps(inner)}))
    assert "min_units_per_group: 50\n" in text
    assert "privacy_unit: TODO.id\n" in text or 'privacy_unit: "TODO".id\n' in text
    assert "no counterpart" in imported('{"aggregation_threshold_policy": {"threshold": 5}, "join_restriction_policy": {}}')


def test_snowflakes_policies_and_domains(tmp_path: Path) -> None:
    text = imported(SNOWFLAKE)
    assert "BUDGET_WINDOW 'Weekly' is analysts.default.period" in text
    found = read(filled(text, tmp_path))
    columns = found.tables["visits"].columns
    assert (columns["age"].lower, columns["age"].upper) == (0, 120)
    assert columns["state"].values == ("CA", "it's)")
    assert found.tables["visits"].unit == "user_id"
    assert found.tables["plans"].public
    assert found.budget.epsilon == 300
    assert (found.analysts["default"].epsilon, found.analysts["default"].period) == (300, 7)


@pytest.mark.parametrize(("window", "days"), [("'Never'", None), ("'Monthly'", 31), ("'yearly'", 366), ("'Fortnightly'", None)])
def test_a_window_of_the_budget_is_the_analysts_period(window: str, days: int | None, tmp_path: Path) -> None:
    text = imported(SNOWFLAKE.replace("'Weekly'", window))
    assert ("is not known here" in text) == (window == "'Fortnightly'")
    analysts = read(filled(text, tmp_path)).analysts
    assert [one.period for one in analysts.values()] == ([None] if days is None else [days])


def test_a_composite_entity_key_is_the_owners_to_join(tmp_path: Path) -> None:
    text = imported("ALTER TABLE t ADD PRIVACY POLICY p ENTITY KEY (country, Id); ALTER TABLE u ADD PRIVACY POLICY p ENTITY KEY (id, ;")
    assert "t: the entity key country and Id has several columns" in text
    assert "privacy_unit: TODO\n" in text
    assert "unit: TODO\n    columns:\n      country: {type: TODO}\n      Id: {type: TODO}\n" in text
    assert "  u:" not in text


def test_bigquerys_resource_names_its_table() -> None:
    policy = {"differentialPrivacyPolicy": {"privacyUnitColumn": "user_id", "epsilonBudget": 3}}
    resource = {"tableReference": {"projectId": "p", "datasetId": "d", "tableId": "visits"}, "privacyPolicy": policy}
    assert "privacy_unit: visits.user_id\n" in imported(json.dumps(resource))
    assert "privacy_unit: TODO.user_id\n" in imported(json.dumps({**resource, "tableReference": {"tableId": 3}})).replace('"', "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT 1",
        "{",
        "[1]",
        '{"a": 1}',
        '{"differential_privacy_policy": {"epsilon_budget": "x"}}',
        '{"aggregation_threshold_policy": {"threshold": 1.5}}',
        "x" * 2**21,
        "{" * 5000,
    ],
)
def test_what_is_no_policy_is_a_schema_error(text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        imported(text)
    assert caught.value.code == "BAD_POLICY"


def test_a_name_cannot_end_its_line() -> None:
    text = imported('ALTER TABLE "a: {b}\\n#" ADD PRIVACY POLICY p ENTITY KEY ("x\ny: z");'.replace("\\n", "\n"))
    assert "\ny: z" not in text


def test_each_table_has_its_own_entity_key_and_names_have_no_case() -> None:
    text = imported(
        "ALTER TABLE Users ADD PRIVACY POLICY p ENTITY KEY (email); ALTER TABLE orders ADD PRIVACY POLICY p ENTITY KEY (mail);"
        "ALTER TABLE users ALTER COLUMN age SET PRIVACY DOMAIN BETWEEN (0, 120);"
        "ALTER TABLE USERS ALTER COLUMN AGE SET PRIVACY DOMAIN BETWEEN (0, 99);"
    )
    assert "privacy_unit: Users.email\n" in text
    assert "  Users:\n    unit: email\n" in text
    assert "  orders:\n    unit: mail\n" in text
    assert text.count("age: {type: TODO, lower: 0, upper: 99}") == 1
    assert "120" not in text
    assert "# orders.mail must hold the same values as Users.email" in text


def test_of_several_budgets_the_smallest_is_taken_and_all_are_named() -> None:
    text = imported("PRIVACY_BUDGET(BUDGET_NAME => 'a', BUDGET_LIMIT => 5) ELSE PRIVACY_BUDGET(BUDGET_NAME => 'b', BUDGET_LIMIT => 50)")
    assert "budget: {epsilon: 5," in text
    assert "# of the budgets 5, 50 the smallest is taken" in text


def test_the_json_of_the_rest_interface() -> None:
    text = imported(
        '{"privacyPolicy": {"differentialPrivacyPolicy": {"privacyUnitColumn": "user_id", "maxEpsilonPerQuery": 2.0, "epsilonBudget": 10.0, '
        '"deltaPerQuery": 1e-6, "deltaBudget": 1e-4, "maxGroupsContributed": "3"}, "joinRestrictionPolicy": {"joinCondition": "JOIN_ANY"}}}'
    )
    assert "budget: {epsilon: 10.0, delta: 0.0001}" in text
    assert "max_groups_contributed: 3" in text
    assert "# join_restriction_policy has no counterpart" in text


LONG: dict[str, Callable[[int], str]] = {
    "open comments": lambda n: "/* " * n,
    "tables": lambda n: "ALTER TABLE a " * n,
    "tables without end": lambda n: "TABLE a PRIVACY POLICY p " * n,
    "backslashes": lambda n: "'\\" * n,
    "quotes": lambda n: "'" * n + '"' * (n | 1),
    "names": lambda n: "TABLE IF EXISTS " + "a." * n,
    "policies": lambda n: 'VIEW a privacy_policy = """' * n,
    "spaces": lambda n: "privacy_policy" + " " * n + "privacy_policy =" + " " * n,
    "lists": lambda n: "ALTER TABLE t ALTER COLUMN a SET PRIVACY DOMAIN IN (" * (n // 20),
    "columns": lambda n: "ALTER TABLE t " + "".join(f"c{i} SET PRIVACY DOMAIN BETWEEN (0, 1), " for i in range(n // 40)) + ";",
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_text_is_read_in_linear_time(name: str) -> None:
    text = LONG[name](40_000)
    start = process_time()
    with suppress(SchemaError):
        imported(text)
    assert process_time() - start < 2


def test_an_item_of_a_domain_is_a_value_whatever_it_is() -> None:
    text = imported("ALTER TABLE t ALTER COLUMN a SET PRIVACY DOMAIN IN (1, -2.5, x: {y}, TRUE, 'a\nb', 1_000, \"q: ]}\", DATE '2020-01-01')")
    values = YAML(typ="safe").load(text)["tables"]["t"]["columns"]["a"]["values"]
    assert values == [1, -2.5, "x:{y}", True, "a\nb", "1_000", '"q: ]}"', "DATE2020-01-01"]
    text = imported("BUDGET_LIMIT => 3, MAX_BUDGET_PER_AGGREGATE => 'x\n y: 1'")
    assert "max_epsilon: TODO" in text
    assert "\n y: 1" not in text


PIECES = [
    *("ALTER TABLE ", "VIEW ", "IF EXISTS ", "t", "a.b", '"a b"', '"x', "`p.q`", "`", " SET PRIVACY DOMAIN ", "BETWEEN (", "IN (", "REFERENCES t(a)"),
    *("0", "-1.5", "1e9", "'it''s'", "'", ", ", ")", ";", "PRIVACY POLICY p ENTITY KEY (", "BUDGET_LIMIT => ", "BUDGET_WINDOW => ", "\n", "\u2028"),
    *("MAX_BUDGET_PER_AGGREGATE => ", "privacy_policy = '", '{"differential_privacy_policy": {"privacy_unit_column": "u: }", "epsilon_budget": 1}}'),
    *("#", ": ", "{", "]", "- ", "\\", "--", "/*", "*/", " ", "TODO", "null", "&a", "*a", "!!x", "%", "@"),
]


def test_whatever_is_read_a_draft_is_yaml_of_one_shape() -> None:
    chance, drafts = random.Random(7), 0
    for _ in range(400):
        text = "ALTER TABLE t ALTER COLUMN c SET PRIVACY DOMAIN IN (1); " * chance.randint(0, 1)
        text += "".join(chance.choices(PIECES, k=chance.randint(1, 30)))
        try:
            found = YAML(typ="safe").load(imported(text))
        except SchemaError:
            continue
        drafts += 1
        keys = ["dataset", "source", "privacy_unit", "adjacency", "budget", "per_query", "contribution", "tables"]
        assert [key for key in found if key != "min_units_per_group"] == keys, text
        for table in (found["tables"] or {}).values():
            assert table.keys() <= {"unit", "public", "columns"}, text
            assert all(isinstance(c, Mapping) and c.keys() <= {"type", "lower", "upper", "values"} for c in table["columns"].values()), text
    assert drafts > 100


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (BIGQUERY.replace("{", '{"new_policy": {"a": 1}, ', 1), "# new_policy is not known here, and nothing of it is read"),
        (BIGQUERY.replace('"privacy', '"budget_window": 7, "privacy', 1), "# differential_privacy_policy: budget_window is not known here"),
        ('{"aggregation_threshold_policy": {"threshold": 5, "mode": "soft"}}', "# aggregation_threshold_policy: mode is not known here"),
        (SNOWFLAKE.replace("BUDGET_LIMIT", "BUDGET_COLOUR => 'red', BUDGET_LIMIT"), "# BUDGET_COLOUR 'red' is not known here"),
        (SNOWFLAKE.replace("->", "-> CASE WHEN current_role() = 'ADMIN' THEN NO_PRIVACY_POLICY() ELSE", 1), "# NO_PRIVACY_POLICY() lets some roles"),
        (
            SNOWFLAKE.replace("->", "-> CASE WHEN f() THEN privacy_budget(BUDGET_NAME => 'b') ELSE", 1),
            "# the 2 calls of PRIVACY_BUDGET are one budget",
        ),
    ],
)
def test_nothing_is_dropped_without_a_word(text: str, told: str) -> None:
    assert told in imported(text)
    assert told not in imported(SNOWFLAKE)


def test_of_two_views_the_stricter_policy_is_taken() -> None:
    other = VIEW.replace("10.5", "4").replace('"max_groups_contributed": 3', '"max_groups_contributed": 5').replace("visits", "users")
    text = imported(f"{VIEW}\n{other}")
    assert "budget: {epsilon: 4, delta: 0.000001}" in text
    assert "max_groups_contributed: 3," in text
    assert text.count("the stricter one holds for all here") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"differential_privacy_policy": {"epsilon_budget": 1, "epsilon_budget": 9}}', "epsilon_budget is given twice"),
        ('{"differentialPrivacyPolicy": {"epsilonBudget": 1, "epsilon_budget": 9}}', "epsilon_budget is given twice"),
        ('{"differential_privacy_policy": {"privacy_unit_column": 5}}', "privacy_unit_column is no column's name"),
    ],
)
def test_what_is_said_twice_or_means_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(SchemaError) as refused:
        imported(text)
    assert (refused.value.code, message in refused.value.message) == ("BAD_POLICY", True)
