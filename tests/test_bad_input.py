"""Bad input, through the engine and the real command line: a clear error with its code and exit status, no charge, nothing of the data told."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import people
import pytest

from dpquery import ledger as ledgers
from dpquery.engine import check, open_ledger, open_session
from dpquery.engine.session import Session
from dpquery.errors import Error, Fault, OverBudget, Refused, SchemaError
from dpquery.schema.model import Contribution
from dpquery.schema.read import read as read_schema
from dpquery.sql import read as read_statement

COUNT = "SELECT count(*) FROM visits"
TABLES = """
tables:
  people: {unit: pid, max_rows_per_unit: 1, columns: {pid: {type: integer}, country: {type: string, values: [US, DE]}}}
  visits: {unit: pid, columns: {pid: {type: integer}, note: {type: string}, amount: {type: float}, stars: {type: integer, lower: 0, upper: 5}}}
"""
DATA = """
CREATE TABLE people AS SELECT i::INT AS pid, 'SECRET-VALUE-c' || i AS country FROM range(100) t(i);
CREATE TABLE visits AS SELECT (i % 100)::INT AS pid, 'SECRET-VALUE-' || i AS note, 98765432.25 + i AS amount,
  (i % 6)::INT AS stars FROM range(1000) t(i);
"""
SECRETS = ("SECRET", "98765", "98766")


@dataclass(frozen=True)
class Case:
    sql: str
    kind: type[Error]
    code: str
    price: dict[str, Any] = field(default_factory=dict)
    column: int | None = None  # where the error points to in the first line
    says: str = ""


STATEMENTS = [
    Case("SELECT count(*) FROM visit", Refused, "UNKNOWN_TABLE", column=22, says="'visits'"),
    Case("SELECT count(*) FROM people, vists WHERE people.pid = vists.pid", Refused, "UNKNOWN_TABLE", column=30, says="'visits'"),
    Case("SELECT count(nte) FROM visits", Refused, "UNKNOWN_COLUMN", column=14, says="'note'"),
    Case("SELECT sum(v.star) FROM visits v", Refused, "UNKNOWN_COLUMN", column=12, says="'stars'"),
    Case("SELECT sum(w.stars) FROM visits v", Refused, "UNKNOWN_TABLE", column=12),
    Case("SELECT cuont(*) FROM visits", Refused, "UNKNOWN_FUNCTION", column=8, says="'count'"),
    Case("SELECT stars, cuont(*) FROM visits GROUP BY stars", Refused, "FUNCTION_ABOVE_NOISE", column=15, says="'count'"),
    Case("SELECT count(*) FROM visits WHERE lowr(note) = 'a'", Refused, "UNKNOWN_FUNCTION", column=35, says="'lower'"),
    Case("SELECT count(*) FORM visits", Refused, "SYNTAX", column=22),
    Case("SELECT count(* FROM visits", Refused, "SYNTAX", column=16),
    Case("SELECT count(*) FROM visits WHERE note = 'abc", Refused, "SYNTAX", column=42),
    Case("SELECT count(*) FROM visits GROUP", Refused, "SYNTAX"),
    Case("", Refused, "SYNTAX", column=1),
    Case("-- nothing", Refused, "SYNTAX"),
    Case("SELECT count(*) FROM visits; SELECT 1", Refused, "SEVERAL_STATEMENTS"),
    Case("SELECT sum(amount) FROM visits", Refused, "MISSING_BOUNDS", column=8, says="sum(amount, contribution_bounds_per_row"),
    Case("SELECT avg(amount) FROM visits", Refused, "MISSING_BOUNDS", column=8),
    Case("SELECT sum(amount * stars) FROM visits", Refused, "MISSING_BOUNDS", column=8),
    Case("SELECT sum(CAST(note AS INT)) FROM visits", Refused, "MISSING_BOUNDS", column=8),
    Case("SELECT note FROM visits", Refused, "RAW_ROWS"),
    Case("SELECT * FROM visits", Refused, "RAW_ROWS"),
    Case("SELECT max(note) FROM visits", Refused, "MIN_MAX"),
    Case("SELECT pid, count(*) FROM visits GROUP BY pid", Refused, "UNIT_AS_OUTPUT"),
    Case("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0) count(*) FROM visits", Refused, "BAD_PRICE", column=43),
    Case("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = -1) count(*) FROM visits", Refused, "BAD_PRICE"),
    Case("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 1) count(*) FROM visits", Refused, "BAD_DELTA"),
    Case("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilom = 1) count(*) FROM visits", Refused, "UNKNOWN_OPTION", says="epsilon"),
    Case("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.2) count(*) FROM visits", Refused, "TWO_PRICES", {"epsilon": "0.3"}),
]
PRICES = [
    *(Case(COUNT, Refused, "BAD_PRICE", {"epsilon": e}) for e in ("0", "0.0", "-1", "-0", "nan", "NaN", "inf", "-inf", "abc", "", " 1", "1 ", "1_0")),
    *(Case(COUNT, Refused, "BAD_PRICE", {"epsilon": e}) for e in ("0x1", "1e-320", "1e9999", 0, -1, float("nan"), float("inf"), True, "\u0661")),
    *(Case(COUNT, Refused, "EPSILON_TOO_LARGE", {"epsilon": e}) for e in ("2.1", "50.1", "1e308", 1e25)),
    *(Case(COUNT, Refused, "BAD_DELTA", {"delta": d}) for d in ("1", "1.5", "-1e-9", -1, 2)),
    *(Case(COUNT, Refused, "BAD_PRICE", {"delta": d}) for d in ("nan", "inf", "tiny")),
    *(Case(COUNT, Refused, "BAD_PRICE", {"rho": r}) for r in ("0", "-1", "nan", "inf")),
    Case(COUNT, Refused, "EPSILON_TOO_LARGE", {"rho": "10"}),
    Case(COUNT, Refused, "TWO_PRICES", {"rho": "0.01", "epsilon": "0.1"}),
    *(Case(COUNT, Refused, "BAD_CONFIDENCE", {"confidence": c}) for c in ("1", "0", "0.4", "95")),
    Case(COUNT, Refused, "DIALECT", {"dialect": "klingon"}),
    Case("SELECT note, count(*) FROM visits GROUP BY note", Refused, "PRIVATE_KEYS_NEED_DELTA", {"delta": 0}),
]


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("bad"), DATA, TABLES, people.ORDINARY)


@pytest.fixture(scope="module")
def session(schema: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with people.opened(people.copied(schema, tmp_path_factory.mktemp("used") / "kept")) as (one,):
        yield one


@pytest.fixture
def fresh(schema: Path, tmp_path: Path) -> Path:
    return people.copied(schema, tmp_path / "fresh")


def silent(*texts: object) -> None:
    """Nothing of the data is in what was told."""
    assert not secrets(" ".join(map(str, texts)))


def secrets(told: str) -> list[str]:
    """Those that stand in it by themselves: digests and moments have any digits."""
    return [secret for secret in SECRETS if re.search(f"(?<![0-9a-f]){secret}(?![0-9a-f])", told)]


OWN = "0 and 100 are placeholders for your own bounds"
AUTO = "bounds chosen from the data, out of the same price"
LIMIT = "4 is a placeholder for how much of a unit is to count"
CLAUSE = "WITH DIFFERENTIAL_PRIVACY OPTIONS"


@pytest.mark.parametrize(
    ("sql", "rewritten", "differs"),
    [
        ("SELECT sum(amount) FROM visits", "SELECT sum(amount, bounds => 'auto') FROM visits", AUTO),
        ("SELECT avg(amount) FROM visits", "SELECT avg(amount, bounds => 'auto') FROM visits", AUTO),
        ("SELECT median(amount) FROM visits", "SELECT median(amount, contribution_bounds_per_row => (0, 100)) FROM visits", OWN),
        ("SELECT stddev(amount) FROM visits", "SELECT stddev(amount, contribution_bounds_per_row => (0, 100)) FROM visits", OWN),
        (
            "SELECT max(amount) FROM visits",
            "SELECT quantile_cont(amount, 0.99, contribution_bounds_per_row => (0, 100)) FROM visits",
            f"the 0.99 quantile, not the largest value; {OWN}",
        ),
        (
            "SELECT sum(v) FROM (SELECT pid, sum(amount) AS v FROM visits GROUP BY pid) x",
            "SELECT sum(v) FROM (SELECT pid, sum(greatest(least(amount, 100), 0)) AS v FROM visits GROUP BY pid) x",
            OWN,
        ),
    ],
)
def test_what_is_offered_is_accepted_and_says_which_of_its_numbers_are_none_of_yours(
    sql: str, rewritten: str, differs: str, session: Session
) -> None:
    with pytest.raises(Refused) as failed:
        session.explain(sql)
    assert (failed.value.rewritten, failed.value.differs) == (rewritten, differs)
    assert failed.value.as_dict()["differs"] == differs
    session.explain(rewritten)


@pytest.mark.parametrize(
    ("sql", "rewritten"),
    [
        (
            "SELECT stars, sum(stars) FROM visits GROUP BY stars",
            f"SELECT {CLAUSE}(max_groups_contributed = 4, max_rows_per_group = 4) stars, sum(stars) FROM visits GROUP BY stars",
        ),
        (f"SELECT {CLAUSE}(epsilon = 1) sum(stars) FROM visits", f"SELECT {CLAUSE}(epsilon = 1, max_rows_per_group = 4) sum(stars) FROM visits"),
    ],
)
def test_a_limit_that_nobody_set_is_offered_with_a_placeholder(sql: str, rewritten: str, schema: Path) -> None:
    unlimited = read_schema(schema).model_copy(update={"contribution": Contribution()})
    with pytest.raises(Refused, match=r"`contribution: \{max_") as failed:
        read_statement(sql, unlimited)
    assert (failed.value.code, failed.value.rewritten, failed.value.differs) == ("MISSING_LIMIT", rewritten, LIMIT)


@pytest.mark.parametrize("case", [*STATEMENTS, *PRICES], ids=lambda case: f"{case.code}-{case.sql[:60]}-{case.price}")
def test_the_engine_refuses_and_charges_nothing(case: Case, session: Session) -> None:
    before = session.budget()
    with pytest.raises(Error) as failed:
        session.query(case.sql, **case.price)
    error = failed.value
    assert (type(error), error.code) == (case.kind, case.code)
    assert error.exit_status == 2
    assert error.message
    if case.column is not None:
        assert error.position is not None
        assert (error.position.line, error.position.column) == (1, case.column)
    assert case.says in f"{error.message} {error.instead}"
    silent(error, error.as_dict())
    assert session.budget() == before
    with pytest.raises(Error) as explained:
        session.explain(case.sql, **case.price)
    assert explained.value.as_dict() == error.as_dict()


def test_unsafe_testing_takes_a_delta_of_one_and_no_more(tmp_path: Path) -> None:
    with people.opened(people.made(tmp_path, DATA, TABLES)) as (unsafe,):
        assert unsafe.query(COUNT, delta=1).table.to_pylist()[0] == {"count_star()": 1000}
        for delta in ("1.0000001", "-0.1", "nan"):
            with pytest.raises(Refused):
                unsafe.query(COUNT, delta=delta)


# ---- files --------------------------------------------------------------------------------------------------------------------------------


def hidden(path: Path) -> None:
    path.rename(path.with_name("hidden"))


def junk(path: Path) -> None:
    path.write_bytes(b"SECRET-VALUE is no database" * 1000)


def halved(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    at = content.index(b"registered")
    content[at : at + 10] = b"registeree"
    path.write_bytes(bytes(content))


def logged(path: Path) -> None:
    path.with_name(path.name + ".wal").write_bytes(b"")


def replaced(path: Path) -> None:
    other = people.write(path.parent / "other", DATA + "INSERT INTO visits VALUES (1, 'SECRET-VALUE-new', 1, 1);", TABLES, people.ORDINARY)
    shutil.copyfile(other.with_suffix(".duckdb"), path)


def unbound(path: Path) -> None:
    path.with_name(path.name + ".ledger-id").unlink()


def foreign(path: Path) -> None:
    other = people.made(path.parent / "other", DATA, TABLES, people.ORDINARY)
    shutil.copyfile(other.with_suffix(".ledger"), path)


def anothers(path: Path) -> None:
    other = people.made(path.parent / "other", DATA, TABLES, people.ORDINARY, name="another")
    shutil.copyfile(other.with_suffix(".ledger"), path)


FILES = [
    (".duckdb", hidden, Fault, "DATA_MISSING"),
    (".duckdb", junk, SchemaError, "DATA_NOT_REGISTERED"),
    (".duckdb", halved, SchemaError, "DATA_NOT_REGISTERED"),
    (".duckdb", logged, Fault, "DATA_WAL"),
    (".duckdb", replaced, SchemaError, "DATA_NOT_REGISTERED"),
    (".duckdb", unbound, Fault, "LEDGER_FOREIGN"),
    (".ledger", hidden, Fault, "LEDGER_MISSING"),
    (".ledger", junk, Fault, "LEDGER_CORRUPT"),
    (".ledger", halved, Fault, "LEDGER_CORRUPT"),
    (".ledger", flipped, Fault, "LEDGER_CORRUPT"),
    (".ledger", foreign, Fault, "LEDGER_FOREIGN"),
    (".ledger", anothers, Fault, "LEDGER_FOREIGN"),
]


@pytest.mark.parametrize(("suffix", "harm", "kind", "code"), FILES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_files_that_are_not_what_they_should_be(suffix: str, harm: Callable[[Path], None], kind: type[Error], code: str, fresh: Path) -> None:
    harm(fresh.with_suffix(suffix))
    with people.opened(fresh) as (one,), pytest.raises(Error) as failed:
        one.query(COUNT)
    assert (type(failed.value), failed.value.code) == (kind, code)
    assert failed.value.instead
    silent(failed.value, failed.value.as_dict())
    if suffix == ".duckdb" and harm is not unbound:
        with open_ledger(fresh) as ledger:
            assert ledger.balance("default").entries == 0


def test_a_locked_ledger_is_waited_for_then_told(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpquery.engine.session.open_ledger", partial(ledgers.open, wait=0.1))
    with people.opened(fresh) as (one,):
        one.query(COUNT, epsilon="0.1", fresh=True)
        con = sqlite3.connect(fresh.with_suffix(".ledger"), isolation_level=None)
        con.execute("BEGIN IMMEDIATE")
        with pytest.raises(Fault) as failed:
            one.query(COUNT, epsilon="0.1", fresh=True)
        con.execute("ROLLBACK")
        con.close()
        assert (failed.value.code, failed.value.entry) == ("LEDGER_LOCKED", None)
        assert "nothing was charged" in failed.value.message
        assert one.query(COUNT, epsilon="0.1", fresh=True).table.num_rows == 1
        assert str(one.budget().spent.epsilon) == "0.2"


def test_a_database_that_is_written_elsewhere_is_told(fresh: Path) -> None:
    """Another program holds it open for writing: its log, if any, or its lock is in the way."""
    writer = "import duckdb, sys; con = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", writer, str(fresh.with_suffix(".duckdb"))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with people.opened(fresh) as (one,), pytest.raises(Error) as failed:
            one.query(COUNT)
        assert failed.value.code == "DATA_LOCKED"
        silent(failed.value)
        other.communicate("")


def test_an_exhausted_budget_says_what_is_left(fresh: Path) -> None:
    with people.opened(fresh) as (one,):
        one.query(COUNT, epsilon="1.5")
        with pytest.raises(OverBudget) as failed:
            one.query(COUNT, epsilon="0.6", fresh=True)
        assert (failed.value.code, failed.value.exit_status) == ("OVER_BUDGET", 3)
        assert "epsilon 0.5" in str(failed.value.instead)
        assert one.query(COUNT, epsilon="0.5", fresh=True).table.num_rows == 1
        with pytest.raises(OverBudget):
            one.query(COUNT, epsilon="1e-6", fresh=True)
        assert str(one.budget().spent.epsilon) == "2"


def test_nothing_of_the_data_is_written_anywhere(fresh: Path) -> None:
    """Answers, errors, receipts, explanations, the report of a check, the ledger's bytes: values of single rows are in none of them."""
    said: list[object] = []
    with people.opened(fresh) as (one,):
        for sql in ("SELECT note, count(*) FROM visits GROUP BY note", "SELECT country, count(*) FROM people GROUP BY country"):
            answer = one.query(sql, epsilon="0.1")
            said += [answer.table.to_pylist(), answer.receipt, answer.warnings, answer.intervals, one.explain(sql).as_dict()]
        for case in STATEMENTS:
            with pytest.raises(Error) as failed:
                one.query(case.sql, **case.price)
            said.append(failed.value.as_dict())
        said += [one.budget().as_dict(), [table.as_dict() for table in one.tables()], check(fresh).as_dict()]
    silent(*said)
    assert not secrets(fresh.with_suffix(".ledger").read_bytes().decode("latin-1"))


