"""Accuracy first: the least price whose noise stays within an error, found before anything runs, or what error is still to be had."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import people
import pytest
from command_line import Command

import dpquery
from dpquery.engine import asking
from dpquery.engine.session import Session
from dpquery.errors import OverBudget, Refused
from dpquery.mechanisms import Noise, beyond_up
from dpquery.plan.release import Mechanism

COUNT = "SELECT count(*) AS n FROM people"
OTHER = "SELECT count(*) AS n FROM people WHERE age > 30"
LISTED = "SELECT menu, count(*) AS n FROM people GROUP BY menu"
SEVERAL = "SELECT s, count(*) AS n FROM visits WHERE s IN ('s1', 's2', 's3', 's4', 's5') GROUP BY s"


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("ordinary") / "people", terms=people.ORDINARY)


@pytest.fixture(scope="module")
def session(ordinary: Path) -> Iterator[Session]:
    """Nothing is charged to it."""
    with people.opened(ordinary) as (one,):
        yield one


def found(session: Session, sql: str, **wanted: Any) -> dict[str, Any]:
    shown: dict[str, Any] = session.explain(sql, **wanted).as_dict()
    return shown


def outside(session: Session, sql: str, draws: int, width: int, **price: Any) -> Fraction:
    """How likely any of the first noise's draws goes beyond the width, at a price."""
    (part,) = session._prepare(sql, asking.call(**price), "duckdb").bill.releases[0].noises
    return beyond_up([(part, width, draws)])


# ---- the formulas --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [3, 10, 200])
def test_one_laplace_count_needs_about_the_textbooks_epsilon(session: Session, error: int) -> None:
    """eps = ln(1/beta) / alpha for the continuous law; the discrete one stays within alpha a little more often."""
    size = float(found(session, COUNT, error=error, noise="laplace")["price"]["asked"])
    textbook = math.log(1 / 0.05) / error
    assert textbook * error / (error + 1) < size < textbook


@pytest.mark.parametrize("error", [10, 40, 300])
def test_one_gaussian_count_needs_about_the_textbooks_sigma(session: Session, error: int) -> None:
    """sigma = alpha / Phi^-1(1 - beta/2), alpha being half a unit more for whole numbers."""
    release = found(session, COUNT, error=error, noise="gaussian")["releases"][0]
    assert release["noise"] == "gaussian"
    assert release["scale"] == pytest.approx((error + 0.5) / NormalDist().inv_cdf(0.975), rel=0.002)


@pytest.mark.parametrize(("noise", "error"), [("laplace", 10), ("gaussian", 40)])
def test_several_counts_hold_jointly(session: Session, noise: str, error: int) -> None:
    """m values: 1 - (1 - beta)^(1/m) in place of beta."""
    plan = found(session, LISTED, error=error, noise=noise)
    assert plan["aim"]["joint"] == 4
    each = 1 - 0.95 ** (1 / 4)
    alone = found(session, COUNT, error=error, noise=noise, confidence=repr(1 - each))
    assert float(plan["price"]["asked"]) == pytest.approx(float(alone["price"]["asked"]), rel=1e-4)


# ---- minimality ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("sql", "draws", "error", "confidence"), [(COUNT, 1, 7, "0.95"), (COUNT, 1, 20, "0.9999"), (LISTED, 4, 12, "0.9")])
def test_a_price_one_step_less_misses_the_error(session: Session, noise: str, sql: str, draws: int, error: int, confidence: str) -> None:
    wanted = {"noise": noise, "confidence": confidence, "delta": "1e-7"}
    size = Decimal(found(session, sql, error=error, **wanted)["price"]["asked"])
    step = Decimal(1).scaleb(size.adjusted() - 5)
    assert len(size.normalize().as_tuple().digits) <= 6
    assert outside(session, sql, draws, error, epsilon=size, **wanted) <= 1 - Fraction(confidence)
    assert outside(session, sql, draws, error, epsilon=size - step, **wanted) > 1 - Fraction(confidence)


def test_the_cheaper_noise_is_taken_and_both_are_told(session: Session) -> None:
    few, many = found(session, COUNT, error=10, delta="1e-7"), found(session, SEVERAL, error=400, delta="1e-7")
    for plan in (few, many):
        prices = {one["noise"]: Decimal(one["epsilon"]) for one in plan["aim"]["tried"]}
        assert prices.keys() == {"laplace", "gaussian"}
        assert Decimal(plan["price"]["asked"]) == min(prices.values())
        assert plan["releases"][0]["noise"] == min(prices, key=lambda noise: prices[noise])
    assert found(session, COUNT, error=10, delta=0)["aim"]["tried"] == [few["aim"]["tried"][0]]


