"""What an answer costs and how noisy it is: functions of the statement, the schema and public tables, never of private rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import people
import pytest
from people import code, noise_of, one, rows, shown

from dpquery.accounting.convert import delta_up, epsilon_up
from dpquery.accounting.zcdp import laplace_rho_up
from dpquery.engine.session import Session
from dpquery.errors import Refused
from dpquery.mechanisms import Noise, SystemBits, choose
from dpquery.plan.release import Choosing

Pair = tuple[Session, Session]


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Everybody, with an ordinary budget."""
    with people.opened(people.made(tmp_path_factory.mktemp("ordinary"), terms=people.ORDINARY)) as (session,):
        yield session


def test_a9_plan_price_and_expected_error_know_nothing_of_private_rows(ordinary: Session, tmp_path: Path) -> None:
    """Tables of a thousand rows and empty ones are explained alike, and refused alike."""
    statements = [
        "SELECT count(*), sum(x), avg(x) FROM visits",
        "SELECT s, count(*) FROM visits GROUP BY s",
        "SELECT menu, avg(age) FROM people GROUP BY menu",
        "SELECT count(*) FROM visits a JOIN calls b USING (pid)",
        "SELECT p, sum(price) FROM items GROUP BY p ORDER BY 2 DESC LIMIT 3",
    ]
    refused = ["SELECT max(x) FROM visits", "SELECT sum(k) FROM visits", "SELECT count(*) FROM visit", "SELECT count(*) FROM visits WHERE x > ("]
    with people.opened(people.made(tmp_path, people.DATA + people.EMPTY, terms=people.ORDINARY)) as (empty,):
        for sql in statements:
            assert shown(ordinary, sql) == shown(empty, sql)
        for sql in refused:
            assert code(ordinary, sql) == code(empty, sql)


def test_a17_discrete_laplace_noise_is_charged_e_tanh_half_e(ordinary: Session) -> None:
    price = shown(ordinary, "SELECT count(DISTINCT pid) FROM visits", epsilon=1, delta=0)["price"]
    assert price["epsilon"] == "1"
    assert Fraction(price["rho"]) >= laplace_rho_up(Fraction(1)) - Fraction(1, 10**12)
    assert float(price["rho"]) == pytest.approx(0.46211715726)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_a18_replacing_a_person_is_priced_by_its_own_constants(adjacency: str, tmp_path: Path) -> None:
    terms = people.ORDINARY + f"adjacency: {adjacency}\n"
    with people.opened(people.made(tmp_path, terms=terms)) as (session,):
        sums = shown(session, "SELECT s, sum(x) FROM visits GROUP BY s", epsilon=1)["releases"][0]
        flags = shown(session, "SELECT count(*) FROM people", epsilon=1)["releases"][0]
    l0, cell = 4, 10 * 10
    if adjacency == "add_remove":
        assert (sums["linf"], sums["l1"], sums["l2_squared"]) == (cell, l0 * cell, l0 * cell**2)
    else:
        assert (sums["linf"], sums["l1"], sums["l2_squared"]) == (2 * cell, 2 * l0 * cell, l0 * (2 * cell) ** 2)
    assert flags["l1"] == 1, "a count of one row a person may move, as a filter or a deletion may: no part is free"


def test_b7_one_delta_covers_conversion_and_selection(ordinary: Session) -> None:
    """Gaussian noise needs both: a unit's groups are its own, or others' as well. Each group of its own takes of selection's delta, and leaves less
    rho to convert: so much that neither half of the groups nor all of them cost more than was said."""
    clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS (noise = GAUSSIAN, epsilon = 1, delta = 1e-7)"
    said = shown(ordinary, f"SELECT {clause} s, count(*), sum(x) FROM visits GROUP BY s")
    assert {release["noise"] for release in said["releases"]} == {"gaussian"}
    selection, asked = Fraction(said["keys"]["delta"]), Fraction("1e-7")
    assert 0 < selection < Fraction(said["price"]["delta"]) <= asked
    assert selection <= asked / 2
    rho = Fraction(said["price"]["rho"])
    for alone in range(5):  # of four groups
        assert delta_up(rho * (4 - alone) / 4, Fraction(1)) + selection * alone / 4 * (1 + asked) <= asked


