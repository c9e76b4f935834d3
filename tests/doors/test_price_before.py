"""What a statement would cost is said before it is asked: by explain, EXPLAIN, and in a word before the first charge that has no finite epsilon."""

from __future__ import annotations

import json
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import people
import pytest
from command_line import Command

import dpquery
from dpquery.errors import OverBudget, PriceWarning, Refused

COUNT = "SELECT count(*) AS n FROM people"
MANY = "SELECT s, count(*) AS n, sum(x) AS t, avg(x) AS m, var_pop(x) AS v FROM visits WHERE s IN ('s1', 's2', 's3', 's4', 's5') GROUP BY s"
PURE = people.ORDINARY.replace("delta: 5e-7}, bob", "delta: 0}, bob")


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("ordinary") / "people", terms=people.ORDINARY)


@pytest.fixture
def schema(ordinary: Path, tmp_path: Path) -> Path:
    return people.copied(ordinary, tmp_path / "copy")


def now(con: dpquery.Connection, sql: str, **price: Any) -> dict[str, Any]:
    found: dict[str, Any] = con.explain(sql, **price).as_dict()["now"]
    return found


def test_explain_says_what_it_costs_how_often_it_fits_and_what_would(schema: Path) -> None:
    with dpquery.connect(schema) as con:
        first = now(con, COUNT, epsilon="0.5", delta=0)
        assert (first["account"], first["charged"]["epsilon"], first["fits"]) == ("default", "0.5", 4)
        assert (first["stored"], first["largest"], first["instead"]) == (False, None, None)
        con.query("SELECT count(*) FROM visits", epsilon="1.75", delta=0)
        after = now(con, COUNT, epsilon="0.5", delta=0)
        assert (after["fits"], after["largest"]) == (0, {"epsilon": "0.25"})
        assert "0.25" in after["instead"]
        with pytest.raises(OverBudget):
            con.query(COUNT, epsilon="0.5", delta=0)
        con.query(COUNT, epsilon=after["largest"]["epsilon"], delta=0)
        assert now(con, COUNT, epsilon="0.5", delta=0)["largest"] is None
        shown = repr(con.explain(COUNT, epsilon="0.5", delta=0))
        assert "does not fit into what default has left" in shown


def test_the_largest_gaussian_price_fits_and_a_step_more_does_not(schema: Path) -> None:
    with dpquery.connect(schema) as con:
        while True:
            found = now(con, MANY, epsilon=1, delta="1e-9", noise="gaussian")
            if not found["fits"]:
                break
            con.query(MANY.replace("'s5'", "'s6'"), epsilon=1, delta="1e-9", noise="gaussian", fresh=True)
        most = Decimal(found["largest"]["epsilon"])
        assert 0 < most < 1
        step = Decimal(1).scaleb(most.adjusted() - 5)
        assert now(con, MANY, epsilon=most + step, delta="1e-9", noise="gaussian")["fits"] == 0
        assert now(con, MANY, epsilon=most, delta="1e-9", noise="gaussian")["fits"] == 1


def test_what_is_stored_costs_nothing_now(schema: Path) -> None:
    """Of the own account's answers alone: a dearer question, or another analyst's, costs what it costs."""
    with dpquery.connect(schema) as con, dpquery.connect(schema, analyst="bob") as bob:
        con.query(COUNT, epsilon="0.5", delta=0)
        for epsilon, free in (("0.5", True), ("0.4", True), ("0.6", False)):
            found = now(con, f"SELECT 2 * n AS twice FROM ({COUNT}) t", epsilon=epsilon, delta=0)
            assert (found["stored"], found["charged"]["epsilon"]) == (free, "0" if free else epsilon)
        assert not now(bob, COUNT, epsilon="0.5", delta=0)["stored"]
        assert con.budget().entries == 1


def test_explicit_shares_shrink_with_the_price(schema: Path) -> None:
    asked = "SELECT count(*, epsilon => 0.3) AS n, sum(x) AS t FROM visits"
    with dpquery.connect(schema) as con:
        con.query(COUNT, epsilon="1.9", delta=0)
        assert now(con, asked, epsilon="0.4", delta=0)["largest"] == {"epsilon": "0.1"}
    with dpquery.connect(schema, analyst="bob") as con:
        listed = MANY.replace("avg(x)", "count(x)")
        con.query(listed, rho="0.03", delta="1e-9")
        assert now(con, listed, rho="0.05", delta="1e-9")["largest"].keys() == {"rho"}


