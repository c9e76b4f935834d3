"""The whole statement that a refusal names: it is read, and is the one that was meant."""

from __future__ import annotations

import pytest
from plain_answers import answer
from plain_shop import plain_shop
from sql_shop import ask

from dpquery.errors import Refused
from dpquery.sql.rewritten import DIFFERS, EDITS, EQUAL

YEAR = "contribution_bounds_per_row => (DATE '2024-01-01', DATE '2024-12-31')"
MEANT = [
    ("duckdb", "SELECT COUNT(*) FROM users FOR UPDATE", "SELECT COUNT(*) FROM users"),
    ("spark", "SELECT /*+ BROADCAST(users) */ COUNT(*) FROM users", "SELECT COUNT(*) FROM users"),
    ("duckdb", "SELECT COUNT(*)\nFROM users TABLESAMPLE 10%", "SELECT COUNT(*)\nFROM users"),
    ("duckdb", "SELECT COUNT(*) FROM users USING SAMPLE 5 ROWS", "SELECT COUNT(*) FROM users"),
    ("duckdb", "SELECT COUNT(*) INTO x FROM users", "SELECT COUNT(*) FROM users"),
    (
        "duckdb",
        "SELECT WITH ANONYMIZATION OPTIONS(epsilon=1) COUNT(*) FROM users",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) COUNT(*) FROM users",
    ),
    ("duckdb", "SELECT COUNT(*) FROM a.main.users", "SELECT COUNT(*) FROM users"),
    ("duckdb", "SELECT AVG(agee) FROM users", "SELECT AVG(age) FROM users"),
    ("duckdb", "SELECT COUNT(*) FROM users\nWHERE citty = 'x'", "SELECT COUNT(*) FROM users\nWHERE city = 'x'"),
    ("duckdb", "SELECT MAX(amount) FROM orders", "SELECT quantile_cont(amount, 0.99) FROM orders"),
    ("duckdb", "SELECT AVG(age > 30), COUNT(*) FROM users", "SELECT AVG(CAST(age > 30 AS INT)), COUNT(*) FROM users"),
    ("duckdb", "SELECT sum(city = ')' OR (age > 3)) FROM users", "SELECT COUNT(*) FILTER (WHERE city = ')' OR (age > 3)) FROM users"),
    (
        "duckdb",
        "SELECT format_datetime(day, 'yyyy-MM') AS m, COUNT(*) FROM orders GROUP BY format_datetime(day, 'yyyy-MM')",
        "SELECT date_trunc('month', day) AS m, COUNT(*) FROM orders GROUP BY date_trunc('month', day)",
    ),
    (
        "duckdb",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon='0,1') COUNT(*) FROM users",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.1) COUNT(*) FROM users",
    ),
    (
        "duckdb",
        "SELECT SUM(a) FROM (SELECT amount AS a, ROW_NUMBER() OVER (ORDER BY day) AS k FROM orders) AS o WHERE k = 1",
        "SELECT SUM(a) FROM (SELECT amount AS a, ROW_NUMBER() OVER (PARTITION BY orders.user_id ORDER BY day) AS k FROM orders) AS o WHERE k = 1",
    ),
    (
        "duckdb",
        "SELECT SUM(a) FROM (SELECT amount AS a, ROW_NUMBER() OVER (PARTITION BY day ORDER BY amount) AS k FROM orders) AS o WHERE k = 1",
        "SELECT SUM(a) FROM (SELECT amount AS a, ROW_NUMBER() OVER (PARTITION BY orders.user_id, day ORDER BY amount) AS k FROM orders) AS o "
        "WHERE k = 1",
    ),
    ("duckdb", "SELECT amount FROM orders", "SELECT AVG(amount) FROM orders"),
    ("duckdb", "SELECT * FROM orders ORDER BY day LIMIT 3", "SELECT COUNT(*) FROM orders"),
    (
        "duckdb",
        "SELECT amount AS a, channel FROM orders WHERE amount > 5 ORDER BY day",
        "SELECT AVG(amount), channel FROM orders WHERE amount > 5 GROUP BY channel",
    ),
    ("duckdb", "SELECT COUNT(*) FROM user", "SELECT COUNT(*) FROM users"),
    ("duckdb", "SELECT MAX(day) FROM orders", f"SELECT quantile_cont(day, 0.99, {YEAR}) FROM orders"),
    (
        "duckdb",
        "SELECT channel, MIN(day) AS f, MAX(day) FROM orders GROUP BY channel",
        f"SELECT channel, quantile_cont(day, 0.01, {YEAR}) AS f, quantile_cont(day, 0.99, {YEAR}) FROM orders GROUP BY channel",
    ),
    (
        "duckdb",
        "SELECT channel, MAX(amount) AS m, MIN(amount) FROM orders GROUP BY channel HAVING MAX(amount) > 5 ORDER BY m",
        "SELECT channel, quantile_cont(amount, 0.99) AS m, quantile_cont(amount, 0.01) FROM orders GROUP BY channel HAVING "
        "quantile_cont(amount, 0.99) > 5 ORDER BY m",
    ),
    ("duckdb", "SELECT COUNT(*) FROM users CROSS JOIN orders", "SELECT COUNT(*) FROM users JOIN orders USING (user_id)"),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users CROSS JOIN orders CROSS JOIN order_items",
        "SELECT COUNT(*) FROM users JOIN orders USING (user_id) JOIN order_items USING (order_id)",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users u, orders o WHERE u.age > 3 OR o.amount > 4",
        "SELECT COUNT(*) FROM users u, orders o WHERE u.user_id = o.user_id AND (u.age > 3 OR o.amount > 4)",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users u JOIN orders o ON u.age = o.order_id OR u.age > 3",
        "SELECT COUNT(*) FROM users u JOIN orders o ON u.user_id = o.user_id AND (u.age = o.order_id OR u.age > 3)",
    ),
    ("duckdb", "SELECT COUNT(*) FROM users u LEFT JOIN orders o", "SELECT COUNT(*) FROM users u LEFT JOIN orders o ON u.user_id = o.user_id"),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users u ASOF JOIN orders o ON u.age >= o.order_id",
        "SELECT COUNT(*) FROM users u JOIN orders o ON u.user_id = o.user_id AND u.age >= o.order_id",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM (SELECT user_id FROM users EXCEPT ALL SELECT user_id FROM orders)",
        "SELECT COUNT(*) FROM (SELECT user_id FROM users EXCEPT SELECT user_id FROM orders)",
    ),
    (
        "duckdb",
        "SELECT SUM(amount) FROM (SELECT DISTINCT ON (user_id) user_id, amount FROM orders ORDER BY user_id, day DESC) o",
        "SELECT SUM(amount) FROM (SELECT user_id, amount FROM orders QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY day DESC) = 1) o",
    ),
    (
        "duckdb",
        "SELECT SUM(amount) FROM (SELECT DISTINCT ON (channel) amount FROM orders WHERE amount > 3) o",
        "SELECT SUM(amount) FROM (SELECT amount FROM orders WHERE amount > 3 QUALIFY row_number() OVER (PARTITION BY orders.user_id, channel) = 1) o",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM (SELECT * FROM orders ORDER BY amount LIMIT 5)",
        "SELECT COUNT(*) FROM (SELECT * FROM orders WHERE amount <= (SELECT quantile_cont(amount, 0.1) FROM orders))",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users WHERE age NOT IN (SELECT order_id FROM orders WHERE amount > 3)",
        "SELECT COUNT(*) FROM users WHERE age NOT IN (SELECT order_id FROM orders WHERE users.user_id = orders.user_id AND amount > 3)",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users u, LATERAL (SELECT MAX(amount) AS m FROM orders o WHERE o.user_id = u.user_id AND o.amount > 4) x",
        "SELECT COUNT(*) FROM users u LEFT JOIN (SELECT o.user_id, MAX(amount) AS m FROM orders o WHERE o.amount > 4 GROUP BY "
        "o.user_id) x ON x.user_id = u.user_id",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM orders o, LATERAL (SELECT price FROM order_items i WHERE i.order_id = o.order_id ORDER BY price LIMIT 2) x",
        "SELECT COUNT(*) FROM orders o JOIN (SELECT i.order_id, price FROM order_items i QUALIFY row_number() OVER (PARTITION BY "
        "i.order_id ORDER BY price) <= 2) x ON x.order_id = o.order_id",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users u WHERE age > (SELECT c.people FROM countries c WHERE c.country = u.country)",
        "SELECT COUNT(*) FROM users u WHERE age > (SELECT max(c.people) FROM countries c WHERE c.country = u.country)",
    ),
    (
        "duckdb",
        "SELECT (SELECT region FROM countries WHERE country = users.country LIMIT 1) AS r, COUNT(*) FROM users GROUP BY r",
        "SELECT (SELECT max(region) FROM countries WHERE country = users.country) AS r, COUNT(*) FROM users GROUP BY r",
    ),
    (
        "duckdb",
        "SELECT SUM(f) FROM (SELECT first_value(amount) OVER (PARTITION BY user_id ORDER BY day ROWS 2 PRECEDING) AS f FROM orders) o",
        "SELECT SUM(f) FROM (SELECT CASE WHEN row_number() OVER (PARTITION BY user_id ORDER BY day) > 2 THEN lag(amount, 2) OVER "
        "(PARTITION BY user_id ORDER BY day) ELSE first_value(amount) OVER (PARTITION BY user_id ORDER BY day) END AS f FROM orders) o",
    ),
    (
        "duckdb",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) OVER (PARTITION BY channel) AS m, channel FROM orders",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS m, channel FROM orders GROUP BY channel",
    ),
    (
        "duckdb",
        "SELECT channel, COUNT(*) FROM orders WHERE SUM(amount) > 3 AND channel = 'x' GROUP BY channel",
        "SELECT channel, COUNT(*) FROM orders WHERE channel = 'x' GROUP BY channel HAVING SUM(amount) > 3",
    ),
    (
        "duckdb",
        "SELECT user_id, channel, COUNT(*) FROM orders GROUP BY user_id, channel",
        "SELECT COUNT(DISTINCT user_id), channel, COUNT(*) FROM orders GROUP BY channel",
    ),
    ("duckdb", "SELECT country, age, COUNT(*) FROM users GROUP BY country", "SELECT country, AVG(age), COUNT(*) FROM users GROUP BY country"),
    (
        "duckdb",
        "SELECT paid, histogram(amount, [10, 20]) AS h FROM orders GROUP BY paid",
        "SELECT paid, CASE WHEN amount <= 10 THEN 10 WHEN amount <= 20 THEN 20 END AS bin, COUNT(*) AS n FROM orders GROUP BY paid, bin",
    ),
    (
        "duckdb",
        "SELECT histogram_exact(channel, ['web', 'shop']) FROM orders",
        "SELECT CASE WHEN channel = 'web' THEN 'web' WHEN channel = 'shop' THEN 'shop' END AS bin, COUNT(*) AS n FROM orders GROUP BY bin",
    ),
    (
        "trino",
        "SELECT numeric_histogram(10, amount) FROM orders WHERE paid",
        "SELECT width_bucket(amount, 0, 100, 10) AS bucket, COUNT(*) AS n FROM orders WHERE paid GROUP BY bucket",
    ),
    (
        "spark",
        "SELECT histogram_numeric(amount, 5) AS h FROM orders",
        "SELECT width_bucket(amount, 0, 100, 5) AS bucket, COUNT(*) AS n FROM orders GROUP BY bucket",
    ),
    (
        "trino",
        "SELECT approx_most_frequent(3, channel, 100) FROM orders",
        "SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel ORDER BY COUNT(*) DESC LIMIT 3",
    ),
    ("trino", "SELECT max_by(channel, amount) FROM orders", "SELECT channel FROM orders GROUP BY channel ORDER BY SUM(amount) DESC LIMIT 1"),
    (
        "duckdb",
        "SELECT arg_max(channel, count(*)) AS c FROM orders",
        "SELECT channel AS c FROM orders GROUP BY channel ORDER BY count(*) DESC LIMIT 1",
    ),
    (
        "duckdb",
        "SELECT paid, arg_min(channel, amount) FROM orders GROUP BY paid",
        "SELECT paid, channel FROM orders GROUP BY paid, channel QUALIFY row_number() OVER (PARTITION BY paid ORDER BY SUM(amount)) = 1",
    ),
    (
        "snowflake",
        "SELECT * FROM orders PIVOT (sum(amount) FOR channel IN ('web', '2 go')) AS p",
        "SELECT sum(CASE WHEN channel = 'web' THEN amount END) AS web, sum(CASE WHEN channel = '2 go' THEN amount END) AS value_2 FROM orders",
    ),
    (
        "duckdb",
        "PIVOT orders ON channel IN ('web', 'shop') USING sum(amount) GROUP BY paid",
        "SELECT paid, channel, sum(amount) FROM orders WHERE channel IN ('web', 'shop') GROUP BY paid, channel",
    ),
    (
        "duckdb",
        "SELECT channel, regr_slope(amount, weight) FROM orders GROUP BY channel",
        "SELECT channel, COVAR_POP(amount, weight) / VAR_POP(weight) FILTER (WHERE amount IS NOT NULL) FROM orders GROUP BY channel",
    ),
    ("duckdb", "SELECT COUNT(*) FROM users USING SAMPLE 20% (system, 377)", "SELECT COUNT(*) FROM users"),
    ("snowflake", "SELECT COUNT(*) FROM users SAMPLE (10)", "SELECT COUNT(*) FROM users"),
    ("snowflake", "SELECT COUNT(*) FROM users u SAMPLE ROW (10) REPEATABLE (99) WHERE age > 3", "SELECT COUNT(*) FROM users u WHERE age > 3"),
    (
        "snowflake",
        "SELECT COUNT(*) FROM users u SAMPLE (10) JOIN orders o TABLESAMPLE SYSTEM (3) SEED (82) USING (user_id)",
        "SELECT COUNT(*) FROM users u JOIN orders o USING (user_id)",
    ),
    ("spark", "SELECT COUNT(*) FROM users TABLESAMPLE (BUCKET 4 OUT OF 10) u", "SELECT COUNT(*) FROM users u"),
    ("postgres", "SELECT COUNT(*) FROM users u TABLESAMPLE BERNOULLI (10) REPEATABLE (42)", "SELECT COUNT(*) FROM users u"),
    (
        "duckdb",
        "SELECT string_agg(DISTINCT (channel), ',' ORDER BY channel) AS c FROM orders",
        "SELECT (channel) AS c, COUNT(*) AS n FROM orders GROUP BY (channel)",
    ),
    (
        "trino",
        "SELECT listagg(channel, ',') WITHIN GROUP (ORDER BY channel) AS c FROM orders",
        "SELECT channel AS c, COUNT(*) AS n FROM orders GROUP BY channel",
    ),
    ("duckdb", "SELECT entropy(channel) FROM orders", "SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel"),
    ("duckdb", "SELECT stddev(channel) FROM orders", "SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel"),
    ("duckdb", "SELECT avg(day) FROM orders", "SELECT avg(date_diff('day', DATE '2000-01-01', day)) FROM orders"),
    (
        "duckdb",
        "SELECT MAX(n) FROM (SELECT channel, COUNT(*) n, SUM(amount) n FROM orders GROUP BY channel)",
        "SELECT MAX(n) FROM (SELECT channel, COUNT(*) n, SUM(amount) n_2 FROM orders GROUP BY channel)",
    ),
    (
        "duckdb",
        "SELECT SUM(amount) FROM (SELECT amount, o.amount FROM orders o)",
        "SELECT SUM(amount) FROM (SELECT amount, o.amount AS amount_2 FROM orders o)",
    ),
    (
        "bigquery",
        "SELECT EXTRACT(DAYOFWEEK FROM day) d, COUNT(*) FROM orders GROUP BY EXTRACT(DAYOFWEEK FROM day)",
        "SELECT (MOD(EXTRACT(ISODOW FROM day), 7) + 1) d, COUNT(*) FROM orders GROUP BY (MOD(EXTRACT(ISODOW FROM day), 7) + 1)",
    ),
    (
        "spark",
        "SELECT COUNT(*) FROM orders WHERE date_part('dow', day) IN (1, 7)",
        "SELECT COUNT(*) FROM orders WHERE (MOD(EXTRACT(ISODOW FROM day), 7) + 1) IN (1, 7)",
    ),
    (
        "spark",
        "SELECT COUNT(*) FROM orders WHERE weekday(day) > 4",
        "SELECT COUNT(*) FROM orders WHERE (EXTRACT(ISODOW FROM day) - 1) > 4",
    ),
    (
        "bigquery",
        "SELECT COUNT(*) FROM orders WHERE SUBSTR(channel, 0, 3) = 'web'",
        "SELECT COUNT(*) FROM orders WHERE SUBSTR(channel, 1, 3) = 'web'",
    ),
    (
        "trino",
        "SELECT extract(dow FROM day) AS d, COUNT(*) FROM orders GROUP BY extract(dow FROM day)",
        "SELECT DAY_OF_WEEK(day) AS d, COUNT(*) FROM orders GROUP BY DAY_OF_WEEK(day)",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users u WHERE age > (SELECT amount FROM orders o WHERE o.user_id = u.user_id)",
        "SELECT COUNT(*) FROM users u WHERE age > (SELECT avg(amount) FROM orders o WHERE o.user_id = u.user_id)",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users u WHERE city = (SELECT channel FROM orders o WHERE o.user_id = u.user_id)",
        "SELECT COUNT(*) FROM users u WHERE city = (SELECT max(channel) FROM orders o WHERE o.user_id = u.user_id)",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM orders o WHERE amount > (SELECT AVG(amount) FROM orders p WHERE p.channel = o.channel)",
        "SELECT COUNT(*) FROM orders o WHERE amount > (SELECT AVG(amount) FROM orders p WHERE o.user_id = p.user_id AND p.channel = o.channel)",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users WHERE NOT EXISTS (SELECT 1 FROM orders WHERE amount > 400)",
        "SELECT COUNT(*) FROM users WHERE (SELECT COUNT(*) FROM orders WHERE amount > 400) <= 0",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.amount > u.age)",
        "SELECT COUNT(*) FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE u.user_id = o.user_id AND o.amount > u.age)",
    ),
    (
        "duckdb",
        "SELECT n, COUNT(*) FROM users u CROSS JOIN LATERAL (SELECT COUNT(*) AS n FROM orders o WHERE o.user_id = u.user_id) x "
        "WHERE x.n < 3 GROUP BY n",
        "SELECT COALESCE(x.n, 0) AS n, COUNT(*) FROM users u LEFT JOIN (SELECT o.user_id, COUNT(*) AS n FROM orders o GROUP BY o.user_id) x "
        "ON x.user_id = u.user_id WHERE COALESCE(x.n, 0) < 3 GROUP BY COALESCE(x.n, 0)",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users u, LATERAL (SELECT amount FROM orders o WHERE o.user_id = u.user_id) AS x(a) WHERE a > 3",
        "SELECT COUNT(*) FROM users u JOIN (SELECT o.user_id, amount FROM orders o) AS x(user_id, a) ON x.user_id = u.user_id WHERE a > 3",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users u JOIN LATERAL (SELECT amount FROM orders o WHERE o.user_id = u.user_id) x ON x.amount > 3",
        "SELECT COUNT(*) FROM users u JOIN (SELECT o.user_id, amount FROM orders o) x ON x.user_id = u.user_id AND x.amount > 3",
    ),
    (
        "duckdb",
        "SELECT a, COUNT(*) FROM users u, LATERAL (SELECT u.age + 1 AS a) x WHERE x.a > 4 GROUP BY a",
        "SELECT (u.age + 1) AS a, COUNT(*) FROM users u WHERE (u.age + 1) > 4 GROUP BY (u.age + 1)",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users u CROSS JOIN LATERAL (SELECT region FROM countries c) x",
        "SELECT COUNT(*) FROM users u CROSS JOIN (SELECT region FROM countries c) x",
    ),
    (
        "duckdb",
        "SELECT user_id, SUM(amount) AS s FROM orders GROUP BY user_id HAVING s > 30 ORDER BY s DESC LIMIT 10",
        "SELECT COUNT(*) AS n FROM (SELECT user_id, SUM(amount) AS s FROM orders GROUP BY user_id HAVING s > 30) AS units",
    ),
    (
        "postgres",
        "SELECT o.channel, o.user_id FROM orders o GROUP BY 1, 2 HAVING COUNT(*) > 1",
        "SELECT channel, COUNT(*) AS n FROM (SELECT o.channel, o.user_id FROM orders o GROUP BY 1, 2 HAVING COUNT(*) > 1) AS units GROUP BY channel",
    ),
    (
        "duckdb",
        "SELECT DISTINCT user_id FROM orders WHERE amount > 4",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT user_id FROM orders WHERE amount > 4) AS units",
    ),
    (
        "duckdb",
        "WITH b AS (SELECT * FROM orders WHERE paid) SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) user_id FROM b GROUP BY user_id "
        "HAVING SUM(amount) > 9",
        "WITH b AS (SELECT * FROM orders WHERE paid) SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) COUNT(*) AS n FROM "
        "(SELECT user_id FROM b GROUP BY user_id HAVING SUM(amount) > 9) AS units",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM (SELECT country FROM users EXCEPT SELECT country FROM countries)",
        "SELECT COUNT(*) FROM (SELECT DISTINCT country FROM users EXCEPT SELECT country FROM countries)",
    ),
    (
        "duckdb",
        "SELECT country FROM countries INTERSECT SELECT country FROM users",
        "SELECT country FROM countries INTERSECT SELECT DISTINCT country FROM users",
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM (SELECT country FROM countries UNION ALL SELECT country FROM users WHERE age > 3)",
        "SELECT COUNT(*) FROM (SELECT country FROM users WHERE age > 3)",
    ),
    (
        "duckdb",
        "SELECT region, COUNT(*) FROM users u FULL OUTER JOIN countries c ON u.country = c.country GROUP BY region",
        "SELECT region, COUNT(*) FROM users u LEFT JOIN countries c ON u.country = c.country GROUP BY region",
    ),
    (
        "bigquery",
        "SELECT AVG(a) FROM (SELECT user_id, ARRAY_AGG(amount IGNORE NULLS ORDER BY day DESC LIMIT 1)[SAFE_OFFSET(0)] AS a FROM orders "
        "GROUP BY user_id)",
        "SELECT AVG(a) FROM (SELECT user_id, ARG_MAX(amount, day) AS a FROM orders GROUP BY user_id)",
    ),
    (
        "postgres",
        "SELECT AVG(a) FROM (SELECT user_id, (ARRAY_AGG(amount ORDER BY day))[1] AS a FROM orders GROUP BY user_id) t",
        "SELECT AVG(a) FROM (SELECT user_id, ARG_MIN(amount, day) AS a FROM orders GROUP BY user_id) t",
    ),
    ("bigquery", "SELECT ARRAY_AGG(amount ORDER BY amount)[ORDINAL(1)] FROM orders", "SELECT quantile_cont(amount, 0.01) FROM orders"),
    ("bigquery", "SELECT ARRAY_AGG(amount ORDER BY day)[OFFSET(0)] AS a FROM orders", "SELECT MEDIAN(amount) AS a FROM orders"),
    (
        "bigquery",
        "SELECT ARRAY_AGG(channel ORDER BY amount DESC LIMIT 1)[OFFSET(0)] AS c FROM orders",
        "SELECT channel AS c FROM orders GROUP BY channel ORDER BY SUM(amount) DESC LIMIT 1",
    ),
    (
        "spark",
        "SELECT COUNT(*) FROM orders LATERAL VIEW OUTER explode(split(channel, 'e')) t AS x WHERE paid",
        "SELECT COUNT(*) FROM orders WHERE paid",
    ),
    ("duckdb", "SELECT ARG_MAX(amount, day) FROM orders", "SELECT MEDIAN(amount) FROM orders"),
    ("duckdb", "SELECT COUNT(*) FROM users u, LATERAL unnest([1, 2]) x(a)", "SELECT COUNT(*) FROM users u, unnest([1, 2]) x(a)"),
]


