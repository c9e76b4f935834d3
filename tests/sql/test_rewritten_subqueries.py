"""The whole statement that a refusal names, of LATERAL, of conditions on released rows, and of subqueries that are shown: as in test_rewritten.py."""

from __future__ import annotations

import pytest
from plain_answers import answer
from plain_shop import plain_shop
from sql_shop import ask

from dpquery.errors import Refused

BY_CITY = "SELECT city, COUNT(*) AS n FROM users GROUP BY city"
CLAUSE = "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1)"
ANY = "whether there are any at all, as a noisy count tells"
MEANT = {
    "SELECT COUNT(*) FROM users u, LATERAL (SELECT DISTINCT channel FROM orders o WHERE o.user_id = u.user_id) x": (
        "SELECT COUNT(*) FROM users u JOIN (SELECT DISTINCT o.user_id, channel FROM orders o) x ON x.user_id = u.user_id"
    ),
    "SELECT COUNT(*) FROM users u, LATERAL (SELECT channel, COUNT(*) AS n FROM orders o WHERE o.user_id = u.user_id GROUP BY channel HAVING "
    "COUNT(*) > 1) x": (
        "SELECT COUNT(*) FROM users u JOIN (SELECT o.user_id, channel, COUNT(*) AS n FROM orders o GROUP BY o.user_id, channel HAVING "
        "COUNT(*) > 1) x ON x.user_id = u.user_id"
    ),
    "SELECT COUNT(*) FROM users u, LATERAL (SELECT amount AS a FROM orders o WHERE o.user_id = u.user_id UNION ALL SELECT weight FROM orders p "
    "WHERE p.user_id = u.user_id AND paid) x WHERE a > 3": (
        "SELECT COUNT(*) FROM users u JOIN (SELECT o.user_id, amount AS a FROM orders o UNION ALL SELECT p.user_id, weight FROM orders p "
        "WHERE paid) x ON x.user_id = u.user_id WHERE a > 3"
    ),
    "SELECT COUNT(*), COUNT(x.weight) FROM users u LEFT JOIN LATERAL (SELECT weight FROM orders o WHERE o.user_id = u.user_id AND o.amount < u.age) "
    "x ON x.weight < 9": (
        "SELECT COUNT(*), COUNT(x.weight) FROM users u LEFT JOIN (SELECT o.user_id, o.amount, weight FROM orders o) x ON x.user_id = u.user_id AND "
        "x.amount < u.age AND x.weight < 9"
    ),
    "SELECT COUNT(*) FROM users u JOIN LATERAL (SELECT SUM(amount) AS s FROM orders o WHERE o.user_id = u.user_id) x ON x.s < 90 WHERE age > 3": (
        "SELECT COUNT(*) FROM users u WHERE ((SELECT SUM(amount) FROM orders o WHERE o.user_id = u.user_id) < 90) AND age > 3"
    ),
    "SELECT AVG(n) FROM users u LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM orders o WHERE o.user_id = u.user_id AND o.amount < u.age) x ON TRUE": (
        "SELECT AVG((SELECT COUNT(*) FROM orders o WHERE o.user_id = u.user_id AND o.amount < u.age)) FROM users u"
    ),
    f"SELECT COUNT(*) FROM users u WHERE EXISTS (SELECT 1 FROM ({BY_CITY}) s WHERE s.city = u.city AND n > 2)": (
        f"SELECT COUNT(*) FROM users u WHERE EXISTS (SELECT 1 FROM (SELECT * FROM ({BY_CITY}) AS s WHERE n > 2) AS s WHERE s.city = u.city)"
    ),
    f"SELECT COUNT(*) FROM users u JOIN ({BY_CITY}) s USING (city) WHERE s.n > 2 AND age > 3": (
        f"SELECT COUNT(*) FROM users u JOIN (SELECT * FROM ({BY_CITY}) AS s WHERE s.n > 2) AS s USING (city) WHERE age > 3"
    ),
    f"WITH r AS ({BY_CITY}) SELECT COUNT(*), COUNT(r.city) FROM users u LEFT JOIN r ON r.city = u.city AND r.n > 6": (
        f"WITH r AS ({BY_CITY}) SELECT COUNT(*), COUNT(r.city) FROM users u LEFT JOIN (SELECT * FROM r AS r WHERE r.n > 6) AS r ON r.city = u.city"
    ),
    f"SELECT {CLAUSE} MAX(n) FROM (SELECT {CLAUSE} {BY_CITY[7:]})": f"SELECT MAX(n) FROM (SELECT {CLAUSE} {BY_CITY[7:]})",
}
DIFFERENT = {
    "SELECT NOT EXISTS (SELECT 1 FROM orders WHERE amount > 50) AS e": ("SELECT (SELECT COUNT(*) FROM orders WHERE amount > 50) <= 0 AS e", ANY),
    "SELECT EXISTS (SELECT 1 FROM users WHERE age > 30), COUNT(*) FROM users": (
        "SELECT (SELECT COUNT(*) FROM users WHERE age > 30) > 0, COUNT(*) FROM users",
        ANY,
    ),
    "SELECT 3 NOT IN (SELECT age FROM users)": ("SELECT (SELECT COUNT(*) FROM users WHERE 3 = age) <= 0", ANY),
    "SELECT 3 < ALL (SELECT age FROM users WHERE age > 1 OR age < 9) AS a": (
        "SELECT (SELECT COUNT(*) FROM users WHERE 3 >= age AND (age > 1 OR age < 9)) <= 0 AS a",
        ANY,
    ),
    "SELECT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.user_id) FROM users u": (
        "SELECT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.user_id), COUNT(*) AS n FROM users u GROUP BY EXISTS (SELECT 1 FROM orders o "
        "WHERE o.user_id = u.user_id)",
        "of all rows, not row by row",
    ),
}
NONE = (
    "SELECT COUNT(*) FROM orders u, LATERAL (SELECT weight FROM orders o WHERE o.user_id = u.user_id AND amount < u.order_id) x",  # whose amount
    f"WITH r AS ({BY_CITY}) SELECT COUNT(*) FROM users u LEFT JOIN r ON r.city = u.city WHERE r.n > 6",
    f"SELECT COUNT(*) FROM users u JOIN ({BY_CITY}) s USING (city) WHERE s.n > u.age",
)


def refused(sql: str) -> Refused:
    with pytest.raises(Refused) as caught:
        ask(sql)
    return caught.value


@pytest.mark.parametrize("sql", MEANT)
def test_it_is_accepted_and_has_the_answer_that_was_asked_for(sql: str) -> None:
    found = refused(sql)
    assert (found.rewritten, found.differs) == (MEANT[sql], "")
    ask(MEANT[sql])
    same = answer(plain_shop(), sql)
    assert same is not None
    assert same == answer(plain_shop(), MEANT[sql])


@pytest.mark.parametrize("sql", DIFFERENT)
def test_it_is_accepted_and_says_how_its_answer_differs(sql: str) -> None:
    found = refused(sql)
    assert (found.rewritten, found.differs) == DIFFERENT[sql]
    ask(DIFFERENT[sql][0])
    if found.differs == ANY:  # which without noise is no other answer
        assert answer(plain_shop(), sql) == answer(plain_shop(), DIFFERENT[sql][0])


@pytest.mark.parametrize("sql", NONE)
def test_none_is_named_that_may_mean_something_else(sql: str) -> None:
    assert refused(sql).rewritten is None