def test_it_is_said_before_payment_that_epsilon_would_be_infinite(schema: Path) -> None:
    with dpquery.connect(schema) as con:
        con.query(COUNT, epsilon="0.25", delta=0)
        assert any("0.25 so far" in word for word in con.explain(MANY, epsilon=1).warnings)
        with warnings.catch_warnings():
            warnings.simplefilter("error", PriceWarning)
            with pytest.raises(PriceWarning, match="infinite for good"):
                con.query(MANY, epsilon=1)
            assert con.budget().entries == 1, "nothing was charged"
            for named in ({"noise": "gaussian"}, {"noise": "laplace"}):
                con.query(MANY, epsilon="0.1", **named)
            con.query(MANY, epsilon="0.1")  # it is infinite by now, and nothing new to say


def test_a_cap_in_epsilon_alone_is_told_apart(tmp_path: Path) -> None:
    with dpquery.connect(people.made(tmp_path / "pure", terms=PURE)) as con:
        plan = con.explain(MANY, epsilon=1)
        assert any("in epsilon alone" in word for word in plan.warnings)
        assert (plan.as_dict()["now"]["fits"], plan.as_dict()["now"]["largest"]) == (0, None)
        with pytest.warns(PriceWarning, match="in epsilon alone"), pytest.raises(OverBudget):
            con.query(MANY, epsilon=1)
        assert now(con, MANY, epsilon=1, noise="laplace")["fits"] == 2
        assert con.budget().entries == 0


def test_noise_is_named_once(schema: Path) -> None:
    clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS (noise = LAPLACE)"
    with dpquery.connect(schema) as con:
        assert {one["noise"] for one in con.explain(MANY, epsilon=1, noise="Laplace").releases} == {"laplace"}
        assert {one["noise"] for one in con.explain(MANY, epsilon=1, noise="gaussian").releases} == {"gaussian"}
        con.explain(MANY.replace("SELECT", f"SELECT {clause}"), epsilon=1, noise="laplace")
        with pytest.raises(Refused, match="TWO_PRICES"):
            con.explain(MANY.replace("SELECT", f"SELECT {clause}"), epsilon=1, noise="gaussian")
        with pytest.raises(Refused, match="OPTION_VALUE"):
            con.explain(MANY, epsilon=1, noise="uniform")


def test_the_command_line_says_it_before_it_pays(schema: Path, command: Command) -> None:
    told = command("query", MANY, "--schema", schema, "--epsilon", "1", "--format", "json")
    assert told.status == 0
    assert told.err.startswith("Note, before this is paid: The noise that errs least here has no finite epsilon.")
    json.loads(told.out)
    assert command("query", MANY, "--schema", schema, "--epsilon", "0.1", "--noise", "gaussian", "--format", "json").err == ""
    shown = command("explain", COUNT, "--schema", schema, "--epsilon", "0.01", "--delta", "0")
    assert "fits into the account of default" in shown.out
    rows = command("query", f"EXPLAIN {COUNT}", "--schema", schema, "--epsilon", "2", "--delta", "0", "--format", "csv").out
    assert "now,fits,0" in rows


def test_a_missing_ledger_leaves_the_plan(tmp_path: Path) -> None:
    with dpquery.connect(people.write(tmp_path / "people", terms=people.ORDINARY)) as con:
        plan = con.explain(COUNT)
        assert plan.as_dict()["now"] is None
        assert any("not known" in word for word in plan.warnings)


def test_what_is_said_is_of_the_own_account_alone(schema: Path) -> None:
    """Another analyst's charges change nothing of it."""
    with dpquery.connect(schema) as con, dpquery.connect(schema, analyst="bob") as bob:
        before = now(con, COUNT, epsilon="0.5", delta=0)
        bob.query(COUNT, epsilon=2, delta=0)
        assert now(con, COUNT, epsilon="0.5", delta=0) == before
        assert now(bob, COUNT, epsilon="0.5", delta=0)["fits"] == 0
