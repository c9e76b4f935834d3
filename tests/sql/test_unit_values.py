"""Values of a unit's own rows that read the row around them, and comparisons with them: noise off, each answer is the plain engine's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_sql_several import agrees, made

import dpquery
from dpquery.errors import Refused
from dpquery.sql import unitvalues

OWN = "FROM orders o WHERE o.user_id = u.user_id"
ANSWERED = (
    f"SELECT COUNT(*) AS n FROM users u WHERE (SELECT COUNT(*) {OWN} AND item = 'a') > 1",
    f"SELECT COUNT(*) AS n FROM users u WHERE (SELECT COUNT(*) {OWN} AND item = 'a') = 0",
    f"SELECT COUNT(*) AS n FROM users u WHERE (SELECT ENTROPY(amount) {OWN} AND item = 'a') = 0",
    f"SELECT COUNT(*) AS n FROM users u WHERE (SELECT COUNT(*) + 1 {OWN} AND item = 'a') = 1",
    f"SELECT COUNT(*) AS n FROM users u WHERE (SELECT COUNT(*) {OWN} AND item = 'a' GROUP BY user_id) IS NULL",
    f"SELECT COUNT(*) AS n FROM users u WHERE (SELECT SUM(amount) {OWN} AND item = 'a' HAVING COUNT(*) > 1) IS NULL",
    f"SELECT COUNT(*) AS n FROM users u WHERE (SELECT COUNT(*) {OWN} AND item = 'a' HAVING COUNT(*) < 2) = 0",
    f"SELECT COUNT(*) AS n FROM users u WHERE NOT (SELECT bool_and(amount > 10) {OWN})",
    f"SELECT COUNT(*) AS n FROM users u WHERE (SELECT COUNT(DISTINCT item) {OWN}) BETWEEN 2 AND 3 OR age < 25",
    f"SELECT COUNT(*) AS n FROM users u WHERE (SELECT AVG(amount) FILTER (WHERE item <> 'b') * 2 {OWN}) > 3 * age",
    f"SELECT (SELECT COUNT(*) {OWN} AND item = 'b') AS k, COUNT(*) AS n FROM users u GROUP BY k ORDER BY 1",
    f"SELECT country, SUM((SELECT COUNT(*) {OWN} AND o.amount > u.age * 5)) AS n FROM users u GROUP BY country ORDER BY 1",
    f"SELECT COUNT(*) AS n FROM users u WHERE (SELECT MAX(o.amount - u.age) {OWN} AND o.item = 'c') > 100",
    f"SELECT COUNT(*) AS n FROM users u WHERE (SELECT COUNT(*) {OWN} AND (o.amount > u.age OR o.item = 'a')) > 3",
    "SELECT COUNT(*) AS n FROM orders u WHERE amount > (SELECT AVG(amount) FROM orders o WHERE o.user_id = u.user_id)",
    "SELECT COUNT(*) AS n FROM orders u WHERE amount > (SELECT AVG(amount) FROM orders o WHERE o.user_id = u.user_id AND o.item = u.item)",
    "SELECT COUNT(*) AS n FROM orders u WHERE (SELECT COUNT(*) FROM orders o WHERE o.user_id = u.user_id AND o.amount > u.amount) < 2",
    "SELECT COUNT(*) AS n FROM (SELECT user_id, item FROM orders) u WHERE (SELECT COUNT(*) FROM orders o WHERE o.user_id = u.user_id AND "
    "o.item > u.item) < 2",
    "SELECT COUNT(*) AS n FROM (SELECT user_id, day FROM orders) u WHERE (SELECT SUM(amount) FROM orders o WHERE o.user_id = u.user_id AND "
    "o.day IS NOT DISTINCT FROM u.day) > 300",
    "SELECT COUNT(*) AS n FROM orders o WHERE (SELECT country FROM users u WHERE u.user_id = o.user_id) = 'US'",
    "SELECT (SELECT country FROM users u WHERE u.user_id = o.user_id) AS c, COUNT(*) AS n FROM orders o GROUP BY c ORDER BY 1",
    "SELECT AVG((SELECT age + 1 FROM users u WHERE u.user_id = o.user_id AND u.age < 40)) AS a FROM orders o",
    "SELECT COUNT(*) AS n FROM orders o WHERE (SELECT 1 FROM users u WHERE u.user_id = o.user_id AND u.age > o.amount) IS NULL",
    "SELECT COUNT(*) AS n FROM users WHERE user_id IN (SELECT user_id FROM orders o WHERE amount > (SELECT MIN(amount) + 200 FROM orders p WHERE "
    "p.user_id = o.user_id))",
    f"SELECT COUNT(*) AS n FROM users u JOIN orders p ON u.user_id = p.user_id AND p.amount > (SELECT AVG(amount) {OWN})",
    f"SELECT COUNT(*) AS n FROM (SELECT user_id, (SELECT MAX(amount) {OWN}) AS m, age FROM users u) WHERE m > age * 8",
    f"SELECT COUNT(*) AS n FROM users u WHERE (SELECT COUNT(*) {OWN} AND amount > (SELECT AVG(p.age) FROM users p WHERE p.user_id = o.user_id)) > 1",
    f"SELECT COUNT(*) AS n FROM users u WHERE (SELECT COUNT(*) {OWN} AND item IN (SELECT item FROM kinds)) > (SELECT AVG(place) FROM kinds)",
)
ANY = "(SELECT CASE WHEN item <> 'd' THEN amount END FROM orders o WHERE o.user_id = u.user_id AND item >= 'b')"
ANSWERED += (
    *(f"SELECT COUNT(*) AS n FROM users u WHERE age {sign} {ANY}" for sign in ("> ANY", "< ALL", ">= ALL", "<> ANY", "= ALL", "<= SOME")),
    f"SELECT COUNT(*) AS n FROM users u WHERE NOT age > ANY {ANY}",
    *(
        f"SELECT COUNT(*) FILTER (WHERE age {sign} {ANY}) AS t, COUNT(*) FILTER (WHERE (age {sign} {ANY}) IS NULL) AS n FROM users u"
        for sign in ("> ANY", "< ALL", ">= ALL", "<> ANY", "= ALL")
    ),
    "SELECT COUNT(*) AS n FROM orders u WHERE amount >= ALL (SELECT amount FROM orders o WHERE o.user_id = u.user_id)",
    "SELECT COUNT(*) AS n FROM orders u WHERE amount >= ALL (SELECT amount FROM orders o WHERE o.user_id = u.user_id AND o.item <> u.item)",
    "SELECT COUNT(*) AS n FROM orders u WHERE amount < ANY (SELECT amount FROM orders o WHERE o.user_id = u.user_id AND o.item = u.item) OR FALSE",
    "SELECT COUNT(*) AS n FROM orders u WHERE order_id > ANY (SELECT k.place * 20 FROM kinds k WHERE k.item = u.item)",
    "SELECT COUNT(*) AS n FROM orders u WHERE order_id > ALL (SELECT k.place * 20 FROM kinds k WHERE k.item = u.item)",
)
REFUSED = {
    "SELECT COUNT(*) FROM orders o WHERE amount > (SELECT AVG(amount) FROM orders i WHERE i.item = o.item)": 95,
    f"SELECT COUNT(*) FROM users u WHERE (SELECT COUNT(*) {OWN} GROUP BY item) > 1": 104,
    "SELECT COUNT(*) FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.user_id AND amount > "
    "(SELECT AVG(amount) FROM orders p WHERE p.user_id = o.user_id AND p.amount > u.age))": 116,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("unitvalues"))


@pytest.fixture(scope="module")
def con(folder: Path) -> Iterator[dpquery.Connection]:
    with dpquery.connect(folder / "several.yaml") as found:
        yield found


@pytest.mark.parametrize("sql", ANSWERED)
def test_without_noise_it_is_the_plain_engines_answer(con: dpquery.Connection, folder: Path, sql: str) -> None:
    agrees(con, folder, sql)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_no_unit_can_tell_alone_is_refused(con: dpquery.Connection, sql: str) -> None:
    with pytest.raises(Refused) as refused:
        con.explain(sql)
    assert refused.value.code == "CORRELATED_VALUE"
    assert refused.value.position is not None
    assert refused.value.position.column == REFUSED[sql]


def test_what_only_tells_rows_apart_is_not_doubled_without_end(con: dpquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unitvalues, "MOST_NODES", 20)
    more = " AND ".join(f"(SELECT COUNT(*) {OWN} AND o.amount > u.age + {i}) > 1" for i in range(3))
    with pytest.raises(Refused) as refused:
        con.explain(f"SELECT COUNT(*) FROM users u WHERE {more}")
    assert refused.value.code == "TOO_COMPLEX"
