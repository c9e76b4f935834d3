"""What analysts of other engines write, over foreign keys three deep: without noise the answer is plain DuckDB's to the same question."""

from __future__ import annotations

from pathlib import Path

import duckdb
import people
import pytest
from plain_answers import answer

from dpquery.engine.session import Session
from dpquery.errors import Refused

DATA = """
CREATE TABLE customers AS SELECT i::INT AS customer_id, (20 + i % 50)::INT AS age, ['DE', 'FR', 'US'][1 + i % 3] AS country,
  DATE '2023-01-15' + (i * 9 % 300)::INT AS joined, ['free', 'pro'][1 + i % 2] AS plan FROM range(30) t(i);
CREATE TABLE orders AS SELECT i::INT AS order_id, (i * 7 % 30)::INT AS customer_id, (i * 3 % 11)::INT AS amount,
  DATE '2024-01-01' + (i * 5 % 120)::INT AS day, ['web', 'shop', 'fax'][1 + i % 3] AS channel, i % 4 > 0 AS paid FROM range(90) t(i);
CREATE TABLE items AS SELECT i::INT AS item_id, (i % 90)::INT AS order_id, (i % 7)::INT AS price, (1 + i % 3)::INT AS quantity,
  ['pen', 'ink', 'pad'][1 + i % 3] AS product FROM range(150) t(i);
CREATE TABLE returns AS SELECT i::INT AS return_id, (i * 4 % 150)::INT AS item_id, ['late', 'torn'][1 + i % 2] AS reason,
  DATE '2024-03-01' + (i % 40)::INT AS day FROM range(40) t(i);
CREATE TABLE countries AS SELECT * FROM (VALUES ('DE', 'EU', 3), ('FR', 'EU', 5), ('CA', 'AM', 9)) t(country, region, tax);
"""
TABLES = """
tables:
  customers:
    unit: customer_id
    max_rows_per_unit: 1
    columns: {customer_id: {type: integer}, age: {type: integer, lower: 0, upper: 120}, country: {type: string, values: [DE, FR, US]},
      joined: {type: date}, plan: {type: string, values: [free, pro]}}
  orders:
    unit: customer_id
    columns: {order_id: {type: integer, unique: true}, customer_id: {type: integer}, amount: {type: integer, lower: 0, upper: 20},
      day: {type: date}, channel: {type: string, values: [web, shop, fax]}, paid: {type: boolean}}
  items:
    unit: {via: order_id, references: orders.order_id}
    columns: {item_id: {type: integer, unique: true}, order_id: {type: integer}, price: {type: integer, lower: 0, upper: 10},
      quantity: {type: integer, lower: 0, upper: 5}, product: {type: string, values: [pen, ink, pad]}}
  returns:
    unit: {via: item_id, references: items.item_id}
    columns: {return_id: {type: integer, unique: true}, item_id: {type: integer}, reason: {type: string, values: [late, torn]}, day: {type: date}}
  countries: {public: true, columns: {country: {type: string}, region: {type: string}, tax: {type: integer}}}
"""
BY_NAME = (
    "SELECT channel AS k, count(*) AS n FROM orders GROUP BY channel UNION ALL BY NAME SELECT count(*) AS n, country AS k FROM customers GROUP BY 2",
    "SELECT channel AS k, count(*) AS n FROM orders GROUP BY channel UNION ALL BY NAME SELECT count(*) AS m, country AS k FROM customers GROUP BY 2",
    "SELECT count(*) AS n FROM customers UNION BY NAME SELECT sum(amount) AS s FROM orders",
    "SELECT count(*), count(amount), sum(age) FROM (SELECT amount, customer_id FROM orders UNION ALL BY NAME SELECT customer_id, age FROM customers)",
    "SELECT count(*) FROM (SELECT customer_id, channel AS c FROM orders UNION BY NAME SELECT plan AS c, customer_id FROM customers)",
    "SELECT count(*), count(r) FROM customers JOIN (SELECT country AS k, region AS r FROM countries UNION ALL BY NAME SELECT 'US' AS k) c"
    " ON k = country",
)
LONG = ", ".join(f"('web', {i})" for i in range(3, 300))
VALUES = (
    "SELECT count(*) FROM orders WHERE (channel, amount) IN (VALUES ('web', 3), ('shop', 1), (NULL, 2))",
    "SELECT count(*) FROM (SELECT nullif(channel, 'fax') AS c, amount AS a FROM orders) WHERE (c, a) NOT IN (VALUES ('web', 3), (NULL, 2))",
    f"SELECT count(*) FROM orders WHERE (channel, amount) IN (VALUES {LONG}) AND paid",
)
SYMMETRIC = (
    ("amount BETWEEN SYMMETRIC 9 AND 3", "amount BETWEEN 3 AND 9"),
    ("amount NOT BETWEEN SYMMETRIC 9 AND -3.5", "amount NOT BETWEEN -3.5 AND 9"),
    ("day BETWEEN SYMMETRIC DATE '2024-03-01' AND DATE '2024-02-01'", "day BETWEEN '2024-02-01' AND '2024-03-01'"),
    ("amount BETWEEN ASYMMETRIC 9 AND 3", "amount BETWEEN 9 AND 3"),
    ("amount BETWEEN SYMMETRIC order_id - 20 AND 7", "amount BETWEEN least(order_id - 20, 7) AND greatest(order_id - 20, 7)"),
    ("(channel, amount) BETWEEN SYMMETRIC ('web', 2) AND ('shop', 3)", "(channel, amount) BETWEEN ('shop', 3) AND ('web', 2)"),
)


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("spellings"), DATA, TABLES, people.ROOMY, name="spellings")


