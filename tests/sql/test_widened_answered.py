"""Spellings of one construct after the other: without noise the answer is the plain engine's to the same text."""

from __future__ import annotations

from pathlib import Path

import people
import pytest

from dpquery.engine.session import Session

DATA = """
CREATE TABLE users AS SELECT i::INT AS user_id, (20 + i % 7)::INT AS age, ['DE', 'FR', 'US'][1 + i % 3] AS country FROM range(30) t(i);
CREATE TABLE orders AS SELECT i::INT AS order_id, (i * 7 % 30)::INT AS user_id, (i % 11)::INT AS amount, (i % 9 / 4)::DECIMAL(9, 2) AS price,
  DATE '2024-01-01' + (i * 5 % 100)::INT AS day, ['paid', 'back', 'kept'][1 + i % 3] AS status FROM range(80) t(i);
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
    columns: {order_id: {type: integer, unique: true}, user_id: {type: integer}, amount: {type: integer, lower: 0, upper: 20},
      price: {type: decimal, lower: 0, upper: 5, step: 0.01}, day: {type: date}, status: {type: string, values: [paid, back, kept]}}
  countries: {public: true, columns: {country: {type: string}, region: {type: string}, tax: {type: integer}}}
"""
ALIASES = (
    "SELECT amount * 2 AS d, floor(d / 7) AS b, count(*) AS n, n + 1 AS m FROM orders GROUP BY ALL ORDER BY d",
    "SELECT amount > 5 AS large, CASE WHEN large THEN 'a' ELSE 'b' END AS kind, sum(amount) AS s FROM orders GROUP BY ALL HAVING s > 0 ORDER BY kind",
    "SELECT amount * 2 AS d, d + 1 AS e, e * 2 AS f, sum(f) AS s FROM orders GROUP BY ALL HAVING f > 10 ORDER BY f DESC",
    "SELECT amount * 2 AS amount, amount + 1 AS e, count(*) AS n FROM orders GROUP BY ALL ORDER BY e",
    "SELECT sum(f) AS s FROM (SELECT amount * 2 AS d, d * 2 AS e, e + d AS f FROM orders WHERE f > 10)",
    "SELECT sum(f) AS s FROM (SELECT user_id, amount + 1 AS k, k * 2 AS h, count(*) AS n, n * 2 AS m, m + 1 AS f FROM orders GROUP BY ALL)",
    "SELECT status AS s, sum(n) AS t, t + 1 AS u FROM (SELECT status, count(*) AS n FROM orders GROUP BY status) GROUP BY ALL HAVING u > 2"
    " ORDER BY u, s",
    "SELECT x, count(*) AS n FROM users JOIN (SELECT region || '!' AS r, count(*) AS n, n * 2 AS m, r || max(country) AS x, max(country) AS country"
    " FROM countries GROUP BY region) USING (country) GROUP BY x ORDER BY x",
)
GAPS = "SELECT user_id, nullif(amount, 3) AS a, nullif(status, 'paid') AS s FROM orders"
ROWS = (
    "SELECT count(*) FROM orders WHERE (status, amount) IN (('paid', 3), ('back', 1), (NULL, 2))",
    "SELECT count(*) FROM orders WHERE (status, amount) = ('paid', 3) OR (amount, price) <> (4, 0.25)",
    f"SELECT count(*) FROM ({GAPS}) WHERE (a, s) NOT IN ((NULL, NULL), (1, 'back'))",
    f"SELECT count(*) FROM ({GAPS}) WHERE (a, s) = (NULL, NULL)",
    "SELECT count(*) FROM orders WHERE (user_id, amount) IN (SELECT user_id, age - 20 FROM users) AND amount > 1",
    "SELECT count(*) FROM users WHERE (age - 20, country) IN (SELECT tax, country FROM countries)",
    "SELECT count(*) FROM users u JOIN orders o ON (u.user_id = o.user_id AND age > 23) OR (o.user_id = u.user_id AND amount > 4)",
)
NARROWED = (
    "SELECT country, count(*) AS n FROM users WHERE country IN (SELECT country FROM countries WHERE region = 'EU') GROUP BY country ORDER BY country",
    "SELECT u.country, count(*) AS n FROM users u JOIN countries c ON u.country = c.country WHERE tax > 4 GROUP BY u.country ORDER BY u.country",
    "SELECT country, count(*) AS n FROM users WHERE country = (SELECT max(country) FROM countries) GROUP BY country",
)
BY, ALL = "PARTITION BY user_id ORDER BY order_id", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
WINDOWS = (
    f"SELECT sum(t) AS s, count(*) FROM (SELECT user_id, ntile(3) OVER ({BY}) AS t FROM orders)",
    "SELECT t, count(*) AS n FROM (SELECT user_id, ntile(2) OVER (PARTITION BY user_id ORDER BY day, order_id) AS t FROM orders)"
    " GROUP BY t ORDER BY t",
    f"SELECT sum(t) AS s, count(t) AS n FROM (SELECT user_id, nth_value(amount, 2) OVER ({BY}) AS t FROM orders)",
    f"SELECT sum(t) AS s, count(t) AS n FROM (SELECT user_id, nth_value(amount, 2) OVER ({BY} {ALL}) AS t FROM orders)",
    "SELECT sum(t) AS s, count(t) AS n FROM (SELECT user_id, percent_rank() OVER (PARTITION BY user_id ORDER BY amount) AS t FROM orders)",
    "SELECT sum(t) AS s, avg(t) AS n FROM (SELECT user_id, cume_dist() OVER (PARTITION BY user_id ORDER BY amount) AS t FROM orders)",
    "SELECT count(*) AS n FROM (SELECT user_id, amount FROM orders QUALIFY percent_rank() OVER (PARTITION BY user_id ORDER BY amount) >= 0.5)",
    f"SELECT sum(t) AS s, count(t) AS n FROM (SELECT user_id, sum(amount) OVER ({BY} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS t FROM orders)",
    f"SELECT sum(t) AS s, count(t) AS n FROM (SELECT user_id, max(amount) OVER ({BY} ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS t FROM orders)",
    f"SELECT sum(t) AS s, count(t) AS n FROM (SELECT user_id, count(*) OVER ({BY} ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) AS t FROM orders)",
    f"SELECT sum(t) AS s, count(t) AS n FROM (SELECT user_id, sum(amount)"
    f" OVER ({BY} ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS t FROM orders)",
    f"SELECT sum(t) AS s, count(t) AS n FROM (SELECT user_id, sum(amount)"
    f" OVER ({BY} ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) AS t FROM orders)",
    f"SELECT sum(t) AS s, count(t) AS n FROM (SELECT user_id, sum(amount)"
    f" OVER ({BY} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS t FROM orders)",
)
AROUND = (
    "SELECT count(*) FROM users u WHERE u.age - 20 > (SELECT max(tax) - 3 FROM countries c WHERE c.country = u.country)",
    "SELECT count(*) FROM users u WHERE (SELECT count(*) FROM countries c WHERE c.country = u.country AND tax > 4) = 0",
    "SELECT count(*) FROM users u JOIN orders o ON u.user_id = o.user_id AND o.amount > (SELECT max(tax) FROM countries c"
    " WHERE c.country = u.country)",
    "SELECT u.country, sum(o.amount) AS s FROM users u JOIN orders o USING (user_id)"
    " WHERE o.amount < (SELECT max(tax) FROM countries c WHERE c.country = u.country) GROUP BY u.country ORDER BY 1",
    "SELECT count(*) FROM users u WHERE (SELECT max(tax) FROM countries c WHERE c.country = u.country AND c.tax = u.age - 17) IS NULL",
    "SELECT (SELECT max(tax) FROM countries c WHERE c.country = u.country) AS t, count(*) AS n FROM users u GROUP BY t ORDER BY t",
    "SELECT sum(greatest(least((SELECT coalesce(sum(c.tax), 7) + count(*) FROM countries c"
    " WHERE u.country = c.country AND region = 'EU'), 20), 0)) AS s FROM users u",
)
PICKED = (
    "SELECT arg_max(status, n) AS a, min_by(status, n) AS b FROM (SELECT status, count(*) + amount AS n FROM orders GROUP BY status, amount)",
    "SELECT max_by(country, n) FILTER (WHERE country <> 'US') AS a, arg_min(country, n) || '!' AS b"
    " FROM (SELECT country, sum(amount) AS n FROM users JOIN orders USING (user_id) GROUP BY country)",
)
HALVES = (
    "SELECT sum(m) AS s, avg(m) AS a FROM (SELECT user_id, median(amount) AS m FROM orders GROUP BY user_id)",
    "SELECT sum(m) AS s FROM (SELECT user_id, quantile_cont(amount, 0.25) AS m FROM orders GROUP BY user_id)",
)


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("widened"), DATA, TABLES, people.ROOMY, name="widened")


