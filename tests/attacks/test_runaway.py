"""Statements made to use up time or memory: each is refused in constant words before the charge, answered within the limits, or stopped at them,
charged, with a constant error; the process lives, and the next question is answered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import people
import pytest

from dpquery.engine.session import Session
from dpquery.errors import Error

MEMORY = 200  # MB
TABLES = """
tables:
  people: {unit: pid, max_rows_per_unit: 1, columns: {pid: {type: integer}}}
  visits: {unit: pid, columns: {pid: {type: integer}, x: {type: integer, lower: 0, upper: 9}, s: {type: string}}}
  codes: {public: true, columns: {code: {type: integer}, x: {type: integer}}}
"""
TERMS = f"""
budget: {{epsilon: 1000, delta: 1e-6}}
per_query: {{epsilon: 1, delta: 1e-9}}
contribution: {{max_groups_contributed: 4, max_rows_per_group: 10}}
limits: {{timeout: 1, memory: {MEMORY}MB, threads: 1, timeouts_per_account: 100}}
"""
DATA = """
CREATE TABLE people AS SELECT i::INT AS pid FROM range(100) t(i);
CREATE TABLE visits AS SELECT (i % 100)::INT AS pid, (i % 10)::INT AS x, repeat('SECRET', 10) || i AS s FROM range(20000) t(i);
CREATE TABLE codes AS SELECT i::INT AS code, (i % 10)::INT AS x FROM range(20000) t(i);
"""
COUNT = "SELECT count(*) FROM people"


def doubled(times: int) -> str:
    inner = "SELECT pid, s FROM visits"
    for _ in range(times):
        inner = f"SELECT pid, s || s AS s FROM ({inner})"
    return f"SELECT s, count(*) FROM ({inner}) GROUP BY s"


def nested(text: str, times: int) -> str:
    return f"SELECT count(*) FROM visits WHERE {'replace(' * times}s{f', {text!r}, {text * 4!r})' * times} = 'x'"


READ = {
    "repetitions of repetitions": ("SELECT count(*) FROM visits WHERE regexp_matches(s, '((a{99}){99}){99}')", "TOO_COMPLEX"),
    "a pattern of the row": ("SELECT count(*) FROM visits WHERE regexp_matches(s, s)", "LITERAL_NEEDED"),
    "many patterns": ("SELECT count(*) FROM visits WHERE " + " OR ".join(f"s ~ 'a.{{{i}}}b'" for i in range(40)), "TOO_COMPLEX"),
    "matches replaced by long texts": (f"SELECT count(*) FROM visits WHERE regexp_replace(s, '.', '{'S' * 20}', 'g') = 'x'", "TOO_COMPLEX"),
    "a text that is repeated": ("SELECT count(*) FROM visits WHERE repeat(s, 1000000000) = 'x'", "FUNCTION_NOT_ALLOWED"),
    "a text that is filled up": ("SELECT count(*) FROM visits WHERE lpad(s, 1000000000, 'x') = 'x'", "FUNCTION_NOT_ALLOWED"),
    "texts gathered": ("SELECT string_agg(s) FROM visits", "STRING_AGG"),
    "texts gathered in a list": ("SELECT list(s) FROM visits", "ARRAY_AGG"),
    "nested brackets": (f"SELECT count(*) FROM visits WHERE {'(' * 5000}x{')' * 5000} = 1", "TOO_COMPLEX"),
    "nested queries": (f"SELECT count(*) FROM {'(SELECT * FROM ' * 200}visits{')' * 200}", "TOO_COMPLEX"),
    "columns": (f"SELECT {', '.join(f'sum(x + {i})' for i in range(100_000))} FROM visits", "TOO_LONG"),
    "columns of one aggregate": (f"SELECT {', '.join(['count(*)'] * 9_000)} FROM visits", "TOO_COMPLEX"),
    "a list": (f"SELECT count(*) FROM visits WHERE x IN ({', '.join(map(str, range(100_000)))})", "TOO_LONG"),
    "conditions": (f"SELECT count(*) FROM visits WHERE {' OR '.join(f'x = {i}' for i in range(5_000))}", "TOO_COMPLEX"),
    "a product with a public table": ("SELECT count(*) FROM visits, codes a", "FANOUT"),
    "partners that nothing equals": ("SELECT count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM codes c WHERE c.code > v.x)", "FANOUT"),
    "no such partners": ("SELECT count(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM codes c WHERE c.code > v.x)", "FANOUT"),
    "a join without such partners": ("SELECT count(*) FROM visits v ANTI JOIN codes c ON c.code > v.x", "FANOUT"),
    "a product of private tables": ("SELECT count(*) FROM visits a, visits b", "JOIN_ON_UNIT"),
    "a window over rows": ("SELECT row_number() OVER (ORDER BY s) FROM visits", "WINDOW"),
    "a generator": ("SELECT count(*) FROM range(1000000000000)", "TABLE_FUNCTION"),
    "a recursion": ("WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t", "RECURSIVE"),
}
RUN = {
    "texts doubled": doubled(20),
    "texts replaced by longer ones": nested("S", 3),
    "a long list": f"SELECT count(*) FROM visits WHERE x NOT IN ({', '.join(map(str, range(10, 10_000)))})",
    "many sums": f"SELECT {', '.join(f'sum(x + {i}, contribution_bounds_per_row => (0, {i + 9}))' for i in range(150))} FROM visits",
    "large keys": "SELECT s || s AS k, count(*) FROM visits GROUP BY k",
    "a join": "SELECT count(*) FROM visits a JOIN visits b USING (pid) JOIN visits c USING (pid) WHERE a.s || b.s <> c.s",
    "keys of a join": "SELECT a.s || b.s AS k, count(*) FROM visits a JOIN visits b USING (pid) GROUP BY k",
    "regular expressions": "SELECT count(*) FROM visits WHERE s || s || s ~ '^(S|[^x])*E.{60}!' OR s SIMILAR TO '(([A-Z]+)+)+!'",
    "patterns of rows": "SELECT count(*) FROM visits WHERE s LIKE '%' || replace(s, 'R', '%_') || '!'",
    "patterns": f"SELECT count(*) FROM visits WHERE s LIKE '{'%S_' * 40}%!'",
    "a window above the noise": "SELECT code, sum(count(*)) OVER (ORDER BY code ROWS BETWEEN 5000 PRECEDING AND 5000 FOLLOWING) FROM "
    "(SELECT v.pid, c.code FROM visits v JOIN codes c USING (x) WHERE c.code < 9000) GROUP BY code",
}
ENDS = ("ENGINE_TIMEOUT", "ENGINE_MEMORY")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with people.opened(people.made(tmp_path_factory.mktemp("runaway"), DATA, TABLES, TERMS)) as (session,):
        yield session


def asked(session: Session, sql: str) -> str:
    """How the statement ends: "" for an answer, else the code of a constant error."""
    try:
        session.query(sql)
        error = None
    except Error as raised:
        error = raised
    assert error is None or "SECRET" not in f"{error} {error.as_dict()}"
    return "" if error is None else error.code


@pytest.mark.parametrize("name", READ)
def test_it_is_refused_when_it_is_read(name: str, session: Session) -> None:
    sql, code = READ[name]
    before = session.budget().entries
    found = asked(session, sql)
    assert found == code
    assert session.budget().entries == before


def most(pid: int) -> int:
    """The most memory that a process has had, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


@pytest.mark.parametrize("name", RUN)
def test_it_ends_within_the_limits(name: str, session: Session) -> None:
    """What it may use: the time limit, an engine's memory and what the process has besides."""
    before, timeouts = session.budget().entries, session.budget().timeouts
    found = asked(session, RUN[name])
    print(name, found or "answered")
    assert found in ("", *ENDS)
    assert (session.budget().entries, session.budget().timeouts) == (before + 1, timeouts + (found in ENDS))
    assert asked(session, COUNT) == ""
    assert most(session.backend._worker.pid) < (MEMORY + 800) * 10**6  # type: ignore[attr-defined]