MEANT += [
    ("duckdb", "SELECT COUNT(*) FROM users JOIN orders USING (userid)", "SELECT COUNT(*) FROM users JOIN orders USING (user_id)"),
    ("duckdb", "SELECT COUNT(*) FROM users AT (TIMESTAMP => now() - INTERVAL 1 DAY) WHERE age > 3", "SELECT COUNT(*) FROM users WHERE age > 3"),
    ("duckdb", "SELECT COUNT(*) FROM users AT (VERSION => 3) u", "SELECT COUNT(*) FROM users u"),
    ("bigquery", "SELECT COUNT(*) FROM users FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP()", "SELECT COUNT(*) FROM users"),
    (
        "duckdb",
        "SELECT COUNT(*) FROM users WHERE age > ANY (SELECT amount FROM orders)",
        "SELECT COUNT(*) FROM users WHERE age > ANY (SELECT amount FROM orders WHERE users.user_id = orders.user_id)",
    ),
]


WHICH = "how many values there are, not which"
SETS = "(SELECT channel, paid, COUNT(*) AS n FROM orders GROUP BY ALL)"
DIFFERENT = [
    ("SELECT COUNT(*) FROM users WHERE EXISTS (SELECT 1 FROM orders)", "whether there are any at all, as a noisy count tells"),
    ("SELECT COUNT(*) FROM users u WHERE age > (SELECT amount FROM orders o WHERE o.user_id = u.user_id)", "of the average value"),
    ("SELECT COUNT(*) FROM users u WHERE city = (SELECT channel FROM orders o WHERE o.user_id = u.user_id)", "of the largest value"),
    ("SELECT COUNT(*) FROM orders o WHERE amount > (SELECT AVG(amount) FROM orders p WHERE p.channel = o.channel)", "within each unit alone"),
    (
        "SELECT COUNT(*) FROM users u WHERE (SELECT COUNT(*) FROM orders o WHERE o.user_id = u.user_id GROUP BY channel) > 2",
        "of all of its groups at once",
    ),
    ("SELECT COUNT(*) FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.amount > u.age)", "within each unit alone"),
    ("SELECT COUNT(*) FROM users TABLESAMPLE 10%", "of all rows"),
    ("SELECT COUNT(*) FROM (SELECT channel FROM orders UNION SELECT country FROM users)", "equal rows counted apart"),
    (f"SELECT channel, SUM(n) FROM {SETS} GROUP BY ROLLUP (channel)", "of the finest groups alone"),
    ("SELECT ARG_MAX(channel, amount) FROM orders TABLESAMPLE 10%", "of all rows; of all rows, not of one"),
    ("PIVOT users ON country USING COUNT(*)", "one row for each value"),
    ("SELECT COUNT(*) FROM users FOR UPDATE", ""),
    ("SELECT MAX(amount) FROM orders", "the 0.99 quantile, not the largest value"),
    (
        "SELECT MIN(day), MAX(day) FROM orders",
        "the 0.01 quantile, not the smallest value; DATE '2024-01-01' and DATE '2024-12-31' are placeholders for your own bounds; "
        "the 0.99 quantile, not the largest value",
    ),
    ("SELECT user_id FROM orders GROUP BY user_id HAVING COUNT(*) > 3", "how many there are, not who"),
    (
        "SELECT COUNT(*) FROM (SELECT country FROM users UNION ALL SELECT country FROM countries)",
        "of the private rows alone; the public ones can be counted by themselves, for nothing",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT country FROM users UNION SELECT country FROM countries)",
        "of values that are declared or that enough people have",
    ),
    ("SELECT MAX(channel) FROM orders", "how many there are of each, not the least or largest"),
    ("SELECT median(day) FROM orders", "DATE '2024-01-01' and DATE '2024-12-31' are placeholders for your own bounds"),
    ("SELECT channel, COUNT(*) FROM orders GROUP BY channel LIMIT -1", "10 is a placeholder for your own number"),
    ("SELECT NUMERIC_HISTOGRAM(10, amount) FROM orders", "0 and 100 are placeholders for your own ends"),
    ("SELECT KURTOSIS(amount) FROM orders", "the variance"),
    ("SELECT KURTOSIS(channel) FROM orders", "how many there are of each"),
    (
        "SELECT DISTINCT ON (channel) channel, amount FROM orders ORDER BY channel, day",
        "of all rows, not of the first of each; of all rows, not row by row",
    ),
    (
        "SELECT user_id, amount FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day DESC) = 1",
        "how many such rows there are, not which",
    ),
    ("SELECT map_agg(channel, amount) AS m FROM orders", "one row for each key, with the sum of its values"),
    ("SELECT geometric_mean(amount) FROM orders", "of values above 0, their bounds chosen from the data, out of the same price"),
    ("SELECT len(list(DISTINCT channel)) FROM orders", "NULL is not counted"),
    ("SELECT AVG(n) FROM (SELECT user_id, array_length(array_agg(channel), 1) AS n FROM orders GROUP BY user_id)", "NULL is not counted"),
    ("SUMMARIZE orders", "how many rows there are; `dpquery tables` has the columns and their bounds"),
    ("SELECT boolor_agg(paid) FROM orders", "for how many rows, not whether for any or all"),
    ("SELECT SUM(channel) FROM orders", "how many there are, which add up to nothing"),
    ("SELECT HISTOGRAM(amount, [10, 20]) FROM orders", "one row for each value or bin"),
    ("SELECT COUNT(*) FROM (SELECT user_id, array_agg(channel) AS c FROM orders GROUP BY user_id) WHERE c > 2", WHICH),
    ("SELECT COUNT(*) FROM (SELECT user_id, list(DISTINCT channel ORDER BY channel) AS c FROM orders GROUP BY user_id) WHERE c > 2", WHICH),
    ("SELECT AVG(a) FROM (SELECT user_id, first(amount) AS a FROM orders GROUP BY user_id)", "the smallest value"),
    ("SELECT COUNT(*) FROM (SELECT * FROM orders LIMIT 5)", "of all rows, not of the first alone"),
    ("SELECT COUNT(*) FROM (SELECT amount, avg(amount) OVER () AS m FROM orders WHERE paid) WHERE amount > m", ""),
    ("SELECT amount - avg(amount) OVER () AS d FROM orders", "of all rows, not row by row"),
    (
        "SELECT AVG(amount) FROM (SELECT * FROM orders WHERE paid QUALIFY rank() OVER (ORDER BY amount DESC) <= 9)",
        "of the tenth of all rows that comes first; 0.9 is a placeholder for your own fraction",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT percent_rank() OVER (ORDER BY amount) AS p FROM orders) WHERE p > 0.9",
        "by released quantiles, rows of one value in one part, in tenths",
    ),
    (
        "SELECT d, AVG(amount) FROM (SELECT *, ntile(4) OVER (ORDER BY amount DESC) AS d FROM orders) GROUP BY d",
        "by released quantiles, rows of one value in one part",
    ),
    (
        "SELECT COUNT(*) FROM users u WHERE (SELECT channel FROM orders o WHERE o.user_id = u.user_id ORDER BY amount DESC LIMIT 1) = 'web'",
        "of rows where neither is NULL",
    ),
    (
        "SELECT COUNT(*) FROM users WHERE city = (SELECT channel FROM orders ORDER BY amount DESC LIMIT 1)",
        "that of the largest sum, not of one row",
    ),
    ("DELETE FROM users WHERE age > 3", "how many such rows there are: no row is deleted"),
    ("SELECT COUNT(*) FROM (SELECT * FROM orders ORDER BY day LIMIT 5)", "the first 5 of each unit, not of all"),
    ("SELECT COUNT(*) FROM users; DROP TABLE orders", "the first statement alone"),
    (
        f"SELECT channel, paid, SUM(n) FROM {SETS} GROUP BY GROUPING SETS ((channel), (paid), ())",
        "in groups by all of the keys at once",
    ),
    (f"SELECT channel, paid, SUM(n) FROM {SETS} GROUP BY GROUPING SETS (channel, (channel, paid))", "of the finest groups alone"),
    ("SELECT country, city, COUNT(*) FROM users GROUP BY country", "how many values there are of what is no key"),
    ("SELECT country, age, COUNT(*) FROM users GROUP BY country", "the average of what is no key"),
    ("SELECT COUNT(*) FROM (SELECT DISTINCT ON (channel) amount FROM orders ORDER BY channel, day)", "the first within each unit"),
    ("SELECT COUNT(*) FROM (SELECT DISTINCT ON (user_id) amount FROM orders ORDER BY user_id, day)", ""),
    ("SELECT paid, MODE(channel) FROM orders GROUP BY paid", "as noisy counts tell, NULL among the values"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon='0,1') COUNT(*) FROM users", "with epsilon=0.1"),
    ("SELECT AVG(l) FROM (SELECT LAST_VALUE(amount) OVER (PARTITION BY user_id ORDER BY day) AS l FROM orders)", "the last of all rows"),
    ("SELECT regr_count(amount, weight) FROM orders", ""),
    ("SELECT regr_intercept(amount, weight) FROM orders", ""),
    ("SELECT geomean(amount) FROM orders", "of values above 0, their bounds chosen from the data, out of the same price"),
    ("SELECT mad(amount) FROM orders", "half the distance of the quartiles, which is the same where values lie evenly around the median"),
    ("SELECT COUNT(DISTINCT (channel, day)) FROM orders", "each row as one text, '|' in between (which may make two the same), NULL left out"),
    ("SELECT COUNT(DISTINCT channel, day) FROM orders", "rows without NULL, each as one text, '|' in between (which may make two the same)"),
    ("SELECT regr_avgx(amount, weight) FROM orders", ""),
    ("SELECT COUNT(*) FROM users WHERE city COLLATE NOCASE = 'ULM'", ""),
    ("SELECT p.channel, (SELECT COUNT(*) FROM orders q WHERE q.channel = p.channel) AS n FROM orders p GROUP BY p.channel", ""),
]