@pytest.fixture(scope="module")
def plain(schema: Path) -> duckdb.DuckDBPyConnection:
    """The same data without anything between."""
    return duckdb.connect(str(schema.with_suffix(".duckdb")), read_only=True)


def agrees(opened: Session, plain: duckdb.DuckDBPyConnection, sql: str, same: str | None = None, dialect: str = "duckdb") -> None:
    """The rows in any order are plain DuckDB's, to the same text or to another one that asks the same."""
    answered = opened.query(sql, dialect=dialect).table
    plain.register("answered", answered)
    wanted = answer(plain, same or sql, "duckdb" if same else dialect)
    assert wanted is not None
    assert answer(plain, "SELECT * FROM answered") == wanted


@pytest.mark.parametrize("sql", BY_NAME + VALUES)
def test_the_same_text_has_the_same_answer(sql: str, opened: Session, plain: duckdb.DuckDBPyConnection) -> None:
    agrees(opened, plain, sql)


@pytest.mark.parametrize(("test", "same"), SYMMETRIC)
def test_between_symmetric(test: str, same: str, opened: Session, plain: duckdb.DuckDBPyConnection) -> None:
    agrees(opened, plain, f"SELECT count(*) FROM orders WHERE {test}", f"SELECT count(*) FROM orders WHERE {same}")


EXPLODED = (
    ("LATERAL VIEW explode(array(1, 2, 3)) t AS x", "CROSS JOIN (VALUES (1), (2), (3)) AS t(x)"),
    ("JOIN customers USING (customer_id) LATERAL VIEW OUTER explode(array(1, 2)) t AS x", "JOIN customers USING (customer_id), unnest([1, 2]) t(x)"),
    (
        "LATERAL VIEW posexplode(array(7, 9)) t AS p, x LATERAL VIEW explode(array('a')) u WHERE col = 'a' AND p = 1",
        "CROSS JOIN (SELECT 9 AS x) AS t",
    ),
)


@pytest.mark.parametrize(("view", "same"), EXPLODED)
def test_lateral_view_of_literals(view: str, same: str, opened: Session, plain: duckdb.DuckDBPyConnection) -> None:
    counted = "SELECT x, count(*) FROM orders {} GROUP BY x"
    agrees(opened, plain, counted.format(view), counted.format(same), "spark")


MOVING = (
    "SELECT day, sum(count(*)) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS s FROM orders GROUP BY day",
    "SELECT day, sum(count(*)) OVER (ORDER BY day DESC RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 WEEK FOLLOWING) AS s"
    " FROM orders GROUP BY day",
    "SELECT day, channel, max(count(*)) OVER (PARTITION BY channel ORDER BY day RANGE INTERVAL 9 DAYS PRECEDING) AS s FROM orders"
    " GROUP BY day, channel",
)


@pytest.mark.parametrize("sql", MOVING)
def test_frames_of_days(sql: str, opened: Session, plain: duckdb.DuckDBPyConnection) -> None:
    agrees(opened, plain, sql)


FRAMES = (
    "sum(amount) OVER (PARTITION BY customer_id ORDER BY day RANGE BETWEEN INTERVAL 20 DAYS PRECEDING AND CURRENT ROW)",
    "count(*) OVER (PARTITION BY customer_id ORDER BY day RANGE BETWEEN INTERVAL 30 DAYS PRECEDING AND INTERVAL 2 DAYS FOLLOWING)",
    "max(amount) OVER (PARTITION BY customer_id ORDER BY order_id RANGE 31 PRECEDING)",
)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_of_distances_is_offered_as_a_join(frame: str, opened: Session, plain: duckdb.DuckDBPyConnection) -> None:
    for sql in (f"SELECT sum(s) FROM (SELECT {frame} AS s FROM orders)", f"SELECT sum(s) FROM (SELECT channel, {frame} AS s FROM orders WHERE paid)"):
        with pytest.raises(Refused) as caught:
            opened.query(sql)
        assert caught.value.rewritten is not None
        assert caught.value.differs.endswith(" is known")  # as it is in every row of these
        agrees(opened, plain, caught.value.rewritten, sql)