@pytest.mark.parametrize("sql", ALIASES + ROWS + NARROWED + HALVES + WINDOWS + AROUND + PICKED)
def test_without_noise_the_answer_is_the_plain_engines(sql: str, opened: Session, schema: Path) -> None:
    people.agrees(opened, schema, sql)


def test_a_median_within_a_unit_keeps_half_steps_of_its_column(opened: Session) -> None:
    """DuckDB's own median of decimals is a decimal, which rounds them away."""
    sql = "SELECT sum(m) AS s, avg(m) AS a FROM (SELECT user_id, median(price) AS m FROM orders GROUP BY user_id)"
    assert people.rows(opened, sql) == [(29.625, 0.9875)]


@pytest.mark.parametrize("way", ["", " DESC"])
def test_rows_in_order_of_the_ends_of_bars_of_one_width_are_in_that_of_their_values(way: str, opened: Session) -> None:
    sql = "SELECT amount, 3 - 2 * count(*) AS n, dp_interval_low(n) AS lo FROM orders WHERE amount IN (1, 3, 5, 10) GROUP BY amount ORDER BY "
    for end in ("lo", "3", "dp_interval_high(n)"):
        assert [row[0] for row in people.rows(opened, f"{sql}{end}{way}")] == [row[0] for row in people.rows(opened, f"{sql}n{way}")]