# ---- the command line ---------------------------------------------------------------------------------------------------------------------


def told(schema: Path, sql: str, *words: str) -> tuple[int, Any, str]:
    """Exit status, the JSON on standard output, standard error."""
    command = [sys.executable, "-m", "dpquery", "query", sql, "--schema", str(schema), "--format", "json", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    silent(done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


LINES = [
    (("SELECT count(*) FROM visit",), 2, "UNKNOWN_TABLE"),
    (("SELECT count(*) FORM visits",), 2, "SYNTAX"),
    (("SELECT sum(amount) FROM visits",), 2, "MISSING_BOUNDS"),
    ((COUNT, "--epsilon=-1"), 2, "BAD_PRICE"),
    ((COUNT, "--epsilon=2", "--analyst=bob"), 0, None),
    ((COUNT, "--epsilon=2", "--analyst=bob", "--fresh"), 3, "OVER_BUDGET"),
]


def test_the_command_line_has_a_status_and_a_document_for_each(fresh: Path) -> None:
    for (sql, *words), status, code in LINES:
        found, document, err = told(fresh, sql, *words)
        assert found == status
        if code is None:
            assert document["rows"]
            continue
        assert document["error"]["code"] == code
        assert set(document["error"]) - {"rewritten", "differs"} == {"code", "message", "position", "instead"}
        assert code in err
    assert open_session(fresh).budget().entries == 0
    assert open_session(fresh, "bob").budget().entries == 1


@pytest.mark.parametrize(
    ("suffix", "harm", "status", "code"),
    [
        (".duckdb", hidden, 5, "DATA_MISSING"),
        (".duckdb", replaced, 4, "DATA_NOT_REGISTERED"),
        (".ledger", halved, 5, "LEDGER_CORRUPT"),
    ],
)
def test_the_command_line_tells_of_files(suffix: str, harm: Callable[[Path], None], status: int, code: str, fresh: Path) -> None:
    harm(fresh.with_suffix(suffix))
    found, document, err = told(fresh, COUNT)
    assert (found, document["error"]["code"]) == (status, code)
    assert code in err
