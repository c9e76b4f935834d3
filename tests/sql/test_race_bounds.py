"""bounds => 'race', through the engine: what it answers with noise off and on, what it costs, what is refused."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest

import dpquery
from dpquery.aggregates import CARDS
from dpquery.aggregates.race import DOUBT
from dpquery.errors import Refused
from dpquery.mechanisms import Noise, SystemBits, half_width, sample
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import Aggregate, Clamp, Mechanism
from dpquery.plan.scalar import Column, Interval
from dpquery.values.types import INTEGER

TABLES = """
CREATE TABLE users AS SELECT i AS user_id, ['US', 'DE', 'FR'][1 + i % 3] AS country FROM range(1, 61) t(i);
CREATE TABLE orders AS SELECT i AS order_id, 1 + (i * i) % 59 AS user_id, i % 7 - 3 AS k, i % 9 AS q FROM range(1, 241) t(i)
"""
SCHEMA = """
dataset: raced
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
    columns: {order_id: {type: integer, unique: true}, user_id: {type: integer}, k: {type: integer}, q: {type: integer, lower: 0, upper: 100}}
"""
FREE = "budget: {epsilon: 1e30, delta: 1}\nper_query: {epsilon: 1e20, delta: 1}\nunsafe_testing: true\ncontribution: {max_groups_contributed: 10}"
ORDINARY = "budget: {epsilon: 40, delta: 1e-6}\nper_query: {epsilon: 1, delta: 1e-9}"
N, S = "count(*, contribution_bounds_per_group => (0, 64), bounds => 'race')", "sum(q, contribution_bounds_per_group => (0, 5000), bounds => 'race')"
ANSWERED = (
    (f"SELECT {N} AS n, {S} AS s FROM orders", "SELECT count(*), sum(q) FROM orders"),
    (
        f"SELECT country, {N} AS n FROM users JOIN orders USING (user_id) GROUP BY country ORDER BY country",
        "SELECT country, count(*) FROM users JOIN orders USING (user_id) GROUP BY country ORDER BY country",
    ),
    (f"SELECT {N} FILTER (WHERE k > 0) AS n, 2 * {S} AS s FROM orders", "SELECT count(*) FILTER (WHERE k > 0), 2 * sum(q) FROM orders"),
)


@pytest.mark.parametrize(("text", "same"), ANSWERED)
def test_without_noise_the_answer_is_the_plain_one(free: dpquery.Connection, text: str, same: str) -> None:
    with duckdb.connect() as plain:
        plain.execute(TABLES)
        wanted = plain.execute(same).fetchall()
    assert free.query(text).fetchall() == wanted


def test_it_costs_what_is_asked_and_its_bar_holds_the_answer(con: dpquery.Connection) -> None:
    sql = f"SELECT {N} AS n FROM orders"
    found = con.query(sql)
    assert found.receipt["price"]["epsilon"] == "1"
    assert found.receipt["price"] == con.explain(sql).as_dict()["price"]
    ((value,),) = found.fetchall()
    ((low, high),) = found.intervals["n"]
    assert 0 <= low <= value <= high
    assert con.query(sql).fetchall() == [(value,)], "from the store"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT count(*, bounds => 'race') FROM orders", "RACE"),
        ("SELECT count(*, contribution_bounds_per_group => (1, 9), bounds => 'race') FROM orders", "RACE"),
        ("SELECT sum(k, contribution_bounds_per_group => (0, 9), contribution_bounds_per_row => (-3, 3), bounds => 'race') FROM orders", "RACE"),
        ("SELECT sum(q, contribution_bounds_per_group => (0, 1e13), bounds => 'race') FROM orders", "RACE"),
        ("SELECT count(*, contribution_bounds_per_group => (0, 0.5), bounds => 'race') FROM orders", "RACE"),
        ("SELECT avg(q, contribution_bounds_per_group => (0, 9), bounds => 'race') FROM orders", "RACE"),
        ("SELECT sum(k, contribution_bounds_per_group => (0, 9), bounds => 'race') FROM orders", "MISSING_BOUNDS"),
        (f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed = 3) {N} FROM orders", "PER_GROUP_BOUNDS"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(bounds = 'race') count(*) FROM orders", "OPTION_VALUE"),
    ],
)
def test_what_cannot_race_is_refused(con: dpquery.Connection, text: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        con.explain(text)
    assert caught.value.code == code


# ---- the card ------------------------------------------------------------------------------------------------------------------------

TOTALS = (1, 1, 2, 5, 9, 14, 3)  # what units bring


def planned(ceiling: int, row: int | None = None) -> tuple[Aggregate, list[int]]:
    group, value = Interval(Fraction(0), Fraction(ceiling)), None if row is None else Column(0, "x", INTEGER)
    per_row = None if row is None else Interval(Fraction(0), Fraction(row))
    card = "race_count" if row is None else "race_total"
    made = CARDS[card].plan(AggregateAsk("a0", "n", card, value, None, group, per_row), Contributions(1, 1, 9), None)
    caps = [part.cell.high for part in made.parts if isinstance(part.cell, Clamp)]
    assert len(caps) == len(made.parts)  # none is a count of units, whose noise would decide which groups are shown
    return Aggregate("a0", "n", card, tuple(range(len(caps))), made.type, made.step, made.bounds), caps


def test_caps_are_halves_of_the_ceiling_down_to_a_row() -> None:
    assert planned(64)[1] == [1, 2, 4, 8, 16, 32, 64]
    assert planned(10)[1] == [1, 2, 3, 5, 10]
    assert planned(1)[1] == [1]
    assert planned(1000, 100)[1] == [100, 125, 250, 500, 1000]
    assert planned(50, 100)[1] == [50]


def test_the_answer_is_seldom_too_high_and_never_far_too_low() -> None:
    """Of the sum under the ceiling, at most DOUBT of the answers are above, and as few below by twice the width of the cap that no unit exceeds; the
    error bar holds it as often as it says."""
    aggregate, caps = planned(64)
    noises = [Noise(Mechanism.LAPLACE, Fraction(cap * len(caps))) for cap in caps]  # epsilon 1
    times, units = 400, 200
    exact = [units * sum(min(total, cap) for total in TOTALS) for cap in caps]
    true, bits = units * sum(TOTALS), SystemBits()
    sums = [[one + z for z in sample(noise, times, bits)] for one, noise in zip(exact, noises, strict=True)]
    settle = CARDS["race_count"].settle
    assert settle is not None
    shown = [int(str(value)) for value in settle(aggregate, sums, noises)]
    enough = caps.index(16)
    far = 2 * half_width(noises[enough], 1 - 2 * DOUBT / len(caps))
    allowed = times * float(DOUBT) + 5 * (times * float(DOUBT)) ** 0.5
    assert sum(value > true for value in shown) <= allowed
    assert sum(value < true - far for value in shown) <= allowed
    bars = CARDS["race_count"].interval(aggregate, sums, noises, Fraction(9, 10))
    assert all(bar is not None and int(str(bar[0])) <= value <= int(str(bar[1])) for bar, value in zip(bars, shown, strict=True))  # type: ignore[index]
    missed = sum(not int(str(bar[0])) <= true <= int(str(bar[1])) for bar in bars)  # type: ignore[index]
    assert missed <= times / 10 + 5 * (times / 10) ** 0.5


def test_without_units_the_answer_is_most_often_nothing() -> None:
    aggregate, caps = planned(64)
    noises = [Noise(Mechanism.LAPLACE, Fraction(cap * len(caps))) for cap in caps]
    settle = CARDS["race_count"].settle
    assert settle is not None
    assert settle(aggregate, [[0, -9]] * len(caps), noises) == [0, 0]