def test_b8_delta_lies_below_one(ordinary: Session, whole: Session) -> None:
    for delta in ("1", "1.5", "-1e-9"):
        assert code(ordinary, "SELECT count(*) FROM visits", delta=delta) == "BAD_DELTA"
    assert code(ordinary, "SELECT count(*) FROM visits", epsilon=51) == "EPSILON_TOO_LARGE"
    answer = whole.query("SELECT count(*) FROM visits", epsilon="1e20", delta=1)
    assert answer.receipt["unsafe_testing"] is True
    assert any("UNSAFE TESTING" in word for word in answer.warnings)
    assert code(whole, "SELECT count(*) FROM visits", delta="1.1") == "BAD_DELTA"


def test_b11_a_statements_price_is_what_was_said(ordinary: Session) -> None:
    three = "SELECT count(*), sum(x), avg(x) FROM visits"
    said = shown(ordinary, three, epsilon="0.7")
    assert said["price"]["epsilon"] == "0.7"
    own = shown(ordinary, "SELECT count(*, epsilon => 0.1), sum(x, epsilon => 0.2) FROM visits", epsilon="0.3")
    assert [release["share"] for release in own["releases"]] == [pytest.approx(1 / 3), pytest.approx(2 / 3)]
    assert code(ordinary, "SELECT count(*, epsilon => 0.2), sum(x, epsilon => 0.2) FROM visits", epsilon="0.3") == "SHARES_EXCEED_PRICE"


def test_b11_all_releases_of_a_statement_are_charged(ordinary: Session) -> None:
    before = ordinary.budget().spent
    ordinary.query("SELECT (SELECT count(*) FROM visits) AS n, count(*) AS m FROM visits", epsilon="0.01", fresh=True)
    after = ordinary.budget().spent
    assert (after.epsilon - before.epsilon, after.delta) == (Decimal("0.01"), before.delta)


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT count(*, epsilon => 0.2), sum(x, epsilon => 0.2) FROM visits", "1:34"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(rho=0.1) count(*) FROM visits", "1:42"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.1) count(*) FROM visits", "1:42"),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.1) (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(rho=0.1) count(*) FROM visits),"
            " count(*) FROM visits",
            "1:97",
        ),
    ],
)
def test_prices_that_do_not_fit_each_other_are_shown_where_they_are_named(sql: str, place: str, ordinary: Session) -> None:
    with pytest.raises(Refused) as told:
        ordinary.query(sql, epsilon="0.3")
    assert told.value.code in ("SHARES_EXCEED_PRICE", "TWO_PRICES")
    assert told.value.position is not None
    assert f"{told.value.position.line}:{told.value.position.column}" == place


def test_c12_shares_and_errors_are_told_on_the_declared_scale(ordinary: Session) -> None:
    """Whatever was found, and however wide the bounds: an aggregate takes as much as one of other bounds."""
    for clause in ("", "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) "):
        said = shown(ordinary, f"SELECT {clause}count(DISTINCT pid), sum(x, contribution_bounds_per_group => (-10, 10)) FROM visits", epsilon=1)
        assert [release["share"] for release in said["releases"]] == [0.5, 0.5]
        assert said["releases"][1]["scale"] == pytest.approx(10 * said["releases"][0]["scale"])


def test_c12_plain_sql_splits_a_price_where_noise_counts_and_the_clause_equally(ordinary: Session) -> None:
    """The count that COUNT(x) and AVG(x) share takes three quarters of equal shares; less of it makes both err less in all. The price is the same."""
    plain, clause = (
        shown(ordinary, f"SELECT {own}count(x), avg(x) FROM visits", epsilon=1) for own in ("", "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) ")
    )
    shares = [[part["share"] for part in said["releases"][1]["parts"]] for said in (plain, clause)]
    assert shares == [[pytest.approx(0.41, abs=0.005), pytest.approx(0.59, abs=0.005)], [0.25, 0.75]]
    assert plain["price"]["charged_epsilon"] == clause["price"]["charged_epsilon"] == "1"


def test_c16_laplace_for_few_coordinates_and_gaussian_for_many(ordinary: Session) -> None:
    def noise(groups: int, delta: str) -> str:
        clause = f"WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = {groups}, epsilon = 1, delta = {delta})"
        listed = ", ".join(str(k) for k in range(100))
        found = shown(ordinary, f"SELECT {clause} k, count(DISTINCT pid) FROM visits WHERE k IN ({listed}) GROUP BY k")
        return str(found["releases"][0]["noise"])

    assert [noise(groups, "1e-6") for groups in (1, 9, 12, 40)] == ["laplace", "laplace", "gaussian", "gaussian"]
    assert noise(40, "0") == "laplace"


