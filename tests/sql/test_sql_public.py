"""Public relations: the SQL made for them gives the rows of the relation as written."""

# ruff: noqa: E501 (statements are kept whole)

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from sql_shop import ask

from dpquery.plan.rel import Lookup, Public, walk

DATA = """
CREATE TABLE countries(country VARCHAR, region VARCHAR, people BIGINT, secret INT);
INSERT INTO countries VALUES ('US', 'AM', 330, 1), ('DE', 'EU', 80, 2), ('FR', 'EU', 60, 3), ('DE', 'EU', 80, 4), (NULL, NULL, NULL, 5);
CREATE TABLE regions(region VARCHAR, boss VARCHAR);
INSERT INTO regions VALUES ('AM', 'Ann'), ('EU', 'Eva'), ('EU', 'Ed'), ('AS', 'Ada');
CREATE TABLE days("day" TIMESTAMP, holiday VARCHAR);
INSERT INTO days VALUES ('2024-01-01 00:00:00', 'true'), ('2024-05-06 00:00:00', 'no'), ('2024-01-03 00:00:00', 'x');
"""


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute(DATA)
        yield made


def public(sql: str) -> Public:
    (found,) = [rel.public for rel in walk(ask(sql).blocks[0].draft.input) if isinstance(rel, Lookup)]
    return found


def rows(con: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    return sorted(repr(row) for row in con.execute(sql).fetchall())


# the relation as joined to users, and the same in plain DuckDB
CASES = [
    ("countries", "SELECT country, region, people FROM countries"),
    ("(SELECT * FROM countries)", "SELECT country, region, people FROM countries"),
    ("(SELECT DISTINCT country, region FROM countries WHERE people > 70)", "SELECT DISTINCT country, region FROM countries WHERE people > 70"),
    ("(SELECT country, UPPER(region) || '!' AS r, people * 2 + 1 FROM countries)", "SELECT country, UPPER(region) || '!', people * 2 + 1 FROM countries"),
    ("(SELECT x.a AS country FROM (SELECT country AS a, people AS b FROM countries) x WHERE x.b BETWEEN 60 AND 90 AND NOT x.a IS NULL)",
     "SELECT country FROM countries WHERE people BETWEEN 60 AND 90 AND country IS NOT NULL"),
    ("(SELECT country, boss FROM countries JOIN regions USING (region))", "SELECT country, boss FROM countries JOIN regions USING (region)"),
    ("(SELECT country, boss FROM countries c LEFT JOIN regions r ON c.region = r.region AND r.boss LIKE 'E%')",
     "SELECT country, boss FROM countries c LEFT JOIN regions r ON c.region = r.region AND r.boss LIKE 'E%'"),
    ("(SELECT country, boss, region FROM countries c RIGHT JOIN regions r USING (region))", "SELECT country, boss, region FROM countries RIGHT JOIN regions USING (region)"),
    ("(SELECT country, boss FROM countries CROSS JOIN regions)", "SELECT country, boss FROM countries CROSS JOIN regions"),
    ("(SELECT country, boss FROM countries c, regions r WHERE c.region = r.region)", "SELECT country, boss FROM countries c, regions r WHERE c.region = r.region"),
    ("(SELECT country, boss FROM countries NATURAL JOIN regions)", "SELECT country, boss FROM countries NATURAL JOIN regions"),
    ("places", "SELECT country, boss FROM countries JOIN regions USING (region)"),
    ("(SELECT country, width_bucket(people, 61, 330, 2) AS b, width_bucket(people - 200, -120.5, 100, 4) AS n FROM countries)",
     "SELECT country, CASE people WHEN 60 THEN 0 WHEN 80 THEN 1 WHEN 330 THEN 3 END, CASE people WHEN 60 THEN 0 WHEN 80 THEN 1 WHEN 330 THEN 5 END FROM countries"),
    ("(SELECT country, CASE WHEN people > 70 THEN 'big' ELSE 'small' END AS size, region = 'EU' AS eu FROM countries)",
     "SELECT country, CASE WHEN people > 70 THEN 'big' ELSE 'small' END, region = 'EU' FROM countries"),
    ("(SELECT country, DATE '2024-05-06' AS d FROM countries WHERE CURRENT_DATE = DATE '2024-05-06')", "SELECT country, DATE '2024-05-06' FROM countries"),
    ("(SELECT country FROM countries WHERE country IN ('US', 'it''s', '\\'))", "SELECT country FROM countries WHERE country = 'US'"),
    ("(SELECT country, people % (people - 80) AS a, 1 / (people / (people - 80)) AS b, coalesce(people // 0, 7) AS c FROM countries)",
     "SELECT country, people % nullif(people - 80, 0), 1 / nullif(people / nullif(people - 80, 0), 0), 7 FROM countries"),
    ("(SELECT country, sqrt(60 - people) AS a, CAST(country AS INTEGER) AS b FROM countries WHERE ln(people - 60) > 1 OR people >= 60)",
     "SELECT country, CASE WHEN people = 60 THEN 0.0::DOUBLE END, NULL FROM countries WHERE people >= 60"),
    ("(SELECT country, log(people - 79, 7) AS a, log(people - 80, 7) AS b, power(people - 80, -1) AS c, power(people, 0) AS d FROM countries WHERE people = 80)",
     "SELECT 'DE', NULL, NULL, NULL, 1.0::DOUBLE FROM range(2)"),
    ("(SELECT country, people // 2 AS half, 100 - half AS b FROM countries)", "SELECT country, people // 2, 100 - people // 2 FROM countries"),
    ("(WITH w AS (SELECT country FROM countries) SELECT a.country FROM w a JOIN w b ON a.country = b.country)",
     "SELECT a.country FROM countries a JOIN countries b ON a.country = b.country"),
]  # fmt: skip


@pytest.mark.parametrize(("relation", "plain"), CASES)
def test_same_rows_as_written(con: duckdb.DuckDBPyConnection, relation: str, plain: str) -> None:
    made = public(f"SELECT COUNT(*) FROM users JOIN {relation} AS z USING (country)")
    assert [column[0] for column in con.execute(made.sql).description or ()] == [f"c{i}" for i in range(len(made.columns))]
    assert rows(con, made.sql) == rows(con, plain)


def test_a_table_has_its_physical_name_and_its_declared_types(con: duckdb.DuckDBPyConnection) -> None:
    made = public("SELECT COUNT(*) FROM orders JOIN calendar USING (day)")
    assert [str(column.type) for column in made.columns] == ["date", "boolean"]
    assert [str(kind) for kind in con.sql(made.sql).types] == ["DATE", "BOOLEAN"]
    assert rows(con, made.sql) == rows(con, "SELECT CAST(day AS DATE), TRY_CAST(holiday AS BOOLEAN) FROM days")


def test_what_is_not_declared_is_not_read(con: duckdb.DuckDBPyConnection) -> None:
    assert "secret" not in public("SELECT COUNT(*) FROM users JOIN countries USING (country)").sql


def test_two_references_are_two_relations() -> None:
    sql = "SELECT COUNT(*) FROM users u JOIN countries a ON u.country = a.country JOIN countries b ON u.city = b.country"
    found = [rel.public for rel in walk(ask(sql).blocks[0].draft.input) if isinstance(rel, Lookup)]
    assert len({one.name for one in found}) == 2
    assert len({column.id for one in found for column in one.columns}) == 6
    assert all(column.public == one.name for one in found for column in one.columns)


def test_the_text_depends_on_the_statement_alone() -> None:
    sql = "SELECT COUNT(*) FROM users JOIN places USING (country)"
    assert ask(sql) == ask(sql)