@pytest.mark.parametrize(("sql", "differs"), DIFFERENT)
def test_a_statement_that_answers_another_question_says_so(sql: str, differs: str) -> None:
    with pytest.raises(Refused) as caught:
        ask(sql)
    assert caught.value.rewritten
    assert caught.value.differs == differs
    assert caught.value.as_dict().get("differs", "") == differs
    same = None if differs else answer(plain_shop(), sql)
    assert same is None or same == answer(plain_shop(), caught.value.rewritten)


@pytest.mark.parametrize(("dialect", "sql", "meant"), MEANT, ids=[sql for _, sql, _ in MEANT])
def test_the_statement_to_write_instead_is_named_whole(dialect: str, sql: str, meant: str) -> None:
    with pytest.raises(Refused) as caught:
        ask(sql, dialect=dialect)
    assert caught.value.rewritten == meant
    assert caught.value.as_dict()["rewritten"] == meant
    assert str(caught.value).endswith(f"\nAccepted{', ' * bool(caught.value.differs)}{caught.value.differs}: {meant}")
    ask(meant, dialect=dialect)
    unlike = caught.value.differs or caught.value.code == "DIALECT_DIFFERS"  # what sqlglot writes of it means another thing
    same = None if unlike else answer(plain_shop(), sql, dialect)
    assert same is None or same == answer(plain_shop(), meant, dialect)


