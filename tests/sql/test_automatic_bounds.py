"""bounds => 'auto', through the engine: noise off, answers are the plain engine's; what it costs, what it says, what is refused."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest

import dpquery
from dpquery.engine.capping import Found, loud_first, percent, said
from dpquery.errors import Refused

TABLES = """
CREATE TABLE users AS SELECT i AS user_id, ['US', 'DE', 'FR'][1 + i % 3] AS country FROM range(1, 61) t(i);
CREATE TABLE orders AS SELECT i AS order_id, 1 + (i * i) % 59 AS user_id, (i * 37 % 500) - 100.5 AS amount, i % 7 AS k, i % 9 AS q,
    ['a', 'b', 'c', 'd'][1 + (i % 11) % 4] AS item FROM range(1, 241) t(i)
"""
SCHEMA = """
dataset: automatic
source: {engine: duckdb, path: data.duckdb}
privacy_unit: users.user_id
BUDGET
tables:
  users:
    unit: user_id
    max_rows_per_unit: 1
    columns: {user_id: {type: integer}, country: {type: string, values: [US, DE, FR]}}
  orders:
    unit: user_id
    columns:
      order_id: {type: integer, unique: true}
      user_id: {type: integer}
      amount: {type: float}
      k: {type: integer}
      q: {type: integer, lower: 0, upper: 100}
      item: {type: string}