def test_the_price_found_is_the_price_paid(ordinary: Path, tmp_path: Path) -> None:
    with dpquery.connect(people.copied(ordinary, tmp_path / "copy")) as con:
        plan = con.explain(LISTED, error=15, delta=0)
        answer = con.query(LISTED, error=15, delta=0)
        assert answer.receipt["price"] == plan.price
        assert max(high - low for low, high in answer.intervals["n"]) <= 30
        assert any("of the noise alone" in word and "n ± 15" in word for word in answer.warnings)
        assert con.budget().spent.epsilon == Decimal(plan.price["asked"])
        assert con.explain(LISTED, epsilon=plan.price["asked"], delta=0).price == plan.price


# ---- what a column shows -------------------------------------------------------------------------------------------------------------


def test_a_column_is_off_by_its_noise_times_what_it_is_multiplied_by(session: Session) -> None:
    once = found(session, COUNT, error=30)["price"]["asked"]
    assert found(session, "SELECT 3 * count(*) + 7 AS n FROM people", error=90)["price"]["asked"] == once
    twice = found(session, "SELECT count(*) AS n, 2 * count(*) AS m FROM people", error=60)
    assert twice["price"]["asked"] == once, "the narrower of the two decides"
    assert [one["column"] for one in twice["aim"]["errors"]] == ["n", "m"]


def test_errors_by_name_and_of_a_public_scale(session: Session) -> None:
    sql = "SELECT count(*) AS n, avg(x) AS m FROM visits"
    plain = found(session, sql, error={"n": 40})
    for said in ("5% of 800", "  5 % of 800.0", "33.333333333333333333% of 120"):
        again = found(session, sql, error={"n": said})
        assert again["price"]["asked"] == pytest.approx(plain["price"]["asked"]) or said.startswith("33")
    assert plain["aim"]["errors"] == [{"column": "n", "error": "40", "of": None}]
    declared = found(session, COUNT, error="10% of people.age")
    assert declared["price"]["asked"] == found(session, COUNT, error=12)["price"]["asked"]
    assert declared["aim"]["errors"][0]["of"] == "10% of people.age, the width of its declared bounds"


def test_groups_of_private_rows_hold_one_by_one(session: Session) -> None:
    plan = found(session, "SELECT s, count(*) AS n FROM visits GROUP BY s", error=300)
    assert plan["aim"]["joint"] is None
    assert any("of one group" in word for word in plan["warnings"])


def test_releases_of_one_statement_hold_together(session: Session) -> None:
    sql = "SELECT count(*) AS n FROM people UNION ALL SELECT count(DISTINCT pid) AS n FROM visits"
    plan = found(session, sql, error=20, delta=0)
    assert plan["aim"]["joint"] == 2
    alone = found(session, COUNT, error=20, delta=0, confidence=repr(math.sqrt(0.95)))
    assert float(plan["price"]["asked"]) == pytest.approx(2 * float(alone["price"]["asked"]), rel=1e-4)


@pytest.mark.parametrize(
    ("sql", "wanted", "code"),
    [
        (COUNT, {"error": 0}, "BAD_ERROR"),
        (COUNT, {"error": "-3"}, "BAD_ERROR"),
        (COUNT, {"error": "n=20"}, "BAD_ERROR"),
        (COUNT, {"error": "nan"}, "BAD_PRICE"),
        (COUNT, {"error": "fifty"}, "BAD_PRICE"),
        (COUNT, {"error": "5%"}, "BAD_ERROR"),
        (COUNT, {"error": "5% of people.pid"}, "BAD_ERROR"),
        (COUNT, {"error": "5% of 0"}, "BAD_ERROR"),
        (COUNT, {"error": {}}, "BAD_ERROR"),
        (COUNT, {"error": {1: 5}}, "BAD_ERROR"),
        (COUNT, {"error": {"m": 5}}, "BAD_ERROR"),
        (LISTED, {"error": {"menu": 5}}, "BAD_ERROR"),
        ("SELECT DISTINCT menu FROM people", {"error": 5}, "BAD_ERROR"),
        (COUNT, {"error": 5, "epsilon": 1}, "TWO_PRICES"),
        (COUNT, {"error": 5, "rho": 1}, "TWO_PRICES"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) count(*) AS n FROM people", {"error": 5}, "TWO_PRICES"),
        ("SELECT count(*, epsilon => 0.1) AS n, count(age) AS m FROM people", {"error": 5}, "TWO_PRICES"),
        ("SELECT avg(age) AS m FROM people", {"error": 5}, "ERROR_DEPENDS"),
        ("SELECT count(*) AS n, sum(x) / count(*) AS r FROM visits", {"error": 5}, "ERROR_DEPENDS"),
        ("SELECT max(n) AS n FROM (SELECT menu, count(*) AS n FROM people GROUP BY menu)", {"error": 5}, "ERROR_DEPENDS"),
        ("SELECT sum(x) AS t FROM visits", {"error": "0.001"}, "ERROR_TOO_SMALL"),
    ],
)
def test_what_is_refused(session: Session, sql: str, wanted: dict[str, Any], code: str) -> None:
    with pytest.raises(Refused) as refused:
        session.explain(sql, **wanted)
    assert refused.value.code == code
    assert refused.value.instead


