"""Joins as analysts spell them, over data in which nothing is nobody's: without noise the answer is the plain engine's to the same text."""

from __future__ import annotations

from pathlib import Path

import people
import pytest

from dpquery.engine.session import Session

DATA = """
CREATE TABLE users AS SELECT i::INT AS user_id, (20 + i % 7)::INT AS age, ['DE', 'FR', 'US'][1 + i % 3] AS country FROM range(30) t(i);
CREATE TABLE orders AS SELECT i::INT AS order_id, (i * 7 % 36)::INT AS user_id, (i % 11)::INT AS amount FROM range(80) t(i);
CREATE TABLE items AS SELECT (i % 60)::INT AS order_id, (i % 5)::INT AS price, 'p' || i % 3 AS product FROM range(150) t(i);
CREATE TABLE logins AS SELECT (i % 25)::INT AS user_id, (i % 4)::INT AS device FROM range(50) t(i);
CREATE TABLE countries AS SELECT * FROM (VALUES ('DE', 'EU', 3), ('FR', 'EU', 5), ('US', 'AM', 9)) t(country, region, tax);
"""
TABLES = """
tables:
  users:
    unit: user_id
    max_rows_per_unit: 1
    columns: {user_id: {type: integer}, age: {type: integer, lower: 0, upper: 120}, country: {type: string, values: [DE, FR, US]}}
  orders:
    unit: user_id
    columns: {order_id: {type: integer, unique: true}, user_id: {type: integer}, amount: {type: integer, lower: 0, upper: 20}}
  items:
    unit: {via: order_id, references: orders.order_id}
    columns: {order_id: {type: integer}, price: {type: integer, lower: 0, upper: 10}, product: {type: string}}
  logins: {unit: user_id, columns: {user_id: {type: integer}, device: {type: integer}}}
  countries: {public: true, columns: {country: {type: string}, region: {type: string}, tax: {type: integer}}}
"""
STATEMENTS = (
    "SELECT count(*) FROM users u, orders o WHERE u.user_id = o.user_id AND u.age > 22",
    "SELECT sum(amount) FROM users, orders, logins WHERE users.user_id = orders.user_id AND logins.user_id = orders.user_id",
    "SELECT count(*) FROM orders o, items i WHERE i.order_id = o.order_id",
    "SELECT country, sum(amount) FROM users JOIN orders USING (user_id) GROUP BY country ORDER BY country",
    "SELECT count(*) FROM users NATURAL JOIN orders",
    "SELECT count(*) FROM orders NATURAL JOIN items",
    "SELECT count(*), count(amount) FROM users NATURAL LEFT JOIN orders",
    "SELECT count(*), sum(price) FROM users JOIN orders USING (user_id) JOIN items USING (order_id) JOIN logins USING (user_id)"
    " JOIN countries USING (country)",
    "SELECT region, count(*) FROM countries c JOIN users u ON u.country = c.country LEFT JOIN orders o ON o.user_id = u.user_id LEFT JOIN items i"
    " ON i.order_id = o.order_id LEFT JOIN logins l ON l.user_id = u.user_id GROUP BY region ORDER BY region",
    "SELECT count(*) FROM orders a JOIN orders b ON a.user_id = b.user_id AND a.amount < b.amount",
    "SELECT count(*) FROM orders a JOIN orders b USING (user_id) WHERE a.order_id < b.order_id",
    "SELECT count(*) FROM users a JOIN users b ON a.user_id = b.user_id",
    "SELECT count(*), count(price) FROM users LEFT JOIN orders ON orders.user_id = users.user_id LEFT JOIN items ON items.order_id = orders.order_id",
    "SELECT count(*), count(u.user_id), count(o.order_id), sum(amount) FROM users u FULL JOIN orders o ON u.user_id = o.user_id",
    "SELECT count(*), count(u.user_id), count(o.order_id) FROM users u FULL JOIN orders o ON u.user_id = o.user_id AND o.amount > 5",
    "SELECT count(DISTINCT user_id) FROM users FULL JOIN orders USING (user_id)",
    "SELECT count(*) FROM users FULL JOIN orders USING (user_id) FULL JOIN logins USING (user_id) WHERE age IS NULL OR device IS NULL",
    "SELECT count(*), count(price) FROM users FULL JOIN orders USING (user_id) LEFT JOIN items ON items.order_id = orders.order_id",
    "SELECT count(*) FROM (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id) a FULL JOIN (SELECT user_id, count(*) AS m FROM logins"
    " GROUP BY user_id) b USING (user_id) WHERE coalesce(n, 0) > coalesce(m, 0)",
    "SELECT name, count(*) FROM users JOIN (VALUES ('DE', 'Germany'), ('US', 'America')) AS v(country, name) USING (country)"
    " GROUP BY name ORDER BY name",
    "SELECT x, count(*) FROM orders JOIN UNNEST([1, 3, 5]) AS t(x) ON amount >= x GROUP BY x ORDER BY x",
    "SELECT i, count(order_id) FROM orders RIGHT JOIN range(9, 14) AS r(i) ON amount = i GROUP BY i ORDER BY i",
    "SELECT count(*) FROM orders WHERE amount IN (VALUES (1), (2))",
    "SELECT count(*) FROM orders WHERE amount NOT IN (VALUES (1), (2))",
    "SELECT count(*) FROM users JOIN (SELECT 'DE' AS country UNION ALL SELECT 'FR') t USING (country)",
    "SELECT count(*) FROM orders WHERE amount > (SELECT avg(tax) FROM countries)",
    "SELECT count(*) FROM orders WHERE amount > (SELECT max(tax) - count(*) FROM countries WHERE region = 'EU') OR amount = 0",
    "SELECT count(*) FROM orders WHERE amount > (SELECT avg(tax) FROM countries WHERE region = 'none')",
    "SELECT count(*) FROM (SELECT user_id FROM orders WHERE amount > (SELECT min(tax) FROM countries)) JOIN users USING (user_id)",
    "SELECT count(*) FROM users WHERE country IN (SELECT country FROM countries WHERE tax > 4) AND EXISTS (SELECT 1 FROM countries WHERE tax = 9)",
)


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("joins"), DATA, TABLES, people.ROOMY, name="joins")


@pytest.mark.parametrize("sql", STATEMENTS)
def test_without_noise_the_answer_is_the_plain_engines(sql: str, opened: Session, schema: Path) -> None:
    people.agrees(opened, schema, sql)
