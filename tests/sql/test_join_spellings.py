"""Joins of many rows as analysts spell them: however they are written, and in whichever order, they are made where they lose no row to a cap.

A person has more rows in each table than a join on the unit alone may have on a side, so that a join made too early, or a condition applied too late,
is seen in the answer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import duckdb
import people
import pytest

from dpquery.engine.session import Session

DATA = """
CREATE TABLE users AS SELECT i::INT AS user_id, (20 + i)::INT AS age, ['DE', 'FR'][1 + i % 2] AS country FROM range(1, 4) t(i);
CREATE TABLE orders AS SELECT (user_id * 100 + j)::INT AS order_id, user_id, (j % 10)::INT AS amount FROM users, range(24) t(j);
CREATE TABLE items AS SELECT (order_id * 10 + j)::INT AS item_id, order_id, 'p' || j AS product FROM orders, range(2) t(j);
CREATE TABLE shipments AS SELECT (item_id * 10)::INT AS ship_id, item_id, 'c' || item_id % 3 AS carrier FROM items WHERE item_id % 5 > 0;
CREATE TABLE scans AS SELECT (ship_id * 10 + j)::INT AS scan_id, ship_id FROM shipments, range(3) t(j);
CREATE TABLE logins AS SELECT user_id, (j % 8)::INT AS device FROM users, range(30) t(j);
CREATE TABLE countries AS SELECT * FROM (VALUES ('DE', 'EU'), ('FR', 'EU'), ('US', 'AM')) t(country, region);
CREATE TABLE regions AS SELECT * FROM (VALUES ('EU', 3), ('AM', 5)) t(region, tax);
CREATE VIEW sent AS SELECT o.user_id, s.ship_id FROM shipments s, items i, orders o WHERE s.item_id = i.item_id AND o.order_id = i.order_id;
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
    columns: {item_id: {type: integer, unique: true}, order_id: {type: integer}, product: {type: string}}
  shipments:
    unit: {via: item_id, references: items.item_id}
    columns: {ship_id: {type: integer, unique: true}, item_id: {type: integer}, carrier: {type: string}}
  scans:
    unit: {via: ship_id, references: shipments.ship_id}
    columns: {scan_id: {type: integer, unique: true}, ship_id: {type: integer}}
  logins: {unit: user_id, columns: {user_id: {type: integer}, device: {type: integer}}}
  countries: {public: true, columns: {country: {type: string}, region: {type: string}}}
  regions: {public: true, columns: {region: {type: string}, tax: {type: integer}}}
views:
  sent: "SELECT o.user_id, s.ship_id FROM shipments s, items i, orders o WHERE s.item_id = i.item_id AND o.order_id = i.order_id"