"""
FREE = """budget: {epsilon: 1e30, delta: 1}
per_query: {epsilon: 1e20, delta: 1}
unsafe_testing: true
contribution: {max_groups_contributed: 10, max_rows_per_group: 50}"""
ORDINARY = """budget: {epsilon: 40, delta: 1e-6}
per_query: {epsilon: 1, delta: 1e-9}
contribution: {max_groups_contributed: 10}"""
LESS = "let less of each unit through"
ROWS = "WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_per_group = 20)"
AUTO = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(bounds = 'auto')"
ANSWERED = (
    "{} count(*) AS n, count(amount) AS m, sum(amount) AS s, sum(k) AS t FROM orders",
    "{} avg(amount) AS a, avg(q) AS b FROM orders",
    "{} count(*) FILTER (WHERE amount > 50) AS n, sum(q) FILTER (WHERE k = 3) AS s FROM orders",
    "{} country, count(*) AS n, sum(q * 2) AS s FROM users JOIN orders USING (user_id) GROUP BY country ORDER BY country",
    "{} item, count(*) AS n, count(DISTINCT user_id) AS u FROM orders GROUP BY item ORDER BY item",
    "{} count(*) AS n FROM users LEFT JOIN orders USING (user_id) WHERE order_id IS NULL OR k > 2",
    "{} sum(q) AS s FROM orders WHERE q > 100",
)


@pytest.mark.parametrize("text", ANSWERED)
def test_without_noise_the_answer_is_the_plain_one(free: dpquery.Connection, text: str) -> None:
    with duckdb.connect() as plain:
        plain.execute(TABLES)
        wanted = plain.sql(text.format("SELECT")).fetchall()
    got = free.query(text.format(AUTO), fresh=True).fetchall()
    for one, other in zip(got, wanted, strict=True):
        assert [x if isinstance(x, str) else float(x or 0) for x in one] == [x if isinstance(x, str) else pytest.approx(float(x or 0)) for x in other]


def test_a_count_is_whole_and_the_cap_is_told(free: dpquery.Connection) -> None:
    found = free.query("SELECT count(*, bounds => 'auto') AS n FROM orders")
    assert found.types == ["BIGINT"]
    assert any(one.startswith("count(*): what one unit brings is capped at ") for one in found.warnings)


@pytest.mark.lemma("C16", "P8")
def test_the_histogram_takes_a_tenth_of_the_price(con: dpquery.Connection) -> None:
    found = con.explain("SELECT count(*, bounds => 'auto') AS n FROM orders", epsilon=1).as_dict()
    assert found["price"]["epsilon"] == "1"
    assert sorted(row["charged_epsilon"] for row in found["tables"]) == ["0.1", "0.9"]
    assert {"C16", "L25"} <= set(found["lemmas"])
    two = con.explain(f"{AUTO} count(*) AS n, sum(k) AS s FROM orders", epsilon=1).as_dict()
    assert sorted(row["charged_epsilon"] for row in two["tables"]) == ["0.05", "0.05", "0.9"]


def test_the_price_is_what_is_asked_and_knows_no_cap(con: dpquery.Connection) -> None:
    sql = "SELECT sum(amount, bounds => 'auto') AS s FROM orders"
    before = con.budget().entries
    found = con.query(sql)
    assert con.budget().entries == before + 1
    assert found.receipt["price"] == con.explain(sql).as_dict()["price"]
    again = con.query(sql)
    assert again.fetchall() == con.query(sql).fetchall()
    assert again.intervals == found.intervals


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT stddev(amount, bounds => 'auto') FROM orders", "BOUNDS_AUTO"),
        ("SELECT sum(amount, bounds => 'auto', contribution_bounds_per_group => (0, 1)) FROM orders", "BOUNDS_AUTO"),
        ("SELECT sum(amount, bounds => 'some') FROM orders", "OPTION_VALUE"),
        ("SELECT sum(amount, bounds => (0, 1)) FROM orders", "OPTION_VALUE"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(bounds = 'auto', max_rows_contributed = 3) sum(k) FROM orders", "BOUNDS_AUTO"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(bounds = 3) sum(k) FROM orders", "OPTION_VALUE"),
    ],
)
def test_what_cannot_be_bounded_so_is_refused(con: dpquery.Connection, text: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        con.explain(text)
    assert caught.value.code == code


def test_an_error_asked_for_has_no_price_before_the_cap_is_known(con: dpquery.Connection) -> None:
    with pytest.raises(Refused) as caught:
        con.query("SELECT count(*, bounds => 'auto') AS n FROM orders", error=50)
    assert caught.value.code == "ERROR_DEPENDS"


def test_a_call_may_ask_for_it_instead(con: dpquery.Connection) -> None:
    plain, clause = "SELECT sum(k) AS s, count(*, contribution_bounds_per_group => (0, 9)) AS n FROM orders", "SELECT sum(k, bounds => 'auto') AS s"
    wanted = con.explain(plain.replace("SELECT sum(k) AS s", clause)).as_dict()
    assert con.explain(plain, bounds="auto").as_dict()["price"] == wanted["price"]
    assert len(con.explain(plain, bounds="auto").as_dict()["tables"]) == len(wanted["tables"]) == 2
    before = con.budget().entries
    con.query(plain, bounds="auto")
    con.query(plain.replace("SELECT sum(k) AS s", clause))
    assert con.budget().entries == before + 1, "one question, however it is asked"
    with pytest.raises(Refused) as caught:
        con.explain(plain, bounds="some")
    assert caught.value.code == "OPTION_VALUE"


def test_what_a_cap_cuts_off_is_said_in_percent_or_to_be_unknown() -> None:
    assert [percent(one) for one in (0.0, 0.0004, 0.012, 0.39, 0.999, 1.0)] == ["0%", "less than 0.1%", "1.2%", "39%", "100%", "100%"]
    quiet, vague, low, none = (said("n", Found(Fraction(9), *one)) for one in ((0.01, False), (None, False), (0.2, True), (None, True)))
    assert quiet.endswith("; about 1.0% of the total is expected to be cut off.")
    assert vague.endswith("; how much that cuts off is not known at this price, and no error bar covers it.")
    assert low.startswith("TOO LOW: n: what one unit brings is capped at 9")
    assert none.startswith("NOT TO BE RELIED ON: n: what one unit brings is capped at 9")
    assert loud_first([quiet, none, vague, low]) == (none, low, quiet, vague)


def test_an_estimate_that_noise_drowns_is_no_estimate(con: dpquery.Connection) -> None:
    first = con.query("SELECT sum(k, bounds => 'auto') AS s FROM orders", epsilon=0.01).warnings[0]
    assert first.startswith("NOT TO BE RELIED ON: sum(k): what one unit brings is capped at ")
    assert "is not known at this price" in first


def test_lengths_of_a_cap_that_is_not_chosen_are_shares_of_it(con: dpquery.Connection) -> None:
    found = con.explain(f"SELECT {ROWS} sum(k, bounds => 'auto') AS s, count(*) AS n, avg(q, bounds => 'auto') AS a FROM orders")
    assert [one.get("lengths_in") for one in found.as_dict()["releases"]] == [None, None, "cap", None, "cap"]
    text = str(found)
    assert " × cap where 100 rows" in text
    assert text.count("1 × cap") >= 1


@pytest.mark.parametrize("text", ["median(amount)", "stddev(amount)"])
def test_what_it_is_not_for_is_said_where_bounds_are_missing(con: dpquery.Connection, text: str) -> None:
    with pytest.raises(Refused) as caught:
        con.explain(f"SELECT {ROWS} {text} FROM orders", bounds="auto")
    assert (caught.value.code, "COUNT, SUM and AVG only" in str(caught.value)) == ("MISSING_BOUNDS", True)


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        ("count(*) AS n FROM users", "Pay more or ask of more rows."),
        ("count(*, bounds => 'auto') AS n FROM orders", "Pay more or ask of more rows."),
        (
            "count(*, contribution_bounds_per_group => (0, 9)) AS n FROM orders",
            f"ask of more rows or {LESS} (bounds => 'auto').",
        ),
        ("sum(q) AS s FROM orders", f"ask of more rows or {LESS} (a lower max_rows_per_group, bounds => 'auto')."),
        ("median(q) AS m FROM orders", f"ask of more rows or {LESS} (a lower max_rows_per_group)."),
        (
            "item, sum(q) AS s FROM orders WHERE item IN ('a', 'b', 'c') GROUP BY item",
            f"ask for larger groups or {LESS} (a lower max_rows_per_group, a max_groups_contributed below 3, bounds => 'auto').",
        ),
    ],
)
def test_a_wide_bar_says_what_makes_it_narrower(con: dpquery.Connection, monkeypatch: pytest.MonkeyPatch, text: str, ways: str) -> None:
    monkeypatch.setattr("dpquery.release.noise.sample", lambda noise, count, bits: [0] * count)  # one draw in 400 lies beyond the bar's whole width
    said = con.query(f"SELECT {ROWS} {text}", epsilon=0.001, noise="laplace").warnings
    (found,) = {one for one in said if "wider than the value itself" in one}
    assert found.endswith(ways)


def test_notes_say_a_thing_once_and_numbers_in_full(con: dpquery.Connection) -> None:
    found = con.explain(f"SELECT {ROWS} median(amount, contribution_bounds_per_row => (0, 1000)) AS m, stddev(q) AS d FROM orders", epsilon=0.01)
    text = " ".join(str(found).split("What would run")[0].split())
    assert text.count("counted in bins of width") <= 1
    assert "e+0" not in text
    assert "the mean over rows" not in text
