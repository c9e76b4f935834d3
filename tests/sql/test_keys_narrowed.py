"""Public lists of keys hold no group that public conditions leave out, however these are written: without noise the answer is plain SQL's."""

from __future__ import annotations

from pathlib import Path

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
TERMS = people.NOISELESS.replace("max_rows_per_group: 20", "max_rows_per_group: 1000").replace(
    "max_groups_contributed: 5", "max_groups_contributed: 50"
)
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
    *(f"SELECT dept, count(*) AS n FROM visits JOIN doctors USING (doctor) WHERE {one} GROUP BY dept ORDER BY dept" for one in CONDITIONS),
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
)


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("narrowed"), DATA, TABLES, TERMS, name="narrowed")


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_groups_are_those_of_plain_sql(sql: str, opened: Session, schema: Path) -> None:
    people.agrees(opened, schema, sql)


def test_what_is_released_first_narrows_no_list_and_a_word_says_so(opened: Session) -> None:
    below = "SELECT dept, count(*) AS n FROM visits JOIN doctors USING (doctor) WHERE fee > (SELECT count(*) FROM visits) - 170 GROUP BY dept"
    found = opened.query(f"SELECT arg_min(dept, n) FROM ({below})")
    assert any("is not narrowed by values that the statement releases first" in one for one in found.warnings)
