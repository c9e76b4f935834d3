"""Windows within a unit that has equal rows: without noise the answer is the plain engine's to the same text, as windows share one order of ties."""

from __future__ import annotations

from pathlib import Path

import people
import pytest

from dpquery.engine.session import Session
from dpquery.errors import Refused

DATA = """
CREATE TABLE v(u INT, d INT, x INT);
INSERT INTO v VALUES (1, 1, 10), (1, 1, 10), (2, 1, 30), (2, 1, 10), (2, 1, 20), (3, 2, 5), (3, 1, 5), (3, 1, 5), (3, 1, NULL), (3, NULL, 7);
CREATE TABLE w AS SELECT u, d, x::DOUBLE AS x, (x / 4)::DECIMAL(9, 2) AS y, DATE '2024-01-01' + x AS t FROM v WHERE x IS NOT NULL;
"""
TABLES = """
tables:
  v:
    unit: u
    columns: {u: {type: integer}, d: {type: integer}, x: {type: integer, lower: 0, upper: 100}}
  w:
    unit: u
    columns: {u: {type: integer}, d: {type: integer}, x: {type: float, lower: 0, upper: 100}, y: {type: decimal, lower: 0, upper: 25, step: 0.01},
      t: {type: date}}
"""
OVER = "WINDOW w AS (PARTITION BY u ORDER BY d)"
F, B = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"
ALL = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
BY_D = "PARTITION BY u ORDER BY d"
STATEMENTS = (  # whatever the order of ties, if windows share it
    "SELECT SUM(y) AS s, COUNT(y) AS n FROM (SELECT u, LAG(x, 1, 7) OVER (PARTITION BY u ORDER BY d) AS y FROM v WHERE u = 1)",
    "SELECT SUM(y) AS s, COUNT(y) AS n FROM (SELECT u, LAG(x, 1, NULL) OVER (PARTITION BY u ORDER BY d) AS y FROM v WHERE u = 1)",
    "SELECT SUM(y) AS s, COUNT(y) AS n FROM (SELECT u, LEAD(x, 1, 7) OVER (PARTITION BY u ORDER BY d DESC) AS y FROM v WHERE u = 1)",
    "SELECT SUM(y) AS s, COUNT(y) AS n FROM (SELECT u, LAG(x, 2, x) OVER (PARTITION BY u) AS y FROM v WHERE u = 1)",
    "SELECT SUM(y) AS s, COUNT(y) AS n FROM (SELECT u, LAG(c, 1, 7) OVER (PARTITION BY u ORDER BY d) AS y"
    " FROM (SELECT u, d, x, COUNT(*) AS c FROM v GROUP BY u, d, x))",
    f"SELECT COUNT(a) AS n FROM (SELECT u, LAG(x) OVER w AS a, ROW_NUMBER() OVER w AS r FROM v {OVER}) WHERE r = 1",
    f"SELECT COUNT(a) AS n FROM (SELECT u, LEAD(x) OVER w AS a FROM v WHERE x > 0 {OVER}"
    " QUALIFY ROW_NUMBER() OVER w = COUNT(*) OVER (PARTITION BY u))",
    f"SELECT COUNT(*) AS n FROM (SELECT u, d, x, ROW_NUMBER() OVER w AS r, SUM(1) OVER (w {F}) AS s FROM v {OVER}) WHERE r = s",
    f"SELECT COUNT(*) AS n FROM (SELECT u, LAG(x, 1, -1) OVER w AS a, LEAD(x, 1, -1) OVER w AS b, ROW_NUMBER() OVER w AS r FROM v {OVER})"
    " WHERE (a = -1) = (r = 1) AND (u <> 1 OR (b = -1) = (r = 2))",
    f"SELECT COUNT(*) AS n FROM (SELECT u, SUM(x) OVER ({BY_D} {F}) AS f, SUM(x) OVER ({BY_D} {B}) AS b, x FROM v) WHERE f + b - x = 60",
    f"SELECT COUNT(*) AS n FROM (SELECT u, COUNT(*) OVER ({BY_D} {F}) AS f, COUNT(*) OVER ({BY_D} {B}) AS b FROM v) WHERE f + b = 4",
    f"SELECT COUNT(*) AS n FROM (SELECT u, LAST_VALUE(x) OVER ({BY_D} {ALL}) AS l, ROW_NUMBER() OVER ({BY_D}) AS r, x FROM v WHERE u = 2)"
    " WHERE r = 3 AND l = x",
    f"SELECT COUNT(*) AS n FROM (SELECT u, FIRST_VALUE(x) OVER (PARTITION BY u) AS l, LAST_VALUE(x) OVER (PARTITION BY u {ALL}) AS m FROM v"
    " WHERE u = 2) WHERE l = m",
    f"SELECT COUNT(*) AS n FROM (SELECT u, SUM(x) OVER ({BY_D} ROWS 1 PRECEDING) AS two, LAG(x) OVER ({BY_D}) AS one, x FROM v WHERE u = 2)"
    " WHERE two = x + COALESCE(one, 0)",
    f"SELECT SUM(k) AS k, SUM(c) AS c FROM (SELECT u, RANK() OVER w AS k, COUNT(*) OVER w AS c, ROW_NUMBER() OVER w AS r FROM v {OVER})",
    "SELECT SUM(y) AS s, COUNT(y) AS n FROM (SELECT u, LAG(y, 1, 2) OVER (PARTITION BY u ORDER BY d) AS y FROM w WHERE u = 1)",
    "SELECT SUM(x) AS s, COUNT(x) AS n FROM (SELECT u, LAG(x, 1, 2.5) OVER (PARTITION BY u ORDER BY d) AS x FROM w WHERE u = 1)",
    "SELECT COUNT(*) AS n FROM (SELECT u, LAG(t, 1, '2020-01-01') OVER (PARTITION BY u ORDER BY d) AS a FROM w) WHERE a < DATE '2021-01-01'",
    "SELECT SUM(y) AS s FROM (SELECT u, LAG(x, 1, CAST(2.5 AS INTEGER)) OVER (PARTITION BY u ORDER BY d) AS y FROM v WHERE u = 1)",
)
CHANGED = (("v", "x", "2.5", "integer"), ("w", "y", "2.555", r"decimal\(38,2\)"), ("w", "t", "TIMESTAMP '2020-01-01 10:00:00'", "date"))


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("windows"), DATA, TABLES, name="windows")


@pytest.mark.parametrize("sql", STATEMENTS)
def test_without_noise_windows_over_equal_rows_are_the_plain_engines(sql: str, opened: Session, schema: Path) -> None:
    people.agrees(opened, schema, sql)


@pytest.mark.parametrize(("table", "column", "default", "kind"), CHANGED)
def test_a_default_that_engines_would_change_is_refused(table: str, column: str, default: str, kind: str, opened: Session) -> None:
    sql = f"SELECT COUNT(y) FROM (SELECT u, LAG({column}, 1, {default}) OVER (PARTITION BY u ORDER BY d) AS y FROM {table})"
    with pytest.raises(Refused, match=f"the default is no value of the column's type, {kind}") as told:
        opened.query(sql)
    assert told.value.code == "TYPE_MISMATCH"