BORROWED = (
    (
        "snowflake",
        "SELECT decode(nullif(channel, 'fax'), 'web', 'online', NULL, 'none', 'other') AS k, count(*) AS n FROM orders GROUP BY k",
        "SELECT CASE channel WHEN 'web' THEN 'online' WHEN 'fax' THEN 'none' ELSE 'other' END AS k, count(*) AS n FROM orders GROUP BY k",
    ),
    (
        "snowflake",
        "SELECT channel, ratio_to_report(sum(amount)) OVER () AS r FROM orders GROUP BY channel",
        "SELECT channel, sum(amount) / sum(sum(amount)) OVER () AS r FROM orders GROUP BY channel",
    ),
    (
        "snowflake",
        "SELECT channel, paid, ratio_to_report(count(*)) OVER (PARTITION BY channel) AS r FROM orders WHERE paid IN (TRUE, FALSE) GROUP BY 1, 2",
        "SELECT channel, paid, count(*) / sum(count(*)) OVER (PARTITION BY channel) AS r FROM orders GROUP BY channel, paid",
    ),
    (
        "snowflake",
        "SELECT monthname(day) AS k, count(*) AS n FROM orders GROUP BY k HAVING n > 0",
        "SELECT strftime(day, '%b') AS k, count(*) AS n FROM orders GROUP BY k",
    ),
    ("duckdb", "SELECT dayname(day) AS k, count(*) AS n FROM orders GROUP BY k HAVING n > 0", None),
    ("spark", "SELECT size(collect_set(channel)) AS n FROM orders", "SELECT count(DISTINCT channel) FROM orders"),
    (
        "spark",
        "SELECT avg(n) FROM (SELECT customer_id, size(collect_list(nullif(channel, 'fax'))) AS n FROM orders GROUP BY customer_id)",
        "SELECT avg(n) FROM (SELECT customer_id, count(nullif(channel, 'fax')) AS n FROM orders GROUP BY customer_id)",
    ),
    (
        "bigquery",
        "SELECT d, count(order_id) AS n FROM UNNEST(GENERATE_DATE_ARRAY('2024-01-01', '2024-01-09')) AS d LEFT JOIN orders ON day = d GROUP BY d",
        "SELECT d::DATE, count(order_id) AS n FROM generate_series(DATE '2024-01-01', '2024-01-09', INTERVAL 1 DAY) t(d) LEFT JOIN orders ON day = d"
        " GROUP BY d",
    ),
    (
        "bigquery",
        "SELECT w, count(*) AS n FROM orders JOIN UNNEST(GENERATE_DATE_ARRAY(DATE '2024-01-01', DATE '2024-03-30', INTERVAL 1 MONTH)) AS w"
        " ON day >= w AND day < DATE_ADD(w, INTERVAL 1 MONTH) GROUP BY w",
        "SELECT date_trunc('month', day)::DATE AS w, count(*) FROM orders WHERE day < '2024-04-01' GROUP BY w",
    ),
    (
        "bigquery",
        "SELECT count(*) FROM orders JOIN UNNEST(GENERATE_ARRAY(0, 10, 2)) AS x ON amount = x",
        "SELECT count(*) FROM orders WHERE amount % 2 = 0",
    ),
    (
        "bigquery",
        "SELECT x, i, count(*) AS n FROM orders, UNNEST([1, 2]) AS x WITH OFFSET AS i WHERE amount = x GROUP BY x, i",
        "SELECT amount, amount - 1, count(*) FROM orders WHERE amount IN (1, 2) GROUP BY amount",
    ),
    (
        "trino",
        "SELECT x, i, count(*) AS n FROM orders CROSS JOIN UNNEST(ARRAY[7, 2]) WITH ORDINALITY AS t(x, i) WHERE amount = x GROUP BY x, i",
        "SELECT amount, CASE amount WHEN 7 THEN 1 ELSE 2 END, count(*) FROM orders WHERE amount IN (7, 2) GROUP BY amount",
    ),
    (
        "trino",
        "SELECT d, count(order_id) AS n FROM UNNEST(sequence(DATE '2024-01-01', DATE '2024-01-31', INTERVAL '7' DAY)) AS t(d)"
        " LEFT JOIN orders ON day = d GROUP BY d",
        "SELECT d::DATE, count(order_id) FROM generate_series(DATE '2024-01-01', '2024-01-31', INTERVAL 7 DAY) t(d) LEFT JOIN orders ON day = d"
        " GROUP BY d",
    ),
    (
        "spark",
        "SELECT count(*) FROM orders LATERAL VIEW explode(sequence(to_date('2024-01-01'), to_date('2024-02-01'), interval 1 day)) AS d WHERE day = d",
        "SELECT count(*) FROM orders WHERE day <= '2024-02-01'",
    ),
    (
        "spark",
        "SELECT count(*) FROM orders LATERAL VIEW explode(sequence(1, 3)) t AS x WHERE amount = x",
        "SELECT count(*) FROM orders WHERE amount IN (1, 2, 3)",
    ),
    ("duckdb", "SELECT x, count(*) FROM orders JOIN unnest(range(1, 3)) t(x) ON amount = x GROUP BY x", None),
    ("postgres", "SELECT quantile_cont(amount, 0.5) FROM orders", "SELECT median(amount) FROM orders"),
)


@pytest.mark.parametrize(("dialect", "sql", "same"), BORROWED)
def test_functions_of_other_engines(dialect: str, sql: str, same: str | None, opened: Session, plain: duckdb.DuckDBPyConnection) -> None:
    agrees(opened, plain, sql, same, dialect)