def test_an_error_out_of_reach_says_what_the_largest_price_buys(session: Session) -> None:
    with pytest.raises(Refused) as refused:
        session.explain(COUNT, error="0.5", confidence="0.999999", delta=0)
    assert "epsilon 2" in refused.value.message
    said = refused.value.instead or ""
    assert said == "that price buys n ± 7"
    assert beyond_up([(laplace(Fraction(2)), 7, 1)]) <= Fraction(1, 10**6) < beyond_up([(laplace(Fraction(2)), 6, 1)])


def laplace(epsilon: Fraction) -> Noise:
    return Noise(Mechanism.LAPLACE, 1 / epsilon)


# ---- what is left --------------------------------------------------------------------------------------------------------------------


def test_what_the_remaining_budget_buys(ordinary: Path, tmp_path: Path) -> None:
    with dpquery.connect(people.copied(ordinary, tmp_path / "copy")) as con:
        con.query(OTHER, epsilon="1.8", delta=0)
        with pytest.raises(OverBudget) as over:
            con.query(COUNT, error=3, delta=0)
        assert over.value.instead == "what is left buys an error of n ± 15"
        plan = con.explain(COUNT, error=3, delta=0).as_dict()
        assert plan["aim"]["left_buys"] == {"n": "15"}
        assert plan["now"]["instead"] == over.value.instead
        assert Decimal(con.explain(COUNT, error=15, delta=0).price["asked"]) <= Decimal("0.2")
        con.query(COUNT, error=15, delta=0)
        with pytest.raises(OverBudget):
            con.query(COUNT, error=14, delta=0)


def test_of_two_noises_the_one_that_fits_is_taken(ordinary: Path, tmp_path: Path) -> None:
    """Epsilons are used up; what is left of rho pays for many groups still."""
    with dpquery.connect(people.copied(ordinary, tmp_path / "copy")) as con:
        con.query(OTHER, epsilon="0.1", delta=0, noise="laplace")
        con.query(OTHER, rho="0.0001", delta="1e-9", noise="gaussian", fresh=True)
        plan = con.explain(COUNT, error=100, delta="1e-9").as_dict()
        fits = {one["noise"]: one["fits"] for one in plan["aim"]["tried"]}
        assert plan["now"]["fits"] > 0
        assert fits[plan["releases"][0]["noise"]]


def test_an_empty_account_buys_nothing(ordinary: Path, tmp_path: Path) -> None:
    with dpquery.connect(people.copied(ordinary, tmp_path / "copy")) as con:
        con.query(OTHER, epsilon=2, delta=0)
        with pytest.raises(OverBudget, match="nothing is left"):
            con.query(COUNT, error=3, delta=0)


# ---- it reads no private row ---------------------------------------------------------------------------------------------------------


def test_the_price_found_knows_nothing_of_private_rows(session: Session, tmp_path: Path) -> None:
    """Tables of many rows, without one person, and empty ones: the same price, reach and refusals."""
    statements = [(COUNT, 10), (LISTED, 12), ("SELECT s, count(*) AS n, sum(x) AS t FROM visits GROUP BY s", {"n": 400}), (COUNT, "0.001")]
    neighbours = [people.made(tmp_path / "without", people.DATA + people.WITHOUT, terms=people.ORDINARY)]
    neighbours.append(people.made(tmp_path / "empty", people.DATA + people.EMPTY, terms=people.ORDINARY))
    with people.opened(*neighbours) as others:
        for sql, error in statements:
            told = [_told(one, sql, error) for one in (session, *others)]
            assert told[0] == told[1] == told[2]