"""
ROWS = 20  # of a person on a side of a join
TERMS = people.NOISELESS.replace("max_rows_per_group: 20", f"max_rows_per_group: 100000, join_rows_per_unit: {ROWS}").replace(
    "max_groups_contributed: 5", "max_groups_contributed: 50"
)
KEYS = {"o": ("u", "user_id"), "i": ("o", "order_id"), "s": ("i", "item_id"), "k": ("s", "ship_id")}  # of a table: its parent, and the key of that
NAMES = {"u": "users", "o": "orders", "i": "items", "s": "shipments", "k": "scans"}
CHAINS = ("uo", "oi", "uoi", "ois", "uois", "isk", "oisk", "uoisk")
SIGNS = (", ", " CROSS JOIN ", " JOIN {} ON TRUE")


def _equalities(tables: str) -> list[str]:
    return [f"{parent}.{key} = {child}.{key}" for child, (parent, key) in KEYS.items() if child in tables and parent in tables]


def _orders() -> Iterator[str]:
    """Tables in some orders: all of up to three, a few of more."""
    for chain in CHAINS:
        every = ["".join(order) for order in permutations(chain)]
        yield from every if len(every) <= 6 else random.Random(chain).sample(every, 6)


def _spelled(tables: str, random_: random.Random) -> str:
    """The tables joined, each time by another sign; the conditions in WHERE, now and then one in the ON at the end, where all names are seen."""
    first, *others = [f"{NAMES[one]} {one}" for one in tables]
    text, conditions = first, _equalities(tables)
    for other in others:
        sign = random_.choice(SIGNS)
        text += sign.format(other) if "{}" in sign else f"{sign}{other}"
    return f"SELECT count(*) AS n FROM {text} WHERE {' AND '.join(random_.sample(conditions, len(conditions)))}"


def matrix() -> tuple[str, ...]:
    found = list[str]()
    for tables in _orders():
        where = " AND ".join(_equalities(tables))
        for sign in SIGNS:
            joined = "".join(sign.format(f"{NAMES[one]} {one}") if "{}" in sign else f"{sign}{NAMES[one]} {one}" for one in tables[1:])
            found.append(f"SELECT count(*) AS n FROM {NAMES[tables[0]]} {tables[0]}{joined} WHERE {where}")
        found.append(_spelled(tables, random.Random(tables)))
    return tuple(dict.fromkeys(found))


WHOLE = (  # no join of these may cut a row
    "SELECT count(*) FROM users u JOIN orders o ON u.user_id = o.user_id JOIN items i ON o.order_id = i.order_id",
    "SELECT count(*) FROM users JOIN orders USING (user_id) JOIN items USING (order_id) JOIN shipments USING (item_id) JOIN scans USING (ship_id)",
    "SELECT count(*) FROM users u CROSS JOIN items i JOIN orders o ON o.user_id = u.user_id AND o.order_id = i.order_id",
    "SELECT count(*) FROM items i JOIN users u ON TRUE JOIN orders o ON o.order_id = i.order_id AND u.user_id = o.user_id AND u.age > 21",
    "SELECT count(*) FROM orders a, orders b, orders c WHERE a.user_id = b.user_id AND b.user_id = c.user_id AND a.order_id = b.order_id"
    " AND b.order_id = c.order_id",
    "SELECT count(*) FROM orders o JOIN orders p ON o.user_id = p.user_id JOIN items i ON i.order_id = p.order_id WHERE o.order_id = p.order_id",
    "SELECT count(*) FROM orders o WHERE EXISTS (SELECT 1 FROM items i, shipments s, scans k WHERE i.item_id = s.item_id AND s.ship_id = k.ship_id"
    " AND i.order_id = o.order_id)",
    "SELECT count(*) FROM orders o WHERE NOT EXISTS (SELECT 1 FROM scans k, items i, shipments s WHERE i.item_id = s.item_id"
    " AND s.ship_id = k.ship_id AND i.order_id = o.order_id AND i.product = 'p1')",
    "SELECT count(*) FROM orders o WHERE o.order_id IN (SELECT i.order_id FROM items i, shipments s, scans k WHERE i.item_id = s.item_id"
    " AND s.ship_id = k.ship_id)",
    "SELECT count(*) FROM (SELECT o.user_id FROM items i, orders o, shipments s WHERE i.order_id = o.order_id AND s.item_id = i.item_id) t, users u"
    " WHERE t.user_id = u.user_id",
    "WITH t AS (SELECT k.ship_id, i.order_id FROM scans k, shipments s, items i WHERE i.item_id = s.item_id AND s.ship_id = k.ship_id)"
    " SELECT count(*) FROM t, orders o WHERE t.order_id = o.order_id",
    "SELECT count(*) FROM sent",
    "SELECT count(*) FROM sent, users WHERE users.user_id = sent.user_id AND age > 21",
    "SELECT count(*) FROM (SELECT o.user_id, i.order_id, count(*) AS m FROM orders o, items i, shipments s WHERE o.order_id = i.order_id"
    " AND i.item_id = s.item_id GROUP BY o.user_id, i.order_id) WHERE m > 1",
    "SELECT u.country, count(*) AS n FROM items i, countries c, orders o, users u, regions r WHERE u.user_id = o.user_id AND i.order_id = o.order_id"
    " AND u.country = c.country AND c.region = r.region AND r.tax < 5 AND u.country IN ('DE', 'FR') GROUP BY u.country ORDER BY 1",
    "SELECT c.region, count(*) AS n FROM regions r, countries c, items i, orders o, users u WHERE u.user_id = o.user_id AND i.order_id = o.order_id"
    " AND u.country = c.country AND c.region = r.region AND r.tax < 5 GROUP BY c.region ORDER BY 1",
    "SELECT count(*), count(k.scan_id) FROM orders o, items i LEFT JOIN shipments s ON s.item_id = i.item_id"
    " LEFT JOIN scans k ON k.ship_id = s.ship_id WHERE o.order_id = i.order_id",
    "SELECT count(*) FROM users u LEFT JOIN orders o ON u.user_id = o.user_id, items i WHERE i.order_id = o.order_id AND o.amount > 3",
    "SELECT count(*) FROM orders o, items i SEMI JOIN shipments s ON s.item_id = i.item_id WHERE o.order_id = i.order_id",
    "SELECT count(*) FROM items i, orders o WHERE i.order_id = o.order_id AND (o.amount > 3 OR i.product = 'p1') AND i.product || o.amount <> 'p03'",
    "SELECT count(*) FROM (SELECT * FROM shipments s, orders o, items i WHERE o.order_id = i.order_id AND i.item_id = s.item_id) t(a, b, c, d, e, f)"
    " WHERE c = 'c1' AND f > 2",
)
WHOLE += (  # in parentheses
    "SELECT count(*) FROM users u JOIN (orders o JOIN items i ON o.order_id = i.order_id) ON u.user_id = o.user_id",
    "SELECT count(*), count(s.ship_id) FROM (users JOIN orders USING (user_id)) JOIN (items i LEFT JOIN shipments s ON s.item_id = i.item_id)"
    " ON i.order_id = orders.order_id",
    "SELECT count(*), count(item_id) FROM users LEFT JOIN (orders JOIN items USING (order_id)) ON users.user_id = orders.user_id AND amount > 3",
    "SELECT count(*), count(i.item_id) FROM (orders o LEFT JOIN (items i JOIN shipments s ON i.item_id = s.item_id) ON o.order_id = i.order_id)",
    "SELECT count(*) FROM users u CROSS JOIN (items i CROSS JOIN (orders o CROSS JOIN shipments s)) WHERE u.user_id = o.user_id"
    " AND i.order_id = o.order_id AND s.item_id = i.item_id",
    "SELECT count(*) FROM users u, (items i JOIN (orders o JOIN countries c ON TRUE) ON o.order_id = i.order_id) WHERE u.user_id = o.user_id"
    " AND u.country = c.country",
    "SELECT count(*), count(c.region) FROM users u LEFT JOIN (countries c JOIN regions r ON c.region = r.region AND r.tax > 3)"
    " ON u.country = c.country",
    "SELECT count(*) FROM orders o WHERE EXISTS (SELECT 1 FROM (items i JOIN shipments s ON i.item_id = s.item_id) WHERE i.order_id = o.order_id)",
    "SELECT count(*) FROM (SELECT user_id, count(*) AS n FROM (orders JOIN items USING (order_id)) GROUP BY user_id) WHERE n > 10",
    "SELECT count(*) FROM (users u RIGHT JOIN orders o ON u.user_id = o.user_id AND u.age > 21)"
    " JOIN items i ON i.order_id = o.order_id WHERE u.age IS NULL",
    "SELECT count(*) FROM ((SELECT user_id, order_id FROM orders) t JOIN items i ON i.order_id = t.order_id) JOIN users USING (user_id)",
)
LOWERED = (  # conditions that leave fewer rows than a side may have; without them there are more
    "SELECT count(*) FROM orders o, logins l WHERE o.user_id = l.user_id AND o.amount > 5 AND l.device = 3",
    "SELECT count(*) FROM orders o JOIN logins l ON o.user_id = l.user_id WHERE o.amount > 5 AND l.device = 3",
    "SELECT count(*) FROM orders o JOIN logins l ON o.user_id = l.user_id AND o.amount > 5 AND l.device = 3",
    "SELECT count(*) FROM orders o JOIN logins l USING (user_id) WHERE amount > 5 AND device = 3",
    "SELECT count(*) FROM orders CROSS JOIN logins l WHERE orders.user_id = l.user_id AND amount = 5 AND l.device IN (1, 2) AND amount > device",
    "SELECT count(*), count(l.device) FROM orders o LEFT JOIN logins l ON o.user_id = l.user_id AND l.device = 3 AND l.device = o.amount"
    " WHERE o.amount > 2 AND o.amount < 6",
    "SELECT count(*), count(o.amount) FROM orders o RIGHT JOIN logins l ON o.user_id = l.user_id AND o.amount = 3 WHERE l.device > 5",
    "SELECT count(*) FROM orders o JOIN logins l ON TRUE JOIN users u ON u.user_id = o.user_id WHERE o.user_id = l.user_id"
    " AND o.amount > 5 AND l.device = 3",
    "SELECT count(*) FROM logins l, orders o, items i WHERE l.user_id = o.user_id AND o.order_id = i.order_id AND l.device = 3 AND i.product = 'p0'"
    " AND o.amount < 4",
    "SELECT count(*) FROM users u WHERE u.user_id IN (SELECT o.user_id FROM orders o, logins l WHERE o.user_id = l.user_id AND o.amount = 9"
    " AND l.device = 7 AND o.order_id % 100 = 19)",
    "SELECT count(*) FROM users u, orders o, logins l WHERE u.user_id = o.user_id AND l.user_id = u.user_id AND o.amount = 2 AND l.device = 3",
    "SELECT count(*) FROM orders o, logins l LEFT JOIN users u ON u.user_id = l.user_id AND u.age > 21 WHERE o.user_id = l.user_id AND l.device = 3"
    " AND u.age IS NULL AND o.amount > 5",
    "SELECT count(*) FROM orders o, logins l, countries c, users u WHERE o.user_id = l.user_id AND u.user_id = o.user_id AND u.country = c.country"
    " AND c.country = 'DE' AND o.amount > 5 AND l.device = 3",
)


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("spellings"), DATA, TABLES, TERMS, name="spellings")


@pytest.fixture(scope="module")
def plain(schema: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(schema.with_suffix(".duckdb")), read_only=True) as con:
        yield con


@pytest.mark.parametrize("sql", matrix())
def test_keys_are_joined_whole_in_every_order_and_spelling(sql: str, opened: Session, plain: duckdb.DuckDBPyConnection) -> None:
    _whole(sql, opened, plain)


@pytest.mark.parametrize("sql", WHOLE)
def test_a_join_on_a_key_cuts_no_row(sql: str, opened: Session, plain: duckdb.DuckDBPyConnection) -> None:
    _whole(sql, opened, plain)


@pytest.mark.parametrize("sql", LOWERED)
def test_conditions_come_before_the_cap(sql: str, opened: Session, plain: duckdb.DuckDBPyConnection) -> None:
    assert people.rows(opened, sql) == plain.execute(sql).fetchall()


def _whole(sql: str, opened: Session, plain: duckdb.DuckDBPyConnection) -> None:
    assert people.rows(opened, sql) == plain.execute(sql).fetchall()
    assert not [warning for warning in opened.explain(sql).warnings if "join" in warning]


def test_a_join_on_the_unit_alone_is_said_to_be_a_product(opened: Session) -> None:
    said = "Each row of orders meets each row of logins of the same unit, as their join has no other equality: a product, of at most 20 rows"
    for sql in ("SELECT count(*) FROM orders o, logins l WHERE o.user_id = l.user_id", "SELECT count(*) FROM orders JOIN logins USING (user_id)"):
        assert [w for w in opened.explain(sql).warnings if w.startswith(said)]
        assert [w for w in opened.query(sql).warnings if w.startswith(said)]
    for sql in ("SELECT count(*) FROM orders o, logins l WHERE o.user_id = l.user_id AND o.amount = l.device",):
        assert not [w for w in opened.explain(sql).warnings if w.startswith("Each row of")]
