"""The owner's budget at the command line: grants, periods on receipts, what several people are promised, one account for several data sets."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb
import people
import pytest
from command_line import Command

import dpquery
from dpquery.accounting.textbook.groups import group_delta_up

COUNT, OTHER = "SELECT count(*) AS n FROM orders", "SELECT count(*) AS n FROM users"


@pytest.fixture(scope="module")
def schema(shop: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shop(tmp_path_factory.mktemp("owner") / "demo")


@pytest.fixture
def fresh(shop: Callable[[Path], Path], tmp_path: Path) -> Path:
    return shop(tmp_path / "demo")


def edited(schema: Path, *pairs: tuple[str, str]) -> Path:
    text = schema.read_text()
    for before, after in pairs:
        assert before in text
        text = text.replace(before, after)
    schema.write_text(text)
    return schema


def test_a_grant_at_the_command_line(command: Command, fresh: Path) -> None:
    assert command("query", COUNT, "--schema", fresh, "--epsilon", "2", "--delta", "0").status == 0
    refused = command("query", OTHER, "--schema", fresh, "--epsilon", "0.5", "--delta", "0")
    assert (refused.status, "OVER_BUDGET" in refused.err) == (3, True)
    told = command("budget", "grant", "--schema", fresh, "--analyst", "default", "--epsilon", "0.5", "--reason", "a paper is due")
    assert told.out == "granted; the cap of default is now epsilon 2.5, delta 0.0000002\n"
    assert command("query", OTHER, "--schema", fresh, "--epsilon", "0.5", "--delta", "0").status == 0
    shown = command("budget", "--schema", fresh).out
    assert "epsilon 2.5, delta 2e-7 (epsilon 0.5, delta 0 of it granted)" in " ".join(shown.split())
    entry = command("ledger", "list", "--schema", fresh, "--format", "json").json["entries"]
    assert next((e["account"], e["reason"]) for e in entry if e["event"] == "granted") == ("analyst:default", "a paper is due")
    assert command("ledger", "verify", "--schema", fresh).status == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--analyst", "alice"), "BAD_GRANT"),
        (("--analyst", "alice", "--epsilon", "0"), "BAD_GRANT"),
        (("--analyst", "alice", "--epsilon", "-1"), "BAD_GRANT"),
        (("--analyst", "alice", "--epsilon", "1e308"), "BAD_GRANT"),
        (("--analyst", "alice", "--epsilon", "nan"), "BAD_PRICE"),
        (("--analyst", "alice", "--epsilon", "inf"), "BAD_PRICE"),
        (("--analyst", "alice", "--epsilon", "0.1 "), "BAD_PRICE"),
        (("--analyst", "alice", "--epsilon", "1/3"), "BAD_PRICE"),
        (("--analyst", "alice", "--epsilon", "3"), "CAPS_EXCEED_BUDGET"),
        (("--analyst", "alice", "--delta", "1"), "BAD_BUDGET"),
        (("--analyst", "bob", "--epsilon", "1"), "UNKNOWN_ACCOUNT"),
        (("--group", "alice", "--epsilon", "1"), "UNKNOWN_ACCOUNT"),
        (("--epsilon", "1"), "USAGE"),
        (("--analyst", "alice", "--dataset", "--epsilon", "1"), "USAGE"),
    ],
)
def test_what_is_no_grant(command: Command, schema: Path, words: tuple[str, ...], code: str) -> None:
    told = command("budget", "grant", "--schema", schema, "--reason", "why", *words)
    assert told.status != 0
    assert told.err.startswith(f"Error: {code}:")
    assert "Instead:" in told.err


def test_options_before_the_command_are_not_lost(command: Command, schema: Path) -> None:
    told = command("budget", "--schema", schema, "grant", "--analyst", "alice", "--epsilon", "1", "--reason", "why")
    assert told.err.startswith("Error: USAGE: options of `budget` come after its command")
    assert command("budget").err.startswith("Error: USAGE: Missing option '--schema'.")


def test_caps_that_are_oversubscribed_promise_nothing(command: Command, tmp_path: Path) -> None:
    """But what they add up to for k people is shown, by the formula."""
    schema = people.made(tmp_path, terms=people.ORDINARY + "oversubscribe: true\n")
    told = command("budget", "--schema", schema, "--units", "3")
    assert "what is promised is the data set's budget alone" in " ".join(told.out.split())
    found = command("budget", "--schema", schema, "--units", "3", "--format", "json").json
    assert (found["oversubscribe"], found["together"]["epsilon"]) == (True, "6")
    by_hand = 5e-7 * (math.exp(6) - 1) / (math.exp(2) - 1)
    assert by_hand <= float(found["together"]["delta"]) * (1 + 1e-9)
    assert float(found["together"]["delta"]) == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize("units", [0, -1, 10_001, 1.5, "3", None, True])
def test_how_many_people_is_a_whole_number(schema: Path, units: object) -> None:
    with dpquery.connect(schema, analyst="alice") as con, pytest.raises(dpquery.Error, match=r"USAGE: so many people together are .* 1 to 10,000"):
        con.budget().together(units)  # type: ignore[arg-type]


def test_of_one_person_the_promise_is_the_cap(schema: Path) -> None:
    with dpquery.connect(schema, analyst="alice") as con:
        assert con.budget().together(1) == {"units": 1, "epsilon": "4", "delta": "0.0000005"}


def test_several_people_together(command: Command, schema: Path) -> None:
    content = command("budget", "--schema", schema, "--analyst", "alice", "--units", "3", "--format", "json").json["together"]
    exact = group_delta_up(Fraction(4), Fraction("5e-7"), 3)
    assert (content["units"], content["epsilon"]) == (3, "12")
    assert exact <= Fraction(content["delta"]) < exact * (1 + Fraction(1, 10**9))
    assert command("budget", "--schema", schema, "--analyst", "alice", "--units", "9", "--format", "json").json["together"]["delta"] is None
    people = command("budget", "--schema", schema, "--analyst", "alice", "--units", "9").out
    assert "delta 1 or more, which promises nothing" in " ".join(people.split())
    for wrong in ("0", "-1", "x"):
        assert command("budget", "--schema", schema, "--units", wrong).status == 2
    with dpquery.connect(schema, analyst="alice") as con:
        assert con.budget().together(3) == content


def test_a_cap_that_renews_says_that_its_promise_is_for_each_period(command: Command, fresh: Path) -> None:
    edited(fresh, ("default: {epsilon: 2, delta: 2e-7}", "default: {epsilon: 1, delta: 1e-7, period: 30d}"))
    told = command("query", COUNT, "--schema", fresh, "--epsilon", "0.25", "--delta", "0")
    assert "in this period of 30 days, until " in " ".join(told.out.split())
    receipt = command("query", COUNT, "--schema", fresh, "--epsilon", "0.5", "--delta", "0", "--format", "json").json["receipt"]
    assert (receipt["period"]["days"], receipt["period"]["number"], receipt["lifetime"]) == (30, 1, receipt["spent"])
    shown = " ".join(command("budget", "--schema", fresh).out.split())
    assert "for each 30 days: the promise about the answers of one period" in shown
    assert "since the present period began" in shown
    with dpquery.connect(fresh) as con:
        assert con.budget().period is not None
        assert "for each 30 days" in " ".join(repr(con.budget()).split())


def test_data_sets_of_the_same_people_share_an_account(command: Command, fresh: Path) -> None:
    other = fresh.parent / "other"
    other.mkdir()
    copied, first = fresh.parent / "copied.duckdb", fresh.parent / "first.duckdb"
    for data in (copied, first):  # each with something of its own: the same data has one ledger
        shutil.copy(fresh.parent / "shop.duckdb", data)
        with duckdb.connect(str(data)) as con:
            con.execute(f"CREATE TABLE mark AS SELECT '{data.stem}' AS name")
    one, two = fresh.with_name("one.yaml"), fresh.with_name("two.yaml")
    text = fresh.read_text().replace("dataset: shop", "dataset: one\naccount: people").replace("shop.duckdb}", "first.duckdb}")
    one.write_text(text)
    two.write_text(text.replace("dataset: one", "dataset: two").replace("first.duckdb", "copied.duckdb"))
    assert "people.ledger" in command("ledger", "create", "--schema", one).out
    assert "people.ledger" in command("ledger", "create", "--schema", two).out
    assert command("query", COUNT, "--schema", one, "--epsilon", "1.5", "--delta", "0").status == 0
    refused = command("query", COUNT, "--schema", two, "--epsilon", "1", "--delta", "0")
    assert (refused.status, "OVER_BUDGET" in refused.err) == (3, True)
    answered = command("query", COUNT, "--schema", two, "--epsilon", "0.5", "--delta", "0", "--format", "json").json["receipt"]
    assert (answered["dataset"], answered["data_version"], answered["left"]["epsilon"]) == ("two", 1, "0")
    assert command("ledger", "verify", "--schema", one).status == 0
