"""loss_epsilon, through the engine: what it costs, what it says of caps that are written, declared, chosen or race, and what is refused."""

from __future__ import annotations

import duckdb
import pytest

import dpquery
from dpquery.errors import Refused

TABLES = """
CREATE TABLE users AS SELECT i AS user_id, ['US', 'DE', 'FR'][1 + i % 3] AS country FROM range(1, 61) t(i);
CREATE TABLE orders AS SELECT i AS order_id, 1 + (i * i) % 59 AS user_id, i % 9 AS q FROM range(1, 241) t(i)
"""
SCHEMA = """
dataset: losing
source: {engine: duckdb, path: data.duckdb}
privacy_unit: users.user_id
BUDGET
contribution: {max_groups_contributed: 10, max_rows_per_group: 2}
tables:
  users:
    unit: user_id
    max_rows_per_unit: 1
    columns: {user_id: {type: integer}, country: {type: string, values: [US, DE, FR]}}
  orders:
    unit: user_id
    columns: {order_id: {type: integer, unique: true}, user_id: {type: integer}, q: {type: integer, lower: 0, upper: 8}}
"""
FREE = "budget: {epsilon: 1e30, delta: 1}\nper_query: {epsilon: 1e20, delta: 1}\nunsafe_testing: true"
ORDINARY = "budget: {epsilon: 40, delta: 1e-6}\nper_query: {epsilon: 1, delta: 1e-9}"
DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(loss_epsilon = {})"
ASKED: dict[str, tuple[str, str]] = {
    "count(*)": ("least(n, 2)", "n"),
    "count(*, contribution_bounds_per_group => (0, 3))": ("least(n, 3)", "n"),
    "sum(q)": ("least(s, 16)", "s"),
    "sum(q, contribution_bounds_per_row => (0, 4))": ("least(c, 8)", "s"),
    "sum(q, contribution_bounds_per_group => (0, 3))": ("least(s, 3)", "least(s, 30)"),
    "count(*, contribution_bounds_per_group => (0, 3), bounds => 'race')": ("least(n, 3)", "n"),
    "sum(q, contribution_bounds_per_group => (0, 3), bounds => 'race')": ("least(s, 3)", "least(s, 30)"),
    "count(*, bounds => 'auto')": ("n", "n"),
    "sum(-q)": ("least(s, 16)", "s"),
}
"""Aggregates, what a unit of n rows (s in all, c of clamped ones) brings, and what it does under bounds ten times as wide."""


def lost(shown: str, whole: str) -> float:
    with duckdb.connect() as plain:
        plain.execute(TABLES)
        units = "SELECT count(*) AS n, sum(q) AS s, sum(least(q, 4)) AS c FROM orders GROUP BY user_id"
        ((found,),) = plain.sql(f"SELECT 1 - sum({shown}) / sum({whole}) FROM ({units})").fetchall()
    return float(found)


def test_without_noise_the_loss_is_the_plain_one(free: dpquery.Connection) -> None:
    names = [f"{call} AS a{i}" for i, call in enumerate(ASKED)]
    found = free.query(f"{DP.format('5e19')} {', '.join(names)} FROM orders").receipt["caps"]
    for (call, (shown, whole)), one in zip(ASKED.items(), found, strict=True):
        cut = one["lost"]
        assert cut["share"] == pytest.approx(lost(shown, whole), abs=1e-9), call
        assert cut["low"] <= cut["share"] + 1e-9
        assert cut["high"] >= cut["share"] - 1e-9
        assert cut["of"] == "the sum under 10 times its bounds"
    assert [one["caps"] for one in found[:2]] == [[{"cap": 2, "groups": 1}], [{"cap": 3, "groups": 1}]]


def test_in_groups_the_loss_is_that_of_all_of_them(free: dpquery.Connection) -> None:
    sql = f"{DP.format('1e19')} country, count(*) AS n FROM users JOIN orders USING (user_id) GROUP BY country"
    (one,) = free.query(sql).receipt["caps"]
    assert one["lost"]["share"] == pytest.approx(lost("least(n, 2)", "n"), abs=1e-9)
    assert one["caps"] == [{"cap": 2, "groups": 3}]


def test_it_is_paid_for_by_its_part_of_the_price(con: dpquery.Connection) -> None:
    sql = f"{DP.format('0.25')} count(*) AS n, sum(q) AS s, avg(q) AS m FROM orders"
    explained = con.explain(sql, epsilon=1).as_dict()
    assert explained["price"]["epsilon"] == "1"
    shares = {row["aggregate"]: row["share"] for row in explained["releases"]}
    assert (shares["count(*)"], shares["count(*) within 10 times its bounds"], shares["sum(q) within 10 times its bounds"]) == (0.25, 0.125, 0.125)
    first = con.query(sql, epsilon=1)
    assert first.columns == ["n", "s", "m"]
    assert first.receipt["price"]["epsilon"] == "1"
    assert [one["aggregate"] for one in first.receipt["caps"]] == ["count(*)", "sum(q)"]
    assert sum(" of the sum under 10 times its bounds" in one for one in first.warnings) == 2
    again = con.query(sql, epsilon=1)
    assert again.receipt["caps"] == first.receipt["caps"], "from the store"


def test_of_the_count_that_selects_groups_no_loss_is_told(con: dpquery.Connection) -> None:
    """Groups are shown where its noise is high, so that what is shown says too little of what is cut off."""
    text = f"{DP.format(0.2).replace('(', '(max_rows_per_group = 1, noise = laplace, ')} q, count(*) AS n FROM orders GROUP BY q"
    (one,) = con.query(text, epsilon="1", delta="1e-9").receipt["caps"]
    assert (one["lost"]["share"], one["lost"]["low"], one["lost"]["high"]) == (None, 0.0, 1.0)


def test_a_race_names_the_cap_that_won_and_pays_nothing_for_it(con: dpquery.Connection) -> None:
    found = con.query("SELECT count(*, contribution_bounds_per_group => (0, 16), bounds => 'race') AS n FROM orders", epsilon=8)
    (one,) = found.receipt["caps"]
    ((cap, groups),) = [(used["cap"], used["groups"]) for used in one["caps"]]
    assert cap in (None, 1, 2, 4, 8, 16)
    assert groups == 1
    assert one["lost"]["of"] == "the sum under its ceiling"
    assert found.receipt["price"]["epsilon"] == "8"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{DP.format('0.1')} avg(q) AS m FROM orders", "OPTION_WITHOUT_EFFECT"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(loss_epsilon = 0.1, max_rows_contributed = 3) sum(q) AS s FROM orders", "OPTION_WITHOUT_EFFECT"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(loss_epsilon = 0.1, rho = 0.1) sum(q) AS s FROM orders", "OPTIONS_CONFLICT"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(loss_epsilon = 1, epsilon = 1) sum(q) AS s FROM orders", "SHARES_EXCEED_PRICE"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(loss_epsilon = 2, epsilon = 1) sum(q) AS s FROM orders", "EPSILON_SHARES"),
        (f"{DP.format('0')} sum(q) AS s FROM orders", "BAD_PRICE"),
    ],
)
def test_what_has_no_loss_is_refused(con: dpquery.Connection, text: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        con.explain(text)
    assert caught.value.code == code