def test_n2_row_weights_are_priced_as_one_coordinate(ordinary: Session) -> None:
    clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 10, epsilon = 1, delta = 0)"
    price = shown(ordinary, f"SELECT {clause} k, count(*) FROM visits WHERE k IN (0, 1, 2, 3) GROUP BY k")["price"]
    assert float(price["rho"]) == pytest.approx(0.46211715726)


def test_n8_delta_is_split_once_a_statement(ordinary: Session) -> None:
    """However many parts it has: one threshold takes at most the half, and all of it with Laplace noise, which needs no conversion."""
    most = Fraction("1e-9")
    for noise, part in (("LAPLACE", most), ("GAUSSIAN", most / 2)):
        clause = f"WITH DIFFERENTIAL_PRIVACY OPTIONS (noise = {noise}, epsilon = 0.1, delta = 1e-9)"
        spent = Fraction(ordinary.budget().spent.delta)
        price = ordinary.query(f"SELECT {clause} s, count(*), count(x), sum(x) FROM visits GROUP BY s").receipt["price"]
        assert Fraction(price["delta"]) <= most
        assert 0 < Fraction(ordinary.budget().spent.delta) - spent <= Fraction(price["charged_delta"]) <= part


def test_w4_a_price_in_rho_counts_as_its_conversion(ordinary: Session) -> None:
    assert code(ordinary, "SELECT count(*) FROM visits", rho=100) == "EPSILON_TOO_LARGE"
    assert (epsilon_up(Fraction("0.09"), Fraction("1e-9")) or 0) > 2
    assert code(ordinary, "SELECT count(*) FROM visits", rho="0.09") == "EPSILON_TOO_LARGE"
    assert code(ordinary, "SELECT count(*) FROM visits", rho="0.01", delta=0) == "RHO_NEEDS_DELTA"


def test_w5_intervals_under_selection_say_so(whole: Session) -> None:
    """The released count of a group that passed is conditioned on having passed; a mean's interval never leaves its bounds."""
    answer = whole.query("SELECT s, count(*) FROM visits GROUP BY s")
    assert any("near the threshold reach down to one person" in word for word in answer.warnings)
    public = whole.query("SELECT menu, count(*) FROM people GROUP BY menu")
    assert not any("near the threshold" in word for word in public.warnings)


