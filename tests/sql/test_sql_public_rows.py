"""Subqueries over several rows of public tables: exact, for nothing; noise off, each answer is the plain engine's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from test_sql_several import BY_ITEM, SCHEMA, TABLES, agrees, made

import dpquery
from dpquery.errors import Refused

MARKS = "CREATE TABLE marks AS SELECT ['a', 'b', 'c', NULL][1 + i % 4] AS item, i AS size, ['x', 'y'][1 + i % 2] AS side FROM range(11) t(i)"
PUBLIC = "  marks: {public: true, columns: {item: {type: string}, size: {type: integer, lower: 0, upper: 20}, side: {type: string}}}\n"
COUNTED = "SELECT item, COUNT(*) AS n, SUM(size) AS s, MAX(size) AS m FROM marks WHERE size > 1 GROUP BY item"
N, BY = "SELECT COUNT(*) AS c FROM orders ", "SELECT item, COUNT(*) AS c FROM orders "
ANSWERED = (
    f"SELECT k.n, COUNT(*) AS c FROM orders JOIN ({COUNTED}) AS k USING (item) GROUP BY k.n ORDER BY 1",
    f"{N}JOIN ({COUNTED} HAVING n > 2 AND MIN(size) < 5) AS k USING (item)",
    f"{N}WHERE item IN (SELECT item FROM marks GROUP BY item HAVING COUNT(*) > 2)",
    f"{N}WHERE item NOT IN (SELECT item FROM marks WHERE item IS NOT NULL GROUP BY item HAVING COUNT(DISTINCT side) > 1)",
    f"{BY}WHERE item IN (SELECT item FROM marks ORDER BY item LIMIT 4) GROUP BY item ORDER BY 1",
    f"{BY}WHERE item IN (SELECT DISTINCT item FROM marks ORDER BY item DESC LIMIT 2 OFFSET 1) GROUP BY 1 ORDER BY 1",
    f"WITH k AS ({COUNTED}), top AS (SELECT item, s FROM k ORDER BY s DESC, item LIMIT 2) {BY}JOIN top USING (item) GROUP BY item ORDER BY 1",
    "SELECT w, COUNT(*) AS c FROM orders JOIN (SELECT UPPER(item) AS w, LOWER(UPPER(item)) AS item, MEDIAN(size) FROM marks GROUP BY UPPER(item)) "
    "USING (item) GROUP BY w ORDER BY 1",
    f"{N}AS o JOIN (SELECT side || '!' AS what, 2 * MAX(size) - 1 AS top FROM marks GROUP BY side) AS k ON o.amount < k.top",
    f"{N}WHERE EXISTS (SELECT 1 FROM marks GROUP BY item HAVING COUNT(*) > 2)",
    f"{N}WHERE amount > (SELECT MAX(n) * 50 FROM ({COUNTED}))",
    f"WITH k AS ({COUNTED}) SELECT COUNT(*) AS c FROM orders WHERE amount > (SELECT MAX(n) * 50 FROM k) AND item <> (SELECT MIN(item) FROM k)",
    f"{N}WHERE amount > (SELECT 100 * COUNT(*) FROM early)",
    f"{N}JOIN (SELECT MAX(item) AS item FROM marks) USING (item)",
    f"SELECT r.item, k.n FROM ({BY_ITEM}) AS r JOIN ({COUNTED}) AS k USING (item) ORDER BY 1",
)
WIDE = "(SELECT MAX(size) / 2 FROM marks)"
NESTED = (  # conditions of a public table's rows on rows of public tables
    "item IN (SELECT item FROM early)",
    "item NOT IN (SELECT item FROM marks WHERE size > 9)",
    "item NOT IN (SELECT item FROM marks)",
    "NOT item IN (SELECT item FROM marks WHERE item IS NOT NULL AND size > 8)",
    "UPPER(item) IN (SELECT UPPER(item) FROM marks WHERE side = 'x') OR size > 8",
    "EXISTS (SELECT 1 FROM early e WHERE e.item = k.item)",
    "NOT EXISTS (SELECT 1 FROM early e WHERE e.item = k.item AND k.size > 3)",
    "EXISTS (SELECT 1 FROM marks WHERE size > 9)",
    "EXISTS (SELECT 1 FROM marks WHERE size > 99)",
    f"size > {WIDE}",
    f"NOT size > {WIDE} OR item IS NULL",
    "(item, size) IN (SELECT item, size FROM marks WHERE side = 'x')",
    "size IN (SELECT MAX(size) FROM marks)",
    "size IN (SELECT m.size FROM marks m WHERE m.item = k.item AND m.size > 4)",
    f"item IN (SELECT item FROM marks WHERE size > {WIDE} AND side IN (SELECT MIN(side) FROM marks))",
)
PLACES = (
    f"{N}JOIN (SELECT DISTINCT item FROM marks k WHERE {{}}) USING (item)",
    f"{N}WHERE item IN (SELECT item FROM marks k WHERE {{}})",
    f"{N}o WHERE EXISTS (SELECT 1 FROM marks k WHERE k.item = o.item AND ({{}}))",
    f"{N}WHERE amount > 10 * (SELECT COUNT(*) FROM marks k WHERE {{}})",
)
NAMED = tuple(PLACES[i % 4].format(test) for i, test in enumerate(NESTED))
LISTS, LISTED = (f"UNNEST({[*range(4000)]}) AS a(x){between} range(0, 4000) AS b(x)" for between in (",", " JOIN"))
REFUSED = {
    "SELECT COUNT(*) FROM orders JOIN (SELECT item FROM marks WHERE item IN (SELECT item FROM orders)) USING (item)": "IN_SUBQUERY",
    "SELECT COUNT(*) FROM orders JOIN (SELECT item FROM marks k WHERE EXISTS (SELECT 1 FROM orders o WHERE o.item = k.item)) USING (item)": "EXISTS",
    "SELECT COUNT(*) FROM orders JOIN (SELECT item FROM marks WHERE size > (SELECT AVG(amount) FROM orders)) USING (item)": "SCALAR_SUBQUERY",
    f"{N}WHERE item IN (SELECT item FROM marks WHERE item IN (SELECT item FROM marks WHERE item IN (SELECT item FROM orders)))": "IN_SUBQUERY",
    f"{N}WHERE item IN (SELECT item FROM marks k WHERE size > (SELECT MAX(size) FROM marks m WHERE m.side = k.side))": "CORRELATED_VALUE",
    f"{N}WHERE amount IN (SELECT size FROM marks WHERE size IN (SELECT a.x FROM {LISTS} WHERE a.x + b.x < 0))": "PUBLIC_TOO_LARGE",
    "SELECT COUNT(*) FROM orders JOIN (SELECT item, size / (SELECT MAX(size) FROM marks) AS r FROM marks) AS k USING (item)": "SCALAR_SUBQUERY",
    "SELECT COUNT(*) FROM orders JOIN (SELECT item, size FROM marks GROUP BY item) USING (item)": "NOT_GROUPED",
    "SELECT COUNT(*) FROM orders WHERE item IN (SELECT item FROM marks LIMIT 2)": "LIMIT_IN_SUBQUERY",
    "SELECT COUNT(*) FROM orders WHERE item IN (SELECT item FROM marks ORDER BY size LIMIT 2)": "ORDER_BY_IN_SUBQUERY",
    "SELECT COUNT(*) FROM orders WHERE item IN (SELECT item FROM marks ORDER BY random())": "ORDER_BY_IN_SUBQUERY",
    "SELECT COUNT(*) FROM orders JOIN (SELECT *, COUNT(*) FROM marks GROUP BY ALL) USING (item)": "STAR",
    "SELECT COUNT(*) FROM orders JOIN (SELECT item, FIRST(size) FROM marks GROUP BY item) USING (item)": "SCALAR_SUBQUERY",
    "SELECT COUNT(*) FROM orders JOIN (SELECT item, COUNT(*) OVER () AS n FROM marks) USING (item)": "WINDOW",
    "SELECT COUNT(*) FROM orders JOIN (SELECT item FROM marks GROUP BY item QUALIFY COUNT(*) > 1) USING (item)": "QUALIFY",
    "SELECT COUNT(*) FROM (SELECT user_id FROM orders ORDER BY user_id LIMIT 2)": "LIMIT_IN_SUBQUERY",
    "SELECT COUNT(*) FROM (SELECT user_id FROM orders JOIN marks USING (item) ORDER BY user_id)": "ORDER_BY_IN_SUBQUERY",
    f"{N}JOIN (SELECT a.x FROM {LISTS}) AS q ON q.x = amount": "PUBLIC_TOO_LARGE",
    f"{N}JOIN (SELECT a.x FROM {LISTED} ON a.x = b.x) AS q ON q.x = amount": "PUBLIC_TOO_LARGE",
    f"{N}JOIN (SELECT MAX(a.x) AS x FROM {LISTS}) AS q ON q.x = amount": "PUBLIC_TOO_LARGE",
    f"{N}WHERE amount IN (SELECT a.x FROM {LISTS} WHERE a.x + b.x < 0)": "PUBLIC_TOO_LARGE",
    f"{N}WHERE amount > (SELECT COUNT(*) FROM {LISTS})": "PUBLIC_TOO_LARGE",
    f"SELECT r.item FROM ({BY_ITEM}) AS r, {LISTS}": "PUBLIC_TOO_LARGE",
    f"SELECT r.item FROM (SELECT r.item FROM ({BY_ITEM}) AS r, UNNEST({[*range(4000)]})) AS r, UNNEST({[*range(4000)]})": "PUBLIC_TOO_LARGE",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("public_rows"), f"{TABLES}; {MARKS}", SCHEMA.replace("views:", f"{PUBLIC}views:"))


@pytest.fixture(scope="module")
def con(folder: Path) -> Iterator[dpquery.Connection]:
    with dpquery.connect(folder / "several.yaml") as found:
        yield found


@pytest.mark.parametrize("sql", [*ANSWERED, *NAMED, f"{N}WHERE item IN (SELECT MAX(item) FROM marks)"])
def test_without_noise_it_is_the_plain_engines_answer(con: dpquery.Connection, folder: Path, sql: str) -> None:
    agrees(con, folder, sql)


CHAINS = {"size > 2 = TRUE": "(size > 2) = TRUE", "1 = 1 = (size > 2)": "(1 = 1) = (size > 2)", "NOT 1 < 2 = TRUE": "NOT (1 < 2) = TRUE"}


@pytest.mark.parametrize("chain", CHAINS)
def test_comparisons_of_comparisons_reach_the_engine_in_parentheses(con: dpquery.Connection, folder: Path, chain: str) -> None:
    with duckdb.connect(str(folder / "several.duckdb"), read_only=True) as other:
        for sql in (f"{N}WHERE item IN (SELECT item FROM marks WHERE {{}})", "SELECT {} AS c FROM (SELECT COUNT(*) AS size FROM orders)"):
            assert con.query(sql.format(chain)).fetchall() == other.execute(sql.format(CHAINS[chain])).fetchall()


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_sound_is_refused(con: dpquery.Connection, sql: str) -> None:
    with pytest.raises(Refused) as refused:
        con.query(sql)
    assert refused.value.code == REFUSED[sql]
