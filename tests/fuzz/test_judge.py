"""What the fuzzer would say if dpquery were broken: each of its checks fails here once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import duckdb
import judged
import pytest
import texts
from fuzzer import again, run, smaller
from grounds import Ground, ground
from judged import Hang, Judge, judge

from dpquery.backends.process import fault
from dpquery.errors import Refused
from dpquery.release import post
from dpquery.sql import lift

COUNT = "SELECT country, count(*) FROM users GROUP BY country"


@pytest.fixture(scope="module")
def base() -> Iterator[Judge]:
    with judge(ground("base")) as made:
        yield made


def test_what_is_right_passes(base: Judge) -> None:
    assert base.outcome(COUNT, "duckdb", run=True)[0] == "answered"
    assert base.outcome("SELECT * FROM users", "duckdb", run=True)[0] == "RAW_ROWS"
    base.check_untouched()


# ---- texts ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["SELECT 1; SELECT 2", "COPY users TO 'x'", "PRAGMA version", "SET threads = 1", "ATTACH 'x'", "EXPLAIN SELECT 1", "CREATE TABLE z AS SELECT 1"],
)
def test_what_is_not_one_select(text: str) -> None:
    with pytest.raises(AssertionError):
        texts.shape(duckdb.connect(), text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "SELECT u FROM users",
            "SELECT u FROM data.main.other",
            "SELECT u FROM 'x.csv'",
            "SELECT u FROM read_csv('x')",
            "SELECT u FROM unnest([1]) r(u)",
        ),
        *(
            "SELECT getenv('HOME') AS u",
            "SELECT main.lower('a') AS u",
            "SELECT random() AS u",
            "SELECT nextval('s') AS u",
            "SELECT current_user AS u",
        ),
        *("SELECT t.hidden FROM data.main.users AS t", "SELECT user_id FROM data.main.users", "SELECT CURRENT_DATE AS u", "SELECT $1 AS u"),
        *("SELECT (SELECT max(c0) FROM secret.main.x) AS u", "SELECT list_transform([1], x -> x) AS u", "SELECT u FROM data.main.duckdb_tables"),
        "WITH r1 AS (SELECT 1 AS u) SELECT u FROM (WITH r2 AS (FROM data.main.x SELECT u) SELECT u FROM r1)",
    ],
)
def test_texts_that_read_too_much(text: str, base: Judge) -> None:
    schema, con = base.session.schema, duckdb.connect()
    for check in (
        lambda s: texts.check_private(s, schema, text),
        lambda s: texts.check_public(s, schema, text),
        lambda s: texts.check_noisy(s, text),
    ):
        with pytest.raises(AssertionError):
            check(texts.shape(con, text))


def test_rows_made_of_literals_are_public(base: Judge) -> None:
    schema, con, text = base.session.schema, duckdb.connect(), "SELECT s AS c0 FROM range(3) g(s)"
    texts.check_public(texts.shape(con, text), schema, text)
    with pytest.raises(AssertionError, match="TABLE_FUNCTION"):
        texts.check_private(texts.shape(con, "SELECT u FROM range(3) g(u)"), schema, text)
    with pytest.raises(AssertionError, match="TABLE_FUNCTION"):
        texts.check_noisy(texts.shape(con, "SELECT k0 FROM range(3) g(k0)"), text)


def test_windows_and_values_of_public_rows_stand_in_their_places_alone(base: Judge) -> None:
    schema, con = base.session.schema, duckdb.connect()
    below = (
        "WITH r1 AS (SELECT u, lag(c0) OVER (PARTITION BY u ORDER BY c1) AS c2 "
        'FROM (SELECT t."user_id" AS u FROM data."main"."users" AS t)) SELECT u FROM r1'
    )
    texts.check_private(texts.shape(con, below), schema, below)
    value = 'SELECT median(q.c0) AS c0 FROM (SELECT "country" AS c0 FROM "countries") AS q'
    texts.check_public(texts.shape(con, value), schema, value)
    with pytest.raises(AssertionError, match="functions"):
        texts.check_private(texts.shape(con, below.replace("lag(", "last_value(")), schema, below)
    with pytest.raises(AssertionError, match="functions"):
        texts.check_noisy(texts.shape(con, "SELECT median(a0) AS c0 FROM noisy"), "")
    texts.check_noisy(texts.shape(con, "SELECT t.y0 FROM noisy_1 AS t, public_12 AS x0"), "")
    for name in ("noisy_0", "noisy_x", "public_x"):
        with pytest.raises(AssertionError, match="tables"):
            texts.check_noisy(texts.shape(con, f"SELECT k0 FROM {name}"), "")


def test_texts_that_are_right(base: Judge) -> None:
    schema, con = base.session.schema, duckdb.connect()
    right = 'WITH r1 AS (SELECT t."user_id" AS u, lower(t."country") AS k0 FROM data."main"."users" AS t) SELECT k0, sum(u) AS p0 FROM r1 GROUP BY k0'
    texts.check_private(texts.shape(con, right), schema, right)
    texts.check_public(texts.shape(con, 'SELECT "country" AS c0 FROM "countries"'), schema, "")
    texts.check_noisy(texts.shape(con, "SELECT t.k0, rank() OVER (ORDER BY t.a0) AS w0 FROM noisy AS t"), "")
    with pytest.raises(AssertionError, match="tables"):
        texts.check_public(texts.shape(con, 'SELECT "country" AS c0 FROM "users"'), schema, "")


@pytest.mark.parametrize("call", ["current_setting('threads')", "txid_current()"])
def test_a_function_that_is_let_through(call: str, base: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the list of what may stand above the noise had one too many."""
    monkeypatch.setattr(lift, "FUNCTIONS", lift.FUNCTIONS | {"current_setting", "txid_current"})
    with pytest.raises(AssertionError, match="functions"):
        base.outcome(f"SELECT {call}, count(*) FROM users", "duckdb", run=True)