def test_w5_the_interval_of_a_mean_of_hardly_anybody_is_all_of_its_bounds(ordinary: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpquery.release.noise.sample", noise_of(0))
    answer = ordinary.query("SELECT avg(age) FROM people WHERE pid = 12345", epsilon="0.01")
    bars = answer.intervals[0]
    assert bars is not None
    assert bars[0] == (0.0, 120.0)
    assert 0 <= answer.table.column(0).to_pylist()[0] <= 120


def test_c4_no_group_passing_is_said(ordinary: Session) -> None:
    answer = ordinary.query("SELECT x, s, count(*) FROM visits GROUP BY x, s", epsilon="0.01")
    assert answer.table.num_rows == 0
    assert any("No group passed" in word for word in answer.warnings)


def test_w7_sums_saturate_after_the_noise_and_arithmetic_above_it_never_fails(whole: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpquery.release.noise.sample", noise_of(2**70))
    assert one(whole, "SELECT count(*) FROM visits") == 2**63 - 1
    answer = whole.query("SELECT count(*) * count(DISTINCT pid) * 9 AS n, 1 / (count(*) - count(*)) AS r FROM visits")
    assert answer.table.to_pylist()[0]["n"] is None
    assert any(word.startswith("n: NULL") for word in answer.warnings)


def test_w8_the_expected_error_of_a_mean_is_a_function_of_n(ordinary: Session) -> None:
    error = shown(ordinary, "SELECT avg(age) FROM people", epsilon=1)["releases"][0]["expected_error"]
    assert list(error) == ["n=100", "n=1000", "n=10000"]
    assert error["n=100"] > 5 * error["n=1000"] > 25 * error["n=10000"] > 0


def test_n1_an_odd_width_moves_by_half_units(ordinary: Session) -> None:
    """A mean of a flag, bounds 0 and 1: the middle lies between two grid points, and the claim is over doubled integers."""
    said = shown(ordinary, "SELECT avg(CASE WHEN x > 0 THEN 1 ELSE 0 END) FROM visits", epsilon=1)
    part = said["releases"][0]["parts"][0]
    assert part["l1"] == pytest.approx(10 * 0.5)


def test_n10_wide_columns_take_a_coarser_grid_or_are_refused(ordinary: Session) -> None:
    wide = "sum(x, contribution_bounds_per_row => (-1e300, 1e300))"
    said = shown(ordinary, f"SELECT {wide} FROM visits")["releases"][0]
    assert 2**40 * 10 < said["bounds"][1] / said["step"] <= 2**52 * 10
    assert 1e300 < abs(one(ordinary, f"SELECT {wide} FROM visits", epsilon="0.01")) < 1e305
    assert code(ordinary, f"SELECT {wide.replace('300', '308')} FROM visits") == "BAD_BOUNDS"


def test_h_the_grid_follows_the_bounds_that_fix_the_sensitivity(ordinary: Session) -> None:
    said = shown(ordinary, "SELECT sum(x * 1e15, contribution_bounds_per_group => (-10, 10)) FROM visits")["releases"][0]
    assert said["linf"] == 10
    assert said["step"] < 1e-9


def test_a16_sum_and_mean_of_one_column_are_two_parts(ordinary: Session) -> None:
    said = shown(ordinary, "SELECT sum(age), avg(age) FROM people", epsilon=1)
    assert said["releases"][0]["l1"] == 120
    assert said["releases"][1]["parts"][0]["l1"] == 60


def test_e_a_price_is_positive_and_finite(ordinary: Session) -> None:
    for epsilon in (0, -1, "-0", "nan", "inf", "1e999", True, "0.1 ", "1_0", "\u0661"):
        assert code(ordinary, "SELECT count(*) FROM visits", epsilon=epsilon) in ("BAD_PRICE", "EPSILON_TOO_LARGE")


def test_e_no_selection_is_paid_for_without_private_keys(ordinary: Session) -> None:
    for sql in ("SELECT menu, count(*) FROM people GROUP BY menu", "SELECT count(*) FROM people"):
        said = shown(ordinary, sql, epsilon=1)
        assert [release["share"] for release in said["releases"]] == [1]
        assert said["price"]["delta"] in ("0", 0)


def test_e_rows_that_are_left_out_are_said(ordinary: Session) -> None:
    said = shown(ordinary, "SELECT s, count(*) FROM visits GROUP BY s")
    assert any("max_groups_contributed" in word for word in said["warnings"])
    assert said["releases"][0]["max_groups_contributed"] == 4


def test_having_and_order_see_noisy_values_only(whole: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpquery.release.noise.sample", noise_of(1000))
    assert rows(whole, "SELECT count(*) AS n FROM visits HAVING count(*) > 1200") == [(1400,)]
    assert rows(whole, "SELECT least(count(*), 500) FROM visits") == [(500,)]


def test_e_a_choice_tells_which_and_not_how_much(ordinary: Session) -> None:
    """MODE shares no part with counts of the same rows; of its own, ones and zeros alone are handed on."""
    found = shown(ordinary, "SELECT mode(menu), count(*) FROM people", epsilon=1)["releases"]
    assert [(release["noise"], release["share"]) for release in found] == [("permute_and_flip", 0.5), ("laplace", 0.5)]
    scores = [7 << 20, 9 << 20, 3 << 20]
    for mechanism in Choosing:
        made = choose(Noise(mechanism, Fraction(1 << 20)), scores * 100, 3, SystemBits())
        assert [sorted(made[i : i + 3]) for i in range(0, 300, 3)] == [[0, 0, 1]] * 100


@pytest.mark.parametrize(("adjacency", "apart"), [("add_remove", 1), ("replace_one", 2)])
def test_e_scores_move_both_ways_where_a_person_is_replaced(adjacency: str, apart: int, tmp_path: Path) -> None:
    terms = people.ORDINARY + f"adjacency: {adjacency}\n"
    with people.opened(people.made(tmp_path, terms=terms)) as (session,):
        (release,) = shown(session, "SELECT mode(menu) FROM people", epsilon=1, delta=0)["releases"]
        by_rho = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(rho = 0.02, delta = 1e-6) mode(menu) FROM people"
        (exponential,) = shown(session, by_rho)["releases"]
    assert (release["noise"], release["scale"]) == ("permute_and_flip", apart)
    assert exponential["noise"] == "exponential"
    assert exponential["scale"] == pytest.approx(apart / math.sqrt(8 * 0.02))