HELD = [
    ("DUPLICATE_ALIAS", "SELECT COUNT(*) FROM users, users", "SELECT COUNT(*) FROM users a JOIN users b USING (user_id)"),
    ("DUPLICATE_ALIAS", "SELECT COUNT(*) FROM orders o JOIN users o USING (user_id)", "SELECT COUNT(*) FROM orders JOIN users USING (user_id)"),
    ("JOIN_CONDITION", "SELECT COUNT(*) FROM users u LEFT JOIN orders o", "SELECT COUNT(*) FROM users u LEFT JOIN orders o USING (user_id)"),
    ("QUANTILE", "SELECT quantile_cont(amount, 25) FROM orders", "SELECT quantile_cont(amount, 0.25) FROM orders"),
    (
        "QUANTILE",
        "SELECT channel, percentile_disc(5) WITHIN GROUP (ORDER BY amount) AS q FROM orders GROUP BY channel",
        "SELECT channel, quantile_disc(amount, 0.05) AS q FROM orders GROUP BY channel",
    ),
]


@pytest.mark.parametrize(("code", "sql", "same"), HELD)
def test_what_has_no_answer_as_it_stands_has_that_of_what_was_meant(code: str, sql: str, same: str) -> None:
    with pytest.raises(Refused) as caught:
        ask(sql)
    assert caught.value.code == code
    assert caught.value.rewritten is not None
    wanted = answer(plain_shop(), same)
    assert wanted is not None
    assert answer(plain_shop(), caught.value.rewritten) == wanted


def test_a_code_has_an_answer_like_the_one_asked_for_or_another() -> None:
    assert not EQUAL & DIFFERS.keys()
    assert EQUAL | DIFFERS.keys() <= EDITS.keys()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM orders_itm",  # like several
        "SELECT COUNT(*) FROM (SELECT user_id, list(channel) AS c FROM orders GROUP BY user_id) WHERE c LIKE '%web%'",
        "SELECT AVG(c) FROM (SELECT user_id, histogram(channel) AS c FROM orders GROUP BY user_id)",
        "SELECT MODE(channel), COUNT(*) FROM orders",
        "SELECT AVG(agee), MAX(amount) FROM users",  # wrong in two ways
        "SELECT COUNT(*) FROM broken FOR UPDATE",
        "SELECT COUNT(*) FROM users FOR UPDATE" + " " * 5_000,
    ],
)
def test_none_is_named_where_none_is_sure(sql: str) -> None:
    with pytest.raises(Refused) as caught:
        ask(sql)
    assert caught.value.rewritten is None
    assert "rewritten" not in caught.value.as_dict()
