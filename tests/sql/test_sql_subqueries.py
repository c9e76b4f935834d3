"""Subqueries above the noise, lists and correlated ones too: noise off, each answer is the plain engine's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_sql_several import BY, BY_ITEM, agrees, made

import dpquery
from dpquery.errors import Refused

ITEMS = f"WITH r AS ({BY_ITEM}) "
DAYS = "WITH d AS (SELECT item, day, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY item, day) "
ANSWERED = (
    f"SELECT item, COUNT(*) AS n FROM orders GROUP BY item HAVING item IN (SELECT item FROM ({BY_ITEM}) WHERE n > 60) ORDER BY 1",
    f"SELECT item, COUNT(*) AS n FROM orders GROUP BY item HAVING item NOT IN (SELECT item FROM ({BY_ITEM}) WHERE n > 60) ORDER BY 1",
    "SELECT item, COUNT(*) AS n FROM orders GROUP BY item HAVING item IN (SELECT item FROM kinds WHERE place < 3) ORDER BY 1",
    "SELECT item, COUNT(*) AS n FROM orders GROUP BY item HAVING item IN (SELECT item FROM early) ORDER BY 1",
    "SELECT item, COUNT(*) AS n, item IN (SELECT item FROM kinds) AS known FROM orders GROUP BY item ORDER BY 1",
    "SELECT item, COUNT(*) AS n FROM orders GROUP BY item QUALIFY RANK() OVER (ORDER BY COUNT(*)) > 1 AND item NOT IN (SELECT item FROM kinds) "
    "ORDER BY item IN (SELECT 'd'), item",
    "SELECT day, day IN (SELECT day FROM orders GROUP BY day HAVING COUNT(*) > 50) AS found, COUNT(*) FROM orders GROUP BY day ORDER BY 1",
    "SELECT day, day NOT IN (SELECT MAX(day) FROM (SELECT day FROM orders GROUP BY day)) AS found, COUNT(*) FROM orders GROUP BY day ORDER BY 1",
    f"SELECT item, COUNT(*) AS n FROM orders GROUP BY item HAVING COUNT(*) IN (SELECT MAX(n) FROM ({BY_ITEM})) ORDER BY 1",
    f"SELECT item, COUNT(*) / 2 AS h FROM orders GROUP BY item HAVING COUNT(*) / 2 NOT IN (SELECT n * 0.5 FROM ({BY_ITEM}) WHERE n > 50) ORDER BY 1",
    f"SELECT item FROM orders GROUP BY item HAVING COUNT(*) = ANY (SELECT n FROM ({BY_ITEM}) WHERE n > 50) ORDER BY 1",
    f"SELECT item FROM orders GROUP BY item HAVING item <> ALL (SELECT item FROM ({BY_ITEM}) WHERE n > 50) ORDER BY 1",
    f"SELECT COUNT(*) AS n FROM orders HAVING EXISTS (SELECT 1 FROM ({BY_ITEM}) WHERE n > 50)",
    f"SELECT COUNT(*) AS n FROM orders HAVING NOT EXISTS (SELECT 1 FROM ({BY_ITEM}) WHERE n > 50)",
    ITEMS + "SELECT item, n FROM r WHERE item IN (SELECT item FROM kinds) OR n > 70 ORDER BY 1",
    ITEMS + "SELECT item, n FROM r AS a WHERE EXISTS (SELECT 1 FROM r AS b WHERE b.n > a.n AND b.item > a.item) ORDER BY 1",
    ITEMS + "SELECT item, n FROM r AS a WHERE NOT EXISTS (SELECT 1 FROM r AS b WHERE b.n > a.n) ORDER BY 1",
    ITEMS + "SELECT item, n, (SELECT COUNT(*) FROM r AS b WHERE b.n > a.n) + 1 AS place FROM r AS a ORDER BY 1",
    ITEMS + "SELECT item, n FROM r WHERE n > (SELECT AVG(n) FROM r) AND item IN (SELECT item FROM r WHERE n < 1000) ORDER BY 1",
    ITEMS + "SELECT r.item, (SELECT MAX(k.place) FROM kinds AS k WHERE k.item = r.item) AS place FROM r ORDER BY 1",
    ITEMS + "SELECT r.item, (SELECT k.title FROM kinds AS k WHERE k.item = r.item ORDER BY k.place LIMIT 1) AS title, n FROM r ORDER BY 1",
    ITEMS + "SELECT COUNT(*) AS n FROM r WHERE r.n * 1.0 > (SELECT AVG(k.place) * 20 FROM kinds AS k WHERE k.item >= r.item)",
    ITEMS + "SELECT r.n > 50 AS large, SUM(n) AS s FROM r WHERE r.item IN (SELECT k.item FROM kinds AS k WHERE k.place < r.n) GROUP BY large",
    DAYS + "SELECT item, day, n FROM d WHERE n >= (SELECT AVG(e.n) FROM d AS e WHERE e.item = d.item) ORDER BY 1, 2",
    DAYS + "SELECT item, day, s FROM d WHERE s = (SELECT MAX(e.s) FROM d AS e WHERE e.item = d.item) ORDER BY 1, 2",
    DAYS + "SELECT item, day, n * 1.0 / (SELECT SUM(e.n) FROM d AS e WHERE e.day IS NOT DISTINCT FROM d.day) AS share FROM d ORDER BY 1, 2",
    DAYS + "SELECT d.day, (SELECT SUM(e.n + CASE WHEN e.item IN (SELECT k.item FROM kinds AS k WHERE k.place < e.n) THEN 1 ELSE 0 END) FROM d AS e "
    "WHERE e.day = d.day) AS s FROM d GROUP BY d.day ORDER BY 1",
    DAYS
    + "SELECT item, SUM(n) AS n FROM d GROUP BY item HAVING SUM(n) > (SELECT 20 * MAX(k.place) FROM kinds AS k WHERE k.item = d.item) ORDER BY 1",
    "SELECT item, COUNT(*) AS n FROM orders GROUP BY item HAVING COUNT(*) > 20 * (SELECT MAX(k.place) FROM kinds AS k WHERE k.item = orders.item)",
    "SELECT item, COUNT(*) AS n, (SELECT MAX(k.title) FROM kinds AS k WHERE k.item = orders.item) AS title FROM orders GROUP BY item ORDER BY 1",
    ITEMS + "SELECT item, (SELECT (SELECT MAX(k.place) FROM kinds AS k WHERE k.item = b.item AND k.place < a.n) FROM r AS b WHERE b.n >= a.n "
    "ORDER BY b.n, b.item LIMIT 1) AS p FROM r AS a ORDER BY 1",
    "SELECT (SELECT COUNT(*) FROM users) AS users, (SELECT COUNT(*) FROM orders WHERE amount > 100) * 1.0 / (SELECT COUNT(*) FROM orders) AS share",
    ITEMS + "SELECT (SELECT MAX(n) FROM r) * 1.0 / (SELECT SUM(n) FROM r) AS share, 'max' AS what",
    "SELECT * FROM (SELECT (SELECT COUNT(*) FROM users) AS n) AS t, (SELECT 1 + (SELECT COUNT(*) FROM orders) AS m) AS u",
    "SELECT COUNT(*) AS n FROM users AS u, orders AS o WHERE (u.user_id = o.user_id AND age > 40 AND amount > 100) OR "
    "(age < 30 AND u.user_id = o.user_id)",
    "SELECT COUNT(*) AS n FROM users AS u LEFT JOIN orders AS o ON (u.user_id = o.user_id AND age > 40) OR ((age < 30 OR item = 'a') AND "
    "(u.user_id = o.user_id))",
    f"SELECT country FROM ({BY}) WHERE country IN (SELECT country FROM ({BY}) UNION SELECT 'XX') ORDER BY 1",
)
REFUSED = {
    "SELECT COUNT(*) FROM users u, orders o WHERE (u.user_id = o.user_id AND age > 40) OR (age < 30 AND u.age = o.order_id)": "JOIN_ON_UNIT",
    "SELECT (SELECT MAX(place) FROM kinds) AS n": "NO_TABLE",
    "SELECT item FROM orders GROUP BY item HAVING item IN (SELECT item FROM orders WHERE amount > 3)": "SUBQUERY_ABOVE_NOISE",
    "SELECT item FROM orders GROUP BY item HAVING EXISTS (SELECT 1 FROM users)": "SUBQUERY_ABOVE_NOISE",
    f"SELECT item FROM orders GROUP BY item HAVING item IN (SELECT item, n FROM ({BY_ITEM}))": "IN_SUBQUERY",
    ITEMS + "SELECT item, (SELECT b.n FROM r AS b WHERE b.n > a.n) FROM r AS a": "SCALAR_SUBQUERY",
    ITEMS + "SELECT item, (SELECT MAX(b.n) FROM r AS b WHERE b.n > a.m) FROM r AS a": "UNKNOWN_COLUMN",
    "SELECT item FROM orders GROUP BY item HAVING COUNT(*) > (SELECT MAX(k.place) FROM kinds AS k WHERE k.place = orders.amount)": "NOT_GROUPED",
    "SELECT item FROM orders GROUP BY item HAVING COUNT(*) > (SELECT COUNT(*) FROM users AS u WHERE u.user_id = orders.item)": "SUBQUERY_ABOVE_NOISE",
    ITEMS + "SELECT item FROM r QUALIFY (SELECT MAX(k.place) FROM kinds AS k WHERE k.place < r.place) > RANK() OVER (ORDER BY n)": "UNKNOWN_COLUMN",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("subqueries"))


@pytest.fixture(scope="module")
def con(folder: Path) -> Iterator[dpquery.Connection]:
    with dpquery.connect(folder / "several.yaml") as found:
        yield found


@pytest.mark.parametrize("sql", ANSWERED)
def test_without_noise_it_is_the_plain_engines_answer(con: dpquery.Connection, folder: Path, sql: str) -> None:
    agrees(con, folder, sql)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_sound_is_refused(con: dpquery.Connection, sql: str) -> None:
    before = con.budget().entries
    with pytest.raises(Refused) as refused:
        con.query(sql)
    assert refused.value.code == REFUSED[sql]
    assert con.budget().entries == before


def test_without_from_there_is_one_row_with_error_bars(con: dpquery.Connection) -> None:
    answer = con.query("SELECT (SELECT COUNT(*) FROM users) AS users, 2 * (SELECT COUNT(*) FROM orders) AS twice", epsilon=20, delta=0)
    assert len(answer.fetchall()) == 1
    assert all(answer.intervals[name][0] is not None for name in ("users", "twice"))


def test_a_comparison_that_fails_is_undecided(con: dpquery.Connection) -> None:
    """What has no common type at run time is NULL, as anywhere above the noise, and no error after the charge."""
    sql = ITEMS + "SELECT item, CAST(n AS DECIMAL(38, 30)) IN (SELECT n * 1000000000 FROM r) AS found FROM r"
    assert {found for _, found in con.query(sql).fetchall()} <= {None, False}


def test_a_mode_is_not_said_to_be_noisy(con: dpquery.Connection) -> None:
    """It is one of the values, right or wrong; what is computed from it is as noisy as that."""
    said = [con.query(f"SELECT {what} AS m FROM users", epsilon=20).warnings for what in ("mode(country)", "lower(mode(country))")]
    assert [any("No error bar for m" in one for one in warnings) for warnings in said] == [False, True]
