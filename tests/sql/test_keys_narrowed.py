"""Public lists of keys hold no group that public conditions leave out, however these are written: without noise the answer is plain SQL's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import people
import pytest

from dpquery.engine.session import Session

DATA = """
CREATE TABLE visits AS SELECT i::INT AS visit, (i % 20)::INT AS pid, 'd' || i % 12 AS doctor, (i // 12 % 4)::INT AS room,
  ['x', 'y', 'z'][1 + i // 48 % 3] AS kind FROM range(240) t(i);
CREATE TABLE doctors AS SELECT 'd' || i AS doctor, 'p' || i % 5 AS dept, (40 + 5 * i)::INT AS fee, (i % 3)::INT AS floor FROM range(12) t(i);
CREATE TABLE depts AS SELECT 'p' || i AS dept, (i % 2)::INT AS floor, 60 + i AS price FROM range(5) t(i);
CREATE TABLE rooms AS SELECT i::INT AS room, (i % 3)::INT AS floor, 'w' || i AS wing FROM range(4) t(i);
CREATE TABLE kinds AS SELECT * FROM (VALUES ('x', 1), ('y', 2), (NULL, 3)) t(kind, n);
"""
TABLES = """
tables:
  visits:
    unit: pid
    columns:
      visit: {type: integer, unique: true}
      pid: {type: integer}
      doctor: {type: string}
      room: {type: integer, lower: 0, upper: 3}
      kind: {type: string, values: [x, y, z]}
  doctors: {public: true, columns: {doctor: {type: string}, dept: {type: string}, fee: {type: integer}, floor: {type: integer}}}
  depts: {public: true, columns: {dept: {type: string}, floor: {type: integer}, price: {type: integer}}}
  rooms: {public: true, columns: {room: {type: integer}, floor: {type: integer}, wing: {type: string}}}
  kinds: {public: true, columns: {kind: {type: string}, n: {type: integer}}}
"""
FLOOR = "SELECT dept FROM depts WHERE floor = 0"
CONDITIONS = (
    f"dept IN ({FLOOR})",
    f"dept NOT IN ({FLOOR})",
    f"NOT dept IN ({FLOOR})",
    f"dept = ANY ({FLOOR})",
    f"dept IN ({FLOOR}) OR fee > 90",
    f"CASE WHEN dept IN ({FLOOR}) THEN fee > 70 ELSE fee > 93 END",
    "EXISTS (SELECT 1 FROM depts WHERE depts.dept = doctors.dept AND depts.floor = 0)",
    "NOT EXISTS (SELECT 1 FROM depts WHERE depts.dept = doctors.dept AND depts.floor = 0)",
    "EXISTS (SELECT 1 FROM depts WHERE depts.dept = doctors.dept AND depts.price < doctors.fee - 25)",
    "EXISTS (SELECT 1 FROM depts WHERE floor > 5)",
    "(dept, fee) IN (SELECT dept, price + 14 FROM depts)",
    "(dept, fee) IN (SELECT dept, fee FROM doctors WHERE fee > 85)",
    "fee > (SELECT avg(fee) + 20 FROM doctors)",
    "fee >= ALL (SELECT fee - 10 FROM doctors)",
    "fee > ANY (SELECT price + 30 FROM depts)",
    "dept = (SELECT min(dept) FROM depts)",
    "fee > (SELECT max(price) + 15 FROM depts WHERE depts.dept = doctors.dept)",
    "fee BETWEEN (SELECT min(fee) FROM doctors) AND (SELECT min(price) FROM depts) - 10",
    "(SELECT count(*) FROM depts) > 7",
    "visits.doctor IN (SELECT doctor FROM doctors WHERE fee > 80)",
    "visits.doctor NOT IN (SELECT doctor FROM doctors WHERE fee > 60)",
    f"visits.doctor IN (SELECT doctor FROM doctors JOIN depts USING (dept) WHERE price > 63) AND dept IN ({FLOOR})",
)


STATEMENTS = (
    *(f"SELECT dept, count(*) AS n FROM visits JOIN doctors USING (doctor) WHERE {one} GROUP BY dept ORDER BY dept" for one in CONDITIONS[::6]),
    "SELECT doctor, count(*) AS n FROM visits JOIN doctors USING (doctor) WHERE doctor IN (SELECT doctor FROM doctors WHERE fee > 80)"
    " GROUP BY doctor ORDER BY doctor",
    "SELECT d.dept, count(*) AS n FROM visits JOIN doctors d USING (doctor) SEMI JOIN (SELECT * FROM depts WHERE floor = 0) e ON d.dept = e.dept"
    " GROUP BY d.dept ORDER BY d.dept",
    "SELECT d.dept, count(*) AS n FROM visits JOIN doctors d USING (doctor) ANTI JOIN (SELECT * FROM depts WHERE floor = 0) e ON d.dept = e.dept"
    " GROUP BY d.dept ORDER BY d.dept",
    f"SELECT dept, fee, count(*) AS n FROM visits JOIN doctors USING (doctor) WHERE dept IN ({FLOOR}) AND fee > (SELECT avg(fee) FROM doctors)"
    " GROUP BY dept, fee ORDER BY dept, fee",
    "SELECT dept, wing, count(*) AS n FROM visits JOIN doctors USING (doctor) JOIN rooms USING (room) WHERE doctors.floor = rooms.floor"
    " AND wing NOT IN (SELECT 'w' || floor FROM depts) GROUP BY dept, wing ORDER BY dept, wing",
    f"SELECT dept, kind, count(*) AS n FROM visits JOIN doctors USING (doctor) WHERE dept IN ({FLOOR}) AND kind IN (SELECT kind FROM kinds)"
    " GROUP BY dept, kind ORDER BY dept, kind",
    "SELECT kind, count(*) AS n FROM visits WHERE kind NOT IN (SELECT kind FROM kinds WHERE n < 2) GROUP BY kind ORDER BY kind",
    "SELECT kind, count(*) AS n FROM visits WHERE kind IN (SELECT kind FROM kinds WHERE n < 2) OR kind = 'z' GROUP BY kind ORDER BY kind",
    "SELECT kind, count(*) AS n FROM visits WHERE NOT EXISTS (SELECT 1 FROM kinds WHERE kinds.kind = visits.kind) GROUP BY kind ORDER BY kind",
    "SELECT room, count(*) AS n FROM visits WHERE room > (SELECT min(floor) FROM rooms) GROUP BY room ORDER BY room",
    "SELECT room * 10 AS r, count(*) AS n FROM visits WHERE room NOT IN (SELECT floor FROM rooms WHERE room < 2) GROUP BY r ORDER BY r",
    "SELECT CASE WHEN room < 2 THEN 'low' ELSE 'high' END AS level, count(*) AS n FROM visits"
    " WHERE CASE WHEN room < 2 THEN 'low' ELSE 'high' END <> (SELECT max('low') FROM rooms) GROUP BY level ORDER BY level",
    f"SELECT dept, avg(n) AS a FROM (SELECT pid, dept, count(*) AS n FROM visits JOIN doctors USING (doctor) WHERE dept IN ({FLOOR}) AND fee > 45"
    " GROUP BY pid, dept) GROUP BY dept ORDER BY dept",
    f"SELECT dept, count(*) AS n FROM (SELECT pid, dept FROM visits JOIN doctors USING (doctor) WHERE dept IN ({FLOOR})) a"
    " JOIN (SELECT DISTINCT pid FROM visits) b USING (pid) GROUP BY dept ORDER BY dept",
    f"WITH w AS (SELECT * FROM visits JOIN doctors USING (doctor) WHERE dept NOT IN ({FLOOR})) SELECT dept, count(*) AS n FROM w GROUP BY dept"
    " ORDER BY dept",
    f"SELECT arg_min(dept, n) FROM (SELECT dept, count(*) AS n FROM visits JOIN doctors USING (doctor) WHERE dept NOT IN ({FLOOR}) GROUP BY dept)",
    "SELECT arg_min(dept, n) FROM (SELECT dept, count(*) AS n FROM visits JOIN doctors USING (doctor)"
    " WHERE fee > (SELECT max(fee) - 1 FROM doctors) GROUP BY dept)",
    f"SELECT arg_min(dept, n) FROM (SELECT dept, count(*) AS n FROM visits JOIN doctors USING (doctor) WHERE dept IN ({FLOOR} AND dept <> 'p4')"
    " GROUP BY dept)",
    "SELECT arg_min(dept, n) FROM (SELECT d.dept, count(*) AS n FROM visits JOIN doctors d USING (doctor) ANTI JOIN depts e"
    " ON d.dept = e.dept AND e.floor = 0 GROUP BY d.dept)",
    "SELECT arg_max(dept, n) FROM (SELECT d.dept, -sum(room) AS n FROM visits JOIN doctors d USING (doctor) SEMI JOIN"
    " (SELECT * FROM depts WHERE floor = 0 AND dept <> 'p4') e ON d.dept = e.dept GROUP BY d.dept)",
    "SELECT arg_max(dept, n) FROM (SELECT dept, -count(*) AS n FROM visits JOIN doctors USING (doctor) WHERE EXISTS"
    " (SELECT 1 FROM depts WHERE depts.dept = doctors.dept AND floor = 1) GROUP BY dept)",
)
COMPUTED = (  # what lists the keys is said of a column that is computed below
    "SELECT c, count(*) AS n FROM (SELECT pid, room + 1 - 1 AS c FROM visits) WHERE c IN (1, 2) GROUP BY c ORDER BY c",
    "SELECT c, count(*) AS n FROM (SELECT pid, CASE WHEN room > 9 THEN 0 ELSE 1 END + 1 AS c FROM visits) WHERE c = 2 GROUP BY c ORDER BY c",
    f"SELECT c, count(*) AS n FROM (SELECT pid, dept, dept || 'x' AS c FROM visits JOIN doctors USING (doctor)) WHERE dept IN ({FLOOR})"
    " AND c IN ('p0x', 'p4x') GROUP BY c ORDER BY c",
    "SELECT c // 2 AS h, count(*) AS n FROM (SELECT pid, room + 1 - 1 AS c FROM visits) WHERE c BETWEEN 0 AND 3 GROUP BY h ORDER BY h",
    "SELECT c, count(*) AS n FROM (SELECT pid, abs(room) AS c FROM visits WHERE room NOT IN (SELECT floor FROM rooms WHERE room < 2))"
    " WHERE c IN (2, 3) GROUP BY c ORDER BY c",
)
LISTS = tuple(  # of no row at all, so that the answer is the list alone, and what it is by plain SQL on the public tables
    (f"SELECT dept FROM visits JOIN doctors USING (doctor) WHERE {one} GROUP BY dept", f"SELECT dept FROM doctors WHERE {one} GROUP BY dept")
    for one in (one.replace("visits.", "") for one in CONDITIONS)
)


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("narrowed"), DATA, TABLES, people.ROOMY, name="narrowed")


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_groups_are_those_of_plain_sql(sql: str, opened: Session, schema: Path) -> None:
    people.agrees(opened, schema, sql)


@pytest.mark.parametrize("sql", COMPUTED)
def test_no_list_is_lost_that_stands_in_the_words_of_a_computed_column(sql: str, opened: Session, schema: Path) -> None:
    people.agrees(opened, schema, sql)
    weighed = sql.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed = 500)", 1)
    assert people.rows(opened, weighed) == people.rows(opened, sql)  # refused where no public list of the keys is known


@pytest.fixture(scope="module")
def nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    emptied = people.made(tmp_path_factory.mktemp("nobody"), DATA + "DELETE FROM visits;", TABLES, people.ROOMY, name="nobody")
    with people.opened(emptied) as (session,):
        yield session


@pytest.mark.parametrize(("sql", "plain"), LISTS)
def test_the_list_is_of_the_public_tables_alone(sql: str, plain: str, nobody: Session, schema: Path) -> None:
    with duckdb.connect(str(schema.with_suffix(".duckdb")), read_only=True) as con:
        assert sorted(people.rows(nobody, sql)) == sorted(con.execute(plain).fetchall())


def test_columns_that_read_one_another_twice_are_not_written_out(opened: Session) -> None:
    below = "SELECT pid, room AS c0 FROM visits"
    for i in range(24):
        below = f"SELECT pid, c{i} + c{i} AS c{i + 1} FROM ({below})"
    assert people.rows(opened, f"SELECT c24, count(*) AS n FROM ({below}) WHERE c24 IN (0, 16777216) GROUP BY c24 ORDER BY c24") == [
        (0, 60),
        (16777216, 60),
    ]


def test_what_is_released_first_narrows_no_list_and_a_word_says_so(opened: Session) -> None:
    below = "SELECT dept, count(*) AS n FROM visits JOIN doctors USING (doctor) WHERE fee > (SELECT count(*) FROM visits) - 170 GROUP BY dept"
    found = opened.query(f"SELECT arg_min(dept, n) FROM ({below})")
    assert any("is not narrowed by values that the statement releases first" in one for one in found.warnings)