# ---- ends ----------------------------------------------------------------------------------------------------------------------------


def failing(error: BaseException) -> Callable[..., object]:
    def fail(*args: object, **how: object) -> object:
        raise error

    return fail


@pytest.mark.parametrize(
    "error", [RecursionError(), ValueError("x"), MemoryError(), AssertionError(), KeyError("x"), fault("ENGINE_FAILED")], ids=repr
)
@pytest.mark.parametrize("method", ["_prepare", "query"])
def test_ends_that_are_none(error: BaseException, method: str, base: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base.session, method, failing(error))
    with pytest.raises((type(error), AssertionError)):
        base.outcome(COUNT, "duckdb", run=True)


@pytest.mark.parametrize("code", ["UNREADABLE", "UNANSWERABLE"])
def test_refusals_that_stand_for_failures(code: str, base: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base.session, "_prepare", failing(Refused(code, "x")))
    with pytest.raises(AssertionError, match=code):
        base.outcome(COUNT, "duckdb", run=False)


def test_a_statement_that_takes_for_ever(base: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(*args: object) -> object:
        while True:
            pass

    monkeypatch.setattr(judged, "CPU_SECONDS", 0.2)
    monkeypatch.setattr(base.session, "_prepare", spin)
    with pytest.raises(Hang):
        base.outcome(COUNT, "duckdb", run=False)


def test_a_statement_that_takes_much_memory(base: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = iter((SimpleNamespace(ru_maxrss=1000), SimpleNamespace(ru_maxrss=2_000_000)))
    monkeypatch.setattr(judged.resource, "getrusage", lambda who: next(usage))
    with pytest.raises(AssertionError, match="grew"):
        base.outcome(COUNT, "duckdb", run=False)


# ---- what is touched -----------------------------------------------------------------------------------------------------------------


def test_a_file_written(base: Judge) -> None:
    (base.folder / "x.csv").write_text("")
    with pytest.raises(AssertionError, match=r"x\.csv"):
        base.check_untouched()
    (base.folder / "x.csv").unlink()
    base.check_untouched()


def test_a_file_written_here(base: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="here"):
        base.check_untouched()


def test_the_environment_changed(base: Judge) -> None:
    os.environ["FUZZED"] = "1"
    with pytest.raises(AssertionError, match="FUZZED"):
        base.check_untouched()
    del os.environ["FUZZED"]


@pytest.mark.parametrize(
    "sql", ["CREATE TABLE z AS SELECT 1", "CREATE MACRO z(x) AS 1", "CREATE VIEW z AS SELECT 1", "SET VARIABLE z = 1", "CREATE SEQUENCE z"]
)
def test_an_engine_changed(sql: str, base: Judge) -> None:
    assert post._ENGINE.con is not None
    post._ENGINE.con.execute(sql)
    with pytest.raises(AssertionError, match="noisy"):
        base.check_untouched()
    post._ENGINE.con = None
    base.check_untouched()


def test_a_change_of_the_private_engine(base: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    for change in (("table", "memory.main", "z"), ("setting", "threads", "9")):
        rows = [*base.before["private"], change]
        monkeypatch.setattr(base.backend, "owner_rows", lambda sql, rows=rows: rows)
        with pytest.raises(AssertionError, match="private"):
            base.check_untouched()


# ---- the fuzzer ----------------------------------------------------------------------------------------------------------------------


def test_findings_are_reported_and_made_short(base: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that breaks at one word."""
    prepare = base.session._prepare

    def breaks(text: str, *rest: object) -> object:
        if "country" in text.lower():
            raise IndexError("broken")
        return prepare(text, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(type(base.session), "_prepare", lambda self, *args: breaks(*args))
    small = Ground("base", ground("base").schema, ground("base").fill, (COUNT, "SELECT count(*) FROM users"))
    found = [one for one in run(small, "fixed", 5) if hasattr(one, "kind")]
    assert found
    assert found[0].kind.startswith("IndexError")
    assert again(base, found[0], "country")
    assert smaller(base, found[0]) == "country"
