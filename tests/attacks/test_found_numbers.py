"""Numbers that nobody means: prices, bounds and factors beyond what a double holds must end in a refusal or an answer, never in anything else."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from time import monotonic
from typing import Any

import pytest
from attack_lab import code, explained, rows

from dpquery.engine.session import Session


@pytest.mark.parametrize(
    "price",
    [
        {"epsilon": 10**5000},
        {"epsilon": Fraction(1, 10**3000)},
        {"epsilon": Fraction(10**3000, 10**3000 + 1)},
        {"epsilon": "1e-390"},
        {"epsilon": Decimal("1e-310"), "delta": 0},
        {"rho": "1e-390"},
        {"delta": Fraction(1, 10**3000)},
    ],
)
def test_prices_out_of_proportion_are_refused_at_once(ordinary: Session, price: dict[str, Any]) -> None:
    start = monotonic()
    assert code(ordinary, "SELECT count(*) FROM people", **price) == "BAD_PRICE"
    assert monotonic() - start < 5


@pytest.mark.parametrize("option", ["epsilon = 1e-390", "rho = 1e-390", "epsilon = 1e-101"])
def test_so_are_those_of_options(ordinary: Session, option: str) -> None:
    assert code(ordinary, f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({option}) count(*) FROM people") == "BAD_PRICE"


def test_and_shares(ordinary: Session) -> None:
    assert code(ordinary, "SELECT sum(age, epsilon => 1e-390), count(*) FROM people") == "BAD_PRICE"


@pytest.mark.parametrize("confidence", [0, "0", 0.0, "0.4", 1, -1])
def test_a_confidence_of_0_is_no_silence(ordinary: Session, confidence: Any) -> None:
    assert code(ordinary, "SELECT count(*) FROM people", confidence=confidence) == "BAD_CONFIDENCE"


def test_two_confidences_are_refused(ordinary: Session) -> None:
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(confidence_level = 0.9) count(*) FROM people"
    assert code(ordinary, sql, confidence="0.99") == "TWO_PRICES"


@pytest.mark.parametrize("bounds", ["(0, 1e300)", "(-1e300, 1e300)", "(0, 1e-300)", "(1e299, 1e300)"])
@pytest.mark.parametrize("aggregate", ["sum(score, contribution_bounds_per_row => {})", "sum(score, contribution_bounds_per_group => {})"])
def test_wide_bounds_are_answered(lab: Session, aggregate: str, bounds: str) -> None:
    """Or refused, where the declared bounds of a row are 0 on a grid that wide."""
    lost = "per_group" in aggregate and "e300" in bounds
    assert code(lab, f"SELECT {aggregate.format(bounds)} FROM people") == ("BAD_BOUNDS" if lost else "answered")


@pytest.mark.parametrize("bounds", ["(0, 1e301)", "(0, 1e400)", "(-1e400, 0)"])
def test_wider_ones_are_refused(lab: Session, bounds: str) -> None:
    assert code(lab, f"SELECT sum(score, contribution_bounds_per_row => {bounds}) FROM people") == "BAD_BOUNDS"


@pytest.mark.parametrize("sum_", ["* 1e300 * 1e300", "/ 1e-300 / 1e-300", "* 1e200 * 1e200 * 1e-200", "* -1e308 * 10"])
def test_an_error_bar_beyond_a_double_never_costs_the_answer(lab: Session, sum_: str) -> None:
    """The bar overflowed after the charge: the answer was lost, and the account counted a time-out."""
    before = lab.budget().timeouts
    answer = lab.query(f"SELECT count(*) {sum_} AS x FROM people")
    assert answer.table.num_rows == 1
    assert lab.budget().timeouts == before
    assert rows(lab, f"SELECT avg(age) {sum_} AS x FROM people")


@pytest.mark.parametrize("literal", ["1e99999999", "1e-99999999", "1e999999999999"])
def test_an_exponent_is_not_written_out(lab: Session, literal: str) -> None:
    """The exact value of 1e99999999 has a hundred million digits: reading the statement took minutes and gigabytes, before any limit."""
    start = monotonic()
    assert code(lab, f"SELECT count(*) * {literal} FROM people") in ("answered", "POST_INVALID")
    assert code(lab, f"SELECT (count(*) + {literal}) / count(*) FROM people") in ("answered", "POST_INVALID")
    assert monotonic() - start < 10


def test_neither_is_a_product_of_many(lab: Session) -> None:
    start = monotonic()
    assert code(lab, "SELECT count(*)" + " * 1e300" * 150 + " FROM people") in ("answered", "TOO_COMPLEX")
    assert monotonic() - start < 10


def test_explain_shows_extreme_scales(ordinary: Session) -> None:
    said = explained(ordinary, "SELECT sum(score, contribution_bounds_per_row => (0, 1e300)) FROM people", epsilon="1e-50", delta=0)
    assert said["releases"][0]["scale"] > 1e299


@pytest.mark.parametrize("sql", [None, 5, b"SELECT count(*) FROM people", ["SELECT count(*) FROM people"]])
def test_a_statement_is_a_text(ordinary: Session, sql: Any) -> None:
    assert code(ordinary, sql) == "NOT_A_TEXT"


@pytest.mark.parametrize("sql", ['SELECT count(*) AS "\ud800" FROM people', "SELECT count(*) FROM people WHERE country = '\udfff'", "\ud83d"])
def test_half_a_character_is_refused(ordinary: Session, sql: str) -> None:
    assert code(ordinary, sql) == "SYNTAX"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT note" + " || note" * 200 + ", count(*) FROM orders GROUP BY note",
        "SELECT note || note AS a, a || a AS b, b || b AS c, c || c AS d, d || d AS e, e || e AS f, f || f AS g, count(*) FROM orders GROUP BY note",
        "SELECT concat(" + ", ".join(["note"] * 100) + "), count(*) FROM orders GROUP BY note",
        "SELECT '" + "x" * 500_000 + "' || note, count(*) FROM orders GROUP BY note",
    ],
)
def test_texts_above_the_noise_do_not_grow_without_limit(lab: Session, sql: str) -> None:
    """Keys of 4096 characters doubled a dozen times took the process with them, after the charge."""
    assert code(lab, sql) == "TOO_COMPLEX"


def test_a_few_texts_may_be_joined(lab: Session) -> None:
    assert (
        code(lab, "SELECT note || '-' || note || '-' || upper(note) AS a, a || a AS b, concat(a, b, 'x') AS c, count(*) FROM orders GROUP BY note")
        == "answered"
    )


@pytest.mark.parametrize("fraction", ["1e-99/1e99/1e99/1e99", "1e-99/1e99/1e99/2004", "1/(1e18+1)", "1e-19", "0.1234567", "1/1000003.0"])
def test_a_fraction_too_fine_for_ranks_is_refused_whatever_the_data(lab: Session, fraction: str) -> None:
    """Scores are multiples of its denominator: beyond a float, whether an answer comes would tell how many rows there are."""
    chosen = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.01, noise = exponential) QUANTILE_CONT(age, {fraction}) FROM people WHERE pid = 1"
    assert code(lab, chosen) == "QUANTILE"


def test_ordinary_fractions_are_answered(lab: Session) -> None:
    for fraction in ("0.5", "0.999999", "1/3.0", "1e-6", "0", "1"):
        sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.01, noise = exponential) QUANTILE_CONT(age, {fraction}) FROM people"
        assert code(lab, sql) == "answered", fraction
    assert code(lab, "SELECT QUANTILE_CONT(age, 0.30000000000000004) FROM people", epsilon="0.01") == "answered"