def _told(session: Session, sql: str, error: Any) -> object:
    try:
        return people.shown(session, sql, error=error)
    except Refused as refused:
        return refused.as_dict()


# ---- doors ---------------------------------------------------------------------------------------------------------------------------


def test_the_command_line(ordinary: Path, tmp_path: Path, command: Command) -> None:
    schema = people.copied(ordinary, tmp_path / "copy")
    told = command("explain", LISTED, "--schema", schema, "--error", "5% of 400", "--confidence", "0.9", "--format", "json")
    assert told.json["aim"]["errors"] == [{"column": "n", "error": "20", "of": "5% of 400"}]
    assert "laplace: epsilon" in command("explain", LISTED, "--schema", schema, "--error", "n=20").out
    asked = command("query", f"EXPLAIN {LISTED}", "--schema", schema, "--error", "20", "--format", "csv")
    assert "aim,joint,4" in asked.out
    assert command("query", LISTED, "--schema", schema, "--error", "20", "--delta", "0").status == 0
    two = "SELECT count(*) AS n, sum(age) AS t FROM people"
    assert command("explain", two, "--schema", schema, "--error", "n=20", "--error", "t=2000").status == 0
    assert command("explain", two, "--schema", schema, "--error", "n=20", "--error", "30").status == 2


def test_a_stored_answer_serves_where_it_meets_the_error(ordinary: Path, tmp_path: Path) -> None:
    with dpquery.connect(people.copied(ordinary, tmp_path / "copy")) as con:
        first = con.query(LISTED, epsilon="1.5", delta=0)
        again = con.query(LISTED, error=10, delta=0)
        assert again.fetchall() == first.fetchall()
        assert con.explain(LISTED, error=10, noise="gaussian", delta="1e-9").as_dict()["now"]["stored"], "whatever its noise"
        assert not con.explain(LISTED, error=2, delta=0).as_dict()["now"]["stored"]
        assert con.budget().spent.epsilon == Decimal("1.5")
        con.query(LISTED, error=10, delta=0, fresh=True)
        assert con.budget().spent.epsilon > Decimal("1.5")


def test_noise_that_the_error_chose_is_warned_of_before_payment(ordinary: Path) -> None:
    many = SEVERAL.replace("count(*) AS n", "count(*) AS n, sum(x) AS t, count(DISTINCT pid) AS p")
    with dpquery.connect(ordinary) as con:
        plan = con.explain(many, error=6000, delta="1e-7")
        assert {one["noise"] for one in plan.releases} == {"gaussian"}
        assert any("infinite for good" in word for word in plan.warnings)
        named = con.explain(many, error=6000, delta="1e-7", noise="gaussian")
        assert not any("infinite for good" in word for word in named.warnings)


def test_a_part_of_what_was_released_to_this_account(ordinary: Path, tmp_path: Path) -> None:
    """Of no other's answer: whether it was asked is not to be told."""
    schema, scale = people.copied(ordinary, tmp_path / "copy"), "10% of SELECT count(*) FROM visits"
    with dpquery.connect(schema) as con, dpquery.connect(schema, analyst="bob") as bob:
        with pytest.raises(Refused, match="not answered to this account"):
            con.explain(COUNT, error=scale)
        (released,) = con.query("SELECT count(*) AS visits FROM visits", epsilon=1, delta=0).fetchone() or ()
        plan = con.explain(COUNT, error=scale, delta=0).as_dict()
        (goal,) = plan["aim"]["errors"]
        assert Fraction(goal["error"]) == abs(Fraction(released)) / 10
        assert "as it was released to this account" in goal["of"]
        assert plan["price"] == con.explain(COUNT, error=abs(Fraction(released)) / 10, delta=0).price
        assert con.budget().spent.epsilon == 1
        with pytest.raises(Refused, match="not answered to this account"):
            bob.explain(COUNT, error=scale)
        con.query(LISTED, epsilon="0.1", delta=0)
        with pytest.raises(Refused, match="not one number"):
            con.explain(COUNT, error=f"5% of {LISTED}")
        with pytest.raises(Refused, match="MIN_MAX"):
            con.explain(COUNT, error="5% of (SELECT max(age) FROM people)")
